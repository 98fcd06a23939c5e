"""Facts about cells that one value overwrote."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reproduction.corrupt import block_occlusion

from frpcag.cells.overwritten import find_overwriting, judged_rows, without_overwritten

SHAPE = (12, 12)


def smooth(n=300):
    return np.random.default_rng(2).normal(size=(n, 144)).cumsum(axis=1)


def scattered(X, share=0.3):
    hit = np.random.default_rng(3).random(X.shape) < share
    return np.where(hit, 0.0, X), hit


def patched(X):
    return block_occlusion(X, SHAPE, 0.25, random_state=0)


@pytest.mark.parametrize("damage", [scattered, patched])
def test_overwritten_cells_are_missing_and_others_stay(damage):
    X, hit = damage(smooth())
    cleared = without_overwritten(X, shape=SHAPE)
    assert np.isnan(cleared)[hit].mean() > 0.95
    assert_array_equal(cleared[~np.isnan(cleared)], X[~np.isnan(cleared)])
    assert np.isnan(cleared)[~hit].mean() < 0.01


def test_data_without_repeats_come_back_themselves():
    X = smooth()
    assert without_overwritten(X, shape=SHAPE) is X


@pytest.mark.parametrize("damage", [scattered, patched])
def test_rows_are_judged_alone_once_the_rule_is_found(damage):
    X, _ = damage(smooth())
    rule = find_overwriting(X[judged_rows(len(X))], shape=SHAPE)
    assert_array_equal(rule.applied(X[:50]), rule.applied(X)[:50])


def test_a_row_of_nothing_else_keeps_its_cells():
    X, _ = scattered(smooth())
    X[7] = 0
    assert_array_equal(without_overwritten(X, shape=SHAPE)[7], X[7])


def test_a_column_of_nothing_else_keeps_its_cells():
    X, _ = scattered(smooth())
    X[:, 30] = 0
    assert not np.isnan(without_overwritten(X, shape=SHAPE)[:, 30]).any()


def test_zeros_of_rectified_features_are_no_overwriting():
    rng = np.random.default_rng(0)
    y, A = rng.integers(0, 4, 500), rng.normal(size=(10, 60))
    inner = rng.normal(size=(4, 10))[y] @ A / 3 + 0.8 * rng.normal(size=(500, 10)) @ rng.normal(size=(10, 60)) / 3
    X = np.maximum(0, inner)
    assert without_overwritten(X) is X
