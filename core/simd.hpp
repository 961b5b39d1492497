// Two doubles side by side: the unit in which the images of u and v are stored, loaded and updated.
#pragma once

#include <cstddef>

namespace coordwise {

// Prefetches must be inlined where they are meant: GCC takes a function that does nothing else for one without effect
// and drops the calls.
#if defined(__GNUC__) || defined(__clang__)

#define COORDWISE_INLINE inline __attribute__((always_inline))

typedef double Double2 __attribute__((vector_size(16), may_alias, aligned(8)));

inline Double2 load2(const double* p) { return *reinterpret_cast<const Double2*>(p); }
inline void store2(double* p, Double2 v) { *reinterpret_cast<Double2*>(p) = v; }

COORDWISE_INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 3); }
COORDWISE_INLINE void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }

#else  // plain C++ with the same meaning; the compiler may still pair the operations

#define COORDWISE_INLINE inline

struct Double2 {
  double a = 0, b = 0;
  double operator[](std::size_t i) const { return i ? b : a; }
};
inline Double2 operator+(Double2 x, Double2 y) { return {x.a + y.a, x.b + y.b}; }
inline Double2 operator*(Double2 x, Double2 y) { return {x.a * y.a, x.b * y.b}; }
inline Double2& operator+=(Double2& x, Double2 y) { return x = x + y; }
inline Double2 load2(const double* p) { return {p[0], p[1]}; }
inline void store2(double* p, Double2 v) { p[0] = v.a, p[1] = v.b; }

inline void prefetch(const void*) {}
inline void prefetch_to_write(const void*) {}

#endif

inline Double2 both(double v) { return Double2{v, v}; }

}  // namespace coordwise
