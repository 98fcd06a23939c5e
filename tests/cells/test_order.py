"""The order that a table has of its own, whatever order, units and signs it comes in."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frpcag.cells.order import canonical_order


def tables(kind, seed, n):
    """Return a table of some kind, in which every row and column is told apart by something."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(2.0, size=(n, 4))
    if kind == "ties":
        X = np.round(np.hstack([X, rng.gamma(2.0, size=(n, 4))]), 1)
    elif kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "in step":  # rows at the same distance from the middle have the same ranks
        X = np.exp(np.sort(X[:, :1], axis=0) * [0.5, 1.0, -2.0])
    return X


@pytest.mark.parametrize("kind", ["plain", "ties", "missing", "in step"])
@given(seed=st.integers(0, 10**6), n=st.integers(9, 40), data=st.data())
def test_the_order_is_the_same_in_every_arrangement_unit_and_sign(kind, seed, n, data):
    X = tables(kind, seed, n)
    p = X.shape[1]
    rows, columns = data.draw(st.permutations(range(n))), data.draw(st.permutations(range(p)))
    units = data.draw(st.lists(st.sampled_from([1.0, -1.0, 0.1, -7.3, 1e200, -1e-200]), min_size=p, max_size=p))
    first, second = canonical_order(X), canonical_order((X * units)[np.ix_(rows, columns)])
    seen = X[np.ix_(rows, columns)][np.ix_(*second)]
    np.testing.assert_array_equal(seen, X[np.ix_(*first)])


def test_rows_of_the_same_ranks_in_other_columns_are_told_apart():
    X = np.random.default_rng(404).gamma(2.0, size=(35, 4))
    swapped = np.arange(35)
    swapped[[7, 26]] = 26, 7  # their ranks are the same, in other columns
    (rows, columns), (others, more) = canonical_order(X), canonical_order(X[swapped])
    np.testing.assert_array_equal(X[swapped][np.ix_(others, more)], X[np.ix_(rows, columns)])


def test_two_kinds_of_a_binary_column_are_told_apart_by_how_many_there_are():
    X = np.array([[0.0], [1.0], [0.0], [0.0]])
    assert canonical_order(X)[0][0] == canonical_order(-X)[0][0] != canonical_order(X[::-1])[0][0]
