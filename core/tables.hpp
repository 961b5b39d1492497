// Terms of whole tables, N x K: derivatives and corners entry by entry, sums column by column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "batch.hpp"
#include "corner.hpp"
#include "dispatch.hpp"
#include "evaluate.hpp"
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
  // Stretches of rows that are worth a thread.
  std::size_t parts(std::size_t threads) const { return worth_starting(threads, rows * columns, 16384); }
};

// `count` entries of t from `first` on, every `step`-th one, with their centres and weights.
inline void fill(const Terms& of, const double* t, std::size_t first, std::size_t step, std::size_t count, Batch& in) {
  if (of.columns == 1) {
    for (std::size_t e = 0; e < count; ++e) in.t[e] = t[first + e];
    for (std::size_t e = 0; e < count; ++e) in.c[e] = of.center(first + e);
    for (std::size_t e = 0; e < count; ++e) in.s[e] = of.weight(first + e);
  } else {
    for (std::size_t e = 0; e < count; ++e) {
      const std::size_t from = first + e * step;
      in.t[e] = t[from], in.c[e] = of.center(from), in.s[e] = of.weight(from / of.columns);
    }
  }
  for (std::size_t e = count; e < batch; ++e) in.t[e] = in.c[e] = in.s[e] = 0;  // terms of weight 0 are 0
}

// out = scale * s_i phi'(t_i; c_i), or phi''
inline void derivatives(const Terms& of, const double* t, bool second, std::size_t threads, double* out) {
  const Piecewise pieces(of.term);
  in_parts(of.rows, of.parts(threads), [=, &of, &pieces](std::size_t, std::uint32_t from, std::uint32_t to) {
    Batch in;
    double found[batch];
    for (std::size_t at = from * of.columns, end = to * of.columns; at < end; at += batch) {
      const std::size_t count = std::min(end - at, batch);
      fill(of, t, at, 1, count, in);
      evaluate(of.term, pieces, in, second ? Ask::curvature : Ask::derivative, found);
      std::copy(found, found + count, out + at);
    }
  });
}

struct AddUp {
  COORDWISE_INLINE static void run(const double* v, SideBySide* sum) {
    SideBySide held = *sum;  // in registers
    for (std::size_t e = 0; e < batch; e += SideBySide::width) held.add(v + e);
    *sum = held;
  }
};

// Sums of one column over a stretch of rows: of the terms or of their conjugates.
inline double sum_of(const Terms& of, const double* t, bool conjugate, std::size_t k, std::size_t from,
                     std::size_t to) {
  const Piecewise pieces(of.term);
  Batch in;
  double found[batch];
  SideBySide sum;
  for (std::size_t i = from; i < to; i += batch) {
    fill(of, t, i * of.columns + k, of.columns, std::min(to - i, batch), in);
    evaluate(of.term, pieces, in, conjugate ? Ask::conjugate : Ask::value, found);
    widest<AddUp>(static_cast<const double*>(found), &sum);
  }
  return sum.get();
}

// out_k = sum_i scale * s_i phi(t_ik; c_ik), or of the conjugates
inline void sums(const Terms& of, const double* t, bool conjugate, std::size_t threads, double* out) {
  const std::size_t parts = of.parts(threads), columns = of.columns;
  std::vector<double> found(parts * columns);
  in_parts(of.rows, parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    for (std::size_t k = 0; k < columns; ++k) {
      found[part * columns + k] = sum_of(of, t, conjugate, k, from, to);
    }
  });
  for (std::size_t k = 0; k < columns; ++k) {
    Sum sum;
    for (std::size_t part = 0; part < parts; ++part) sum.add(found[part * columns + k]);
    out[k] = sum.get();
  }
}

// out = sum_i scale * s_i phi'(t_i + length way_i; c_i) way_i, and the same of phi'' way_i^2 if it is asked for: slope
// and curvature of the sum of the terms of one column along a line.
inline void along(const Terms& of, const double* t, const double* way, double length, bool second, std::size_t threads,
                  double* out) {
  const Piecewise pieces(of.term);
  const std::size_t parts = worth_starting(threads, of.rows, 4096);  // one is asked for after the other
  const std::size_t asked = second ? 2 : 1;
  std::vector<double> found(2 * parts);
  in_parts(of.rows, parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    Batch in;
    double terms[batch], weighted[batch] = {};
    SideBySide sum[2];
    for (std::size_t i = from; i < to; i += batch) {
      const std::size_t count = std::min(to - i, batch);
      fill(of, t, i, 1, count, in);
      for (std::size_t e = 0; e < count; ++e) in.t[e] += length * way[i + e];
      for (std::size_t which = 0; which < asked; ++which) {
        evaluate(of.term, pieces, in, which == 1 ? Ask::curvature : Ask::derivative, terms);
        for (std::size_t e = 0; e < count; ++e) weighted[e] = terms[e] * (which == 1 ? way[i + e] : 1.0) * way[i + e];
        std::fill(weighted + count, weighted + batch, 0.0);
        widest<AddUp>(static_cast<const double*>(weighted), &sum[which]);
      }
    }
    for (std::size_t which = 0; which < asked; ++which) found[2 * part + which] = sum[which].get();
  });
  for (std::size_t which = 0; which < asked; ++which) {
    Sum sum;
    for (std::size_t part = 0; part < parts; ++part) sum.add(found[2 * part + which]);
    out[which] = sum.get();
  }
}

// For piecewise terms of scale 1: there = s_i phi'(t_i; c_i), how far x is away from it, and the room that t has until
// it leaves a corner (corner.hpp).
inline void corners(const Terms& of, const double* x, const double* t, std::size_t threads, double* room, double* away,
                    double* there) {
  const Piecewise pieces(of.term);
  in_parts(of.rows, worth_starting(threads, of.rows * of.columns, 4096),
           [=, &of, &pieces](std::size_t, std::uint32_t from, std::uint32_t to) {
             Batch in;
             double found[batch];
             for (std::size_t at = from * of.columns, end = to * of.columns; at < end; at += batch) {
               const std::size_t count = std::min(end - at, batch);
               fill(of, t, at, 1, count, in);
               widest<EveryTerm<DerivativeOf>>(&pieces, static_cast<const Batch*>(&in), static_cast<double*>(found));
               std::copy(found, found + count, there + at);
               for (std::size_t e = at; e < at + count; ++e) away[e] = std::fabs(x[e] - there[e]);
               widest<EveryTerm<RoomOf>>(&pieces, static_cast<const Batch*>(&in), static_cast<double*>(found));
               std::copy(found, found + count, room + at);
             }
           });
}

// out_k = Fenchel-Young sums of the rows in `which`, with g as in a certificate
inline void fenchel_young(const Terms& of, const double* x, const double* g, const bool* which, double* out) {
  const Piecewise pieces(of.term);
  Batch in;
  double h[batch], dual[batch], product[batch];
  for (std::size_t k = 0; k < of.columns; ++k) {
    out[k] = 0;
    for (std::size_t i = 0; i < of.rows;) {
      double scores[batch];
      std::size_t count = 0;
      for (; i < of.rows && count < batch; ++i) {
        if (!which[i]) continue;
        const std::size_t e = i * of.columns + k;
        in.t[count] = x[e], in.c[count] = of.center(e), in.s[count] = of.weight(i);
        scores[count] = -g[e] / of.term.scale, product[count] = x[e] * g[e];
        ++count;
      }
      evaluate(of.term, pieces, in, Ask::conjugate, h);
      std::copy(scores, scores + count, in.t);
      evaluate(of.term, pieces, in, Ask::value, dual);
      for (std::size_t e = 0; e < count; ++e) out[k] += h[e] + dual[e] + product[e];
    }
  }
}

}  // namespace coordwise
