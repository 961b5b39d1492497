// Python's global lock, given up while the core works and taken back at the end.
//
// A thread that a time limit has left alone may still be at work when the interpreter ends. Taking the lock back would
// end such a thread by unwinding its stack, through functions that must not be unwound, and so abort the process. After
// `end_threads` threads other than the caller's stay where they are instead, until the process is gone.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace coordwise::binding {

struct Ending {
  static inline std::atomic<bool> begun{false};
  static inline std::thread::id last{};
};

inline void end_threads() {
  Ending::last = std::this_thread::get_id();
  Ending::begun = true;
}

inline void stay_if_ending() {
  if (!Ending::begun || std::this_thread::get_id() == Ending::last) return;
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// In place of nanobind's guard of the same kind.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    stay_if_ending();
    PyEval_RestoreThread(state_);
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* state_;
};

// The lock for as long as the core asks Python something.
class Acquired {
 public:
  Acquired() {
    stay_if_ending();
    state_ = PyGILState_Ensure();
  }
  ~Acquired() { PyGILState_Release(state_); }
  Acquired(const Acquired&) = delete;
  Acquired& operator=(const Acquired&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace coordwise::binding
