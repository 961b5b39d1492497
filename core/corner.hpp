// Corners of a conjugate: places where y stays while the score t moves.
#pragma once

#include "term.hpp"

namespace coordwise {

// For a term of scale 1: `there` is s phi'(t), and `slope` how far t may move before phi'(t) leaves the corner of phi*
// that it is in: an end of the domain, or 0 if phi* has a kink there.  0 where it is in none.
struct Corner {
  double slope, there;
};

inline Corner corner_of(const Term& term, double t, double c, double s) {
  const double low = term.low(c, s), high = term.high(c, s);
  const double there = term.derivative(t, c, s);
  const double unit = s > 0 ? s : 1.0;
  // phi*'(v), at 0 seen from the right (side = 1) or the left (-1)
  auto pull = [&](double v, double side) {
    const double sign = v > 0 ? 1.0 : v < 0 ? -1.0 : 0.0;
    const double over = std::max(std::fabs(v) - unit * term.dead, 0.0);
    return c + (v == 0 ? side : sign) * term.kink + sign * term.quad / unit * over;
  };
  double slope = 0;
  if (there == low) slope = pull(low, 1) - t;
  if (there == high) slope = t - pull(high, -1);
  if (term.kink > 0 && there == 0 && low < 0 && high > 0) slope = term.kink - std::fabs(t - c);
  return {std::max(slope, 0.0), there};
}

}  // namespace coordwise
