"""What a worker does with one row block, by the kernels of the Numba backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from frpcag.backends.numba import kernels as kernels
from frpcag.backends.numba.backend import _padded, _scaled, in_step_units, scratch_tiles
from frpcag.linalg.row_blocks import LocalGraph
from frpcag.problem import Array
from frpcag.runtime.tasks import Maximum

# Starts of the rows, columns and entries of a sparse matrix; entries in float64, then in those of a step.
Lists = tuple[Array, ...]


@dataclass
class BlockData:
    """What a block keeps through all steps, padded for the kernels."""

    X: Array
    graph: Lists  # 2 gamma1 L1; columns are own rows, then the halo
    null: Array
    n_halo: int


@dataclass
class Iterates:
    """One block of U and Y. ``Y`` has room for the halo below its own rows, filled in by the step that reads it."""

    U: Array
    Y: Array
    sums: tuple[float, ...] = field(default=(0.0, 0.0, 0.0))


def step_block(data: BlockData, features: Lists, old: Iterates, halo: Sequence[Array], numbers: tuple) -> Iterates:
    """Do one step on one block with the kernel of the Numba backend; the old iterates stay as they are."""
    X, Y = _writable(data.X), _writable(old.Y)
    _fill_halo(Y, len(X), halo)
    U, Y_next = _writable(old.U, copy=True), np.empty_like(Y)
    sums = np.zeros((len(X) // kernels.TILE, kernels.SUMS))
    real = X.dtype.type
    graphs, scratch = _lists(data, features, 3), scratch_tiles(X.shape[1], X.dtype)[0]
    kernels.step_rows(X, Y, U, Y_next, graphs, scratch, *map(real, numbers), (0, len(sums)), sums)
    return Iterates(U, Y_next, tuple(map(float, sums[:, :3].sum(axis=0))))


def gap_block(data: BlockData, features: Lists, at: Iterates, halo: Sequence[Array], numbers: tuple) -> tuple:
    """Return the block's part of a certificate, the numbers of `frpcag.problem.Sums`."""
    X = _writable(data.X)
    n, p = X.shape
    U = _with_halo(data, at, halo)
    loss, delta, lo, hi, columns = numbers
    box = (lo, hi, np.pad(data.null, (0, n - len(data.null))), np.pad(columns, (0, p - len(columns))))
    sums = np.zeros((n // kernels.TILE, kernels.SUMS))
    graphs, scratch = _lists(data, features, 2), scratch_tiles(p, X.dtype)[1]
    kernels.gap_rows(X, U, graphs, scratch, loss, delta, box, (0, len(sums)), sums)
    return (*map(float, sums[:, :6].sum(axis=0)), Maximum(sums[:, 6:].max(axis=0)))


def slope_block(data: BlockData, features: Lists, at: Iterates, halo: Sequence[Array], numbers: tuple) -> Array:
    """Return the block's part of the gradient of the graph terms at ``U``, without padding."""
    U = _with_halo(data, at, halo)
    V = np.empty(data.X.shape, data.X.dtype)
    scratch = scratch_tiles(V.shape[1], V.dtype)[1]
    kernels.slope_rows(U, _lists(data, features, 2), scratch, V, (0, len(V) // kernels.TILE))
    return np.ascontiguousarray(V[: len(data.null), : numbers[0]])


def block_data(X: Array, graph: LocalGraph | None, factor: float, step: float) -> BlockData:
    """Return what a block keeps: its rows, and its part of ``factor`` times the graph."""
    padded = _padded(X)
    n = len(padded)
    if graph is None or factor == 0:
        null = np.ones(len(X)) if graph is None else graph.null
        return BlockData(padded, _for_steps(_scaled(None, 0.0, n), step, X.dtype), null, 0)
    ptr, idx, val = _scaled(graph.rows, factor, n)
    idx[idx >= len(X)] += n - len(X)  # the halo lies below the padding
    return BlockData(padded, _for_steps((ptr, idx, val), step, X.dtype), graph.null, graph.n_halo)


def feature_lists(L2: sp.csr_array | None, factor: float, dtype: np.dtype, p: int, step: float) -> Lists:
    """Return ``factor`` times the Laplacian of the features, which every block sees."""
    return _for_steps(_scaled(L2, factor, -(-p // kernels.LANES) * kernels.LANES), step, dtype)


def iterates(data: BlockData, U0: Array | None, Y0: Array | None = None) -> Iterates:
    """Return iterates at ``U0`` (``X`` if None, missing entries at zero) and ``Y0`` (``U0`` if None)."""
    n, p = data.X.shape
    U, Y = np.zeros((n, p), data.X.dtype), np.zeros((n + data.n_halo, p), data.X.dtype)
    if U0 is None:
        np.copyto(U, data.X)
        np.nan_to_num(U, copy=False, nan=0.0)
    else:
        U[: len(U0), : U0.shape[1]] = U0
    if Y0 is None:
        Y[:n] = U
    else:
        Y[: len(Y0), : Y0.shape[1]] = Y0
    return Iterates(U, Y)


def pack(block: Iterates, shape: tuple[int, int]) -> dict[str, Array]:
    """Return the iterates of a block as a checkpoint stores them."""
    n, p = shape
    return {"U": block.U[:n, :p], "Y": block.Y[:n, :p]}


def unpack(data: BlockData, saved: dict[str, Array]) -> Iterates:
    """Return the iterates that a checkpoint stored."""
    return iterates(data, saved["U"], saved["Y"])


def _with_halo(data: BlockData, at: Iterates, halo: Sequence[Array]) -> Array:
    n, p = data.X.shape
    U = np.empty((n + data.n_halo, p), data.X.dtype)
    U[:n] = at.U
    _fill_halo(U, n, halo)
    return U


def _fill_halo(Y: Array, n: int, halo: Sequence[Array]) -> None:
    at = n
    for piece in halo:
        Y[at : at + len(piece)] = piece
        at += len(piece)


def _writable(A: Array, *, copy: bool = False) -> Array:
    # Arrays that came over the network may be read-only, another type to Numba.
    return A.copy() if copy or not A.flags.writeable else A


def _lists(data: BlockData, features: Lists, entries: int) -> Lists:
    """Return both graphs with the entries at this place of their lists: 2 in float64, 3 those of a step."""
    return tuple(_writable(lists[place]) for lists in (data.graph, features) for place in (0, 1, entries))


def _for_steps(lists: Lists, step: float, dtype: np.dtype) -> Lists:
    return (*lists, in_step_units(lists, step, dtype)[2])


def pick_Y(block: Iterates, rows: Array) -> Array:
    """Return rows of Y that another block needs."""
    return block.Y[rows]


def pick_U(block: Iterates, rows: Array) -> Array:
    """Return rows of U that another block needs."""
    return block.U[rows]


def step_sums(block: Iterates) -> tuple[float, ...]:
    """Return the three numbers of the last step."""
    return block.sums


def own_U(block: Iterates, n: int, p: int) -> Array:
    """Return the clean part without padding."""
    return np.ascontiguousarray(block.U[:n, :p])
