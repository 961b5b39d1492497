// Kernels of blocks, for all storages.
#include "../blocks.hpp"

#include "../matrix.hpp"

namespace coordwise {

template <class Rows>
std::unique_ptr<Engine> make_block_engine(const Rows& rows, const Problem& problem, const Blocks& blocks,
                                          const Plan& plan, const IndexStream& stream, const Start& start) {
  auto made = [&](auto smooth) -> std::unique_ptr<Engine> {
    using Smooth = decltype(smooth);
    if (plan.accelerated) {
      return std::make_unique<BlockKernel<Rows, Smooth, 2>>(rows, smooth, problem, blocks, plan, stream, start);
    }
    return std::make_unique<BlockKernel<Rows, Smooth, 1>>(rows, smooth, problem, blocks, plan, stream, start);
  };
  if (problem.part == Part::separable) {
    return made(SeparableSmooth{problem.image, problem.image_centers, problem.image_weights, 1});
  }
  return made(QuadraticSmooth{problem.gain, problem.minus_last ? rows.width() - 1 : QuadraticSmooth::none});
}

template std::unique_ptr<Engine> make_block_engine(SparseRows<double, std::int32_t> const&, const Problem&,
                                                   const Blocks&, const Plan&, const IndexStream&, const Start&);
template std::unique_ptr<Engine> make_block_engine(SparseRows<float, std::int32_t> const&, const Problem&,
                                                   const Blocks&, const Plan&, const IndexStream&, const Start&);
template std::unique_ptr<Engine> make_block_engine(SparseRows<double, std::int64_t> const&, const Problem&,
                                                   const Blocks&, const Plan&, const IndexStream&, const Start&);
template std::unique_ptr<Engine> make_block_engine(SparseRows<float, std::int64_t> const&, const Problem&,
                                                   const Blocks&, const Plan&, const IndexStream&, const Start&);
template std::unique_ptr<Engine> make_block_engine(DenseRows<double> const&, const Problem&, const Blocks&, const Plan&,
                                                   const IndexStream&, const Start&);
template std::unique_ptr<Engine> make_block_engine(DenseRows<float> const&, const Problem&, const Blocks&, const Plan&,
                                                   const IndexStream&, const Start&);

}  // namespace coordwise
