"""Wrong cells in a report: what a cleaner says of every cell, in words and as shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frpcag.insight import OutlierShares, flagged_shares

Array = np.ndarray

# Samples and features that a sentence names.
_MOST_NAMED = 3


@dataclass(frozen=True, eq=False)
class Cells:
    """What a cleaner says of every cell.

    Parameters
    ----------
    deviation : ndarray of shape (n_samples, n_features)
        Value minus prediction; NaN where it is missing.
    probability : ndarray of the same shape
        That a cell is wrong.
    repaired : bool ndarray of the same shape
        Cells that were changed.
    wrong_rows : ndarray of int
        Rows that are wrong as a whole, which were left as they are.
    scale : ndarray of shape (n_features,)
        Typical size of each feature.
    n_filled : int
        Missing cells that were filled in.
    """

    deviation: Array
    probability: Array
    repaired: Array
    wrong_rows: Array
    scale: Array
    n_filled: int = 0

    @classmethod
    def of_model(cls, model: Any) -> Cells:
        """Return what a fitted :class:`~frpcag.RobustGraphCleaner` says."""
        return cls(
            deviation=model.deviation_,
            probability=model.outlier_probability_,
            repaired=model.outliers_,
            wrong_rows=np.flatnonzero(model.row_outlier_probability_ > 0.5),
            scale=model.scale_,
            n_filled=int(np.isnan(model.deviation_).sum()),
        )

    @property
    def shares(self) -> OutlierShares:
        """Shares of the cells that are probably wrong, repaired or not."""
        return flagged_shares(self.probability > 0.5)


def sentences(cells: Cells, samples: Any, features: Any) -> list[str]:
    """Return what a person wants to know first, one paragraph each.

    Parameters
    ----------
    cells : Cells
    samples, features : callable
        Give the name of a sample or feature by its number.
    """
    n, p = cells.repaired.shape
    size = f"{n} samples with {p} features"
    count, rows = int(cells.repaired.sum()), cells.wrong_rows
    if count:
        lines = [
            f"{size}: {count_of(count, 'cell')} ({percent(count / (n * p))}) {'is' if count == 1 else 'are'} probably "
            f"wrong and {'was' if count == 1 else 'were'} repaired. All other cells are unchanged."
        ]
        lines.append(f"Most of them: {worst(cells, samples, features)}.")
    else:
        lines = [f"{size}: no cell contradicts the others, so no value was changed."]
    if len(rows):
        named = ", ".join(samples(i) for i in rows[:_MOST_NAMED])
        more = f" and {len(rows) - _MOST_NAMED} more" if len(rows) > _MOST_NAMED else ""
        lines.append(
            f"{count_of(len(rows), 'sample')} {'is' if len(rows) == 1 else 'are'} wrong as a whole ({named}{more}): "
            f"look at {'it' if len(rows) == 1 else 'them'}. {'It was' if len(rows) == 1 else 'They were'} left as "
            f"{'it is' if len(rows) == 1 else 'they are'}."
        )
    if cells.n_filled:
        lines.append(
            f"{count_of(cells.n_filled, 'missing cell')} {'was' if cells.n_filled == 1 else 'were'} filled in."
        )
    return lines


def worst(cells: Cells, samples: Any, features: Any) -> str:
    """Return the features and samples with the most repaired cells, in words."""
    shares = flagged_shares(cells.repaired)
    named = []
    for word, name, at, order in (
        ("feature", features, shares.features, shares.worst_features(_MOST_NAMED)),
        ("sample", samples, shares.samples, shares.worst_samples(_MOST_NAMED)),
    ):
        some = [f"{name(i)} ({percent(at[i])} of its cells)" for i in order if at[i] > 0]
        named.append(f"{word}{'' if len(some) == 1 else 's'} {', '.join(some)}")
    return "; ".join(named)


def percent(share: float) -> str:
    """Return a share in per cent, with two digits that count."""
    return f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def count_of(n: int, word: str) -> str:
    """Return a number of things."""
    return f"{n} {word}{'' if n == 1 else 's'}"
