// Python bindings.  Shapes, dtypes and lengths are checked here and in coordwise/rows.py, once; the core trusts them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <optional>
#include <stdexcept>

#include "alias.hpp"
#include "gram.hpp"
#include "matrix.hpp"
#include "svmlight.hpp"
#include "tables.hpp"
#include "transpose.hpp"

namespace nb = nanobind;
using namespace coordwise;

namespace {

template <class T, int D>
using In = nb::ndarray<const T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
template <class T, int D>
using Out = nb::ndarray<T, nb::ndim<D>, nb::c_contig, nb::device::cpu>;
using Vector = In<double, 1>;
using Table = In<double, 2>;

void require(bool ok, const char* what) {
  if (!ok) throw std::invalid_argument(what);
}

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

constexpr std::size_t most = 0xffffffffULL;  // coordinates and entries of one coordinate are counted in 32 bits

template <class V, class I>
Matrix sparse(In<V, 1> values, In<I, 1> places, In<I, 1> starts, std::size_t width, std::size_t threads) {
  require(starts.shape(0) >= 1, "indptr is empty");
  const std::size_t count = starts.shape(0) - 1;
  require(count < most && width < most, "more than 2^32 - 2 rows or columns");
  require(values.shape(0) == places.shape(0), "data and indices differ in length");
  bool canonical = true;
  const std::string wrong = faults(places.data(), places.shape(0), starts.data(), count, width, threads, canonical);
  if (!wrong.empty()) throw std::invalid_argument(wrong);
  require(canonical || distinct(places.data(), starts.data(), count, width), "a row has two entries at one place");
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
  nb::gil_scoped_release release;
  transpose(*rows, threads, values.data(), places.data(), starts.data());
}

Term term(int shape, double quad, double kink, double dead, double lower, double upper, bool mirrored, double scale) {
  Term t;
  t.shape = static_cast<Shape>(shape);
  t.quad = quad, t.kink = kink, t.dead = dead, t.lower = lower, t.upper = upper;
  t.mirrored = mirrored, t.scale = scale;
  return t;
}

const double* pointer(const std::optional<Table>& table, std::size_t rows, std::size_t columns, const char* what) {
  if (!table) return nullptr;
  require(table->shape(0) == rows && table->shape(1) == columns, what);
  return table->data();
}

const double* pointer(const std::optional<Vector>& vector, std::size_t length, const char* what) {
  if (!vector) return nullptr;
  require(vector->shape(0) == length, what);
  return vector->data();
}

std::vector<AliasCell> alias_table(const std::optional<In<std::uint32_t, 2>>& cells, std::size_t count) {
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
std::vector<std::uint32_t> members_of(const std::optional<In<std::uint32_t, 1>>& members, std::size_t count) {
  if (!members) return {};
  require(members->shape(0) > 0, "no members");
  std::vector<std::uint32_t> found(members->data(), members->data() + members->shape(0));
  for (std::uint32_t i : found) require(i < count, "a member is out of range");
  return found;
}

// The plan as Python has it (coordwise.kernels.Plan); it points into the arrays.
Plan plan_of(std::size_t count, bool accelerated, bool prox, const Vector& step, const std::optional<Vector>& theta,
             const std::optional<Vector>& move, int rule, double tau, double drift, double theta_scale, double couple,
             double fold_below) {
  Plan plan;
  plan.accelerated = accelerated;
  plan.prox = prox;
  require(step.shape(0) == count, "step has the wrong length");
  plan.step = step.data();
  plan.theta = pointer(theta, count, "theta has the wrong length");
  plan.move = pointer(move, count, "move has the wrong length");
  require(!accelerated || plan.theta, "an accelerated run needs theta");
  plan.momentum.rule = static_cast<Rule>(rule);
  plan.momentum.tau0 = tau;
  plan.momentum.drift = drift;
  plan.momentum.theta0 = theta_scale;
  plan.momentum.couple0 = couple;
  plan.fold_below = fold_below;
  return plan;
}

struct Run {
  nb::object matrix;
  std::vector<nb::object> held;
  std::size_t count, width, outputs;
  bool accelerated;
  std::unique_ptr<Engine> engine;

  // Steps with the GIL released; signals and the clock are looked at between blocks of steps.
  bool run(std::int64_t max_steps, std::int64_t max_entries, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    bool late = false, signalled = false;
    {
      nb::gil_scoped_release release;
      engine->run(max_steps, max_entries, [&] {
        late = seconds >= 0 && std::chrono::steady_clock::now() >= until;
        nb::gil_scoped_acquire acquire;
        signalled = PyErr_CheckSignals() != 0;
        return late || signalled;
      });
    }
    if (signalled) throw nb::python_error();
    return !late;
  }

  void table(const Out<double, 2>& out, std::size_t rows) const {
    require(out.shape(0) == rows && out.shape(1) == outputs, "output has the wrong shape");
  }
};

// An array that takes over the memory of what the parser grew.
template <class T>
nb::object as_array(Growing<T>& grown) {
  auto* held = new Growing<T>(std::move(grown));
  nb::capsule owner(held, [](void* p) noexcept { delete static_cast<Growing<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(held->data(), {held->size()}, owner));
}

using Sums = Out<double, 2>;  // K x 6: the fields of Certificate in order

template <class Fill>
void fill_certificates(const Sums& out, std::size_t outputs, Fill fill) {
  require(out.shape(0) == outputs && out.shape(1) == 6, "certificate output must be K x 6");
  std::vector<Certificate> found(outputs);
  {
    nb::gil_scoped_release release;
    fill(found.data());
  }
  double* to = out.data();
  for (const Certificate& c : found) {
    for (double v : {c.value, c.conjugate, c.fenchel_young, c.gradient2, c.lowest, c.highest}) *to++ = v;
  }
}

// Terms at the entries of t.
Terms table_of(const Term& term, const Table& t, const std::optional<Table>& centers,
               const std::optional<Vector>& weights) {
  const std::size_t rows = t.shape(0), columns = t.shape(1);
  return {term, rows, columns, pointer(centers, rows, columns, "centers have the wrong shape"),
          pointer(weights, rows, "weights have the wrong length")};
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "Compiled core of coordwise; use it through coordwise.kernels.";

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
            nb::gil_scoped_release release;
            derivatives(terms, t.data(), second, threads, out.data());
          },
          nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("second"), nb::arg("threads"),
          nb::arg("out"))
      .def(
          "corners",
          [](const Term& self, Table x, Table t, std::optional<Table> centers, std::optional<Vector> weights,
             Out<double, 2> slope, Out<double, 2> away, Out<double, 2> there) {
            const Terms terms = table_of(self, t, centers, weights);
            for (const auto& out : {slope, away, there}) {
              require(out.shape(0) == terms.rows && out.shape(1) == terms.columns, "output has the wrong shape");
            }
            require(x.shape(0) == terms.rows && x.shape(1) == terms.columns, "x has the wrong shape");
            nb::gil_scoped_release release;
            corners(terms, x.data(), t.data(), slope.data(), away.data(), there.data());
          },
          nb::arg("x"), nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("slope"),
          nb::arg("away"), nb::arg("there"))
      .def(
          "fenchel_young",
          [](const Term& self, Table x, Table g, std::optional<Table> centers, std::optional<Vector> weights,
             In<bool, 1> which, Out<double, 1> out) {
            const Terms terms = table_of(self, x, centers, weights);
            require(g.shape(0) == terms.rows && g.shape(1) == terms.columns, "g has the wrong shape");
            require(which.shape(0) == terms.rows && out.shape(0) == terms.columns,
                    "which or output has the wrong length");
            nb::gil_scoped_release release;
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
            nb::gil_scoped_release release;
            sums(terms, t.data(), conjugate, threads, out.data());
          },
          nb::arg("t"), nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("conjugate"), nb::arg("threads"),
          nb::arg("out"));

  nb::class_<Matrix>(m, "Matrix")
      .def_prop_ro("count", &Matrix::count)
      .def_prop_ro("width", &Matrix::width)
      .def(
          "norms2",
          [](const Matrix& self, std::optional<Vector> weights, std::size_t threads, Out<double, 1> out) {
            require(out.shape(0) == self.count(), "output has the wrong length");
            const double* w = pointer(weights, self.width(), "weights have the wrong length");
            nb::gil_scoped_release release;
            std::visit([&](const auto& rows) { norms2(rows, w, threads, out.data()); }, self.rows);
          },
          nb::arg("weights").none(), nb::arg("threads"), nb::arg("out"))
      .def(
          "squares",
          [](const Matrix& self, std::optional<Vector> weights, Out<double, 1> out) {
            require(out.shape(0) == self.width(), "output has the wrong length");
            const double* w = pointer(weights, self.count(), "weights have the wrong length");
            nb::gil_scoped_release release;
            std::fill(out.data(), out.data() + out.shape(0), 0.0);
            std::visit([&](const auto& rows) { squares(rows, w, out.data()); }, self.rows);
          },
          nb::arg("weights").none(), nb::arg("out"))
      .def(
          "gram",
          [](const Matrix& self, Vector weights, std::optional<Table> beside, std::size_t threads, Out<double, 2> out) {
            const std::size_t extra = beside ? beside->shape(1) : 0, size = self.width() + extra;
            require(weights.shape(0) == self.count(), "weights have the wrong length");
            const double* more = pointer(beside, self.count(), extra, "the columns beside have the wrong shape");
            require(out.shape(0) == size && out.shape(1) == size, "output has the wrong shape");
            nb::gil_scoped_release release;
            std::visit([&](const auto& rows) { gram(rows, weights.data(), more, extra, threads, out.data()); },
                       self.rows);
          },
          nb::arg("weights"), nb::arg("beside").none(), nb::arg("threads"), nb::arg("out"))
      .def("transposed", &transposed<double, std::int32_t>)
      .def("transposed", &transposed<float, std::int32_t>)
      .def("transposed", &transposed<double, std::int64_t>)
      .def("transposed", &transposed<float, std::int64_t>)
      .def("dots",
           [](const Matrix& self, Table vectors, std::size_t threads, Out<double, 2> out) {
             require(
                 vectors.shape(0) == self.width() && out.shape(0) == self.count() && out.shape(1) == vectors.shape(1),
                 "dots: shapes do not fit");
             nb::gil_scoped_release release;
             std::visit([&](const auto& rows) { dots(rows, vectors.data(), vectors.shape(1), threads, out.data()); },
                        self.rows);
           })
      .def("combine",
           [](const Matrix& self, Table x, std::size_t threads, Out<double, 2> out) {
             require(x.shape(0) == self.count() && out.shape(0) == self.width() && out.shape(1) == x.shape(1),
                     "combine: shapes do not fit");
             nb::gil_scoped_release release;
             std::visit([&](const auto& rows) { combine(rows, x.data(), x.shape(1), threads, out.data()); }, self.rows);
           })
      .def(
          "certificate",
          [](const Matrix& self, const Term& term, std::optional<Table> centers, std::optional<Vector> weights, Table x,
             Table omega, Sums out) {
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
                          rows.count(), term, omega.data() + first, outputs, 1,
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
          nb::arg("out"));

  m.def("sparse", &sparse<double, std::int32_t>);
  m.def("sparse", &sparse<float, std::int32_t>);
  m.def("sparse", &sparse<double, std::int64_t>);
  m.def("sparse", &sparse<float, std::int64_t>);
  m.def("dense", &dense<double>);
  m.def("dense", &dense<float>);

  nb::class_<Run>(m, "Run")
      .def("run", &Run::run, nb::arg("max_steps"), nb::arg("max_entries"), nb::arg("seconds"))
      .def("restart", [](Run& self) { self.engine->restart(); })
      .def(
          "replan",
          [](Run& self, bool accelerated, bool prox, Vector step, std::optional<Vector> theta,
             std::optional<Vector> move, int rule, double tau, double drift, double theta_scale, double couple,
             double fold_below, std::uint64_t seed, std::optional<In<std::uint32_t, 2>> cells,
             std::optional<In<std::uint32_t, 1>> members) {
            require(accelerated == self.accelerated, "a run stays accelerated, or plain");
            const Plan plan = plan_of(self.count, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale,
                                      couple, fold_below);
            const IndexStream stream(seed, static_cast<std::uint32_t>(self.count), alias_table(cells, self.count),
                                     members_of(members, self.count));
            nb::gil_scoped_release release;
            self.engine->replan(plan, stream);
          },
          nb::kw_only(), nb::arg("accelerated"), nb::arg("prox"), nb::arg("step"), nb::arg("theta").none(),
          nb::arg("move").none(), nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"),
          nb::arg("couple"), nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none())
      .def("settle",
           [](Run& self, In<std::uint32_t, 1> which, Table x) {
             require(x.shape(0) == self.count && x.shape(1) == self.outputs, "x has the wrong shape");
             for (std::size_t t = 0; t < which.shape(0); ++t) {
               require(which.data()[t] < self.count, "an index is out of range");
             }
             nb::gil_scoped_release release;
             self.engine->settle(which.data(), which.shape(0), x.data());
           })
      .def("resync",
           [](Run& self) {
             nb::gil_scoped_release release;
             self.engine->resync();
           })
      .def("point",
           [](const Run& self, Out<double, 2> out) {
             self.table(out, self.count);
             self.engine->point(out.data());
           })
      .def("image",
           [](const Run& self, Out<double, 2> out) {
             self.table(out, self.width);
             self.engine->image(out.data());
           })
      .def(
          "certificate",
          [](const Run& self, std::optional<Table> omega, Sums out, std::optional<Out<double, 2>> g) {
            const double* at = pointer(omega, self.width, self.outputs, "omega has the wrong shape");
            if (g) self.table(*g, self.count);
            fill_certificates(out, self.outputs, [&](Certificate* found) {
              self.engine->certificate(at, found, g ? g->data() : nullptr);
            });
          },
          nb::arg("omega").none(), nb::arg("out"), nb::arg("g").none())
      .def_prop_ro("steps", [](const Run& self) { return self.engine->steps(); })
      .def_prop_ro("entries", [](const Run& self) { return self.engine->entries(); });

  m.def(
      "start",
      [](nb::object matrix, std::size_t outputs, std::size_t threads, const Term& coordinate,
         std::optional<Table> centers, std::optional<Vector> weights, std::optional<double> gain, bool minus_last,
         std::optional<Term> image, std::optional<Table> image_centers, std::optional<Vector> image_weights,
         bool accelerated, bool prox, int pack, Vector step, std::optional<Vector> theta, std::optional<Vector> move,
         int rule, double tau, double drift, double theta_scale, double couple, double fold_below, std::uint64_t seed,
         std::optional<In<std::uint32_t, 2>> cells, std::optional<In<std::uint32_t, 1>> members,
         std::optional<Table> x0, std::optional<Table> image0) {
        const Matrix& of = nb::cast<const Matrix&>(matrix);
        const std::size_t count = of.count(), width = of.width();
        require(count > 0 && outputs > 0, "nothing to solve: no coordinates or no outputs");
        require(!gain || !image, "give gain or image, or neither for a symmetric matrix");
        require(gain || image || count == width, "a symmetric matrix must be square");
        Problem problem;
        problem.outputs = outputs;
        problem.threads = threads;
        problem.coordinate = coordinate;
        problem.centers = pointer(centers, count, outputs, "centers have the wrong shape");
        problem.weights = pointer(weights, count, "weights have the wrong length");
        problem.part = gain ? Part::quadratic : image ? Part::separable : Part::symmetric;
        problem.gain = gain.value_or(1.0);
        problem.minus_last = minus_last;
        if (image) problem.image = *image;
        problem.image_centers = pointer(image_centers, width, outputs, "image_centers have the wrong shape");
        problem.image_weights = pointer(image_weights, width, "image_weights have the wrong length");
        Plan plan =
            plan_of(count, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale, couple, fold_below);
        plan.pack = static_cast<Pack>(pack);
        const IndexStream stream(seed, static_cast<std::uint32_t>(count), alias_table(cells, count),
                                 members_of(members, count));
        const double* x = pointer(x0, count, outputs, "x0 has the wrong shape");
        const double* v = pointer(image0, width, outputs, "image0 has the wrong shape");
        Run run;
        run.matrix = matrix;
        run.count = count, run.width = width, run.outputs = outputs, run.accelerated = accelerated;
        auto hold = [&](const auto& array) {
          if (array) run.held.push_back(nb::cast(*array));
        };
        hold(centers), hold(weights), hold(image_centers), hold(image_weights);
        {
          nb::gil_scoped_release release;
          run.engine =
              std::visit([&](const auto& rows) { return make_engine(rows, problem, plan, stream, x, v); }, of.rows);
        }
        return run;
      },
      nb::kw_only(), nb::arg("matrix"), nb::arg("outputs"), nb::arg("threads"), nb::arg("coordinate"),
      nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("gain").none(), nb::arg("minus_last") = false,
      nb::arg("image").none(), nb::arg("image_centers").none(), nb::arg("image_weights").none(), nb::arg("accelerated"),
      nb::arg("prox"), nb::arg("pack"), nb::arg("step"), nb::arg("theta").none(), nb::arg("move").none(),
      nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"), nb::arg("couple"),
      nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none(), nb::arg("x0").none(),
      nb::arg("image0").none());

  // Arrays of a sparse matrix as a sentence about what is wrong ("" if nothing), and whether its rows are ordered.
  auto inspect = [](auto places, auto starts, std::size_t width) {
    bool canonical = true;
    std::string wrong;
    if (starts.shape(0) == 0) {
      wrong = "indptr is empty";
    } else {
      nb::gil_scoped_release release;
      wrong = faults(places.data(), places.shape(0), starts.data(), starts.shape(0) - 1, width, 1, canonical);
    }
    return std::make_tuple(wrong, canonical);
  };
  m.def("inspect", [inspect](In<std::int32_t, 1> p, In<std::int32_t, 1> s, std::size_t w) { return inspect(p, s, w); });
  m.def("inspect", [inspect](In<std::int64_t, 1> p, In<std::int64_t, 1> s, std::size_t w) { return inspect(p, s, w); });

  auto survey_of = [](const auto& values) {
    double largest = 0;
    nb::gil_scoped_release release;
    const std::int64_t bad = survey(values.data(), values.shape(0), largest);
    return std::make_tuple(bad, largest);
  };
  m.def("fits_single", [](In<double, 1> values) {
    nb::gil_scoped_release release;
    return fits_single(values.data(), values.shape(0));
  });
  m.def("survey", [survey_of](In<double, 1> values) { return survey_of(values); });
  m.def("survey", [survey_of](In<float, 1> values) { return survey_of(values); });

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

  nb::class_<SvmlightParser>(m, "SvmlightParser")
      .def(nb::init<std::int64_t, std::int64_t>(), nb::arg("lowest"), nb::arg("highest"))
      .def("feed",
           [](SvmlightParser& self, const nb::bytes& block) {
             const char* bytes = block.c_str();
             const std::size_t size = block.size();
             nb::gil_scoped_release release;
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
