// The matrix B seen by coordinate: b_i contiguous.  Sparse or dense, any precision, through the same few verbs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simd.hpp"

namespace coordwise {

// Entries of one b_i: `value(t)` sits at image entry `at(t)`.
template <class V, class I>
struct SparseSlice {
  static constexpr bool dense = false;
  const V* values;
  const I* places;
  std::uint32_t length;
  double value(std::size_t t) const { return static_cast<double>(values[t]); }
  std::size_t at(std::size_t t) const { return static_cast<std::size_t>(places[t]); }
};

template <class V>
struct DenseSlice {
  static constexpr bool dense = true;
  const V* values;
  std::uint32_t length;
  double value(std::size_t t) const { return static_cast<double>(values[t]); }
  std::size_t at(std::size_t t) const { return t; }
};

COORDWISE_INLINE void prefetch_range(const void* from, std::size_t bytes) {
  const char* p = static_cast<const char*>(from);
  for (std::size_t o = 0; o < bytes; o += 64) prefetch(p + o);
}

template <class V, class I>
class SparseRows {
 public:
  using Slice = SparseSlice<V, I>;
  static constexpr bool sparse = true;
  static constexpr bool packs = sizeof(I) == 4;  // whether a kernel may pack the rows (see store.hpp)

  SparseRows(const V* values, const I* places, const I* starts, std::uint32_t count, std::size_t width)
      : values_(values), places_(places), starts_(starts), count_(count), width_(width) {}

  std::uint32_t count() const { return count_; }
  std::size_t width() const { return width_; }
  std::int64_t start(std::uint32_t i) const { return static_cast<std::int64_t>(starts_[i]); }
  std::uint32_t length(std::uint32_t i) const { return static_cast<std::uint32_t>(starts_[i + 1] - starts_[i]); }
  Slice operator[](std::uint32_t i) const { return slice(start(i), length(i)); }
  Slice slice(std::int64_t start, std::uint32_t length) const { return {values_ + start, places_ + start, length}; }
  COORDWISE_INLINE void prefetch_slice(std::int64_t start, std::uint32_t length) const {
    prefetch_range(places_ + start, length * sizeof(I));
    prefetch_range(values_ + start, length * sizeof(V));
  }

 private:
  const V* values_;
  const I* places_;
  const I* starts_;
  std::uint32_t count_;
  std::size_t width_;
};

template <class V>
class DenseRows {
 public:
  using Slice = DenseSlice<V>;
  static constexpr bool sparse = false, packs = false;

  DenseRows(const V* values, std::uint32_t count, std::size_t width) : values_(values), count_(count), width_(width) {}

  std::uint32_t count() const { return count_; }
  std::size_t width() const { return width_; }
  std::int64_t start(std::uint32_t i) const { return static_cast<std::int64_t>(i * width_); }
  std::uint32_t length(std::uint32_t) const { return static_cast<std::uint32_t>(width_); }
  Slice operator[](std::uint32_t i) const { return slice(start(i), length(i)); }
  Slice slice(std::int64_t start, std::uint32_t length) const { return {values_ + start, length}; }
  // The hardware follows a long contiguous run by itself; it only needs to be told where it begins.
  COORDWISE_INLINE void prefetch_slice(std::int64_t start, std::uint32_t length) const {
    prefetch_range(values_ + start, length * sizeof(V) < 256 ? length * sizeof(V) : 256);
  }

 private:
  const V* values_;
  std::uint32_t count_;
  std::size_t width_;
};

// How long rows are, where that is known of all; 0 elsewhere.
template <class Rows>
std::size_t entries_hint(const Rows& rows) {
  return Rows::sparse ? 0 : rows.width();
}

}  // namespace coordwise
