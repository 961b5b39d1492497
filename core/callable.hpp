// Compiled functions from outside the library (C, Cython, numba), by their addresses, and what they are shown of the
// point that the accelerated recursion is at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coordwise {

// Where a function is, and what to hand it as its last argument if it takes user data.
struct Address {
  std::uintptr_t function = 0, data = 0;
  bool takes_data = false;
};

// A function double (Arguments...) or double (Arguments..., void* user_data).
template <class... Arguments>
class Callable {
 public:
  explicit Callable(const Address& at)
      : plain_(at.takes_data ? nullptr : reinterpret_cast<Plain>(at.function)),
        with_data_(at.takes_data ? reinterpret_cast<WithData>(at.function) : nullptr),
        data_(reinterpret_cast<void*>(at.data)) {}

  double operator()(Arguments... arguments) const {
    return with_data_ ? with_data_(arguments..., data_) : plain_(arguments...);
  }

 private:
  using Plain = double (*)(Arguments...);
  using WithData = double (*)(Arguments..., void*);
  Plain plain_;
  WithData with_data_;
  void* data_;
};

using ValueOfPoint = Callable<std::int64_t, const double*>;            // n, x
using PartialOfPoint = Callable<std::int64_t, const double*>;          // i, x
using PartialOfImage = Callable<std::int64_t, double, const double*>;  // i, x_i, v = Bx
using ProxOfCoordinate = Callable<std::int64_t, double, double>;       // i, t, theta

// The views below are those of a PairForm (pair.hpp), and are shown exact points as well: see(x), after which seen(i,
// x) are the partial derivatives there.

// All of x. It is formed in every step, O(n), except where s = 0 for good and steps change a single entry.
class WholePoint {
 public:
  WholePoint(const Address& partial, std::size_t count, bool plain) : partial_(partial), plain_(plain), x_(count) {}

  double partial(std::int64_t i, const double* pairs, double s) {
    if (!plain_) {
      const std::size_t count = x_.size();
      double* x = x_.data();
      for (std::size_t j = 0; j < count; ++j) x[j] = pairs[2 * j] - s * pairs[2 * j + 1];
    }
    return partial_(i, x_.data());
  }
  void moved(std::int64_t i, const double* pairs, const double*) {
    if (plain_) x_[static_cast<std::size_t>(i)] = pairs[2 * i];
  }
  void fold(double) {}
  void resync(const double* pairs) {
    for (std::size_t j = 0; j < x_.size(); ++j) x_[j] = pairs[2 * j];
  }
  void see(const double* x) { std::copy(x, x + x_.size(), x_.data()); }
  double seen(std::int64_t i, const double*) { return partial_(i, x_.data()); }

 private:
  PartialOfPoint partial_;
  bool plain_;
  std::vector<double> x_;
};

// The entries of x that the i-th partial derivative reads, places[starts[i]..starts[i+1]]; others are out of date.
class PartOfPoint {
 public:
  PartOfPoint(const Address& partial, std::size_t count, const std::int64_t* places, const std::int64_t* starts)
      : partial_(partial), places_(places), starts_(starts), x_(count) {}

  double partial(std::int64_t i, const double* pairs, double s) {
    for (std::int64_t t = starts_[i]; t < starts_[i + 1]; ++t) {
      const std::int64_t j = places_[t];
      x_[static_cast<std::size_t>(j)] = pairs[2 * j] - s * pairs[2 * j + 1];
    }
    return partial_(i, x_.data());
  }
  void moved(std::int64_t, const double*, const double*) {}
  void fold(double) {}
  void resync(const double*) {}
  void see(const double* x) { std::copy(x, x + x_.size(), x_.data()); }
  double seen(std::int64_t i, const double*) { return partial_(i, x_.data()); }

 private:
  PartialOfPoint partial_;
  const std::int64_t* places_;
  const std::int64_t* starts_;
  std::vector<double> x_;
};

// The image v = Bx where b_i has entries, from the images of u and v, which are kept in pairs as well.
template <class Rows>
class ImageOfPoint {
 public:
  ImageOfPoint(const Address& partial, const Rows& rows)
      : partial_(partial), rows_(rows), image_(rows.width()), images_(2 * rows.width()) {}

  double partial(std::int64_t i, const double* pairs, double s) {
    const auto row = rows_[static_cast<std::uint32_t>(i)];
    for (std::size_t t = 0; t < row.length; ++t) {
      const std::size_t j = row.at(t);
      image_[j] = images_[2 * j] - s * images_[2 * j + 1];
    }
    return partial_(i, pairs[2 * i] - s * pairs[2 * i + 1], image_.data());
  }
  void moved(std::int64_t i, const double*, const double* change) {
    add(static_cast<std::uint32_t>(i), change[0], change[1]);
  }
  void fold(double scale) {
    for (std::size_t j = 0; j < image_.size(); ++j) images_[2 * j + 1] *= scale;
  }
  void resync(const double* pairs) {
    std::fill(images_.begin(), images_.end(), 0.0);
    for (std::uint32_t i = 0; i < rows_.count(); ++i) {
      add(i, pairs[2 * std::size_t{i}], pairs[2 * std::size_t{i} + 1]);
    }
  }
  void see(const double* x) {
    std::fill(image_.begin(), image_.end(), 0.0);
    for (std::uint32_t i = 0; i < rows_.count(); ++i) {
      const auto row = rows_[i];
      for (std::size_t t = 0; t < row.length; ++t) image_[row.at(t)] += row.value(t) * x[i];
    }
  }
  double seen(std::int64_t i, const double* x) { return partial_(i, x[i], image_.data()); }

 private:
  void add(std::uint32_t i, double u, double v) {
    if (u == 0 && v == 0) return;
    const auto row = rows_[i];
    for (std::size_t t = 0; t < row.length; ++t) {
      double* at = images_.data() + 2 * row.at(t);
      const double a = row.value(t);
      at[0] += a * u, at[1] += a * v;
    }
  }

  PartialOfImage partial_;
  Rows rows_;
  std::vector<double> image_, images_;
};

}  // namespace coordwise
