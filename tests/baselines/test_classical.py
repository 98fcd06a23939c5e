"""k-means on the data, PCA and NMF against scikit-learn and the SVD."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import decomposition

from frpcag.baselines import NMF, PCA, OriginalSpace


def test_the_original_space_is_the_data():
    X = np.random.default_rng(0).normal(size=(5, 3))
    assert_array_equal(OriginalSpace().fit(X).embedding_, X)


@pytest.mark.parametrize("shape", [(30, 8), (8, 30)])
def test_pca_scores_are_those_of_the_centred_svd(shape):
    X = np.random.default_rng(0).normal(size=shape) + 5
    W, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    model = PCA(4).fit(X)
    assert_allclose(np.abs(model.embedding_), np.abs(W[:, :4] * s[:4]), atol=1e-9)
    assert_allclose(model.embedding_, (X - X.mean(axis=0)) @ model.components_.T, atol=1e-9)


def test_nmf_is_that_of_scikit_learn_from_the_same_start():
    X = np.random.default_rng(0).random((30, 8))
    model = NMF(3, random_state=7, max_iter=1000).fit(X)
    theirs = decomposition.NMF(3, init="random", random_state=7, max_iter=1000)
    assert_array_equal(model.embedding_, theirs.fit_transform(X))
    assert_array_equal(model.components_, theirs.components_)
    assert model.n_iter_ == theirs.n_iter_ > 0
