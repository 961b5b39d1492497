#include "make_engine.hpp"

namespace coordwise {
template std::unique_ptr<Engine> make_engine(SparseRows<double, std::int32_t> const&, const Problem&, const Plan&,
                                             const IndexStream&, const Start&);
}  // namespace coordwise
