"""Single rows solved with all others held fixed: the problem that a new row poses to a fitted model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from frpcag.losses import LOSSES
from frpcag.runtime.threads import block_pool

Array = np.ndarray

# Steps of a row at most. It has settled when a step moves no entry by more than this share of the largest distance from
# the start, which unlike the entries has no common level, or by rounding; by less where steps are slow.
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

    @property
    def lists(self) -> tuple[Array, Array, Array]:
        """Pointers, columns and values of ``L2``."""
        if self.L2 is None:
            return np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0)
        return self.L2.indptr, self.L2.indices, self.L2.data

    def steps(self, pull: Array) -> tuple[Array, ...]:
        """Return what a step takes of the links and of ``L2``, its momentum, when to stop, and the prox, by row.

        Both terms are multiplied by the step, which keeps gammas of any size in the range of float32.
        """
        curved = 2 * pull.astype(np.float64)
        weight = 2 * self.gamma2 if self.L2 is not None else 0.0
        bound = curved + weight * self.lmax2
        step = 1 / np.where(bound > 0, bound, 1.0)
        ratio = np.maximum(curved * step, 1e-4)
        settled = SETTLED * np.sqrt(ratio)
        parts = (curved * step, weight * step, constant_weight(ratio), settled)
        shaped, numbers = (
            [np.array(np.broadcast_to(part, pull.shape)) for part in some]
            for some in (parts, LOSSES[self.loss].numbers(step, self.huber_delta))
        )
        return *shaped, np.column_stack(numbers)


def solve_linked(
    rows: Array,
    terms: RowTerms,
    *,
    pull: Array,
    middle: Array,
    n_jobs: int | None = None,
) -> Array:
    """Minimise ``sum phi(x - u) + pull |u - middle|^2 + gamma2 u L2 u'`` for every row ``x`` on its own.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        NaN is missing.
    terms : RowTerms
    pull : ndarray of shape (n_rows,)
        ``gamma1`` times the row's entry on the Laplacian's diagonal.
    middle : ndarray of shape (n_rows, n_features)
        The weighted sum of the clean rows that it is linked to, over the same entry. A row starts there.
    n_jobs : int, optional

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Each row takes as many steps as it needs: none depends on the others, not by a bit.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag.rows.terms import RowTerms, solve_linked
    >>> row, pull, middle = np.array([[1.0, 9.0, np.nan]]), np.array([2.0]), np.array([[1.0, 1.0, 1.0]])
    >>> solve_linked(row, RowTerms(), pull=pull, middle=middle)
    array([[1.  , 1.25, 1.  ]])
    """
    from frpcag.backends.numba.linked_rows import kernel_for

    x = np.ascontiguousarray(rows)
    middle = np.ascontiguousarray(middle, x.dtype)
    pointers, columns, values = terms.lists
    values = values.astype(x.dtype)
    with np.errstate(over="ignore", under="ignore"):  # a step beyond the range of float32 has no bound
        parts = tuple(part.astype(x.dtype) for part in terms.steps(pull))
    out, solve_rows = np.empty_like(x), kernel_for(terms.loss)

    def solve(first: int) -> None:
        at = slice(first, first + _BLOCK)
        own = tuple(part[at] for part in parts)
        solve_rows(x[at], middle[at], pointers, columns, values, *own, MOST_STEPS, out[at])

    if len(x) <= _BLOCK:
        solve(0)
    else:
        with block_pool(n_jobs) as run:
            run(solve, range(0, len(x), _BLOCK))
    return out


def constant_weight(ratio: Array) -> Array:
    """Return the best constant momentum for a problem of this ratio of strong convexity to smoothness (Nesterov)."""
    root = np.sqrt(ratio)
    return (1 - root) / (1 + root)
