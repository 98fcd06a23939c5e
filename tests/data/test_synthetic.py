"""Synthetic data are low-rank on two graphs, with the noise and the outliers asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.data import make_low_rank_on_graphs


def make(**options):
    return make_low_rank_on_graphs(60, 50, random_state=0, **options)


@pytest.mark.parametrize(("k1", "k2"), [(1, 4), (4, 4), (6, 3), (2, 5)])
def test_clean_matrix_is_constant_on_k1_by_k2_blocks(k1, k2):
    _, clean, labels = make(n_sample_clusters=k1, n_feature_clusters=k2)
    assert np.linalg.matrix_rank(clean) == min(k1, k2)
    assert len(np.unique(labels)) == k1
    assert all((np.ptp(clean[labels == cluster], axis=0) == 0).all() for cluster in range(k1))
    assert len(np.unique(clean.T, axis=0)) == k2


def test_sample_clusters_are_equally_far_apart():
    _, clean, labels = make(n_sample_clusters=4, n_feature_clusters=5)
    centres = np.array([clean[labels == cluster][0] for cluster in range(4)])
    distances = np.linalg.norm(centres[:, None] - centres, axis=2)[~np.eye(4, dtype=bool)]
    assert_allclose(distances, np.sqrt(2 * 50), rtol=1e-12)


def test_noise_and_outliers_are_what_was_asked_for():
    X, clean, _ = make(noise=0.0, outliers=0.1, outlier_size=7.0)
    errors = (X - clean)[clean != X]
    assert len(errors) == 300
    assert_allclose(np.abs(errors), 7)
    X, clean, _ = make(noise=0.2, outliers=0.0)
    assert (X - clean).std() == pytest.approx(0.2, rel=0.05)


def test_synthetic_data_repeat_with_their_seed_in_the_dtype_asked_for():
    for first, again in zip(make(dtype=np.float32), make(dtype=np.float32), strict=True):
        assert_array_equal(first, again)
    assert [array.dtype.kind + str(array.dtype.itemsize) for array in make(dtype=np.float32)[:2]] == [
        "f4",
        "f4",
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_sample_clusters": 61}, "n_sample_clusters=61 must lie between 1 and n_samples=60"),
        ({"n_feature_clusters": 0}, "n_feature_clusters=0 must lie between 1 and n_features=50"),
        ({"outliers": 1.5}, r"outliers=1.5 must lie in \[0, 1\]"),
    ],
)
def test_synthetic_data_refuse_impossible_requests(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
