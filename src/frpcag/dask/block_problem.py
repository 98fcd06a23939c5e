"""A problem in row blocks on the workers of a Dask cluster."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from frpcag.dask.checkpoint import Checkpoint
from frpcag.dask.row_blocks import Halo, LocalGraph, localize
from frpcag.dask.tasks import Here, Layout, Maximum, current_cluster, same, tree_sum
from frpcag.problem import Array, Problem, solution_box


@dataclass
class RowBlocks:
    """A matrix in row blocks, results of tasks each."""

    parts: list[Any]
    shape: tuple[int, int]
    dtype: np.dtype
    layout: Any = None


@dataclass
class SampleGraph:
    """What the backend needs of a graph over blocks: rows of the Laplacian (`LocalGraph`), halo and eigenvalue."""

    parts: list[Any]
    halo: Halo
    lmax: float


@dataclass(frozen=True, eq=False)
class BlockProblem:
    """A `Problem` in row blocks. Rows stay rows: it has no transpose.

    Parameters
    ----------
    layout : Layout
        Where the blocks are.
    X : RowBlocks
        Centred and scaled data; NaN is missing. The backend lets go of it when it has made its own copy.
    L1 : SampleGraph or None
        Also any object with its attributes.
    L2 : csr_array of shape (n_features, n_features) or None
    gamma1, gamma2 : float
    loss, huber_delta, null2
        As in `Problem`.
    box : (float, float) or None
        Range that the observed entries of ``X`` have in units of the null vectors; None when nothing is missing.
    store : Checkpoint or None
        Where the iterates are saved.
    """

    layout: Layout
    X: RowBlocks
    L1: Any
    L2: sp.csr_array | None
    gamma1: float
    gamma2: float
    loss: str = "l1"
    huber_delta: float = 1.0
    null2: Array | None = None
    box: tuple[float, float] | None = None
    lmax1: float | None = None
    lmax2: float | None = None
    store: Checkpoint | None = None

    can_turn: ClassVar[bool] = False
    keeps_X: ClassVar[bool] = True
    level1: ClassVar[str] = "free"
    level2: ClassVar[str] = "free"

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.X.shape

    @cached_property
    def reaches(self) -> tuple[float, Array]:
        """Absolute row sums of ``gamma1 L1``, the largest of them, and of ``gamma2 L2``."""
        return self.gamma1 * self._sample_sums[0], _row_sums(self.L2, self.shape[1], self.gamma2)

    @cached_property
    def stiffness(self) -> tuple[float, int]:
        """As in `Problem`."""
        longest = 0 if self.L2 is None else int(np.diff(self.L2.indptr).max())
        return 2 * float(self.reaches[0] + self.reaches[1].max()), int(self._sample_sums[1]) + longest

    @cached_property
    def _sample_sums(self) -> Array:
        if self.L1 is None:
            return np.zeros(2)
        return tree_sum(self.layout.cluster, self.layout.map(_longest, self.L1.parts)).value

    @classmethod
    def of(cls, problem: Problem) -> BlockProblem:
        """Cut a problem of NumPy arrays into blocks, two for every worker."""
        cluster = current_cluster()
        n, p = problem.X.shape
        # In this process blocks of a single row and blocks of many must do alike.
        n_blocks = min(n, 3 if isinstance(cluster, Here) else 2 * len(cluster.workers()))
        bounds = np.linspace(0, n, n_blocks + 1).astype(int)
        layout = Layout.spread(cluster, np.diff(bounds).tolist())
        cuts = [slice(a, b) for a, b in pairwise(bounds)]
        lo, hi, rows, _ = solution_box(problem)
        L1 = None
        if problem.L1 is not None:
            parts = [localize(problem.L1[cut], bounds, j, rows[cut]) for j, cut in enumerate(cuts)]
            parts = layout.map(same, parts)
            L1 = SampleGraph(parts, Halo(layout, parts), 0.0)
        X = RowBlocks(layout.map(same, [problem.X[cut] for cut in cuts]), (n, p), problem.X.dtype)
        return cls(
            layout, X, L1, problem.L2, problem.gamma1, problem.gamma2, problem.loss, problem.huber_delta, problem.null2,
            None if problem.mask is None else (lo, hi),
        )  # fmt: skip


def _longest(graph: LocalGraph) -> Maximum:
    """Return the largest absolute row sum of a block's part of a Laplacian, and the most entries of a row."""
    return Maximum(np.array([abs(graph.rows).sum(axis=1).max(), np.diff(graph.rows.indptr).max()], dtype=np.float64))


def _row_sums(L: sp.csr_array | None, n: int, factor: float) -> Array:
    return np.zeros(n) if L is None else factor * np.asarray(abs(L).sum(axis=1)).ravel()
