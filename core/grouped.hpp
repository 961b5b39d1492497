// Many outputs as a few kernels of 8, 4, 2 or 1 outputs that follow the same stream of coordinates: the outputs do not
// depend on each other, so the groups can run one after another or on several threads with the same result.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>

#include "engine.hpp"

namespace coordwise {

class Grouped final : public Engine {
 public:
  // One list of engines per thread.
  explicit Grouped(std::vector<std::vector<std::unique_ptr<Engine>>> shares) : shares_(std::move(shares)) {}

  void run(std::int64_t max_steps, std::int64_t max_entries, const std::function<bool()>& stop) override {
    // Steps and entries end all groups at the same step.  stop() does not: it is asked by the calling thread alone, and
    // whoever it cut short is then brought level with the group that got furthest.
    std::atomic<bool> halt{false};
    const auto caller = std::this_thread::get_id();
    auto ask = [&] {
      if (std::this_thread::get_id() == caller && stop()) halt = true;
      return halt.load();
    };
    each([&](Engine& part) {
      if (!halt) part.run(max_steps, max_entries, ask);
    });
    std::int64_t furthest = 0;
    for (const auto& share : shares_) {
      for (const auto& part : share) furthest = std::max(furthest, part->steps());
    }
    each([furthest](Engine& part) { part.run(furthest - part.steps(), std::int64_t(1) << 62, [] { return false; }); });
    steps_ = furthest, entries_ = shares_[0][0]->entries();
  }
  void restart() override {
    each([](Engine& part) { part.restart(); });
  }
  void resync() override {
    each([](Engine& part) { part.resync(); });
  }
  void point(double* x) const override {
    each([x](Engine& part) { part.point(x); });
  }
  void image(double* v) const override {
    each([v](Engine& part) { part.image(v); });
  }
  void certificate(const double* omega, Certificate* out) const override {
    each([omega, out](Engine& part) { part.certificate(omega, out); });
  }

 private:
  // Engines write to columns of their own, so they may work side by side.
  template <class Body>
  void each(Body body) const {
    auto work = [&](std::size_t t) {
      for (const auto& part : shares_[t]) body(*part);
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < shares_.size(); ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& thread : others) thread.join();
  }

  std::vector<std::vector<std::unique_ptr<Engine>>> shares_;
};

}  // namespace coordwise
