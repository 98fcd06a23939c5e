"""Seconds and memory of the clusterer on a Dask array of rows around ten centres, a tenth of the cells overwritten.

``python benchmarks/clustering_dask.py [ROWS] [WORKERS]``, by default 200,000 rows of 120 features on two workers of one
thread; 0 workers computes the blocks here, one after the other. Prints one line and appends it to
results/clustering_dask.jsonl: seconds in all and of the fit, the adjusted Rand index of the rows that were labelled and
of the others, and the peak of this process.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from contextlib import ExitStack
from time import perf_counter

import dask.array as da
import numpy as np
from machine import RESULTS
from sklearn.metrics import adjusted_rand_score

from frpcag import FRPCAGClustering

FEATURES, CLUSTERS, CHUNK = 120, 10, 25_000


def measure(n: int, n_workers: int) -> dict:
    centres = 2 * np.random.default_rng(0).normal(size=(CLUSTERS, FEATURES)).astype(np.float32)
    y = np.random.default_rng(1).integers(0, CLUSTERS, n)

    def rows(block_info=None) -> np.ndarray:
        start, stop = block_info[None]["array-location"][0]
        rng = np.random.default_rng([2, start])
        X = centres[y[start:stop]] + 2 * rng.standard_normal((stop - start, FEATURES), dtype=np.float32)
        X[rng.random(X.shape) < 0.1] = 0
        return X

    sizes = tuple(min(CHUNK, n - start) for start in range(0, n, CHUNK))
    dx = da.map_blocks(rows, chunks=(sizes, (FEATURES,)), dtype=np.float32)
    start = perf_counter()
    model = FRPCAGClustering(CLUSTERS, random_state=0).fit(dx)
    seconds = perf_counter() - start
    rest = np.setdiff1d(np.arange(n), model.sample_indices_)
    return {
        "n": n,
        "workers": n_workers,
        "seconds": round(seconds, 1),
        "fit_seconds": round(sum(model.estimator_.timings_.values()), 1),
        "steps": model.n_iter_,
        "missing_share": round(model.missing_share_, 3),
        "labelled": len(model.sample_indices_),
        "ari_labelled": round(adjusted_rand_score(y[model.sample_indices_], model.labels_[model.sample_indices_]), 4),
        "ari_others": round(adjusted_rand_score(y[rest], model.labels_[rest]), 4) if len(rest) else None,
        "client_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n, n_workers = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 200_000), (2, 2)))
    with ExitStack() as stack:
        if n_workers:
            from distributed import Client, LocalCluster

            cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(Client(stack.enter_context(cluster)))
        row = json.dumps(measure(n, n_workers))
    print(row)
    with (RESULTS / "clustering_dask.jsonl").open("a") as file:
        file.write(row + "\n")
