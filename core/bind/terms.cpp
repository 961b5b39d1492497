// Terms, and sums and derivatives of many of them.
#include "bind.hpp"
#include "tables.hpp"

namespace coordwise::binding {

namespace {

Term term(int shape, double quad, double kink, double dead, double lower, double upper, bool mirrored, double scale) {
  Term t;
  t.shape = static_cast<Shape>(shape);
  t.quad = quad, t.kink = kink, t.dead = dead, t.lower = lower, t.upper = upper;
  t.mirrored = mirrored, t.scale = scale;
  return t;
}

// Terms at the entries of t.
Terms table_of(const Term& term, const Table& t, const std::optional<Table>& centers,
               const std::optional<Vector>& weights) {
  const std::size_t rows = t.shape(0), columns = t.shape(1);
  return {term, rows, columns, pointer(centers, rows, columns, "centers have the wrong shape"),
          pointer(weights, rows, "weights have the wrong length")};
}

}  // namespace

void bind_terms(nb::module_& m) {
  nb::class_<Term>(m, "Term")
      .def(
          "__init__",
          [](Term* self, int shape, double quad, double kink, double dead, double lower, double upper, bool mirrored,
             double scale) { new (self) Term(term(shape, quad, kink, dead, lower, upper, mirrored, scale)); },
          nb::kw_only(), nb::arg("shape"), nb::arg("quad"), nb::arg("kink"), nb::arg("dead"), nb::arg("lower"),
          nb::arg("upper"), nb::arg("mirrored"), nb::arg("scale"))
      .def("prox", &Term::prox)
      .def("clip", &Term::clip)
      .def(
          "derivatives",
          [](const Term& self, Table t, std::optional<Table> centers, std::optional<Vector> weights, bool second,
             std::size_t threads, Out<double, 2> out) {
            const Terms terms = table_of(self, t, centers, weights);
            require(out.shape(0) == terms.rows && out.shape(1) == terms.columns, "output has the wrong shape");
            Released released;
            derivatives(terms, t.data(), second, threads, out.data());
          },
          nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("second"), nb::arg("threads"),
          nb::arg("out"))
      .def(
          "corners",
          [](const Term& self, Table x, Table t, std::optional<Table> centers, std::optional<Vector> weights,
             std::size_t threads, Out<double, 2> room, Out<double, 2> away, Out<double, 2> there) {
            const Terms terms = table_of(self, t, centers, weights);
            for (const auto& out : {room, away, there}) {
              require(out.shape(0) == terms.rows && out.shape(1) == terms.columns, "output has the wrong shape");
            }
            require(x.shape(0) == terms.rows && x.shape(1) == terms.columns, "x has the wrong shape");
            require(self.shape == Shape::piecewise, "a logistic term has no corners");
            Released released;
            corners(terms, x.data(), t.data(), threads, room.data(), away.data(), there.data());
          },
          nb::arg("x"), nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("threads"),
          nb::arg("room"), nb::arg("away"), nb::arg("there"))
      .def(
          "fenchel_young",
          [](const Term& self, Table x, Table g, std::optional<Table> centers, std::optional<Vector> weights,
             In<bool, 1> which, Out<double, 1> out) {
            const Terms terms = table_of(self, x, centers, weights);
            require(g.shape(0) == terms.rows && g.shape(1) == terms.columns, "g has the wrong shape");
            require(which.shape(0) == terms.rows && out.shape(0) == terms.columns,
                    "which or output has the wrong length");
            Released released;
            fenchel_young(terms, x.data(), g.data(), which.data(), out.data());
          },
          nb::arg("x"), nb::arg("g"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("which"),
          nb::arg("out"))
      .def(
          "sums",
          [](const Term& self, Table t, std::optional<Table> centers, std::optional<Vector> weights, bool conjugate,
             std::size_t threads, Out<double, 1> out) {
            const Terms terms = table_of(self, t, centers, weights);
            require(out.shape(0) == terms.columns, "output has the wrong length");
            Released released;
            sums(terms, t.data(), conjugate, threads, out.data());
          },
          nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("conjugate"), nb::arg("threads"),
          nb::arg("out"))
      .def(
          "along",
          [](const Term& self, Table t, Table way, double length, std::optional<Table> centers,
             std::optional<Vector> weights, std::size_t threads, Out<double, 1> out) {
            const Terms terms = table_of(self, t, centers, weights);
            require(terms.columns == 1 && way.shape(0) == terms.rows && way.shape(1) == 1, "a line has one column");
            require(out.shape(0) == 1 || out.shape(0) == 2, "output has the wrong length");
            Released released;
            along(terms, t.data(), way.data(), length, out.shape(0) == 2, threads, out.data());
          },
          nb::arg("t"), nb::arg("way"), nb::arg("length"), nb::arg("centers").none(), nb::arg("weights").none(),
          nb::arg("threads"), nb::arg("out"));
}

}  // namespace coordwise::binding
