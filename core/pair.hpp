// The recursion of the kernel in pairs (u, v) for one output, with coordinates and proximal steps of any kind: the loop
// for functions from outside, and for terms that differ from coordinate to coordinate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace coordwise {

// A view is given the pairs (u_j, v_j), one per coordinate, and forms the point x = u - s v, or as much of it as a
// partial derivative reads, where it stands:
//
//   partial(i, pairs, s)      the partial derivative at that point
//   moved(i, pairs, change)   the pair of coordinate i has just changed by `change`; s = 0 from step to step if the run
//                             is not accelerated
//   fold(scale)               all v_j have been multiplied by it
//   resync(pairs)             whatever was kept is computed anew
//
// and prox(i, t, theta) is argmin over y of psi_i(y) + (y - t)^2/(2 theta). The plan is that of Plan (engine.hpp) but
// for `step` of plain steps, which is 1/L with and without a proximal step.
template <class View, class Prox>
class PairForm {
 public:
  PairForm(View view, std::optional<Prox> prox, const Plan& plan, std::size_t count, IndexStream stream,
           const double* x0)
      : view_(std::move(view)), prox_(std::move(prox)), momentum_(plan.momentum), stream_(stream), pairs_(2 * count) {
    for (std::size_t i = 0; i < count; ++i) pairs_[2 * i] = x0[i];
    take(plan, std::move(stream));
    momentum_.restart();
    resync();
  }

  // One step; returns the coordinate that was drawn.
  std::uint32_t step() {
    if (place_ == drawn_.size()) draw();
    const std::uint32_t i = drawn_[place_++];
    accelerated_ ? accelerated(i) : plain(i);
    ++steps_;
    return i;
  }

  void restart() {
    const double behind = this->behind();
    for (std::size_t i = 0; i < step_.size(); ++i) pair(i)[0] -= behind * pair(i)[1], pair(i)[1] = 0;
    momentum_.restart();
    resync();
  }

  // Another plan from the same y and z, with another proximal step (see Engine::replan).
  void replan(std::optional<Prox> prox, const Plan& plan, IndexStream stream) {
    if (accelerated_) {
      const double behind = momentum_.behind();
      const double apart = plan.momentum.rule == Rule::vanishing ? 0 : behind + momentum_.ahead();
      momentum_.change(plan.momentum);
      const double shift = momentum_.behind() * apart - behind;
      for (std::size_t i = 0; i < step_.size(); ++i) pair(i)[0] += shift * pair(i)[1], pair(i)[1] *= apart;
    }
    prox_ = std::move(prox);
    stream.seek(static_cast<std::uint64_t>(steps_));
    take(plan, std::move(stream));
    resync();
  }

  // y_i = z_i = x; `resync` has to follow.
  void settle(std::size_t i, double x) { pair(i)[0] = x, pair(i)[1] = 0; }
  void resync() { view_.resync(pairs_.data()); }

  double at(std::size_t i) const { return pairs_[2 * i] - behind() * pairs_[2 * i + 1]; }
  double behind() const { return accelerated_ ? momentum_.behind() : 0; }
  bool is_accelerated() const { return accelerated_; }
  std::size_t count() const { return step_.size(); }
  std::int64_t steps() const { return steps_; }
  View& view() { return view_; }
  const View& view() const { return view_; }
  const std::optional<Prox>& prox() const { return prox_; }

 private:
  static constexpr std::size_t ahead = 256;

  void take(const Plan& plan, IndexStream stream) {
    const std::size_t count = pairs_.size() / 2;
    accelerated_ = plan.accelerated, fold_below_ = plan.fold_below;
    step_.assign(plan.step, plan.step + count);
    theta_.assign(plan.theta ? plan.theta : plan.step, (plan.theta ? plan.theta : plan.step) + count);
    stream_ = std::move(stream);
    drawn_.resize(ahead);
    place_ = ahead;
  }

  void draw() {
    stream_.draw(drawn_.data(), drawn_.size());
    place_ = 0;
  }

  double* pair(std::size_t i) { return pairs_.data() + 2 * i; }

  void change(std::uint32_t i, double du, double dv) {
    const double changes[2] = {du, dv};
    pair(i)[0] += du, pair(i)[1] += dv;
    view_.moved(i, pairs_.data(), changes);
  }

  void plain(std::uint32_t i) {
    const double x = pair(i)[0], g = view_.partial(i, pairs_.data(), 0);
    const double t = x - step_[i] * g;
    change(i, (prox_ ? (*prox_)(i, t, step_[i]) : t) - x, 0);
  }

  void accelerated(std::uint32_t i) {
    Momentum& m = momentum_;
    m.begin();
    const double g = view_.partial(i, pairs_.data(), m.x);
    const double u = pair(i)[0], v = pair(i)[1];
    const double x = u - m.x * v, z = u + m.z * v;
    const double zh = z + m.drift * (x - z), theta = m.theta * theta_[i];
    const double dz = prox_ ? (*prox_)(i, zh - theta * g, theta) - zh : -theta * g;
    const double dy = prox_ ? m.couple * step_[i] * dz : -step_[i] * g;
    change(i, m.keep * dy + (1 - m.keep) * dz, (dz - dy) / m.next);
    m.end();
    if (m.scale() < fold_below_) fold();
  }

  void fold() {
    const double scale = momentum_.scale();
    for (std::size_t i = 0; i < step_.size(); ++i) pair(i)[1] *= scale;
    view_.fold(scale);
    momentum_.folded();
  }

  View view_;
  std::optional<Prox> prox_;
  Momentum momentum_;
  IndexStream stream_;
  std::vector<double> pairs_;
  std::vector<double> step_, theta_;
  bool accelerated_ = true;
  double fold_below_ = 0;
  std::vector<std::uint32_t> drawn_;
  std::size_t place_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace coordwise
