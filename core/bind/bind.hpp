// What the bindings share: arrays as arguments, their checks, and matrices with the arrays they point into.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>
#include <vector>

#include "certificate.hpp"
#include "gil.hpp"
#include "matrix.hpp"

namespace nb = nanobind;

namespace coordwise::binding {

template <class T, int D>
using In = nb::ndarray<const T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <class T, int D>
using Out = nb::ndarray<T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
using Vector = In<double, 1>;
using Table = In<double, 2>;

inline void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

inline const double* pointer(const std::optional<Table>& table, std::size_t rows, std::size_t columns,
                             const char* what) {
  if (!table) return nullptr;
  require(table->shape(0) == rows && table->shape(1) == columns, what);
  return table->data();
}

inline const double* pointer(const std::optional<Vector>& vector, std::size_t length, const char* what) {
  if (!vector) return nullptr;
  require(vector->shape(0) == length, what);
  return vector->data();
}

inline constexpr std::size_t most = 0xffffffffULL;  // coordinates and entries of one coordinate are counted in 32 bits

// Keeps the arrays alive that the rows point into.
struct Matrix {
  AnyRows rows;
  std::vector<nb::object> held;

  std::size_t count() const {
    return std::visit([](const auto& r) { return static_cast<std::size_t>(r.count()); }, rows);
  }
  std::size_t width() const {
    return std::visit([](const auto& r) { return r.width(); }, rows);
  }
};

using Sums = Out<double, 2>;  // K x 6: the fields of Certificate in order

template <class Fill>
void fill_certificates(const Sums& out, std::size_t outputs, Fill fill) {
  require(out.shape(0) == outputs && out.shape(1) == 6, "certificate output must be K x 6");
  std::vector<Certificate> found(outputs);
  {
    Released released;
    fill(found.data());
  }
  double* to = out.data();
  for (const Certificate& c : found) {
    for (double v : {c.value, c.conjugate, c.fenchel_young, c.gradient2, c.lowest, c.highest}) *to++ = v;
  }
}

void bind_terms(nb::module_& m);
void bind_matrices(nb::module_& m);
void bind_streams(nb::module_& m);
void bind_runs(nb::module_& m);
void bind_svmlight(nb::module_& m);
void bind_callables(nb::module_& m);
void bind_mixed(nb::module_& m);

}  // namespace coordwise::binding
