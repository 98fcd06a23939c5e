"""The GPU: one solver step against the memory floor, whole fits by stage, memory, and our own CPU backend.

Run on a machine with an NVIDIA GPU and FRPCAG_DATA set: ``python benchmarks/gpu.py [steps] [fits] [cpu] [rows]``
(all four without arguments). Writes results/gpu.json.

The floor of a step is that of ``benchmarks/step.py``: ``(nnz(L1) + 4 n) p`` numbers, every neighbour row of Y read from
memory, at the bandwidth of a copy measured in the same run. Fits are the second of two in a process: kernels are
compiled by then. ``X`` is a tensor on the GPU.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

import numpy as np
import torch
from machine import best_of, write_result
from reproduction.datasets import load_dataset

from frpcag import FRPCAG, build_graph
from frpcag.backends import select_backend
from frpcag.backends.torch.backend import TensorProblem, TorchBackend
from frpcag.engines.torch import fit_bytes, tensor_gamma
from frpcag.graphs import Index
from frpcag.problem import Certificate, Problem
from frpcag.solvers.fista import lipschitz

# Shahid et al. 2016: seconds of one core for the two graphs (strategy 2, FLANN) and the solver.
PAPER = {"mnist 25000 x 784": [40.7, 22.2, 58.6], "census 2.5 million x 68": [540, 42, 3900]}


def matrix(name: str, n: int | None = None) -> torch.Tensor:
    """Return MNIST's first ``n`` images, or all 8 x 8 patches of a video at stride 3, as float32 on the GPU."""
    if name == "mnist":
        return torch.from_numpy(load_dataset("mnist").X[:n].astype(np.float32)).cuda()
    frames = np.load(os.path.join(os.environ["FRPCAG_DATA"], "video_bootstrap.npz"))["frames"]
    patches = torch.from_numpy(frames).cuda().float().div_(255).unfold(1, 8, 3).unfold(2, 8, 3)
    return patches.reshape(-1, 64)


def copy_bandwidth() -> float:
    """Return bytes read and written per second by a large copy on the GPU."""
    a = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").random_()
    b = torch.empty_like(a)
    return 2 * a.numel() / min(_seconds(lambda: b.copy_(a)) for _ in range(10))


def _seconds(function) -> float:
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    function()
    stop.record()
    torch.cuda.synchronize()
    return start.elapsed_time(stop) / 1e3


def make_problem(X: torch.Tensor) -> TensorProblem:
    X = X - X.mean(dim=0)
    L1, L2 = (build_graph(X, axis=axis, random_state=0).laplacian for axis in (0, 1))
    gammas = tensor_gamma(L1, X, axis=0), tensor_gamma(L2, X, axis=1)
    return TensorProblem(X, L1, L2, *gammas, lmax1=L1.lmax, lmax2=L2.lmax)


def _take_steps(backend: TorchBackend, state, n_steps: int) -> None:
    if backend.run_on_device(state, n_steps, t=1.0, restart=True) is None:  # tensor operations go one by one
        for _ in range(n_steps):
            backend.step(state, momentum=0.9)


def step_time(backend: TorchBackend, problem: TensorProblem, *, coarse: bool = False) -> tuple[float, float]:
    """Return the seconds of a step and of a certificate, the best of several bursts.

    ``coarse`` asks for the steps that the Triton kernels do far from the optimum; others read neighbours in full.
    """
    state = backend.load(problem, step=1 / lipschitz(problem))
    if not coarse:
        backend.step(state, momentum=0.0)
    _take_steps(backend, state, 4)  # compiles and captures
    bursts = [_seconds(lambda: _take_steps(backend, state, 40)) / 40 for _ in range(5)]
    backend.gap(state)
    return min(bursts), min(_seconds(lambda: backend.gap(state)) for _ in range(5))


def measure_steps(bandwidth: float) -> list[dict]:
    rows = []
    for name, n in (("mnist", 25000), ("mnist", 70000), ("patches", None)):
        problem = make_problem(matrix(name, n))
        n_rows, p = problem.X.shape
        seconds, gap = step_time(TorchBackend(), problem)
        coarse, _ = step_time(TorchBackend(), problem, coarse=True)
        unfused, _ = step_time(TorchBackend(fused=False), problem)
        floor = (problem.L1.nnz + 4 * n_rows) * p * 4 / bandwidth
        rows.append({
            "data": name, "n": n_rows, "p": p, "neighbours": problem.L1.nnz / n_rows,
            "feature_neighbours": problem.L2.nnz / p, "step_ms": 1e3 * seconds, "gap_ms": 1e3 * gap,
            "floor_ms": 1e3 * floor, "times_floor": seconds / floor, "coarse_ms": 1e3 * coarse,
            "tensor_operations_ms": 1e3 * unfused,
        })  # fmt: skip
        print(
            f"step {name} {n_rows} x {p}: {1e3 * seconds:.3f} ms, coarse {1e3 * coarse:.3f} ms, floor "
            f"{1e3 * floor:.3f} ms, {seconds / floor:.2f}x; gap {1e3 * gap:.3f} ms; tensor operations "
            f"{1e3 * unfused:.2f} ms",
            flush=True,
        )
    return rows


def measure_fits() -> list[dict]:
    rows = []
    for name, n in [("mnist", n) for n in (5000, 15000, 25000, 70000)] + [("patches", None)]:
        X = matrix(name, n)
        torch.cuda.empty_cache()
        for run in range(2):
            torch.cuda.reset_peak_memory_stats()
            start = perf_counter()
            model = FRPCAG(random_state=0).fit(X)
            torch.cuda.synchronize()
            seconds = perf_counter() - start
            if run == 0:
                first = seconds
                model = None
        size = X.numel() * X.itemsize
        formula = fit_bytes(tuple(X.shape), X.itemsize, model.n_neighbors)
        peak = torch.cuda.max_memory_allocated()
        rows.append({
            "data": name, "n": X.shape[0], "p": X.shape[1], "seconds": seconds, "first_seconds": first,
            "times": model.timings_, "n_iter": model.n_iter_, "gap": model.duality_gap_,
            "graph": model.sample_graph_.method, "peak_bytes": peak, "formula_bytes": formula,
            "peak_over_X": peak / size, "peak_over_formula": peak / formula,
        })  # fmt: skip
        stages = "  ".join(f"{stage} {1e3 * t:.0f}" for stage, t in model.timings_.items())
        print(
            f"fit {name} {X.shape[0]} x {X.shape[1]}: {seconds:.3f} s (first {first:.2f} s; ms: {stages}), "
            f"{model.n_iter_} steps, gap {model.duality_gap_:.1e}, {model.sample_graph_.method}, "
            f"peak {peak / 1e9:.2f} GB = {peak / size:.1f}x X, {peak / formula:.2f}x the formula",
            flush=True,
        )
        model = None
    return rows


def measure_recall(n: int = 100_000) -> float:
    """Return the share of true neighbours among the approximate ones, on patches of every part of the video."""
    X = matrix("patches")
    X = X[torch.arange(0, len(X), len(X) // n, device="cuda")]
    truth, found = (Index(X, method=way, random_state=0).build(10) for way in ("exact", "approximate"))
    # Patches repeat: count by distance, not by index.
    near = found[1] <= truth[1][:, -1:] * (1 + 1e-6)
    return float(near.double().mean())


def run_steps(name: str, problem: Problem, lam: float) -> tuple[np.ndarray, Certificate, float]:
    """Return U and the certificate after 20 steps, and the seconds of one step more."""
    backend = select_backend(name)
    state = backend.load(problem, step=lam)
    for k in range(20):
        backend.step(state, momentum=k / (k + 3))
    at, U = backend.gap(state), backend.unload(state).copy()
    state = backend.load(problem, step=lam)
    return U, at, best_of(lambda: backend.step(state, momentum=0.5), 8)


def measure_cpu() -> dict:
    """Return step and fit of our CPU backend on this machine's cores, and how near the GPU stays to NumPy's steps."""
    problem = make_problem(matrix("mnist", 25000))
    X = problem.X.cpu().numpy()
    host = Problem(X, problem.L1.to_scipy(), problem.L2.to_scipy(), problem.gamma1, problem.gamma2)
    lam = 1 / lipschitz(problem)
    (U, at, _), (_, _, seconds), (V, found, _) = (run_steps(name, host, lam) for name in ("numpy", "numba", "torch"))
    FRPCAG(random_state=0, backend="numba").fit(X[:300])  # compiles
    model = FRPCAG(random_state=0, backend="numba").fit(X)
    record = {
        "data": "mnist", "n": len(X), "cores": os.cpu_count(), "step_ms": 1e3 * seconds, "times": model.timings_,
        "fit_seconds": sum(model.timings_.values()), "n_iter": model.n_iter_, "gap": model.duality_gap_,
        "after_20_steps": {
            "largest_difference": float(np.abs(U - V).max()), "largest_entry": float(np.abs(X).max()),
            "objective_relative_difference": abs(found.objective / at.objective - 1),
            "gap_numpy": at.gap, "gap_torch": found.gap,
        },
    }  # fmt: skip
    print("cpu", record, flush=True)
    return record


def measure_rows(n: int = 25000) -> list[dict]:
    """Return the milliseconds a row of transform and denoise, of a model on the GPU and of one on the host's cores."""
    X = matrix("mnist", n + 10_000)
    train, rows = X[:n], X[n:].clone()
    generator = torch.Generator(device="cuda").manual_seed(0)
    rows[torch.rand(rows.shape, device="cuda", generator=generator) < 0.1] = 255.0
    found = []
    for where, some in (("gpu", train), ("cpu", train.cpu().numpy())):
        model = FRPCAG(random_state=0, backend="auto" if where == "gpu" else "numba").fit(some)
        for method in ("transform", "denoise"):
            for batch in (1, 1000, 10_000):
                new = rows[:batch] if where == "gpu" else rows[:batch].cpu().numpy()

                def answer(model=model, method=method, new=new) -> None:
                    getattr(model, method)(new)
                    torch.cuda.synchronize()

                answer()  # prepares what the training rows say, and compiles
                seconds = best_of(answer, 3)
                found.append({"where": where, "method": method, "batch": batch, "ms_per_row": 1e3 * seconds / batch})
                print("new rows", found[-1], flush=True)
    return found


if __name__ == "__main__":
    asked = sys.argv[1:] or ["steps", "fits", "cpu", "rows"]
    bandwidth = copy_bandwidth()
    record = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "copy_TB_s": bandwidth / 1e12}
    print(record, flush=True)
    if "steps" in asked:
        record["steps"] = measure_steps(bandwidth)
    if "fits" in asked:
        record["fits"] = measure_fits()
        record["paper_seconds"] = PAPER
        record["approximate_recall"] = measure_recall()
        print("recall", record["approximate_recall"], flush=True)
    if "cpu" in asked:
        record["cpu"] = measure_cpu()
    if "rows" in asked:
        record["rows"] = measure_rows()
    write_result("gpu", record)
