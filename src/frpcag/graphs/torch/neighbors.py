"""Nearest neighbours of tensors on their own device: blocked brute force, and inverted lists for millions of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from math import floor, log2, sqrt

import torch
from sklearn.utils import check_random_state
from torch import Tensor

from frpcag.graphs.metric import EUCLIDEAN, Metric
from frpcag.graphs.neighbors import SMALL
from frpcag.graphs.robust_candidates import MOST_ROUNDS, SETTLED, count_candidates, frequencies, map_width
from frpcag.graphs.torch.smallest import GROUP, smallest

Neighbors = tuple[Tensor, Tensor]

# Entries of a block of scores or differences: a quarter of a GB in float32.
BLOCK = 1 << 26
# Brute force up to this many n^2 (p + 64): about a second on a large GPU; on a CPU as `choose_search` has it.
_EXACT_WORK = {"cuda": 3e13, "cpu": 2e11}
# Absolute differences take no matrix product: as many times the work.
_ABSOLUTE_COST = 5
# Rows of a block of differences with all others.
_FEW_ROWS = 64
# From this many rows on scores are first taken in float16, on tensor cores.
_COARSE_ROWS = 8192
_COARSE_EXTRA = 22
# Blocks of them at a time: nothing but the products is of their size, and each launch costs the host time.
_COARSE_BLOCKS = 3
# Two numbers rounded to 11 bits: their product is off by 2^-10 of itself; twice that for the sums in float32.
_COARSE_ERROR = 2.0**-9
# As in `frpcag.graphs.neighbors`, but a list looks at the lists nearest to its own centroid: all its points share one
# matrix product. What it misses, the neighbours of the neighbours bring in.
_N_PROBES = 48
_MAX_DIMENSION = 128
_SAMPLE = 4096
_ROUNDS = 8


@dataclass(frozen=True)
class Points:
    """Centred points in float32, scaled by a power of two (``unit``); missing entries are 0 and not ``seen``."""

    Z: Tensor
    unit: float
    seen: Tensor | None
    cut: float | None = None  # most a feature adds to a sum of absolute differences; None for Euclidean distances

    @property
    def half_squares(self) -> Tensor:
        """Half the squared length of every point."""
        return self.Z.square().sum(dim=1) / 2


def choose_search(n: int, p: int, device: torch.device, *, method: str = "auto", metric: Metric = EUCLIDEAN) -> str:
    """Return what `frpcag.graphs.neighbors.choose_search` does, "auto" by what takes about a second on the device."""
    if method != "auto":
        return "exact" if n <= SMALL else method
    most = _EXACT_WORK.get(device.type, 2e11) / (1 if metric.euclidean else _ABSOLUTE_COST)
    return "exact" if n * n * (p + 64) <= most else "approximate"


def prepare_points(X: Tensor, metric: Metric = EUCLIDEAN) -> Points:
    """Return the rows of ``X``, centred and scaled: of a common offset of 1e6 float32 leaves one digit."""
    if metric.rows is not None:
        X = metric.rows(X.double(), torch)
    missing = torch.isnan(X)
    seen = ~missing if bool(missing.any()) else None
    if seen is None:
        mean = X.mean(dim=0, dtype=torch.float64)
    else:
        mean = torch.nansum(X, dim=0, dtype=torch.float64) / seen.sum(dim=0).clamp(min=1)
    Z = X - mean.to(X.dtype)
    Z = Z if seen is None else Z.nan_to_num_(nan=0.0)
    largest = float(Z.abs().max())
    unit = 2.0 ** floor(log2(largest)) if largest > 0 else 1.0
    return Points((Z / unit).float(), unit, seen, None if metric.euclidean else metric.cut / unit)


def exact_neighbors(X: Tensor, n_neighbors: int, *, metric: Metric = EUCLIDEAN) -> Neighbors:
    """Return the nearest neighbours of every row by brute force, ``O(n^2 p)``.

    Parameters
    ----------
    X : tensor of shape (n, p)
        Finite real numbers; NaN is missing, see `frpcag.graphs.shared_entries`.
    n_neighbors : int
        Less than ``n``.
    metric : Metric, default=EUCLIDEAN
        See `frpcag.graphs.metric`.

    Returns
    -------
    indices : int64 tensor of shape (n, n_neighbors)
        Neighbours of each row, never the row itself, sorted by distance, then by index.
    distances : float64 tensor of shape (n, n_neighbors)
        With the accuracy of float32.

    Notes
    -----
    Many rows on a GPU are first compared in float16 on tensor cores; some more candidates than are kept are then
    ranked by their differences in float32. A row of which the rounding of float16 could have hidden a neighbour is
    searched again in float32, so the result does not depend on it.

    Examples
    --------
    >>> import torch
    >>> from frpcag.graphs.torch.neighbors import exact_neighbors
    >>> indices, distances = exact_neighbors(torch.tensor([[0.0], [1.0], [3.0]]), 1)
    >>> indices[:, 0].tolist(), distances[:, 0].tolist()
    ([1, 0, 1], [1.0, 1.0, 2.0])
    """
    points = prepare_points(X, metric)
    n, k = len(points.Z), n_neighbors
    everyone = torch.arange(n, device=X.device)
    half_squares = points.half_squares
    if points.seen is not None or points.cut is not None or not _coarse_is_faster(points.Z):
        indices, distances = _search(points, half_squares, everyone, k)
        return indices, distances * points.unit
    halves = points.Z.half()
    longest = float(half_squares.max().mul(2).sqrt())
    indices = torch.empty((n, k), dtype=torch.int64, device=X.device)
    distances = torch.empty((n, k), dtype=torch.float64, device=X.device)
    doubtful = []
    count = min(n, k + _COARSE_EXTRA)
    # Eight numbers of four bytes for each entry of the best groups, beside the products.
    for rows in _blocks(everyone, (n + 8 * GROUP * count) // _COARSE_BLOCKS):
        products = torch.mm(halves[rows], halves.T, out_dtype=torch.float32)
        last, candidates = smallest(half_squares, products, count)
        del products  # or it would live beside that of the next rows
        indices[rows], distances[rows] = _rank(points, rows, candidates, k)
        if candidates.shape[1] == n:
            continue
        # Beyond the candidates no true score is below the last coarse one less the error; the k-th is this:
        kth = (distances[rows, -1].square() / 2 - half_squares[rows]).float()
        error = _COARSE_ERROR * longest * (2 * half_squares[rows]).sqrt()
        doubtful.append(rows[kth > last[:, -1] - error])
    again = torch.cat(doubtful) if doubtful else everyone[:0]
    if len(again):
        indices[again], distances[again] = _search(points, half_squares, again, k)
    return indices, distances * points.unit


def _coarse_is_faster(Z: Tensor) -> bool:
    try:
        version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    except ValueError:
        return False
    return Z.is_cuda and len(Z) >= _COARSE_ROWS and version >= (2, 8)  # torch.mm with out_dtype


def _search(points: Points, half_squares: Tensor, rows: Tensor, k: int) -> Neighbors:
    """Return the neighbours of some points among all, by scores in float32."""
    n = len(points.Z)
    # The true neighbours are among somewhat more candidates than are kept: their order is that of rounded scores.
    n_candidates = min(n, k + 9 + k // 2)
    found = []
    for some in _blocks(rows, n if points.seen is None else 3 * n):
        if points.cut is None and points.seen is None:
            candidates = smallest(half_squares, points.Z[some] @ points.Z.T, n_candidates)[1]
        else:
            scores = (_masked_scores if points.cut is None else _absolute_scores)(points, some)
            candidates = torch.topk(scores, n_candidates, largest=False).indices
        found.append(_rank(points, some, candidates, k))
    indices, distances = zip(*found, strict=True)
    return torch.cat(indices), torch.cat(distances)


def _masked_scores(points: Points, rows: Tensor) -> Tensor:
    """Return mean squared differences over the entries both points have, by matrix products alone."""
    assert points.seen is not None
    Z, seen = points.Z, points.seen.float()
    Q, M = Z[rows], seen[rows]
    common = M @ seen.T
    squares = Q.square() @ seen.T + M @ Z.square().T - 2 * (Q @ Z.T)
    return torch.where(common > 0, squares / common, torch.inf)


def _absolute_scores(points: Points, rows: Tensor) -> Tensor:
    """Return sums of bounded absolute differences, means over the entries both points have where some are missing."""
    Z, p = points.Z, points.Z.shape[1]
    scores = Z.new_empty((len(rows), len(Z)))
    everyone = torch.arange(len(Z), device=Z.device)
    for some, out in zip(rows.split(_FEW_ROWS), scores.split(_FEW_ROWS), strict=True):
        for tile in _blocks(everyone, _FEW_ROWS * p):
            at = slice(int(tile[0]), int(tile[-1]) + 1)
            differences = (Z[some, None] - Z[at]).abs_().clamp_(max=points.cut)
            if points.seen is None:
                out[:, at] = differences.sum(dim=2)
                continue
            both = points.seen[some, None] & points.seen[at]
            sums, common = differences.mul_(both).sum(dim=2), both.sum(dim=2)
            out[:, at] = torch.where(common > 0, sums / common.clamp(min=1), torch.inf)
    return scores


def _rank(points: Points, rows: Tensor, candidates: Tensor, k: int, *, fused: bool | None = None) -> Neighbors:
    """Return the ``k`` nearest candidates of each row by the differences themselves, then by index.

    Candidates may repeat; -1 is none. A row itself is no candidate. ``fused`` says whether the kernel for it computes
    the distances, which needs no copy of the candidates; on a GPU, where nothing is missing, by default.
    """
    if fused is None:
        fused = points.Z.is_cuda and points.seen is None and find_spec("triton") is not None
    found = []
    height = max(1, BLOCK // (candidates.shape[1] * (16 if fused else points.Z.shape[1])))
    for start in range(0, len(rows), height):
        some, ids = rows[start : start + height], candidates[start : start + height]
        absent = (ids < 0) | (ids == some[:, None])
        ids = torch.where(absent, some[:, None], ids).sort(dim=1).values
        absent = ids == some[:, None]
        absent[:, 1:] |= ids[:, 1:] == ids[:, :-1]
        lengths = (_fused_lengths if fused else _lengths)(points, some, ids)
        # Behind the infinitely far, which at least are points.
        order = torch.where(absent, torch.nan, lengths).sort(dim=1, stable=True)
        first = order.indices[:, :k]
        found.append((ids.gather(1, first), order.values[:, :k].nan_to_num(nan=torch.inf, posinf=torch.inf)))
    indices, distances = zip(*found, strict=True)
    return torch.cat(indices), torch.cat(distances)


def _fused_lengths(points: Points, rows: Tensor, ids: Tensor) -> Tensor:
    from frpcag.graphs.torch.candidate_lengths import candidate_lengths

    return candidate_lengths(points.Z.contiguous(), rows, ids, points.cut)


def _lengths(points: Points, rows: Tensor, ids: Tensor) -> Tensor:
    """Return the distances of rows to their candidates, over the entries both have where some are missing."""
    p = points.Z.shape[1]
    differences = points.Z[ids].sub_(points.Z[rows, None])
    if points.seen is None:
        return _sizes(differences, points.cut)
    both = points.seen[ids] & points.seen[rows, None]
    common = both.sum(dim=2)
    lengths = _sizes(differences.mul_(both), points.cut)
    scale = p / common.clamp(min=1)  # up to all features
    return torch.where(common > 0, lengths * (scale.sqrt() if points.cut is None else scale), torch.inf)


def _sizes(differences: Tensor, cut: float | None) -> Tensor:
    if cut is None:
        return torch.linalg.vector_norm(differences, dim=2).double()
    return differences.abs_().clamp_(max=cut).sum(dim=2).double()


def approximate_neighbors(X: Tensor, n_neighbors: int, *, metric: Metric = EUCLIDEAN, random_state=None) -> Neighbors:
    """Return most of the nearest neighbours of every row, in ``O(n^1.5)`` distances.

    Inverted lists around k-means centroids give candidates: the points of a list are compared with those of the lists
    nearest to it. Then every point looks at the neighbours of its neighbours. Robust metrics find their candidates in
    the space of `frpcag.graphs.robust_candidates`. Parameters and results are those of `exact_neighbors`;
    ``random_state`` seeds the samples that PCA and centroids are trained on.
    """
    points = prepare_points(X, metric)
    n = len(points.Z)
    # On the host: the same samples on every device.
    rng = check_random_state(random_state)
    shuffled = torch.from_numpy(rng.permutation(n)).to(X.device)
    if points.cut is not None:
        mapped = _robust_map(points, rng)
        n_candidates = count_candidates(n_neighbors, missing=points.seen is not None)
        reduced = mapped @ _directions(mapped[shuffled[:_SAMPLE]])
    elif points.seen is not None:
        reduced, n_candidates = _completed_components(points, shuffled[:_SAMPLE]), 10 * n_neighbors + 9
    elif points.Z.shape[1] > _MAX_DIMENSION:
        reduced, n_candidates = points.Z @ _directions(points.Z[shuffled[:_SAMPLE]]), 4 * n_neighbors + 9
    else:
        reduced, n_candidates = points.Z, n_neighbors + 9
    centroids = _train_centroids(reduced[shuffled[: 32 * int(2 * sqrt(n))]], int(2 * sqrt(n)))
    candidates = _list_candidates(reduced, centroids, min(n, n_candidates))
    everyone = torch.arange(n, device=X.device)
    indices, distances = _rank(points, everyone, candidates, n_neighbors)
    del candidates
    for _ in range(1 if points.cut is None else MOST_ROUNDS):
        known = indices.clone()
        for rows in everyone.split(max(1, BLOCK // (8 * n_neighbors**2))):
            near = known[rows]
            near = torch.cat([near, known[near].flatten(start_dim=1)], dim=1)
            indices[rows], distances[rows] = _rank(points, rows, near, n_neighbors)
        if float((indices != known).double().mean()) < SETTLED:
            break
    lonely = torch.isinf(distances[:, -1]).nonzero()[:, 0]
    if len(lonely):
        indices[lonely], distances[lonely] = _search(points, points.half_squares, lonely, n_neighbors)
    return indices, distances * points.unit


def _robust_map(points: Points, rng) -> Tensor:
    """Return the points in the space of `frpcag.graphs.robust_candidates`, centred."""
    assert points.cut is not None
    width = map_width(points.cut, float(points.Z.abs().mean(dtype=torch.float64)))
    waves = torch.from_numpy(frequencies(points.Z.shape[1], width, rng)).to(points.Z.device)
    angles = points.Z * waves
    mapped = torch.cat([angles.cos(), angles.sin()], dim=1)
    if points.seen is not None:
        mapped *= points.seen.repeat(1, 2)
    return mapped.sub_(mapped.mean(dim=0))


def _directions(sample: Tensor) -> Tensor:
    """Return the principal directions that hold 90 % of the variance, at most 128, as columns."""
    values, vectors = torch.linalg.eigh((sample.T @ sample).double())
    share = values.flip(0).cumsum(0) / values.sum().clamp(min=1e-300)
    d = min(_MAX_DIMENSION, 1 + int((share < 0.9).sum()))
    return vectors.flip(1)[:, :d].float().contiguous()


def _completed_components(points: Points, at: Tensor) -> Tensor:
    """Return principal components of points whose gaps are filled in by those of the others (as in `masked`)."""
    assert points.seen is not None
    sample = points.Z[at]
    for _ in range(_ROUNDS):
        V = _directions(sample)
        sample = torch.where(points.seen[at], points.Z[at], (sample @ V) @ V.T)
    filled = points.Z
    for _ in range(_ROUNDS):
        filled = torch.where(points.seen, points.Z, (filled @ V) @ V.T)
    return filled @ V


def _train_centroids(sample: Tensor, n_lists: int, *, n_steps: int = 10) -> Tensor:
    """Return centroids by k-means on a sample of the points."""
    centroids = sample[:n_lists].clone()
    for _ in range(n_steps):
        assigned = _nearest_centroid(sample, centroids)
        order = assigned.argsort(stable=True)
        sizes = torch.bincount(assigned, minlength=n_lists)
        # Sums over sorted rows instead of scattered ones: the order of the additions is fixed.
        sums = torch.cat([sample.new_zeros((1, sample.shape[1])).double(), sample[order].double().cumsum(dim=0)])
        ends = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        means = (sums[ends[1:]] - sums[ends[:-1]]) / sizes.clamp(min=1)[:, None]
        # A centroid nobody is nearest to (a duplicate of another) stays where it is: its list is empty.
        centroids = torch.where((sizes > 0)[:, None], means.float(), centroids)
    return centroids


def _nearest_centroid(Z: Tensor, centroids: Tensor) -> Tensor:
    half_squares = centroids.square().sum(dim=1) / 2
    rows = torch.arange(len(Z), device=Z.device)
    return torch.cat([(half_squares - Z[some] @ centroids.T).argmin(dim=1) for some in _blocks(rows, len(centroids))])


def _list_candidates(Z: Tensor, centroids: Tensor, n_candidates: int) -> Tensor:
    """Return the nearest points of the lists around each point's own; -1 where they held too few."""
    n = len(Z)
    assigned = _nearest_centroid(Z, centroids)
    order = assigned.argsort(stable=True)
    sizes = torch.bincount(assigned, minlength=len(centroids))
    # Points that coincide share a list however many they are: cut up lists of over 8 times the mean size.
    n_pieces = (-(-sizes // (1 + 8 * n // len(centroids)))).clamp(min=1)
    piece_of = torch.repeat_interleave(torch.arange(len(sizes), device=Z.device), n_pieces)
    number = torch.arange(len(piece_of), device=Z.device) - (n_pieces.cumsum(0) - n_pieces)[piece_of]
    starts = (sizes.cumsum(0) - sizes)[piece_of] + number * sizes[piece_of] // n_pieces[piece_of]
    starts = torch.cat([starts, starts.new_tensor([n])])
    centroids = centroids[piece_of]
    filled = (starts.diff() > 0).nonzero()[:, 0]
    centroids, bounds = centroids[filled], torch.stack([starts[filled], starts[filled + 1]], dim=1)
    scores = centroids.square().sum(dim=1) / 2 - centroids @ centroids.T
    probes = scores.topk(min(_N_PROBES, len(centroids)), largest=False).indices.sort(dim=1).values.tolist()
    bounds, lists = bounds.tolist(), Z[order]
    half_squares = lists.square().sum(dim=1) / 2
    found = torch.full((n, n_candidates), -1, dtype=torch.int64, device=Z.device)
    for (start, stop), looked_at in zip(bounds, probes, strict=True):
        ranges = [slice(*bounds[i]) for i in looked_at]
        members = torch.cat([lists[r] for r in ranges])
        lengths = torch.cat([half_squares[r] for r in ranges])
        ids = torch.cat([order[r] for r in ranges])
        k = min(n_candidates, len(members))
        height = max(1, BLOCK // len(members))
        for first in range(start, stop, height):
            queries = slice(first, min(first + height, stop))
            near = smallest(lengths, lists[queries] @ members.T, k)[1]
            found[order[queries], :k] = ids[near]
    return found


def _blocks(rows: Tensor, width: int) -> Iterator[Tensor]:
    """Yield pieces of ``rows`` such that a matrix of piece by ``width`` stays within bounds."""
    yield from rows.split(max(1, BLOCK // max(width, 1)))
