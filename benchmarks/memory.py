"""Peak memory of a fit beside what the memory guard predicts, for thirteen kinds of fits, each in a process of its own.

``python benchmarks/memory.py [NAME...]`` needs no data set: samples around centres are made on the spot. The peak is
that of the process while it fits, less what it held before, ``X`` not counted. Writes results/memory.json. Memory does
not depend on what else the machine does; no time is taken here.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

# Shape, dtype, share of missing entries (or of entries that are not zero, where X is sparse), and what is fitted.
CASES = {
    "images": (5000, 784, "float32", {}),
    "tall": (100000, 64, "float32", {}),
    "taller": (20000, 256, "float64", {}),
    "wide": (400, 20000, "float32", {}),
    "wide64": (2000, 4096, "float64", {}),
    "square": (3000, 3000, "float32", {}),
    "missing": (10000, 400, "float32", {"missing": 0.2}),
    "missing-wide": (500, 8000, "float64", {"missing": 0.2}),
    "sparse": (20000, 500, "float64", {"sparse": 0.05}),
    "one-graph": (20000, 400, "float32", {"feature_graph": None}),
    "refined": (10000, 400, "float32", {"n_refine": 1}),
    "clusters": (8000, 400, "float32", {"clusters": 10}),
    "clusters-of-a-table": (20000, 20, "float64", {"clusters": 10}),
}


def samples(n: int, p: int, dtype: str, *, missing: float = 0.0, sparse: float = 0.0):
    """Return samples around 50 centres; made in place, so that little more than ``X`` is ever held."""
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    if sparse:
        return sp.random_array((n, p), density=sparse, rng=rng, dtype=dtype, format="csr")
    centres = 2 * rng.standard_normal((50, p), dtype=dtype)
    X = rng.standard_normal((n, p), dtype=dtype)
    for i in range(0, n, 1000):
        X[i : i + 1000] += centres[rng.integers(0, 50, len(X[i : i + 1000]))]
        if missing:
            X[i : i + 1000][rng.random(X[i : i + 1000].shape, dtype="f4") < missing] = np.nan
    return X


def status(name: str) -> int:
    """Return an entry of the process's status in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def child(name: str) -> dict:
    """Fit one matrix and return the prediction and the peak."""
    from frpcag import FRPCAG, FRPCAGClustering
    from frpcag.engines.memory import fit_bytes

    n, p, dtype, options = CASES[name]
    options = dict(options)
    of_data = {key: options.pop(key) for key in ("missing", "sparse") if key in options}
    clusters = options.pop("clusters", None)
    model = FRPCAG(random_state=0, tol=1e-2, **options)
    FRPCAG(tol=0.5).fit(samples(300, 64, dtype, **of_data))  # loads libraries and compiled kernels
    X = samples(n, p, dtype, **of_data)
    with open("/proc/self/clear_refs", "w") as forget:
        forget.write("5")  # the peak so far
    before = status("VmRSS")
    whole = model if clusters is None else FRPCAGClustering(clusters, model, random_state=0)
    predicted = fit_bytes(X, model) if clusters is None else whole._bytes(X)
    whole.fit(X)
    fitted = model if clusters is None else whole.estimator_
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return {
        "name": name, "n": n, "p": p, "dtype": dtype, "graph": fitted.sample_graph_.method, "X_MB": size / 1e6,
        "predicted_MB": predicted / 1e6, "peak_MB": (status("VmHWM") - before) / 1e6,
    }  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(sys.argv[2])))
        return
    from machine import write_result

    rows = []
    for name in sys.argv[1:] or CASES:
        command = [sys.executable, __file__, "--child", name]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(row := json.loads(done.stdout.splitlines()[-1]))
        print(
            f"{name:19s}{row['n']:7d} x {row['p']:5d} {row['dtype']}: X {row['X_MB']:6.1f} MB, peak "
            f"{row['peak_MB']:6.1f} MB, predicted {row['predicted_MB']:6.1f} MB "
            f"({row['predicted_MB'] / row['peak_MB']:.2f}), {row['graph']} search",
            flush=True,
        )
    if not sys.argv[1:]:
        write_result("memory", {"rows": rows})


if __name__ == "__main__":
    main()
