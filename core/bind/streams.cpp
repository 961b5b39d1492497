// Drawing coordinates.
#include "streams.hpp"

namespace coordwise::binding {

void bind_streams(nb::module_& m) {
  m.def("alias_cells", [](Vector p, Out<std::uint32_t, 2> out) {
    require(out.shape(0) == p.shape(0) && out.shape(1) == 2 && p.shape(0) < most, "output has the wrong shape");
    std::uint32_t* to = out.data();
    for (const AliasCell& cell : alias_cells(p.data(), static_cast<std::uint32_t>(p.shape(0)))) {
      *to++ = cell.threshold;
      *to++ = cell.alias;
    }
  });
  m.def(
      "draw",
      [](std::uint64_t seed, std::optional<In<std::uint32_t, 2>> cells, std::uint32_t n,
         std::optional<In<std::uint32_t, 1>> members, Out<std::uint32_t, 1> out) {
        IndexStream(seed, n, alias_table(cells, n), members_of(members, n)).draw(out.data(), out.shape(0));
      },
      nb::arg("seed"), nb::arg("cells").none(), nb::arg("n"), nb::arg("members").none(), nb::arg("out"));
}

}  // namespace coordwise::binding
