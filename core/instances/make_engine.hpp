// Chooses the kernels for a problem; included by the files beside it, one per storage, so that they build in parallel.
#pragma once

#include "../grouped.hpp"
#include "../kernel.hpp"
#include "../matrix.hpp"

namespace coordwise {

template <class Rows>
std::unique_ptr<Engine> make_engine(const Rows& rows, const Problem& problem, const Plan& plan,
                                    const IndexStream& stream, const double* x0, const double* image0) {
  const std::size_t threads = std::max<std::size_t>(1, std::min(problem.threads, problem.outputs));
  std::vector<std::vector<std::unique_ptr<Engine>>> shares(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    const std::size_t from = problem.outputs * t / threads, to = problem.outputs * (t + 1) / threads;
    by_groups(to - from, [&](auto group, std::size_t q) {
      constexpr int K = decltype(group)::width;
      const std::size_t first = from + q;
      auto add = [&](auto smooth) {
        using Smooth = decltype(smooth);
        if (plan.accelerated) {
          using Made = Kernel<Rows, Smooth, K, 2>;
          shares[t].push_back(std::make_unique<Made>(rows, smooth, problem, first, plan, stream, x0, image0));
        } else {
          using Made = Kernel<Rows, Smooth, K, 1>;
          shares[t].push_back(std::make_unique<Made>(rows, smooth, problem, first, plan, stream, x0, image0));
        }
      };
      if (problem.quadratic) {
        add(QuadraticSmooth{problem.gain});
      } else {
        const double* centers = problem.image_centers ? problem.image_centers + first : nullptr;
        add(SeparableSmooth{problem.image, centers, problem.image_weights, problem.outputs});
      }
    });
  }
  if (threads == 1 && shares[0].size() == 1) return std::move(shares[0][0]);
  return std::make_unique<Grouped>(std::move(shares));
}

}  // namespace coordwise
