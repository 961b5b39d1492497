// Where a kernel keeps its coordinates.  Both stores offer the record of coordinate i and the row that belongs to it.
#pragma once

#include <new>
#include <stdexcept>

#include "buffer.hpp"
#include "rows.hpp"

namespace coordwise {

// Records in an array of their own; rows stay where the matrix has them.
template <class Record, class Rows>
class ApartStore {
 public:
  using Slice = typename Rows::Slice;

  explicit ApartStore(const Rows& rows) : rows_(rows), records_(rows.count()) {
    for (std::uint32_t i = 0; i < rows.count(); ++i) {
      records_[i].start = rows.start(i), records_[i].length = rows.length(i);
    }
  }

  Record& operator[](std::uint32_t i) { return records_[i]; }
  const Record& operator[](std::uint32_t i) const { return records_[i]; }
  Slice row(const Record& c) const { return rows_.slice(c.start, c.length); }

  COORDWISE_INLINE void prefetch_far(std::uint32_t i) const { prefetch(&records_[i]); }
  COORDWISE_INLINE void prefetch_near(std::uint32_t i) const {
    rows_.prefetch_slice(records_[i].start, records_[i].length);
  }

 private:
  Rows rows_;
  Buffer<Record> records_;
};

// Every record followed by a copy of its row, values as Value and places as Place: types that hold them exactly and
// need fewer bytes.  A step then fetches a few neighbouring cache lines instead of three distant places.
template <class Value, class Place>
struct Packed {
  template <class Record, class Rows>
  class Store {
   public:
    using Slice = SparseSlice<Value, Place>;

    explicit Store(const Rows& rows) : starts_(rows.count()), units_(total(rows)) {
      std::uint32_t at = 0;
      for (std::uint32_t i = 0; i < rows.count(); ++i) {
        const auto row = rows[i];
        starts_[i] = at;
        unsigned char* to = reinterpret_cast<unsigned char*>(units_.data() + at);
        (new (to) Record())->length = row.length;
        to += sizeof(Record);
        Value* values = reinterpret_cast<Value*>(to);
        Place* places = reinterpret_cast<Place*>(to + row.length * sizeof(Value));
        for (std::uint32_t t = 0; t < row.length; ++t) {
          values[t] = static_cast<Value>(row.values[t]);
          places[t] = static_cast<Place>(row.places[t]);
        }
        at += units_of(row.length);
      }
      usual_ = rows.count() ? units_.size() * sizeof(Unit) / rows.count() : 0;
    }

    Record& operator[](std::uint32_t i) { return *reinterpret_cast<Record*>(units_.data() + starts_[i]); }
    const Record& operator[](std::uint32_t i) const { return const_cast<Store&>(*this)[i]; }
    Slice row(const Record& c) const {
      const unsigned char* from = reinterpret_cast<const unsigned char*>(&c) + sizeof(Record);
      return {reinterpret_cast<const Value*>(from), reinterpret_cast<const Place*>(from + c.length * sizeof(Value)),
              c.length};
    }

    COORDWISE_INLINE void prefetch_far(std::uint32_t i) const { prefetch(&starts_[i]); }
    COORDWISE_INLINE void prefetch_near(std::uint32_t i) const { prefetch_range(units_.data() + starts_[i], usual_); }

   private:
    struct alignas(16) Unit {
      unsigned char bytes[16];
    };

    static std::uint32_t units_of(std::uint32_t length) {
      const std::size_t bytes = sizeof(Record) + length * (sizeof(Value) + sizeof(Place));
      return static_cast<std::uint32_t>((bytes + sizeof(Unit) - 1) / sizeof(Unit));
    }
    // In units; records are found by 32-bit numbers of units.
    static std::size_t total(const Rows& rows) {
      std::size_t units = 0;
      for (std::uint32_t i = 0; i < rows.count(); ++i) units += units_of(rows.length(i));
      if (units > 0xffffffffULL) throw std::length_error("the matrix is too large to be packed");
      return units;
    }

    Buffer<std::uint32_t> starts_;
    Buffer<Unit> units_;
    std::size_t usual_;  // bytes of a record and its row, on average
  };
};

}  // namespace coordwise
