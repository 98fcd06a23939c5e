"""The stages of a fit on NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from frpcag.data.preprocess import CentredRows, center_and_scale, validate_matrix
from frpcag.engines.arrays import ArrayEngine
from frpcag.engines.base import Centred, Factors
from frpcag.engines.gammas import scale_free_gamma
from frpcag.engines.memory import require_memory_for
from frpcag.linalg.factorize import check_n_components, gram_svd
from frpcag.runtime.arrays import row_blocks
from frpcag.runtime.threads import block_pool

Array = np.ndarray


class HostEngine(ArrayEngine):
    """NumPy arrays, SciPy sparse matrices and frames; the results are NumPy arrays."""

    def check(self, X: Any) -> Any:
        """Return ``X`` as a float array or CSR matrix."""
        require_memory_for(X, self.model)
        X = validate_matrix(self.model, X, reset=True)
        check_n_components(self.model.n_components, *X.shape)
        self.check_nonnegative(X)
        return X

    def centre(self, X: Any) -> Centred:
        """Return a centred and scaled copy of ``X``."""
        centred = Centred(*center_and_scale(X, center=self.centres, scale=self.model.scale))
        self._rows = CentredRows(X, centred.center, centred.scale)
        return centred

    def data(self, centred: Centred) -> Array:
        """Return all of the centred and scaled data."""
        if centred.Xc is self._rows:
            centred.Xc = self._rows.whole()
        return centred.Xc

    def lend(self, centred: Centred) -> bool:
        """Let go of the centred and scaled data; their rows are made again one block at a time."""
        centred.Xc = self._rows
        return True

    def as_array(self, Xc: Any) -> Array:
        """Return centred data as a NumPy array on the host."""
        return Xc

    def scale_free_gamma(self, Xc: Any, graph: Any, axis: int) -> float:
        """Return the gamma of `frpcag.engines.gammas` along an axis."""
        return scale_free_gamma(graph.laplacian, Xc, axis=axis, loss=self.model.loss)

    def factors(self, U: Array) -> Factors:
        """Return the factors of the clean part about its mean, which is taken off ``U`` in place."""
        # The clean part of centred data is not itself centred: the normalised Laplacian pulls towards sqrt(degree).
        origin = U.mean(axis=0, dtype=np.float64) if self.model.center else np.zeros(U.shape[1])
        U -= origin.astype(U.dtype)
        return Factors(origin, *gram_svd(U, self.model.n_components, random_state=self.model.random_state))

    def large(self, X: Any, low_rank: Array, centred: Centred, factors: Factors) -> tuple[Array, Array, Array]:
        """Return the clean part, the corruptions and the embedding."""
        sparse = np.empty_like(low_rank)

        def subtract(rows: slice) -> None:
            given = X[rows]
            sparse[rows] = (given.toarray() if hasattr(given, "toarray") else given) - low_rank[rows]
            np.nan_to_num(sparse[rows], copy=False, nan=0.0)

        with block_pool(self.model.n_jobs) as run:
            run(subtract, row_blocks(sparse.shape))
        return low_rank, sparse, np.multiply(factors.W, factors.Sigma, out=factors.W)
