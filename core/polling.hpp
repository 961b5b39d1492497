// When a loop over calls that may take nanoseconds or seconds asks whether it should end.
#pragma once

#include <algorithm>
#include <chrono>

namespace coordwise {

// Asks about once a millisecond, whatever a turn of the loop takes, so that the clock is not what the time goes to.
template <class Ask>
class Polling {
 public:
  explicit Polling(Ask ask) : ask_(ask), last_(Clock::now()) {}

  // Whether to end; asked once per turn.
  bool ends() {
    if (++turns_ < every_) return false;
    turns_ = 0;
    const Clock::time_point now = Clock::now();
    const bool soon = now - last_ < std::chrono::milliseconds(1);
    every_ = soon ? std::min(2 * every_, most) : std::max(every_ / 2, 1);
    last_ = now;
    return ask_(now);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int most = 4096;
  Ask ask_;
  Clock::time_point last_;
  int turns_ = 0, every_ = 1;
};

}  // namespace coordwise
