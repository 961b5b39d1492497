// Loops over rows by several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "team.hpp"

namespace coordwise {

// How many of the threads that are allowed are worth starting for `count` rows.
inline std::size_t worth_starting(std::size_t threads, std::size_t count, std::size_t rows_each) {
  return std::max<std::size_t>(1, std::min(threads, count / rows_each + 1));
}

// body(part, from, to) for stretches of the rows 0 .. count - 1, each in a thread of its own; the calling one has the
// first, and all of them if the team is at work for another. The body must not throw.
template <class Body>
void in_parts(std::size_t count, std::size_t parts, Body body) {
  auto first = [=](std::size_t part) { return static_cast<std::uint32_t>(count * part / parts); };
  auto task = [&](std::size_t part) { body(part, first(part), first(part + 1)); };
  if (parts > 1 && Team::here().work(parts, task)) return;
  for (std::size_t part = 0; part < parts; ++part) task(part);
}

// body(i) for i = 0 .. count - 1, each in whichever of the threads is free: where some take longer than others.
template <class Body>
void in_turns(std::size_t count, std::size_t threads, Body body) {
  std::atomic<std::size_t> next{0};
  in_parts(threads, threads, [&](std::size_t, std::uint32_t, std::uint32_t) {
    for (std::size_t i = next++; i < count; i = next++) body(i);
  });
}

}  // namespace coordwise
