// What the driver sees of a run, whatever the storage, the smooth part and the number of outputs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "momentum.hpp"
#include "stream.hpp"
#include "term.hpp"

namespace coordwise {

// What G is (see below).
enum class Part : int { quadratic, separable, symmetric };

// min over x in R^(N x K)   sum_k [ G(B x_k) + sum_i h_i(x_ik) ],   h_i the conjugate of `coordinate` (see term.hpp).
// G is (gain/2)|v|^2 (or (gain/2)(|v|^2 - 2 v_last^2), see `QuadraticSmooth`), or separable with derivative
// `image.derivative` (centres m x K, weights m); or B is symmetric and G(Bx) = <x, Bx>/2.
struct Problem {
  std::size_t outputs = 1;
  std::size_t threads = 1;  // over groups of outputs, and what these leave over coordinates of a certificate
  Term coordinate;
  const double* centers = nullptr;  // N x K
  const double* weights = nullptr;  // N, or null for ones
  Part part = Part::quadratic;
  double gain = 1;
  bool minus_last = false;
  Term image;
  const double* image_centers = nullptr;
  const double* image_weights = nullptr;

  std::size_t groups() const { return std::max<std::size_t>(1, std::min(threads, outputs)); }
  std::size_t threads_each() const { return std::max<std::size_t>(1, threads / groups()); }
};

// Blocks of coordinates that a step takes together (blocks.hpp): block b has the coordinates order[starts[b]] ..
// order[starts[b + 1] - 1] and the term  kinks[b] |x_b|_2 + feature_kink |x_b|_1 + quad/2 |x_b|^2  with the quad of the
// problem's `coordinate`.  A plan for them, and the stream, have an entry per block.  One output; no symmetric B.
struct Blocks {
  std::uint32_t count;
  const std::uint32_t* starts;  // count + 1
  const std::uint32_t* order;   // N
  const double* kinks;          // count
  double feature_kink;
};
constexpr std::size_t most_in_block = 64;  // coordinates

// Whether the kernel copies the rows next to their coordinates, and in which precision (store.hpp): for a quadratic
// G(Bx) and sparse storage with 32-bit indices; ignored elsewhere.
enum class Pack : int { no = 0, values_as_they_are = 1, values_in_single = 2 };

// One method on one problem.
//   plain, gradient:        x_i -= step g                          step = 1/L
//   plain, prox:            x_i = argmin h_i(y) + step/2 y^2 - (step x_i - g) y           step = curvature
//   accelerated, gradient:  z_i = zh_i - theta g, y_i = x_i - step g                      step = 1/L
//   accelerated, prox:      z_i = prox of h_i - move/2 y^2 at zh_i - theta g, y_i = x_i + couple step (z_i - zh_i)
//                                                                                         step = 1/p
// with theta_i = momentum.theta * theta[i].  `gradient` puts all of h_i into g; `prox` only move * x_i.
struct Plan {
  bool accelerated = true, prox = false;
  const double* step = nullptr;
  const double* theta = nullptr;
  const double* move = nullptr;  // null for zeros
  Momentum momentum;
  Pack pack = Pack::no;
  double fold_below = 1e-60;  // v absorbs its scale s once s is smaller
};

// Where a run begins: x (N x K; null: zeros), what is added to the image of every point (m x K; null: zeros), and the
// image of x with that if it is known (null: it is computed).
struct Start {
  const double* x = nullptr;
  const double* offset = nullptr;
  const double* image = nullptr;
};

// Sums over the coordinates at a point x with image gradient omega, g_i = <b_i, omega>; one row per output.
struct Certificate {
  double value = 0;                // sum h_i(x_i)
  double conjugate = 0;            // sum h_i*(-g_i)
  double fenchel_young = 0;        // sum h_i(x_i) + h_i*(-g_i) + x_i g_i, each term >= 0
  double gradient2 = 0;            // sum (g_i + h_i'(x_i))^2, for differentiable h_i
  double lowest = 0, highest = 0;  // min and max of g_i, with 0
};

class Engine {
 public:
  virtual ~Engine() = default;

  // Steps until `max_steps` are done, `max_entries` entries of B are touched, or stop() (asked now and then) says so.
  virtual void run(std::int64_t max_steps, std::int64_t max_entries, const std::function<bool()>& stop) = 0;

  virtual void restart() = 0;  // z = y, momentum from its beginning
  // Go on from the same y and z with other constants and probabilities (of the same family, accelerated or plain);
  // Rule::vanishing goes on from y alone, Rule::recurrent after a plan of that rule with its tau (Momentum::change).
  virtual void replan(const Plan& plan, const IndexStream& stream) = 0;
  // y_i = z_i = x_i for the `count` coordinates in `which`, their rows of x (N x K) being given.
  virtual void settle(const std::uint32_t* which, std::size_t count, const double* x) = 0;
  virtual void resync() = 0;  // images recomputed from u and v: rounding errors pile up in them
  // The current point, put into the domain of the terms, or (not `inside`) as the images have it.
  virtual void point(double* x, bool inside) const = 0;
  virtual void image(double* v) const = 0;
  // The sums for omega (null: zeros), and g (N x K) if there is room for it.
  virtual void certificate(const double* omega, Certificate* out, double* g) const = 0;

  std::int64_t steps() const { return steps_; }
  std::int64_t entries() const { return entries_; }

 protected:
  std::int64_t steps_ = 0, entries_ = 0;
};

}  // namespace coordwise
