"""Both searches and both verbs of an index, as functions."""

from frpcag.graphs import EUCLIDEAN, Index


def exact_neighbors(X, k, *, metric=EUCLIDEAN, **options):
    """Return the neighbours of every row by brute force."""
    return Index(X, metric, method="exact", **options).build(k)


def approximate_neighbors(X, k, *, metric=EUCLIDEAN, **options):
    """Return the neighbours of every row by inverted lists."""
    return Index(X, metric, method="approximate", **options).build(k)


def query_neighbors(X, rows, k, *, metric=EUCLIDEAN, **options):
    """Return the rows of X nearest to others by brute force."""
    return Index(X, metric, method="exact", **options).query(rows, k)
