// Terms of whole tables, N x K: derivatives and corners entry by entry, sums column by column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "corner.hpp"
#include "logistic.hpp"
#include "sum.hpp"
#include "term.hpp"
#include "threads.hpp"

namespace coordwise {

// A term at every entry: centres N x K and weights N, or none (0 and 1).
struct Terms {
  const Term& term;
  std::size_t rows, columns;
  const double* centers;
  const double* weights;

  double center(std::size_t e) const { return centers ? centers[e] : 0.0; }
  double weight(std::size_t i) const { return weights ? weights[i] : 1.0; }
  bool logistic() const { return term.shape == Shape::logistic; }
  // Stretches of rows that are worth a thread.
  std::size_t parts(std::size_t threads) const {
    return worth_starting(threads, rows * columns, logistic() ? 16384 : 24576);
  }
};

// Derivatives of the logistic loss, some entries at a time; `odd`: with the sign of -c.
template <class Function>
void logistic_derivatives(const Terms& of, const double* t, std::size_t from, std::size_t to, bool odd, double* out) {
  for (std::size_t i = from; i < to;) {
    const std::size_t rows = std::min(to - i, std::max<std::size_t>(batch / of.columns, 1));
    const std::size_t first = i * of.columns, last = (i + rows) * of.columns;
    for (std::size_t at = first; at < last; at += batch) {
      const std::size_t count = std::min(last - at, batch);
      double z[batch] = {};
      for (std::size_t e = 0; e < count; ++e) z[e] = -of.center(at + e) * t[at + e];
      apply<Function>(z);
      for (std::size_t e = 0; e < count; ++e) out[at + e] = (odd ? -of.center(at + e) : 1.0) * z[e];
    }
    for (std::size_t e = first; e < last; ++i) {
      const double s = of.weight(i);
      for (std::size_t k = 0; k < of.columns; ++k, ++e) out[e] = s == 0 ? 0.0 : of.term.scale * s * out[e];
    }
  }
}

// out = scale * s_i phi'(t_i; c_i), or phi''
inline void derivatives(const Terms& of, const double* t, bool second, std::size_t threads, double* out) {
  in_parts(of.rows, of.parts(threads), [=, &of](std::size_t, std::uint32_t from, std::uint32_t to) {
    if (of.logistic()) {
      return second ? logistic_derivatives<SigmoidSlope>(of, t, from, to, false, out)
                    : logistic_derivatives<Sigmoid>(of, t, from, to, true, out);
    }
    for (std::size_t i = from; i < to; ++i) {
      for (std::size_t e = i * of.columns; e < (i + 1) * of.columns; ++e) {
        const double c = of.center(e), s = of.weight(i);
        out[e] = second ? of.term.curvature(t[e], c, s) : of.term.derivative(t[e], c, s);
      }
    }
  });
}

// Sums of one column over a stretch of rows: of the terms or of their conjugates.
inline double sum_of(const Terms& of, const double* t, bool conjugate, std::size_t k, std::size_t from,
                     std::size_t to) {
  Sum sum;
  for (std::size_t i = from; i < to; ++i) {
    const std::size_t e = i * of.columns + k;
    const double c = of.center(e), s = of.weight(i);
    sum.add(conjugate ? of.term.conjugate(t[e], c, s) : of.term.value(t[e], c, s));
  }
  return sum.get();
}

// The same for the logistic loss, some rows at a time, and several sums side by side.
inline double logistic_sum_of(const Terms& of, const double* t, bool conjugate, std::size_t k, std::size_t from,
                              std::size_t to) {
  constexpr std::size_t chains = 4;
  Sum sums[chains];
  for (std::size_t i = from; i < to; i += batch) {
    const std::size_t count = std::min(to - i, batch);
    double z[batch] = {}, weight[batch] = {};
    bool inside = true;
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t e = (i + r) * of.columns + k;
      const double c = of.center(e), s = of.weight(i + r);
      weight[r] = of.term.scale * s;
      if (conjugate) inside &= !(t[e] < of.term.low(c, s) || t[e] > of.term.high(c, s));
      z[r] = s == 0 ? 0.0 : -c * t[e] / (conjugate ? s : 1.0);
    }
    if (!inside) return std::numeric_limits<double>::infinity();
    conjugate ? apply<Entropy>(z) : apply<SoftPlus>(z);
    for (std::size_t r = 0; r < batch; r += chains) {
      for (std::size_t chain = 0; chain < chains; ++chain) sums[chain].add(weight[r + chain] * z[r + chain]);
    }
  }
  for (std::size_t chain = 1; chain < chains; ++chain) sums[0].add(sums[chain].get());
  return sums[0].get();
}

// out_k = sum_i scale * s_i phi(t_ik; c_ik), or of the conjugates
inline void sums(const Terms& of, const double* t, bool conjugate, std::size_t threads, double* out) {
  const std::size_t parts = of.parts(threads), columns = of.columns;
  std::vector<double> found(parts * columns);
  in_parts(of.rows, parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    for (std::size_t k = 0; k < columns; ++k) {
      found[part * columns + k] = (of.logistic() ? logistic_sum_of : sum_of)(of, t, conjugate, k, from, to);
    }
  });
  for (std::size_t k = 0; k < columns; ++k) {
    Sum sum;
    for (std::size_t part = 0; part < parts; ++part) sum.add(found[part * columns + k]);
    out[k] = sum.get();
  }
}

// For terms of scale 1: see corner.hpp; away is how far x is from there.
inline void corners(const Terms& of, const double* x, const double* t, double* slope, double* away, double* there) {
  for (std::size_t e = 0; e < of.rows * of.columns; ++e) {
    const Corner corner = corner_of(of.term, t[e], of.center(e), of.weight(e / of.columns));
    slope[e] = corner.slope, there[e] = corner.there;
    away[e] = std::fabs(x[e] - corner.there);
  }
}

// out_k = Fenchel-Young sums of the rows in `which`, with g as in a certificate
inline void fenchel_young(const Terms& of, const double* x, const double* g, const bool* which, double* out) {
  std::fill(out, out + of.columns, 0.0);
  for (std::size_t i = 0; i < of.rows; ++i) {
    if (!which[i]) continue;
    for (std::size_t k = 0; k < of.columns; ++k) {
      const std::size_t e = i * of.columns + k;
      const double c = of.center(e), s = of.weight(i);
      out[k] += of.term.conjugate(x[e], c, s) + of.term.value(-g[e] / of.term.scale, c, s) + x[e] * g[e];
    }
  }
}

}  // namespace coordwise
