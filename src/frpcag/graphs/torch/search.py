"""Neighbours of tensors on their own device: blocked brute force, and inverted lists for millions of rows."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from math import floor, log2, sqrt

import numpy as np
import torch
from torch import Tensor

from frpcag.graphs.inverted_lists import split_long_lists
from frpcag.graphs.metric import EUCLIDEAN, Metric
from frpcag.graphs.points import Points
from frpcag.graphs.sketch import Sketch

Neighbors = tuple[Tensor, Tensor]

# Entries of a block of scores or differences: a quarter of a GB in float32.
BLOCK = 1 << 26
# Rows of a block of differences with all others.
_FEW_ROWS = 64
# From this many rows on scores are first taken in float16, on tensor cores.
_COARSE_ROWS = 8192
_COARSE_EXTRA = 22
# Blocks of them at a time: nothing but the products is of their size, and each launch costs the host time.
_COARSE_BLOCKS = 3
# Two numbers rounded to 11 bits: their product is off by 2^-10 of itself; twice that for the sums in float32.
_COARSE_ERROR = 2.0**-9
# Columns of a group of scores; up to so many groups for each score wanted, ranking all scores is as fast.
GROUP = 32
_FEW_GROUPS = 8
# As in `frpcag.graphs.inverted_lists`, but a list looks at the lists nearest to its own centroid: all its points share
# one matrix product. What it misses, the neighbours of the neighbours bring in.
_N_PROBES = 48


def prepare_tensor(X: Tensor, metric: Metric = EUCLIDEAN) -> Points:
    """Return the rows of ``X``, centred and scaled: of a common offset of 1e6 float32 leaves one digit."""
    if metric.rows is not None:
        X = metric.rows(X.double(), torch)
    missing = torch.isnan(X)
    seen = ~missing if bool(missing.any()) else None
    if seen is None:
        mean = X.mean(dim=0, dtype=torch.float64)
    else:
        mean = torch.nansum(X, dim=0, dtype=torch.float64) / seen.sum(dim=0).clamp(min=1)
    mean = mean.to(X.dtype)
    Z = X - mean
    Z = Z if seen is None else Z.nan_to_num_(nan=0.0)
    # On a GPU a quotient is a product with the reciprocal, which leaves the range where the unit is subnormal.
    unit = 2.0 ** floor(log2(max(float(Z.abs().max()), torch.finfo(Z.dtype).tiny)))
    return Points((Z / unit).float(), 1.0, mean, unit, seen, metric)


class TensorSearch:
    """The points that others are compared with, as tensors; see `frpcag.graphs.search.HostSearch`.

    Many rows on a GPU are first compared in float16 on tensor cores; some more candidates than are kept are then ranked
    by their differences in float32. A row of which the rounding of float16 could have hidden a neighbour is searched
    again in float32, so the result does not depend on it.
    """

    rounds = 1, 3

    def __init__(self, points: Points) -> None:
        self.points = points
        self.half_squares = _half_squares(points.Z)

    def queries(self, rows: Tensor) -> Points:
        """Return other rows in the units of the points."""
        rows = rows if self.points.metric.rows is None else self.points.metric.rows(rows.double(), torch)
        Z = ((rows - self.points.mean) / self.points.spread).clamp(-1e12, 1e12).float()
        missing = torch.isnan(Z)
        seen = ~missing if bool(missing.any()) else None
        return Points(Z if seen is None else Z.nan_to_num_(nan=0.0), seen=seen, metric=self.points.metric)

    def exact(self, queries: Points, k: int, *, skip: Tensor | None = None) -> Neighbors:
        """Return the nearest points of each query by brute force."""
        complete = queries.seen is None and self.points.seen is None and self.points.metric.euclidean
        if complete and queries is self.points and _coarse_is_faster(queries.Z):
            return self._coarse(k)
        n, p = self.points.Z.shape
        # The true neighbours are among somewhat more candidates than are kept: their order is that of rounded scores.
        count, found = min(n, k + 9 + k // 2), []
        for rows in _blocks(len(queries.Z), max(n if complete else 3 * n, 0 if skip is not None else 2 * k * p)):
            some = queries.take(rows)
            if complete:
                candidates = smallest(self.half_squares, some.Z @ self.points.Z.T, count)[1]
            else:
                scores = (_masked_scores if self.points.metric.euclidean else _absolute_scores)(some, self.points)
                candidates = torch.topk(scores, count, largest=False).indices
            found.append(self.among(some, candidates, k, skip=None if skip is None else skip[rows]))
        return _stack(found)

    def _coarse(self, k: int) -> Neighbors:
        points, half_squares, n = self.points, self.half_squares, len(self.points.Z)
        halves, everyone = points.Z.half(), torch.arange(len(points.Z), device=points.Z.device)
        longest = float(half_squares.max().mul(2).sqrt())
        found, doubtful, count = [], [everyone[:0]], min(n, k + _COARSE_EXTRA)
        # Eight numbers of four bytes for each entry of the best groups, beside the products.
        for rows in _blocks(n, (n + 8 * GROUP * count) // _COARSE_BLOCKS):
            products = torch.mm(halves[rows], halves.T, out_dtype=torch.float32)
            last, candidates = smallest(half_squares, products, count)
            del products  # or it would live beside that of the next rows
            found.append(self.among(points.take(rows), candidates, k, skip=everyone[rows]))
            if candidates.shape[1] == n:
                continue
            # Beyond the candidates no true score is below the last coarse one less the error; the k-th is this:
            kth = (found[-1][1][:, -1].square() / 2 - half_squares[rows]).float()
            error = _COARSE_ERROR * longest * (2 * half_squares[rows]).sqrt()
            doubtful.append(everyone[rows][kth > last[:, -1] - error])
        indices, distances = _stack(found)
        for again in torch.cat(doubtful).split(max(1, BLOCK // n)):
            candidates = smallest(half_squares, points.Z[again] @ points.Z.T, min(n, k + 9 + k // 2))[1]
            indices[again], distances[again] = self.among(points.take(again), candidates, k, skip=again)
        return indices, distances

    def among(
        self, queries: Points, candidates: Tensor, k: int, *, skip: Tensor | None = None, fused: bool | None = None
    ) -> Neighbors:
        """Return the ``k`` nearest candidates of each row by the differences themselves, then by index.

        Candidates may repeat; -1 is none. ``fused`` says whether the kernel for it computes the distances, which needs
        no copy of the candidates; on a GPU, where nothing is missing, by default.
        """
        if fused is None:
            complete = queries.seen is None and self.points.seen is None
            fused = queries.Z.is_cuda and complete and find_spec("triton") is not None
        found = []
        for rows in _blocks(len(queries.Z), candidates.shape[1] * (16 if fused else queries.Z.shape[1])):
            some, ids = queries.take(rows), candidates[rows]
            none = torch.full_like(ids[:, :1], -1) if skip is None else skip[rows, None]
            ids = torch.where(ids < 0, none, ids).sort(dim=1).values
            absent = (ids < 0) | (ids == none)
            absent[:, 1:] |= ids[:, 1:] == ids[:, :-1]
            ids = ids.clamp(min=0)
            lengths = self._fused_lengths(some, ids) if fused else self._lengths(some, ids)
            # Behind the infinitely far, which at least are points.
            order = torch.where(absent, torch.nan, lengths).sort(dim=1, stable=True)
            first = order.indices[:, :k]
            found.append((ids.gather(1, first), order.values[:, :k].nan_to_num(nan=torch.inf, posinf=torch.inf)))
        return _stack(found)

    def _fused_lengths(self, queries: Points, ids: Tensor) -> Tensor:
        from frpcag.graphs.torch.triton_kernels import candidate_lengths

        cut = None if self.points.metric.euclidean else self.points.cut
        return candidate_lengths(queries.Z, self.points.Z.contiguous(), ids, cut)

    def _lengths(self, queries: Points, ids: Tensor) -> Tensor:
        """Return the distances of queries to their candidates, over the entries both have where some are missing."""
        points, euclidean = self.points, self.points.metric.euclidean
        differences, both = points.Z[ids].sub_(queries.Z[:, None]), _both(queries, points, ids)
        if both is not None:
            differences.mul_(both)
        if euclidean:
            lengths = torch.linalg.vector_norm(differences, dim=2).double()
        else:
            lengths = differences.abs_().clamp_(max=points.cut).sum(dim=2).double()
        if both is None:
            return lengths
        common = both.sum(dim=2)
        scale = points.Z.shape[1] / common.clamp(min=1)  # up to all features
        return torch.where(common > 0, lengths * (scale.sqrt() if euclidean else scale), torch.inf)

    def wide_blocks(self, k: int) -> Iterator[Tensor]:
        """Return all points in blocks whose neighbours' neighbours fit in memory."""
        everyone = torch.arange(len(self.points.Z), device=self.points.Z.device)
        yield from everyone.split(max(1, BLOCK // (8 * k**2)))

    def refine(self, rows: Tensor, indices: Tensor, distances: Tensor) -> Neighbors:
        """Return the neighbours of some points among those known and their neighbours."""
        near = indices[rows]
        near = torch.cat([near, indices[near].flatten(start_dim=1)], dim=1)
        return self.among(self.points.take(rows), near, distances.shape[1], skip=rows)

    def lists(self, rng: np.random.RandomState) -> tuple[Tensor, Tensor, int]:
        """Return the points in the space of candidates, centroids, and candidates for each neighbour."""
        points, n = self.points, len(self.points.Z)
        sketch, n_lists = Sketch(points, rng), int(2 * sqrt(n))
        some = points.put(rng.permutation(n)[: 32 * n_lists])
        Z = sketch(points)
        return Z, _train_centroids(Z[some], n_lists), sketch.per_neighbor

    def listed(self, lists: tuple[Tensor, Tensor, int], k: int) -> Tensor:
        """Return the nearest points of the lists around each point's own; -1 where they held too few."""
        Z, centroids, per_neighbor = lists
        n, n_candidates = len(Z), min(len(Z), k * per_neighbor + 9)
        assigned = _nearest_centroid(Z, centroids)
        order = assigned.argsort(stable=True)
        sizes = torch.bincount(assigned, minlength=len(centroids))
        starts, centroid = split_long_lists(sizes.cpu().numpy())
        filled = np.diff(starts) > 0
        bounds = list(zip(starts[:-1][filled].tolist(), starts[1:][filled].tolist(), strict=True))
        centroids = centroids[self.points.put(centroid[filled])]
        scores = _half_squares(centroids) - centroids @ centroids.T
        probes = scores.topk(min(_N_PROBES, len(centroids)), largest=False).indices.sort(dim=1).values.tolist()
        lists_of = Z[order]
        half_squares = _half_squares(lists_of)
        found = torch.full((n, n_candidates), -1, dtype=torch.int64, device=Z.device)
        for (start, stop), looked_at in zip(bounds, probes, strict=True):
            ranges = [slice(*bounds[i]) for i in looked_at]
            members, lengths, ids = (torch.cat([A[r] for r in ranges]) for A in (lists_of, half_squares, order))
            k = min(n_candidates, len(members))
            height = max(1, BLOCK // len(members))
            for first in range(start, stop, height):
                queries = slice(first, min(first + height, stop))
                found[order[queries], :k] = ids[smallest(lengths, lists_of[queries] @ members.T, k)[1]]
        return found


def smallest(offsets: Tensor, products: Tensor, count: int, *, grouped: bool | None = None) -> tuple[Tensor, Tensor]:
    """Return the ``count`` smallest of ``offsets - products`` in each row, in ascending order, and their columns.

    The smallest entries lie in the groups of columns with the smallest minima, at most one group for each entry. So
    the minima of the groups are ranked first, then the entries of the best groups.

    Parameters
    ----------
    offsets : float32 tensor of shape (n,)
    products : contiguous float32 tensor of shape (m, n)
    count : int
        At most ``n``.
    grouped : bool, optional
        Whether groups are ranked first; by default for long rows on a GPU.

    Examples
    --------
    >>> import torch
    >>> from frpcag.graphs.torch.search import smallest
    >>> values, columns = smallest(torch.tensor([3.0, 1.0, 2.0]), torch.zeros(1, 3), 2)
    >>> values.tolist(), columns.tolist()
    ([[1.0, 2.0]], [[1, 2]])
    """
    n = products.shape[1]
    if grouped is None:
        grouped = products.is_cuda and n > _FEW_GROUPS * GROUP * count and find_spec("triton") is not None
    if not grouped:
        return torch.topk(offsets - products, count, largest=False)
    from frpcag.graphs.torch.triton_kernels import group_minima

    minima = group_minima(offsets, products, GROUP)
    best = torch.topk(minima, min(count, minima.shape[1]), largest=False, sorted=False).indices
    columns = (best[:, :, None] * GROUP + torch.arange(GROUP, device=best.device)).flatten(start_dim=1)
    inside = columns.clamp(max=n - 1)
    scores = torch.where(columns < n, offsets[inside] - products.gather(1, inside), torch.inf)
    values, at = torch.topk(scores, count, largest=False)
    return values, inside.gather(1, at)


def _train_centroids(sample: Tensor, n_lists: int, *, n_steps: int = 10) -> Tensor:
    """Return centroids by k-means on a sample of the points."""
    centroids = sample[:n_lists].clone()
    for _ in range(n_steps):
        assigned = _nearest_centroid(sample, centroids)
        sizes = torch.bincount(assigned, minlength=n_lists)
        # Sums over sorted rows instead of scattered ones: the order of the additions is fixed.
        sums = torch.cat([sample[:1].double() * 0, sample[assigned.argsort(stable=True)].double().cumsum(dim=0)])
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        means = (sums[ends[1:]] - sums[ends[:-1]]) / sizes.clamp(min=1)[:, None]
        # A centroid nobody is nearest to (a duplicate of another) stays where it is: its list is empty.
        centroids = torch.where((sizes > 0)[:, None], means.float(), centroids)
    return centroids


def _nearest_centroid(Z: Tensor, centroids: Tensor) -> Tensor:
    half_squares, blocks = _half_squares(centroids), _blocks(len(Z), len(centroids))
    return torch.cat([(half_squares - Z[rows] @ centroids.T).argmin(dim=1) for rows in blocks])


def _masked_scores(queries: Points, points: Points) -> Tensor:
    """Return mean squared differences over the entries both points have, by matrix products alone."""
    Q, Z = queries.Z, points.Z
    M, seen = (torch.ones_like(A.Z) if A.seen is None else A.seen.float() for A in (queries, points))
    common = M @ seen.T
    squares = Q.square() @ seen.T + M @ Z.square().T - 2 * (Q @ Z.T)
    return torch.where(common > 0, squares / common, torch.inf)


def _absolute_scores(queries: Points, points: Points) -> Tensor:
    """Return sums of bounded absolute differences, means over the entries both points have where some are missing."""
    n, p = points.Z.shape
    scores = points.Z.new_empty((len(queries.Z), n))
    for start in range(0, len(scores), _FEW_ROWS):
        rows = slice(start, start + _FEW_ROWS)
        some = queries.take(rows)
        for at in _blocks(n, _FEW_ROWS * p):
            differences = (some.Z[:, None] - points.Z[at]).abs_().clamp_(max=points.cut)
            both = _both(some, points, at)
            if both is None:
                scores[rows, at] = differences.sum(dim=2)
                continue
            sums, common = differences.mul_(both).sum(dim=2), both.sum(dim=2)
            scores[rows, at] = torch.where(common > 0, sums / common.clamp(min=1), torch.inf)
    return scores


def _both(queries: Points, points: Points, ids: Tensor | slice) -> Tensor | None:
    """Return which entries queries and some points both have; None for all."""
    if queries.seen is None and points.seen is None:
        return None
    theirs = torch.ones_like(points.Z[:1], dtype=torch.bool) if points.seen is None else points.seen[ids]
    return theirs if queries.seen is None else theirs & queries.seen[:, None]


def _half_squares(Z: Tensor) -> Tensor:
    return Z.square().sum(dim=1) / 2


def _coarse_is_faster(Z: Tensor) -> bool:
    try:
        version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    except ValueError:
        return False
    return Z.is_cuda and len(Z) >= _COARSE_ROWS and version >= (2, 8)  # torch.mm with out_dtype


def _blocks(n: int, width: int) -> list[slice]:
    """Return slices of ``n`` rows such that a matrix of such rows by ``width`` stays within bounds."""
    height = max(1, BLOCK // max(width, 1))
    return [slice(start, start + height) for start in range(0, n, height)]


def _stack(found: list[Neighbors]) -> Neighbors:
    indices, distances = zip(*found, strict=True)
    return torch.cat(indices), torch.cat(distances)
