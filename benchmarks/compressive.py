"""What a compressive fit costs and what it loses: MNIST by the size of the sample, and ten million rows from a file.

Run with FRPCAG_DATA set: ``python benchmarks/compressive.py [mnist] [file [ROWS ...]]`` (both without arguments; a
million and ten million rows). Every measurement runs in a process of its own and is written to
results/compressive.json at once; one that is there already is not repeated, so that a run can be ended and taken up
again. ``--again`` forgets what is there.

- ``clusters``: all 70,000 images clustered from a sample, beside the clusterer on all of them.
- ``cleaning``: a tenth of the pixels set to 0 or 255; distance of the clean part from the true images, in units of
  their distance from their mean.
- ``file``: 8 x 8 patches of a video as a memory-mapped .npy, a twentieth of the cells set to 0 or 1. Peak memory is
  that of the process while it fits, less what it held before, beside the prediction of the guard. The file and the
  results lie in a temporary folder, TMPDIR, and take 12 bytes for each cell.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from machine import RESULTS, write_result

SIZES = (2000, 5000, 10_000, 20_000)
ROWS = (10**6, 10**7)
SIDE = 8


def mnist() -> tuple[np.ndarray, np.ndarray]:
    from reproduction.datasets import load_dataset

    data = load_dataset("mnist")
    return data.X.astype(np.float32), data.y


def compressive(kept: int | str, *, seed: int = 0, **options):
    from frpcag import FRPCAG, CompressiveFRPCAG

    inner = FRPCAG(10, random_state=seed)
    return CompressiveFRPCAG(inner, n_samples_kept=kept, random_state=seed, **options)


def timed(model, X) -> dict:
    """Fit and return the seconds, and what the process held at its peak beyond what it held before."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far
    before, load, start, cpu = status("VmRSS"), os.getloadavg()[0], perf_counter(), process_time()
    model.fit(X)
    return {
        "load": load,  # before it; much more than the fit's own process says that the seconds are not those of the fit
        "seconds": perf_counter() - start,
        "cpu_seconds": process_time() - cpu,
        "peak_MB": (status("VmHWM") - before) / 1e6,
    }


def status(name: str) -> int:
    """Return an entry of the process's status in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def clusters(kept: int | str, seed: int) -> dict:
    """Cluster MNIST from a sample; "all" takes the plain estimator."""
    from reproduction.evaluate.clustering import clustering_error

    from frpcag import FRPCAG, FRPCAGClustering

    X, y = mnist()
    FRPCAGClustering(10, compressive(400), random_state=0).fit(X[:1000])  # loads libraries and compiled kernels
    inner = FRPCAG(10, random_state=seed) if kept == "all" else compressive(kept, seed=seed)
    model = FRPCAGClustering(10, inner, random_state=seed)
    cost = timed(model, X)
    fitted = model.estimator_
    return cost | {
        "error": clustering_error(y, model.labels_), "heldout_error": getattr(fitted, "heldout_error_", None),
        "times": fitted.timings_, "X_MB": X.nbytes / 1e6,
    }  # fmt: skip


def cleaning(kept: int | str) -> dict:
    """Clean MNIST with a tenth of its pixels wrong."""
    from reproduction.corrupt import salt_and_pepper

    from frpcag import FRPCAG

    truth, _ = mnist()
    X = salt_and_pepper(truth, 0.1, random_state=np.random.RandomState([2016, 3]))[0].astype(np.float32)
    compressive(400).fit(X[:1000])
    model = FRPCAG(10, random_state=0) if kept == "all" else compressive(kept)
    cost = timed(model, X)
    spread = np.linalg.norm(truth - truth.mean(axis=0))
    return cost | {
        "error": float(np.linalg.norm(model.low_rank_ - truth) / spread),
        "as_given": float(np.linalg.norm(X - truth) / spread),
        "heldout_error": getattr(model, "heldout_error_", None),
    }


def nearly_all() -> dict:
    """Return the held-out error of a sample of all images but those that are held out: the best there is to reach."""
    X, _ = mnist()
    model = compressive(len(X) - 1000, keep_low_rank=False)
    return timed(model, X) | {"heldout_error": model.heldout_error_}


def patches(n: int):
    """Give the first ``n`` patches of a video frame by frame, true and with wrong cells, float32."""
    frames = np.load(os.path.join(os.environ["FRPCAG_DATA"], "video_bootstrap.npz"))["frames"]
    rng = np.random.default_rng([2016, n])
    done = 0
    for frame in frames:
        clean = np.lib.stride_tricks.sliding_window_view(frame, (SIDE, SIDE)).reshape(-1, SIDE * SIDE)[: n - done]
        clean = clean.astype(np.float32) / np.float32(255)
        given = clean.copy()
        wrong = rng.random(clean.shape, dtype=np.float32) < 0.05
        given[wrong] = rng.integers(0, 2, int(wrong.sum()))
        yield given, clean
        done += len(clean)
        if done == n:
            return
    raise ValueError(f"n={n} patches are more than the {done} of the video; pass fewer.")


def file(n: int) -> dict:
    """Clean patches from a memory-mapped file, results to files."""
    from frpcag.estimators.kept import carry_bytes

    compressive(1000).fit(np.concatenate([given for given, _ in islice(patches(10**5), 2)])[:2000])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, SIDE * SIDE))
        at = 0
        for given, _ in patches(n):
            X[at : at + len(given)] = given
            at += len(given)
        del X
        model = compressive("auto", output=Path(folder, "clean"))
        cost = timed(model, path)
        needs = {"n_neighbors": 10, "n_components": 10, "stored": True, "low_rank": True}
        predicted = carry_bytes((n, SIDE * SIDE), 4, kept=(len(model.sample_indices_), SIDE * SIDE), **needs)
        off = before = spread = 0.0
        mean, at = model.mean_.astype(np.float32), 0
        for given, clean in patches(n):
            found = model.low_rank_[at : at + len(clean)]
            off += np.sum(np.square(found - clean), dtype=np.float64)
            before += np.sum(np.square(given - clean), dtype=np.float64)
            spread += np.sum(np.square(clean - mean), dtype=np.float64)
            at += len(clean)
        return cost | {
            "n_kept": len(model.sample_indices_), "times": model.timings_, "X_MB": path.stat().st_size / 1e6,
            "predicted_MB": predicted / 1e6, "heldout_error": model.heldout_error_,
            "error": float(np.sqrt(off / spread)), "as_given": float(np.sqrt(before / spread)),
        }  # fmt: skip


def cells(asked: list[str]) -> list[dict]:
    """Return what to measure: each names a function here and its arguments."""
    found: list[dict] = []
    if "mnist" in asked:
        found += [{"of": "clusters", "kept": m, "seed": s} for s in (0, 1, 2) for m in (*SIZES, "all")]
        found += [{"of": "cleaning", "kept": m} for m in SIZES]
        found += [{"of": "cleaning", "kept": "all"}, {"of": "nearly_all"}]
    if "file" in asked:
        found += [{"of": "file", "n": n} for n in [int(word) for word in asked if word.isdigit()] or ROWS]
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        cell = json.loads(sys.argv[2])
        print(json.dumps(cell | globals()[cell.pop("of")](**cell)))
        sys.exit()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    asked, record = [word for word in sys.argv[1:] if word != "--again"], RESULTS / "compressive.json"
    rows = json.loads(record.read_text())["rows"] if record.exists() and "--again" not in sys.argv else []
    for cell in cells(asked or ["mnist", "file"]):
        if any(all(row.get(name) == value for name, value in cell.items()) for row in rows):
            continue
        done = subprocess.run(
            [sys.executable, __file__, "--one", json.dumps(cell)], stdout=subprocess.PIPE, text=True, check=True
        )
        rows.append(cell | json.loads(done.stdout.splitlines()[-1]))
        write_result("compressive", {"rows": rows})
        print({name: round(v, 4) if isinstance(v, float) else v for name, v in rows[-1].items()}, flush=True)
