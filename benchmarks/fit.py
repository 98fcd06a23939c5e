"""The whole fit (two graphs, gap <= 1e-3, factors) on MNIST, beside the straight port, and how it grows with n.

Run with FRPCAG_DATA set: ``python benchmarks/fit.py [5000 15000 25000 70000]``. Writes results/fit.json. Every
measurement runs in a process of its own, so that peak memory is that of one fit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from memory import status

PORT_UP_TO = 25000


def child(kind: str, n: int) -> dict:
    """Fit the first ``n`` images and return times and peak memory."""
    from reproduction.datasets import load_dataset

    from frpcag import FRPCAG

    X = load_dataset("mnist").X[:n].astype(np.float32)
    if kind == "port":
        import port

        from frpcag import build_graph
        from frpcag.engines.gammas import scale_free_gamma

        X = X - X.mean(axis=0)
        gammas = [scale_free_gamma(build_graph(X, axis=a, random_state=0).laplacian, X, axis=a) for a in (0, 1)]
        return {"n": n, **port.fit(X, gamma1=gammas[0], gamma2=gammas[1])}
    FRPCAG(random_state=0).fit(X[:300])  # loads libraries and compiled kernels
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far
    before, start = status("VmRSS"), perf_counter()
    model = FRPCAG(random_state=0).fit(X)
    seconds, peak = perf_counter() - start, status("VmHWM")
    graphs = sum(
        G.weights.data.nbytes + G.weights.indices.nbytes + G.laplacian.data.nbytes + G.laplacian.indices.nbytes
        for G in (model.sample_graph_, model.feature_graph_)
    )
    return {
        "n": n, "times": model.timings_, "total": seconds, "n_iter": model.n_iter_,
        "gap": model.duality_gap_, "graph": model.sample_graph_.method, "graph_bytes": graphs,
        "fit_over_X": (peak - before + X.nbytes) / X.nbytes,
    }  # fmt: skip


def run(kind: str, n: int) -> dict:
    done = subprocess.run(
        [sys.executable, __file__, "--child", kind, str(n)], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def growth(rows: list[dict], stages: tuple[str, ...] | None = None) -> float:
    """Return the exponent of the least-squares line through log time against log n."""
    times = [sum(row["times"][s] for s in stages) if stages else row["total"] for row in rows]
    return float(np.polyfit(np.log([row["n"] for row in rows]), np.log(times), 1)[0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(sys.argv[2], int(sys.argv[3]))))
        sys.exit()
    from machine import write_result

    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    ours, port = [], []
    for n in map(int, sys.argv[1:] or ["5000", "15000", "25000", "70000"]):
        ours.append(row := run("ours", n))
        stages = "  ".join(f"{stage} {seconds:.2f}" for stage, seconds in row["times"].items())
        print(
            f"ours {n:6d}: {row['total']:7.2f} s  ({stages})  {row['n_iter']} steps, gap {row['gap']:.1e}, "
            f"{row['graph']} graph, peak {row['fit_over_X']:.1f}x X",
            flush=True,
        )
        if n <= PORT_UP_TO:
            port.append(row := run("port", n))
            stages = "  ".join(f"{stage} {seconds:.2f}" for stage, seconds in row["times"].items())
            print(
                f"port {n:6d}: {row['total']:7.2f} s  ({stages})  {row['n_iter']} steps, gap {row['gap']:.1e}; "
                f"ours is {row['total'] / ours[-1]['total']:.1f}x as fast",
                flush=True,
            )
    exponents = {
        "total": growth(ours),
        "graphs_and_solve": growth(ours, ("sample_graph", "feature_graph", "solve")),
    }
    print("growth exponents of ours:", exponents)
    write_result("fit", {"ours": ours, "port": port, "growth": exponents})
