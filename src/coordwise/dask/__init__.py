"""Linear models fitted on a Dask cluster: data larger than one machine, with the certificate of one (extra ``dask``).

    with LocalCluster(n_workers=2) as cluster, Client(cluster):
        model = LogisticRegression(C=1.0).fit(X, y)     # dask arrays
        model.coef_, model.dual_gap_                    # here, as numpy arrays
        model.predict(X)                                # a dask array, not yet computed

The estimators have the names, parameters and attributes of `coordwise.estimators`, and solve the same problems to the
same tolerance; what fits there, and only what needs the samples in memory (``positive=True``, methods by name), does
not. Besides they have

client : distributed.Client, default=None
    The current one if None.
checkpoint : path, default=None
    A file for the weights, written every five seconds. The same call, in another process too, goes on from there, to
    the same tolerance. A file for another problem is refused. The weights of a finished fit stay in it.
patience : float, default=60.0
    Seconds without a sign of life from the workers that are waited for, after which a fit ends with
    `coordwise.interrupts.Failed`.

``fit(X, y, sample_weight=None)`` takes

* dask arrays: X with dense blocks or blocks of scipy.sparse, y and sample_weight with the same chunks of rows (they are
  made so where chunk sizes are known);
* dask dataframes of numeric columns, whose names become ``feature_names_in_``;
* a list of delayed values or futures of (X, y) or (X, y, sample_weight), y and sample_weight left out;
* a list of paths of data folders (`coordwise.datasets`), which workers open themselves and read pass after pass, y and
  sample_weight left out. They may be larger than the workers' memory.

Rows stay on the workers that have loaded them. A round sends a vector with a number per feature to every worker, and
one comes back, added from worker to worker in an order that depends on the partitions alone: the same partitions give
the same bits on any number of workers. Labels are numbers.

Predictions (``predict``, ``predict_proba``, ``decision_function``) for dask arrays and dataframes are dask arrays that
have not been computed. Other X are predicted here, as always.

What a worker held that is lost is loaded and computed again by Dask, and the fit goes on. A round that failed because
workers were killed is repeated three times. Then, if all partitions came from ``scatter`` and are gone, or if no worker
shows a sign of life for `patience` seconds, `coordwise.interrupts.Failed` is raised, with the best point so far and its
certificate as ``result``; the estimator has the attributes of that point. Ctrl-C raises `coordwise.Interrupted` alike.
An exception of your own functions is raised as it is, and nothing is repeated.
"""

from coordwise.extras import require

require("sklearn", extra="dask", wanted_by="coordwise.dask")
require("dask", extra="dask", wanted_by="coordwise.dask")
require("distributed", extra="dask", wanted_by="coordwise.dask")

from coordwise.dask.estimators import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from coordwise.samples.dask_source import DaskSource

__all__ = [
    "DaskSource",
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "Ridge",
    "RidgeClassifier",
]
