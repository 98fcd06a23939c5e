"""Row chunks in, blocks of neighbouring rows with their sample graph out; kept in a checkpoint where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import getitem
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp

from frpcag.dask.cells import order_rows
from frpcag.dask.checkpoint import Checkpoint, digest
from frpcag.dask.row_blocks import Halo, LocalGraph
from frpcag.dask.sample_graph import BlockGraph
from frpcag.dask.tasks import Layout, Maximum, same, tree_sum
from frpcag.data.preprocess import refuse_infinite, refuse_lost
from frpcag.graphs import Graph
from frpcag.graphs.metric import EUCLIDEAN, METRICS, Metric, find_metric, mean_deviation, sampled_rows
from frpcag.graphs.sketch import map_width

Array = np.ndarray

# Rows worked on at a time.
_ROWS = 2000
_PREPARED = "prepared"
# Parameters that change neither the problem nor the iterates; all others, those to come too, tell one fit from another.
_FREE = {"n_components", "tol", "max_iter", "stop", "backend", "n_jobs", "callback", "verbose"}


@dataclass
class BlockRows:
    """Centred and scaled rows in blocks of neighbours, ready for the graph and the solver."""

    layout: Layout
    X: list[Any]
    ids: list[Any]  # row of the caller's matrix that each row is
    shape: tuple[int, int]
    dtype: np.dtype
    near: Any = None  # the cells near each row
    cells: Any = None
    seed: int = 0
    unit: float = 1.0  # a power of two near the largest entry, where distances would leave the range of float32
    metric: Metric = EUCLIDEAN  # of the sample graph, where it is searched
    graph: BlockGraph | None = None
    complete: bool = False  # whether the graph is known, and saved where there is a checkpoint

    @property
    def points(self) -> list[Any]:
        """The rows in units in which squared distances stay in the range of float32."""
        return in_units(self.layout, self.X, self.unit)


def in_units(layout: Layout, blocks: list[Any], unit: float) -> list[Any]:
    """Return row blocks divided by a power of two."""
    return blocks if unit == 1.0 else layout.map(_times, blocks, [1 / unit for _ in blocks])


class ChunkSums:
    """Sums over row chunks on the workers, for `frpcag.data.preprocess.column_moments`.

    The first pass raises for entries that are infinite, and for rows and columns without any observed.
    """

    def __init__(self, cluster: Any, chunks: Sequence[Any], sizes: Sequence[int]) -> None:
        self.cluster, self.chunks = cluster, chunks
        starts = np.concatenate([[0], np.cumsum(sizes)])
        seen = self._on_chunks(_looked_over, [(c, int(at)) for c, at in zip(chunks, starts[:-1], strict=True)])
        self.count, infinite, empty_row, low, high = tree_sum(cluster, seen)
        refuse_infinite(infinite)
        refuse_lost("row", [-int(empty_row.value)] if empty_row.value > -np.inf else [])
        refuse_lost("column", np.flatnonzero(self.count == 0))
        self._lowest, self.highest = -low.value, high.value
        self.has_missing = bool((self.count < starts[-1]).any())

    def lowest(self) -> Array:
        """Return the least entry of each column, float64."""
        return self._lowest

    def deviations(self, reference: Array) -> tuple[Array, Array]:
        """Return the sums of ``X - reference`` over the rows, and how many entries are observed."""
        return self._powers(reference, 1), self.count

    def squares(self, mean: Array) -> Array:
        """Return the sums of ``(X - mean)**2`` over the rows."""
        return self._powers(mean, 2)

    def _powers(self, reference: Array, power: int) -> Array:
        tasks = [(chunk, reference, power) for chunk in self.chunks]
        return tree_sum(self.cluster, self._on_chunks(_column_powers, tasks))

    def _on_chunks(self, function: Any, tasks: Sequence[tuple]) -> list[Any]:
        return self.cluster.map(function, tasks, [None for _ in tasks])


def prepare(
    cluster: Any,
    chunks: Sequence[Any],
    sizes: Sequence[int],
    dtype: np.dtype,
    mean: Array,
    std: Array,
    *,
    seed: int,
    unit: float,
    ordered: bool,
    metric: Metric = EUCLIDEAN,
    width: float | None = None,
    lists: bool = False,
) -> BlockRows:
    """Centre and scale, and bring neighbouring rows together where they are to be ordered.

    Rows that are near by a robust metric are brought together where `choose_metric` gives a ``width``; ``lists`` as in
    `order_rows`.
    """
    centred = cluster.map(_centred, [(chunk, mean, std, dtype) for chunk in chunks], [None for _ in chunks])
    shape = (int(np.sum(sizes)), len(mean))
    if not ordered:  # no neighbours: rows stay where they are
        layout = Layout.spread(cluster, sizes)
        starts = layout.bounds
        ids = layout.map(np.arange, [int(a) for a in starts[:-1]], [int(b) for b in starts[1:]])
        return BlockRows(layout, layout.map(same, centred), ids, shape, dtype, seed=seed, unit=unit)
    layout, X, ids, near, cells = bring_together(cluster, centred, sizes, unit, seed=seed, width=width, lists=lists)
    return BlockRows(layout, X, ids, shape, dtype, near, cells, seed, unit, metric)


def bring_together(
    cluster: Any, chunks: Sequence[Any], sizes: Sequence[int], unit: float, *, width: float | None, **options: Any
) -> tuple:
    """Return `order_rows` of rows that are divided by ``unit`` for it."""
    anywhere = [None for _ in chunks]
    if unit != 1.0:
        chunks = cluster.map(_times, [(part, 1 / unit) for part in chunks], anywhere)
    width = None if width is None else width / unit
    layout, X, *rest = order_rows(cluster, chunks, sizes, n_blocks=len(chunks), width=width, **options)
    return layout, X if unit == 1.0 else layout.map(_times, X, [unit for _ in X]), *rest


def choose_metric(
    model: Any, cluster: Any, chunks: Sequence[Any], sizes: Sequence[int], dtype: np.dtype, mean: Array, std: Array
) -> tuple[Metric, float | None]:
    """Return the metric of the sample graph, from the rows that every engine looks at.

    Of a robust metric also the width of the map in which rows are near that are so by the metric.
    """
    if model.metric == "euclidean":
        return EUCLIDEAN, None
    starts = np.concatenate([[0], np.cumsum(sizes)])
    rows = sampled_rows(int(starts[-1]))
    inside = [rows[(rows >= a) & (rows < b)] - a for a, b in pairwise(starts)]
    tasks = [(chunk, at, mean, std, dtype) for chunk, at in zip(chunks, inside, strict=True)]
    sample = np.concatenate(cluster.gather(cluster.map(_centred_rows, tasks, [None for _ in chunks])))
    metric = find_metric(model.metric, sample, n_jobs=model.n_jobs)
    return metric, None if metric.euclidean else map_width(metric.cut, mean_deviation(sample))


def save_prepared(store: Checkpoint, rows: BlockRows) -> None:
    """Save the blocks and go on with what was saved: the solve then depends on the store alone."""
    graph, layout = rows.graph, rows.layout
    nothing = [None for _ in layout.sizes]
    parts = nothing if graph is None else graph.parts
    note: dict[str, Any] = {"sizes": layout.sizes, "shape": rows.shape, "dtype": str(rows.dtype), "graph": None}
    note |= {"seed": rows.seed, "unit": rows.unit, "metric": [rows.metric.name, rows.metric.cut]}
    if graph is not None:
        names = ("n_nodes", "n_edges", "n_halo", "lmax", "sigma", "method", "normalized", "recall", "metric")
        note["graph"] = {name: getattr(graph, name) for name in names}
    store.save(_PREPARED, layout, layout.map(_pack, rows.X, rows.ids, parts), step=0, note=note)
    kept = resume(store, layout.cluster)
    assert kept is not None
    vars(rows).update(vars(kept))


def resume(store: Checkpoint, cluster: Any) -> BlockRows | None:
    """Return the blocks that a fit of the same data and parameters saved; None where there are none."""
    saved = store.saved(_PREPARED)
    if saved is None:
        return None
    note = saved.note
    layout = Layout.spread(cluster, note["sizes"])
    blocks = store.load(saved, layout)
    X, ids = (layout.map(getitem, blocks, [name for _ in blocks]) for name in ("X", "ids"))
    name, cut = note["metric"]
    metric = replace(METRICS[name], cut=cut)
    known = {"seed": note["seed"], "unit": note["unit"], "metric": metric, "complete": True}
    rows = BlockRows(layout, X, ids, tuple(note["shape"]), np.dtype(note["dtype"]), **known)
    if note["graph"] is not None:
        parts = layout.map(_unpack_graph, blocks)
        rows.graph = BlockGraph(parts, ids, Halo(layout, parts), **note["graph"])
    return rows


def fingerprint(
    model: Any, dx: Any, chunks: Sequence[Any], cluster: Any, given: tuple[Any, Any], multiples: tuple[float, float]
) -> str:
    """Return what tells this fit from another: the content of every chunk, both graphs, all that shapes the problem.

    Chunks are read once more, where they are. ``given`` are the graphs as they enter the problem.
    """
    content = cluster.gather(cluster.map(_chunk_digest, [(chunk,) for chunk in chunks], [None for _ in chunks]))
    options = {name: value for name, value in model.get_params(deep=False).items() if name not in _FREE}
    options |= dict(zip(("sample_graph", "feature_graph"), map(_graph_content, given), strict=True))
    return joblib.hash([dx.shape, dx.chunks, str(dx.dtype), content, options, multiples])


def _chunk_digest(chunk: Array) -> str:
    return digest({"X": chunk})


def _graph_content(given: Any) -> Any:
    """Return what a graph that was given brings into the problem; what it has worked out since does not count."""
    if not isinstance(given, Graph):
        return given
    A = given.weights
    return digest({"data": A.data, "indices": A.indices, "indptr": A.indptr}), given.normalized


def _looked_over(chunk: Array, start: int) -> tuple:
    """Return entries observed in each column, infinite entries, the first empty row, and the range of each column."""
    p = chunk.shape[1]
    count, infinite, empty = np.zeros(p), 0, -np.inf
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    for at in range(0, len(chunk), _ROWS):
        rows = np.asarray(chunk[at : at + _ROWS], dtype=np.float64)
        infinite += int(np.isinf(rows).sum())
        missing = np.isnan(rows)
        count += len(rows) - missing.sum(axis=0)
        low, high = np.fmin(low, np.fmin.reduce(rows, axis=0)), np.fmax(high, np.fmax.reduce(rows, axis=0))
        if (lost := np.flatnonzero(missing.all(axis=1))).size and empty == -np.inf:
            empty = -(start + at + int(lost[0]))  # negative: of maxima the first row wins
    return count, infinite, Maximum(empty), Maximum(-low), Maximum(high)


def _column_powers(chunk: Array, reference: Array, power: int) -> Array:
    total = np.zeros(len(reference))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by check_range
        for at in range(0, len(chunk), _ROWS):
            rows = np.asarray(chunk[at : at + _ROWS], dtype=np.float64) - reference
            total += np.nansum(rows**power, axis=0)
    return total


def _centred(chunk: Array, mean: Array, std: Array, dtype: np.dtype) -> Array:
    out = np.empty(chunk.shape, dtype)
    for at in range(0, len(chunk), _ROWS):
        rows = slice(at, at + _ROWS)
        out[rows] = (chunk[rows] - mean) / std
    return out


def _centred_rows(chunk: Array, rows: Array, mean: Array, std: Array, dtype: np.dtype) -> Array:
    return _centred(chunk[rows], mean, std, dtype)


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


def _times(A: Array, factor: float) -> Array:
    return (A * factor).astype(A.dtype, copy=False)
