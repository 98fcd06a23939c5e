"""New rows with gross errors: how near `denoise` comes to the truth, what a classifier makes of `transform`, how long.

Run with FRPCAG_DATA set: ``python benchmarks/transform.py [--before SRC] [times] [truth] [labels] [stream] [gpu]``;
without names the first four parts. Writes results/transform.json and keeps the parts that are not run.

- truth: distances are relative to the distance of the held-back rows from the training mean.
- labels: a classifier is fitted on ``embedding_`` and judged on ``transform`` of new rows; the mean over 10, 20 and 40
  components. Training rows are clean, or damaged like the new ones.
- times: milliseconds a row, the median of repeated calls, in batches of 1000 and alone, of PCA too. ``--before`` is the
  ``src`` folder of another version, measured in turn with this one; its labels are given, too. What is prepared on
  the first call is given apart.
- stream: a million made rows of 64 features, in one call.
- gpu: only when asked for, where there is one: made rows of 256 features against a model that was fitted on the GPU.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings
from statistics import median
from time import perf_counter

import numpy as np
from machine import RESULTS, write_result
from reproduction.corrupt import block_occlusion, missing_pixels, salt_and_pepper
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cells import load
from frpcag import FRPCAG

SETS = (("orl", 300, 100), ("yale", 120, 45), ("usps", 1200, 300), ("coil20", 1140, 300), ("mfeat", 1200, 300))
CORRUPTIONS = {
    "clean": lambda X, shape: X,
    "block25": lambda X, shape: None if shape is None else block_occlusion(X, shape, 0.25, random_state=0)[0],
    "zeros40": lambda X, shape: missing_pixels(X, 0.4, random_state=0)[0],
    "black/white10": lambda X, shape: salt_and_pepper(X, 0.1, random_state=0)[0],
    "black/white20": lambda X, shape: salt_and_pepper(X, 0.2, random_state=0)[0],
    "NaN25": lambda X, shape: missing_pixels(X, 0.25, value=np.nan, random_state=1)[0],
    "NaN60": lambda X, shape: missing_pixels(X, 0.6, value=np.nan, random_state=0)[0],
}
LABELLED = (
    *(("digits", kind) for kind in ("clean", "black/white10", "black/white10 NaN25")),
    *(("usps", kind) for kind in ("clean", "black/white10", "block25")),
    *(("mnist", kind) for kind in ("clean", "black/white10", "block25")),
)
COMPONENTS = (10, 20, 40)
TIMED = (("usps", 1500, 300), ("orl", 300, 100))
BATCH, STREAM = 1000, 10**6
PARTS = ("truth", "labels", "times", "stream")


def damage(X: np.ndarray, shape, corruption: str) -> np.ndarray | None:
    """Return rows with one corruption after the other."""
    for one in corruption.split():
        if X is not None:
            X = CORRUPTIONS[one](X, shape)
    return X


def split(name: str, n_train: int, n_test: int):
    """Return training rows, new rows, the labels of both, and the image shape."""
    X, y, shape = load(name, max_samples=n_train + n_test)
    order = np.random.default_rng(1).permutation(len(X))
    train, new = order[:n_train], order[n_train : n_train + n_test]
    return X[train], X[new], y[train], y[new], shape


def truth() -> list[dict]:
    """Return, by data set and corruption, how far from the truth new rows are after all."""
    rows = []
    for name, n_train, n_test in SETS:
        train, test, _, _, shape = split(name, n_train, n_test)
        model = FRPCAG(random_state=0).fit(train)
        pca = PCA(min(50, n_train - 1)).fit(train)
        unit = np.linalg.norm(test - train.mean(axis=0))
        for corruption in CORRUPTIONS:
            if (Z := damage(test, shape, corruption)) is None:
                continue
            filled = np.where(np.isnan(Z), train.mean(axis=0), Z)
            guesses = {
                "as given": filled,
                "PCA": pca.inverse_transform(pca.transform(filled)),
                "nearest": train[pairwise_distances_argmin(filled, train)],
                "denoise": model.denoise(Z),
            }
            errors = {key: float(np.linalg.norm(guess - test) / unit) for key, guess in guesses.items()}
            rows.append({"data": name, "corruption": corruption, **errors})
            print(name, corruption, {key: round(value, 3) for key, value in errors.items()}, flush=True)
    return rows


def accuracy(known: np.ndarray, y: np.ndarray, new: np.ndarray, y_new: np.ndarray) -> float:
    """Return the share of new rows that a classifier of the known ones gets right, the mean over `COMPONENTS`."""
    scores = []
    for k in COMPONENTS:
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(known[:, :k], y)
        scores.append(classifier.score(new[:, :k], y_new))
    return float(np.mean(scores))


def label_here() -> list[dict]:
    """Return, by data set and corruption, how many labels a classifier of the components gets right."""
    rows = []
    for name, corruption in LABELLED:
        train, test, y, y_new, shape = split(name, 600 if name == "digits" else 1200, 300)
        new = damage(test, shape, corruption)
        for kind in ("clean", "damaged") if corruption != "clean" else ("clean",):
            given = damage(train, shape, corruption) if kind == "damaged" else train
            mean = np.nan_to_num(np.nanmean(given, axis=0))
            flat, flat_new = (np.where(np.isnan(part), mean, part) for part in (given, new))
            pca = PCA(max(COMPONENTS), random_state=0).fit(flat)
            model = FRPCAG(max(COMPONENTS), random_state=0).fit(given)
            row = {
                "PCA": accuracy(pca.transform(flat), y, pca.transform(flat_new), y_new),
                "transform": accuracy(model.embedding_, y, model.transform(new), y_new),
                "transform, nothing wrong": accuracy(model.embedding_, y, model.transform(test), y_new),
            }
            rows.append({"data": name, "corruption": corruption, "training rows": kind, **row})
    return rows


def labels(before: str | None) -> list[dict]:
    """Return what a classifier makes of this version and of another one."""
    rows = asked("--label-here")
    for row, other in zip(rows, asked("--label-here", before) if before else [{}] * len(rows), strict=True):
        row |= {"before": other["transform"]} if other else {}
        print(row, flush=True)
    return rows


def milliseconds(call, rows: np.ndarray, repeats: int) -> float:
    """Return the median time of a row."""
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call(rows)
        times.append(perf_counter() - start)
    return 1e3 * median(times) / len(rows)


def time_here() -> list[dict]:
    """Return the times of the version that can be imported."""
    rows = []
    for name, n_train, n_test in TIMED:
        train, test, *_ = split(name, n_train, n_test)
        model, pca = FRPCAG(random_state=0).fit(train), PCA(50).fit(train)
        Z = CORRUPTIONS["black/white10"](test, None)
        start = perf_counter()
        model.transform(Z[:1])
        first = perf_counter() - start
        batch = np.resize(Z, (BATCH, Z.shape[1]))
        row = {"data": name, "features": Z.shape[1], "training rows": len(train), "first call, s": first}
        for key, call in (("transform", model.transform), ("denoise", model.denoise), ("PCA", pca.transform)):
            row[key] = milliseconds(call, batch, 5)
            row[f"{key} alone"] = milliseconds(call, Z[:1], 30)
        rows.append(row)
    return rows


def asked(part: str, source: str | None = None) -> list[dict]:
    """Return what this file prints for a part, in a process of its own, with another version of the library."""
    environment = os.environ | ({"PYTHONPATH": source} if source else {})
    run = subprocess.run([sys.executable, __file__, part], env=environment, check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def times(before: str | None) -> dict:
    """Return times of this version and, measured in turn, of another one."""
    found: dict[str, list] = {"now": [], "before": []}
    for which, source in (("before", before), ("now", None), ("before", before), ("now", None)):
        if which == "before" and before is None:
            continue
        found[which].append(asked("--time-here", source))
    best = {}
    for which, runs in found.items():
        if runs:
            best[which] = [
                {
                    key: min(run[i][key] for run in runs) if isinstance(value, float) else value
                    for key, value in row.items()
                }
                for i, row in enumerate(runs[0])
            ]
            print(which, json.dumps(best[which], indent=1), flush=True)
    return best


def maker(p: int):
    """Return what makes rows near ten directions."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(10, p)).astype(np.float32)

    def make(n: int, wrong: float = 0.0) -> np.ndarray:
        rows = rng.standard_normal((n, 10), np.float32) @ A + np.float32(0.1) * rng.standard_normal((n, p), np.float32)
        rows[rng.random(rows.shape) < wrong] += 10
        return rows

    return make


def gpu() -> list[dict]:
    """Return the times of a model on the GPU, and how far its answers are from those of the same model on the host."""
    import torch

    from frpcag.engines.torch import to_host

    make, rows = maker(256), []
    for n in (1500, 20_000):
        model = FRPCAG(10, random_state=0).fit(torch.from_numpy(make(n)).cuda())
        host, new = to_host(model), make(10_000, 0.1)
        batch = torch.from_numpy(new).cuda()

        def waited(call):
            def run(part):
                call(part)
                torch.cuda.synchronize()

            return run

        row = {"gpu": torch.cuda.get_device_name(), "training rows": n, "features": 256}
        for name in ("transform", "denoise"):
            call = getattr(model, name)
            found, expected = call(batch[:BATCH]).cpu().numpy(), getattr(host, name)(new[:BATCH])
            row[f"{name} off"] = float(np.linalg.norm(found - expected) / np.linalg.norm(expected))
            row[name] = milliseconds(waited(call), batch, 5)
            row[f"{name} alone"] = milliseconds(waited(call), batch[:1], 10)
            row[f"{name}, host"] = milliseconds(getattr(host, name), new[:BATCH], 3)
        rows.append(row)
        print(row, flush=True)
    return rows


def stream() -> dict:
    """Return the seconds that a million rows of 64 features take, and what memory they take beyond their own."""
    make = maker(64)
    model = FRPCAG(10, random_state=0).fit(make(1500))
    rows = np.empty((STREAM, 64), np.float32)
    for part in np.array_split(rows, 100):
        part[:] = make(len(part), 0.05)
    model.transform(rows[:1000])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    model.transform(rows)
    seconds = perf_counter() - start
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    found = {"rows": STREAM, "features": 64, "seconds": seconds, "rows MB": rows.nbytes / 1e6, "more MB": more / 1e3}
    print(found, flush=True)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    arguments = sys.argv[1:]
    if arguments in (["--time-here"], ["--label-here"]):
        print(json.dumps(time_here() if arguments == ["--time-here"] else label_here()))
        sys.exit()
    before = None
    if "--before" in arguments:
        at = arguments.index("--before")
        before = arguments[at + 1]
        del arguments[at : at + 2]
    path = RESULTS / "transform.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept = {key: value for key, value in kept.items() if key in (*PARTS, "gpu")}
    run = {
        "truth": truth,
        "labels": lambda: labels(before),
        "times": lambda: times(before),
        "stream": stream,
        "gpu": gpu,
    }
    for part in arguments or PARTS:
        kept[part] = run[part]()
    write_result("transform", kept)
