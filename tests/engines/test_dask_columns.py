"""Facts about fits on row blocks of more features than products of all pairs are made for; in this process."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

pytest.importorskip("dask", reason="Dask is not installed")

import dask.array as da

from frpcag import FRPCAG


@pytest.fixture
def many(monkeypatch):
    """Let so few features count as many."""
    for module in ("graphs", "stages"):
        monkeypatch.setattr(f"frpcag.engines.dask.{module}.MAX_PRODUCTS", 50)


def samples(missing):
    rng = np.random.default_rng(0)
    X = np.sin(6 * rng.random((150, 1)) + np.linspace(0, 9, 90)) + 0.05 * rng.normal(size=(150, 90))
    X[rng.random(X.shape) < 0.1] += 3
    X[rng.random(X.shape) < missing] = np.nan
    return X


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("center", [True, False])
def test_a_fit_of_many_features_is_that_of_one_machine(many, missing, center):
    X, options = samples(missing), {"center": center, "n_components": 4, "tol": 1e-4, "random_state": 0}
    wanted = FRPCAG(**options).fit(X)
    found = FRPCAG(**options).fit(da.from_array(X, chunks=((40, 110), -1)))
    assert found.feature_graph_.method == "approximate"
    assert found.duality_gap_ <= 1e-4
    assert wanted.feature_graph_.edges_kept_by(found.feature_graph_) >= 0.99
    assert_allclose(found.gamma2_, wanted.gamma2_, rtol=1e-3)
    assert_allclose(found.objective_, wanted.objective_, rtol=2e-3)
    assert_allclose(found.singular_values_, wanted.singular_values_, rtol=1e-2)
    assert_allclose(np.abs(np.sum(found.components_[:2] * wanted.components_[:2], axis=1)), 1, atol=1e-3)
