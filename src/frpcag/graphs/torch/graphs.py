"""Graphs of tensors, built on their own device: neighbours, weights, Laplacian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from frpcag.graphs.build import SEARCHES, GraphOptions, graph_of
from frpcag.graphs.checks import check_graph_size, check_n_neighbors
from frpcag.graphs.graph import Graph
from frpcag.graphs.index import Index
from frpcag.graphs.laplacian import check_laplacian, diagonal_entries, edge_entries, null_vector
from frpcag.graphs.metric import find_metric
from frpcag.graphs.weights import WEIGHT_FLOOR
from frpcag.linalg.torch_sparse import TorchCSR


@dataclass(frozen=True, eq=False, repr=False)
class TensorGraph:
    """A `Graph` whose matrices lie on a device; ``to_host`` gives the graph itself."""

    weights: TorchCSR
    laplacian: TorchCSR
    sigma: float | None
    method: str
    normalized: bool
    metric: str | None = None

    @classmethod
    def of(cls, graph: Graph, device: torch.device) -> TensorGraph:
        """Return a graph, copied to the device."""
        weights, laplacian = (TorchCSR.of(A, device) for A in (graph.weights, graph.laplacian))
        return cls(weights, laplacian, graph.sigma, graph.method, graph.normalized, graph.metric)

    def to_host(self) -> Graph:
        """Return the graph with SciPy's matrices."""
        weights, laplacian = self.weights.to_scipy(), self.laplacian.to_scipy()
        return Graph(weights, laplacian, self.sigma, self.method, self.normalized, self.metric)

    def to_scipy(self) -> sp.csr_array:
        """Return the weights as a SciPy array on the host."""
        return self.weights.to_scipy()

    def to_networkx(self) -> Any:
        """Return what `Graph.to_networkx` does."""
        return self.to_host().to_networkx()

    @property
    def lmax(self) -> float:
        """An upper estimate of the largest eigenvalue of the Laplacian, a percent or so above it."""
        return self.laplacian.lmax

    @property
    def null_vector(self) -> Tensor:
        """A positive vector that the Laplacian maps to zero: the square root of the degree, or ones."""
        return null_vector(self.weights.sum_rows(self.weights.val), normalized=self.normalized)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.weights.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges, each counted once."""
        return self.weights.nnz // 2

    def edges_kept_by(self, other: TensorGraph) -> float:
        """Return the share of the edges that ``other``, a graph of the same nodes, has too; 1 without edges."""
        mine, theirs = (A.rows * A.shape[0] + A.idx for A in (self.weights, other.weights))
        return float(torch.isin(mine, theirs).double().mean()) if len(mine) else 1.0

    def __repr__(self) -> str:
        sigma = "None" if self.sigma is None else f"{self.sigma:.4g}"
        return f"TensorGraph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, method={self.method!r}, sigma={sigma})"


def build_tensor_graph(X: Tensor, method: Any, options: GraphOptions) -> TensorGraph:
    """Return the graph that `build_graph` describes, with its matrices on the device of ``X``.

    "auto", "exact" and "approximate" searches run on the device; anything else is built on the host and copied.
    """
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s) but must have 2 (samples, features); reshape it.")
    n_nodes = X.shape[options.axis]
    if isinstance(method, TensorGraph):
        check_graph_size(method, n_nodes, axis=options.axis, argument=options.argument)
        return method
    if not (isinstance(method, str) and method in SEARCHES):
        return TensorGraph.of(graph_of(X.cpu().numpy(), method, options), X.device)
    check_n_neighbors(options.n_neighbors, n_nodes, axis=options.axis)
    points = X if options.axis == 0 else X.T.contiguous()
    metric = find_metric(options.metric, points, n_jobs=options.n_jobs)
    index = Index(points, metric, method=method, random_state=options.random_state)
    indices, distances = index.build(int(options.n_neighbors))
    # A row of the list for each edge: points that share no observed entry have none.
    nodes, column = torch.isfinite(distances).nonzero(as_tuple=True)
    ends, distances = indices[nodes, column], distances[nodes, column]
    sigma: float | None = None
    if options.weights == "binary":
        weights = torch.ones_like(distances)
    else:
        sigma = float(distances.mean().nan_to_num()) if options.sigma == "auto" else float(options.sigma)
        weights = (-(distances / sigma).square()).exp().clamp(min=WEIGHT_FLOOR) if sigma else torch.ones_like(distances)
    A = _symmetric(nodes, ends, weights, n_nodes)
    normalized = check_laplacian(options.laplacian)
    return TensorGraph(A, _laplacian(A, normalized=normalized), sigma, index.method, normalized, metric.name)


def _symmetric(nodes: Tensor, ends: Tensor, weights: Tensor, n: int) -> TorchCSR:
    """Return ``(A + A') / 2`` of the edges from nodes to their neighbours."""
    places, order = torch.cat([nodes * n + ends, ends * n + nodes]).sort(stable=True)
    w = weights.repeat(2)[order]
    # A place occurs once, or twice side by side where the two nodes found each other.
    first = torch.ones_like(places, dtype=torch.bool)
    first[1:] = places[1:] != places[:-1]
    w = (w + torch.where(first.roll(-1), 0.0, w.roll(-1))) * 0.5
    return _csr(places[first], w[first], n)


def _laplacian(A: TorchCSR, *, normalized: bool) -> TorchCSR:
    """Return what `frpcag.graphs.build_laplacian` does."""
    n = A.shape[0]
    degree = A.sum_rows(A.val)
    off_diagonal = edge_entries(A.val, degree[A.rows], degree[A.idx], normalized=normalized)
    diagonal = diagonal_entries(degree, normalized=normalized)
    nodes = torch.arange(n, device=degree.device)
    places, order = torch.cat([A.rows * n + A.idx, nodes * n + nodes]).sort()
    return _csr(places, torch.cat([off_diagonal, diagonal])[order], n)


def _csr(places: Tensor, values: Tensor, n: int) -> TorchCSR:
    """Return the matrix with these values at sorted places ``row * n + column``."""
    ptr = torch.searchsorted(places, torch.arange(n + 1, device=places.device) * n)
    return TorchCSR(ptr, (places % n).int(), values)
