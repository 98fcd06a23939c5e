"""Robust distances: equal to brute force, blind to gross errors, and found at size."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from frpcag.cells import metric as cell_metric
from frpcag.cells.feature_graphs import find_shape
from frpcag.cells.metric import column_folds, folded_neighbors, prediction_errors, robust_neighbors
from frpcag.cells.units import find_units


def brute_force(X, observed, name, cut):
    d = np.abs(X[:, None] - X[None]).astype(float)
    both = observed[:, None] & observed[None]
    if name == "euclidean":
        d = d**2
    if name == "truncated":
        d = np.minimum(d, cut)
    mean = np.where(both, d, 0).sum(2) / np.maximum(both.sum(2), 1)
    np.fill_diagonal(mean, np.inf)
    return np.sqrt(mean) if name == "euclidean" else mean


@pytest.mark.parametrize("name", cell_metric.ELIGIBLE)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_neighbours_are_those_of_brute_force(name, missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)).astype(np.float32)
    observed = rng.random(X.shape) >= missing
    found = robust_neighbors(X, observed, n_neighbors=5, metric=name, n_jobs=1)
    cut = cell_metric.CUT * np.abs(X[observed]).mean()
    d = brute_force(X, observed, name, cut)
    np.testing.assert_allclose(found.distances, np.sort(d, axis=1)[:, :5], rtol=2e-4)


def test_rows_with_the_same_gross_error_do_not_become_neighbours():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(20, 60)), 10, axis=0) + 0.1 * rng.normal(size=(200, 60))
    X[[3, 55, 77, 120, 160, 199], 7] += 1e4
    near = {name: robust_neighbors(X, n_neighbors=5, metric=name, n_jobs=1).indices[3] for name in cell_metric.ELIGIBLE}
    assert set(near["euclidean"]) == {55, 77, 120, 160, 199}
    assert set(near["truncated"] // 10) == {0}


def test_approximate_search_finds_the_exact_robust_neighbours(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 300))[rng.integers(40, size=1500)] + 0.5 * rng.normal(size=(1500, 300))
    X[rng.random(X.shape) < 0.1] = 8.0
    exact = robust_neighbors(X, n_neighbors=5, metric="truncated", n_jobs=1).indices
    monkeypatch.setattr(cell_metric, "EXACT_PAIRS", 0)
    found = robust_neighbors(X, n_neighbors=5, metric="truncated", n_jobs=1).indices
    shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(exact, found, strict=True)])
    assert shared > 0.8


def test_prediction_prefers_a_robust_metric_under_gross_errors():
    rng = np.random.default_rng(3)
    X = np.repeat(rng.normal(size=(30, 80)), 10, axis=0) + 0.1 * rng.normal(size=(300, 80))
    X[rng.random(X.shape) < 0.1] += 15
    observed, folds = np.ones(X.shape, bool), column_folds(80)
    near = folded_neighbors(X, observed, folds, n_neighbors=10, n_jobs=1)
    errors = prediction_errors(X, observed, folds, near)
    assert errors["truncated"] < errors["euclidean"]


def test_folds_predict_a_column_from_rows_that_were_found_without_it():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100, 8))
    folds = column_folds(8)
    before = folded_neighbors(X, np.ones(X.shape, bool), folds, n_neighbors=3, n_jobs=1)["l1"]
    fold = next(number for number, columns in enumerate(folds) if 5 in columns)
    X[0, 5] += 1e3
    after = folded_neighbors(X, np.ones(X.shape, bool), folds, n_neighbors=3, n_jobs=1)["l1"]
    np.testing.assert_array_equal(before[fold].indices, after[fold].indices)


@pytest.mark.parametrize("shape", [(12, 9), (8, 16)])
def test_the_shape_of_images_is_found_and_lost_with_the_order_of_the_columns(shape):
    rng = np.random.default_rng(5)
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    centers = rng.uniform(0, 1, size=(150, 2)) * shape
    X = np.exp(-((rows - centers[:, :1, None]) ** 2 + (columns - centers[:, 1:, None]) ** 2) / 8).reshape(150, -1)
    observed = np.ones(X.shape, bool)
    assert find_shape(X.astype(np.float32), observed) == shape
    mixed = X[:, rng.permutation(X.shape[1])].astype(np.float32)
    assert find_shape(mixed, observed) is None


@pytest.mark.parametrize("seed", range(6))
def test_the_shape_of_images_is_found_under_salt_and_pepper(seed):
    X = load_digits().data[:600]
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(X.shape) < 0.4, np.where(rng.random(X.shape) < 0.5, 16.0, 0.0), X)
    observed = np.ones(X.shape, bool)
    assert find_shape(find_units(X, observed, one_level=False).apply(X), observed) == (8, 8)
