#include "make_engine.hpp"

namespace coordwise {
template std::unique_ptr<Engine> make_engine(DenseRows<float> const&, const Problem&, const Plan&, const IndexStream&,
                                             const Start&);
}  // namespace coordwise
