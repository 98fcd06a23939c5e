"""Every choice of the default clusterer again, with one set left out at a time.

Run with FRPCAG_DATA set: ``python benchmarks/clustering_pool.py``. Labels every cell with all candidates: linkage of
one to four whitened components a cluster with 10 to 30 neighbours, and linkage, spectral clustering and k-means of the
data as given and of U. Keeps errors, agreements and cuts in results/clustering_pool.jsonl, one line a cell, and skips
cells that are there. ``--table`` prints what each choice costs when it is made without the set that it is judged on.
"""

from __future__ import annotations

import json
import sys
import warnings
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from clustering_tables import made_tables, real_tables
from machine import RESULTS
from reproduction.evaluate.clustering import clustering_error
from sklearn.metrics import adjusted_rand_score

from cells import OTHERS, PAPER, corrupt, load
from frpcag import FRPCAGClustering
from frpcag.labels import cloud_of, label, unit_rows
from frpcag.labels.choose import ON_POINTS, normalized_cut
from frpcag.linalg.factorize import gram_svd

FILE = RESULTS / "clustering_pool.jsonl"
MOST_ROWS, MOST_CLASSES = 400, 20
CORRUPTIONS = ("clean", "zeros20", "black/white25", "block25")
COLUMNS, NEIGHBORS = (1, 2, 3, 4), (10, 15, 20, 25, 30)
LIMITS = (0, 40, 65, 100, 128, 256, 410, 10**6)


def all_cells():
    for name in PAPER + OTHERS:
        X, y, shape = load(name, max_samples=10**9)
        few = np.isin(y, np.unique(y)[:MOST_CLASSES])
        rows = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(few))[:MOST_ROWS])
        for corruption in CORRUPTIONS if name != "scrna_worm" else ("clean",):
            if (Z := corrupt(X[rows], shape, corruption)) is not None:
                yield name, corruption, Z, y[rows]
    for name, X, y in [*real_tables(), *made_tables(0)]:
        yield name, "table", np.asarray(X, float)[:600], y[:600]


def measure(X: np.ndarray, y: np.ndarray) -> dict:
    k = len(np.unique(y))
    model = FRPCAGClustering(k, assign="linkage", random_state=0, n_jobs=1).fit(X)
    fit = model.estimator_
    U = (fit.low_rank_ - fit.center_) / fit.scale_
    given = (np.where(np.isnan(X), fit.low_rank_, X) - fit.center_) / fit.scale_
    W, Sigma, _ = gram_svd(U - U.mean(axis=0), min(max(COLUMNS) * k, *U.shape), random_state=0)
    W = W[:, Sigma >= 1e-3 * Sigma[0]]
    labels, errors = [], {}
    for c in COLUMNS:
        whole = cloud_of(unit_rows(W[:, : c * k]), n_neighbors=max(NEIGHBORS), n_jobs=1)
        for K in NEIGHBORS:
            labels.append(label("linkage", whole.nearest(K), k))
            errors[f"W {c} {K}"] = round(clustering_error(y, labels[-1]), 4)
    agree = [round(adjusted_rand_score(a, b), 3) for a, b in combinations(labels, 2)]
    cuts = {}
    for name, points in (("X", given), ("U", U)):
        whole = cloud_of(points, n_neighbors=max(K for _, K in ON_POINTS), n_jobs=1)
        edges = sp.csr_array((np.ones_like(whole.affinity.data), whole.affinity.indices, whole.affinity.indptr))
        for labeller, K in ON_POINTS:
            key, found = f"{name} {labeller} {K}", label(labeller, whole.nearest(K), k, random_state=0)
            errors[key], cuts[key] = round(clustering_error(y, found), 4), round(normalized_cut(edges, found), 4)
    return {"p": X.shape[1], "missing": round(model.missing_share_, 3), "errors": errors, "agree": agree, "cuts": cuts}


def ensemble_error(row: dict, columns: tuple, neighbors: tuple) -> float:
    """Return the error of the candidate that agrees best with the others of an ensemble."""
    names = [f"W {c} {K}" for c in COLUMNS for K in NEIGHBORS]
    full = np.eye(len(names))
    full[np.triu_indices(len(names), 1)] = row["agree"]
    full = np.maximum(full, full.T)
    at = [i for i, name in enumerate(names) if int(name.split()[1]) in columns and int(name.split()[2]) in neighbors]
    best = at[int(np.argmax(full[np.ix_(at, at)].mean(axis=1)))]
    return row["errors"][names[best]]


def points_error(row: dict, points: str = "X", judge: str = "cut") -> float:
    """Return the error of the labels of a table that a judge takes."""
    keys = [key for key in row["cuts"] if key.startswith(points)]
    chosen = min(keys, key=lambda key: row["cuts"][key]) if judge == "cut" else f"{points} {judge}"
    return row["errors"][chosen]


def left_out(title: str, rows: list[dict], options: dict, ours) -> None:
    """Print what an option costs that is best on all other sets, beside the option of the library."""
    of = [row["data"].split(",")[0] for row in rows]  # raw and standardised are one set
    sets = list(dict.fromkeys(of))
    table = {
        o: {s: np.mean([f(row) for row, name in zip(rows, of, strict=True) if name == s]) for s in sets}
        for o, f in options.items()
    }
    picked = {s: min(options, key=lambda o: np.mean([table[o][t] for t in sets if t != s])) for s in sets}
    honest = np.mean([table[picked[s]][s] for s in sets])
    print(f"\n{title}: {len(sets)} sets, {len(rows)} cells; mean over the sets")
    for o in sorted(options, key=lambda o: np.mean(list(table[o].values())))[:6]:
        print(f"  {o!s:46s} {np.mean(list(table[o].values())):.3f}")
    print(f"  ours, {ours!s:40s} {np.mean(list(table[ours].values())):.3f}")
    print(f"  chosen on the other sets, judged on the one left out  {honest:.3f}")
    print(f"  choices: {sorted(set(map(str, picked.values())))}")


def tables(rows: list[dict]) -> None:
    images = [row for row in rows if row["p"] >= 100]
    columns = [c for m in (1, 2, 3, 4) for c in combinations(COLUMNS, m)]
    near = [(K,) for K in NEIGHBORS] + [(10, 15, 20), (15, 20, 25), (20, 25, 30), NEIGHBORS]
    sizes = {(c, K): lambda row, c=c, K=K: ensemble_error(row, c, K) for c in columns for K in near}
    left_out("Columns a cluster and neighbours of the linkages", images, sizes, ((1, 2, 3), (15, 20, 25)))
    limits = {
        limit: lambda row, limit=limit: (
            ensemble_error(row, (1, 2, 3), (15, 20, 25))
            if row["p"] >= limit
            else points_error(row, "U" if row["missing"] >= 0.05 else "X")
        )
        for limit in LIMITS
    }
    left_out("Features from which whitened components are labelled", rows, limits, 100)
    few = [row for row in rows if row["p"] < 100]
    judges = {judge: lambda row, j=judge: points_error(row, "U" if row["missing"] >= 0.05 else "X", j)
              for judge in ("cut", *(f"{labeller} {K}" for labeller, K in ON_POINTS))}  # fmt: skip
    left_out("Judge of the labels of a table", few, judges, "cut")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rows = [json.loads(line) for line in FILE.read_text().splitlines()] if FILE.exists() else []
    done = {(row["data"], row["corruption"]) for row in rows}
    for name, corruption, X, y in () if "--table" in sys.argv else all_cells():
        if (name, corruption) not in done:
            rows.append({"data": name, "corruption": corruption, **measure(X, y)})
            with FILE.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(name, corruption, min(rows[-1]["errors"].values()), flush=True)
    tables(rows)
