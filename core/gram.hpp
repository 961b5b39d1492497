// Weighted Gram matrices of sparse rows: for few columns, one of them costs less than a few passes of anything else.
#pragma once

#include <algorithm>
#include <vector>

#include "rows.hpp"
#include "threads.hpp"

namespace coordwise {

// The part of sum_i weight_i b_i b_i' over the rows from .. to - 1 that one triangle and the diagonal make up, added to
// out (m x m): products of two entries stand above or below the diagonal, as the row has them in order.
template <class Rows>
void add_gram(const Rows& rows, const double* weights, std::uint32_t from, std::uint32_t to, double* out) {
  const std::size_t m = rows.width();
  for (std::uint32_t i = from; i < to; ++i) {
    const double weight = weights[i];
    if (weight == 0) continue;
    const auto row = rows[i];
    for (std::size_t s = 0; s < row.length; ++s) {
      const double a = weight * row.value(s);
      double* line = out + row.at(s) * m;
      for (std::size_t t = s; t < row.length; ++t) line[row.at(t)] += a * row.value(t);
    }
  }
}

// out (m x m) = sum_i weight_i b_i b_i', with as many threads as asked for; each has a matrix of its own.
template <class Rows>
void gram(const Rows& rows, const double* weights, std::size_t threads, double* out) {
  const std::size_t m = rows.width(), parts = worth_starting(threads, rows.count(), 1024);
  std::fill(out, out + m * m, 0.0);
  std::vector<std::vector<double>> others(parts - 1);
  for (auto& other : others) other.assign(m * m, 0.0);
  in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    add_gram(rows, weights, from, to, part == 0 ? out : others[part - 1].data());
  });
  for (const auto& other : others) {
    for (std::size_t e = 0; e < m * m; ++e) out[e] += other[e];
  }
  for (std::size_t j = 0; j < m; ++j) {
    for (std::size_t k = j + 1; k < m; ++k) out[k * m + j] = out[j * m + k] += out[k * m + j];
  }
}

}  // namespace coordwise
