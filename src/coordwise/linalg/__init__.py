r"""Linear systems and least squares with the signatures of scipy.sparse.linalg.

| function | problem | by |
|---|---|---|
| `solve` | Ax = b | whatever is expected to be fastest; the result says what and why |
| `kaczmarz`, `acdm`, `nuacdm` | Ax = b | one row at a time (section 2, Theorems 2.1 to 2.3) |
| `lstsq` | min (1/2) \|Ax - b\|^2 + (damp^2/2) \|x\|^2 | columns, rows, conjugate gradients or a factorisation |
| `spd_solve` | Ax = b, A symmetric positive definite | one coordinate at a time, L_i = a_ii, or conjugate gradients |

All return ``(x, info)``, or with ``full_output=True`` a `coordwise.Result`. A system is solved when
|b - Ax| <= max(rtol |b|, atol) for every right-hand side, checked at the x returned; `info` is then 0. Otherwise x is
the best point met, and `info` is the number of passes over A that were made if a limit (or the callback) ended them, -1
if the system certainly has no solution, -2 if the residual stalled, -3 if it diverged (an indefinite A in `spd_solve`).
Ctrl-C raises `coordwise.Interrupted`, which carries the `coordwise.Result`.
"""

from coordwise.linalg.auto import solve
from coordwise.linalg.leastsquares import lstsq
from coordwise.linalg.rowaction import acdm, kaczmarz, nuacdm
from coordwise.linalg.spd import spd_solve

__all__ = ["acdm", "kaczmarz", "lstsq", "nuacdm", "solve", "spd_solve"]
