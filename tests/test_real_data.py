"""Facts on real data; they need the data sets that FRPCAG_DATA points at."""

import os

import numpy as np
import pytest
from reproduction.corrupt import block_occlusion, missing_pixels
from reproduction.datasets import load_dataset
from reproduction.evaluate.clustering import clustering_error
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

from frpcag import FRPCAG, FRPCAGClustering, Problem
from frpcag.problem import certificate

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("FRPCAG_DATA"), reason="FRPCAG_DATA does not point at the data sets"),
]


def faces():
    """ORL at the size of the paper, 56 x 46."""
    data = load_dataset("orl")
    return data.X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(400, -1), data.y


def test_usps_is_certified_by_the_reference_too():
    X = load_dataset("usps").X[:1500]
    model = FRPCAG(tol=1e-4).fit(X)
    graphs = model.sample_graph_, model.feature_graph_
    problem = Problem(X - model.center_, *(G.laplacian for G in graphs), model.gamma1_, model.gamma2_)
    at = certificate(problem, model.low_rank_ - model.center_)
    assert model.duality_gap_ <= 1e-4
    assert at.gap <= 1.1e-4  # X - center in float64 here, in float32 there


def test_clusters_of_faces_survive_most_pixels_missing():
    X, y = faces()
    gaps, _ = missing_pixels(X, 0.6, value=np.nan, random_state=0)
    zeros = np.nan_to_num(gaps, nan=0.0)
    told, untold = (
        clustering_error(y, FRPCAGClustering(40, random_state=0).fit_predict(data)) for data in (gaps, zeros)
    )
    raw = clustering_error(y, KMeans(40, n_init=10, random_state=0).fit_predict(zeros))
    assert told < 0.28
    assert told < untold < raw


def test_people_are_told_apart_under_forty_lightings():
    data = load_dataset("pie")
    keep = (data.y < 30) & (np.arange(len(data.y)) % 42 < 40)
    X, y = data.X[keep], data.y[keep]
    auto, spectral = (
        clustering_error(y, FRPCAGClustering(30, assign=assign, random_state=0).fit_predict(X))
        for assign in ("auto", "spectral")
    )
    assert auto < 0.25 < spectral


def test_faces_behind_blocks_are_uncovered():
    X, _ = faces()
    order = np.random.default_rng(1).permutation(400)
    train, test = X[order[:300]], X[order[300:]]
    hit, _ = block_occlusion(test, (56, 46), 0.25, random_state=0)
    pca = PCA(50, random_state=0).fit(train)
    errors = [
        np.linalg.norm(guess - test)
        for guess in (FRPCAG().fit(train).denoise(hit), pca.inverse_transform(pca.transform(hit)))
    ]
    assert errors[0] < 0.5 * errors[1]


def test_digits_of_mnist_take_the_approximate_graph_and_reach_the_gap():
    X = load_dataset("mnist").X[:15_500]  # a few more than are searched exactly
    model = FRPCAG(random_state=0).fit(X)
    assert model.sample_graph_.method == "approximate"
    assert model.duality_gap_ <= 1e-3
