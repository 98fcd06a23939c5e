"""Predictors on tensors give what they give on NumPy arrays, and stay tensors."""

import numpy as np
import pytest
import scipy.sparse as sp

from frpcag.cells.columns import ColumnPredictor
from frpcag.cells.low_rank import LowRankPredictor, column_means, column_medians
from frpcag.cells.metric import all_neighbors, neighbor_weights
from frpcag.cells.predictors import GraphPredictor, Prediction, capped_errors, error_cap, mixed, neighbor_moments
from frpcag.cells.predictors import stack_weights as stack

torch = pytest.importorskip("torch", reason="needs PyTorch")

every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def table(dtype, n=90, p=60, rank=3):
    """Return a low rank with noise, gross errors and missing cells."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p)) + 0.05 * rng.normal(size=(n, p))
    X[rng.random(X.shape) < 0.05] += 15
    observed = rng.random(X.shape) > 0.15
    return np.where(observed, X, 0).astype(dtype), observed


def chain(p, dtype=np.float64):
    return sp.csr_array(sp.diags_array([np.ones(p - 1), np.ones(p - 1)], offsets=[-1, 1]), dtype=dtype)


def predictors(X, observed):
    near = all_neighbors(X, observed, n_neighbors=5, metrics=("l1",))["l1"]
    W1, W2 = [neighbor_weights(near, n_neighbors=5)], chain(X.shape[1])
    made = {
        f"graph, {loss}": lambda loss=loss: GraphPredictor(
            W1, W2, 0.5, 0.05, [np.arange(X.shape[1])], loss=loss, delta=0.5, tol=1e-6, max_iter=400
        )
        for loss in ("l1", "huber", "l2")
    }
    return made | {
        "low rank": lambda: LowRankPredictor(3),
        "no rank": lambda: LowRankPredictor(0),
        "least squares": lambda: LowRankPredictor(3, robust=False),
        "columns": lambda: ColumnPredictor(),
        "plain columns": lambda: ColumnPredictor(robust=False),
    }


def assert_same(tensors, arrays, dtype, atol):
    for tensor, array in zip(tensors, arrays, strict=True):
        assert isinstance(tensor, torch.Tensor)
        assert tensor.device.type == "cpu"
        assert tensor.numpy().dtype == dtype
        np.testing.assert_allclose(tensor.numpy(), array, rtol=0, atol=atol)


@every_dtype
@pytest.mark.parametrize("name", predictors(*table(np.float64)))
def test_a_predictor_says_the_same_of_tensors(name, dtype):
    X, observed = table(dtype)
    make = predictors(X, observed)[name]
    host, device = make(), make()
    # Iterations that stop by a tolerance, and weights that redescend, carry rounding along.
    atol = 2e-3 if dtype == np.float32 or name.startswith("graph") else 1e-8
    at_host = host.fit(X, observed)
    assert_same(device.fit(torch.from_numpy(X), torch.from_numpy(observed)), at_host, dtype, atol)
    if name.startswith("graph"):
        host.reference, device.reference = X[:50], torch.from_numpy(X[:50])
    new, seen = X[50:], observed[50:]
    said = device.predict(torch.from_numpy(new), torch.from_numpy(seen))
    assert_same(said, host.predict(new, seen), dtype, atol)


@every_dtype
@pytest.mark.parametrize("seen", [False, True])
def test_neighbours_have_the_same_moments(dtype, seen):
    X, observed = table(dtype)
    W1, W2 = chain(len(X)), chain(X.shape[1])
    arrays = neighbor_moments(X, observed if seen else None, W1, W2, 0.7, 0.3)
    tensors = neighbor_moments(
        torch.from_numpy(X), torch.from_numpy(observed) if seen else None, W1, W2, 0.7, 0.3
    )  # fmt: skip
    assert_same(tensors, arrays, dtype, 1e-3 if dtype == np.float32 else 1e-12)


@every_dtype
def test_the_stack_chooses_and_mixes_the_same(dtype):
    X, observed = table(dtype)
    rng = np.random.default_rng(1)
    said = [(X + scale * rng.normal(size=X.shape)).astype(dtype) for scale in (0.5, 1.0, 2.0)]
    cap = error_cap(X, observed)
    there, seen = torch.from_numpy(X), torch.from_numpy(observed)
    assert error_cap(there, seen) == pytest.approx(cap, rel=1e-6)
    weights, error = stack([P[observed] for P in said], X[observed], cap)
    same, near = stack([torch.from_numpy(P)[seen] for P in said], there[seen], cap)
    np.testing.assert_array_equal(same, weights)
    assert near == pytest.approx(error, rel=1e-5)
    assert capped_errors(torch.from_numpy(said[0]), there, cap).dtype == there.dtype
    whole = mixed([Prediction(P, np.abs(P)) for P in said], weights)
    tensors = mixed([Prediction(torch.from_numpy(P), torch.from_numpy(np.abs(P))) for P in said], weights)
    assert_same(tensors, whole, dtype, 1e-5)


@every_dtype
def test_columns_have_the_same_centres(dtype):
    X, observed = table(dtype)
    observed[:, 3] = False
    for centre, every in ((column_medians, True), (column_medians, False), (column_means, False)):
        seen = np.ones_like(observed) if every else observed
        found = centre(torch.from_numpy(X), torch.from_numpy(seen))
        assert_same([found], [centre(X, seen)], dtype, 1e-6)
