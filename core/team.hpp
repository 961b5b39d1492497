// Threads that wait for work. A new thread often begins on the processor of the one that made it, and stays there for
// milliseconds, which is longer than most loops over rows take; one that waits can be woken elsewhere.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
#endif
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace coordwise {

class Team {
 public:
  // That of this process: a fork leaves its threads behind, so the child has another. It is never deleted, since its
  // threads wait in it until the process ends.
  static Team& here() {
    static std::atomic<Team*> current{nullptr};
    Team* team = current.load();
    while (team == nullptr || team->process_ != process()) {
      auto made = std::unique_ptr<Team>(new Team);
      if (current.compare_exchange_strong(team, made.get())) return *made.release();
    }
    return *team;
  }

  // task(1) .. task(parts - 1) in threads of the team, and task(0) in the calling one, which also does those that no
  // thread has begun when it is through with its own. False, and nothing is done, if the team is at work for somebody
  // else.
  bool work(std::size_t parts, const std::function<void(std::size_t)>& task) {
    std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    if (!mine.owns_lock()) return false;
    const std::size_t given = 1 + grown_to(parts - 1);
    const Places places(given - 1);
    for (std::size_t part = 1; part < given; ++part) members_[part - 1]->offer(&task, part, places);
    task(0);
    for (std::size_t part = parts; part-- > 1;) {
      if (part >= given || members_[part - 1]->taken_back()) task(part);
    }
    for (std::size_t part = 1; part < given; ++part) members_[part - 1]->wait();
    return true;
  }

 private:
  // Where members are to run: on any processor that the caller may use but its own, if there are enough of them. They
  // may be woken on that one if they were there last, and wait until the caller is done, while others are idle.
  struct Places {
    explicit Places(std::size_t members) {
#if defined(__linux__)
      const int here = sched_getcpu();
      known = members > 0 && here >= 0 && sched_getaffinity(0, sizeof set, &set) == 0;
      if (known && std::size_t(CPU_COUNT(&set)) > members) CPU_CLR(here, &set);
#else
      (void)members;
#endif
    }
#if defined(__linux__)
    cpu_set_t set;
    bool known;
#endif
  };

  class Member {
   public:
    Member() : thread_([this] { serve(); }) {}
    void offer(const std::function<void(std::size_t)>* task, std::size_t part, const Places& places) {
      go_to(places);
      task_ = task, part_ = part;
      turn(State::offered);
    }
    bool taken_back() {
      State offered = State::offered;
      return state_.compare_exchange_strong(offered, State::idle);
    }
    void wait() { until(State::idle, std::chrono::microseconds(300)); }

   private:
    enum class State { idle, offered, begun };

    void serve() {
      while (true) {
        until(State::offered, std::chrono::microseconds(50));
        State offered = State::offered;
        if (!state_.compare_exchange_strong(offered, State::begun)) continue;
        (*task_)(part_);  // nobody else touches it meanwhile
        turn(State::idle);
      }
    }
    void turn(State state) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        state_.store(state);
      }
      changed_.notify_all();
    }
    // Waits for its turn: awake at first, since waking up takes as long as a short loop, and the next one often comes
    // soon; then asleep.  A member is not awake for long, and does not yield: where other threads want its processor,
    // it would be late for its next job, while one that sleeps is preferred when it wakes up.
    void until(State state, std::chrono::microseconds awake) {
      auto so = [=] { return state_.load(std::memory_order_acquire) == state; };
      for (const auto end = std::chrono::steady_clock::now() + awake; !so();) {
        if (std::chrono::steady_clock::now() < end) {
          pause();
        } else {
          std::unique_lock<std::mutex> lock(mutex_);
          changed_.wait(lock, so);
        }
      }
    }
    static void pause() {
#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    void go_to(const Places& places) {
#if defined(__linux__)
      if (!places.known || (places_known_ && CPU_EQUAL(&places.set, &places_))) return;
      places_known_ = pthread_setaffinity_np(thread_.native_handle(), sizeof places.set, &places.set) == 0;
      places_ = places.set;
#else
      (void)places;
#endif
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<State> state_{State::idle};
    const std::function<void(std::size_t)>* task_ = nullptr;
    std::size_t part_ = 0;
#if defined(__linux__)
    cpu_set_t places_;
    bool places_known_ = false;
#endif
    std::thread thread_;  // the last, since it uses the others; never joined, as the team is never deleted
  };

  static long process() {
#if defined(_WIN32)
    return _getpid();
#else
    return getpid();
#endif
  }

  // How many members there are now, as many as asked for if there are threads to be had.
  std::size_t grown_to(std::size_t count) {
    members_.reserve(count);
    try {
      while (members_.size() < count) members_.push_back(std::make_unique<Member>());
    } catch (const std::system_error&) {
    }
    return std::min(members_.size(), count);
  }

  const long process_ = process();
  std::mutex busy_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace coordwise
