"""Cells grouped into blocks: cut again and again where the fewest rows have neighbours on both sides."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError, eigsh

Array = np.ndarray

# How far a cut may lie off the even one, in blocks, to cut fewer links.
_SLACK = 0.1
# Parts of fewer pieces than this are cut along the direction in which they spread most.
_FEW = 4


def cut_cells(counts: Array, most: int) -> tuple[Array, Array]:
    """Return the first piece and the number of pieces of every cell: none has more than ``most`` rows."""
    n_pieces = np.maximum(1, -(-counts // max(1, most)))
    return np.concatenate([[0], np.cumsum(n_pieces)[:-1]]), n_pieces


def piece_links(links: sp.csr_array, first_piece: Array, n_pieces: Array) -> sp.csr_array:
    """Return the links between pieces of cells, symmetric, without a diagonal.

    Each piece of a cell is linked to one piece or more of every cell that the cell is linked to, and to the next piece
    of its own: rows are dealt to the pieces evenly.
    """
    ends = links.tocoo()
    between = ends.row != ends.col
    rows, cols, weights = ends.row[between], ends.col[between], ends.data[between]
    n_both = np.maximum(n_pieces[rows], n_pieces[cols])
    turn = np.arange(n_both.sum()) - np.repeat(np.cumsum(n_both) - n_both, n_both)
    rows, cols, weights = (np.repeat(A, n_both) for A in (rows, cols, weights / n_both))
    rows, cols = (first_piece[at] + turn % n_pieces[at] for at in (rows, cols))
    n = int(n_pieces.sum())
    cell = np.repeat(np.arange(len(n_pieces)), n_pieces)
    chained = np.flatnonzero(cell[1:] == cell[:-1])
    strength = np.asarray(links.sum(axis=1)).ravel()[cell[chained]] + 1
    rows, cols = np.concatenate([rows, chained]), np.concatenate([cols, chained + 1])
    G = sp.csr_array((np.concatenate([weights, strength]), (rows, cols)), shape=(n, n))
    return sp.csr_array(G + G.T)


def group_pieces(points: Array, weights: Array, links: sp.csr_array, n_blocks: int) -> tuple[Array, Array]:
    """Return the block of every piece, and its place in the order of the blocks; -1 for those without rows.

    Parameters
    ----------
    points : ndarray of shape (n_pieces, p)
        Where the pieces are.
    weights : ndarray of shape (n_pieces,)
        Rows of each.
    links : csr_array of shape (n_pieces, n_pieces)
        How many rows have neighbours there too; symmetric.
    n_blocks : int
        Blocks wanted, of about as many rows each; there are at most as many as pieces with rows.
    """
    block_of, rank = np.full(len(points), -1), np.full(len(points), -1)
    filled = np.flatnonzero(weights > 0)
    todo, n_ranked = [(filled, 0, min(n_blocks, len(filled)))], 0
    while todo:
        pieces, block, n_parts = todo.pop()
        if n_parts == 1:
            pieces = pieces[np.argsort(_along_spread(points[pieces], weights[pieces]), kind="stable")]
            block_of[pieces] = block
            rank[pieces] = np.arange(n_ranked, n_ranked + len(pieces))
            n_ranked += len(pieces)
            continue
        inside = sp.csr_array(links[pieces][:, pieces])
        values = _along_links(inside) if len(pieces) >= _FEW else None
        if values is None:
            values = _along_spread(points[pieces], weights[pieces])
        order = np.argsort(values, kind="stable")
        left = n_parts // 2
        cut = _best_cut(inside, weights[pieces], order, n_parts)
        cut = min(max(cut, left), len(pieces) - (n_parts - left))
        pieces = pieces[order]
        todo += [(pieces[cut:], block + left, n_parts - left), (pieces[:cut], block, left)]
    return block_of, rank


def _best_cut(links: sp.csr_array, weights: Array, order: Array, n_parts: int) -> int:
    """Return how many pieces of an order come before the cut of fewest links, among those that are about even."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    ends = links.tocoo()
    first, last = (pick(place[ends.row], place[ends.col]) for pick in (np.minimum, np.maximum))
    n = len(order)
    opened, closed = (np.bincount(at, ends.data, minlength=n) for at in (first, last))
    crossing = np.cumsum(opened - closed)  # links between the pieces up to here and those after
    off = np.abs(np.cumsum(weights[order]) / weights.sum() - (n_parts // 2) / n_parts)
    crossing = np.where(off <= max(_SLACK / n_parts, off[:-1].min()), crossing, np.inf)
    return int(np.argmin(crossing[:-1])) + 1


def _along_links(links: sp.csr_array) -> Array | None:
    """Return the second eigenvector of random walks along the links; None where it is not found."""
    degree = np.asarray(links.sum(axis=1)).ravel()
    scale = 1 / np.sqrt(np.where(degree > 0, degree, 1.0))
    walk = sp.dia_array((scale[None], [0]), shape=links.shape)
    walk = sp.csr_array(walk @ links @ walk)
    start = np.random.default_rng(0).standard_normal(len(degree))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values, vectors = eigsh(walk, k=2, which="LA", v0=start, tol=1e-4)
    except ArpackError:
        return None
    return vectors[:, np.argmin(values)] * scale


def _along_spread(points: Array, weights: Array) -> Array:
    """Return the places of points along the direction in which they spread most."""
    centred = points - np.average(points, axis=0, weights=weights)
    return points @ np.linalg.svd(centred * np.sqrt(weights[:, None]), full_matrices=False)[2][0]
