"""The halo of row blocks, rows that blocks need of each other, on clustered data; it depends on no cluster.

Run ``python benchmarks/dask_halo.py [WORDS...]``, words that pick data sets by name, with FRPCAG_DATA set for the real
ones. Every data set goes through the stages of a fit up to its sample graph, in 16 chunks, in this process. Writes
results/dask_halo.json and the table of docs/scaling.md.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Callable

import dask.array as da
import numpy as np
from machine import RESULTS, write_result

from frpcag import FRPCAG

BLOCKS = 16


def groups(n_groups: int, spread: float, *, n: int = 200_000, p: int = 32) -> np.ndarray:
    """Return rows around centres: normal of unit variance, rows ``spread`` times as wide around them."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((n_groups, p), np.float32)
    return centres[rng.integers(n_groups, size=n)] + np.float32(spread) * rng.standard_normal((n, p), np.float32)


def stored(name: str) -> np.ndarray:
    with np.load(os.path.join(os.environ["FRPCAG_DATA"], f"{name}.npz")) as arrays:
        return arrays["X"].astype(np.float32) * np.float32(arrays["scale"] if "scale" in arrays.files else 1 / 255)


DATA: dict[str, Callable[[], np.ndarray]] = {
    **{f"{k} groups, {s:g} wide": lambda k=k, s=s: groups(k, s) for k in (50, 200) for s in (0.3, 1.0)},
    "MNIST": lambda: stored("mnist"),
    "word vectors": lambda: stored("wordvec"),
}


def measure(name: str) -> dict:
    """Return what the graph of a data set says of its blocks."""
    X = DATA[name]()
    n, p = X.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one step converges nowhere
        model = FRPCAG(feature_graph=None, max_iter=1, random_state=0)
        graph = model.fit(da.from_array(X, chunks=(-(-n // BLOCKS), -1))).sample_graph_
    L = [part.rows for part in graph.parts]
    # Rows of other blocks are the columns beyond a block's own.
    crossing = sum(int((part.indices >= part.shape[0]).sum()) for part in L)
    return {
        "data": name, "n": n, "p": p, "blocks": len(L), "halo_share": graph.n_halo / n, "recall": graph.recall,
        "edges_cut": crossing / 2 / graph.n_edges, "pieces": graph.halo.n_pieces,
        "largest_block": max(part.shape[0] for part in L) * len(L) / n,
    }  # fmt: skip


def write_table(rows: list[dict]) -> None:
    """Put the rows into docs/scaling.md, between its marks."""
    lines = ["| data | rows | features | blocks | halo | edges cut | largest block | recall |", "|" + "---|" * 8]
    lines += [
        f"| {row['data']} | {row['n']} | {row['p']} | {row['blocks']} | {100 * row['halo_share']:.1f} % "
        f"| {100 * row['edges_cut']:.1f} % | {row['largest_block']:.2f} | {row['recall']:.3f} |"
        for row in rows
    ]
    path = RESULTS.parent / "docs" / "scaling.md"
    head, _, rest = path.read_text().partition("<!-- halo -->")
    tail = rest.partition("<!-- end of halo -->")[2]
    path.write_text(f"{head}<!-- halo -->\n\n" + "\n".join(lines) + f"\n\n<!-- end of halo -->{tail}")


def main() -> None:
    words, file = sys.argv[1:], RESULTS / "dask_halo.json"
    known = {row["data"]: row for row in json.loads(file.read_text())["rows"]} if file.exists() else {}
    for name in DATA:
        if words and not any(word in name for word in words):
            continue
        known[name] = measure(name)
        print(json.dumps(known[name]), flush=True)
        rows = [known[data] for data in DATA if data in known]
        write_result("dask_halo", {"rows": rows})
        write_table(rows)


if __name__ == "__main__":
    main()
