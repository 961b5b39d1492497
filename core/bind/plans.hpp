// Plans from the arrays and numbers that Python has.
#pragma once

#include "bind.hpp"
#include "engine.hpp"

namespace coordwise::binding {

// The plan as Python has it (coordwise.kernels.Plan); it points into the arrays.
inline Plan plan_of(std::size_t count, bool accelerated, bool prox, const Vector& step,
                    const std::optional<Vector>& theta, const std::optional<Vector>& move, int rule, double tau,
                    double drift, double theta_scale, double couple, double fold_below) {
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

}  // namespace coordwise::binding
