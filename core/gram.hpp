// Weighted Gram matrices: for few columns, one of them costs less than a few passes of anything else.
#pragma once

#include <algorithm>
#include <vector>

#include "rows.hpp"
#include "threads.hpp"
#include "tiles.hpp"

namespace coordwise {

// The part of sum_i weight_i c_i c_i' over the rows from .. to - 1, c_i = (b_i, beside_i), that one triangle and the
// diagonal make up, added to out (M x M, M = m + extra): products of two entries stand above or below the diagonal, as
// the row has them in order.
template <class Rows>
void add_sparse_gram(const Rows& rows, const double* weights, const double* beside, std::size_t extra,
                     std::uint32_t from, std::uint32_t to, double* out) {
  const std::size_t m = rows.width(), M = m + extra;
  for (std::uint32_t i = from; i < to; ++i) {
    const double weight = weights[i];
    if (weight == 0) continue;
    const auto row = rows[i];
    const double* more = beside + i * extra;
    std::size_t s = 0;
    for (; s + 2 <= row.length; s += 2) {  // two lines at once: every entry is read half as often
      const double a = weight * row.value(s), b = weight * row.value(s + 1);
      double *first = out + row.at(s) * M, *second = out + row.at(s + 1) * M;
      first[row.at(s)] += a * row.value(s);
      for (std::size_t t = s + 1; t < row.length; ++t) {
        first[row.at(t)] += a * row.value(t);
        second[row.at(t)] += b * row.value(t);
      }
      for (std::size_t k = 0; k < extra; ++k) first[m + k] += a * more[k], second[m + k] += b * more[k];
    }
    if (s < row.length) {
      const double a = weight * row.value(s);
      double* line = out + row.at(s) * M;
      line[row.at(s)] += a * row.value(s);
      for (std::size_t k = 0; k < extra; ++k) line[m + k] += a * more[k];
    }
    for (std::size_t j = 0; j < extra; ++j) {
      for (std::size_t k = j; k < extra; ++k) out[(m + j) * M + m + k] += weight * more[j] * more[k];
    }
  }
}

// Adds up what stands above and below the diagonal of a matrix (M x M), and puts it on both sides; by tiles, since a
// column that is walked down by itself has another cache line for every entry.
inline void fold_over(double* out, std::size_t M) {
  constexpr std::size_t tile = 32;
  for (std::size_t top = 0; top < M; top += tile) {
    for (std::size_t left = top; left < M; left += tile) {
      for (std::size_t j = top; j < std::min(top + tile, M); ++j) {
        for (std::size_t k = std::max(left, j + 1); k < std::min(left + tile, M); ++k) {
          out[k * M + j] = out[j * M + k] += out[k * M + j];
        }
      }
    }
  }
}

// out (M x M) = sum_i weight_i c_i c_i', c_i = (b_i, beside_i), with as many threads as asked for; each has a matrix of
// its own.
template <class Rows>
void gram(const Rows& rows, const double* weights, const double* beside, std::size_t extra, std::size_t threads,
          double* out) {
  const std::size_t M = rows.width() + extra, parts = worth_starting(threads, rows.count(), 1024);
  std::fill(out, out + M * M, 0.0);
  if constexpr (Rows::sparse) {
    std::vector<std::vector<double>> others(parts - 1);
    for (auto& other : others) other.assign(M * M, 0.0);
    in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
      add_sparse_gram(rows, weights, beside, extra, from, to, part == 0 ? out : others[part - 1].data());
    });
    for (const auto& other : others) {
      for (std::size_t e = 0; e < M * M; ++e) out[e] += other[e];
    }
    fold_over(out, M);
  } else {
    std::vector<Tiles> tiles(parts, Tiles(M));
    in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
      add_dense_gram(rows, weights, beside, extra, from, to, tiles[part]);
    });
    for (const Tiles& part : tiles) {
      for (std::size_t j = 0; j < M; ++j) {
        for (std::size_t k = j; k < M; ++k) out[j * M + k] += part.sum[j * part.stride + k];
      }
    }
    fold_over(out, M);  // nothing stands below
  }
}

}  // namespace coordwise
