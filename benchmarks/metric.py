"""Robust metrics of the sample graph: what they cost, what they find, and whether "auto" picks well.

Run with FRPCAG_DATA set: ``python benchmarks/metric.py [--rows 70000] [--table] [--default]``. Prints, and writes to
results/metric.json:

cost    processor seconds of the Euclidean and of the robust graphs of MNIST, in turns in one run, their ratio, and the
        recall of the exact neighbours on 200 rows, on clean and on corrupted images
auto    seconds of a graph with metric="auto" over those of the graph of the metric that it takes
table   share of each row's ten neighbours that have its label, by metric, and how far entries lie from the median of
        their neighbours, which "auto" goes by and which looks at no label
default errors of recovery and clustering of fits with either metric, which decide the default of FRPCAG
"""

from __future__ import annotations

import argparse
import json
from time import process_time

import numpy as np
from machine import RESULTS
from reproduction.corrupt import block_occlusion, missing_pixels, salt_and_pepper
from reproduction.evaluate import clustering_error

from cells import load
from frpcag import FRPCAG, FRPCAGClustering, build_graph
from frpcag.graphs import ELIGIBLE, Index, find_metric
from frpcag.graphs.metric_choice import prediction_errors

K = 10
CHECKED = 200
SETS = ("orl", "coil20", "yale", "mnist", "usps", "pie", "digits")


def read(name: str, max_samples: int):
    """Return images of numbers between 0 (or -1) and 1, labels and the shape of an image."""
    X, y, shape = load(name, max_samples=max_samples)
    return X / max(1.0, float(X.max())), y, shape


def corrupted(X, shape, kind: str):
    """Return the data with a seed that nothing else here uses."""
    low, high = float(X.min()), float(X.max())
    if kind == "zero40":
        return missing_pixels(X, 0.4, value=low, random_state=77)[0]
    if kind == "salt10":
        return salt_and_pepper(X, 0.1, low=low, high=high, random_state=77)[0]
    return block_occlusion(X, shape, 0.25, value=low, random_state=77)[0] if kind == "block25" else X


def timed(function):
    """Return seconds of all cores, which other work on the machine hardly changes, and the result."""
    start = process_time()
    result = function()
    return process_time() - start, result


def cost(n_rows: int, kinds, rounds: int) -> list[dict]:
    """Return seconds, ratios and recalls of approximate graphs of MNIST."""
    whole, _, shape = read("mnist", n_rows)
    build_graph(whole[:2500], metric="truncated", method="approximate")  # compiled
    lines = []
    for kind in kinds:
        X = corrupted(whole, shape, kind)
        rows = np.random.default_rng(3).permutation(len(X))[:CHECKED]
        seconds: dict[str, list[float]] = {name: [] for name in ELIGIBLE}
        recalls = {}
        for _ in range(rounds):
            for name in ELIGIBLE:
                metric = find_metric(name, X)
                spent, found = timed(lambda m=metric, X=X: Index(X, m, method="approximate", random_state=0).build(K))
                seconds[name].append(spent)
                if name not in recalls:
                    true = Index(X, metric, method="exact").query(X[rows], K + 1)[0]
                    true = [near[near != row][:K] for near, row in zip(true, rows, strict=True)]
                    shared = [len(set(a) & set(found[0][row])) / K for a, row in zip(true, rows, strict=True)]
                    recalls[name] = float(np.mean(shared))
        auto, chosen = timed(lambda X=X: find_metric("auto", X))
        for name in ELIGIBLE:
            ratios = np.divide(seconds[name], seconds["euclidean"])
            line = {"rows": len(X), "kind": kind, "metric": name, "seconds": min(seconds[name])}
            line |= {"ratio": float(np.median(ratios)), "recall": recalls[name]}
            line |= {"auto_takes": chosen.name, "auto_over_graph": 1 + auto / min(seconds[chosen.name])}
            lines.append(line)
            parts = f"{line['seconds']:.1f} | {line['ratio']:.2f} | {line['recall']:.3f}"
            print(f"| {len(X)} | {kind} | {name} | {parts} |", flush=True)
        print(f"auto takes {chosen.name}, at {1 + auto / min(seconds[chosen.name]):.2f} times its seconds", flush=True)
    return lines


def table(max_samples: int) -> list[dict]:
    """Return the share of neighbours of the same class and the errors that "auto" compares."""
    lines = []
    for name in SETS:
        clean, y, shape = read(name, max_samples)
        for kind in ("clean", "zero40", "block25", "salt10"):
            X = corrupted(clean, shape, kind)
            errors = {metric.name: error for metric, error in prediction_errors(X).items()}
            shares = {}
            for metric in ELIGIBLE:
                near = Index(X, find_metric(metric, X), method="exact").build(K)[0]
                shares[metric] = float(np.mean(y[near] == y[:, None]))
            chosen = min(errors, key=lambda metric: errors[metric])
            lines.append({"data": name, "kind": kind, "same_class": shares, "error": errors, "auto": chosen})
            parts = " | ".join(f"{shares[m]:.2f} [{errors[m]:.4f}]" for m in ELIGIBLE)
            print(f"| {name} {kind} | {parts} | {chosen} |", flush=True)
    mean = {m: float(np.mean([line["same_class"][m] for line in lines])) for m in ELIGIBLE}
    auto = float(np.mean([line["same_class"][line["auto"]] for line in lines]))
    best = float(np.mean([max(line["same_class"].values()) for line in lines]))
    print("mean share:", {m: round(v, 3) for m, v in mean.items()}, "auto", round(auto, 3), "best", round(best, 3))
    return [*lines, {"mean": mean, "auto": auto, "best": best}]


def whole_classes(X, y, max_samples: int):
    """Return the first classes, at most 30 rows of each, until there are enough rows."""
    keep: list[int] = []
    for label in np.unique(y):
        keep += list(np.flatnonzero(y == label)[:30])
        if len(keep) >= max_samples:
            break
    return X[keep], y[keep]


def defaults(max_samples: int) -> list[dict]:
    """Return errors of recovery and of clustering with a Euclidean and with an "auto" sample graph.

    Recovery: distance of the clean part from the true matrix over the distance of that from its mean. The last lines
    leave one set out: which of the two the other sets prefer, and what that gives on the set.
    """
    lines = []
    for name in SETS:
        clean, y, shape = read(name, 100_000)
        clean, y = whole_classes(clean, y, max_samples)
        size = np.linalg.norm(clean - clean.mean(axis=0))
        for kind in ("clean", "zero40", "block25", "salt10"):
            X = corrupted(clean, shape, kind)
            line: dict = {"data": name, "kind": kind}
            for metric in ("euclidean", "auto"):
                model = FRPCAG(metric=metric, random_state=0, tol=1e-2)
                labelled = FRPCAGClustering(len(np.unique(y)), model, random_state=0).fit(X)
                recovered = FRPCAG(
                    metric=metric, laplacian="combinatorial", n_neighbors=5, tol=1e-2, random_state=0
                ).fit(X)
                line[metric] = {
                    "recovery": float(np.linalg.norm(recovered.low_rank_ - clean) / size),
                    "clustering": clustering_error(y, labelled.labels_),
                }
            lines.append(line)
            parts = " | ".join(f"{line[m][e]:.3f}" for e in ("recovery", "clustering") for m in ("euclidean", "auto"))
            print(f"| {name} {kind} | {parts} |", flush=True)
    for error in ("recovery", "clustering"):
        chosen = []
        for name in SETS:
            others = [line for line in lines if line["data"] != name]
            mean = {m: np.mean([line[m][error] for line in others]) for m in ("euclidean", "auto")}
            chosen.append((name, min(mean, key=lambda m: mean[m])))
        means = {m: float(np.mean([line[m][error] for line in lines])) for m in ("euclidean", "auto")}
        worst = max(lines, key=lambda line: line["auto"][error] - line["euclidean"][error])
        print(f"{error}: {means}; without one set: {dict(chosen)}; worst for auto: {worst['data']} {worst['kind']}")
    return lines


def record(part: str, lines: list[dict]) -> None:
    """Put one part of the results into their file, beside the others."""
    path = RESULTS / "metric.json"
    results = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(results | {part: lines}, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=70000, help="of MNIST; 0 leaves the cost out")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=["clean", "zero40", "salt10"])
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--default", action="store_true", help="compare fits with metric='euclidean' and 'auto'")
    parser.add_argument("--samples", type=int, default=1000, help="rows of a set in the table")
    args = parser.parse_args()
    if args.table:
        print("| data | " + " | ".join(f"{m} share [error]" for m in ELIGIBLE) + " | auto |\n|---|---|---|---|---|")
        record("table", table(args.samples))
    if args.default:
        print("| data | recovery euclidean | auto | clustering euclidean | auto |\n|---|---|---|---|---|")
        record("default", defaults(args.samples))
    if args.rows:
        print("| rows | kind | metric | seconds | ratio | recall |\n|---|---|---|---|---|---|")
        record("cost", cost(args.rows, args.kinds, args.rounds))
