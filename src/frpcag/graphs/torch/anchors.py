"""Fixed rows that others are linked to, as tensors on one device; see `frpcag.graphs.anchors` for arrays."""

from __future__ import annotations

import torch
from torch import Tensor

from frpcag.graphs.graph import Graph
from frpcag.graphs.laplacian import degrees, edge_entries
from frpcag.graphs.metric import Metric
from frpcag.graphs.torch.neighbors import BLOCK, Neighbors
from frpcag.graphs.torch.smallest import smallest


class TensorAnchors:
    """Fixed complete rows, and the search for those nearest to other rows, by brute force.

    Parameters
    ----------
    X : tensor of shape (n, p)
    metric : Metric
    """

    def __init__(self, X: Tensor, *, metric: Metric) -> None:
        self._rows = metric.rows
        X = self._mapped(X)
        self.mean = X.mean(dim=0, dtype=torch.float64)
        centred = X - self.mean
        self.unit = float(centred.abs().max()) or 1.0
        self.Z = (centred / self.unit).float()
        self.half_squares = self.Z.square().sum(dim=1) / 2
        self.cut = None if metric.euclidean else metric.cut / self.unit

    def nearest(self, rows: Tensor, n_neighbors: int) -> Neighbors:
        """Return the anchors nearest to each row, sorted by distance, and how far they are.

        Euclidean distances are of complete rows; others are taken over what is observed, scaled up to all features.
        """
        Q = ((self._mapped(rows) - self.mean) / self.unit).clamp(-1e12, 1e12).float()
        step = max(1, BLOCK // max(len(self.Z), 2 * n_neighbors * self.Z.shape[1]))
        found = [self._nearest(some, n_neighbors) for some in Q.split(step)]
        indices, distances = (torch.cat(parts) for parts in zip(*found, strict=True))
        return indices, distances * self.unit

    def _mapped(self, rows: Tensor) -> Tensor:
        return rows if self._rows is None else self._rows(rows.double(), torch)

    def _nearest(self, Q: Tensor, k: int) -> Neighbors:
        # True neighbours are among somewhat more candidates than are kept: their order is that of rounded scores.
        count = min(len(self.Z), k + 9 + k // 2)
        if self.cut is None:
            ids = smallest(self.half_squares, Q @ self.Z.T, count)[1]
        else:
            ids = torch.topk(self._absolute(Q), count, largest=False).indices
        ids = ids.sort(dim=1).values
        differences = (self.Z[ids] - Q[:, None]).double()
        if self.cut is None:
            lengths = torch.linalg.vector_norm(differences, dim=2)
        else:
            seen = ~torch.isnan(Q)
            share = Q.shape[1] / seen.sum(dim=1).clamp(min=1)
            lengths = differences.abs().clamp(max=self.cut).nan_to_num(nan=0.0).sum(dim=2) * share[:, None]
        order = lengths.sort(dim=1, stable=True)
        return ids.gather(1, order.indices[:, :k]), order.values[:, :k]

    def _absolute(self, Q: Tensor) -> Tensor:
        """Return the sums of bounded differences from all anchors; what is missing adds nothing anywhere."""
        scores = Q.new_empty((len(Q), len(self.Z)))
        width = max(1, BLOCK // (Q.shape[1] * min(len(Q), 64)))
        for some, out in zip(Q.split(64), scores.split(64), strict=True):
            for start in range(0, len(self.Z), width):
                differences = some[:, None] - self.Z[start : start + width]
                out[:, start : start + width] = differences.abs_().clamp_(max=self.cut).nan_to_num_(nan=0.0).sum(dim=2)
        return scores


class TensorLinks:
    """Edges from other rows to the nodes of a fitted graph: what they weigh in its Laplacian.

    Parameters
    ----------
    graph : Graph
        Of the anchors, on the host.
    device : torch.device
    """

    def __init__(self, graph: Graph, device: torch.device) -> None:
        self.sigma, self.normalized = graph.sigma, graph.normalized
        self.degrees = torch.as_tensor(degrees(graph.weights), device=device)

    def of(self, indices: Tensor, distances: Tensor) -> tuple[Tensor, Tensor]:
        """Return the diagonal entries of the rows and the weights of their links (m, k), each joined on its own."""
        A = torch.ones_like(distances)
        if self.sigma is not None:
            unit = distances.mean(dim=1, keepdim=True).clamp(min=max(self.sigma, 1e-300))
            A = torch.exp(-torch.square(distances / unit))
        diagonal = A.sum(dim=1)
        if self.normalized:
            fitted = self.degrees[indices] + A
            linked = -edge_entries(A, diagonal[:, None], torch.where(fitted > 0, fitted, 1.0), normalized=True)
            A, diagonal = torch.where(fitted > 0, linked, 0.0), torch.ones_like(diagonal)
        return diagonal, A
