"""The clean part of data that are not negative stays at or above zero, and the certificate holds for it."""

import cvxpy as cp
import numpy as np
import pytest

from frpcag import FRPCAG

SETTINGS = [
    {"laplacian": "normalized"},
    {"laplacian": "combinatorial"},
    {"loss": "l2"},
    {"loss": "huber", "scale": True},
]


@pytest.fixture
def counts():
    """Logarithms of counts, most of them zero."""
    rng = np.random.default_rng(0)
    return np.log1p(rng.poisson(np.outer(rng.gamma(0.4, size=14), rng.gamma(1.0, size=9)) * 2))


def cvxpy_optimum(model, X):
    """Return the smallest objective over U >= 0, by a solver of another kind."""
    U = cp.Variable(X.shape, nonneg=True)
    R = X / model.scale_ - U
    loss = {"l1": cp.sum(cp.abs(R)), "l2": cp.sum_squares(R), "huber": cp.sum(cp.huber(R, model.huber_delta)) / 2}
    terms = loss[model.loss]
    for gamma, graph, A in (
        (model.gamma1_, model.sample_graph_, U),
        (model.gamma2_, model.feature_graph_, U.T),
    ):
        values, vectors = np.linalg.eigh(graph.laplacian.toarray())
        root = np.sqrt(np.maximum(values, 0))[:, None] * vectors.T
        terms = terms + gamma * cp.sum_squares(root @ A)
    return cp.Problem(cp.Minimize(terms)).solve(solver="CLARABEL")


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: "-".join(map(str, s.values())))
def test_the_result_is_the_optimum_over_what_is_not_negative(counts, setting):
    counts = counts[:, counts.std(axis=0) > 0]
    model = FRPCAG(nonnegative=True, n_neighbors=3, tol=1e-6, max_iter=20000, **setting).fit(counts)
    assert model.low_rank_.min() >= 0
    best = cvxpy_optimum(model, counts)
    assert model.objective_ == pytest.approx(best, rel=2e-5)
    assert model.objective_ * (1 - model.duality_gap_) <= best * (1 + 1e-7)  # never proves too much


def test_without_it_the_clean_part_falls_below_zero(counts):
    assert FRPCAG(n_neighbors=3).fit(counts).low_rank_.min() < 0


def test_the_embedding_is_taken_about_the_mean(counts):
    model = FRPCAG(2, nonnegative=True, n_neighbors=3).fit(counts)
    np.testing.assert_allclose(model.embedding_.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(model.mean_, model.low_rank_.mean(axis=0))


def test_missing_entries_are_predicted_at_or_above_zero(counts):
    counts[3, 2] = np.nan
    assert FRPCAG(nonnegative=True, n_neighbors=3).fit(counts).low_rank_.min() >= 0


def test_negative_data_are_refused(counts):
    with pytest.raises(ValueError, match="nonnegative=True needs X >= 0"):
        FRPCAG(nonnegative=True).fit(-counts)
