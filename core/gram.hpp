// Weighted Gram matrices of sparse rows: for few columns, one of them costs less than a few passes of anything else.
#pragma once

#include <algorithm>
#include <system_error>
#include <thread>
#include <vector>

#include "rows.hpp"

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
  const std::size_t m = rows.width(), count = rows.count();
  threads = std::max<std::size_t>(1, std::min(threads, count / 1024 + 1));
  std::fill(out, out + m * m, 0.0);
  auto first = [&](std::size_t t) { return static_cast<std::uint32_t>(count * t / threads); };
  std::vector<std::vector<double>> parts(threads - 1);
  std::vector<std::thread> others;
  others.reserve(threads);
  std::size_t started = 1;
  try {
    for (; started < threads; ++started) {
      std::vector<double>& part = parts[started - 1];
      part.assign(m * m, 0.0);
      others.emplace_back([&, t = started] { add_gram(rows, weights, first(t), first(t + 1), parts[t - 1].data()); });
    }
  } catch (const std::system_error&) {  // no more threads to be had: the calling one does the rest
  }
  add_gram(rows, weights, first(0), first(1), out);
  for (std::size_t t = started; t < threads; ++t) add_gram(rows, weights, first(t), first(t + 1), out);
  for (std::thread& thread : others) thread.join();
  for (std::size_t t = 1; t < started; ++t) {
    for (std::size_t e = 0; e < m * m; ++e) out[e] += parts[t - 1][e];
  }
  for (std::size_t j = 0; j < m; ++j) {
    for (std::size_t k = j + 1; k < m; ++k) out[k * m + j] = out[j * m + k] += out[k * m + j];
  }
}

}  // namespace coordwise
