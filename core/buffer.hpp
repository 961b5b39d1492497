// Zeroed memory.
#pragma once

#include <cstddef>
#include <cstring>

#include "pool.hpp"

namespace coordwise {

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count), piece_(bytes_of<T>(count)) {
    if (count > 0) std::memset(piece_.data(), 0, count * sizeof(T));
  }

  T* data() { return static_cast<T*>(piece_.data()); }
  const T* data() const { return static_cast<const T*>(piece_.data()); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + count_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + count_; }

 private:
  std::size_t count_;
  Piece piece_;
};

}  // namespace coordwise
