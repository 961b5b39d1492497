// The loop over blocks of coordinates (footnote 11 of the paper): as kernel.hpp for one output, but a step takes all
// coordinates of a block, along the gradient of the block, with one L, one probability and one proximal step.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "buffer.hpp"
#include "engine.hpp"
#include "evaluate.hpp"
#include "kernel.hpp"
#include "products.hpp"
#include "rows.hpp"

namespace coordwise {

// to = argmin over y of  kink |y|_2 + feature_kink |y|_1 + quad/2 |y|^2 + kappa/2 |y|^2 - <rhs, y>, of `size` numbers
struct BlockTerm {
  double quad, feature_kink;

  void prox(std::size_t size, const double* rhs, double kappa, double kink, double* to) const {
    double square = 0;
    for (std::size_t q = 0; q < size; ++q) {
      to[q] = std::copysign(std::max(std::fabs(rhs[q]) - feature_kink, 0.0), rhs[q]);
      square += to[q] * to[q];
    }
    const double norm = std::sqrt(square), length = (norm - kink) * (1 / (kappa + quad));
    // to/norm is +-1 in a block of one coordinate, whose step is then that of the scalar kernel, bit for bit
    for (std::size_t q = 0; q < size; ++q) to[q] = norm > kink ? to[q] / norm * length : 0.0;
  }
};

template <class Rows, class Smooth, int P>
class BlockKernel final : public Engine {
 public:
  BlockKernel(const Rows& rows, const Smooth& smooth, const Problem& problem, const Blocks& blocks, const Plan& plan,
              IndexStream stream, const Start& start)
      : rows_(rows),
        smooth_(smooth),
        term_{problem.coordinate.quad, blocks.feature_kink},
        prox_(plan.prox),
        momentum_(plan.momentum),
        fold_below_(plan.fold_below),
        stream_(std::move(stream)),
        blocks_(blocks.count),
        order_(blocks.order, blocks.order + rows.count()),
        state_(std::size_t{rows.count()} * P),
        image_(rows.width() * P),
        omega_(shared ? rows.width() : 0),
        ahead_(drawn + lookahead) {
    for (std::uint32_t b = 0; b < blocks.count; ++b) {
      Block& block = blocks_[b];
      block.first = blocks.starts[b], block.size = blocks.starts[b + 1] - block.first, block.kink = blocks.kinks[b];
      for (std::uint32_t t = block.first; t < block.first + block.size; ++t) block.entries += rows.length(order_[t]);
    }
    take(plan);
    for (std::size_t t = 0; t < order_.size() && start.x; ++t) state_[t * P] = start.x[order_[t]];
    if (start.offset) offset_.assign(start.offset, start.offset + rows.width());
    momentum_.restart();
    if (start.image == nullptr) {
      resync();
    } else {
      for (std::size_t j = 0; j < rows.width(); ++j) image_[j * P] = start.image[j];
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
    std::array<double, most_in_block * P> change;
    for (std::size_t t = 0; t < count; ++t) {
      const Block& block = blocks_[which[t]];
      const double* state = &state_[block.first * std::size_t{P}];
      for (std::size_t q = 0; q < block.size; ++q) {
        change[q * P] = x[order_[block.first + q]] - state[q * P];
        if constexpr (P == 2) change[q * P + 1] = -state[q * P + 1];
      }
      move(block, change.data());
    }
  }

  void resync() override {
    std::fill(image_.begin(), image_.end(), 0.0);
    for (std::size_t t = 0; t < order_.size(); ++t) add(order_[t], &state_[t * P]);
    for (std::size_t j = 0; j < offset_.size(); ++j) image_[j * P] += offset_[j];
  }

  void point(double* x, bool) const override {  // every x is in the domain
    const double behind = this->behind();
    for (std::size_t t = 0; t < order_.size(); ++t) x[order_[t]] = at(&state_[t * P], behind);
  }

  void image(double* v) const override {
    const double behind = this->behind();
    for (std::size_t j = 0; j < rows_.width(); ++j) v[j] = at(&image_[j * P], behind);
  }

  void certificate(const double*, Certificate*, double*) const override {
    throw std::logic_error("terms of blocks have their sums elsewhere (coordwise.group_erm)");
  }

 private:
  struct Block {
    std::uint32_t first = 0, size = 0;  // in order_
    std::int64_t entries = 0;
    double step = 0, theta = 0, move = 0, kink = 0;
  };

  // Entries of dense rows are all there: the derivatives of G are worked out once for the whole block.
  static constexpr bool shared = !Rows::sparse && std::is_same_v<Smooth, SeparableSmooth>;
  static constexpr std::size_t drawn = 256, lookahead = 2;
  static constexpr std::int64_t quiet = 1 << 20;  // work (entries and steps) between two questions to stop()

  static double at(const double* pair, double behind) { return P == 2 ? pair[0] - behind * pair[P - 1] : pair[0]; }

  double behind() const { return P == 2 ? momentum_.behind() : 0; }

  void take(const Plan& plan) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      blocks_[b].step = plan.step[b];
      blocks_[b].theta = plan.theta ? plan.theta[b] : 0;
      blocks_[b].move = plan.move ? plan.move[b] : 0;
    }
  }

  void refill() {
    if (ready_ > lookahead) return;
    const std::size_t count = ahead_.size() - ready_;
    stream_.draw(ahead_.data() + ready_, count);
    ready_ += count;
  }

  template <class Change>
  void each_pair(Change change) {
    for (std::size_t e = 0; e < state_.size(); e += P) change(state_[e], state_[e + P - 1]);
    for (std::size_t e = 0; e < image_.size(); e += P) change(image_[e], image_[e + P - 1]);
  }

  // image += b_i change
  void add(std::uint32_t i, const double* change) {
    const bool moved = change[0] != 0 || change[P - 1] != 0;
    if (moved) axpy<P, P>(rows_[i], change, P, image_.data());
  }

  void move(const Block& block, const double* change) {
    double* state = &state_[block.first * std::size_t{P}];
    for (std::size_t e = 0; e < block.size * std::size_t{P}; ++e) state[e] += change[e];
    for (std::size_t q = 0; q < block.size; ++q) add(order_[block.first + q], change + q * P);
  }

  // g_q = <b_i, G'(v)> for the coordinates i of a block, at v = u - x v
  void gradient(const Block& block, double x, double* g) {
    if constexpr (shared) {
      derivatives(x);
      for (std::size_t q = 0; q < block.size; ++q) {
        dot<1, 1>(rows_[order_[block.first + q]], omega_.data(), 1, g + q);
      }
    } else {
      for (std::size_t q = 0; q < block.size; ++q) {
        const std::uint32_t i = order_[block.first + q];
        smooth_.template gradient<1, P>(i, rows_[i], image_.data(), x, g + q);
      }
    }
  }

  // omega = G'(v) at v = u - x v
  void derivatives(double x) {
    if constexpr (shared) {
      const Piecewise pieces(smooth_.term);
      Batch in;
      double found[batch];
      for (std::size_t from = 0; from < omega_.size(); from += batch) {
        const std::size_t count = std::min(omega_.size() - from, batch);
        for (std::size_t e = 0; e < count; ++e) {
          const std::size_t j = from + e;
          in.t[e] = at(&image_[j * P], x);
          in.c[e] = smooth_.centers ? smooth_.centers[j] : 0.0, in.s[e] = smooth_.weights ? smooth_.weights[j] : 1.0;
        }
        std::fill(in.s + count, in.s + batch, 0.0);
        evaluate(smooth_.term, pieces, in, Ask::derivative, found);
        std::copy(found, found + count, omega_.begin() + from);
      }
    }
  }

  // At most `count` steps, fewer if `last_entry` is reached; returns how many.
  template <bool Prox>
  std::size_t steps(std::size_t count, std::int64_t last_entry) {
    std::array<double, most_in_block> g;
    std::array<double, most_in_block * P> change;
    std::size_t t = 0;
    for (; t < count && entries_ < last_entry; ++t) {
      const Block& soon = blocks_[ahead_[t + 1]];
      prefetch_range(&state_[soon.first * std::size_t{P}], soon.size * P * sizeof(double));
      const std::uint32_t next = order_[soon.first];
      rows_.prefetch_slice(rows_.start(next), rows_.length(next));

      const Block& block = blocks_[ahead_[t]];
      if constexpr (P == 2) momentum_.begin();
      gradient(block, P == 2 ? momentum_.x : 0.0, g.data());
      if constexpr (P == 2) {
        accelerated<Prox>(block, g.data(), change.data());
      } else {
        plain<Prox>(block, g.data(), change.data());
      }
      move(block, change.data());
      if constexpr (P == 2) {
        momentum_.end();
        if (momentum_.scale() < fold_below_) {
          each_pair([this](double&, double& v) { v *= momentum_.scale(); });
          momentum_.folded();
        }
      }
      entries_ += block.entries;
    }
    return t;
  }

  template <bool Prox>
  void plain(const Block& block, const double* g, double* change) const {
    const double* x = &state_[block.first];
    if constexpr (Prox) {
      std::array<double, most_in_block> rhs;
      for (std::size_t q = 0; q < block.size; ++q) rhs[q] = block.step * x[q] - g[q];
      term_.prox(block.size, rhs.data(), block.step, block.kink, change);
      for (std::size_t q = 0; q < block.size; ++q) change[q] -= x[q];
    } else {
      for (std::size_t q = 0; q < block.size; ++q) change[q] = -block.step * (g[q] + term_.quad * x[q]);
    }
  }

  template <bool Prox>
  void accelerated(const Block& block, const double* g, double* change) const {
    const Momentum& m = momentum_;
    const double theta = m.theta * block.theta;
    const double* state = &state_[block.first * std::size_t{P}];
    if constexpr (Prox) {
      const double inverse = 1 / theta;
      std::array<double, most_in_block> drifted, rhs, to;
      for (std::size_t q = 0; q < block.size; ++q) {
        const double u = state[q * P], v = state[q * P + P - 1], x = u - m.x * v, z = u + m.z * v;
        drifted[q] = z + m.drift * (x - z);
        rhs[q] = drifted[q] * inverse - (g[q] + block.move * x);
      }
      term_.prox(block.size, rhs.data(), inverse - block.move, block.kink, to.data());
      for (std::size_t q = 0; q < block.size; ++q) {
        const double dz = to[q] - drifted[q], dy = m.couple * block.step * dz;
        change[q * P] = m.keep * dy + (1 - m.keep) * dz;
        change[q * P + P - 1] = (dz - dy) / m.next;
      }
    } else {
      const double to_u = -(m.keep * block.step + (1 - m.keep) * theta), to_v = (block.step - theta) / m.next;
      for (std::size_t q = 0; q < block.size; ++q) {
        const double x = state[q * P] - m.x * state[q * P + P - 1], all = g[q] + term_.quad * x;
        change[q * P] = to_u * all;
        change[q * P + P - 1] = to_v * all;
      }
    }
  }

  Rows rows_;
  Smooth smooth_;
  BlockTerm term_;
  bool prox_;
  Momentum momentum_;
  double fold_below_;
  IndexStream stream_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> order_;  // coordinates, block after block
  Buffer<double> state_;              // of order_: x, or u and v side by side
  Buffer<double> image_;
  Buffer<double> omega_;
  std::vector<double> offset_;
  std::vector<std::uint32_t> ahead_;
  std::size_t ready_ = 0;
};

}  // namespace coordwise
