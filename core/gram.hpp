// Weighted Gram matrices: for few columns, one of them costs less than a few passes of anything else.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "buffer.hpp"
#include "rows.hpp"
#include "threads.hpp"
#include "tiles.hpp"

namespace coordwise {

// What the entries s .. s + L - 1 of a row and those after them add to L lines of the matrix at once: every entry is
// read once for all of these.
template <int L, class Slice>
COORDWISE_INLINE void add_lines(const Slice& row, std::size_t s, double weight, const double* more, std::size_t extra,
                                std::size_t m, double* out) {
  double by[L], *line[L];
  for (int l = 0; l < L; ++l) {
    by[l] = weight * row.value(s + l);
    line[l] = out + row.at(s + l) * (m + extra);
    for (int k = 0; k <= l; ++k) line[k][row.at(s + l)] += by[k] * row.value(s + l);
  }
  for (std::size_t t = s + L; t < row.length; ++t) {
    const std::size_t to = row.at(t);
    const double value = row.value(t);
    for (int l = 0; l < L; ++l) line[l][to] += by[l] * value;
  }
  for (std::size_t k = 0; k < extra; ++k) {
    for (int l = 0; l < L; ++l) line[l][m + k] += by[l] * more[k];
  }
}

// Rows of a smaller weight than `little` are left out of a Gram matrix; what its diagonal loses by that is added to
// `lost` (M), if that is given.
struct LeftOut {
  double little = 0;
  double* lost = nullptr;
};

// The part of sum_i weight_i c_i c_i' over the rows from .. to - 1, c_i = (b_i, beside_i), that one triangle and the
// diagonal make up, added to out (M x M, M = m + extra): products of two entries stand above or below the diagonal, as
// the row has them in order.
template <class Rows>
void add_sparse_gram(const Rows& rows, const double* weights, const double* beside, std::size_t extra,
                     std::uint32_t from, std::uint32_t to, LeftOut left_out, double* out) {
  const std::size_t m = rows.width(), M = m + extra;
  for (std::uint32_t i = from; i < to; ++i) {
    const double weight = weights[i];
    if (weight == 0) continue;
    const auto row = rows[i];
    const double* more = beside + i * extra;
    if (left_out.lost != nullptr && weight < left_out.little) {
      for (std::size_t t = 0; t < row.length; ++t) left_out.lost[row.at(t)] += weight * row.value(t) * row.value(t);
      for (std::size_t k = 0; k < extra; ++k) left_out.lost[m + k] += weight * more[k] * more[k];
      continue;
    }
    std::size_t s = 0;
    for (; s + 4 <= row.length; s += 4) add_lines<4>(row, s, weight, more, extra, m, out);
    for (; s + 2 <= row.length; s += 2) add_lines<2>(row, s, weight, more, extra, m, out);
    for (; s < row.length; ++s) add_lines<1>(row, s, weight, more, extra, m, out);
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
// its own.  Dense rows are all taken.
template <class Rows>
void gram(const Rows& rows, const double* weights, const double* beside, std::size_t extra, std::size_t threads,
          LeftOut left_out, double* out) {
  const std::size_t M = rows.width() + extra, parts = worth_starting(threads, rows.count(), 1024);
  std::fill(out, out + M * M, 0.0);
  if (left_out.lost != nullptr) std::fill(left_out.lost, left_out.lost + M, 0.0);
  if constexpr (Rows::sparse) {
    const std::size_t size = M * M + (left_out.lost != nullptr ? M : 0);
    std::deque<Buffer<double>> others;
    while (others.size() + 1 < parts) others.emplace_back(size);
    in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
      double* own = part == 0 ? out : others[part - 1].data();
      LeftOut of_part = left_out;
      if (part > 0 && left_out.lost != nullptr) of_part.lost = own + M * M;
      add_sparse_gram(rows, weights, beside, extra, from, to, of_part, own);
    });
    for (const auto& other : others) {
      for (std::size_t e = 0; e < M * M; ++e) out[e] += other[e];
      for (std::size_t e = M * M; e < size; ++e) left_out.lost[e - M * M] += other[e];
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
