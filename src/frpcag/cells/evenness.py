"""Damage strikes rows and columns alike; natural extremes live in some of them.

Where cells had been overwritten or shifted at random, the rates of flagged cells varied by 0 to 0.4 of their mean
between columns and between rows, sampling aside; for strokes, edges and rare counts by 0.6 to 2
(docs/decisions/cleaning.md). This tells the two apart without a look at the values.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

MOST_BY_COLUMN, MOST_BY_ROW = 0.4, 0.5
# The rate that damage has in every column is read off from the lowest tenth of them, which lie this many standard
# deviations below it by chance; columns as far above it are normal, too.
LOWEST, BY_CHANCE = 0.1, 1.28
# A smaller base rate is that of natural extremes.
LEAST_BASE = 0.005
# Fewer flags than this, or a smaller share of the cells, say nothing.
LEAST_FLAGS, LEAST_SHARE = 50, 0.002


def variation(hits: Array, cells: Array) -> float:
    """Return the coefficient of variation of the rates ``hits / cells``, without what sampling adds to it.

    Parameters
    ----------
    hits, cells : ndarray of shape (n_groups,)
        Counts; every group has cells.
    """
    rate = hits.sum() / cells.sum()
    # Groups count by their cells: columns at the rim of an image have few, and those are the odd ones.
    beyond = np.sum(cells * np.square(hits / cells - rate)) - len(cells) * rate * (1 - rate)
    beyond /= cells.sum()
    return float(np.sqrt(max(beyond, 0.0)) / rate) if rate > 0 else np.inf


def is_even(flags: Array, among: Array) -> bool:
    """Say whether flags are many enough to tell, and strike all columns and all rows at about the same rate.

    Parameters
    ----------
    flags, among : bool ndarray of shape (n_samples, n_features)
        Flagged cells, and the cells that could have been flagged.
    """
    if flags.sum() < max(LEAST_FLAGS, LEAST_SHARE * among.sum()):
        return False
    for axis, most in ((0, MOST_BY_COLUMN), (1, MOST_BY_ROW)):
        hits, cells = flags.sum(axis=axis), among.sum(axis=axis)
        if variation(hits[cells > 0], cells[cells > 0]) > most:
            return False
    return True


def damage_share(flags: Array, among: Array) -> Array:
    """Return the share of each column's flags that is damage: its base rate over its own.

    Damage strikes all columns at one rate, natural extremes come on top of it in some. The base rate is that of the
    columns with the fewest flags; where even those have none, or hardly any, nothing is damage.

    Parameters
    ----------
    flags, among : bool ndarray of shape (n_samples, n_features)
        Flagged cells, and the cells that could have been flagged.
    """
    hits, cells = flags.sum(axis=0), np.maximum(among.sum(axis=0), 1)
    low = float(np.quantile(hits / cells, LOWEST))
    # low = base - BY_CHANCE sqrt(base / cells), solved for the base
    chance = BY_CHANCE / np.sqrt(float(np.median(cells)))
    base = ((chance + np.sqrt(chance**2 + 4 * low)) / 2) ** 2 if low > 0 else 0.0
    if base < LEAST_BASE:
        return np.zeros(len(hits))
    usual = hits <= cells * base + BY_CHANCE * np.sqrt(cells * base)
    return np.where(usual, 1.0, np.minimum(1.0, base * cells / np.maximum(hits, 1)))
