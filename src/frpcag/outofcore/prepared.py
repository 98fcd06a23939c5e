"""Row chunks in, blocks of neighbouring rows with their sample graph out; kept in a checkpoint where there is one."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from frpcag.checkpoint import Checkpoint, as_text
from frpcag.cluster import Layout, Maximum, current_cluster, tree_sum
from frpcag.graphs import Graph
from frpcag.graphs.block_graph import BlockGraph, given_graph, search_graph
from frpcag.graphs.cells import order_rows
from frpcag.halo import Halo, LocalGraph

Array = np.ndarray

logger = logging.getLogger("frpcag")

# Rows worked on at a time.
_ROWS = 2000
_PREPARED = "prepared"


@dataclass
class Prepared:
    """Rows in block order, ready for the solver."""

    layout: Layout
    X: list[Any]  # centred and scaled
    ids: list[Any]  # row of the caller's matrix that each row is
    graph: BlockGraph | None


def column_moments(cluster, chunks, sizes, p, dtype, model) -> tuple[Array, Array, bool]:
    """Return what `center_and_scale` subtracts and divides by, and whether anything is missing."""
    first = np.nan_to_num(cluster.gather(cluster.submit(_first_row, chunks[0])).astype(np.float64), nan=0.0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    anywhere = [None for _ in chunks]
    tasks = [(chunk, int(start), first) for chunk, start in zip(chunks, starts[:-1], strict=True)]
    seen = cluster.map(_column_sums, tasks, anywhere)
    total, count, infinite, empty_row = tree_sum(cluster, seen)
    if infinite:
        raise ValueError(f"X has {infinite} infinite entries; replace them or mark them as missing with NaN.")
    if empty_row.value > -np.inf:
        raise ValueError(f"row {-int(empty_row.value)} of X has no observed entry (NaN throughout); drop it.")
    if not count.all():
        raise ValueError(f"column {int(np.argmin(count))} of X has no observed entry (NaN throughout); drop it.")
    mean, std = np.zeros(p), np.ones(p)
    if model.center or model.scale:
        mean = first + total / count
    if model.scale:
        squares = tree_sum(cluster, cluster.map(_column_squares, [(chunk, mean) for chunk in chunks], anywhere))
        std = np.sqrt(squares / count)
        # A spread below the rounding of the values is noise; dividing by it would blow that noise up.
        std[std <= np.finfo(dtype).eps * np.abs(mean)] = 1.0
    return mean if model.center else np.zeros(p), std, bool((count < starts[-1]).any())


def prepare(model: Any, chunks: Sequence[Any], sizes: Sequence[int], dtype: np.dtype, given: Any) -> Prepared:
    """Centre and scale, bring neighbouring rows together, and build the sample graph."""
    cluster = current_cluster()
    seed = int(check_random_state(model.random_state).randint(2**31 - len(chunks)))
    tasks = [(chunk, model.center_, model.scale_, dtype) for chunk in chunks]
    centred = cluster.map(_centred, tasks, [None for _ in chunks])
    if given is None:  # no neighbours: rows stay where they are
        layout = Layout.spread(cluster, sizes)
        starts = layout.bounds
        ids = layout.map(np.arange, [int(a) for a in starts[:-1]], [int(b) for b in starts[1:]])
        return Prepared(layout, layout.map(_same, centred), ids, None)
    layout, X, ids, visits, cells = order_rows(cluster, centred, sizes, n_blocks=len(chunks), seed=seed)
    del centred
    if isinstance(given, Graph):
        graph = given_graph(layout, ids, given.weights, sigma=given.sigma, kind=given.kind)
    else:
        k, n = model.n_neighbors, int(layout.bounds[-1])
        if k >= n:
            warnings.warn(f"n_neighbors={k} is not smaller than n_samples={n}; using {n - 1}.", stacklevel=5)
        graph = search_graph(
            layout, X, ids, visits, cells,
            n_neighbors=min(k, n - 1), sigma=model.sigma, kind=model.laplacian, method=given, seed=seed,
        )  # fmt: skip
    logger.info(
        "%d rows in %d blocks: %d halo rows (%.1f %% of the rows), %d pieces a step",
        layout.bounds[-1], len(layout.sizes), graph.n_halo, 100 * graph.n_halo / layout.bounds[-1], graph.halo.n_pieces,
    )  # fmt: skip
    return Prepared(layout, X, ids, graph)


def keep(store: Checkpoint, mark: str, prepared: Prepared) -> Prepared:
    """Save the prepared blocks and go on with what was saved: the solve then depends on the store alone."""
    graph, layout = prepared.graph, prepared.layout
    parts = [None for _ in layout.sizes] if graph is None else graph.parts
    note: dict[str, Any] = {"fit": mark, "sizes": layout.sizes, "graph": None}
    if graph is not None:
        names = ("n_nodes", "n_edges", "n_halo", "lmax", "sigma", "method", "kind", "recall")
        note["graph"] = {name: getattr(graph, name) for name in names}
    store.save(_PREPARED, layout, layout.map(_pack, prepared.X, prepared.ids, parts), note)
    del prepared, graph, parts
    kept = resume(store, mark)
    assert kept is not None
    return kept


def resume(store: Checkpoint, mark: str) -> Prepared | None:
    note = store.manifest(_PREPARED)
    if note is None:
        return None
    if note["fit"] != mark:
        raise ValueError(
            f"checkpoint={store.url!r} holds a fit of other data or other parameters; pass an empty folder, or delete "
            "this one."
        )
    layout = Layout.spread(current_cluster(), note["sizes"])
    saved = store.load(_PREPARED, layout)
    X, ids = (layout.map(_entry, saved, [name for _ in saved]) for name in ("X", "ids"))
    if note["graph"] is None:
        return Prepared(layout, X, ids, None)
    parts = layout.map(_unpack_graph, saved)
    return Prepared(layout, X, ids, BlockGraph(parts, Halo(layout, parts), **note["graph"]))


def fingerprint(model: Any, dx: Any, given: tuple[Any, Any]) -> str:
    """Return what tells this fit from another: the data by shape and moments, and all that shapes the problem."""
    graphs = [
        part
        for graph in given
        for part in (
            [graph.weights.indptr, graph.weights.indices, graph.weights.data] if isinstance(graph, Graph) else [graph]
        )
    ]
    names = ("gamma1", "gamma2", "n_neighbors", "sigma", "laplacian", "loss", "huber_delta", "center", "scale")
    options = [getattr(model, name) for name in names]
    return as_text([dx.shape, str(dx.dtype), model.center_, model.scale_, *options, *graphs])


def _first_row(chunk: Array) -> Array:
    return np.asarray(chunk[0])


def _column_sums(chunk: Array, start: int, first: Array) -> tuple[Array, Array, int, Maximum]:
    total, count, infinite, empty = np.zeros(len(first)), np.zeros(len(first)), 0, -np.inf
    for at in range(0, len(chunk), _ROWS):
        rows = np.asarray(chunk[at : at + _ROWS], dtype=np.float64)
        infinite += int(np.isinf(rows).sum())
        missing = np.isnan(rows)
        total += np.nansum(rows - first, axis=0)
        count += len(rows) - missing.sum(axis=0)
        if (lost := np.flatnonzero(missing.all(axis=1))).size and empty == -np.inf:
            empty = -(start + at + int(lost[0]))  # negative: of maxima the first row wins
    return total, count, infinite, Maximum(empty)


def _column_squares(chunk: Array, mean: Array) -> Array:
    total = np.zeros(len(mean))
    for at in range(0, len(chunk), _ROWS):
        total += np.nansum(np.square(chunk[at : at + _ROWS] - mean), axis=0)
    return total


def _centred(chunk: Array, mean: Array, std: Array, dtype: np.dtype) -> Array:
    out = np.empty(chunk.shape, dtype)
    for at in range(0, len(chunk), _ROWS):
        rows = slice(at, at + _ROWS)
        out[rows] = (chunk[rows] - mean) / std
    return out


def _pack(X: Array, ids: Array, part: LocalGraph | None) -> dict[str, Array]:
    packed = {"X": X, "ids": ids}
    if part is not None:
        L = part.rows
        packed |= {"data": L.data, "indices": L.indices, "indptr": L.indptr, "shape": np.array(L.shape)}
        packed |= {"null": part.null, **{f"needs_{j}": rows for j, rows in part.needs.items()}}
    return packed


def _unpack_graph(saved: dict[str, Array]) -> LocalGraph:
    L = sp.csr_array((saved["data"], saved["indices"], saved["indptr"]), shape=tuple(saved["shape"]))
    needs = {int(name[6:]): rows for name, rows in saved.items() if name.startswith("needs_")}
    return LocalGraph(L, needs, saved["null"])


def _entry(saved: dict[str, Array], name: str) -> Array:
    return saved[name]


def _same(value: Any) -> Any:
    return value
