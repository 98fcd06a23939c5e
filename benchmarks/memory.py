"""Peak memory of a fit beside the formula of docs/cost.md, for several shapes, each in a process of its own.

``python benchmarks/memory.py`` needs no data set: samples around centres are made on the spot. Writes
results/memory.json. Memory does not depend on what else the machine does; no time is taken here.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import numpy as np

SHAPES = (
    (5000, 784, "float32"),
    (2000, 4096, "float32"),
    (20000, 256, "float32"),
    (20000, 256, "float64"),
    (100000, 64, "float32"),
)
N_NEIGHBORS = 10


def samples(n: int, p: int, dtype: str) -> np.ndarray:
    """Return samples around 50 centres; made in place, so that the peak before the fit is that of ``X``."""
    rng = np.random.default_rng(0)
    centres = 2 * rng.standard_normal((50, p), dtype=dtype)
    X = rng.standard_normal((n, p), dtype=dtype)
    for i in range(0, n, 1000):
        X[i : i + 1000] += centres[rng.integers(0, 50, len(X[i : i + 1000]))]
    return X


def child(n: int, p: int, dtype: str) -> dict:
    """Fit one matrix and return the peak, ``X`` included, and the formula's parts."""
    from frpcag import FRPCAG

    FRPCAG(random_state=0).fit(samples(300, 64, dtype))  # loads libraries and compiled kernels
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    X = samples(n, p, dtype)
    model = FRPCAG(random_state=0, n_neighbors=N_NEIGHBORS).fit(X)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    nnz1, nnz2 = (G.laplacian.nnz for G in (model.sample_graph_, model.feature_graph_))
    return {
        "n": n, "p": p, "dtype": dtype, "graph": model.sample_graph_.method, "nnz1": nnz1, "nnz2": nnz2,
        "X_MB": X.nbytes / 1e6, "formula_MB": formula(n, p, X.itemsize, nnz1 + nnz2) / 1e6, "peak_MB": peak / 1e6,
        "n_iter": model.n_iter_, "gap": model.duality_gap_,
    }  # fmt: skip


def formula(n: int, p: int, itemsize: int, nnz: int) -> int:
    """Return the bound of docs/cost.md: six arrays, graphs, factors, and what libraries keep."""
    long, short = max(n, p), min(n, p)
    return 6 * itemsize * long * (-(-short // 16) * 16) + 130 * nnz + 32 * short**2 + 60_000_000


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])))
        sys.exit()
    from machine import write_result

    rows = []
    for n, p, dtype in SHAPES:
        command = [sys.executable, __file__, "--child", str(n), str(p), dtype]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(row := json.loads(done.stdout.splitlines()[-1]))
        print(
            f"{n:7d} x {p:4d} {dtype}: X {row['X_MB']:6.1f} MB, peak {row['peak_MB']:6.1f} MB, formula "
            f"{row['formula_MB']:6.1f} MB, {row['graph']} graph",
            flush=True,
        )
    write_result("memory", {"n_neighbors": N_NEIGHBORS, "rows": rows})
