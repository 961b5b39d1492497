// Products of one dense row with one or two images that stand side by side, or with itself: vectors of entries, where
// products.hpp has vectors of images.  Compiled for several instruction sets, the widest of which is chosen when the
// library is loaded.
#pragma once

#include <cstddef>

#include "dispatch.hpp"
#include "simd.hpp"

namespace coordwise {

#if defined(__GNUC__) || defined(__clang__)

#if defined(__clang__)
#define COORDWISE_SHUFFLE(vector, Places, ...) __builtin_shufflevector(vector, vector, __VA_ARGS__)
#else
#define COORDWISE_SHUFFLE(vector, Places, ...) __builtin_shuffle(vector, Places{__VA_ARGS__})
#endif

// n entries of a row or an image, held in registers; `first_twice` and `second_twice` have every entry of one half of
// another stretch twice.  Spelt out for each n, since compilers want to know their vectors when they read a template.
template <int n>
struct Stretch;

#define COORDWISE_UNPACK(...) __VA_ARGS__
#define COORDWISE_STRETCH(n, FIRST, SECOND)                                                      \
  template <>                                                                                    \
  struct Stretch<n> {                                                                            \
    typedef double Doubles __attribute__((vector_size(8 * n), may_alias, aligned(8)));           \
    typedef float Floats __attribute__((vector_size(4 * n), may_alias, aligned(4)));             \
    typedef long long Places __attribute__((vector_size(8 * n)));                                \
    Doubles part;                                                                                \
                                                                                                 \
    COORDWISE_INLINE void load(const double* p) { part = *reinterpret_cast<const Doubles*>(p); } \
    COORDWISE_INLINE void load(const float* p) {                                                 \
      part = __builtin_convertvector(*reinterpret_cast<const Floats*>(p), Doubles);              \
    }                                                                                            \
    COORDWISE_INLINE void store(double* p) const { *reinterpret_cast<Doubles*>(p) = part; }      \
    COORDWISE_INLINE void first_twice(const Stretch& of) {                                       \
      part = COORDWISE_SHUFFLE(of.part, Places, COORDWISE_UNPACK FIRST);                         \
    }                                                                                            \
    COORDWISE_INLINE void second_twice(const Stretch& of) {                                      \
      part = COORDWISE_SHUFFLE(of.part, Places, COORDWISE_UNPACK SECOND);                        \
    }                                                                                            \
  };
COORDWISE_STRETCH(2, (0, 0), (1, 1))
COORDWISE_STRETCH(4, (0, 0, 1, 1), (2, 2, 3, 3))
COORDWISE_STRETCH(8, (0, 0, 1, 1, 2, 2, 3, 3), (4, 4, 5, 5, 6, 6, 7, 7))
#undef COORDWISE_STRETCH
#undef COORDWISE_UNPACK
#undef COORDWISE_SHUFFLE

// Sums of products of W images with n entries of a row, W stretches of n doubles.
template <int W, int n>
struct Sums {
  Stretch<n> part[W] = {};

  template <class V, class U>
  COORDWISE_INLINE void add(const V* values, const U* image) {
    Stretch<n> a, v;
    a.load(values), v.load(image);
    if constexpr (W == 1) {
      part[0].part += a.part * v.part;
    } else {
      Stretch<n> twice;
      twice.first_twice(a);
      part[0].part += twice.part * v.part;
      twice.second_twice(a), v.load(image + n);
      part[1].part += twice.part * v.part;
    }
  }
  COORDWISE_INLINE void add(const Sums& other) {
    for (int q = 0; q < W; ++q) part[q].part += other.part[q].part;
  }
  COORDWISE_INLINE void add_to(double* out) const {
    for (int h = 0; h < W; ++h) {  // entry by entry, in the same order for one image and for two
      for (int e = 0; e < n; ++e) out[e % W] += part[h].part[e];
    }
  }
};

// What is left of a row, less than 2 n entries: in shorter and shorter stretches, so that compilers have no choice in
// how to add it up, whatever precision it has.
template <int W, int n, class V, class U>
COORDWISE_INLINE void add_rest(const V* values, const U* image, std::size_t left, double* out) {
  if constexpr (n >= 2) {
    if (left >= n) {
      Sums<W, n> sums;
      sums.add(values, image);
      sums.add_to(out);
      values += n, image += n * W, left -= n;
    }
    add_rest<W, n / 2>(values, image, left, out);
  } else if (left > 0) {
    for (int q = 0; q < W; ++q) out[q] += static_cast<double>(values[0]) * static_cast<double>(image[q]);
  }
}

// out[q] = sum_t values[t] image[t W + q],  q < W; the image may be the row itself, in whatever precision
template <int W, int n>
struct DenseDot {
  template <class V, class U>
  COORDWISE_INLINE static void run(const V* values, const U* image, std::size_t length, double* out) {
    constexpr int chains = 4;  // several sums side by side: one would wait for every addition
    Sums<W, n> sums[chains];
    std::size_t t = 0;
    for (; t + chains * n <= length; t += chains * n) {
      for (int c = 0; c < chains; ++c) sums[c].add(values + t + c * n, image + (t + c * n) * W);
    }
    for (; t + n <= length; t += n) sums[0].add(values + t, image + t * W);
    for (int c = 1; c < chains; ++c) sums[0].add(sums[c]);
    for (int q = 0; q < W; ++q) out[q] = 0;
    sums[0].add_to(out);
    add_rest<W, n / 2>(values + t, image + t * W, length - t, out);
  }
};

// image[t W + q] += values[t] change[q],  q < W
template <int W, int n>
struct DenseAxpy {
  template <class V>
  COORDWISE_INLINE static void run(const V* values, const double* change, std::size_t length, double* image) {
    const double first = change[0], last = change[W - 1];  // the image might be thought to overlap them
    const std::size_t done = add<n>(values, first, last, length, image);
    rest<n / 2>(values + done, first, last, length - done, image + done * W);
  }

 private:
  // As many stretches of m entries as there are, and how many entries these have.
  template <int m, class V>
  COORDWISE_INLINE static std::size_t add(const V* values, double first, double last, std::size_t length,
                                          double* image) {
    Stretch<m> by, a, v;
    for (int e = 0; e < m; ++e) by.part[e] = e % W == 0 ? first : last;
    std::size_t t = 0;
    for (; t + m <= length; t += m) {
      a.load(values + t);
      for (int half = 0; half < W; ++half) {
        Stretch<m> factor = a;
        if constexpr (W == 2) half == 0 ? factor.first_twice(a) : factor.second_twice(a);
        v.load(image + t * W + half * m);
        v.part += factor.part * by.part;
        v.store(image + t * W + half * m);
      }
    }
    return t;
  }

  template <int m, class V>
  COORDWISE_INLINE static void rest(const V* values, double first, double last, std::size_t left, double* image) {
    if constexpr (m >= 2) {
      const std::size_t done = add<m>(values, first, last, left, image);
      rest<m / 2>(values + done, first, last, left - done, image + done * W);
    } else if (left > 0) {
      for (int q = 0; q < W; ++q) image[q] += static_cast<double>(values[0]) * (q == 0 ? first : last);
    }
  }
};

// Loop<W, n>::run(args...) with vectors as long as there are registers for.
template <template <int, int> class Loop, int W, class... Args>
void by_stretches(Args... args) {
#if COORDWISE_DISPATCH
  if (has_avx512) return run_avx512<Loop<W, 8>>(args...);
  if (has_avx2) return run_avx2<Loop<W, 4>>(args...);
#endif
  Loop<W, 2>::run(args...);
}

#define COORDWISE_STRETCHES 1
#else
#define COORDWISE_STRETCHES 0
#endif

}  // namespace coordwise
