// Zeroed memory on a cache-line boundary, in large pages where the system offers them: coordinates are visited in
// random order, and with small pages every visit would also miss the address-translation cache.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace coordwise {

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    const std::size_t large = std::size_t(1) << 21;
    const std::size_t bytes = count * sizeof(T);
    const std::size_t align = bytes >= 4 * large ? large : 64;  // less is not worth the rounding
    const std::size_t whole = bytes ? (bytes + align - 1) / align * align : align;
    align_ = align;
    data_ = static_cast<T*>(::operator new(whole, std::align_val_t(align)));
#if defined(__linux__)
    if (align == large) madvise(data_, whole, MADV_HUGEPAGE);
#endif
    std::memset(static_cast<void*>(data_), 0, whole);
  }
  ~Buffer() { ::operator delete(data_, std::align_val_t(align_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + count_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + count_; }

 private:
  std::size_t count_, align_;
  T* data_;
};

}  // namespace coordwise
