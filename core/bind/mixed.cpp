// Runs on terms that differ from place to place.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <tuple>
#include <type_traits>

#include "mixed.hpp"
#include "plans.hpp"
#include "streams.hpp"

namespace coordwise::binding {

namespace {

using Codes = In<std::uint8_t, 1>;
using Clock = std::chrono::steady_clock;

// Terms as Python has them: kinds with codes, centres and weights, or an object with methods prox(i, k, rhs, kappa) and
// derivatives(places, k, v).
using Kinds = std::tuple<std::vector<Term>, std::optional<Codes>, std::optional<Table>, std::optional<Vector>>;

class ForeignTerms final : public VariedTerms {
 public:
  ForeignTerms(nb::object of, std::size_t k) : of_(std::move(of)), k_(k) {}
  ~ForeignTerms() override {
    Acquired acquired;
    of_.reset();
  }

  double prox(std::uint32_t i, double rhs, double kappa) const override {
    Acquired acquired;
    return nb::cast<double>(of_.attr("prox")(i, k_, rhs, kappa));
  }
  double conjugate_gradient(std::uint32_t, double) const override { return 0; }  // they enter by their proximal step
  void derivatives(const std::uint32_t* places, const double* v, std::size_t count, double* out) const override {
    Acquired acquired;
    const nb::object at = copied(places, count), scores = copied(v, count);
    const nb::object found = of_.attr("derivatives")(at, k_, scores);
    const auto slopes = nb::cast<Vector>(found);
    require(slopes.shape(0) == count, "derivatives have the wrong length");
    std::copy(slopes.data(), slopes.data() + count, out);
  }

 private:
  template <class T>
  static nb::object copied(const T* from, std::size_t count) {
    return nb::cast(nb::ndarray<nb::numpy, const T, nb::ndim<1>>(from, {count}), nb::rv_policy::copy);
  }

  nb::object of_;
  std::size_t k_;
};

// The terms of output k, checked.
std::shared_ptr<const VariedTerms> terms_of(nb::handle given, std::size_t count, std::size_t outputs, std::size_t k) {
  if (!nb::isinstance<nb::tuple>(given)) return std::make_shared<ForeignTerms>(nb::borrow(given), k);
  const auto owner = std::make_shared<const Kinds>(nb::cast<Kinds>(given));
  const auto& [kinds, codes, centers, weights] = *owner;
  require(!kinds.empty() && (codes || kinds.size() == 1), "several kinds of terms need codes");
  auto terms = std::make_shared<MixedTerms>();
  terms->kinds = kinds;
  terms->stride = outputs;
  terms->owner = owner;
  if (const double* from = pointer(centers, count, outputs, "centers have the wrong shape")) terms->centers = from + k;
  terms->weights = pointer(weights, count, "weights have the wrong length");
  if (!codes) return terms;
  require(codes->shape(0) == count, "codes have the wrong length");
  for (std::size_t i = 0; i < count; ++i) require(codes->data()[i] < kinds.size(), "a code is out of range");
  terms->codes = codes->data();
  return terms;
}

// One run per output: outputs do not depend on each other, and all follow the same stream.
struct Outputs {
  Outputs() = default;
  Outputs(Outputs&&) = default;
  Outputs(const Outputs&) = delete;

  std::vector<nb::object> held;
  std::size_t count, width;
  std::vector<std::unique_ptr<MixedEngine>> engines;

  void run(std::int64_t max_steps, std::int64_t max_entries, double seconds) {
    constexpr std::int64_t steps = 1 << 14, entries = 1 << 20;  // between two looks at the clock and at signals
    const auto until = Clock::now() + std::chrono::duration<double>(seconds);
    const std::int64_t last_step = first().steps() + max_steps, last_entry = first().entries() + max_entries;
    while (first().steps() < last_step && first().entries() < last_entry) {
      {
        Released released;
        const std::int64_t few = std::min(last_step - first().steps(), steps);
        const std::int64_t little = std::min(last_entry - first().entries(), entries);
        for (const auto& engine : engines) engine->run(few, little);
      }
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (seconds >= 0 && Clock::now() >= until) return;
    }
  }

  const MixedEngine& first() const { return *engines[0]; }

  template <class Body>
  void each(Body body) const {
    for (std::size_t k = 0; k < engines.size(); ++k) body(*engines[k], k);
  }
  template <class Array>
  void check(const Array& x, std::size_t rows) const {
    require(x.shape(0) == rows && x.shape(1) == engines.size(), "a table has the wrong shape");
  }
};

}  // namespace

void bind_mixed(nb::module_& m) {
  nb::class_<Outputs>(m, "MixedRun")
      .def("run", &Outputs::run, nb::arg("max_steps"), nb::arg("max_entries"), nb::arg("seconds"))
      .def("restart", [](Outputs& self) { self.each([](MixedEngine& e, std::size_t) { e.restart(); }); })
      .def("resync", [](Outputs& self) { self.each([](MixedEngine& e, std::size_t) { e.resync(); }); })
      .def(
          "replan",
          [](Outputs& self, bool accelerated, bool prox, Vector step, std::optional<Vector> theta,
             std::optional<Vector> move, int rule, double tau, double drift, double theta_scale, double couple,
             double fold_below, std::uint64_t seed, std::optional<In<std::uint32_t, 2>> cells,
             std::optional<In<std::uint32_t, 1>> members) {
            const Plan plan = plan_of(self.count, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale,
                                      couple, fold_below);
            const IndexStream stream(seed, static_cast<std::uint32_t>(self.count), alias_table(cells, self.count),
                                     members_of(members, self.count));
            self.each([&](MixedEngine& e, std::size_t) { e.replan(plan, stream); });
          },
          nb::kw_only(), nb::arg("accelerated"), nb::arg("prox"), nb::arg("step"), nb::arg("theta").none(),
          nb::arg("move").none(), nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"),
          nb::arg("couple"), nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none())
      .def("settle",
           [](Outputs& self, In<std::uint32_t, 1> which, Table x) {
             self.check(x, self.count);
             for (std::size_t t = 0; t < which.shape(0); ++t) {
               require(which.data()[t] < self.count, "an index is out of range");
             }
             self.each([&](MixedEngine& e, std::size_t k) { e.settle(which.data(), which.shape(0), x.data() + k); });
           })
      .def("point",
           [](const Outputs& self, Out<double, 2> out) {
             self.check(out, self.count);
             self.each([&](MixedEngine& e, std::size_t k) { e.point(out.data() + k); });
           })
      .def("image",
           [](const Outputs& self, Out<double, 2> out) {
             self.check(out, self.width);
             self.each([&](MixedEngine& e, std::size_t k) { e.image(out.data() + k); });
           })
      .def_prop_ro("steps", [](const Outputs& self) { return self.first().steps(); })
      .def_prop_ro("entries", [](const Outputs& self) { return self.first().entries(); });

  m.def(
      "start_mixed",
      [](nb::object matrix, nb::object coordinates, std::optional<double> gain, nb::object image, bool accelerated,
         bool prox, Vector step, std::optional<Vector> theta, std::optional<Vector> move, int rule, double tau,
         double drift, double theta_scale, double couple, double fold_below, std::uint64_t seed,
         std::optional<In<std::uint32_t, 2>> cells, std::optional<In<std::uint32_t, 1>> members, Table x0,
         std::optional<Table> image0) {
        const Matrix& of = nb::cast<const Matrix&>(matrix);
        const std::size_t count = of.count(), width = of.width(), outputs = x0.shape(1);
        require(count > 0 && outputs > 0 && x0.shape(0) == count, "nothing to solve, or x0 has the wrong shape");
        require(gain.has_value() == image.is_none(), "give gain or image");
        const double* offset = pointer(image0, width, outputs, "image0 has the wrong shape");
        const Plan plan =
            plan_of(count, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale, couple, fold_below);
        const IndexStream stream(seed, static_cast<std::uint32_t>(count), alias_table(cells, count),
                                 members_of(members, count));
        Outputs run;
        run.count = count, run.width = width;
        run.held = {matrix, coordinates, image};  // and with these the arrays that are pointed into
        if (image0) run.held.push_back(nb::cast(*image0));
        for (std::size_t k = 0; k < outputs; ++k) {
          MixedProblem problem;
          problem.stride = outputs;
          problem.gain = gain.value_or(1.0);
          problem.coordinates = terms_of(coordinates, count, outputs, k);
          if (!image.is_none()) problem.image = terms_of(image, width, outputs, k);
          problem.offset = offset ? offset + k : nullptr;
          std::visit(
              [&](const auto& rows) {
                using Rows = std::decay_t<decltype(rows)>;
                run.engines.push_back(std::make_unique<MixedRun<Rows>>(rows, problem, plan, stream, x0.data() + k));
              },
              of.rows);
        }
        return run;
      },
      nb::kw_only(), nb::arg("matrix"), nb::arg("coordinates"), nb::arg("gain").none(), nb::arg("image").none(),
      nb::arg("accelerated"), nb::arg("prox"), nb::arg("step"), nb::arg("theta").none(), nb::arg("move").none(),
      nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"), nb::arg("couple"),
      nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none(), nb::arg("x0"),
      nb::arg("image0").none());
}

}  // namespace coordwise::binding
