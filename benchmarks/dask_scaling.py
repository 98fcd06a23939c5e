"""Fits on row blocks: time, memory per worker, bytes moved, a killed worker, and the cost model fitted to them.

Run with FRPCAG_DATA set::

    python benchmarks/dask_scaling.py run ROWS WORKERS [LIMIT]   one fit of patches; LIMIT as in "1.6GB", per worker
    python benchmarks/dask_scaling.py kill ROWS WORKERS [LIMIT]  the same, with a worker killed in mid-solve
    python benchmarks/dask_scaling.py gpu ROWS WORKERS           steps in PyTorch on the GPU that all workers share
    python benchmarks/dask_scaling.py tiny ROWS WORKERS          blocks of 500 rows: a step is all tasks
    python benchmarks/dask_scaling.py plain ROWS THREADS         the plain Numba backend, graph and solve
    python benchmarks/dask_scaling.py model                      fit the cost model to all runs recorded, read it out

Every call adds its record to results/dask.json and brings the tables of docs/scaling.md up to date. The data are all
8 x 8 patches at stride 4 of the highway video (1864400 x 64, float32), or as many of them, evenly spaced. Seconds are
of a process, or a cluster, that has done a small fit before.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from machine import RESULTS, write_result
from scipy.optimize import nnls

from frpcag import FRPCAG
from frpcag.backends.dask import DaskBackend

CHUNK_ROWS, TINY_ROWS = 125_000, 500
KILL_AT = 13
# A small fit first, of plain and blocks alike: compiled code is loaded, and modules are imported on the workers.
WARM_ROWS, WARM = 5000, {"sample_graph": "approximate", "max_iter": 12, "stop": "change", "random_state": 0}
logging.basicConfig(level=logging.WARNING, format="%(message)s")
logging.getLogger("distributed").setLevel(logging.ERROR)
logging.getLogger("frpcag").setLevel(logging.INFO)


def write_patches(path: Path, n_rows: int) -> None:
    """Write patches to a .npy file, frame by frame: the matrix is never in memory."""
    frames = np.load(os.path.join(os.environ["FRPCAG_DATA"], "video_highway.npz"))["frames"]
    windows = np.lib.stride_tricks.sliding_window_view(frames, (8, 8), axis=(1, 2))[:, ::4, ::4]
    per_frame = windows.shape[1] * windows.shape[2]
    total = per_frame * len(frames)
    chosen = np.unique(np.linspace(0, total - 1, min(n_rows, total)).astype(np.int64))
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(len(chosen), 64))
    ends = np.searchsorted(chosen, np.arange(len(frames) + 1) * per_frame)
    for i, frame in enumerate(windows):
        rows = chosen[ends[i] : ends[i + 1]] - i * per_frame
        X[ends[i] : ends[i + 1]] = frame.reshape(per_frame, 64)[rows] / np.float32(255)
    X.flush()


def peak_megabytes() -> float:
    """Return the largest resident size this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def block_fit(n_rows: int, n_workers: int, limit: str | None, *, mode: str) -> dict:
    from distributed import Client, LocalCluster

    from frpcag.data.row_chunks import as_row_chunks

    moments, events = [], []

    def watch(progress):
        moments.append(perf_counter())
        if progress.n_iter == KILL_AT and not events:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            events.append({"step": progress.n_iter, "gap": progress.gap, "event": "SIGKILL to one worker"})

    import dask

    # A worker that was killed takes a while to come back on a busy machine; the cluster must not give it up.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"})
    with patient, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patches.npy"
        write_patches(path, n_rows)
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None,
            memory_limit=limit or "auto", local_directory=folder, silence_logs=logging.ERROR,
        )  # fmt: skip
        with cluster, Client(cluster) as client:
            dx = as_row_chunks(str(path), chunk_rows=TINY_ROWS if mode == "tiny" else CHUNK_ROWS)
            warm = as_row_chunks(
                np.load(path, mmap_mode="r")[:: n_rows // WARM_ROWS or 1].copy(), chunk_rows=WARM_ROWS // 2
            )
            FRPCAG(backend=DaskBackend(kernels="torch" if mode == "gpu" else "numba"), **WARM).fit(warm)
            start, used = perf_counter(), cpu_seconds(client)
            # Only the fit that loses a worker saves its iterates, and only it looks at every step.
            kill = mode == "kill"
            backend = DaskBackend(
                checkpoint=f"{folder}/checkpoint" if kill else None, kernels="torch" if mode == "gpu" else "numba"
            )
            model = FRPCAG(backend=backend, random_state=0, callback=watch if kill else None).fit(dx)
            seconds, used = perf_counter() - start, cpu_seconds(client) - used
            between = rows_between_workers(client, model.sample_graph_, n_workers)
            peaks = list(client.run(peak_megabytes).values())
    graph = model.sample_graph_
    if mode == "kill":
        steps = np.diff(moments)
        slowest = int(np.argmax(steps)) + 2
        events.append({"step": slowest, "event": "longest step", "seconds": float(steps.max())})
    return {
        "kind": mode, "n": dx.shape[0], "p": dx.shape[1], "workers": n_workers, "limit": limit,
        "blocks": len(graph.parts), "halo_rows": graph.n_halo, "pieces": graph.halo.n_pieces, "edges": graph.n_edges,
        "recall": graph.recall, "n_iter": model.n_iter_, "gap": model.duality_gap_, "objective": model.objective_,
        "halo_rows_between_workers": between, "cpu_seconds": used, "seconds": seconds, "timings": model.timings_,
        "step_seconds": model.timings_["solve"] / model.n_iter_,
        "peak_MB_per_worker": peaks, "matrix_MB": dx.nbytes / 2**20, "events": events,
    }  # fmt: skip


def plain_fit(n_rows: int, n_threads: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patches.npy"
        write_patches(path, n_rows)
        X = np.load(path)
    FRPCAG(backend="numba", n_jobs=n_threads, **WARM).fit(X[:: n_rows // WARM_ROWS or 1])
    start, used = perf_counter(), process_time()
    model = FRPCAG(backend="numba", random_state=0, n_jobs=n_threads).fit(X)
    return {
        "kind": "plain", "n": X.shape[0], "p": X.shape[1], "workers": n_threads, "n_iter": model.n_iter_,
        "gap": model.duality_gap_, "objective": model.objective_, "seconds": perf_counter() - start,
        "timings": model.timings_, "step_seconds": model.timings_["solve"] / model.n_iter_, "peak_MB": peak_megabytes(),
        "cpu_seconds": process_time() - used,
    }  # fmt: skip


def cpu_seconds(client) -> float:
    """Return the CPU time so far of this process, the scheduler in it, and all workers: a busy machine leaves it."""
    return process_time() + sum(client.run(process_time).values())


def needed_rows(part) -> dict:
    return part.needs


def rows_between_workers(client, graph, n_workers: int) -> int:
    """Return the halo rows that travel in a step: blocks of one worker share them."""
    needs = client.gather(client.map(needed_rows, graph.parts, pure=False))
    home = [j * n_workers // len(needs) for j in range(len(needs))]
    return sum(
        len(np.unique(np.concatenate([here.get(j, np.zeros(0, np.int64)) for here in mine])))
        for worker in range(n_workers)
        for mine in [[here for block, here in enumerate(needs) if home[block] == worker]]
        for j in range(len(needs))
        if home[j] != worker
    )


def terms(row: dict) -> list[float]:
    """Return what a step's time is made of: gigaentries and halo gigabytes per worker, and one exchange or none."""
    share = row["n"] * row["p"] / row["workers"] / 1e9
    halo = 4 * row["halo_rows_between_workers"] * row["p"] / row["workers"] / 1e9
    return [share, halo, float(row["workers"] > 1)]


def fit_model(rows: list[dict]) -> dict:
    """Fit seconds per step to some runs by non-negative least squares of relative errors; check it on the others.

    The largest size recorded and every second other one are left out of the fit.
    """
    runs = [row for row in rows if row["kind"] in ("run", "tiny") and "cpu_seconds" in row and row["limit"] is None]
    sizes = sorted({row["n"] for row in runs})
    held = set(sizes[::-2]) if len(sizes) > 2 else set()
    fitted, checked = ([row for row in runs if (row["n"] in held) == out] for out in (False, True))
    A, b = np.array([terms(row) for row in fitted]), np.array([row["step_seconds"] for row in fitted])
    weights, _ = nnls(A / b[:, None], np.ones(len(b)))
    cut = [row for row in runs if row["blocks"] > 1 and row["kind"] == "run"]
    model = {
        "seconds_per_gigaentry_a_worker": weights[0],
        "seconds_per_halo_gigabyte_a_worker": weights[1],
        "seconds_per_exchange": weights[2],
        "halo_share": max(row["halo_rows"] / row["n"] for row in cut),
        "entries_per_row": max(1 + 2 * row["edges"] / row["n"] for row in runs),
        "relative_errors": (A @ weights / b - 1).tolist(),
        "predicted": [
            {
                "n": row["n"],
                "workers": row["workers"],
                "seconds_per_step": float(np.dot(terms(row), weights)),
                "measured": row["step_seconds"],
            }
            for row in checked
        ],
    }
    model["readings"] = [read_out(model, weights, n, workers) for n, workers in ((10**8, 32), (10**9, 256))]
    return model


def read_out(model: dict, weights: np.ndarray, n: int, workers: int, *, p: int = 64) -> dict:
    """Return what docs/scaling.md gives by formula, for float32; the halo is that of blocks, an upper bound."""
    h, e, n_w = model["halo_share"], model["entries_per_row"], n / workers
    row = {"n": n, "p": p, "workers": workers, "halo_rows_between_workers": h * n}
    return {
        **row,
        "seconds_per_step": float(np.dot(terms(row), weights)),
        "halo_GB_a_step": 4 * p * h * n / 1e9,
        "checkpoint_GB": 2 * 4 * p * n / 1e9,
        "GB_per_worker": n_w * (4 * p * (4 + 2 * h) + 28 * e + 40) / 1e9,
    }


def write_tables(record: dict) -> None:
    """Put the runs and readings into docs/scaling.md, between its marks."""
    path = RESULTS.parent / "docs" / "scaling.md"
    lines = [
        "| kind | rows | workers | limit | blocks | halo | recall | steps | gap "
        "| graph s | solve s | s a step | fit s | CPU s | peak MB |",
        "|" + "---|" * 15,
    ]
    for row in record["rows"]:
        halo = f"{100 * row['halo_rows'] / row['n']:.1f} %" if "halo_rows" in row else ""
        recall = f"{row['recall']:.3f}" if "recall" in row else ""
        peak = max(row.get("peak_MB_per_worker") or [row.get("peak_MB")])
        lines.append(
            f"| {row['kind']} | {row['n']} | {row['workers']} | {row.get('limit') or ''} | {row.get('blocks', '')} "
            f"| {halo} | {recall} | {row['n_iter']} | {row['gap']:.1e} | {row['timings']['sample_graph']:.0f} "
            f"| {row['timings']['solve']:.0f} | {row['step_seconds']:.3f} | {row['seconds']:.0f} "
            f"| {row.get('cpu_seconds', np.nan):.0f} | {peak:.0f} |"
        )
    if "model" in record:
        lines += ["", "| rows | workers | s a step | halo GB a step | GB a worker | checkpoint GB |", "|" + "---|" * 6]
        for row in record["model"]["readings"]:
            lines.append(
                f"| {row['n']:.0e} | {row['workers']} | {row['seconds_per_step']:.1f} | {row['halo_GB_a_step']:.1f} "
                f"| {row['GB_per_worker']:.1f} | {row['checkpoint_GB']:.0f} |"
            )
        lines += ["", "| left out of the fit: rows | workers | s a step predicted | measured |", "|" + "---|" * 4]
        for row in record["model"]["predicted"]:
            at = f"{row['seconds_per_step']:.3f} | {row['measured']:.3f}"
            lines.append(f"| {row['n']} | {row['workers']} | {at} |")
    text = path.read_text()
    head, _, rest = text.partition("<!-- runs -->")
    tail = rest.partition("<!-- end of runs -->")[2]
    path.write_text(head + "<!-- runs -->\n\n" + "\n".join(lines) + "\n\n<!-- end of runs -->" + tail)


if __name__ == "__main__":
    file = RESULTS / "dask.json"
    record = json.loads(file.read_text()) if file.exists() else {"rows": []}
    mode = sys.argv[1]
    if mode == "model":
        record["model"] = fit_model(record["rows"])
        print(json.dumps(record["model"], indent=1))
    else:
        n, workers = int(sys.argv[2]), int(sys.argv[3])
        limit = sys.argv[4] if len(sys.argv) > 4 else None
        row = plain_fit(n, workers) if mode == "plain" else block_fit(n, workers, limit, mode=mode)
        row["load_at_end"] = os.getloadavg()[0]
        print(json.dumps(row, indent=1))
        record["rows"].append(row)
    record.pop("machine", None)
    write_result("dask", record)
    write_tables(record)
