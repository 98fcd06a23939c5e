"""One solver step: the fused CPU kernel against the naive NumPy/SciPy step and against the memory floor.

Run with FRPCAG_DATA set: ``python benchmarks/step.py [mnist orl mall wordvec]``. Writes results/step.json.

The floor is the time to move the bytes of a step at the bandwidth measured in the same run, every neighbour row of Y
read from memory: ``(nnz(L1) + 4 n) p`` numbers (Y gathered, X and U read, U and Y written).
"""

from __future__ import annotations

import os
import sys

import numpy as np
from machine import best_of, triad_bandwidth, write_result
from port import naive_step
from reproduction.datasets import load_dataset

from frpcag import Problem, build_graph
from frpcag.backends import select_backend
from frpcag.engines.gammas import scale_free_gamma
from frpcag.runtime.threads import count_threads
from frpcag.solvers.fista import lipschitz


def matrices(name: str) -> np.ndarray:
    """Return the data set as (longer, shorter) float32, centred."""
    if name == "mall":
        frames = np.load(os.path.join(os.environ["FRPCAG_DATA"], "video_mall.npz"))["frames"]
        X = frames.reshape(len(frames), -1).astype(np.float32) / 255
    elif name == "wordvec":
        file = np.load(os.path.join(os.environ["FRPCAG_DATA"], "wordvec.npz"))
        X = file["X"].astype(np.float32) * np.float32(file["scale"])
    else:
        X = load_dataset(name).X[:25000].astype(np.float32)
    X = X - X.mean(axis=0)
    return X if X.shape[0] >= X.shape[1] else np.ascontiguousarray(X.T)


def measure(name: str, bandwidth: float) -> dict:
    X = matrices(name)
    n, p = X.shape
    L1, L2 = (build_graph(X, axis=axis, random_state=0).laplacian.astype(np.float32) for axis in (0, 1))
    gamma1, gamma2 = (scale_free_gamma(L, X, axis=axis) for axis, L in enumerate((L1, L2)))
    problem = Problem(X, L1, L2, gamma1, gamma2)
    lam = 1 / lipschitz(problem)
    backend = select_backend("numba")
    state = backend.load(problem, step=lam)
    backend.step(state, momentum=0.5)  # compiles
    backend.gap(state)
    f = np.float32
    arguments = (X, X, X * f(0.9), L1, L2, f(gamma1), f(gamma2), f(lam), f(0.5))
    naive, fused, gap = np.inf, np.inf, np.inf
    for _ in range(3):  # interleaved: the machine's mood changes slowly
        naive = min(naive, best_of(lambda: naive_step(*arguments), 1))
        fused = min(fused, best_of(lambda: backend.step(state, momentum=0.5), 8))
        gap = min(gap, best_of(lambda: backend.gap(state), 3))
    floor = (L1.nnz + 4 * n) * p * 4 / bandwidth
    return {
        "data": name, "n": n, "p": p, "neighbours": L1.nnz / n, "feature_neighbours": L2.nnz / p,
        "naive_ms": 1e3 * naive, "fused_ms": 1e3 * fused, "gap_ms": 1e3 * gap, "floor_ms": 1e3 * floor,
        "times_naive": naive / fused, "times_floor": fused / floor,
    }  # fmt: skip


if __name__ == "__main__":
    bandwidth = triad_bandwidth(count_threads(None))
    print(f"triad bandwidth {bandwidth / 1e9:.1f} GB/s")
    rows = []
    for name in sys.argv[1:] or ["mnist", "orl", "mall", "wordvec"]:
        bandwidth = max(bandwidth, triad_bandwidth(count_threads(None)))
        rows.append(row := measure(name, bandwidth))
        print(
            f"{name:8s} {row['n']:7d} x {row['p']:4d}  naive {row['naive_ms']:8.1f} ms fused {row['fused_ms']:6.1f} ms "
            f"({row['times_naive']:5.1f}x)  floor {row['floor_ms']:6.1f} ms ({row['times_floor']:.2f}x floor)  "
            f"gap {row['gap_ms']:6.1f} ms",
            flush=True,
        )
    write_result("step", {"bandwidth_GB_s": bandwidth / 1e9, "rows": rows})
