// The loop.  One class for all storages (Rows), smooth parts (Smooth), K outputs that share the drawn coordinates, and
// both families (P = 1: plain steps on x; P = 2: accelerated steps on the pair u, v).
#pragma once

#include <algorithm>
#include <cmath>

#include "buffer.hpp"
#include "certificate.hpp"
#include "engine.hpp"
#include "products.hpp"
#include "rows.hpp"
#include "store.hpp"

namespace coordwise {

// G(v) = (gain/2) |v|^2, or (gain/2) (|v|^2 - 2 v_last^2) if there is a `minus`, which is the place of the last entry.
// The latter centres B without making it dense: if v_last = <e, v_rest> with |e| = 1, it is (gain/2) |v_rest - v_last
// e|^2.
struct QuadraticSmooth {
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  double gain;
  std::size_t minus = none;

  // g[k] = <b_i, G'(v_k)> at v = u - x v (accelerated, P = 2: the image holds u_1..u_K, v_1..v_K) or v = u (plain)
  template <int K, int P, class Slice>
  void gradient(std::uint32_t, const Slice& row, const double* image, double x, double* g) const {
    double sums[K * P];
    dot<K * P, K * P>(row, image, K * P, sums);
    if (minus != none && row.length > 0 && row.at(row.length - 1) == minus) {
      const double twice = 2 * row.value(row.length - 1);
      for (int e = 0; e < K * P; ++e) sums[e] -= twice * image[minus * K * P + e];
    }
    for (int k = 0; k < K; ++k) g[k] = P == 2 ? gain * (sums[k] - x * sums[K * (P - 1) + k]) : gain * sums[k];
  }
};

// B symmetric and G(Bx) = <x, Bx>/2: coordinate i of its gradient stands in the image, so a step reads one entry of it
struct SymmetricSmooth {
  template <int K, int P, class Slice>
  void gradient(std::uint32_t i, const Slice&, const double* image, double x, double* g) const {
    const double* at = image + std::size_t{i} * K * P;
    for (int k = 0; k < K; ++k) g[k] = P == 2 ? at[k] - x * at[K * (P - 1) + k] : at[k];
  }
};

// G(v) = sum_j term_j(v_j)
struct SeparableSmooth {
  Term term;
  const double* centers;  // null: zeros
  const double* weights;  // null: ones
  std::size_t stride;     // of the centres

  template <int K, int P, class Slice>
  void gradient(std::uint32_t, const Slice& row, const double* image, double x, double* g) const {
    for (int k = 0; k < K; ++k) g[k] = 0;
    if (!centers && !weights && term.soft()) {  // elastic nets: the derivative in its simplest form
      for (std::size_t t = 0; t < row.length; ++t) {
        const double a = row.value(t);
        const double* at = image + row.at(t) * K * P;
        for (int k = 0; k < K; ++k) {
          const double v = P == 2 ? at[k] - x * at[K * (P - 1) + k] : at[k];
          g[k] += a * std::copysign(std::max(std::fabs(v) - term.kink, 0.0), v);
        }
      }
      for (int k = 0; k < K; ++k) g[k] *= term.scale / term.quad;
      return;
    }
    for (std::size_t t = 0; t < row.length; ++t) {
      const std::size_t j = row.at(t);
      const double a = row.value(t), s = weights ? weights[j] : 1.0;
      const double* at = image + j * K * P;
      for (int k = 0; k < K; ++k) {
        const double v = P == 2 ? at[k] - x * at[K * (P - 1) + k] : at[k];
        g[k] += a * term.derivative(v, centers ? centers[j * stride + k] : 0.0, s);
      }
    }
  }
};

// What a step needs of its coordinate, in one cache line while K = 1.
template <int K, int P>
struct alignas(16) Coordinate {
  double state[K * P];  // x_1..x_K, or u_1..u_K, v_1..v_K
  std::int64_t start;
  std::uint32_t length, unused;
  double step, theta, move;
  double center[K];
};
static_assert(sizeof(Coordinate<1, 2>) == 64, "a coordinate fills one cache line");

template <class Rows, class Smooth, int K, int P, template <class, class> class Store = ApartStore>
class Kernel final : public Engine {
  using Record = Coordinate<K, P>;

 public:
  // Works on columns first .. first + K - 1 of the problem's outputs.
  Kernel(const Rows& rows, const Smooth& smooth, const Problem& problem, std::size_t first, const Plan& plan,
         IndexStream stream, const Start& start)
      : rows_(rows),
        smooth_(smooth),
        term_(problem.coordinate),
        weights_(problem.weights),
        stride_(problem.outputs),
        threads_(problem.threads_each()),
        first_(first),
        prox_(plan.prox),
        momentum_(plan.momentum),
        fold_below_(plan.fold_below),
        stream_(std::move(stream)),
        coordinates_(rows),
        image_(rows.width() * K * P),
        offset_(start.offset ? rows.width() * K : 0),
        ahead_(block + lookahead) {
    take(plan);
    for (std::uint32_t i = 0; i < rows.count(); ++i) {
      Record& c = coordinates_[i];
      for (int k = 0; k < K; ++k) {
        c.center[k] = problem.centers ? problem.centers[i * stride_ + first + k] : 0;
        c.state[k] = start.x ? start.x[i * stride_ + first + k] : 0;
      }
    }
    for (std::size_t e = 0; e < offset_.size(); ++e) offset_[e] = start.offset[e / K * stride_ + first + e % K];
    momentum_.restart();
    if (start.image == nullptr) {
      resync();
    } else {
      std::fill(image_.begin(), image_.end(), 0.0);
      for (std::size_t j = 0; j < rows.width(); ++j) {
        for (int k = 0; k < K; ++k) image_[j * K * P + k] = start.image[j * stride_ + first + k];
      }
    }
  }

  void run(std::int64_t max_steps, std::int64_t max_entries, const std::function<bool()>& stop) override {
    const std::int64_t last_step = steps_ + max_steps, last_entry = entries_ + max_entries;
    std::int64_t ask_at = entries_ + steps_ + quiet;
    while (steps_ < last_step && entries_ < last_entry) {
      refill();
      const std::size_t count = std::min(ready_ - lookahead, static_cast<std::size_t>(last_step - steps_));
      const std::int64_t until = std::min(last_entry, entries_ + quiet);
      const std::size_t done = prox_ ? steps<true>(count, until) : steps<false>(count, until);
      std::copy(ahead_.begin() + done, ahead_.begin() + ready_, ahead_.begin());
      ready_ -= done, steps_ += static_cast<std::int64_t>(done);
      if (entries_ + steps_ >= ask_at) {
        if (stop()) return;
        ask_at = entries_ + steps_ + quiet;
      }
    }
  }

  void restart() override {
    if constexpr (P == 2) {
      const double behind = momentum_.behind();
      each_pair([behind](double& u, double& v) { u -= behind * v, v = 0; });
      momentum_.restart();
    }
  }

  void replan(const Plan& plan, const IndexStream& stream) override {
    if constexpr (P == 2) {
      const double behind = momentum_.behind();
      // Algorithm 2 begins with tau = 1, which would forget y: there z = y.
      const double apart = plan.momentum.rule == Rule::vanishing ? 0 : behind + momentum_.ahead();
      momentum_.change(plan.momentum);
      const double shift = momentum_.behind() * apart - behind;
      each_pair([=](double& u, double& v) { u += shift * v, v *= apart; });
    }
    prox_ = plan.prox, fold_below_ = plan.fold_below;
    take(plan);
    stream_ = stream;
    stream_.seek(static_cast<std::uint64_t>(steps_));
    ready_ = 0;
  }

  void settle(const std::uint32_t* which, std::size_t count, const double* x) override {
    double change[K * P];
    for (std::size_t t = 0; t < count; ++t) {
      Record& c = coordinates_[which[t]];
      bool moved = false;
      for (int e = 0; e < K * P; ++e) {
        const double to = e < K ? x[which[t] * stride_ + first_ + e] : 0;
        change[e] = to - c.state[e], c.state[e] = to;
        moved |= change[e] != 0;
      }
      if (moved) axpy<K * P, K * P>(coordinates_.row(c), change, K * P, image_.data());
    }
  }

  void resync() override {
    std::fill(image_.begin(), image_.end(), 0.0);
    for (std::uint32_t i = 0; i < rows_.count(); ++i) {
      const Record& c = coordinates_[i];
      const bool zero = std::all_of(c.state, c.state + K * P, [](double v) { return v == 0; });
      if (!zero) axpy<K * P, K * P>(coordinates_.row(c), c.state, K * P, image_.data());
    }
    for (std::size_t e = 0; e < offset_.size(); ++e) image_[e / K * K * P + e % K] += offset_[e];
  }

  void point(double* x, bool inside) const override {
    const double behind = this->behind();
    for (std::uint32_t i = 0; i < rows_.count(); ++i) {
      for (int k = 0; k < K; ++k) {
        x[i * stride_ + first_ + k] = inside ? at(i, k, behind) : raw(coordinates_[i], k, behind);
      }
    }
  }

  void image(double* v) const override {
    const double behind = this->behind();
    for (std::size_t j = 0; j < rows_.width(); ++j) {
      const double* from = image_.data() + j * K * P;
      for (int k = 0; k < K; ++k) {
        v[j * stride_ + first_ + k] = P == 2 ? from[k] - behind * from[K * (P - 1) + k] : from[k];
      }
    }
  }

  void certificate(const double* omega, Certificate* out, double* g) const override {
    const double behind = this->behind();
    certify<K>(
        rows_.count(), entries_hint(rows_), term_, omega ? omega + first_ : nullptr, stride_, threads_,
        [this](std::uint32_t i) { return coordinates_.row(coordinates_[i]); },
        [this, behind](std::uint32_t i, std::size_t k) { return at(i, k, behind); },
        [this](std::uint32_t i, std::size_t k) { return coordinates_[i].center[k]; },
        [this](std::uint32_t i) { return weight(i); }, out + first_, g ? g + first_ : nullptr);
  }

 private:
  static constexpr std::size_t block = 1024, lookahead = 32;
  // How many steps ahead memory is fetched; with several outputs the images leave less room in the first-level cache.
  static constexpr std::size_t record_ahead = K == 1 ? 16 : 4, row_ahead = K == 1 ? 8 : 2, image_ahead = 2;
  static constexpr std::int64_t quiet = 1 << 20;  // work (entries and steps) between two questions to stop()
  static constexpr std::size_t cached = 1 << 22;  // out-of-order execution hides the misses of a smaller image better

  void take(const Plan& plan) {
    for (std::uint32_t i = 0; i < rows_.count(); ++i) {
      Record& c = coordinates_[i];
      c.step = plan.step[i];
      c.theta = plan.theta ? plan.theta[i] : 0;
      c.move = plan.move ? plan.move[i] : 0;
    }
  }

  double weight(std::uint32_t i) const { return weights_ ? weights_[i] : 1.0; }

  double behind() const { return P == 2 ? momentum_.behind() : 0; }

  // Coordinate (i, k) of the current point, put into the domain of h_i, which rounding, and on logistic losses momentum
  // after a change of weights, may have led it out of.
  double at(std::uint32_t i, std::size_t k, double behind) const {
    const Record& c = coordinates_[i];
    return term_.clip(raw(c, k, behind), c.center[k], weight(i));
  }

  double raw(const Record& c, std::size_t k, double behind) const {
    return P == 2 ? c.state[k] - behind * c.state[K * (P - 1) + k] : c.state[k];
  }

  void refill() {
    if (ready_ > lookahead) return;
    const std::size_t count = ahead_.size() - ready_;
    stream_.draw(ahead_.data() + ready_, count);
    ready_ += count;
  }

  template <class Change>
  void each_pair(Change change) {
    auto apply = [&](double* pair) {
      for (int k = 0; k < K; ++k) change(pair[k], pair[K * (P - 1) + k]);
    };
    for (std::uint32_t i = 0; i < rows_.count(); ++i) apply(coordinates_[i].state);
    for (std::size_t j = 0; j < rows_.width(); ++j) apply(image_.data() + j * K * P);
  }

  // At most `count` steps, fewer if `last_entry` is reached; returns how many.
  template <bool Prox>
  std::size_t steps(std::size_t count, std::int64_t last_entry) {
    const bool distant = K == 1 && Rows::sparse && image_.size() * sizeof(double) > cached;
    Momentum m = momentum_;  // a local copy can live in registers: stores to the image cannot alias it
    std::int64_t entries = entries_;
    std::size_t t = 0;
    while (t < count && entries < last_entry) {
      coordinates_.prefetch_far(ahead_[t + record_ahead]);
      coordinates_.prefetch_near(ahead_[t + row_ahead]);
      if (distant) {
        const auto next = coordinates_.row(coordinates_[ahead_[t + image_ahead]]);
        for (std::size_t e = 0; e < next.length; ++e) prefetch_to_write(image_.data() + next.at(e) * K * P);
      }

      const std::uint32_t i = ahead_[t];
      Record& c = coordinates_[i];
      const auto row = coordinates_.row(c);
      const double s = weight(i);
      double g[K], change[K * P];
      if constexpr (P == 2) m.begin();
      smooth_.template gradient<K, P>(i, row, image_.data(), P == 2 ? m.x : 0.0, g);
      bool moved = false;
      for (int k = 0; k < K; ++k) {
        if constexpr (P == 2) {
          accelerated<Prox>(m, c, s, k, g[k], change);
        } else {
          plain<Prox>(c, s, k, g[k], change);
        }
      }
      for (int e = 0; e < K * P; ++e) c.state[e] += change[e], moved |= change[e] != 0;
      if (moved) axpy<K * P, K * P>(row, change, K * P, image_.data());
      if constexpr (P == 2) {
        m.end();
        if (m.scale() < fold_below_) {
          each_pair([&m](double&, double& v) { v *= m.scale(); });
          m.folded();
        }
      }
      entries += c.length;
      ++t;
    }
    momentum_ = m, entries_ = entries;
    return t;
  }

  template <bool Prox>
  void plain(const Record& c, double s, int k, double g, double* change) const {
    const double x = c.state[k];
    if constexpr (Prox) {
      change[k] = term_.prox(c.step * x - g, c.step, c.center[k], s) - x;
    } else {
      change[k] = -c.step * (g + term_.conjugate_gradient(x, c.center[k], s));
    }
  }

  template <bool Prox>
  void accelerated(const Momentum& m, const Record& c, double s, int k, double g, double* change) const {
    const double u = c.state[k], v = c.state[K * (P - 1) + k];
    const double x = u - m.x * v;
    const double theta = m.theta * c.theta;
    if constexpr (Prox) {
      const double z = u + m.z * v;
      const double zh = z + m.drift * (x - z);
      const double inverse = 1 / theta;
      const double to = term_.prox(zh * inverse - (g + c.move * x), inverse - c.move, c.center[k], s);
      const double dz = to - zh;
      const double dy = m.couple * c.step * dz;
      change[k] = m.keep * dy + (1 - m.keep) * dz;
      change[K * (P - 1) + k] = (dz - dy) / m.next;
    } else {
      // dz = -theta g and dy = -step g; only the last products wait for g.
      const double to_u = -(m.keep * c.step + (1 - m.keep) * theta), to_v = (c.step - theta) / m.next;
      g += term_.conjugate_gradient(x, c.center[k], s);
      change[k] = to_u * g;
      change[K * (P - 1) + k] = to_v * g;
    }
  }

  Rows rows_;
  Smooth smooth_;
  Term term_;
  const double* weights_;
  std::size_t stride_, threads_, first_;
  bool prox_;
  Momentum momentum_;
  double fold_below_;
  IndexStream stream_;
  Store<Record, Rows> coordinates_;
  Buffer<double> image_;
  std::vector<double> offset_;
  std::vector<std::uint32_t> ahead_;
  std::size_t ready_ = 0;
};

}  // namespace coordwise
