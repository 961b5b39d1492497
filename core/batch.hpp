// Some entries of a table at once, with centres and weights, in arrays of their own: what vectorised loops work on.
#pragma once

#include <cstddef>

namespace coordwise {

constexpr std::size_t batch = 256;

// Scores or dual variables t, centres c and weights s.  What is not filled in has a weight of 0, which makes terms 0.
struct Batch {
  double t[batch] = {}, c[batch] = {}, s[batch] = {};
};

}  // namespace coordwise
