// Terms of either shape at a batch of arguments.
#pragma once

#include <cstddef>
#include <limits>

#include "batch.hpp"
#include "dispatch.hpp"
#include "logistic.hpp"
#include "piecewise.hpp"
#include "term.hpp"

namespace coordwise {

// What is asked of terms: the first three at scores t, the last at dual variables.
enum class Ask { derivative, curvature, value, conjugate };

template <class Function>
void logistic(const Term& term, const Batch& in, Ask ask, double* out) {
  double z[batch], factor[batch];
  for (std::size_t e = 0; e < batch; ++e) {
    const double s = in.s[e], margin = -in.c[e] * in.t[e];
    z[e] = s == 0 ? 0.0 : ask == Ask::conjugate ? margin / s : margin;
    factor[e] = term.scale * s * (ask == Ask::derivative ? -in.c[e] : 1.0);
  }
  apply<Function>(z);
  for (std::size_t e = 0; e < batch; ++e) out[e] = factor[e] == 0 ? 0.0 : factor[e] * z[e];
  if (ask != Ask::conjugate) return;
  for (std::size_t e = 0; e < batch; ++e) {
    const bool outside = in.t[e] < term.low(in.c[e], in.s[e]) || in.t[e] > term.high(in.c[e], in.s[e]);
    if (outside) out[e] = std::numeric_limits<double>::infinity();
  }
}

inline void evaluate(const Term& term, const Piecewise& pieces, const Batch& in, Ask ask, double* out) {
  const bool smooth = term.shape == Shape::logistic;
  switch (ask) {
    case Ask::derivative:
      return smooth ? logistic<Sigmoid>(term, in, ask, out) : widest<EveryTerm<DerivativeOf>>(&pieces, &in, out);
    case Ask::curvature:
      return smooth ? logistic<SigmoidSlope>(term, in, ask, out) : widest<EveryTerm<CurvatureOf>>(&pieces, &in, out);
    case Ask::value:
      return smooth ? logistic<SoftPlus>(term, in, ask, out) : widest<EveryTerm<ValueOf>>(&pieces, &in, out);
    case Ask::conjugate:
      return smooth ? logistic<Entropy>(term, in, ask, out) : widest<EveryTerm<ConjugateOf>>(&pieces, &in, out);
  }
}

}  // namespace coordwise
