// Weighted Gram matrices of dense rows, by tiles that stay in registers.
//
// BLAS is made for large matrices: with some dozen columns it is slower on one core, and does not use others.
// Here blocks of rows are copied into panels of eight columns, once as they are and once weighted; then every tile of
// the triangle is summed up over the rows of the block.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "products.hpp"

namespace coordwise {

constexpr std::size_t panel = 8;        // columns that are summed up side by side
constexpr std::size_t block_rows = 64;  // of a block; two of its panels are less than half of a first-level cache

// sum (panel x panel, rows of it `stride` apart) += sum_r left_r right_r', the block's rows r; T rows of it at a time
template <int T>
COORDWISE_INLINE void add_tile(const double* left, const double* right, std::size_t stride, double* sum) {
  for (std::size_t first = 0; first < panel; first += T) {
    Lanes<panel> held[T];
    for (int t = 0; t < T; ++t) held[t] = Lanes<panel>::load(sum + (first + t) * stride);
    for (std::size_t r = 0; r < block_rows; ++r) {
      const Lanes<panel> line = Lanes<panel>::load(right + r * panel);
      for (int t = 0; t < T; ++t) held[t].add(left[r * panel + first + t], line);
    }
    for (int t = 0; t < T; ++t) held[t].store(sum + (first + t) * stride);
  }
}

// The tiles on and above the diagonal; `stride` columns in all.
template <int T>
COORDWISE_INLINE void add_tiles(const double* plain, const double* weighted, std::size_t stride, double* sum) {
  for (std::size_t k = 0; k < stride; k += panel) {
    for (std::size_t j = 0; j <= k; j += panel) {
      add_tile<T>(plain + j * block_rows, weighted + k * block_rows, stride, sum + j * stride + k);
    }
  }
}

#if COORDWISE_DISPATCH
__attribute__((target("avx2,fma"))) inline void add_tiles_avx2(const double* plain, const double* weighted,
                                                               std::size_t stride, double* sum) {
  add_tiles<4>(plain, weighted, stride, sum);
}
__attribute__((target("avx2,fma,avx512f,avx512vl"))) inline void add_tiles_avx512(const double* plain,
                                                                                  const double* weighted,
                                                                                  std::size_t stride, double* sum) {
  add_tiles<8>(plain, weighted, stride, sum);
}
#endif

inline void add_block(const double* plain, const double* weighted, std::size_t stride, double* sum) {
#if COORDWISE_DISPATCH
  if (has_avx512) return add_tiles_avx512(plain, weighted, stride, sum);
  if (has_avx2) return add_tiles_avx2(plain, weighted, stride, sum);
#endif
  add_tiles<COORDWISE_DISPATCH ? 2 : 4>(plain, weighted, stride, sum);  // what registers hold without AVX, or elsewhere
}

// What one thread needs for M columns.
struct Tiles {
  explicit Tiles(std::size_t M)
      : stride((M + panel - 1) / panel * panel),
        plain(block_rows * stride),
        weighted(block_rows * stride),
        sum(stride * stride) {}
  std::size_t stride;
  std::vector<double> plain, weighted, sum;
};

// The tiles on and above the diagonal of sum_i weight_i c_i c_i' over the rows from .. to - 1, c_i = (b_i, beside_i),
// added to tiles.sum.
template <class Rows>
void add_dense_gram(const Rows& rows, const double* weights, const double* beside, std::size_t extra,
                    std::uint32_t from, std::uint32_t to, Tiles& tiles) {
  const std::size_t m = rows.width(), M = m + extra;
  auto& [stride, plain, weighted, sum] = tiles;
  std::size_t r = 0;
  auto write = [&](std::size_t j, double value, double weight) {
    const std::size_t at = j / panel * (panel * block_rows) + r * panel + j % panel;
    plain[at] = value, weighted[at] = weight * value;
  };
  for (std::uint32_t i = from; i < to; ++i) {
    const double weight = weights[i];
    if (weight != 0) {
      const auto row = rows[i];
      std::size_t j = 0;
      for (; j + panel <= m; j += panel) {  // whole panels, vectorised
        double* p = plain.data() + j * block_rows + r * panel;
        double* w = weighted.data() + j * block_rows + r * panel;
        for (std::size_t e = 0; e < panel; ++e) p[e] = row.value(j + e);
        for (std::size_t e = 0; e < panel; ++e) w[e] = weight * row.value(j + e);
      }
      for (; j < m; ++j) write(j, row.value(j), weight);
      for (std::size_t k = 0; k < extra; ++k) write(m + k, beside[i * extra + k], weight);
      ++r;
    }
    if (r == block_rows || (i + 1 == to && r > 0)) {
      for (; r < block_rows; ++r) {
        for (std::size_t j = 0; j < M; ++j) write(j, 0.0, 0.0);
      }
      add_block(plain.data(), weighted.data(), stride, sum.data());
      r = 0;
    }
  }
}

}  // namespace coordwise
