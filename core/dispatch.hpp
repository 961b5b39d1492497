// Loops compiled for several instruction sets, the widest of which is chosen when the library is loaded.
#pragma once

#include "simd.hpp"

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define COORDWISE_DISPATCH 1
#else
#define COORDWISE_DISPATCH 0
#endif

namespace coordwise {

#if COORDWISE_DISPATCH

inline const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
inline const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");

template <class Loop, class... Args>
__attribute__((target("avx2,fma"))) void run_avx2(Args... args) {
  Loop::run(args...);
}
#if defined(__clang__)
#define COORDWISE_WIDEST "avx2,fma,avx512f,avx512vl"
#else
#define COORDWISE_WIDEST "avx2,fma,avx512f,avx512vl,prefer-vector-width=512"
#endif
template <class Loop, class... Args>
__attribute__((target(COORDWISE_WIDEST))) void run_avx512(Args... args) {
  Loop::run(args...);
}

#endif

// Loop::run(args...), which must be COORDWISE_INLINE
template <class Loop, class... Args>
void widest(Args... args) {
#if COORDWISE_DISPATCH
  if (has_avx512) return run_avx512<Loop>(args...);
  if (has_avx2) return run_avx2<Loop>(args...);
#endif
  Loop::run(args...);
}

}  // namespace coordwise
