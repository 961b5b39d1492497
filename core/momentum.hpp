// The scalars of the accelerated recursion (linear coupling), one set per step.
//
// With y, z the two sequences, tau the coupling and a the drift,
//     x = tau z + (1 - tau) y,    z_hat = (1 - a) z + a x,
// the combination u = c y + (1 - c) z, c = a (1 - tau) / (a (1 - tau) + tau), does not drift, and z - y shrinks by
// (1 - tau)(1 - a) a step.  So with z - y = s v,
//     y = u - (1 - c) s v,    z = u + c s v,    x = u - s ((1 - tau)(1 - c) - tau c) v,
// only the drawn coordinate of (u, v) changes in a step.  a = tau is Algorithm 1, a = 0 Algorithm 2.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace coordwise {

enum class Rule : int {
  constant = 0,   // tau, drift, theta, couple as given: the strongly convex methods
  vanishing = 1,  // tau_k = 2/(k + 2), no drift: Algorithm 2
  recurrent = 2,  // tau_(k+1) = (sqrt(tau^4 + 4 tau^2) - tau^2)/2 from the given tau, no drift: its proximal form
};

class Momentum {
 public:
  Rule rule = Rule::constant;
  double tau0 = 1, drift = 0;
  double theta0 = 1;   // constant: the scale of theta_i; else 1/Theta, divided by tau_k each step
  double couple0 = 1;  // constant: y_i moves by couple/p_i times z_i's move; else tau_k takes its place

  double tau, theta, couple;  // of the step under way
  double x, z;                // x = u - x v,  z = u + z v
  double keep;                // c above
  double next;                // s after the step

  void restart() { s_ = 1, k_ = 0, tau_ = tau0; }

  // Another set of constants from here on.  The proximal form goes on with its tau, unless it has not begun: a tau that
  // is smaller than the first one is that of a later step.
  void change(const Momentum& to) {
    const bool goes_on = rule == Rule::recurrent && to.rule == Rule::recurrent && k_ > 0;
    const double was = tau_;
    *this = to;
    restart();
    if (goes_on) tau_ = std::min(was, tau0), k_ = 1;
  }

  void begin() {
    if (rule == Rule::constant) {
      tau = tau0, theta = theta0, couple = couple0;
      const double pull = drift * (1 - tau);
      keep = pull / (pull + tau);
      x = s_ * ((1 - tau) * (1 - keep) - tau * keep);
      z = s_ * keep;
      next = s_ * (1 - tau) * (1 - drift);
    } else {
      tau = rule == Rule::vanishing ? 2.0 / static_cast<double>(k_ + 2) : tau_;
      theta = theta0 / tau, couple = tau;
      keep = 0, z = 0;
      // tau = 1 happens in the first step only, where y = z and v = 0: any s will do.
      next = tau < 1 ? s_ * (1 - tau) : 1.0;
      x = next;
    }
  }

  void end() {
    s_ = next, ++k_;
    if (rule == Rule::recurrent) {
      const double square = tau_ * tau_;
      tau_ = 0.5 * (std::sqrt(square * square + 4 * square) - square);
    }
  }

  // y = u - behind() v between steps.
  double behind() const {
    if (rule != Rule::constant) return s_;
    const double pull = drift * (1 - tau0);
    return s_ * tau0 / (pull + tau0);
  }

  // z = u + ahead() v between steps.
  double ahead() const {
    if (rule != Rule::constant) return 0;
    const double pull = drift * (1 - tau0);
    return s_ * pull / (pull + tau0);
  }

  double scale() const { return s_; }
  void folded() { s_ = 1; }

 private:
  double s_ = 1, tau_ = 1;
  std::int64_t k_ = 0;
};

}  // namespace coordwise
