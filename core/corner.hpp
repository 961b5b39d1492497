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
    const double at_low = pull(of, low, 1.0, c, s) - t, at_high = t - pull(of, high, -1.0, c, s);
    const double at_zero = of.kink - std::fabs(t - c);
    double room = there == low ? at_low : 0.0;
    room = there == high ? at_high : room;
    double middle = low < 0 ? at_zero : room;  // one condition after the other: compilers do not vectorise them joined
    middle = high > 0 ? middle : room;
    room = there == 0 ? middle : room;  // a kink of 0 leaves nothing of it
    return room > 0 ? room : 0.0;
  }

 private:
  // phi*'(v), at 0 seen from the right (side = 1) or the left (-1)
  COORDWISE_INLINE static double pull(const Piecewise& of, double v, double side, double c, double s) {
    const double unit = s > 0 ? s : 1.0, beyond = std::fabs(v) - unit * of.dead, over = beyond > 0 ? beyond : 0.0;
    const double way = v == 0 ? side : v;  // where v is 0 nothing is beyond
    return c + std::copysign(of.kink, way) + std::copysign(of.quad / unit * over, way);
  }
};

}  // namespace coordwise
