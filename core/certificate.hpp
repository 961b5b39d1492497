// Fenchel-Young sums: how far a point is from optimal, term by term.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine.hpp"
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
// coordinate if it is not null.  Stretches of coordinates are summed up one by one, whoever does it, so that the result
// does not depend on the number of threads.
template <int K, class Row, class At, class Center, class Weight>
void certify(std::uint32_t count, const Term& term, const double* omega, std::size_t stride, std::size_t threads,
             Row row, At at, Center center, Weight weight, Certificate* out, double* all_g = nullptr) {
  constexpr std::size_t stretch = 2048;
  const double inverse = 1 / term.scale;
  const std::size_t stretches = (count + stretch - 1) / stretch;
  std::vector<Certificate> found(stretches * K);
  auto fill = [&](std::uint32_t from, std::uint32_t to, Certificate* sums) {
    double g[K] = {};
    for (std::uint32_t i = from; i < to; ++i) {
      if (omega) stride == 1 ? dot<K, 1>(row(i), omega, 1, g) : dot<K>(row(i), omega, stride, g);
      const double s = weight(i);
      for (std::size_t k = 0; k < K; ++k) {
        const double x = at(i, k), c = center(i, k);
        const double h = term.conjugate(x, c, s);
        const double dual = term.value(-g[k] * inverse, c, s);
        const double r = g[k] + term.conjugate_gradient(x, c, s);
        Certificate& sum = sums[k];
        sum.value += h;
        sum.conjugate += dual;
        sum.fenchel_young += std::max(h + dual + x * g[k], 0.0);
        sum.gradient2 += r * r;
        if (all_g) all_g[i * stride + k] = g[k];
        sum.lowest = std::min(sum.lowest, g[k]), sum.highest = std::max(sum.highest, g[k]);
      }
    }
  };
  in_parts(stretches, worth_starting(threads, stretches, 2), [&](std::size_t, std::uint32_t from, std::uint32_t to) {
    for (std::size_t part = from; part < to; ++part) {
      const std::size_t first = part * stretch, last = std::min<std::size_t>(first + stretch, count);
      Certificate sums[K];  // in registers
      fill(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last), sums);
      std::copy(sums, sums + K, &found[part * K]);
    }
  });
  std::fill(out, out + K, Certificate{});
  for (std::size_t part = 0; part < stretches; ++part) {
    for (std::size_t k = 0; k < K; ++k) add(out[k], found[part * K + k]);
  }
}

}  // namespace coordwise
