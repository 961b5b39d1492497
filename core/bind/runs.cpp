// Runs of the kernel.
#include <chrono>
#include <memory>

#include "engine.hpp"
#include "plans.hpp"
#include "streams.hpp"

namespace coordwise::binding {

namespace {

// Blocks of coordinates as Python has them (coordwise.kernels.Blocks), checked; they point into the arrays.
Blocks blocks_of(std::size_t count, const In<std::uint32_t, 1>& starts, const In<std::uint32_t, 1>& order,
                 const Vector& kinks, double feature_kink) {
  require(starts.shape(0) == kinks.shape(0) + 1 && order.shape(0) == count, "the arrays of the blocks do not fit");
  const std::size_t blocks = kinks.shape(0);
  require(starts.data()[0] == 0 && starts.data()[blocks] == count, "blocks must be of all coordinates");
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::uint32_t from = starts.data()[b], to = starts.data()[b + 1];
    require(from < to && to - from <= most_in_block && to <= count, "a block must have 1 to 64 coordinates");
  }
  std::vector<char> seen(count, 0);
  for (std::size_t t = 0; t < count; ++t) {
    require(order.data()[t] < count && !seen[order.data()[t]], "a coordinate must be in one block");
    seen[order.data()[t]] = 1;
  }
  return {static_cast<std::uint32_t>(blocks), starts.data(), order.data(), kinks.data(), feature_kink};
}

struct Run {
  nb::object matrix;
  std::vector<nb::object> held;
  std::size_t count, width, outputs, drawn;  // coordinates; what a plan has entries for: them, or blocks of them
  bool accelerated;
  std::unique_ptr<Engine> engine;

  // Steps with the GIL released; signals and the clock are looked at between blocks of steps.
  bool run(std::int64_t max_steps, std::int64_t max_entries, double seconds) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    bool late = false, signalled = false;
    {
      Released released;
      engine->run(max_steps, max_entries, [&] {
        late = seconds >= 0 && std::chrono::steady_clock::now() >= until;
        Acquired acquired;
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
            const Plan plan = plan_of(self.drawn, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale,
                                      couple, fold_below);
            const IndexStream stream(seed, static_cast<std::uint32_t>(self.drawn), alias_table(cells, self.drawn),
                                     members_of(members, self.drawn));
            Released released;
            self.engine->replan(plan, stream);
          },
          nb::kw_only(), nb::arg("accelerated"), nb::arg("prox"), nb::arg("step"), nb::arg("theta").none(),
          nb::arg("move").none(), nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"),
          nb::arg("couple"), nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none())
      .def("settle",
           [](Run& self, In<std::uint32_t, 1> which, Table x) {
             require(x.shape(0) == self.count && x.shape(1) == self.outputs, "x has the wrong shape");
             for (std::size_t t = 0; t < which.shape(0); ++t) {
               require(which.data()[t] < self.drawn, "an index is out of range");
             }
             Released released;
             self.engine->settle(which.data(), which.shape(0), x.data());
           })
      .def("resync",
           [](Run& self) {
             Released released;
             self.engine->resync();
           })
      .def("point",
           [](const Run& self, Out<double, 2> out, bool inside) {
             self.table(out, self.count);
             self.engine->point(out.data(), inside);
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
         std::optional<Table> x0, std::optional<Table> image0, std::optional<Table> known,
         std::optional<In<std::uint32_t, 1>> block_starts, std::optional<In<std::uint32_t, 1>> block_order,
         std::optional<Vector> block_kinks, double feature_kink) {
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
        std::optional<Blocks> blocks;
        if (block_starts) {
          require(block_order && block_kinks, "blocks need starts, order and kinks");
          require(outputs == 1 && problem.part != Part::symmetric && !centers && !weights,
                  "blocks have one output, no symmetric matrix, and terms without centers and weights");
          blocks = blocks_of(count, *block_starts, *block_order, *block_kinks, feature_kink);
        }
        const std::size_t drawn = blocks ? blocks->count : count;
        Plan plan =
            plan_of(drawn, accelerated, prox, step, theta, move, rule, tau, drift, theta_scale, couple, fold_below);
        plan.pack = static_cast<Pack>(pack);
        const IndexStream stream(seed, static_cast<std::uint32_t>(drawn), alias_table(cells, drawn),
                                 members_of(members, drawn));
        Start from;
        from.x = pointer(x0, count, outputs, "x0 has the wrong shape");
        from.offset = pointer(image0, width, outputs, "image0 has the wrong shape");
        from.image = pointer(known, width, outputs, "known has the wrong shape");
        Run run;
        run.matrix = matrix;
        run.count = count, run.width = width, run.outputs = outputs, run.drawn = drawn;
        run.accelerated = accelerated;
        auto hold = [&](const auto& array) {
          if (array) run.held.push_back(nb::cast(*array));
        };
        hold(centers), hold(weights), hold(image_centers), hold(image_weights);
        {
          Released released;
          run.engine = std::visit(
              [&](const auto& rows) {
                return blocks ? make_block_engine(rows, problem, *blocks, plan, stream, from)
                              : make_engine(rows, problem, plan, stream, from);
              },
              of.rows);
        }
        return run;
      },
      nb::kw_only(), nb::arg("matrix"), nb::arg("outputs"), nb::arg("threads"), nb::arg("coordinate"),
      nb::arg("centers").none(), nb::arg("weights").none(), nb::arg("gain").none(), nb::arg("minus_last") = false,
      nb::arg("image").none(), nb::arg("image_centers").none(), nb::arg("image_weights").none(), nb::arg("accelerated"),
      nb::arg("prox"), nb::arg("pack"), nb::arg("step"), nb::arg("theta").none(), nb::arg("move").none(),
      nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"), nb::arg("couple"),
      nb::arg("fold_below"), nb::arg("seed"), nb::arg("cells").none(), nb::arg("members").none(), nb::arg("x0").none(),
      nb::arg("image0").none(), nb::arg("known").none(), nb::arg("block_starts").none() = nb::none(),
      nb::arg("block_order").none() = nb::none(), nb::arg("block_kinks").none() = nb::none(),
      nb::arg("feature_kink") = 0.0);
}

}  // namespace coordwise::binding
