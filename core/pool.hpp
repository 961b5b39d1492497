// Large pieces of memory, kept for the next who asks when they are given back. What comes from the system is cleared
// page by page as it is first written to, and goes back to it at the end of a call: fits that follow one another ask
// for the same sizes, and often take less time for what they do with a piece than the system takes for its pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define COORDWISE_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COORDWISE_SANITIZED
#endif
#endif

namespace coordwise {

struct Block {
  void* data;
  std::size_t bytes;
};

// Blocks that nobody uses, the longest unused first. A process that was forked while somebody was at it finds it locked
// for good, and does without.
class Pool {
 public:
  static Pool& here() {
    static Pool* pool = new Pool;  // never deleted: blocks may be given back while the process ends
    return *pool;
  }

  // The smallest that is large enough, unless it is much larger: no data if there is none.
  Block take(std::size_t bytes) {
    const std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    if (!mine.owns_lock()) return {nullptr, 0};
    std::size_t best = blocks_.size();
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const std::size_t size = blocks_[k].bytes;
      if (size >= bytes && size <= bytes + bytes / 4 && (best == blocks_.size() || size < blocks_[best].bytes))
        best = k;
    }
    return best < blocks_.size() ? without(best) : Block{nullptr, 0};
  }

  // Gives all of them back to the system; whether there were any.
  template <class Release>
  bool clear(Release release) noexcept {
    const std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    if (!mine.owns_lock() || blocks_.empty()) return false;
    while (!blocks_.empty()) release(without(0));
    return true;
  }

  // Whether it is kept; `release` frees those that make room for it.
  template <class Release>
  bool give(const Block& block, Release release) noexcept {
    if (!keeps || block.bytes > most) return false;
    const std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    if (!mine.owns_lock()) return false;
    while (total_ + block.bytes > most || blocks_.size() == slots) release(without(0));
    blocks_.push_back(block);
    total_ += block.bytes;
    return true;
  }

 private:
#if defined(COORDWISE_SANITIZED)
  static constexpr bool keeps = false;  // the sanitizer is to see every use of what was given back
#else
  static constexpr bool keeps = true;
#endif
  static constexpr std::size_t most = std::size_t(1) << 27;  // bytes that are kept
  static constexpr std::size_t slots = 64;

  // The system's library learns from large blocks that are freed, and keeps as much of what is free for others, the
  // arrays of a call among them. Those that are kept here it would not see: one that is never written to will do.
  Pool() {
    blocks_.reserve(slots);
    void* volatile lesson = std::malloc(std::size_t(1) << 24);
    std::free(lesson);
  }

  Block without(std::size_t k) {
    const Block block = blocks_[k];
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(k));
    total_ -= block.bytes;
    return block;
  }

  std::mutex busy_;
  std::vector<Block> blocks_;
  std::size_t total_ = 0;
};

// The bytes of so many T.
template <class T>
std::size_t bytes_of(std::size_t count) {
  if (count > static_cast<std::size_t>(-1) / 4 / sizeof(T)) throw std::bad_alloc();
  return count * sizeof(T);
}

// Memory of at least `bytes`, not cleared, on a cache-line boundary; in large pages where the system offers them and it
// is large: coordinates are visited in random order, and with small pages every visit would also miss the
// address-translation cache.
class Piece {
 public:
  explicit Piece(std::size_t bytes) {
    const std::size_t unit = bytes < pooled ? 64 : bytes < huge ? 4096 : page;
    const std::size_t whole = bytes ? (bytes + unit - 1) / unit * unit : unit;
    if (whole >= pooled && (block_ = Pool::here().take(whole)).data) return;
    void* data = fresh(whole);
    if (data == nullptr && Pool::here().clear(release)) data = fresh(whole);
    if (data == nullptr) throw std::bad_alloc();
    block_ = {data, whole};
  }
  ~Piece() {
    if (block_.bytes < pooled || !Pool::here().give(block_, release)) release(block_);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void* data() const { return block_.data; }

 private:
  static constexpr std::size_t pooled = std::size_t(1) << 17;  // bytes; the system's library keeps less by itself
  static constexpr std::size_t page = std::size_t(1) << 21, huge = 4 * page;  // less is not worth the rounding

  static void* fresh(std::size_t bytes) noexcept {
    return mapped(bytes) ? map(bytes) : ::operator new(bytes, std::align_val_t(64), std::nothrow);
  }
  static void release(const Block& block) noexcept {
    if (mapped(block.bytes)) {
      unmap(block);
    } else {
      ::operator delete(block.data, std::align_val_t(64));
    }
  }

// What is kept is by itself, so that all that is not goes back to the system at once.
#if defined(__linux__) && !defined(COORDWISE_SANITIZED)
  static bool mapped(std::size_t bytes) { return bytes >= pooled; }
  static void* map(std::size_t bytes) noexcept {
    const std::size_t extra = bytes >= huge ? page : 0;
    void* const all = mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return nullptr;
    if (extra == 0) return all;
    char* const from = static_cast<char*>(all);
    const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(all) % page) % page;
    if (before > 0) munmap(from, before);
    if (before < extra) munmap(from + before + bytes, extra - before);
    madvise(from + before, bytes, MADV_HUGEPAGE);
    return from + before;
  }
  static void unmap(const Block& block) noexcept { munmap(block.data, block.bytes); }
#else
  static bool mapped(std::size_t) { return false; }
  static void* map(std::size_t) noexcept { return nullptr; }
  static void unmap(const Block&) noexcept {}
#endif

  Block block_;
};

}  // namespace coordwise
