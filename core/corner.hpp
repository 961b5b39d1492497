// Corners of a conjugate: places where y stays while the score t moves.
#pragma once

#include <cmath>

#include "piecewise.hpp"

namespace coordwise {

// How far t may move before phi'(t) leaves the corner of phi* that it is in, for a term of scale 1: an end of the
// domain, or 0 if phi* has a kink there.  0 where it is in none.
struct RoomOf {
  COORDWISE_INLINE static double at(const Piecewise& of, double t, double c, double s) {
    const double low = of.lowest(c, s), high = of.highest(c, s), there = of.derivative(t, c, s);
    double room = there == low ? pull(of, low, 1.0, c, s) - t : 0.0;
    room = there == high ? t - pull(of, high, -1.0, c, s) : room;
    room = (of.kink > 0) & (there == 0) & (low < 0) & (high > 0) ? of.kink - std::fabs(t - c) : room;
    return room > 0 ? room : 0.0;
  }

 private:
  // phi*'(v), at 0 seen from the right (side = 1) or the left (-1)
  COORDWISE_INLINE static double pull(const Piecewise& of, double v, double side, double c, double s) {
    const double unit = s > 0 ? s : 1.0, over = std::fabs(v) - unit * of.dead;
    const double sign = v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0;
    return c + (v == 0 ? side : sign) * of.kink + sign * of.quad / unit * (over > 0 ? over : 0.0);
  }
};

}  // namespace coordwise
