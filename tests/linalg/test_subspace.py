"""Facts about singular vectors from products with a Gram matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag.linalg.subspace import subspace_factors


def decaying(n, p, rate):
    rng = np.random.default_rng(0)
    W, V = (np.linalg.qr(rng.standard_normal((size, min(n, p))))[0] for size in (n, p))
    return (W * rate ** np.arange(min(n, p))) @ V.T


@pytest.mark.parametrize(("n", "p"), [(300, 80), (40, 500)])
@pytest.mark.parametrize("n_components", [5, 0.99, None])
def test_factors_are_those_of_the_dense_decomposition(n, p, n_components):
    A = decaying(n, p, 0.7)
    Sigma, V = subspace_factors(lambda Q: A.T @ (A @ Q), A.shape, n_components, seed=0)
    _, true, Vt = np.linalg.svd(A, full_matrices=False)
    wanted = {5: 5, 0.99: 1 + int(np.searchsorted(np.cumsum(true**2) / np.sum(true**2), 0.99)), None: 13}[n_components]
    assert len(Sigma) == wanted
    assert_allclose(Sigma, true[:wanted], rtol=1e-6)
    assert_allclose(V.T @ V, np.eye(wanted), atol=1e-10)
    assert_allclose(np.abs(np.einsum("ij,ji->i", Vt[:wanted], V)), 1, atol=1e-6)
    assert (V[np.abs(V).argmax(axis=0), np.arange(wanted)] > 0).all()
