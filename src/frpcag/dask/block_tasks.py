"""What one task computes: the arithmetic of a single row block, or of a chunk as it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.backends.units import NOTHING, Terms, Units, frame_rows, restore_rows
from frpcag.dask.row_blocks import LocalGraph
from frpcag.dask.tasks import Maximum, split_rows
from frpcag.engines.gammas import column_sums, csr_product, pull_at, spread_sums
from frpcag.linalg.factorize import gram_sum
from frpcag.runtime.arrays import row_blocks

Array = np.ndarray

# Rows that are looked at for the spreads of the columns.
LOOKED_AT = 500


def first_of(X: Array, ids: Array) -> Array:
    return X[ids == 0]


def sample_pulls(part: LocalGraph, X: Array, halo: Sequence[Array], chosen: Array, reference: Array) -> Any:
    at = np.flatnonzero(chosen)
    everyone = np.concatenate([X, *halo])
    pull = pull_at(csr_product(part.rows[at], at), part.rows.diagonal()[at], X[at], everyone)
    return column_sums(pull, X[at], reference)


def feature_pulls(L2: sp.csr_array, X: Array, chosen: Array, reference: Array) -> Any:
    points = X[chosen].T
    pull = pull_at(csr_product(L2, np.arange(len(points))), L2.diagonal(), points, points).T
    return column_sums(pull, X[chosen], reference)


def column_spread(X: Array, chosen: Array, mean: Array) -> Array:
    return spread_sums(X[chosen], mean)


def diagonal_sum(part: LocalGraph) -> float:
    return float(part.rows.diagonal().sum())


def largest(U: Array) -> Maximum:
    return Maximum(float(np.fmax.reduce(np.abs(U), axis=None, initial=0.0)))


def column_totals(U: Array, unit: float) -> Array:
    return _in_unit(U, unit).sum(axis=0, dtype=np.float64)


def gram(U: Array, unit: float) -> Array:
    return gram_sum(_in_unit(U, unit))


def _in_unit(U: Array, unit: float) -> Array:
    return U if unit == 1.0 else U / unit


def send_back(U: Array, V: Array | None, ids: Array, bounds: Array) -> list[tuple[Array, ...]]:
    chunk = np.searchsorted(bounds, ids, side="right") - 1
    arrays = (U, ids) if V is None else (U, ids, V)
    return split_rows(arrays, np.arange(len(U)), chunk, len(bounds) - 1)


def rows_in_units(
    part: tuple[Array, ...], chunk: Array, start: int, center: Array, scale: Array, terms: Terms
) -> tuple[Array, tuple]:
    U, ids, *more = part
    out, moves = np.empty_like(U), NOTHING
    for rows in row_blocks(U.shape):
        X = np.asarray(chunk[ids[rows] - start], dtype=U.dtype)
        units = Units(np.ones(len(X)), center, scale)
        # As `prepare` has centred and scaled them.
        V = more[0][rows] if more else None
        restored, moved = restore_rows(X, frame_rows(X, units), U[rows], V, units, terms)
        out[ids[rows] - start] = restored
        moves += moved
    return out, tuple(moves)


def residual(X: Array, low_rank: Array) -> Array:
    return np.nan_to_num(np.asarray(X - low_rank, dtype=low_rank.dtype), nan=0.0)


def project(low_rank: Array, mean: Array, scale: Array, V: Array) -> Array:
    return ((low_rank - mean) / scale).astype(low_rank.dtype) @ V


def first_rows(chunk: Array) -> Array:
    return np.asarray(chunk[:LOOKED_AT])
