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
  std::vector<std::uint32_t> low, high;
  double total = 0;
  for (std::uint32_t i = 0; i < n; ++i) total += p[i];
  for (std::uint32_t i = 0; i < n; ++i) {
    height[i] = p[i] / total * n;
    cells[i] = {0xffffffffu, i};
    (height[i] < 1 ? low : high).push_back(i);
  }
  while (!low.empty() && !high.empty()) {
    const std::uint32_t small = low.back(), large = high.back();
    low.pop_back();
    const auto threshold = static_cast<std::uint32_t>(height[small] * 4294967296.0);
    cells[small] = {threshold == 0 && p[small] > 0 ? 1u : threshold, large};  // rare, but not never
    height[large] -= 1 - height[small];
    if (height[large] < 1) {
      high.pop_back();
      low.push_back(large);
    }
  }
  // What rounding leaves over keeps itself, unless it must never be drawn.
  for (std::uint32_t i : low) {
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
