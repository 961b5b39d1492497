// Runs on compiled functions from outside, and where such functions are.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <chrono>
#include <memory>
#include <string>
#include <tuple>

#include "callable_run.hpp"
#include "polling.hpp"
#include "streams.hpp"

namespace coordwise::binding {

namespace {

using Clock = std::chrono::steady_clock;
using Given = std::tuple<std::uintptr_t, std::uintptr_t, bool>;  // the fields of an address

Address address_of(const Given& given) {
  require(std::get<0>(given) != 0, "a function has no address");
  return {std::get<0>(given), std::get<1>(given), std::get<2>(given)};
}

// Calls body(ends) with the GIL released, where ends() tells whether the time is up or a signal has come, whose handler
// may raise; returns what body does.
template <class Body>
auto watched(double seconds, Body body) {
  const bool limited = seconds >= 0 && seconds < 1e9;
  const Clock::time_point begun = Clock::now();
  const auto limit = std::chrono::duration<double>(limited ? seconds : 0.0);
  Clock::time_point heard = begun;
  bool signalled = false;
  Polling polling([&](Clock::time_point now) {
    if (limited && now - begun >= limit) return true;
    if (now - heard < std::chrono::milliseconds(50)) return false;
    heard = now;
    Acquired acquired;
    signalled = PyErr_CheckSignals() != 0;
    return signalled;
  });
  const auto found = [&] {
    Released released;
    return body([&] { return polling.ends(); });
  }();
  if (signalled) throw nb::python_error();
  return found;
}

struct FunctionRun {
  std::vector<nb::object> held;
  std::size_t count;
  std::vector<double> L;
  std::unique_ptr<CallableEngine> engine;
};

struct Pattern {
  const std::int64_t* places;
  const std::int64_t* starts;
};

// The arrays of a pattern of entries of x, checked.
Pattern pattern_of(const In<std::int64_t, 1>& places, const In<std::int64_t, 1>& starts, std::size_t count) {
  require(starts.shape(0) == count + 1 && starts.data()[0] == 0, "reads has the wrong shape");
  for (std::size_t i = 0; i < count; ++i) require(starts.data()[i] <= starts.data()[i + 1], "reads has bad starts");
  require(static_cast<std::size_t>(starts.data()[count]) <= places.shape(0), "reads has too few places");
  for (std::size_t t = 0; t < places.shape(0); ++t) {
    require(places.data()[t] >= 0 && static_cast<std::size_t>(places.data()[t]) < count, "reads has bad places");
  }
  return {places.data(), starts.data()};
}

}  // namespace

void bind_callables(nb::module_& m) {
  // Name, address and context of a capsule: signature, function and user data by scipy's convention.
  m.def("capsule", [](nb::object given) {
    require(PyCapsule_CheckExact(given.ptr()), "not a capsule");
    const char* name = PyCapsule_GetName(given.ptr());
    void* function = PyCapsule_GetPointer(given.ptr(), name);
    if (!function) throw nb::python_error();
    void* data = PyCapsule_GetContext(given.ptr());
    return std::make_tuple(std::string(name ? name : ""), reinterpret_cast<std::uintptr_t>(function),
                           reinterpret_cast<std::uintptr_t>(data));
  });

  m.def("value_at", [](const Given& function, Vector x) {
    const ValueOfPoint value(address_of(function));
    Released released;
    return value(static_cast<std::int64_t>(x.shape(0)), x.data());
  });

  nb::class_<FunctionRun>(m, "FunctionRun")
      .def("run",
           [](FunctionRun& self, std::int64_t steps, double seconds) {
             return watched(seconds, [&](auto ends) {
               self.engine->run(steps, ends);
               return self.engine->steps();
             });
           })
      .def_prop_ro("steps", [](const FunctionRun& self) { return self.engine->steps(); })
      .def("point",
           [](const FunctionRun& self, Out<double, 1> out) {
             require(out.shape(0) == self.count, "output has the wrong length");
             self.engine->point(out.data());
           })
      .def("error", [](FunctionRun& self, Vector x) {
        require(x.shape(0) == self.count, "x has the wrong length");
        return watched(-1.0, [&](auto ends) { return self.engine->error(x.data(), self.L.data(), ends); });
      });

  m.def(
      "start_functions",
      [](const Given& partial, std::optional<Given> prox, nb::object matrix,
         std::optional<std::pair<In<std::int64_t, 1>, In<std::int64_t, 1>>> reads, Vector L, Vector x0,
         In<std::uint32_t, 2> cells, std::uint64_t seed, bool accelerated, Vector step, std::optional<Vector> theta,
         int rule, double tau, double drift, double theta_scale, double couple, double fold_below) {
        const std::size_t count = L.shape(0);
        require(count > 0 && count < most && x0.shape(0) == count, "x0 has the wrong length");
        require(step.shape(0) == count && (theta || !accelerated), "step has the wrong length, or there is no theta");
        Plan plan;
        plan.accelerated = accelerated;
        plan.step = step.data();
        plan.theta = pointer(theta, count, "theta has the wrong length");
        plan.momentum.rule = static_cast<Rule>(rule);
        plan.momentum.tau0 = tau, plan.momentum.drift = drift;
        plan.momentum.theta0 = theta_scale, plan.momentum.couple0 = couple;
        plan.fold_below = fold_below;
        const IndexStream stream(seed, static_cast<std::uint32_t>(count), alias_table(cells, count));
        std::optional<ProxOfCoordinate> step_of;
        if (prox) step_of.emplace(address_of(*prox));
        FunctionRun run;
        run.count = count;
        run.L.assign(L.data(), L.data() + count);
        auto begin = [&](auto view) {
          run.engine =
              std::make_unique<CallableRun<decltype(view)>>(std::move(view), step_of, plan, count, stream, x0.data());
        };
        const Address at = address_of(partial);
        if (!matrix.is_none()) {
          run.held.push_back(matrix);
          const Matrix& image = nb::cast<const Matrix&>(matrix);
          require(image.count() == count, "B has the wrong number of columns");
          std::visit([&](const auto& rows) { begin(ImageOfPoint(at, rows)); }, image.rows);
        } else if (reads) {
          const Pattern pattern = pattern_of(reads->first, reads->second, count);
          run.held.push_back(nb::cast(reads->first)), run.held.push_back(nb::cast(reads->second));
          begin(PartOfPoint(at, count, pattern.places, pattern.starts));
        } else {
          begin(WholePoint(at, count, !accelerated));
        }
        return run;
      },
      nb::kw_only(), nb::arg("partial"), nb::arg("prox").none(), nb::arg("matrix").none(), nb::arg("reads").none(),
      nb::arg("L"), nb::arg("x0"), nb::arg("cells"), nb::arg("seed"), nb::arg("accelerated"), nb::arg("step"),
      nb::arg("theta").none(), nb::arg("rule"), nb::arg("tau"), nb::arg("drift"), nb::arg("theta_scale"),
      nb::arg("couple"), nb::arg("fold_below"));
}

}  // namespace coordwise::binding
