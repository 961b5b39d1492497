// Gram matrices of blocks of coordinates, for the largest eigenvalues that are their smoothness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "matrix.hpp"
#include "products.hpp"
#include "threads.hpp"

namespace coordwise {

// out (count x size x size): out_b = sum_j weight_j c_j c_j', where c_j are the entries at j of the rows members_b1 ..
// members_b,size, for members of count x size.
template <class Rows>
void block_grams(const Rows& rows, const std::uint32_t* members, std::size_t count, std::size_t size,
                 const double* weights, std::size_t threads, double* out) {
  const std::size_t parts = worth_starting(threads, count, 8);
  std::vector<std::vector<double>> spreads(parts, std::vector<double>(rows.width(), 0.0));  // rows with their zeros
  in_parts(count, parts, [=, &rows, &spreads](std::size_t part, std::uint32_t from, std::uint32_t to) {
    std::vector<double>& spread = spreads[part];
    for (std::size_t b = from; b < to; ++b) {
      const std::uint32_t* of = members + b * size;
      double* gram = out + b * size * size;
      for (std::size_t p = 0; p < size; ++p) {
        const auto row = rows[of[p]];
        for (std::size_t t = 0; t < row.length; ++t) {
          spread[row.at(t)] = row.value(t) * (weights ? weights[row.at(t)] : 1.0);
        }
        for (std::size_t q = 0; q <= p; ++q) {
          dot<1, 1>(rows[of[q]], spread.data(), 1, gram + p * size + q);
          gram[q * size + p] = gram[p * size + q];
        }
        for (std::size_t t = 0; t < row.length; ++t) spread[row.at(t)] = 0;
      }
    }
  });
}

}  // namespace coordwise
