// Compensated summation.
#pragma once

#include <cmath>

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

}  // namespace coordwise
