"""Seconds and memory of the default clusterer on MNIST, by the number of samples, fit and labels apart.

Run with FRPCAG_DATA set: ``python benchmarks/clustering_times.py [N ...]``; 2000, 20,000 and 70,000 by default. Each
size runs in a process of its own. Prints one line a size and writes results/clustering_times.json.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from time import perf_counter, process_time

import numpy as np
from machine import RESULTS
from reproduction.datasets import load_dataset
from reproduction.evaluate.clustering import clustering_error

from frpcag import FRPCAGClustering

SIZES = (2000, 20_000, 70_000)


def measure(n: int) -> dict:
    data = load_dataset("mnist")
    rows = np.random.default_rng(0).permutation(len(data.X))[:n]
    X, y = data.X[rows].astype(np.float32), data.y[rows]
    FRPCAGClustering(10, random_state=0).fit(X[:300])  # compiled code is loaded, or made once
    start, cpu = perf_counter(), process_time()
    model = FRPCAGClustering(10, random_state=0).fit(X)
    return {
        "n": n,
        "seconds": round(perf_counter() - start, 1),
        "cpu_seconds": round(process_time() - cpu, 1),
        "fit_seconds": round(sum(model.estimator_.timings_.values()), 1),
        "error": round(clustering_error(y, model.labels_), 4),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
        sys.exit()
    rows = []
    for n in map(int, sys.argv[1:]) if len(sys.argv) > 1 else SIZES:
        done = subprocess.run([sys.executable, __file__, "--one", str(n)], capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "clustering_times.json").write_text(json.dumps(rows, indent=1) + "\n")
