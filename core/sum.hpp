// Compensated summation.
#pragma once

#include <cmath>
#include <cstddef>

#include "simd.hpp"

namespace coordwise {

// Neumaier's sum: values that users add and subtract by hand should carry no more rounding than they must.
class Sum {
 public:
  void add(double v) {
    const double t = total_ + v;
    lost_ += std::fabs(total_) >= std::fabs(v) ? (total_ - t) + v : (v - t) + total_;
    total_ = t;
  }
  double get() const { return std::isfinite(total_) ? total_ + lost_ : total_; }

 private:
  double total_ = 0, lost_ = 0;
};

// Eight sums side by side, by Knuth's version of the same, which has no branches: for vector instructions.
class SideBySide {
 public:
  static constexpr std::size_t width = 8;

  COORDWISE_INLINE void add(const double* v) {
    for (std::size_t e = 0; e < width; ++e) {
      const double t = total_[e] + v[e], other = t - total_[e];
      lost_[e] += (total_[e] - (t - other)) + (v[e] - other);
      total_[e] = t;
    }
  }
  double get() const {
    Sum sum;
    for (std::size_t e = 0; e < width; ++e) sum.add(total_[e]);
    for (std::size_t e = 0; e < width; ++e) sum.add(std::isfinite(total_[e]) ? lost_[e] : 0.0);
    return sum.get();
  }

 private:
  double total_[width] = {}, lost_[width] = {};
};

}  // namespace coordwise
