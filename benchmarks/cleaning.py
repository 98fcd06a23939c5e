"""Cleaning beside its rivals: who comes nearest to the truth, who finds the wrong cells, and how long it takes.

Run with FRPCAG_DATA set: ``python benchmarks/cleaning.py [SET...] [--quick] [--methods ours,rpca] [--table]``. Writes
one JSON line a cell to results/cleaning.jsonl; what is there already is not measured again. ``--table`` prints the
tables of docs/decisions/cleaning.md from it, with the choice of the guard's constants leaving one set out at a time.

The error is ``|result - truth|_F / |truth - column means|_F``. Best-rank PCA is told its rank by the truth, and
``knn_told`` (scikit-learn's KNNImputer) which cells are wrong, so it is a reference and no rival; nobody else is told
anything. An imputer that is told nothing returns the data as given. Nothing in `frpcag.RobustGraphCleaner` looks at
labels, truth, or the name of the corruption.
"""

from __future__ import annotations

import json
import warnings
from argparse import ArgumentParser
from collections.abc import Iterator
from itertools import product
from time import perf_counter

import numpy as np
from machine import RESULTS
from reproduction import block_occlusion, load_dataset, missing_pixels, salt_and_pepper
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.impute import KNNImputer

from frpcag import RobustGraphCleaner
from frpcag.baselines import RPCA
from frpcag.cells import table
from frpcag.cells.guard import LEAST_FLAGS, LEAST_SHARE, MOST_BY_ROW, cells_in_doubt, variation
from frpcag.cells.rounds import CellRounds

Array = np.ndarray

RECORDS = RESULTS / "cleaning.jsonl"
IMAGES = ("orl", "usps", "mnist", "coil20", "yale", "pie")
TABLES = ("sensors", "cancer", "wine", "diabetes", "mfeat", "wordvec", "scrna_worm")
CORRUPTIONS = ("clean", "salt10", "salt25", "zero25", "zero40", "sd5", "block25")
METHODS = ("ours", "given", "pca", "knn_told", "rpca", "tensorly")
MOST_SAMPLES = 1000
QUICK_SAMPLES = 300
SEED = 1


class Watched(CellRounds):
    """Rounds that keep what the guard said of the best one."""

    last: Watched

    def run(self) -> CellRounds:
        Watched.last, self.said = self, []
        return super().run()

    def look(self, *given):
        self.said.append((super().look(*given), self.asked))
        return self.said[-1][0]

    def _ask(self, post, base, among):
        verdict, even, wrong = super()._ask(post, base, among)
        self.asked = {"gain": -verdict.change, "doubt": cells_in_doubt(post), "kept": wrong, "even": even}
        return verdict, even, wrong


table.CellRounds = Watched  # type: ignore[misc]


def load(name: str, *, most: int) -> tuple[Array, tuple[int, int] | None]:
    """Return the true matrix, float32, and the shape of an image: ORL at half size, tables standardised."""
    shape = None
    if name == "sensors":
        X = sensor_table()
    elif name in ("cancer", "wine", "diabetes"):
        X = {"cancer": load_breast_cancer, "wine": load_wine, "diabetes": load_diabetes}[name]().data
    else:
        data = load_dataset(name)
        X, shape = data.X, data.shape
        if name == "orl":
            X, shape = X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(len(X), -1), (56, 46)
        if name == "mfeat":
            X = X[:, data.view != 4]
        if name == "wordvec":
            X = X[:20000]
        if name == "scrna_worm":
            X = np.log1p(X / data.libsize[:, None] * 1e4)
    if len(X) > most:
        X = X[np.sort(np.random.default_rng(0).permutation(len(X))[:most])]
    if shape is not None:
        X = X / np.abs(X).max()
    if name in ("sensors", "cancer", "wine", "diabetes", "mfeat"):
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1)
    return np.ascontiguousarray(X, np.float32), shape


def sensor_table(n: int = 1000, p: int = 24) -> Array:
    """Return a made table: five slow signals seen by 24 sensors, with noise."""
    rng = np.random.default_rng(12)
    t = np.arange(n)
    waves = [np.sin(2 * np.pi * t / period + 6 * rng.random()) for period in (24, 50, 168, 333)]
    drift = 0.05 * np.cumsum(rng.normal(size=n))
    return np.column_stack([*waves, drift]) @ rng.normal(size=(5, p)) + 0.1 * rng.normal(size=(n, p))


def corrupt(X: Array, shape, corruption: str) -> tuple[Array, Array] | None:
    """Return the corrupted matrix and the wrong cells; None where the corruption needs an image."""
    kind, share = corruption.rstrip("0123456789"), int(corruption.lstrip("abcdefghijklmnopqrstuvwxyz") or 0) / 100
    if kind == "clean":
        return X.copy(), np.zeros(X.shape, bool)
    if kind == "salt":
        return salt_and_pepper(X, share, random_state=SEED)
    if kind == "zero":
        return missing_pixels(X, share, random_state=SEED)
    if kind == "block":
        return None if shape is None else block_occlusion(X, shape, share, random_state=SEED)
    rng = np.random.RandomState(SEED)  # sd5: five standard deviations up or down in 5 % of the cells
    hit = rng.rand(*X.shape) < 0.05
    wrong = X.copy()
    wrong[hit] += 5 * X.std() * np.where(rng.rand(hit.sum()) < 0.5, -1, 1)
    return wrong, hit


def error(result: Array, truth: Array) -> float:
    return float(np.linalg.norm(result - truth) / np.linalg.norm(truth - truth.mean(axis=0)))


def measure(method: str, X: Array, truth: Array, hit: Array) -> dict:
    """Return error and seconds of one method and, for ours, precision, recall and what the guard saw."""
    start = perf_counter()
    if method == "ours":
        cleaner = RobustGraphCleaner(random_state=0).fit(X)
        seconds, flags = perf_counter() - start, cleaner.outliers_
        rounds = Watched.last
        guard = next(said for found, said in rounds.said if found is rounds.best)
        suspects = rounds.best.deviating[np.ix_(rounds.order, np.argsort(cleaner.rules_.columns))]
        return {
            "error": error(cleaner.cleaned_, truth),
            "seconds": seconds,
            "precision": float((flags & hit).sum() / max(flags.sum(), 1)),
            "recall": float((flags & hit).sum() / max(hit.sum(), 1)),
            **guard,
            "by_column": _variation(suspects, axis=0),
            "by_row": _variation(suspects, axis=1),
            "suspects": int(suspects.sum()),
            "suspects_right": float((suspects & hit).sum() / max(suspects.sum(), 1)),
            "notes": cleaner.notes_,
        }
    if method == "given":
        result = X
    elif method in ("rpca", "tensorly"):
        mean = X.mean(axis=0, dtype=np.float64)  # the stop of our ALM, 1e-7, is beyond float32
        result = (RPCA().fit(X - mean).low_rank_ if method == "rpca" else tensorly(X - mean)) + mean
    elif method == "pca":
        result = best_rank(X, truth)
    elif method == "knn_told":
        result = KNNImputer(keep_empty_features=True).fit_transform(np.where(hit, np.nan, X))
    else:
        raise ValueError(f"method={method!r} is unknown; choose among {', '.join(METHODS)}.")
    return {"error": error(result, truth), "seconds": perf_counter() - start}


def tensorly(X: Array) -> Array:
    """Return the low-rank part of TensorLy's robust PCA with the weight of Candes et al. 2011.

    It sums the nuclear norms of both unfoldings, which are the same for a matrix, so the weight is doubled.
    """
    from tensorly.decomposition import robust_pca

    return robust_pca(X, reg_E=2 / np.sqrt(max(X.shape)), verbose=0)[0]


def _variation(flags: Array, *, axis: int) -> float:
    """Return how unevenly flags strike the columns or rows, -1 without any."""
    hits = flags.sum(axis=axis)
    return variation(hits, np.full(len(hits), flags.shape[axis])) if flags.any() else -1.0


def best_rank(X: Array, truth: Array) -> Array:
    """Return the PCA of the rank that comes nearest to the truth."""
    mean = X.mean(axis=0)
    U, S, V = np.linalg.svd(X - mean, full_matrices=False)
    B = U.T @ (truth - mean) @ V.T
    # |A - sum_k s_k u_k v_k'|^2 falls by 2 s_k u_k' A v_k - s_k^2 with every direction
    gains = np.cumsum(2 * S * np.diag(B) - S**2)
    rank = int(np.argmax(gains)) + 1 if gains.max() > 0 else 0
    return mean + (U[:, :rank] * S[:rank]) @ V[:rank]


def read() -> list[dict]:
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []


def run(names, methods, *, most: int) -> Iterator[dict]:
    done = {(r["data"], r["corruption"], r["method"], r["most"]) for r in read()}
    for name in names:
        truth, shape = load(name, most=most)
        for corruption, method in product(CORRUPTIONS, methods):
            cell = (name, corruption, method, most)
            if cell in done or (damaged := corrupt(truth, shape, corruption)) is None:
                continue
            record = dict(zip(("data", "corruption", "method", "most"), cell, strict=True))
            record |= {"shape": truth.shape, **measure(method, damaged[0], truth, damaged[1])}
            with RECORDS.open("a") as file:
                file.write(json.dumps(record) + "\n")
            yield record


def print_tables(records: list[dict]) -> None:
    """Print errors by cell, the counts that targets are stated in, and the guard's constant leaving sets out."""
    cells: dict[tuple[str, str], dict[str, dict]] = {}
    for r in records:
        cells.setdefault((r["data"], r["corruption"]), {})[r["method"]] = r
    methods = [m for m in METHODS if any(m in c for c in cells.values())]
    print("| data | corruption | " + " | ".join(methods) + " | precision / recall | seconds |")
    print("|---|---|" + "---|" * (len(methods) + 2))
    for (name, corruption), c in cells.items():
        errors = [f"{c[m]['error']:.3f}" if m in c else "-" for m in methods]
        ours = c.get("ours", {})
        found = f"{ours['precision']:.2f} / {ours['recall']:.2f}" if corruption != "clean" and ours else "-"
        print(f"| {name} | {corruption} | " + " | ".join(errors) + f" | {found} | {ours.get('seconds', 0):.0f} |")
    whole = {k: c for k, c in cells.items() if {"ours", "rpca", "pca"} <= set(c)}
    images = {k: c for k, c in whole.items() if k[0] in IMAGES and k[1] != "clean"}
    for label, group in (("images", images), ("tables", {k: c for k, c in whole.items() if k[0] in TABLES})):
        group = {k: c for k, c in group.items() if k[1] != "clean"}
        if group:
            won = [c["ours"]["error"] < min(c["rpca"]["error"], c["pca"]["error"]) for c in group.values()]
            means = {m: np.mean([c[m]["error"] for c in group.values() if m in c]) for m in methods}
            print(f"\n{label}: {sum(won)} of {len(won)} cells below RPCA and best-rank PCA; mean errors "
                  + ", ".join(f"{m} {v:.3f}" for m, v in means.items()))  # fmt: skip
    clean = [c["ours"]["error"] for k, c in cells.items() if k[1] == "clean" and "ours" in c]
    if clean:
        print(f"clean data: largest error {max(clean):.4f}")
    leave_one_set_out(records)


def leave_one_set_out(records: list[dict]) -> None:
    """Choose how uneven by column damage may be on all sets but one, and see whether it is right on that one."""
    judged = [r for r in records if r["method"] == "ours" and r["gain"] > 0]
    judged = [r for r in judged if r["suspects"] >= max(LEAST_FLAGS, LEAST_SHARE * np.prod(r["shape"]))]
    judged = [r for r in judged if r["by_row"] <= MOST_BY_ROW or r["suspects_right"] > 0.5]
    candidates = np.linspace(0.05, 2.0, 79)

    def right(r: dict, limit: float) -> bool:
        return (r["by_column"] <= limit) == (r["suspects_right"] > 0.5)

    print("\n| left out | most variation by column, chosen on the others | right on it |\n|---|---|---|")
    for name in sorted({r["data"] for r in judged}):
        others, own = ([r for r in judged if (r["data"] == name) == mine] for mine in (False, True))
        good = np.array([sum(right(r, limit) for r in others) for limit in candidates])
        chosen = float(np.median(candidates[good == good.max()]))
        print(f"| {name} | {chosen:.2f} | {sum(right(r, chosen) for r in own)} of {len(own)} |")


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help="any of " + ", ".join(IMAGES + TABLES))
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated; all by default")
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_SAMPLES} samples a set")
    parser.add_argument("--table", action="store_true", help="print the tables from what is there")
    options = parser.parse_args()
    if unknown := set(options.sets) - {*IMAGES, *TABLES}:
        parser.error(f"unknown sets: {', '.join(sorted(unknown))}; choose among {', '.join(IMAGES + TABLES)}")
    most = QUICK_SAMPLES if options.quick else MOST_SAMPLES
    warnings.simplefilter("ignore")
    if not options.table:
        for one in run(options.sets or IMAGES + TABLES, options.methods.split(","), most=most):
            shown = {k: round(v, 3) for k, v in one.items() if isinstance(v, float)}
            print(one["data"], one["corruption"], one["method"], shown, flush=True)
    else:
        print_tables([r for r in read() if r["most"] == most])
