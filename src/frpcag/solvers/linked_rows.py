"""Single rows solved with all others held fixed: the problem that a new row poses to a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from frpcag.problem import shrinkage
from frpcag.runtime.threads import block_pool
from frpcag.solvers.momentum import constant_weight

Array = np.ndarray

# Steps of a row at most. It has settled when a step moves no entry by more than this share of the largest one, less
# where steps are slow.
MOST_STEPS, SETTLED = 1000, 1e-6
# Rows of a block: what a thread takes at a time, which does not change the result.
_BLOCK = 64


@dataclass(frozen=True, eq=False)
class RowTerms:
    """Terms that all rows have in common: loss and feature graph.

    Parameters
    ----------
    loss, huber_delta : str and float
        As in :class:`~frpcag.problem.Problem`.
    L2 : csr_array of shape (n_features, n_features) or None
    gamma2 : float
    lmax2 : float
        Upper bound of the largest eigenvalue of ``L2``.
    """

    loss: str = "l1"
    huber_delta: float = 1.0
    L2: sp.csr_array | None = None
    gamma2: float = 0.0
    lmax2: float = 0.0

    @cached_property
    def slope(self) -> tuple[Array, Array, Array]:
        """Pointers, columns and values of ``2 gamma2 L2``."""
        if self.L2 is None:
            return np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)
        return self.L2.indptr, self.L2.indices, 2 * self.gamma2 * self.L2.data

    def steps(self, pull: Array) -> tuple[Array, ...]:
        """Return curvature, step, momentum, the three numbers of the shrinkage, and when to stop, for each row."""
        curved = 2 * pull.astype(np.float64)
        bound = curved + (2 * self.gamma2 * self.lmax2 if self.L2 is not None else 0.0)
        step = 1 / np.where(bound > 0, bound, 1.0)
        ratio = np.maximum(curved * step, 1e-4)
        parts = (curved, step, constant_weight(ratio), *shrinkage(self, step), SETTLED * np.sqrt(ratio))
        return tuple(np.array(np.broadcast_to(part, pull.shape)) for part in parts)


def solve_linked(rows: Array, terms: RowTerms, *, pull: Array, target: Array, n_jobs: int | None = None) -> Array:
    """Minimise ``sum phi(x - u) + pull |u|^2 - 2 <u, target> + gamma2 u L2 u'`` for every row ``x`` on its own.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        NaN is missing.
    terms : RowTerms
    pull : ndarray of shape (n_rows,)
        ``gamma1`` times the row's entry on the Laplacian's diagonal.
    target : ndarray of shape (n_rows, n_features)
        ``gamma1`` times the weighted sum of the clean rows that it is linked to.
    n_jobs : int, optional

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Each row takes as many steps as it needs: none depends on the others, not by a bit.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.solvers.linked_rows import RowTerms, solve_linked
    >>> row, pull, target = np.array([[1.0, 9.0, np.nan]]), np.array([2.0]), np.array([[2.0, 2.0, 2.0]])
    >>> solve_linked(row, RowTerms(), pull=pull, target=target)
    array([[1.  , 1.25, 1.  ]])
    """
    from frpcag.backends.numba.linked_rows import solve_rows

    x, target = np.ascontiguousarray(rows), np.ascontiguousarray(target, rows.dtype)
    pointers, columns, values = terms.slope
    parts = tuple(part.astype(x.dtype) for part in terms.steps(pull))
    start = middle_of(x, pull, target)
    out = np.empty_like(x)

    def solve(first: int) -> None:
        at = slice(first, first + _BLOCK)
        own = tuple(part[at] for part in parts)
        solve_rows(x[at], target[at], start[at], pointers, columns, values.astype(x.dtype), *own, MOST_STEPS, out[at])

    if len(x) <= _BLOCK:
        solve(0)
    else:
        with block_pool(n_jobs) as run:
            run(solve, range(0, len(x), _BLOCK))
    return out


def middle_of(rows: Array, pull: Array, target: Array) -> Array:
    """Return the start: where the links alone pull a row, or the row itself where there are none."""
    linked = pull > 0
    middle = target / np.where(linked, pull, 1)[:, None].astype(rows.dtype)
    return middle if linked.all() else np.where(linked[:, None], middle, np.nan_to_num(rows, nan=0.0))
