// Some columns of a matrix that is stored by rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rows.hpp"

namespace coordwise {

// Entries of all b_i gathered by place: number[j] is the new number of place j, negative if it is left out.
struct Columns {
  std::vector<double> values;
  std::vector<std::int32_t> rows;  // in order within a column
  std::vector<std::int32_t> starts;

  template <class Rows>
  Columns(const Rows& from, const std::int32_t* number, std::size_t count) : starts(count + 1) {
    struct Entry {
      double value;
      std::int32_t number, row;
    };
    std::vector<Entry> kept, here;
    for (std::uint32_t i = 0; i < from.count(); ++i) {
      const auto row = from[i];
      here.resize(std::max<std::size_t>(here.size(), row.length + 1));
      std::size_t found = 0;
      for (std::size_t t = 0; t < row.length; ++t) {  // without a branch: which ones are kept is hard to predict
        const std::int32_t k = number[row.at(t)];
        here[found] = {row.value(t), k, static_cast<std::int32_t>(i)};
        found += k >= 0;
      }
      kept.insert(kept.end(), here.begin(), here.begin() + static_cast<std::ptrdiff_t>(found));
    }
    for (const Entry& entry : kept) ++starts[entry.number + 1];
    for (std::size_t k = 0; k < count; ++k) starts[k + 1] += starts[k];
    values.resize(kept.size()), rows.resize(kept.size());
    std::vector<std::int32_t> next(starts.begin(), starts.end() - 1);
    for (const Entry& entry : kept) {
      const std::int32_t to = next[entry.number]++;
      values[to] = entry.value, rows[to] = entry.row;
    }
  }
};

}  // namespace coordwise
