"""What a worker does with its run of row blocks, by the kernels of the Numba backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from frpcag.backends.numba import kernels as kernels
from frpcag.backends.numba.backend import Tiles, _aligned_zeros, _scaled, in_step_units
from frpcag.dask.row_blocks import Cut, LocalGraph, join_graphs
from frpcag.problem import Array

# Starts of the rows, columns and entries of a sparse matrix; entries in float64, then in those of a step.
Lists = tuple[Array, ...]


@dataclass
class Rows:
    """What stays as it is through all steps: the rows of a run of blocks, padded for the kernels, and their graph."""

    X: Array
    graph: Lists  # 2 gamma1 L1; columns are own rows, then the halo
    null: Array
    needs: dict[int, Array]
    cut: Cut

    @property
    def n_halo(self) -> int:
        """Rows of other runs that this one reads."""
        return sum(map(len, self.needs.values()))


def height(n_rows: int) -> int:
    """Return the rows that a block takes with its padding."""
    return -(-n_rows // kernels.TILE) * kernels.TILE


def join_rows(
    blocks: Sequence[Array],
    graphs: Sequence[LocalGraph | None],
    run: tuple[int, Array, Array],
    factor: float,
    step: float,
) -> Rows:
    """Return a run of blocks: their rows, and their part of ``factor`` times the graph.

    ``run`` says which one it is, the rows of all blocks, and the first block of every run.
    """
    (index, sizes, firsts), dtype, p = run, blocks[0].dtype, blocks[0].shape[1]
    cut = Cut(index, sizes, np.array([height(int(size)) for size in sizes]), firsts)
    n = int(cut.heights[cut.blocks.start : cut.blocks.stop].sum())
    X, null = _aligned_zeros((n, -(-p // kernels.LANES) * kernels.LANES), dtype), np.zeros(n)
    for at, block, graph in zip(cut.rows, blocks, graphs, strict=True):
        X[at, :p] = block
        null[at] = 1.0 if graph is None else graph.null
    if graphs[0] is None or factor == 0:
        return Rows(X, _for_steps(_scaled(None, 0.0, n), step, dtype), null, {}, cut)
    L, needs = join_graphs(graphs, cut)  # type: ignore[arg-type]
    lists = L.indptr.astype(np.int64), L.indices, factor * L.data.astype(np.float64)
    return Rows(X, _for_steps(lists, step, dtype), null, needs, cut)


def feature_lists(L2: sp.csr_array | None, factor: float, dtype: np.dtype, p: int, step: float) -> Lists:
    """Return ``factor`` times the Laplacian of the features, which every worker sees."""
    return _for_steps(_scaled(L2, factor, -(-p // kernels.LANES) * kernels.LANES), step, dtype)


class Live:
    """The iterates of a run of blocks, changed in place by the kernels of the Numba backend.

    Y and a spare array of its shape have room for the halo below their own rows.
    """

    def __init__(
        self, rows: Rows, features: Lists, start: Sequence[dict[str, Array]] | None, *, n_threads: int = 1
    ) -> None:
        self.X = _writable(rows.X)
        self.rows, self.needs, self.n_halo = rows, rows.needs, rows.n_halo
        self._lists = tuple(tuple(map(_writable, lists)) for lists in (rows.graph, features))
        (n, p), dtype = self.X.shape, self.X.dtype
        self.U, self.Y = _aligned_zeros((n, p), dtype), _aligned_zeros((n + self.n_halo, p), dtype)
        self.spare = _aligned_zeros(self.Y.shape, dtype)
        if start is None:
            np.copyto(self.U, self.X)
            np.nan_to_num(self.U, copy=False, nan=0.0)
            self.Y[:n] = self.U
        else:
            for at, block in zip(rows.cut.rows, start, strict=True):
                self.U[at, : block["U"].shape[1]] = block["U"]
                self.Y[at, : block["U"].shape[1]] = block["Y"]
        self._tiles = Tiles((n, p), dtype, n_threads)

    def step(self, loss: str, lam: float, numbers: tuple[float, ...], momentum: float) -> Array:
        """Do one step; return the three sums of every block."""
        graphs, real = self._graphs(3), self.X.dtype.type
        values = real(lam), tuple(map(real, numbers)), real(momentum)
        step_rows = kernels.step_rows_of(loss)

        def task(tiles, scratch):
            step_rows(self.X, self.Y, self.U, self.spare, graphs, scratch[0], *values, tiles, self._tiles.sums)

        self._tiles.run(task)
        self.Y, self.spare = self.spare, self.Y
        return np.array([part[:, :3].sum(axis=0) for part in self._of_blocks()])

    def look_at_U(self) -> None:
        """Bring U to where `pick`, `fill`, `gap` and `slope` expect it."""
        self.spare[: len(self.U)] = self.U

    def gap(self, numbers: tuple) -> list[tuple[Array, Array]]:
        """Return the sums of every block for `frpcag.problem.Sums`, then its maxima."""
        loss, delta, lo, hi, columns = numbers
        box = (lo, hi, self.rows.null, np.pad(columns, (0, self.X.shape[1] - len(columns))))
        graphs, gap_rows = self._graphs(2), kernels.gap_rows_of(loss)

        def task(tiles, scratch):
            gap_rows(self.X, self.spare, graphs, scratch[1], delta, box, tiles, self._tiles.sums)

        self._tiles.run(task)
        return [(part[:, :6].sum(axis=0), part[:, 6:].max(axis=0)) for part in self._of_blocks()]

    def slope(self) -> None:
        """Write the gradient of the graph terms at ``U`` over Y."""
        graphs = self._graphs(2)
        self._tiles.run(lambda tiles, scratch: kernels.slope_rows(self.spare, graphs, scratch[1], self.Y, tiles))

    def settle(self) -> None:
        """Let go of all arrays but ``U``."""
        self.Y = self.spare = self.U[:0]

    def pick(self, which: str, rows: Array) -> Array:
        """Return rows that another run needs."""
        return (self.Y if which == "Y" else self.spare)[rows]

    def fill(self, which: str, pieces: dict[int, Array]) -> None:
        """Write the rows of other runs below those of this one."""
        into, at = self.Y if which == "Y" else self.spare, len(self.X)
        for j in sorted(self.needs):
            into[at : at + len(pieces[j])] = pieces[j]
            at += len(pieces[j])

    def blocks(self, which: str, p: int) -> list[Array]:
        """Return a copy of every block of U, of Y, or of the slope, without padding."""
        A = self.U if which == "U" else self.Y
        return [np.ascontiguousarray(A[at, :p]) for at in self.rows.cut.rows]

    def _graphs(self, entries: int) -> Lists:
        """Return both graphs with the entries at this place of their lists: 2 in float64, 3 those of a step."""
        return tuple(lists[place] for lists in self._lists for place in (0, 1, entries))

    def _of_blocks(self) -> list[Array]:
        """Return the sums of the tiles of every block."""
        rows, heights = self.rows.cut.rows, (height(at.stop - at.start) for at in self.rows.cut.rows)
        tiles = ((at.start // kernels.TILE, tall // kernels.TILE) for at, tall in zip(rows, heights, strict=True))
        return [self._tiles.sums[first : first + n] for first, n in tiles]


def _writable(A: Array) -> Array:
    # Arrays that came over the network may be read-only, another type to Numba.
    return A if A.flags.writeable else A.copy()


def _for_steps(lists: Lists, step: float, dtype: np.dtype) -> Lists:
    return (*lists, in_step_units(lists, step, dtype)[2])
