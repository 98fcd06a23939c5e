"""The estimate of the largest eigenvalue, against dense eigenvalues, wherever the vectors live."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.sparse.csgraph import laplacian as scipy_laplacian
from threadpoolctl import threadpool_limits

from frpcag.dask.row_blocks import Halo, largest_block_eigenvalue, localize
from frpcag.dask.tasks import Here, Layout
from frpcag.linalg.lanczos import Vectors, largest_eigenvalue, look, top_eigenvalue
from support.oracles import random_sparse


def random_laplacian(n, density, normed, seed):
    A = random_sparse(n, density, seed)
    A = A + A.T
    A.setdiag(0)
    return sp.csr_array(scipy_laplacian(A, normed=normed))


def dense_lmax(L):
    return np.linalg.eigvalsh(L.toarray())[-1] if L.shape[0] else 0.0


def gershgorin(L):
    return float(abs(L).sum(axis=1).max())


def row_blocks(L):
    """Return a matrix in up to three row blocks, in this process."""
    n = L.shape[0]
    layout = Layout.spread(Here(), [len(rows) for rows in np.array_split(np.arange(n), min(3, n))])
    bounds = layout.bounds
    parts = [localize(L[bounds[j] : bounds[j + 1]], bounds, j) for j in range(len(layout.sizes))]
    ids = [np.arange(bounds[j], bounds[j + 1]) for j in range(len(layout.sizes))]
    return layout, parts, ids, Halo(layout, parts)


def on_the_device(L):
    """Run on tensors, of the host's memory: `TorchCSR.lmax` would ask SciPy there."""
    pytest.importorskip("torch")
    from frpcag.linalg.torch_sparse import TorchCSR

    return TorchCSR.of(L, "cpu").lanczos()


ESTIMATES = {
    "host": largest_eigenvalue,
    "tensors": on_the_device,
    "blocks": lambda L: largest_block_eigenvalue(*row_blocks(L)),
    "rounds": lambda L: largest_block_eigenvalue(*row_blocks(L), on_client=0),
}

graphs = st.builds(
    random_laplacian,
    n=st.integers(2, 150),
    density=st.sampled_from([0.005, 0.05, 0.3]),  # the first leaves most graphs in many pieces
    normed=st.booleans(),
    seed=st.integers(0, 10_000),
)


@pytest.mark.parametrize("where", ESTIMATES)
@given(L=graphs)
@example(L=random_laplacian(86, 0.05, True, 125))  # a second eigenvalue close below catches an early stop
@example(L=random_laplacian(123, 0.05, True, 1792))  # the start is nearly orthogonal to the last eigenvector
def test_estimate_is_never_below_the_largest_eigenvalue(where, L):
    lmax = dense_lmax(L)
    assert ESTIMATES[where](L) >= lmax * (1 - 1e-12)


@pytest.mark.parametrize("where", ESTIMATES)
@given(L=graphs)
def test_estimate_is_at_most_a_few_percent_above_the_largest_eigenvalue(where, L):
    assert ESTIMATES[where](L) <= (1.07 if where == "rounds" else 1.011) * max(dense_lmax(L), 0)


@pytest.mark.parametrize("where", ESTIMATES)
def test_largest_eigenvalue_is_found_in_a_tiny_component_of_a_large_graph(where):
    # One edge by itself has eigenvalue 2; the 600 other nodes stay near 1.
    large = random_laplacian(600, 0.1, True, 0)
    L = sp.block_diag([large, [[1.0, -1.0], [-1.0, 1.0]]], format="csr")
    assert dense_lmax(large) < 1.5
    assert 2 <= ESTIMATES[where](L) <= (2.14 if where == "rounds" else 2.03)


@pytest.mark.parametrize("where", ESTIMATES)
def test_gershgorin_bound_caps_the_estimate(where):
    # A single edge meets its bound exactly, so no margin is added.
    assert ESTIMATES[where](sp.csr_array([[3.0, -3.0], [-3.0, 3.0]])) == 6.0


@pytest.mark.parametrize("where", ESTIMATES)
@pytest.mark.parametrize("n", [1, 50])
def test_zero_matrix_has_largest_eigenvalue_zero(where, n):
    assert ESTIMATES[where](sp.csr_array((n, n))) == 0.0


def test_empty_matrix_has_largest_eigenvalue_zero():
    assert largest_eigenvalue(sp.csr_array((0, 0))) == 0.0


@pytest.mark.parametrize("where", ESTIMATES)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_estimate_scales_with_the_matrix(where, scale):
    L = random_laplacian(60, 0.1, False, 1)
    assert ESTIMATES[where](L * scale) == pytest.approx(ESTIMATES[where](L) * scale, rel=1e-6)


def test_estimate_does_not_depend_on_the_number_of_threads():
    # So many nodes that sums by BLAS would take two threads, and then round otherwise.
    rng, n = np.random.default_rng(2), 20_001
    A = sp.coo_array((rng.random(4 * n), rng.integers(0, n, (2, 4 * n))), shape=(n, n)).tocsr()
    L = sp.csr_array(scipy_laplacian(A + A.T, normed=True))
    with threadpool_limits(1):
        one = largest_eigenvalue(L)
    with threadpool_limits(2):
        two = largest_eigenvalue(L)
    assert one == two


@pytest.mark.parametrize("where", ESTIMATES)
def test_the_same_run_goes_wherever_the_vectors_live(where):
    # Rounds of a cluster are fewer steps, with a wider margin for them.
    L = random_laplacian(400, 0.02, True, 4)
    assert ESTIMATES[where](L) == pytest.approx(largest_eigenvalue(L), rel=0.06 if where == "rounds" else 1e-12)


def run(L, start):
    """Run on the host from a start; return the estimate, how often its vectors were looked at, and multiplied."""
    looks, products, A = [], [], L / gershgorin(L)

    def apply(v):
        products.append(v)
        return A @ v

    def counted(v, image):
        looks.append(v)
        return look(v, image)

    return top_eigenvalue(Vectors(start, apply, counted), gershgorin(L)), len(looks), len(products)


def test_a_run_looks_at_its_vectors_once_for_each_product_with_the_matrix():
    _, looks, products = run(random_laplacian(400, 0.02, True, 4), np.random.default_rng(0).normal(size=400))
    assert looks == products == 101


@pytest.mark.parametrize("share", [1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(5))
def test_a_start_nearly_orthogonal_to_the_last_eigenvector_finds_its_eigenvalue(share, seed):
    L = random_laplacian(300, 0.02, True, seed)
    values, vectors = np.linalg.eigh(L.toarray())
    start = np.random.default_rng(seed).normal(size=300)
    start -= (1 - share) * vectors[:, -1] * (vectors[:, -1] @ start)
    assert run(L, start)[0] >= values[-1]


def test_a_tensor_in_host_memory_has_the_estimate_of_the_host():
    torch = pytest.importorskip("torch")
    from frpcag.linalg.torch_sparse import TorchCSR

    L = random_laplacian(400, 0.02, True, 4)
    assert TorchCSR.of(L, torch.device("cpu")).lmax == largest_eigenvalue(L)
