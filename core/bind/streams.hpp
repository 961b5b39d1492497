// Streams of coordinates from the arrays that describe them.
#pragma once

#include "alias.hpp"
#include "bind.hpp"
#include "stream.hpp"

namespace coordwise::binding {

inline std::vector<AliasCell> alias_table(const std::optional<In<std::uint32_t, 2>>& cells, std::size_t count) {
  std::vector<AliasCell> table;
  if (cells) {
    require(cells->shape(0) == count && cells->shape(1) == 2, "cells have the wrong shape");
    table.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      table[i] = {cells->data()[2 * i], cells->data()[2 * i + 1]};
      require(table[i].alias < count, "an alias is out of range");
    }
  }
  return table;
}

// Indices of coordinates, checked.
inline std::vector<std::uint32_t> members_of(const std::optional<In<std::uint32_t, 1>>& members, std::size_t count) {
  if (!members) return {};
  require(members->shape(0) > 0, "no members");
  std::vector<std::uint32_t> found(members->data(), members->data() + members->shape(0));
  for (std::uint32_t i : found) require(i < count, "a member is out of range");
  return found;
}

}  // namespace coordwise::binding
