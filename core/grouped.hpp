// Many outputs as a few kernels of 8, 4, 2 or 1 outputs that follow the same stream of coordinates: the outputs do not
// depend on each other, so the groups can run one after another or on several threads with the same result.
#pragma once

#include <algorithm>
#include <system_error>
#include <thread>

#include "engine.hpp"

namespace coordwise {

class Grouped final : public Engine {
 public:
  // One list of engines per thread.
  explicit Grouped(std::vector<std::vector<std::unique_ptr<Engine>>> shares) : shares_(std::move(shares)) {}

  void run(std::int64_t max_steps, std::int64_t max_entries, const std::function<bool()>& stop) override {
    // In slices: steps and entries end a slice at the same step for all groups, and stop() is asked in between.
    const std::int64_t last_step = steps_ + max_steps, last_entry = entries_ + max_entries;
    while (steps_ < last_step && entries_ < last_entry) {
      const std::int64_t count = std::min(last_step - steps_, slice);
      const std::int64_t entries = std::min(last_entry - entries_, slice);
      each([&](Engine& part) { part.run(count, entries, [] { return false; }); });
      steps_ = shares_[0][0]->steps(), entries_ = shares_[0][0]->entries();
      if (stop()) return;
    }
  }
  void restart() override {
    each([](Engine& part) { part.restart(); });
  }
  void replan(const Plan& plan, const IndexStream& stream) override {
    each([&](Engine& part) { part.replan(plan, stream); });
  }
  void settle(const std::uint32_t* which, std::size_t count, const double* x) override {
    each([=](Engine& part) { part.settle(which, count, x); });
  }
  void resync() override {
    each([](Engine& part) { part.resync(); });
  }
  void point(double* x, bool inside) const override {
    each([=](Engine& part) { part.point(x, inside); });
  }
  void image(double* v) const override {
    each([v](Engine& part) { part.image(v); });
  }
  void certificate(const double* omega, Certificate* out, double* g) const override {
    each([=](Engine& part) { part.certificate(omega, out, g); });
  }

 private:
  static constexpr std::int64_t slice = 1 << 22;  // steps or entries: long enough to keep one image in the cache

  // Engines write to columns of their own, so they may work side by side.  Where the system has no more threads to
  // give, the calling one does the rest.
  template <class Body>
  void each(Body body) const {
    auto work = [&](std::size_t t) {
      for (const auto& part : shares_[t]) body(*part);
    };
    std::vector<std::thread> others;
    others.reserve(shares_.size());
    std::size_t started = 1;
    try {
      for (; started < shares_.size(); ++started) others.emplace_back(work, started);
    } catch (const std::system_error&) {
    }
    work(0);
    for (std::size_t t = started; t < shares_.size(); ++t) work(t);
    for (std::thread& thread : others) thread.join();
  }

  std::vector<std::vector<std::unique_ptr<Engine>>> shares_;
};

}  // namespace coordwise
