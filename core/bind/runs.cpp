// Runs of the kernel.
#include <chrono>
#include <memory>

#include "engine.hpp"
#include "streams.hpp"

namespace coordwise::binding {

namespace {

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

}  // namespace

void bind_runs(nb::module_& m) {
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
         std::optional<Table> x0, std::optional<Table> image0, std::optional<Table> known) {
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
        Start from;
        from.x = pointer(x0, count, outputs, "x0 has the wrong shape");
        from.offset = pointer(image0, width, outputs, "image0 has the wrong shape");
        from.image = pointer(known, width, outputs, "known has the wrong shape");
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
              std::visit([&](const auto& rows) { return make_engine(rows, problem, plan, stream, from); }, of.rows);
        }
        return run;
      },
      nb::kw_only(), nb::arg("matrix"), nb::arg("outputs"), nb::arg("threads"), nb::arg("coordinate"),
      nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("gain").none(), nb::arg("minus_last") = false,
      nb::arg("image").none(), nb::arg("image_centers").none(), nb::arg("image_weights").none(), nb::arg("accelerated"),
      nb::arg("prox"), nb::arg("pack"), nb::arg("step"), nb::arg("theta").none(), nb::arg("move").none(),
      nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"), nb::arg("couple"),
      nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none(), nb::arg("x0").none(),
      nb::arg("image0").none(), nb::arg("known").none());
}

}  // namespace coordwise::binding
