"""Edges from other rows to the nodes of a fitted graph: what they weigh in its Laplacian."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from frpcag.graphs.graph import Graph
from frpcag.graphs.laplacian import degrees, edge_entries
from frpcag.runtime.arrays import is_tensor


class Links:
    """What links of other rows weigh.

    Parameters
    ----------
    graph : Graph
        Of the fitted rows, on the host.
    """

    def __init__(self, graph: Graph) -> None:
        self.sigma, self.normalized = graph.sigma, graph.normalized
        self._degrees = degrees(graph.weights)

    def of(self, indices: Any, distances: Any, *, joined: bool = False) -> tuple[Any, Any]:
        """Return the diagonal entries of the rows and their edges, the entries off the diagonal without their sign.

        Parameters
        ----------
        indices, distances : ndarray or tensor of shape (m, k)
            Fitted rows near each row.
        joined : bool, default=False
            Whether an edge counts in the degree of its fitted row, too, as if the row were the one to join the graph:
            no fitted row of hardly any degree then counts beyond measure.
        """
        xp = sys.modules["torch"] if is_tensor(distances) else np
        A = xp.ones_like(distances)
        if self.sigma is not None:
            # A corrupted row is far from all others: in its own mean distance it is linked as strongly as any.
            A = xp.exp(-((distances / distances.mean(1)[:, None].clip(max(self.sigma, 1e-300))) ** 2))
        diagonal = A.sum(1)
        if self.normalized:
            known = self._degrees if xp is np else xp.as_tensor(self._degrees, device=distances.device)
            fitted = known[indices] + (A if joined else 0)
            linked = -edge_entries(A, diagonal[:, None], xp.where(fitted > 0, fitted, 1.0), normalized=True)
            A, diagonal = xp.where(fitted > 0, linked, 0.0), xp.ones_like(diagonal)
        return diagonal, A
