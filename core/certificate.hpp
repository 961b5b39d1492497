// Fenchel-Young sums: how far a point is from optimal, term by term.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine.hpp"
#include "products.hpp"
#include "rows.hpp"

namespace coordwise {

// The sums for K columns of a point.  `row(i)` is b_i, `at(i, k)` is coordinate (i, k) of the point, `center(i, k)` and
// `weight(i)` belong to its term; omega has `stride` doubles per image entry (null: zeros), and so has all_g per
// coordinate if it is not null.
template <int K, class Row, class At, class Center, class Weight>
void certify(std::uint32_t count, const Term& term, const double* omega, std::size_t stride, Row row, At at,
             Center center, Weight weight, Certificate* out, double* all_g = nullptr) {
  Certificate sums[K];
  double g[K] = {};
  const double inverse = 1 / term.scale;
  for (std::uint32_t i = 0; i < count; ++i) {
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
  std::copy(sums, sums + K, out);
}

}  // namespace coordwise
