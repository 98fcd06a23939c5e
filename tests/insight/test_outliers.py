"""Shares of outlying entries by sample and by feature."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frpcag import FRPCAG
from frpcag.data import make_low_rank_on_graphs
from frpcag.insight import outlier_shares, outliers


@pytest.fixture
def sparse_part():
    rng = np.random.default_rng(0)
    S = 0.01 * rng.normal(size=(50, 30))
    S[rng.random(S.shape) < 0.05] = -4.0
    return S


def test_shares_are_those_of_the_dense_comparison(sparse_part):
    out = np.abs(sparse_part) > 6 * np.abs(sparse_part).mean()
    shares = outlier_shares(sparse_part)
    assert_allclose(shares.threshold, 6 * np.abs(sparse_part).mean())
    assert_allclose(shares.share, out.mean())
    assert_allclose(shares.samples, out.mean(axis=1))
    assert_allclose(shares.features, out.mean(axis=0))


def test_shares_do_not_depend_on_the_blocks(sparse_part, monkeypatch):
    whole = outlier_shares(sparse_part)
    monkeypatch.setattr(outliers, "_BLOCK", 100)
    parts = outlier_shares(sparse_part)
    assert_array_equal(parts.samples, whole.samples)
    assert_allclose(parts.features, whole.features)


def test_a_threshold_is_taken_as_given(sparse_part):
    assert outlier_shares(sparse_part, threshold=5.0).share == 0
    assert outlier_shares(sparse_part, threshold=0.0).share == 1


def test_bad_samples_and_bad_sensors_come_first():
    X, _, _ = make_low_rank_on_graphs(80, 40, outliers=0.0, random_state=0)
    rng = np.random.default_rng(0)
    X[7, rng.permutation(40)[:20]] += 9
    X[rng.permutation(80)[:40], 31] -= 9
    shares = outlier_shares(FRPCAG().fit(X).sparse_)
    assert shares.worst_samples(1).tolist() == [7]
    assert shares.worst_features(1).tolist() == [31]


def test_data_without_corruption_have_no_outliers():
    assert outlier_shares(np.zeros((3, 2))).share == 0


def test_a_vector_is_refused():
    with pytest.raises(ValueError, match=r"S has shape \(3,\)"):
        outlier_shares(np.ones(3))
