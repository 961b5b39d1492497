// Matrices: checks of their arrays, products, norms, Gram matrices and certificates.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <type_traits>

#include "bind.hpp"
#include "block_grams.hpp"
#include "gram.hpp"
#include "pick.hpp"
#include "pool.hpp"
#include "transpose.hpp"

namespace coordwise::binding {

namespace {

template <class V, class I>
Matrix sparse(In<V, 1> values, In<I, 1> places, In<I, 1> starts, std::size_t width, std::size_t threads) {
  require(starts.shape(0) >= 1, "indptr is empty");
  const std::size_t count = starts.shape(0) - 1;
  require(count < most && width < most, "more than 2^32 - 2 rows or columns");
  require(values.shape(0) == places.shape(0), "data and indices differ in length");
  bool canonical = true;
  const std::string wrong = faults(places.data(), places.shape(0), starts.data(), count, width, threads, canonical);
  if (!wrong.empty()) throw std::invalid_argument(wrong);
  require(canonical || distinct(places.data(), starts.data(), count, width, threads),
          "a row has two entries at one place");
  return {SparseRows<V, I>(values.data(), places.data(), starts.data(), static_cast<std::uint32_t>(count), width),
          {nb::cast(values), nb::cast(places), nb::cast(starts)}};
}

template <class V>
Matrix dense(In<V, 2> values) {
  require(values.shape(0) < most && values.shape(1) < most, "more than 2^32 - 2 rows or columns");
  return {DenseRows<V>(values.data(), static_cast<std::uint32_t>(values.shape(0)), values.shape(1)),
          {nb::cast(values)}};
}

// The arrays of the transposed matrix, of the same types as those of the matrix.
template <class V, class I>
void transposed(const Matrix& matrix, std::size_t threads, Out<V, 1> values, Out<I, 1> places, Out<I, 1> starts) {
  const auto* rows = std::get_if<SparseRows<V, I>>(&matrix.rows);
  require(rows != nullptr, "the matrix is dense, or of other types");
  const std::size_t entries = static_cast<std::size_t>(rows->start(rows->count()));
  require(values.shape(0) == entries && places.shape(0) == entries && starts.shape(0) == rows->width() + 1,
          "output has the wrong length");
  Released released;
  transpose(*rows, threads, values.data(), places.data(), starts.data());
}

// A new array of so many numbers, not filled.
template <class T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> fresh(std::size_t count) {
  auto piece = std::make_unique<Piece>(bytes_of<T>(count));
  nb::capsule owner(piece.get(), [](void* p) noexcept { delete static_cast<Piece*>(p); });
  return {piece.release()->data(), {count}, owner};
}

// Values, indices and starts of some columns; `places_of` says what becomes of every column (see pick.hpp).
template <class I>
nb::object picked(const Matrix& matrix, In<I, 1> places_of, std::size_t threads) {
  require(places_of.shape(0) == matrix.width(), "the new places have the wrong length");
  return std::visit(
      [&](const auto& rows) -> nb::object {
        using Rows = std::decay_t<decltype(rows)>;
        if constexpr (std::is_same_v<Rows, SparseRows<double, I>> || std::is_same_v<Rows, SparseRows<float, I>>) {
          using V = std::conditional_t<std::is_same_v<Rows, SparseRows<float, I>>, float, double>;
          auto starts = fresh<I>(rows.count() + std::size_t{1});
          I* to = starts.data();
          {
            Released released;
            picked_starts(rows, places_of.data(), threads, to);
          }
          const std::size_t kept = static_cast<std::size_t>(to[rows.count()]);
          auto values = fresh<V>(kept);
          auto places = fresh<I>(kept);
          {
            Released released;
            pick(rows, places_of.data(), to, threads, values.data(), places.data());
          }
          return nb::make_tuple(values, places, starts);
        } else {
          throw std::invalid_argument("the matrix is dense, or of other types");
        }
      },
      matrix.rows);
}

}  // namespace

void bind_matrices(nb::module_& m) {
  Pool::here();  // while no other thread can be at it, so that no fork finds it half made
  nb::class_<Matrix>(m, "Matrix")
      .def_prop_ro("count", &Matrix::count)
      .def_prop_ro("width", &Matrix::width)
      .def(
          "norms2",
          [](const Matrix& self, std::optional<Vector> weights, std::size_t threads, Out<double, 1> out) {
            require(out.shape(0) == self.count(), "output has the wrong length");
            const double* w = pointer(weights, self.width(), "weights have the wrong length");
            Released released;
            std::visit([&](const auto& rows) { norms2(rows, w, threads, out.data()); }, self.rows);
          },
          nb::arg("weights").none(), nb::arg("threads"), nb::arg("out"))
      .def(
          "squares",
          [](const Matrix& self, std::optional<Vector> weights, std::size_t threads, Out<double, 1> out) {
            require(out.shape(0) == self.width(), "output has the wrong length");
            const double* w = pointer(weights, self.count(), "weights have the wrong length");
            Released released;
            std::fill(out.data(), out.data() + out.shape(0), 0.0);
            std::visit([&](const auto& rows) { squares(rows, w, threads, out.data()); }, self.rows);
          },
          nb::arg("weights").none(), nb::arg("threads"), nb::arg("out"))
      .def(
          "gram",
          [](const Matrix& self, Vector weights, std::optional<Table> beside, std::size_t threads, double little,
             std::optional<Out<double, 1>> lost, Out<double, 2> out) {
            const std::size_t extra = beside ? beside->shape(1) : 0, size = self.width() + extra;
            require(weights.shape(0) == self.count(), "weights have the wrong length");
            const double* more = pointer(beside, self.count(), extra, "the columns beside have the wrong shape");
            require(out.shape(0) == size && out.shape(1) == size, "output has the wrong shape");
            require(!lost || lost->shape(0) == size, "what is lost has the wrong length");
            const LeftOut left_out{little, lost ? lost->data() : nullptr};
            Released released;
            std::visit(
                [&](const auto& rows) { gram(rows, weights.data(), more, extra, threads, left_out, out.data()); },
                self.rows);
          },
          nb::arg("weights"), nb::arg("beside").none(), nb::arg("threads"), nb::arg("little"), nb::arg("lost").none(),
          nb::arg("out"))
      .def(
          "block_grams",
          [](const Matrix& self, In<std::uint32_t, 2> members, std::optional<Vector> weights, std::size_t threads,
             Out<double, 3> out) {
            const std::size_t count = members.shape(0), size = members.shape(1);
            require(out.shape(0) == count && out.shape(1) == size && out.shape(2) == size,
                    "output has the wrong shape");
            const double* w = pointer(weights, self.width(), "weights have the wrong length");
            const std::uint32_t* of = members.data();
            for (std::size_t e = 0; e < count * size; ++e) require(of[e] < self.count(), "a member is out of range");
            Released released;
            std::visit([&](const auto& rows) { block_grams(rows, of, count, size, w, threads, out.data()); },
                       self.rows);
          },
          nb::arg("members"), nb::arg("weights").none(), nb::arg("threads"), nb::arg("out"))
      .def("transposed", &transposed<double, std::int32_t>)
      .def("transposed", &transposed<float, std::int32_t>)
      .def("transposed", &transposed<double, std::int64_t>)
      .def("transposed", &transposed<float, std::int64_t>)
      .def("picked", &picked<std::int32_t>)
      .def("picked", &picked<std::int64_t>)
      .def("dots",
           [](const Matrix& self, Table vectors, std::size_t threads, Out<double, 2> out) {
             require(
                 vectors.shape(0) == self.width() && out.shape(0) == self.count() && out.shape(1) == vectors.shape(1),
                 "dots: shapes do not fit");
             Released released;
             std::visit([&](const auto& rows) { dots(rows, vectors.data(), vectors.shape(1), threads, out.data()); },
                        self.rows);
           })
      .def("combine",
           [](const Matrix& self, Table x, std::size_t threads, Out<double, 2> out) {
             require(x.shape(0) == self.count() && out.shape(0) == self.width() && out.shape(1) == x.shape(1),
                     "combine: shapes do not fit");
             Released released;
             std::visit([&](const auto& rows) { combine(rows, x.data(), x.shape(1), threads, out.data()); }, self.rows);
           })
      .def(
          "certificate",
          [](const Matrix& self, const Term& term, std::optional<Table> centers, std::optional<Vector> weights, Table x,
             Table omega, std::size_t threads, Sums out) {
            const std::size_t outputs = x.shape(1);
            require(x.shape(0) == self.count() && omega.shape(0) == self.width() && omega.shape(1) == outputs,
                    "certificate: shapes do not fit");
            const double* c = pointer(centers, self.count(), outputs, "centers have the wrong shape");
            const double* s = pointer(weights, self.count(), "weights have the wrong length");
            const double* at = x.data();
            fill_certificates(out, outputs, [&](Certificate* found) {
              std::visit(
                  [&](const auto& rows) {
                    by_groups(outputs, [&](auto group, std::size_t first) {
                      certify<decltype(group)::width>(
                          rows.count(), entries_hint(rows), term, omega.data() + first, outputs, threads,
                          [&](std::uint32_t i) { return rows[i]; },
                          [=](std::uint32_t i, std::size_t k) { return at[i * outputs + first + k]; },
                          [=](std::uint32_t i, std::size_t k) { return c ? c[i * outputs + first + k] : 0.0; },
                          [=](std::uint32_t i) { return s ? s[i] : 1.0; }, found + first);
                    });
                  },
                  self.rows);
            });
          },
          nb::arg("term"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("x"), nb::arg("omega"),
          nb::arg("threads"), nb::arg("out"));

  m.def("memory4", &fresh<std::uint32_t>);
  m.def("memory8", &fresh<std::uint64_t>);
  m.def("sparse", &sparse<double, std::int32_t>);
  m.def("sparse", &sparse<float, std::int32_t>);
  m.def("sparse", &sparse<double, std::int64_t>);
  m.def("sparse", &sparse<float, std::int64_t>);
  m.def("dense", &dense<double>);
  m.def("dense", &dense<float>);

  // Arrays of a sparse matrix as a sentence about what is wrong ("" if nothing), and whether its rows are ordered.
  auto inspect = [](auto places, auto starts, std::size_t width) {
    bool canonical = true;
    std::string wrong;
    if (starts.shape(0) == 0) {
      wrong = "indptr is empty";
    } else {
      Released released;
      wrong = faults(places.data(), places.shape(0), starts.data(), starts.shape(0) - 1, width, 1, canonical);
    }
    return std::make_tuple(wrong, canonical);
  };
  m.def("inspect", [inspect](In<std::int32_t, 1> p, In<std::int32_t, 1> s, std::size_t w) { return inspect(p, s, w); });
  m.def("inspect", [inspect](In<std::int64_t, 1> p, In<std::int64_t, 1> s, std::size_t w) { return inspect(p, s, w); });

  auto survey_of = [](const auto& values) {
    double largest = 0;
    Released released;
    const std::int64_t bad = survey(values.data(), values.shape(0), largest);
    return std::make_tuple(bad, largest);
  };
  m.def("fits_single", [](In<double, 1> values) {
    Released released;
    return fits_single(values.data(), values.shape(0));
  });
  m.def("survey", [survey_of](In<double, 1> values) { return survey_of(values); });
  m.def("survey", [survey_of](In<float, 1> values) { return survey_of(values); });
}

}  // namespace coordwise::binding
