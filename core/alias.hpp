// Walker's alias table for a distribution p, with 32-bit thresholds.
#pragma once

#include <cmath>
#include <vector>

#include "stream.hpp"

namespace coordwise {

// p >= 0 with sum 1 up to rounding.  A cell keeps itself with probability threshold / 2^32, else it gives its alias.
// Coordinates with p = 0 are never drawn.
inline std::vector<AliasCell> alias_cells(const double* p, std::uint32_t n) {
  std::vector<AliasCell> cells(n);
  std::vector<double> height(n);
  std::vector<std::uint32_t> stacks(n);  // the low ones grow from its beginning, the high ones from its end
  std::uint32_t lows = 0, highs = 0;
  double total = 0;
  for (std::uint32_t i = 0; i < n; ++i) total += p[i];
  for (std::uint32_t i = 0; i < n; ++i) {
    height[i] = p[i] / total * n;
    cells[i] = {0xffffffffu, i};
    stacks[height[i] < 1 ? lows++ : n - ++highs] = i;
  }
  while (lows > 0 && highs > 0) {
    const std::uint32_t small = stacks[--lows], large = stacks[n - highs];
    const auto threshold = static_cast<std::uint32_t>(height[small] * 4294967296.0);
    cells[small] = {threshold == 0 && p[small] > 0 ? 1u : threshold, large};  // rare, but not never
    height[large] -= 1 - height[small];
    if (height[large] < 1) --highs, stacks[lows++] = large;
  }
  // What rounding leaves over keeps itself, unless it must never be drawn.
  for (std::uint32_t at = 0; at < lows; ++at) {
    const std::uint32_t i = stacks[at];
    if (p[i] > 0) continue;
    for (std::uint32_t j = 0; j < n; ++j) {
      if (p[j] > 0) {
        cells[i] = {0, j};
        break;
      }
    }
  }
  return cells;
}

}  // namespace coordwise
