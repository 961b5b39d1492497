// Sparse rows as columns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd.hpp"
#include "threads.hpp"

namespace coordwise {

// The arrays of the transposed matrix, entries in the order of the rows; every thread counts and writes those of its
// rows.
template <class Rows, class V, class I>
void transpose(const Rows& rows, std::size_t threads, V* values, I* places, I* starts) {
  const std::size_t width = rows.width(), entries = static_cast<std::size_t>(rows.start(rows.count()));
  const std::size_t most = std::max<std::size_t>(entries / std::max<std::size_t>(width, 1), 1);  // counters take memory
  const std::size_t parts = std::min(worth_starting(threads, rows.count(), 1024), most);
  std::vector<std::vector<I>> next(parts, std::vector<I>(width, 0));  // how many entries; then where the next one goes
  in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    I* counts = next[part].data();
    for (std::uint32_t i = from; i < to; ++i) {
      const auto row = rows[i];
      for (std::size_t t = 0; t < row.length; ++t) ++counts[row.at(t)];
    }
  });
  I at = 0;
  for (std::size_t j = 0; j < width; ++j) {
    starts[j] = at;
    for (auto& part : next) {
      const I count = part[j];
      part[j] = at;
      at += count;
    }
  }
  starts[width] = at;
  in_parts(rows.count(), parts, [&](std::size_t part, std::uint32_t from, std::uint32_t to) {
    constexpr std::size_t at_once = 32;  // entries whose places are fetched before they are written
    I* next_of = next[part].data();
    I where[at_once];
    for (std::uint32_t i = from; i < to; ++i) {
      const auto row = rows[i];
      for (std::size_t first = 0; first < row.length; first += at_once) {
        const std::size_t last = std::min<std::size_t>(first + at_once, row.length);
        for (std::size_t t = first; t < last; ++t) {
          const I e = where[t - first] = next_of[row.at(t)]++;
          prefetch_to_write(values + e);
          prefetch_to_write(places + e);
        }
        for (std::size_t t = first; t < last; ++t) {
          values[where[t - first]] = static_cast<V>(row.value(t));
          places[where[t - first]] = static_cast<I>(i);
        }
      }
    }
  });
}

}  // namespace coordwise
