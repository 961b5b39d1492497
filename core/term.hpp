// One-dimensional convex functions: everything the kernel needs of a loss or a penalty (certificates: evaluate.hpp).
//
// A term is given by its conjugate.  With a centre c (the label, say) and a weight s, the piecewise
// linear-quadratic shape is
//
//   phi*(y) = c y + kink |y| + quad/(2 s) max(|y| - s dead, 0)^2      for  s lower <= y <= s upper,
//
// where `mirrored` swaps the interval for a negative centre (classification losses).  Every loss of the
// library but one is of this shape.  The exception is the logistic loss log(1 + exp(-c t)), c = +1 or -1:
//
//   phi*(y) = s (a log a + (1 - a) log(1 - a)),   a = -c y / s in [0, 1].
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace coordwise {

enum class Shape : int { piecewise = 0, logistic = 1 };

inline double sigmoid(double t) {
  const double e = std::exp(-std::fabs(t));
  return t >= 0 ? 1 / (1 + e) : e / (1 + e);
}

// Root a in (0, 1) of f(s) = s + k a - r, s = logit(a), k >= 0, for r <= k/2 (else by symmetry), where s <= 0.
//
// The start matters: from the middle of the bracket the iteration can stall far from machine accuracy when k is large.
// It is the root of f's tangent at 0 where that is near; with E = k e^r, r - W(E), W being Lambert's function (to 5e-6
// by a quotient of polynomials up to E = 2.75, to its second order beyond), mended for a = e^s/(1 + e^s) in place of
// e^s by a Newton step; and logit(r/k) where a is not small, or r is much larger than s.
//
// Then steps of fourth order (Householder's) in a bracket, written without the denominators 1 + e^s of a and its
// derivatives, so that each has one division.  No derivative of f is larger than the first one, so that a step leaves
// its own fourth power at most: most often the first one is enough.
inline double logistic_root(double k, double r) {
  constexpr double little = 3e-4, large = 1e100;  // a step after which no other is needed; where cubes would overflow
  if (!(k > 0)) return sigmoid(r);
  const bool mirrored = r > 0.5 * k;
  if (mirrored) r = k - r;
  double lo = r - k, hi = std::min(r, 0.0);
  double s = (r - 0.5 * k) / (1 + 0.25 * k);
  if (s < -1) {
    const double E = k * std::exp(r);
    if (E <= 2.75) {
      const double above = 1 + E * (1.54034066 + E * 0.28821445);
      const double below = 1 + E * (2.53840851 + E * (1.3479006 + E * 0.10102279));
      const double W = E * above / below, c = 1 + W / k;
      s = r - W + W * W * c / (k * (c * c + W));
    } else if (r > std::min(0.05 * k, 1e3)) {
      s = std::log(r / (k - r));
    } else {
      const double x = std::log(k) + r, y = std::log(x);
      s = r - x + y - y / x;
    }
  }
  s = std::min(std::max(s, lo), hi);
  for (int step = 0; step < 100; ++step) {
    const double e = std::exp(s), D = 1 + e, ke = k * e, bend = 1 - e, twist = 1 + e * (e - 4);
    const double F = (s - r) * D + ke, R = D * D + ke, S = ke * bend;  // f and two derivatives, times D, D^2, D^3
    (F > 0 ? hi : lo) = s;
    const bool quartic = std::fabs(F) * D < R && k < large;
    const double move =
        quartic ? 3 * D * F * (2 * R * R - F * S) / (6 * R * (R * R - F * S) + F * F * ke * twist) : F * D / R;
    if (std::fabs(move) <= (quartic ? little : little * little)) {
      const double part = 1 / D, a = e * part, slope = a * part;
      const double found = a - slope * move * (1 - move * part * (0.5 * bend - move / 6 * part * twist));
      return mirrored ? 1 - found : found;
    }
    const double t = s - move;
    s = t > lo && t < hi ? t : 0.5 * (lo + hi);
  }
  return mirrored ? sigmoid(-s) : sigmoid(s);
}

struct Term {
  Shape shape = Shape::piecewise;
  double quad = 0, kink = 0, dead = 0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  bool mirrored = false;
  double scale = 1;  // the whole term is multiplied by it

  double low(double c, double s) const {
    if (shape == Shape::logistic) return c > 0 ? -s : 0.0;
    return bound(mirrored && c < 0 ? -upper : lower, s);
  }
  double high(double c, double s) const {
    if (shape == Shape::logistic) return c > 0 ? 0.0 : s;
    return bound(mirrored && c < 0 ? -lower : upper, s);
  }
  double clip(double y, double c, double s) const { return std::min(std::max(y, low(c, s)), high(c, s)); }

  // Whether phi'(t) is t soft-thresholded at kink, over quad, for c = 0 and s = 1.
  bool soft() const {
    return shape == Shape::piecewise && quad > 0 && dead == 0 && std::isinf(lower) && std::isinf(upper);
  }

  // scale * (phi*)'(y), for terms whose conjugate is differentiable (no kink, no bounds)
  double conjugate_gradient(double y, double c, double s) const {
    const double over = std::max(std::fabs(y) - s * dead, 0.0);
    return scale * (c + std::copysign(quad / s * over, y));
  }

  // scale * s * phi'(t; c) (a subgradient at kinks)
  double derivative(double t, double c, double s) const {
    if (s == 0) return 0.0;
    if (shape == Shape::logistic) return scale * (-c * s * sigmoid(-c * t));
    const double r = t - c;
    const double a = std::fabs(r) - kink;
    if (a <= 0) return 0.0;
    const double y = s * (dead + (quad > 0 ? a / quad : std::numeric_limits<double>::infinity()));
    return scale * clip(std::copysign(y, r), c, s);
  }

  // argmin over y of  scale phi*(y) + kappa/2 y^2 - rhs y
  double prox(double rhs, double kappa, double c, double s) const {
    if (s == 0) return 0.0;
    // rhs is what a step waits for: everything else is divided before it is there
    const double inverse = 1 / scale;
    rhs *= inverse, kappa *= inverse;
    if (shape == Shape::logistic) return -c * s * logistic_root(s * kappa, -c * rhs);
    const double r = rhs - c;
    const double a = std::fabs(r) - kink;
    if (a <= 0) return clip(0.0, c, s);
    const double near = 1 / kappa, far = 1 / (kappa + quad / s);
    const double flat = a <= kappa * s * dead ? a * near : (a + quad * dead) * far;
    return clip(std::copysign(flat, r), c, s);
  }

 private:
  // s b, with 0 for s = 0 even where b is infinite: the conjugate of 0 is finite at 0 alone.
  static double bound(double b, double s) { return s == 0 ? 0.0 : s * b; }
};

}  // namespace coordwise
