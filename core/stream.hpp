// The random stream.  Draw number k of seed s depends on (s, k) alone, so a run may be cut into blocks anywhere, looked
// ahead of, or repeated in NumPy (coordwise/sampling.py) with the same indices.
//
//   word(k) = splitmix64 of s + (k + 1) * 0x9e3779b97f4a7c15
//   weighted draw:  word * N = cell * 2^64 + fraction;  the index is `cell` if the upper 32 bits of the fraction are
//                   below the cell's threshold, else the cell's alias (Walker's alias method)
//   permutation:    epoch e uses draws eN .. eN + N - 1; position j swaps with j + floor(word * (N - j) / 2^64); of
//                   some members only, N is their number
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace coordwise {

inline std::uint64_t word(std::uint64_t seed, std::uint64_t k) {
  std::uint64_t z = seed + (k + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Upper 64 bits of word * n, n < 2^32.
inline std::uint32_t scaled(std::uint64_t w, std::uint64_t n) {
  const std::uint64_t low = (w & 0xffffffffULL) * n;
  return static_cast<std::uint32_t>(((w >> 32) * n + (low >> 32)) >> 32);
}

struct AliasCell {
  std::uint32_t threshold, alias;
};

class IndexStream {
 public:
  // Non-empty cells: weighted draws.  Empty: random permutations of the members, a fresh one each time all were drawn;
  // no members stand for 0..n-1.
  IndexStream(std::uint64_t seed, std::uint32_t n, std::vector<AliasCell> cells,
              std::vector<std::uint32_t> members = {})
      : seed_(seed),
        n_(members.empty() ? n : static_cast<std::uint32_t>(members.size())),
        cells_(std::make_shared<std::vector<AliasCell>>(std::move(cells))),
        members_(std::make_shared<std::vector<std::uint32_t>>(std::move(members))) {
    if (cells_->empty()) order_.resize(n_);
  }

  // The place of the next draw: draws before it are left out.
  void seek(std::uint64_t place) {
    if (!order_.empty() && place % n_ != 0) {  // permutations are made at their beginning
      next_ = place - place % n_;
      permuted();
    }
    next_ = place;
  }

  // The next `count` indices.
  void draw(std::uint32_t* out, std::size_t count) {
    for (std::size_t t = 0; t < count; ++t, ++next_) out[t] = order_.empty() ? weighted() : permuted();
  }

 private:
  std::uint32_t weighted() const {
    const std::uint64_t w = word(seed_, next_);
    const std::uint32_t cell = scaled(w, n_);
    const AliasCell& c = (*cells_)[cell];
    return static_cast<std::uint32_t>((w * n_) >> 32) < c.threshold ? cell : c.alias;
  }

  std::uint32_t permuted() {
    const std::uint64_t place = next_ % n_;
    if (place == 0) {
      if (members_->empty()) {
        std::iota(order_.begin(), order_.end(), 0u);
      } else {
        order_ = *members_;
      }
      for (std::uint32_t j = 0; j + 1 < n_; ++j) {
        std::swap(order_[j], order_[j + scaled(word(seed_, next_ + j), n_ - j)]);
      }
    }
    return order_[place];
  }

  std::uint64_t seed_, next_ = 0;
  std::uint32_t n_;
  std::shared_ptr<const std::vector<AliasCell>> cells_;  // copies of a stream share the tables
  std::shared_ptr<const std::vector<std::uint32_t>> members_;
  std::vector<std::uint32_t> order_;
};

}  // namespace coordwise
