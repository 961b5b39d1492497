// Chooses the kernels for a problem; included by the files beside it, one per storage, so that they build in parallel.
#pragma once

#include "../grouped.hpp"
#include "../kernel.hpp"
#include "../matrix.hpp"

namespace coordwise {

template <class Rows>
std::unique_ptr<Engine> make_engine(const Rows& rows, const Problem& problem, const Plan& plan,
                                    const IndexStream& stream, const Start& start) {
  const std::size_t threads = problem.groups();
  std::vector<std::vector<std::unique_ptr<Engine>>> shares(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    const std::size_t from = problem.outputs * t / threads, to = problem.outputs * (t + 1) / threads;
    by_groups(to - from, [&](auto group, std::size_t q) {
      constexpr int K = decltype(group)::width;
      const std::size_t first = from + q;
      auto add = [&](auto smooth) {
        using Smooth = decltype(smooth);
        auto made = [&](auto* type) {
          using Made = std::remove_pointer_t<decltype(type)>;
          shares[t].push_back(std::make_unique<Made>(rows, smooth, problem, first, plan, stream, start));
        };
        if constexpr (Rows::packs && !std::is_same_v<Smooth, SeparableSmooth>) {
          using Value = std::remove_const_t<std::remove_pointer_t<decltype(Rows::Slice::values)>>;
          auto packed = [&](auto value, auto place) {
            using Form = Packed<decltype(value), decltype(place)>;
            plan.accelerated ? made(static_cast<Kernel<Rows, Smooth, K, 2, Form::template Store>*>(nullptr))
                             : made(static_cast<Kernel<Rows, Smooth, K, 1, Form::template Store>*>(nullptr));
          };
          const bool narrow = rows.width() <= 0x10000;
          switch (plan.pack) {
            case Pack::no:
              break;
            case Pack::values_as_they_are:
              return narrow ? packed(Value{}, std::uint16_t{}) : packed(Value{}, std::uint32_t{});
            case Pack::values_in_single:
              return narrow ? packed(float{}, std::uint16_t{}) : packed(float{}, std::uint32_t{});
          }
        }
        plan.accelerated ? made(static_cast<Kernel<Rows, Smooth, K, 2>*>(nullptr))
                         : made(static_cast<Kernel<Rows, Smooth, K, 1>*>(nullptr));
      };
      if (problem.part == Part::quadratic) {
        add(QuadraticSmooth{problem.gain, problem.minus_last ? rows.width() - 1 : QuadraticSmooth::none});
      } else if (problem.part == Part::symmetric) {
        add(SymmetricSmooth{});
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
