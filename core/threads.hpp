// Loops over rows by several threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace coordwise {

// How many of the threads that are allowed are worth starting for `count` rows.
inline std::size_t worth_starting(std::size_t threads, std::size_t count, std::size_t rows_each) {
  return std::max<std::size_t>(1, std::min(threads, count / rows_each + 1));
}

// body(part, from, to) for stretches of the rows 0 .. count - 1, each in a thread of its own; the calling one has the
// first, and those that no thread can be had for.
template <class Body>
void in_parts(std::size_t count, std::size_t parts, Body body) {
  auto first = [=](std::size_t part) { return static_cast<std::uint32_t>(count * part / parts); };
  std::vector<std::thread> others;
  others.reserve(parts);
  std::size_t started = 1;
  try {
    for (; started < parts; ++started) {
      others.emplace_back([&body, first, part = started] { body(part, first(part), first(part + 1)); });
    }
  } catch (const std::system_error&) {  // no more threads to be had
  }
  body(std::size_t{0}, first(0), first(1));
  for (std::size_t part = started; part < parts; ++part) body(part, first(part), first(part + 1));
  for (std::thread& thread : others) thread.join();
}

}  // namespace coordwise
