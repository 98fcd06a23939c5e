"""What judges cells of new rows: predictors, mixture, overwriting values; and the rows that it was learnt from."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from frpcag.cells.columns import ColumnPredictor
from frpcag.cells.low_rank import LowRankPredictor
from frpcag.cells.mixture import Mixture
from frpcag.cells.occluders import Occluder
from frpcag.cells.predictors import GraphPredictor, Prediction, ReferencePredictor, mixed
from frpcag.cells.repeats import Repeat
from frpcag.cells.units import Units

Array = np.ndarray

Overwriter = Repeat | Occluder
PREDICTORS = ("graph", "low_rank", "columns")
_HALF = 16
KEY_BYTES = 2 * _HALF


def overwritten_cells(
    repeats: Sequence[Overwriter], W2: sp.csr_array | None, given: Array, observed: Array, predicted: Array
) -> tuple[Array, Array]:
    """Return the probability of each cell that a value overwrote it, and where any of the values stands."""
    post, repeated = np.zeros(given.shape, np.float32), np.zeros(given.shape, bool)
    for one in repeats:
        repeated |= (given == one.value) & observed
        post = np.maximum(post, one.posterior(given, observed, W2, predicted))
    return post, repeated


@dataclass
class CellModel:
    """Predict and judge cells, in common units.

    Parameters
    ----------
    units : Units
    W2 : sparse array or None
        The grid behind a row.
    weights : ndarray of shape (n_predictors,)
        Of the predictors that take part.
    graph, low_rank, columns : predictor or None
        None where it takes no part.
    mixture : Mixture
        Of right and wrong deviations.
    repeats : list of Repeat or Occluder
        Values that overwrote cells.
    scattered : bool
        Whether cells that deviate are wrong.
    damage : ndarray of shape (2, n_features)
        Share of the deviations of each column, down and up, that is damage.
    """

    units: Units
    W2: sp.csr_array | None
    weights: Array
    graph: GraphPredictor | ReferencePredictor | None
    low_rank: LowRankPredictor | None
    columns: ColumnPredictor | None
    mixture: Mixture
    repeats: list[Overwriter]
    scattered: bool
    damage: Array

    def predict(self, rows: Array, observed: Array) -> Prediction:
        """Predict every cell of some rows from the observed ones."""
        used = (getattr(self, name) for name in PREDICTORS)
        return mixed([one.predict(rows, observed) for one in used if one is not None], self.weights)

    def posterior(self, X: Array, given: Array, observed: Array, P: Prediction) -> Array:
        """Return the probability that cells of some rows are wrong."""
        post, repeated = overwritten_cells(self.repeats, self.W2, given, observed, self.units.restore(P.values))
        if self.scattered:
            R = X - P.values
            cells = self.mixture.posterior(R, P.spread) * np.where(R < 0, *self.damage)
            post = np.maximum(post, np.where(observed & ~repeated, cells, 0))
        return post


@dataclass
class CellRules:
    """Judge cells of new rows by what was learnt, and know the training rows again.

    Parameters
    ----------
    columns : ndarray of shape (n_features,)
        The order in which the model has the columns.
    model : CellModel or None
        None where there was too little to learn from.
    medians : ndarray of shape (n_features,)
        Of the columns; they fill in missing cells where nothing was learnt.
    keys : uint8 ndarray of shape (n_samples, 32)
        One for each row of the training data.
    """

    columns: Array
    model: CellModel | None
    medians: Array
    keys: Array

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
        model = self.model
        if model is None:
            return np.zeros(X.shape, np.float32), np.broadcast_to(self.medians, X.shape)
        X, observed, back = X[:, self.columns], observed[:, self.columns], np.argsort(self.columns)
        Z, given = model.units.apply(X), np.where(observed, X, 0)
        P = model.predict(Z, observed)
        post = model.posterior(Z, given, observed, P)
        if (post > 0.5).any():
            P = model.predict(Z, observed & ~(post > 0.5))
            post = model.posterior(Z, given, observed, P)
        return post[:, back], model.units.restore(P.values)[:, back]


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
