"""The stages of the estimator on row blocks, one call each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.backends.dask_backend import BlockProblem, DaskBackend, RowBlocks
from frpcag.checkpoint import Checkpoint
from frpcag.cluster import Layout, Maximum, current_cluster, exchange, split_rows, tree_sum
from frpcag.data.row_chunks import as_row_chunks
from frpcag.factorize import RANK_TOL, _rank, check_n_components
from frpcag.graphs import Graph, build_graph
from frpcag.graphs.checks import check_adjacency, check_n_neighbors, check_weight_options
from frpcag.graphs.gram import column_products, graph_from_products
from frpcag.graphs.laplacian import check_laplacian
from frpcag.halo import LocalGraph
from frpcag.outofcore.prepared import Prepared, column_moments, fingerprint, keep, prepare, resume
from frpcag.problem import Problem, _one_over, _pull
from frpcag.solvers import Solution, solve

Array = np.ndarray

# Features beyond which their p x p products would not fit the client.
_MAX_FEATURES = 1 << 14
# Rows looked at for the gammas, as on one machine.
_GAMMA_ROWS = 2000
_SEARCHES = ("auto", "exact", "approximate")


def fit(model: Any, X: Any, clock: Any) -> Solution:
    """Fit an `FRPCAG` on row chunks, and name its results.

    Parameters
    ----------
    model : FRPCAG
        With ``backend="dask"`` or a `DaskBackend`. ``low_rank_``, ``sparse_`` and ``embedding_`` become Dask arrays in
        the rows and chunks of ``X``; the other attributes are what they are on one machine, except ``sample_graph_``,
        a `BlockGraph`.
    X : see `as_row_chunks`
    clock : object with ``lap(stage)``
    """
    backend = model.backend if isinstance(model.backend, DaskBackend) else DaskBackend()
    dx = as_row_chunks(X)
    given = _check_options(model, dx)
    n, p = dx.shape
    dtype = np.dtype(np.float32 if dx.dtype == np.float32 else np.float64)
    cluster = current_cluster()
    chunks = cluster.chunks(dx)
    sizes = dx.chunks[0]
    model.n_features_in_ = p
    model.center_, model.scale_, missing = column_moments(cluster, chunks, sizes, p, dtype, model)
    clock.lap("preprocess")
    store = None if backend.checkpoint is None else Checkpoint(backend.checkpoint)
    mark = fingerprint(model, dx, given)
    prepared = None if store is None else resume(store, mark)
    if prepared is None:
        prepared = prepare(model, chunks, sizes, dtype, given[0])
        if store is not None:
            prepared = keep(store, mark, prepared)
    del chunks
    layout, model.sample_graph_ = prepared.layout, prepared.graph
    clock.lap("sample_graph")
    model.feature_graph_ = _feature_graph(model, prepared, n, p, given[1])
    clock.lap("feature_graph")
    L2 = None if model.feature_graph_ is None else model.feature_graph_.laplacian
    model.gamma1_, model.gamma2_ = _gammas(model, prepared, n, L2, dtype)
    clock.lap("gammas")
    null2 = None if model.feature_graph_ is None else model.feature_graph_.null_vector
    problem = BlockProblem(
        layout, RowBlocks(prepared.X, (n, p), dtype), prepared.graph, L2, model.gamma1_, model.gamma2_, model.loss,
        model.huber_delta, null2, _box(prepared, null2, p) if missing else None,
    )  # fmt: skip
    solution = solve(
        problem,  # type: ignore[arg-type]
        tol=model.tol,
        max_iter=model.max_iter,
        stop=model.stop,
        backend=backend,
        callback=model.callback,
    )
    clock.lap("solve")
    _finish(model, dx, prepared, solution.U, backend.output)  # type: ignore[arg-type]
    clock.lap("factorize")
    model.n_refine_ = 0
    return solution


def transform_chunks(model: Any, method: str, X: Any) -> Any:
    """Call ``transform`` or ``denoise`` of a model fitted on one machine on every chunk of a Dask array."""
    dx = as_row_chunks(X)
    n_columns = len(model.components_) if method == "transform" else dx.shape[1]
    dtype = np.dtype(np.float32 if dx.dtype == np.float32 else np.float64)
    return dx.map_blocks(_call, model=model, method=method, dtype=dtype, chunks=(dx.chunks[0], (n_columns,)))


def _call(rows: Array, model: Any, method: str) -> Array:
    return getattr(model, method)(rows)


def _check_options(model: Any, dx: Any) -> tuple[Any, Any]:
    """Raise for what would fail later, before any work; return the graphs that were given, or how to search them."""
    n, p = dx.shape
    if p > _MAX_FEATURES:
        raise ValueError(
            f"X has n_features={p}, but backend='dask' holds p x p products on the client and takes at most "
            f"{_MAX_FEATURES}; reduce the features first, such as by a random projection."
        )
    check_n_components(model.n_components, n, p)
    check_laplacian(model.laplacian)
    check_weight_options(sigma=model.sigma, weights="gaussian", symmetrize="average")
    check_n_neighbors(min(model.n_neighbors, n - 1), n, axis=0)
    model._gammas(None, None, None)
    if model.n_refine != 0:
        raise ValueError(f"n_refine={model.n_refine!r} is not done by backend='dask'; pass 0 or fit a subsample.")
    # The solver says what is wrong with its options, on one number.
    toy = Problem(np.zeros((1, 1)), None, None, 0.0, 0.0, loss=model.loss, delta=model.huber_delta)
    solve(toy, tol=model.tol, max_iter=model.max_iter, stop=model.stop, backend="numpy")
    return _given_graph(model, "sample_graph", n), _given_graph(model, "feature_graph", p)


def _given_graph(model: Any, name: str, n_nodes: int) -> Any:
    method = getattr(model, name)
    if method is None or (isinstance(method, str) and method in _SEARCHES):
        return method
    if isinstance(method, str) and method == "grid" and name == "feature_graph":
        return build_graph(_shape_only(n_nodes), axis=1, method="grid", shape=model.feature_shape)
    if isinstance(method, str) or hasattr(method, "fit_transform"):
        raise ValueError(
            f"{name}={method!r} is not done by backend='dask'; pass one of {', '.join(map(repr, _SEARCHES))}, a sparse "
            "adjacency, a Graph or None."
        )
    if isinstance(method, Graph):
        if method.n_nodes != n_nodes:
            raise ValueError(
                f"{name} has {method.n_nodes} nodes but X has {n_nodes} of them; pass a graph of the same size."
            )
        return method
    weights = check_adjacency(method, n_nodes=n_nodes)
    return build_graph(_shape_only(n_nodes), axis=1, method=weights, laplacian=model.laplacian)


def _shape_only(p: int) -> Array:
    return np.broadcast_to(np.float64(0), (1, p))


def _feature_graph(model: Any, prepared: Prepared, n: int, p: int, given: Any) -> Graph | None:
    if given is None or isinstance(given, Graph):
        return given
    if p == 1:
        return None
    layout = prepared.layout
    sums = tree_sum(layout.cluster, layout.map(column_products, prepared.X))
    return graph_from_products(
        sums, n, n_neighbors=min(model.n_neighbors, p - 1), sigma=model.sigma, laplacian=model.laplacian
    )


def _gammas(model: Any, prepared: Prepared, n: int, L2: sp.csr_array | None, dtype: np.dtype) -> tuple[float, float]:
    """Return the weights of the two graph terms, by the rule of `frpcag.problem.scale_free_gamma`."""
    gamma1, gamma2 = model._gammas(None, None, None)
    layout, graph = prepared.layout, prepared.graph
    rows = np.unique(np.linspace(0, n - 1, min(n, _GAMMA_ROWS)).astype(int))
    chosen = layout.map(np.isin, prepared.ids, [rows for _ in prepared.ids])
    if model.gamma1 == "auto" and graph is not None:
        halos = graph.halo.fetch(prepared.X, _pick)
        sums = tree_sum(layout.cluster, layout.map(_pull1, graph.parts, prepared.X, halos, chosen))
        gamma1 = _one_over_mean(sums, dtype)
    if model.gamma2 == "auto" and L2 is not None:
        shared = [L2 for _ in prepared.X]
        gamma2 = _one_over_mean(tree_sum(layout.cluster, layout.map(_pull2, shared, prepared.X, chosen)), dtype)
    return gamma1, gamma2


def _one_over_mean(sums: tuple[float, ...], dtype: np.dtype) -> float:
    """Return one over the mean pull, by the rule of one machine; the spread is the standard deviation here."""
    count = sums[-1]
    if count == 0:
        return 0.0
    pull, size, mean, square = (total / count for total in sums[:-1])
    return _one_over(pull, size, float(np.sqrt(max(square - mean**2, 0.0))), dtype)


def _box(prepared: Prepared, null2: Array | None, p: int) -> tuple[float, float]:
    """Return the range of the observed entries in units of the null vectors, as `frpcag.problem.solution_box`."""
    layout = prepared.layout
    graphs = [None for _ in prepared.X] if prepared.graph is None else prepared.graph.parts
    columns = np.ones(p) if null2 is None else null2
    low, high = tree_sum(layout.cluster, layout.map(_range, prepared.X, graphs, [columns for _ in graphs]))
    return -low.value, high.value


def _finish(model: Any, dx: Any, prepared: Prepared, U: RowBlocks, output: str | None) -> None:
    """Factorise through the p x p Gram matrix, and bring the rows back to the caller's order and units."""
    import dask.array as da

    layout, n = prepared.layout, U.shape[0]
    total, gram = tree_sum(layout.cluster, layout.map(_factor_sums, U.parts))
    origin = total / n if model.center else np.zeros_like(total)
    values, V = np.linalg.eigh(gram - n * np.outer(origin, origin))
    Sigma = np.sqrt(np.maximum(values[::-1], 0.0))
    c = min(_rank(Sigma, model.n_components, RANK_TOL), n)
    V = V[:, ::-1][:, :c]
    signs = np.sign(V[np.abs(V).argmax(axis=0), np.arange(c)])
    V = (V * np.where(signs == 0, 1, signs)).astype(U.dtype)
    model.mean_ = model.center_ + origin * model.scale_
    model.components_, model.singular_values_ = V.T, Sigma[:c].astype(U.dtype)
    bounds = np.concatenate([[0], np.cumsum(dx.chunks[0])])
    homes = Layout.spread(layout.cluster, dx.chunks[0]).homes
    routed = layout.map(_send_back, U.parts, prepared.ids, [bounds for _ in U.parts])
    back = exchange(layout.cluster, routed, homes)
    del routed
    tasks = [(part, int(start), model.center_, model.scale_) for part, start in zip(back, bounds[:-1], strict=True)]
    parts = layout.cluster.map(_restore_rows, tasks, homes)
    del back, tasks
    shapes = [(size, U.shape[1]) for size in dx.chunks[0]]
    low_rank = layout.cluster.array(parts, shapes, U.dtype)
    results = {"low_rank": low_rank, "sparse": da.map_blocks(_residual, dx, low_rank, dtype=U.dtype)}
    results["embedding"] = low_rank.map_blocks(
        _project, mean=model.mean_, scale=model.scale_, V=V, dtype=U.dtype, chunks=(dx.chunks[0], (c,))
    )
    for name, array in results.items():
        if output is not None:
            array.rechunk((max(dx.chunks[0]), -1)).to_zarr(output, component=name, overwrite=True)
            array = da.from_zarr(output, component=name)
        setattr(model, f"{name}_", array)


def _pull1(part: LocalGraph, X: Array, halo: Sequence[Array], chosen: Array) -> tuple[float, ...]:
    everyone = np.concatenate([X, *halo])
    L = part.rows
    pointers = np.pad(L.indptr, (0, part.n_halo), mode="edge")  # the halo's own rows are not known here
    square = sp.csr_array((L.data, L.indices, pointers), shape=(len(everyone), len(everyone)))
    return _sum_observed(_pull(square, everyone, np.flatnonzero(chosen)), X[chosen])


def _pull2(L2: sp.csr_array, X: Array, chosen: Array) -> tuple[float, ...]:
    if not chosen.any():
        return 0.0, 0.0, 0.0, 0.0, 0
    return _sum_observed(_pull(L2, X[chosen].T, np.arange(X.shape[1])).T, X[chosen])


def _sum_observed(pull: Array, X: Array) -> tuple[float, ...]:
    """Return the sums of |2 pull|, |X|, X and X^2 over what is observed, and how much that is."""
    at = ~np.isnan(X)
    values = X[at].astype(np.float64)
    parts = np.abs(2 * pull[at]), np.abs(values), values, np.square(values)
    return (*(float(np.sum(part, dtype=np.float64)) for part in parts), int(at.sum()))


def _range(X: Array, part: LocalGraph | None, columns: Array) -> tuple[Maximum, Maximum]:
    Z = X / columns if part is None else X / part.null[:, None] / columns
    return Maximum(-float(np.nanmin(Z))), Maximum(float(np.nanmax(Z)))


def _factor_sums(U: Array) -> tuple[Array, Array]:
    return U.sum(axis=0, dtype=np.float64), column_products(U)[0]


def _send_back(U: Array, ids: Array, bounds: Array) -> list[tuple[Array, ...]]:
    chunk = np.searchsorted(bounds, ids, side="right") - 1
    return split_rows((U, ids), np.arange(len(U)), chunk, len(bounds) - 1)


def _restore_rows(part: tuple[Array, Array], start: int, center: Array, scale: Array) -> Array:
    U, ids = part
    out = np.empty_like(U)
    out[ids - start] = U * scale.astype(U.dtype) + center.astype(U.dtype)
    return out


def _residual(X: Array, low_rank: Array) -> Array:
    return np.nan_to_num(np.asarray(X - low_rank, dtype=low_rank.dtype), nan=0.0)


def _project(low_rank: Array, mean: Array, scale: Array, V: Array) -> Array:
    return ((low_rank - mean) / scale).astype(low_rank.dtype) @ V


def _pick(X: Array, rows: Array) -> Array:
    return X[rows]
