// The parser of svmlight files.
#include "svmlight.hpp"

#include "bind.hpp"

namespace coordwise::binding {

namespace {

// An array that takes over the memory of what the parser grew.
template <class T>
nb::object as_array(Growing<T>& grown) {
  auto* held = new Growing<T>(std::move(grown));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Growing<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

}  // namespace

void bind_svmlight(nb::module_& m) {
  nb::class_<SvmlightParser>(m, "SvmlightParser")
      .def(nb::init<std::int64_t, std::int64_t>(), nb::arg("lowest"), nb::arg("highest"))
      .def("feed",
           [](SvmlightParser& self, const nb::bytes& block) {
             const char* bytes = block.c_str();
             const std::size_t size = block.size();
             Released released;
             self.feed(bytes, size);
           })
      // Values, indices as written, starts of rows, labels, smallest and largest index; the parser is empty afterwards.
      .def("finish", [](SvmlightParser& self) {
        self.finish();
        const std::int64_t smallest = self.smallest(), largest = self.largest();
        nb::object indices = self.is_wide() ? as_array(self.wide()) : as_array(self.narrow());
        return nb::make_tuple(as_array(self.values()), indices, as_array(self.starts()), as_array(self.labels()),
                              smallest, largest);
      });
}

}  // namespace coordwise::binding
