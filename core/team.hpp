// Threads that wait for work. A new thread often begins on the processor of the one that made it, and stays there for
// milliseconds, which is longer than most loops over rows take; one that waits is woken on a processor that is free.
#pragma once

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
  // thread can be had for. False, and nothing is done, if the team is at work for somebody else.
  bool work(std::size_t parts, const std::function<void(std::size_t)>& task) {
    std::unique_lock<std::mutex> mine(busy_, std::try_to_lock);
    if (!mine.owns_lock()) return false;
    std::size_t given = 1;
    for (; given < parts && grown_to(given); ++given) members_[given - 1]->give([&task, given] { task(given); });
    task(0);
    for (std::size_t part = given; part < parts; ++part) task(part);
    for (std::size_t part = 1; part < given; ++part) members_[part - 1]->wait();
    return true;
  }

 private:
  class Member {
   public:
    Member() {
      std::thread([this] { serve(); }).detach();
    }
    void give(std::function<void()> job) {
      job_ = std::move(job);
      turn(true);
    }
    void wait() { until(false, std::chrono::microseconds(300)); }

   private:
    void serve() {
      while (true) {
        until(true, std::chrono::microseconds(50));
        job_();  // nobody else touches it meanwhile
        job_ = nullptr;
        turn(false);
      }
    }
    void turn(bool given) {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        given_.store(given, std::memory_order_release);
      }
      changed_.notify_all();
    }
    // Waits for its turn: awake at first, since waking up takes as long as a short loop, and the next one often comes
    // soon; then asleep.  A member is not awake for long, and does not yield: where other threads want its processor,
    // it would be late for its next job, while one that sleeps is preferred when it wakes up.
    void until(bool given, std::chrono::microseconds awake) {
      auto so = [=] { return given_.load(std::memory_order_acquire) == given; };
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
    std::mutex mutex_;
    std::condition_variable changed_;
    std::atomic<bool> given_{false};
    std::function<void()> job_;
  };

  static long process() {
#if defined(_WIN32)
    return _getpid();
#else
    return getpid();
#endif
  }

  // Whether there are so many members now.
  bool grown_to(std::size_t count) {
    try {
      while (members_.size() < count) members_.push_back(std::make_unique<Member>());
    } catch (const std::system_error&) {  // no more threads to be had
    }
    return members_.size() >= count;
  }

  const long process_ = process();
  std::mutex busy_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace coordwise
