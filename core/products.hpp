// Products of one row with an image: W columns from `image` on, `stride` doubles from one image entry to the next.
//
// Up to two columns of a sparse row the latency of the gather sets the time and the baseline instruction set is enough;
// dense rows have vectors of entries there (dense.hpp).  Wider products are bound by arithmetic and instructions, so
// they are also compiled for AVX2 and AVX-512 and chosen when the library is loaded on a processor that has them.
#pragma once

#include <cstddef>

#include "dense.hpp"
#include "dispatch.hpp"
#include "simd.hpp"

namespace coordwise {

// W doubles held in registers, W >= 4.
template <int W>
struct Lanes {
#if defined(__GNUC__) || defined(__clang__)
  typedef double Vector __attribute__((vector_size(W >= 8 ? 64 : 32), may_alias, aligned(8)));
  static constexpr int each = W >= 8 ? 8 : 4;
#else
  using Vector = double;
  static constexpr int each = 1;
#endif
  Vector part[W / each];

  COORDWISE_INLINE static Lanes load(const double* p) {
    Lanes out;
    for (int e = 0; e < W / each; ++e) out.part[e] = *reinterpret_cast<const Vector*>(p + e * each);
    return out;
  }
  COORDWISE_INLINE void store(double* p) const {
    for (int e = 0; e < W / each; ++e) *reinterpret_cast<Vector*>(p + e * each) = part[e];
  }
  COORDWISE_INLINE void add(double a, const Lanes& v) {
    for (int e = 0; e < W / each; ++e) part[e] += a * v.part[e];
  }
};

// The loops below take the stride as a template parameter S where it is known (0: not), which saves a multiplication
// per entry.  Several sums run side by side (`chains`): one alone would wait for the latency of every addition.
template <int W, int S, class Slice>
COORDWISE_INLINE void dot_wide(const Slice& row, const double* image, std::size_t stride, double* out) {
  constexpr std::size_t chains = W >= 16 ? 2 : 4, ahead = 8;
  if (S > 0) stride = S;
  const std::size_t n = row.length;
  Lanes<W> sums[chains] = {};
  std::size_t t = 0;
  for (; t + ahead + chains <= n; t += chains) {
    for (std::size_t c = 0; c < chains; ++c) {
      const double* soon = image + row.at(t + ahead + c) * stride;
      for (int e = 0; e < W; e += 8) prefetch_to_write(soon + e);
      sums[c].add(row.value(t + c), Lanes<W>::load(image + row.at(t + c) * stride));
    }
  }
  for (; t < n; ++t) sums[0].add(row.value(t), Lanes<W>::load(image + row.at(t) * stride));
  for (std::size_t c = 1; c < chains; ++c) sums[0].add(1.0, sums[c]);
  sums[0].store(out);
}

template <int W, int S, class Slice>
COORDWISE_INLINE void axpy_wide(const Slice& row, const double* change, std::size_t stride, double* image) {
  if (S > 0) stride = S;
  const Lanes<W> by = Lanes<W>::load(change);
  for (std::size_t t = 0; t < row.length; ++t) {
    double* to = image + row.at(t) * stride;
    Lanes<W> v = Lanes<W>::load(to);
    v.add(row.value(t), by);
    v.store(to);
  }
}

#if COORDWISE_DISPATCH
template <int W, int S, class Slice>
__attribute__((target("avx2,fma"))) void dot_avx2(const Slice& row, const double* image, std::size_t stride,
                                                  double* out) {
  dot_wide<W, S>(row, image, stride, out);
}
template <int W, int S, class Slice>
__attribute__((target("avx2,fma"))) void axpy_avx2(const Slice& row, const double* change, std::size_t stride,
                                                   double* image) {
  axpy_wide<W, S>(row, change, stride, image);
}
template <int W, int S, class Slice>
__attribute__((target("avx2,fma,avx512f,avx512vl"))) void dot_avx512(const Slice& row, const double* image,
                                                                     std::size_t stride, double* out) {
  dot_wide<W, S>(row, image, stride, out);
}
template <int W, int S, class Slice>
__attribute__((target("avx2,fma,avx512f,avx512vl"))) void axpy_avx512(const Slice& row, const double* change,
                                                                      std::size_t stride, double* image) {
  axpy_wide<W, S>(row, change, stride, image);
}
#endif

// out[q] = sum_t value(t) image[at(t) stride + q],  q < W
template <int W, int S = 0, class Slice>
inline void dot(const Slice& row, const double* image, std::size_t stride, double* out) {
  const std::size_t n = row.length;
  if (S > 0) stride = S;
#if COORDWISE_STRETCHES
  if constexpr (W <= 2 && Slice::dense) {
    if (stride == W) return by_stretches<DenseDot, W>(row.values, image, n, out);
  }
#endif
  if constexpr (W == 1) {
    double a0 = 0, a1 = 0, a2 = 0, a3 = 0;
    std::size_t t = 0;
    for (; t + 4 <= n; t += 4) {
      a0 += row.value(t) * image[row.at(t) * stride];
      a1 += row.value(t + 1) * image[row.at(t + 1) * stride];
      a2 += row.value(t + 2) * image[row.at(t + 2) * stride];
      a3 += row.value(t + 3) * image[row.at(t + 3) * stride];
    }
    for (; t < n; ++t) a0 += row.value(t) * image[row.at(t) * stride];
    out[0] = (a0 + a1) + (a2 + a3);
  } else if constexpr (W == 2) {
    Double2 a0 = both(0), a1 = both(0), a2 = both(0), a3 = both(0);
    std::size_t t = 0;
    for (; t + 4 <= n; t += 4) {
      a0 += both(row.value(t)) * load2(image + row.at(t) * stride);
      a1 += both(row.value(t + 1)) * load2(image + row.at(t + 1) * stride);
      a2 += both(row.value(t + 2)) * load2(image + row.at(t + 2) * stride);
      a3 += both(row.value(t + 3)) * load2(image + row.at(t + 3) * stride);
    }
    for (; t < n; ++t) a0 += both(row.value(t)) * load2(image + row.at(t) * stride);
    store2(out, (a0 + a1) + (a2 + a3));
  } else {
#if COORDWISE_DISPATCH
    if (has_avx512) return dot_avx512<W, S>(row, image, stride, out);
    if (has_avx2) return dot_avx2<W, S>(row, image, stride, out);
#endif
    dot_wide<W, S>(row, image, stride, out);
  }
}

// image[at(t) stride + q] += value(t) change[q],  q < W
template <int W, int S = 0, class Slice>
inline void axpy(const Slice& row, const double* change, std::size_t stride, double* image) {
  const std::size_t n = row.length;
  if (S > 0) stride = S;
#if COORDWISE_STRETCHES
  if constexpr (W <= 2 && Slice::dense) {
    if (stride == W) return by_stretches<DenseAxpy, W>(row.values, change, n, image);
  }
#endif
  if constexpr (W == 1) {
    const double d = change[0];
    for (std::size_t t = 0; t < n; ++t) image[row.at(t) * stride] += row.value(t) * d;
  } else if constexpr (W == 2) {
    const Double2 d = load2(change);
    for (std::size_t t = 0; t < n; ++t) {
      double* to = image + row.at(t) * stride;
      store2(to, load2(to) + both(row.value(t)) * d);
    }
  } else {
#if COORDWISE_DISPATCH
    if (has_avx512) return axpy_avx512<W, S>(row, change, stride, image);
    if (has_avx2) return axpy_avx2<W, S>(row, change, stride, image);
#endif
    axpy_wide<W, S>(row, change, stride, image);
  }
}

// Any number of columns is cut into groups of 8, 4, 2 and 1: body(Group<W>, first column).
template <int W>
struct Group {
  static constexpr int width = W;
};
template <class Body>
void by_groups(std::size_t columns, Body body) {
  std::size_t q = 0;
  for (; q + 8 <= columns; q += 8) body(Group<8>{}, q);
  if (q + 4 <= columns) body(Group<4>{}, q), q += 4;
  if (q + 2 <= columns) body(Group<2>{}, q), q += 2;
  if (q < columns) body(Group<1>{}, q);
}

}  // namespace coordwise
