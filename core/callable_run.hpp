// Runs on functions from outside.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "callable.hpp"
#include "pair.hpp"

namespace coordwise {

// What the binding sees of a run, whatever the functions are shown.
class CallableEngine {
 public:
  virtual ~CallableEngine() = default;
  // Steps until `count` are done or ends(), asked before each, says so.
  virtual void run(std::int64_t count, const std::function<bool()>& ends) = 0;
  virtual void point(double* x) const = 0;
  // sqrt(sum_i L_i (x_i - prox_i(x_i - g_i/L_i, 1/L_i))^2) at x; not meaningful if it ended early.
  virtual double error(const double* x, const double* L, const std::function<bool()>& ends) = 0;

  std::int64_t steps() const { return steps_; }

 protected:
  std::int64_t steps_ = 0;
};

template <class View>
class CallableRun final : public CallableEngine {
 public:
  CallableRun(View view, std::optional<ProxOfCoordinate> prox, const Plan& plan, std::size_t count, IndexStream stream,
              const double* x0)
      : form_(std::move(view), prox, plan, count, std::move(stream), x0) {}

  void run(std::int64_t count, const std::function<bool()>& ends) override {
    const std::int64_t last = form_.steps() + count;
    while (form_.steps() < last && !ends()) {
      if (form_.steps() - synced_ >= resync_every * static_cast<std::int64_t>(form_.count())) {
        form_.resync();
        synced_ = form_.steps();
      }
      form_.step();
    }
    steps_ = form_.steps();
  }

  void point(double* x) const override {
    for (std::size_t i = 0; i < form_.count(); ++i) x[i] = form_.at(i);
  }

  double error(const double* x, const double* L, const std::function<bool()>& ends) override {
    View& view = form_.view();
    view.see(x);
    double sum = 0;
    for (std::size_t i = 0; i < form_.count() && !ends(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const double g = view.seen(at, x);
      const double move = form_.prox() ? L[i] * (x[i] - (*form_.prox())(at, x[i] - g / L[i], 1 / L[i])) : g;
      sum += move * move / L[i];
    }
    // A view that keeps the point itself from step to step has just been shown another one.
    if (!form_.is_accelerated()) form_.resync();
    return std::sqrt(sum);
  }

 private:
  static constexpr std::int64_t resync_every = 64;  // times n steps: rounding piles up in images

  PairForm<View, ProxOfCoordinate> form_;
  std::int64_t synced_ = 0;
};

}  // namespace coordwise
