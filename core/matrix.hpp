// A matrix of any supported storage, and what is asked of it outside the loop.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "certificate.hpp"
#include "engine.hpp"
#include "products.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace coordwise {

using AnyRows =
    std::variant<SparseRows<double, std::int32_t>, SparseRows<float, std::int32_t>, SparseRows<double, std::int64_t>,
                 SparseRows<float, std::int64_t>, DenseRows<double>, DenseRows<float>>;

// Defined once per storage, in instances/.
template <class Rows>
std::unique_ptr<Engine> make_engine(const Rows& rows, const Problem& problem, const Plan& plan,
                                    const IndexStream& stream, const Start& start);
template <class Rows>
std::unique_ptr<Engine> make_block_engine(const Rows& rows, const Problem& problem, const Blocks& blocks,
                                          const Plan& plan, const IndexStream& stream, const Start& start);

// For loops over rows: how many are worth a thread.  Those of dense matrices may be long.
constexpr std::size_t rows_each = 8192, entries_each = 1 << 17;
template <class Rows>
std::size_t worth_starting(std::size_t threads, const Rows& rows) {
  const std::size_t each = Rows::sparse ? rows_each : std::min(rows_each, entries_each / (rows.width() + 1) + 1);
  return worth_starting(threads, rows.count(), each);
}

// body(from, to) for stretches of the rows, some of which may have most of the entries, as columns of texts do.
template <class Rows, class Body>
void by_rows(const Rows& rows, std::size_t threads, Body body) {
  const std::size_t parts = worth_starting(threads, rows), count = rows.count();
  const std::size_t stretches = parts == 1 ? 1 : 16 * parts;
  in_turns(stretches, parts, [=](std::size_t k) {
    body(static_cast<std::uint32_t>(count * k / stretches), static_cast<std::uint32_t>(count * (k + 1) / stretches));
  });
}

// out_i = sum_j weight_j b_ij^2
template <class Rows>
void norms2(const Rows& rows, const double* weights, std::size_t threads, double* out) {
  by_rows(rows, threads, [=, &rows](std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t i = from; i < to; ++i) {
      const auto row = rows[i];
#if COORDWISE_STRETCHES
      if constexpr (!Rows::sparse) {
        if (weights == nullptr) {
          by_stretches<DenseDot, 1>(row.values, row.values, std::size_t{row.length}, out + i);
          continue;
        }
      }
#endif
      auto square = [&](std::size_t t) {
        const double a = row.value(t);
        return weights ? weights[row.at(t)] * a * a : a * a;
      };
      double even = 0, odd = 0;  // two sums side by side: one alone would wait for every addition
      std::size_t t = 0;
      for (; t + 2 <= row.length; t += 2) even += square(t), odd += square(t + 1);
      if (t < row.length) even += square(t);
      out[i] = even + odd;
    }
  });
}

// What add(from, to, sum) adds to `size` sums for the rows from `from` to `to`; every thread but one has sums of its
// own, so that a few rows for each are the least.
template <class Rows, class Add>
void add_up(const Rows& rows, std::size_t size, std::size_t threads, double* out, Add add) {
  const std::size_t parts = std::min(worth_starting(threads, rows), std::size_t{rows.count()} / 8 + 1);
  std::vector<std::vector<double>> others(parts - 1);
  for (auto& other : others) other.assign(size, 0.0);
  in_parts(rows.count(), parts, [=, &others](std::size_t part, std::uint32_t from, std::uint32_t to) {
    add(from, to, part == 0 ? out : others[part - 1].data());
  });
  for (const auto& other : others) {
    for (std::size_t e = 0; e < size; ++e) out[e] += other[e];
  }
}

// out_j += sum_i weight_i b_ij^2
template <class Rows>
void squares(const Rows& rows, const double* weights, std::size_t threads, double* out) {
  add_up(rows, rows.width(), threads, out, [=, &rows](std::uint32_t from, std::uint32_t to, double* sum) {
    for (std::uint32_t i = from; i < to; ++i) {
      const auto row = rows[i];
      const double s = weights ? weights[i] : 1.0;
      for (std::size_t t = 0; t < row.length; ++t) {
        const double a = row.value(t);
        sum[row.at(t)] += s * a * a;
      }
    }
  });
}

// out (N x K) = <b_i, vector_k>
template <class Rows>
void dots(const Rows& rows, const double* vectors, std::size_t outputs, std::size_t threads, double* out) {
  by_rows(rows, threads, [=, &rows](std::uint32_t from, std::uint32_t to) {
    by_groups(outputs, [&](auto group, std::size_t first) {
      for (std::uint32_t i = from; i < to; ++i) {
        dot<decltype(group)::width>(rows[i], vectors + first, outputs, out + i * outputs + first);
      }
    });
  });
}

// out (m x K) += sum_i b_i x_ik
template <class Rows>
void combine(const Rows& rows, const double* x, std::size_t outputs, std::size_t threads, double* out) {
  const std::size_t size = rows.width() * outputs;
  add_up(rows, size, threads, out, [=, &rows](std::uint32_t from, std::uint32_t to, double* sum) {
    by_groups(outputs, [&](auto group, std::size_t first) {
      for (std::uint32_t i = from; i < to; ++i) {
        axpy<decltype(group)::width>(rows[i], x + i * outputs + first, outputs, sum + first);
      }
    });
  });
}

// What is wrong with the arrays of a sparse matrix, or empty; `canonical` tells whether every row is strictly ordered.
template <class I>
std::string faults(const I* places, std::size_t entries, const I* starts, std::size_t count, std::size_t width,
                   std::size_t threads, bool& canonical) {
  canonical = true;
  if (starts[0] != 0) return "indptr must begin with 0";
  for (std::size_t i = 0; i < count; ++i) {
    if (starts[i + 1] < starts[i]) return "indptr decreases at position " + std::to_string(i + 1);
  }
  if (static_cast<std::size_t>(starts[count]) > entries) return "indptr ends beyond the stored entries";
  const std::size_t used = static_cast<std::size_t>(starts[count]);
  auto outside = [=](I place) { return place < 0 || static_cast<std::size_t>(place) >= width; };
  struct Found {
    I least = 0, largest = 0;
    std::size_t falls = 0;  // places that are not above the one before, less those that begin a row
  };
  const std::size_t parts = worth_starting(threads, count, rows_each);
  std::vector<Found> found(parts);
  in_parts(count, parts, [=, &found](std::size_t part, std::uint32_t from, std::uint32_t to) {
    Found here;
    const std::size_t first = static_cast<std::size_t>(starts[from]), last = static_cast<std::size_t>(starts[to]);
    for (std::size_t t = first; t < last; ++t) {  // simpler than a question per entry, and vectorised
      here.least = std::min(here.least, places[t]), here.largest = std::max(here.largest, places[t]);
    }
    for (std::size_t t = first + 1; t < last; ++t) here.falls += places[t] <= places[t - 1];
    for (std::size_t i = from; i < to; ++i) {
      const std::size_t t = static_cast<std::size_t>(starts[i]);
      here.falls -= starts[i + 1] > starts[i] && t > first && places[t] <= places[t - 1];
    }
    found[part] = here;
  });
  for (const Found& here : found) {
    canonical &= here.falls == 0;
    if (!outside(here.least) && !outside(here.largest)) continue;
    const std::size_t t = static_cast<std::size_t>(std::find_if(places, places + used, outside) - places);
    return "index " + std::to_string(places[t]) + " at position " + std::to_string(t) + " is outside 0.." +
           std::to_string(width == 0 ? 0 : width - 1);
  }
  return {};
}

// Whether no row of a sparse matrix without faults has two entries at one place, in whatever order they are; not looked
// into (false) if the matrix is so wide that the look costs more than sorting.
template <class I>
bool distinct(const I* places, const I* starts, std::size_t count, std::size_t width, std::size_t threads) {
  const std::size_t most = 4 * static_cast<std::size_t>(starts[count]);  // places in all tables
  if (width > most) return false;
  const std::size_t parts = std::min(worth_starting(threads, count, rows_each), most / std::max<std::size_t>(width, 1));
  std::vector<char> found(parts);
  std::vector<std::uint32_t> tables(parts * width, 0);  // the row, counted from 1, that had an entry there
  in_parts(count, parts, [=, &found, &tables](std::size_t part, std::uint32_t from, std::uint32_t to) {
    std::uint32_t* last = tables.data() + part * width;
    bool all_new = true;
    for (std::uint32_t i = from; i < to && all_new; ++i) {
      for (I t = starts[i]; t < starts[i + 1]; ++t) {
        std::uint32_t& seen = last[static_cast<std::size_t>(places[t])];
        all_new &= seen != i + 1;
        seen = i + 1;
      }
    }
    found[part] = all_new;
  });
  return std::all_of(found.begin(), found.end(), [](char all_new) { return all_new; });
}

// Whether single precision holds every value exactly (counts, indicators, rounded measurements).
inline bool fits_single(const double* values, std::size_t count) {
  for (std::size_t t = 0; t < count; ++t) {
    if (static_cast<double>(static_cast<float>(values[t])) != values[t]) return false;
  }
  return true;
}

// The largest modulus, and the position of the first entry that is not finite, or -1.
template <class V>
std::int64_t survey(const V* values, std::size_t count, double& largest) {
  V most = 0;
  for (std::size_t t = 0; t < count; ++t) {
    if (!std::isfinite(values[t])) return static_cast<std::int64_t>(t);
    most = std::max(most, std::fabs(values[t]));
  }
  largest = static_cast<double>(most);
  return -1;
}

}  // namespace coordwise
