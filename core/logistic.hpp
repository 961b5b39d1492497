// The logistic loss and its conjugate for many arguments at once: exponentials and logarithms without branches or
// tables, which compilers turn into vector instructions.  Both are series whose first neglected term is below a tenth
// of the rounding, on intervals around 0 that the arguments are reduced to; results are within a few units in the last
// place, but exp(-a) is 0 from a = 708 on, where it is about to leave the normal numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "batch.hpp"
#include "dispatch.hpp"

namespace coordwise {

COORDWISE_INLINE std::uint64_t bits_of(double v) {
  std::uint64_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
COORDWISE_INLINE double double_of(std::uint64_t bits) {
  double v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

constexpr double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;  // log 2: 32 bits of it, and the rest

// exp(-a), a >= 0
COORDWISE_INLINE double exp_minus(double a) {
  constexpr double log2_e = 0x1.71547652b82fep0, shift = 0x1.8p52;  // adding it rounds to an integer, in the low bits
  const double shifted = -a * log2_e + shift, n = shifted - shift;
  const double r = (-a - n * log2_high) - n * log2_low;  // |r| <= log(2)/2
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * (r * r) + r + 1.0;
  const double power = double_of((bits_of(shifted) + 1023) << 52);  // 2^n
  return a > 708 ? 0.0 : sum * power;
}

// k log 2 + log(1 + f), 1 + f in [1/sqrt(2), sqrt(2)]: with s = f/(2 + f), |s| < 0.172, the logarithm is
// 2 artanh(s) = f - f^2/2 + s (f^2/2 + R), R = 2 s^2/3 + 2 s^4/5 + ...
COORDWISE_INLINE double log_near_one(double f, double k) {
  const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  double R = 2.0 / 23;
  R = R * z + 2.0 / 21;
  R = R * z + 2.0 / 19;
  R = R * z + 2.0 / 17;
  R = R * z + 2.0 / 15;
  R = R * z + 2.0 / 13;
  R = R * z + 2.0 / 11;
  R = R * z + 2.0 / 9;
  R = R * z + 2.0 / 7;
  R = R * z + 2.0 / 5;
  R = R * z + 2.0 / 3;
  return k * log2_high - ((half - (s * (half + R * z) + k * log2_low)) - f);
}

// log(1 + exp(z))
struct SoftPlus {
  COORDWISE_INLINE static double at(double z) {
    const double e = exp_minus(std::fabs(z));
    const bool large = e > 0.41421356;
    const double f = large ? 0.5 * (e - 1) : e;  // of (1 + e)/2, and of 1 + e
    return (z > 0 ? z : 0.0) + log_near_one(f, large ? 1.0 : 0.0);
  }
};

// Its derivative 1/(1 + exp(-z))
struct Sigmoid {
  COORDWISE_INLINE static double at(double z) {
    const double e = exp_minus(std::fabs(z));
    return (z >= 0 ? 1.0 : e) / (1 + e);
  }
};

// Its second derivative
struct SigmoidSlope {
  COORDWISE_INLINE static double at(double z) {
    const double e = exp_minus(std::fabs(z));
    return e / ((1 + e) * (1 + e));
  }
};

// a log a + (1 - a) log(1 - a) for a in [0, 1]
struct Entropy {
  COORDWISE_INLINE static double at(double a) {
    const double m = a > 0.5 ? 1 - a : a, rest = 1 - m;
    const bool large = m > 0.29289322;
    const double log_rest = log_near_one(large ? 1 - 2 * m : -m, large ? -1.0 : 0.0);
    // m = 2^k (1 + f)
    constexpr std::uint64_t root = 0x3fe6a09e667f3bcd, zero = std::uint64_t{1023} << 52;  // 1/sqrt(2), exponent 0
    const std::uint64_t bits = bits_of(m), exponent = (bits - root + zero) >> 52;         // k + 1023
    const double k = double_of(exponent | 0x4330000000000000) - (0x1p52 + 1023);
    const double f = double_of(bits - (exponent << 52) + zero) - 1;
    return (m < 0x1p-1021 ? 0.0 : m * log_near_one(f, k)) + rest * log_rest;
  }
};

// z becomes Function::at(z), entry by entry
template <class Function>
struct EveryOne {
  COORDWISE_INLINE static void run(double* z) {
    for (std::size_t e = 0; e < batch; ++e) z[e] = Function::at(z[e]);
  }
};
template <class Function>
void apply(double (&z)[batch]) {
  widest<EveryOne<Function>>(static_cast<double*>(z));
}

}  // namespace coordwise
