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

// Root a in (0, 1) of f(s) = s + k a - r, s = logit(a), k >= 0: safeguarded steps of Halley's method.  The start
// matters: from the middle of the bracket the iteration can stall far from machine accuracy when k is large.  For r <=
// k/2 (else by symmetry) it is the root of f's tangent at 0 where that is near; r - W(k e^r), W Lambert's function to
// first order, where the root is small; and logit(r/k) elsewhere.  Neither f'' nor f''' is larger than f', so that a
// step leaves its own cube at most: after one below 4e-6 another would change nothing.
inline double logistic_root(double k, double r) {
  if (!(k > 0)) return sigmoid(r);
  if (r > 0.5 * k) return 1 - logistic_root(k, k - r);
  double lo = r - k, hi = r;
  double s = (r - 0.5 * k) / (1 + 0.25 * k);
  if (s < -2) {
    const double x = std::log(k) + r;
    s = r > 0.05 * k ? std::log(r / (k - r)) : r - (x > 1 ? x - std::log(x) : 1 / (1 + std::exp(-x)));
  }
  s = std::min(std::max(s, lo), hi);
  for (int step = 0; step < 100; ++step) {
    const double a = sigmoid(s), slope = a * (1 - a), bend = 1 - 2 * a;
    const double f = s + k * a - r, rise = 1 + k * slope;
    (f > 0 ? hi : lo) = s;
    double move = f / rise;
    if (std::fabs(move) < 1) move *= 2 * rise / (2 * rise - move * k * slope * bend);
    if (std::fabs(move) <= 4e-6) return a - slope * move * (1 - 0.5 * move * bend);
    const double t = s - move;
    s = t > lo && t < hi ? t : 0.5 * (lo + hi);
  }
  return sigmoid(s);
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
    rhs /= scale, kappa /= scale;
    if (shape == Shape::logistic) return -c * s * logistic_root(s * kappa, -c * rhs);
    const double r = rhs - c;
    const double a = std::fabs(r) - kink;
    if (a <= 0) return clip(0.0, c, s);
    const double flat = a <= kappa * s * dead ? a / kappa : (a + quad * dead) / (kappa + quad / s);
    return clip(std::copysign(flat, r), c, s);
  }

 private:
  // s b, with 0 for s = 0 even where b is infinite: the conjugate of 0 is finite at 0 alone.
  static double bound(double b, double s) { return s == 0 ? 0.0 : s * b; }
};

}  // namespace coordwise
