"""What a cleaner keeps of its fit to judge new rows: units, predictors, mixture, overwriting values, known rows."""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from frpcag.cells.rounds import CellRounds
from frpcag.cells.units import Units

Array = np.ndarray

# What the rounds need to predict and judge other rows.
LEARNT = (
    *("W2", "choice", "columns_", "damage", "graph_", "low_rank_", "mixture", "n_jobs", "repeats", "scattered"),
    "units",
)
# Of a predictor, what only its own rows needed.
_OWN_ROWS = {"graph_": ("U_",), "low_rank_": ("A_",), "columns_": ()}
_HALF = 16
KEY_BYTES = 2 * _HALF


@dataclass
class CellRules:
    """Judge cells of new rows by what was learnt.

    Parameters
    ----------
    columns : ndarray of shape (n_features,)
        The order in which units and rounds have the columns.
    units : Units
        Common units of the columns.
    rounds : CellRounds or None
        What the rounds learnt; None where there was too little to learn from.
    medians : ndarray of shape (n_features,)
        Of the columns; they fill in missing cells where nothing was learnt.
    keys : uint8 ndarray of shape (n_samples, 32)
        One for each row of the training data, to know it again.
    """

    columns: Array
    units: Units
    rounds: CellRounds | None
    medians: Array
    keys: Array

    @classmethod
    def of_fit(cls, X: Array, columns: Array, units: Units, rounds: CellRounds | None, medians: Array) -> CellRules:
        """Return the rules that a fit to ``X`` has found; nothing of the size of the data is kept but clean rows."""
        return cls(columns, units, None if rounds is None else _slim(rounds), medians, row_keys(X))

    def known(self, X: Array) -> Array:
        """Return the number of each row in the training data, -1 for new ones."""
        return np.array([self._places.get(key[:_HALF].tobytes(), -1) for key in row_keys(X)], dtype=np.intp)

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {
            key.tobytes(): number
            for half in (1, 0)
            for number, key in enumerate(self.keys.reshape(-1, 2, _HALF)[:, half])
        }

    def judge(self, X: Array, observed: Array) -> tuple[Array, Array]:
        """Return probabilities and predictions of rows; a second look leaves out what the first one flagged."""
        rounds = self.rounds
        if rounds is None:
            return np.zeros(X.shape, np.float32), np.broadcast_to(self.medians, X.shape)
        X, observed, back = X[:, self.columns], observed[:, self.columns], np.argsort(self.columns)
        Z, given = self.units.apply(X), np.where(observed, X, 0)
        P = rounds.predict_rows(Z, observed)
        post = rounds.posterior(Z, given, observed, P)
        if (post > 0.5).any():
            P = rounds.predict_rows(Z, observed & ~(post > 0.5))
            post = rounds.posterior(Z, given, observed, P)
        return post[:, back], self.units.restore(P.values)[:, back]


def row_keys(X: Array) -> Array:
    """Return 16 bytes that tell each row from others, and 16 of its copy in float32; all NaN and zeros are alike."""
    keys = np.empty((len(X), KEY_BYTES), np.uint8)
    for key, row in zip(keys, X, strict=True):
        with np.errstate(over="ignore"):
            copies = row.astype(np.float64), row.astype(np.float32).astype(np.float64)
        plain = (np.where(np.isnan(copy), np.nan, copy) + 0.0 for copy in copies)
        digests = (hashlib.blake2b(copy.tobytes(), digest_size=_HALF).digest() for copy in plain)
        key[:] = np.frombuffer(b"".join(digests), np.uint8)
    return keys


def _slim(rounds: CellRounds) -> CellRounds:
    """Return rounds that can judge new rows and hold nothing else."""
    slim = object.__new__(CellRounds)
    for name in LEARNT:
        value = getattr(rounds, name)
        if name in _OWN_ROWS:
            value = copy.copy(value)
            for own in _OWN_ROWS[name]:
                vars(value).pop(own, None)
        setattr(slim, name, value)
    # New rows are linked to the reference rows; the graph of these is asked for its number of folds only.
    slim.graph_.W1 = [None] * len(slim.graph_.folds)
    slim.graph_.terms = {}
    slim.low_rank_.start = None
    return slim
