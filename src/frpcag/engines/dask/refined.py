"""Rows in the order of a clean part that was found of them, with its sample graph: what another solve starts from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from frpcag.backends.dask import lasting
from frpcag.backends.dask_problem import RowBlocks
from frpcag.engines.dask.prepared import BlockRows, bring_together, metric_from
from frpcag.graphs.metric import EUCLIDEAN, Metric, sampled_rows

Array = np.ndarray


def rows_near_in(
    model: Any, rows: BlockRows, U: RowBlocks, *, looks_at_lists: Callable, search: Callable, keep: bool
) -> BlockRows:
    """Return the rows with those together that are near in ``U``, and the sample graph of ``U``.

    Parameters
    ----------
    model : FRPCAG
    rows : BlockRows
        Of the solve that gave ``U``.
    U : RowBlocks
        Its clean part.
    looks_at_lists : callable
        From the metric to whether rows look at lists.
    search : callable
        From rows to their graph.
    keep : bool
        Whether results that are lost with a worker are made again: they come of the parts of the solve before, which
        Dask alone cannot make.
    """

    def make() -> BlockRows:
        return lasting((U,), lambda: _arranged(model, rows, U, looks_at_lists, search))

    out = make()
    if keep:

        def renew() -> None:
            _replace(out, make())

        assert out.clean is not None
        out.clean.renew = renew
    return out


def _arranged(model: Any, rows: BlockRows, U: RowBlocks, looks_at_lists: Callable, search: Callable) -> BlockRows:
    cluster = rows.layout.cluster
    metric, width = _metric(model, rows, U)
    options = {"seed": rows.seed, "width": width, "lists": looks_at_lists(metric)}
    layout, clean, ids, near, cells, X = bring_together(
        cluster, U.parts, rows.layout.sizes, rows.unit, ids=rows.ids, beside=rows.X, **options
    )
    known = (rows.shape, rows.dtype, near, cells, rows.seed, rows.unit, metric)
    out = BlockRows(layout, X, ids, *known, clean=RowBlocks(clean, rows.shape, rows.dtype, layout))
    # The graph is that of the clean part.
    X, out.X = out.X, clean
    out.graph = search(out)
    out.X, out.near, out.cells = X, None, None
    return out


def _metric(model: Any, rows: BlockRows, U: RowBlocks) -> tuple[Metric, float | None]:
    """Return the metric of the clean part's graph, from the rows that every engine looks at, and a map's width."""
    if model.metric == "euclidean":
        return EUCLIDEAN, None
    layout, looked_at = rows.layout, sampled_rows(rows.shape[0])
    found = layout.cluster.gather(layout.map(_some, U.parts, rows.ids, [looked_at for _ in rows.ids]))
    sample, ids = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return metric_from(model, sample[np.argsort(ids)])


def _some(U: Array, ids: Array, wanted: Array) -> tuple[Array, Array]:
    at = np.flatnonzero(np.isin(ids, wanted))
    return U[at], ids[at]


def _replace(rows: BlockRows, made: BlockRows) -> None:
    """Put blocks that have been made again in the places of those that were lost; they are equal."""
    old, new = map(_lists, (rows, made))
    for blocks, again in zip(old, new, strict=True):
        blocks[:] = again
    rows.graph.halo.pairs = made.graph.halo.pairs  # type: ignore[union-attr]


def _lists(rows: BlockRows) -> tuple[list[Any], ...]:
    assert rows.graph is not None
    assert rows.clean is not None
    return rows.layout.homes, rows.X, rows.ids, rows.clean.parts, rows.graph.parts, rows.graph.ids
