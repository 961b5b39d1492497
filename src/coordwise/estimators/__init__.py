"""Linear models with scikit-learn's interface, faster and with a certificate (extra ``sklearn``).

Parameters with scikit-learn's names have its meaning and its defaults. All estimators have besides:

method : str or Method, default="auto"
    Of `coordwise.solve`, where coordinate descent runs.
beta : float in [0, 1], default=None
    Norm of the method's analysis, for methods that have one.
strategy : str, default="auto"
    How the problem is solved: "dual", "primal", "working_set" (coordinates are samples, or features, or features some
    at a time), "gram", "newton", "interior" (dense Gram matrices of the features), "newton_cg" (Newton's method by
    conjugate gradients: products with the data alone), "krylov" (Krylov spaces, for ridge regression) or "semismooth"
    (Newton steps over all features, for squared hinges and the like). A ValueError says why one does not apply, and
    which ones do.
time_limit : float, default=None
    Seconds.
verbose : int, default=0
    1 shows one live line in a terminal (passes, gap, passes left, seconds), and a line every few seconds elsewhere.
callbacks : callable or list of callables, default=None
    Called with a `coordwise.Progress` at every record; the fit ends when one returns True. Callbacks of
    ``sklearn.callback`` are set with ``set_callbacks``.
n_jobs : int, default=None
    Threads over groups of outputs, and for products with the data, Gram matrices and certificates; over folds, for
    estimators that end in CV. -1 is all processors, -2 all but one.

Ridge, Lasso, ElasticNet and L2L1Regressor have ``path(X, y, alphas)``: the models for a grid of alphas.
LogisticRegression has ``path(X, y, Cs)``. ``Ridge.partial_fit(X, y)`` takes samples in batches.

Without those that end in CV, all take a source in the place of X and y, such as a `coordwise.datasets.Folder` that is
larger than memory (docs/data-folder.md), and ``fit_batches(make_batches)`` reads batches anew for every pass. Then
`strategy` may also be "newton_cg_part" or "descent", and result_ holds no dual variables.

RidgeCV, RidgeClassifierCV, LassoCV, ElasticNetCV and LogisticRegressionCV choose their parameters by cross-validation,
and fit all samples with them; what a fit leaves behind is of that last one. A ConvergenceWarning counts the fits of
folds that did not reach tol.

Ctrl-C raises `coordwise.Interrupted`, a KeyboardInterrupt, so that loops and searches around a fit end as well. The
estimator has its attributes, those of the best point so far, before that is raised.

After a fit: coef_, intercept_, n_iter_ (passes, rounded up; as in scikit-learn an array of one entry for
LogisticRegression), n_features_in_, feature_names_in_, classes_, and

dual_gap_ : float or ndarray
    The duality gap at the solution, one per output; at most tol times the objective at zero. Otherwise a
    ConvergenceWarning points at the line that called fit. Without a penalty it is inf where no dual point was found.
passes_ : float
    Entries touched / nnz; steps, where Gram matrices or Newton's method did the work.
strategy_ : str
    What was chosen, and why.
result_ : Fit
    With the dual variables, and the results of the single runs.
"""

from coordwise.extras import require

require("sklearn", extra="sklearn", wanted_by="coordwise.estimators")

from coordwise.estimators.alpha_path import Path
from coordwise.estimators.elastic_net import ElasticNet, Lasso
from coordwise.estimators.elastic_net_cv import ElasticNetCV, LassoCV
from coordwise.estimators.huber import HuberRegressor
from coordwise.estimators.l2l1 import L2L1Regressor
from coordwise.estimators.logistic import LogisticRegression
from coordwise.estimators.logistic_cv import LogisticRegressionCV
from coordwise.estimators.logistic_path import PathOverC
from coordwise.estimators.ridge import Ridge, RidgeClassifier
from coordwise.estimators.ridge_cv import RidgeClassifierCV, RidgeCV
from coordwise.estimators.svm import LinearSVC, LinearSVR

__all__ = [
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "L2L1Regressor",
    "Lasso",
    "LassoCV",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Path",
    "PathOverC",
    "Ridge",
    "RidgeCV",
    "RidgeClassifier",
    "RidgeClassifierCV",
]
