// G(Bx) + sum_i h_i(x_i) where the terms, of the coordinates or of a separable G, differ from one to the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pair.hpp"
#include "rows.hpp"
#include "term.hpp"

namespace coordwise {

// The terms of one output, h_i or those of a separable G.
class VariedTerms {
 public:
  virtual ~VariedTerms() = default;
  // argmin over y of h_i(y) + kappa/2 y^2 - rhs y
  virtual double prox(std::uint32_t i, double rhs, double kappa) const = 0;
  // h_i'(x), where all h_i are differentiable
  virtual double conjugate_gradient(std::uint32_t i, double x) const = 0;
  // G_j'(v_j) at some places
  virtual void derivatives(const std::uint32_t* places, const double* v, std::size_t count, double* out) const = 0;
};

// Terms of a few kinds: `codes` (null: zeros) says which one stands at which place, with its centre and weight.
class MixedTerms final : public VariedTerms {
 public:
  std::vector<Term> kinds;
  const std::uint8_t* codes = nullptr;
  const double* centers = nullptr;  // `stride` apart; null: zeros
  const double* weights = nullptr;  // null: ones
  std::size_t stride = 1;
  std::shared_ptr<const void> owner;  // of what is pointed into

  double prox(std::uint32_t i, double rhs, double kappa) const override {
    return kind(i).prox(rhs, kappa, center(i), weight(i));
  }
  double conjugate_gradient(std::uint32_t i, double x) const override {
    return kind(i).conjugate_gradient(x, center(i), weight(i));
  }
  void derivatives(const std::uint32_t* places, const double* v, std::size_t count, double* out) const override {
    for (std::size_t t = 0; t < count; ++t) {
      const std::uint32_t j = places[t];
      out[t] = kind(j).derivative(v[t], center(j), weight(j));
    }
  }

 private:
  const Term& kind(std::uint32_t i) const { return kinds[codes ? codes[i] : 0]; }
  double center(std::uint32_t i) const { return centers ? centers[i * stride] : 0.0; }
  double weight(std::uint32_t i) const { return weights ? weights[i] : 1.0; }
};

// argmin over y of h_i(y) - (move_i/2) y^2 + (y - t)^2/(2 theta)
struct MixedProx {
  std::shared_ptr<const VariedTerms> terms;
  std::vector<double> move;  // empty: zeros

  double operator()(std::uint32_t i, double t, double theta) const {
    const double inverse = 1 / theta;
    return terms->prox(i, t * inverse, inverse - (move.empty() ? 0.0 : move[i]));
  }
};

// The derivatives of G(Bx), and of what f holds of the terms: all of them without a proximal step, else (move_i/2) x^2.
template <class Rows>
struct MixedView {
  Rows rows;
  std::shared_ptr<const VariedTerms> coordinates;
  std::shared_ptr<const VariedTerms> image_terms;  // null: G(v) = (gain/2) |v|^2
  double gain;
  const double* offset;  // of the image; null: zeros
  std::size_t stride;
  bool prox;
  std::vector<double> move;
  std::vector<double> images;
  std::vector<std::uint32_t> places;
  std::vector<double> v, slopes;

  double partial(std::uint32_t i, const double* pairs, double s) {
    const auto row = rows[i];
    double g = 0;
    if (image_terms) {
      places.resize(row.length), v.resize(row.length), slopes.resize(row.length);
      for (std::size_t t = 0; t < row.length; ++t) {
        const std::size_t j = row.at(t);
        places[t] = static_cast<std::uint32_t>(j), v[t] = images[2 * j] - s * images[2 * j + 1];
      }
      image_terms->derivatives(places.data(), v.data(), row.length, slopes.data());
      for (std::size_t t = 0; t < row.length; ++t) g += row.value(t) * slopes[t];
    } else {
      for (std::size_t t = 0; t < row.length; ++t) {
        const std::size_t j = row.at(t);
        g += row.value(t) * gain * (images[2 * j] - s * images[2 * j + 1]);
      }
    }
    const double x = pairs[2 * std::size_t{i}] - s * pairs[2 * std::size_t{i} + 1];
    if (!prox) return g + coordinates->conjugate_gradient(i, x);
    return move.empty() ? g : g + move[i] * x;
  }
  void moved(std::uint32_t i, const double*, const double* change) { add(i, change[0], change[1]); }
  void fold(double scale) {
    for (std::size_t e = 1; e < images.size(); e += 2) images[e] *= scale;
  }
  void resync(const double* pairs) {
    std::fill(images.begin(), images.end(), 0.0);
    for (std::uint32_t i = 0; i < rows.count(); ++i) {
      add(i, pairs[2 * std::size_t{i}], pairs[2 * std::size_t{i} + 1]);
    }
    for (std::size_t j = 0; offset && j < images.size() / 2; ++j) images[2 * j] += offset[j * stride];
  }

 private:
  void add(std::uint32_t i, double u, double v) {
    if (u == 0 && v == 0) return;
    const auto row = rows[i];
    for (std::size_t t = 0; t < row.length; ++t) {
      double* at = images.data() + 2 * row.at(t);
      const double a = row.value(t);
      at[0] += a * u, at[1] += a * v;
    }
  }
};

// One output of such a problem; centres, offset, x0, points and images are `stride` apart.
class MixedEngine {
 public:
  virtual ~MixedEngine() = default;
  virtual void run(std::int64_t max_steps, std::int64_t max_entries) = 0;
  virtual void restart() = 0;
  virtual void replan(const Plan& plan, const IndexStream& stream) = 0;
  virtual void settle(const std::uint32_t* which, std::size_t count, const double* x) = 0;
  virtual void resync() = 0;
  virtual void point(double* x) const = 0;  // not clipped to the domain
  virtual void image(double* v) const = 0;

  std::int64_t steps() const { return steps_; }
  std::int64_t entries() const { return entries_; }

 protected:
  std::int64_t steps_ = 0, entries_ = 0;
};

struct MixedProblem {
  std::shared_ptr<const VariedTerms> coordinates, image;
  double gain = 1;
  const double* offset = nullptr;
  std::size_t stride = 1;
};

template <class Rows>
class MixedRun final : public MixedEngine {
 public:
  MixedRun(const Rows& rows, const MixedProblem& problem, const Plan& plan, const IndexStream& stream, const double* x0)
      : problem_(problem), form_(begin(rows, plan, stream, x0)) {}

  void run(std::int64_t max_steps, std::int64_t max_entries) override {
    const std::int64_t last_step = steps_ + max_steps, last_entry = entries_ + max_entries;
    while (steps_ < last_step && entries_ < last_entry) {
      entries_ += form_.view().rows.length(form_.step());
      ++steps_;
    }
  }
  void restart() override { form_.restart(); }
  void replan(const Plan& plan, const IndexStream& stream) override {
    Steps steps(plan, form_.count());
    form_.view().prox = plan.prox, form_.view().move = steps.move;
    form_.replan(prox_of(plan, steps.move), steps.plan, stream);
  }
  void settle(const std::uint32_t* which, std::size_t count, const double* x) override {
    for (std::size_t t = 0; t < count; ++t) form_.settle(which[t], x[which[t] * problem_.stride]);
    form_.resync();
  }
  void resync() override { form_.resync(); }
  void point(double* x) const override {
    for (std::size_t i = 0; i < form_.count(); ++i) x[i * problem_.stride] = form_.at(i);
  }
  void image(double* v) const override {
    const auto& images = form_.view().images;
    for (std::size_t j = 0; j < images.size() / 2; ++j) {
      v[j * problem_.stride] = images[2 * j] - form_.behind() * images[2 * j + 1];
    }
  }

 private:
  using Form = PairForm<MixedView<Rows>, MixedProx>;

  // A plan as a PairForm takes it, from one as the kernel does.
  struct Steps {
    Steps(const Plan& given, std::size_t count) : plan(given), inverse(given.step, given.step + count) {
      if (given.move) move.assign(given.move, given.move + count);
      if (given.accelerated || !given.prox) return;
      for (double& step : inverse) step = 1 / step;
      plan.step = inverse.data();
    }
    Plan plan;
    std::vector<double> inverse, move;
  };

  std::optional<MixedProx> prox_of(const Plan& plan, const std::vector<double>& move) const {
    if (!plan.prox) return std::nullopt;
    return MixedProx{problem_.coordinates, move};
  }

  Form begin(const Rows& rows, const Plan& plan, const IndexStream& stream, const double* x0) const {
    const Steps steps(plan, rows.count());
    std::vector<double> start(rows.count());
    for (std::size_t i = 0; i < start.size(); ++i) start[i] = x0[i * problem_.stride];
    return Form(MixedView<Rows>{rows,
                                problem_.coordinates,
                                problem_.image,
                                problem_.gain,
                                problem_.offset,
                                problem_.stride,
                                plan.prox,
                                steps.move,
                                std::vector<double>(2 * rows.width()),
                                {},
                                {},
                                {}},
                prox_of(plan, steps.move), steps.plan, rows.count(), stream, start.data());
  }

  const MixedProblem problem_;
  Form form_;
};

}  // namespace coordwise
