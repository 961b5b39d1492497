// Fenchel-Young sums: how far a point is from optimal, term by term.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "batch.hpp"
#include "engine.hpp"
#include "evaluate.hpp"
#include "products.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace coordwise {

// What coordinates of one stretch add to the sums of another.
inline void add(Certificate& sum, const Certificate& more) {
  sum.value += more.value, sum.conjugate += more.conjugate;
  sum.fenchel_young += more.fenchel_young, sum.gradient2 += more.gradient2;
  sum.lowest = std::min(sum.lowest, more.lowest), sum.highest = std::max(sum.highest, more.highest);
}

// The sums for K columns of a point.  `row(i)` is b_i, `at(i, k)` is coordinate (i, k) of the point, `center(i, k)` and
// `weight(i)` belong to its term; omega has `stride` doubles per image entry (null: zeros), and so has all_g per
// coordinate if it is not null.  Stretches of coordinates, shorter for long rows (of `entries` each), are summed up one
// by one, whoever does it, so that the result does not depend on the number of threads.
template <int K, class Row, class At, class Center, class Weight>
void certify(std::uint32_t count, std::size_t entries, const Term& term, const double* omega, std::size_t stride,
             std::size_t threads, Row row, At at, Center center, Weight weight, Certificate* out,
             double* all_g = nullptr) {
  const std::size_t stretch = entries > 512 ? batch : 2048;
  const double inverse = 1 / term.scale;
  const std::size_t stretches = (count + stretch - 1) / stretch;
  std::vector<Certificate> found(stretches * K);
  const Piecewise pieces(term);
  auto fill = [&](std::size_t from, std::size_t count, Certificate* sums) {
    Batch in;
    double g[batch * K] = {}, x[batch], h[batch], dual[batch];
    for (std::size_t e = 0; e < count && omega; ++e) {
      const auto i = static_cast<std::uint32_t>(from + e);
      stride == 1 ? dot<K, 1>(row(i), omega, 1, g + e * K) : dot<K>(row(i), omega, stride, g + e * K);
    }
    for (std::size_t k = 0; k < K; ++k) {
      for (std::size_t e = 0; e < count; ++e) {
        const auto i = static_cast<std::uint32_t>(from + e);
        in.t[e] = x[e] = at(i, k), in.c[e] = center(i, k), in.s[e] = weight(i);
      }
      evaluate(term, pieces, in, Ask::conjugate, h);
      for (std::size_t e = 0; e < count; ++e) in.t[e] = -g[e * K + k] * inverse;
      evaluate(term, pieces, in, Ask::value, dual);
      Certificate sum = sums[k];
      for (std::size_t e = 0; e < count; ++e) {
        const double slope = g[e * K + k], r = slope + term.conjugate_gradient(x[e], in.c[e], in.s[e]);
        sum.value += h[e];
        sum.conjugate += dual[e];
        sum.fenchel_young += std::max(h[e] + dual[e] + x[e] * slope, 0.0);
        sum.gradient2 += r * r;
        if (all_g) all_g[(from + e) * stride + k] = slope;
        sum.lowest = std::min(sum.lowest, slope), sum.highest = std::max(sum.highest, slope);
      }
      sums[k] = sum;
    }
  };
  in_turns(stretches, worth_starting(threads, stretches, 2), [&](std::size_t part) {
    const std::size_t first = part * stretch, last = std::min<std::size_t>(first + stretch, count);
    for (std::size_t i = first; i < last; i += batch) fill(i, std::min(last - i, batch), &found[part * K]);
  });
  std::fill(out, out + K, Certificate{});
  for (std::size_t part = 0; part < stretches; ++part) {
    for (std::size_t k = 0; k < K; ++k) add(out[k], found[part * K + k]);
  }
}

}  // namespace coordwise
