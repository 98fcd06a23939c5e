"""Fits on row blocks: time, memory per worker, bytes moved, a killed worker, and the cost model fitted to them.

Run with FRPCAG_DATA set::

    python benchmarks/dask_scaling.py run ROWS WORKERS [LIMIT]   one fit of patches; LIMIT as in "1.6GB", per worker
    python benchmarks/dask_scaling.py kill ROWS WORKERS [LIMIT]  the same, with a worker killed in mid-solve
    python benchmarks/dask_scaling.py tiny ROWS WORKERS          blocks of 500 rows: a step is all tasks
    python benchmarks/dask_scaling.py plain ROWS THREADS         the plain Numba backend, graph and solve
    python benchmarks/dask_scaling.py model                      fit the cost model to all runs recorded, read it out

Every call puts its record into results/dask.json, in place of one of the same fit, and brings the tables of
docs/scaling.md up to date. The data are all 8 x 8 patches at stride 4 of the highway video (1864400 x 64, float32), or
as many of them, evenly spaced. Seconds are of a process, or a cluster, that has done a
small fit before.
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
from dask_model import fit_model, write_tables
from machine import RESULTS, write_result

from frpcag import FRPCAG
from frpcag.dask import DaskBackend

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

    from frpcag.dask.row_chunks import as_row_chunks

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
            # Two chunks at least, so that two workers have work.
            chunk_rows = TINY_ROWS if mode == "tiny" else min(CHUNK_ROWS, -(-n_rows // 2))
            dx = as_row_chunks(str(path), chunk_rows=chunk_rows)
            warm = as_row_chunks(
                np.load(path, mmap_mode="r")[:: n_rows // WARM_ROWS or 1].copy(), chunk_rows=WARM_ROWS // 2
            )
            FRPCAG(backend=DaskBackend(), **WARM).fit(warm)
            start, used, busy = perf_counter(), cpu_seconds(client), machine_cpu_seconds()
            # Only the fit that loses a worker saves its iterates, and only it looks at every step.
            kill = mode == "kill"
            backend = DaskBackend(checkpoint=f"{folder}/checkpoint" if kill else None)
            search = "approximate" if mode == "tiny" else "auto"
            model = FRPCAG(backend=backend, sample_graph=search, random_state=0, callback=watch if kill else None).fit(
                dx
            )
            seconds, used, busy = perf_counter() - start, cpu_seconds(client) - used, machine_cpu_seconds() - busy
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
        "halo_rows_between_workers": between, "cpu_seconds": used, "cpu_seconds_of_others": busy - used,
        "seconds": seconds, "timings": model.timings_,
        "step_seconds": model.timings_["solve"] / model.n_iter_,
        "peak_MB_per_worker": peaks, "matrix_MB": dx.nbytes / 2**20, "events": events,
    }  # fmt: skip


def plain_fit(n_rows: int, n_threads: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "patches.npy"
        write_patches(path, n_rows)
        X = np.load(path)
    FRPCAG(backend="numba", n_jobs=n_threads, **WARM).fit(X[:: n_rows // WARM_ROWS or 1])
    start, used, busy = perf_counter(), process_time(), machine_cpu_seconds()
    model = FRPCAG(backend="numba", random_state=0, n_jobs=n_threads).fit(X)
    return {
        "kind": "plain", "n": X.shape[0], "p": X.shape[1], "workers": n_threads, "n_iter": model.n_iter_,
        "gap": model.duality_gap_, "objective": model.objective_, "seconds": perf_counter() - start,
        "timings": model.timings_, "step_seconds": model.timings_["solve"] / model.n_iter_, "peak_MB": peak_megabytes(),
        "cpu_seconds": process_time() - used,
        "cpu_seconds_of_others": machine_cpu_seconds() - busy - (process_time() - used),
    }  # fmt: skip


def cpu_seconds(client) -> float:
    """Return the CPU time so far of this process, the scheduler in it, and all workers: a busy machine leaves it."""
    return process_time() + sum(client.run(process_time).values())


def machine_cpu_seconds() -> float:
    """Return the CPU time so far of all processes of the machine: that of others spoils a measurement."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


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
        what = ("kind", "n", "workers", "limit")
        others = [old for old in record["rows"] if [old.get(key) for key in what] != [row.get(key) for key in what]]
        record["rows"] = sorted([*others, row], key=lambda row: (row["n"], row["kind"], row["workers"]))
    record.pop("machine", None)
    write_result("dask", record)
    write_tables(record)
