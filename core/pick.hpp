// Some columns of sparse rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "threads.hpp"

namespace coordwise {

// Where the rows begin with some of their columns alone; places_of has the new place of every column, or -1 if it is
// left out.
template <class Rows, class I>
void picked_starts(const Rows& rows, const I* places_of, std::size_t threads, I* starts) {
  const std::size_t parts = worth_starting(threads, rows.count(), 1024);
  in_parts(rows.count(), parts, [&](std::size_t, std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      const auto row = rows[i];
      I kept = 0;
      for (std::size_t t = 0; t < row.length; ++t) kept += places_of[row.at(t)] >= 0;
      starts[i + 1] = kept;
    }
  });
  starts[0] = 0;
  for (std::uint32_t i = 0; i < rows.count(); ++i) starts[i + 1] += starts[i];
}

// The entries themselves, in the order of the rows. Every entry is written and overwritten by the next one unless it
// stays, which is no branch to be guessed; but not in rows whose end is where another thread's entries begin.
template <class Rows, class V, class I>
void pick(const Rows& rows, const I* places_of, const I* starts, std::size_t threads, V* values, I* places) {
  const std::size_t parts = worth_starting(threads, rows.count(), 1024);
  in_parts(rows.count(), parts, [&](std::size_t, std::uint32_t from, std::uint32_t to) {
    const I end = starts[to];
    for (std::uint32_t i = from; i < to && starts[i] < end; ++i) {
      const auto row = rows[i];
      I at = starts[i];
      if (starts[i + 1] < end) {
        for (std::size_t t = 0; t < row.length; ++t) {
          const I place = places_of[row.at(t)];
          values[at] = static_cast<V>(row.value(t)), places[at] = place;
          at += place >= 0;
        }
      } else {
        for (std::size_t t = 0; t < row.length; ++t) {
          const I place = places_of[row.at(t)];
          if (place >= 0) values[at] = static_cast<V>(row.value(t)), places[at] = place, ++at;
        }
      }
    }
  });
}

}  // namespace coordwise
