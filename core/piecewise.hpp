// The piecewise shape of term.hpp for many arguments at once: the same formulas, without branches, which compilers turn
// into vector instructions.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include "batch.hpp"
#include "dispatch.hpp"
#include "term.hpp"

namespace coordwise {

// The constants of a term.
struct Piecewise {
  explicit Piecewise(const Term& of)
      : quad(of.quad),
        kink(of.kink),
        dead(of.dead),
        scale(of.scale),
        low{of.lower, of.mirrored ? -of.upper : of.lower},
        high{of.upper, of.mirrored ? -of.lower : of.upper} {}

  double quad, kink, dead, scale;
  double low[2], high[2];  // for centres that are not negative, and for those that are

  // Ends of the domain; {0} for s = 0.
  COORDWISE_INLINE double lowest(double c, double s) const { return s == 0 ? 0.0 : s * (c < 0 ? low[1] : low[0]); }
  COORDWISE_INLINE double highest(double c, double s) const { return s == 0 ? 0.0 : s * (c < 0 ? high[1] : high[0]); }

  // s phi'(t; c).  Where quad is 0 it is infinite beyond the kink, before it is clipped.
  COORDWISE_INLINE double derivative(double t, double c, double s) const {
    const double r = t - c, a = std::fabs(r) - kink, low = lowest(c, s), high = highest(c, s);
    double y = std::copysign(s * (dead + a / quad), r);
    y = y < low ? low : y;
    y = high < y ? high : y;
    return (a <= 0) | (s == 0) ? 0.0 : y;
  }
  // The part of the conjugate that is even.
  COORDWISE_INLINE double even(double y, double s) const {
    const double over = std::fabs(y) - s * dead;
    return kink * std::fabs(y) + (over > 0 ? quad / (2 * s) * over * over : 0.0);
  }
};

// scale * s phi'(t; c)
struct DerivativeOf {
  COORDWISE_INLINE static double at(const Piecewise& of, double t, double c, double s) {
    return of.scale * of.derivative(t, c, s);
  }
};

// scale * s phi''(t; c)
struct CurvatureOf {
  COORDWISE_INLINE static double at(const Piecewise& of, double t, double c, double s) {
    const double y = of.derivative(t, c, s);
    const bool bends = !(std::fabs(t - c) <= of.kink) & (of.quad > 0);
    return bends & (y > of.lowest(c, s)) & (y < of.highest(c, s)) ? of.scale * s / of.quad : 0.0;
  }
};

// scale * s phi(t; c); infinite where its derivative is, and for a t that is no number
struct ValueOf {
  COORDWISE_INLINE static double at(const Piecewise& of, double t, double c, double s) {
    const double y = of.derivative(t, c, s), v = of.scale * ((t - c) * y - of.even(y, s));
    constexpr double infinite = std::numeric_limits<double>::infinity();
    return y == 0 ? 0.0 : std::fabs(y) < infinite ? v : infinite;
  }
};

// scale * (s phi)*(y; c)
struct ConjugateOf {
  COORDWISE_INLINE static double at(const Piecewise& of, double y, double c, double s) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    double v = of.scale * (c * y + of.even(y, s));
    v = s == 0 ? 0.0 : v;
    v = y < of.lowest(c, s) ? infinite : v;
    return y > of.highest(c, s) ? infinite : v;
  }
};

// Function at every entry of a batch
template <class Function>
struct EveryTerm {
  COORDWISE_INLINE static void run(const Piecewise* of, const Batch* in, double* out) {
    const Piecewise term = *of;
    for (std::size_t e = 0; e < batch; ++e) out[e] = Function::at(term, in->t[e], in->c[e], in->s[e]);
  }
};

}  // namespace coordwise
