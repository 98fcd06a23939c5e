"""Facts about fits on a real GPU; `make test-gpu` runs them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from frpcag import FRPCAG, build_graph  # noqa: E402
from frpcag.backends import select_backend  # noqa: E402
from frpcag.engines.gammas import scale_free_gamma  # noqa: E402
from frpcag.problem import Problem, certificate  # noqa: E402
from frpcag.solvers.fista import lipschitz  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def faces(n=3000, p=400, seed=0, dtype=np.float32, missing=0.0):
    """Noisy rows around a curve in p dimensions, some entries hit by gross errors, some missing."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.random(n))[:, None]
    X = np.sin(6 * t + np.linspace(0, 9, p)) + 0.05 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 3
    X[rng.random((n, p)) < missing] = np.nan
    return X.astype(dtype)


def host_problem(X):
    L1, L2 = (build_graph(X, axis=axis).laplacian for axis in (0, 1))
    return Problem(X, L1, L2, *(scale_free_gamma(L, X, axis=axis) for axis, L in enumerate((L1, L2))))


@pytest.mark.parametrize("p", [60, 400, 2100])  # lists, dense tensor cores, lists again
def test_float32_iterates_stay_at_rounding_of_the_reference(p):
    problem = host_problem(faces(2500, p))
    runs = []
    for name in ("numpy", "torch"):
        backend = select_backend(name)
        state = backend.load(problem, step=1 / lipschitz(problem))
        scalars = [backend.step(state, momentum=k / (k + 3)) for k in range(20)]
        runs.append((backend.gap(state), np.array(scalars), backend.unload(state)))
    assert_allclose(runs[1][2], runs[0][2], atol=2e-5)
    assert_allclose(runs[1][1], runs[0][1], rtol=1e-3, atol=1e-4)
    found, expected = runs[1][0], runs[0][0]
    assert_allclose(found._replace(excess=0), expected._replace(excess=0), rtol=1e-5)
    assert_allclose(found.gap, expected.gap, atol=5e-6)  # a small difference of large sums


def test_float64_fit_equals_the_reference():
    X = faces(800, 90, dtype=np.float64)
    host, device = FRPCAG(backend="numpy", tol=1e-5).fit(X), FRPCAG(backend="torch", tol=1e-5).fit(X)
    assert device.n_iter_ == host.n_iter_
    assert_allclose(device.low_rank_, host.low_rank_, atol=1e-5)  # distances are float32 on both sides
    assert_allclose(device.objective_, host.objective_, rtol=1e-6)
    assert_allclose(np.abs(device.embedding_[:, :2]), np.abs(host.embedding_[:, :2]), atol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_cuda_tensor_stays_on_the_device_and_is_certified(missing):
    X = faces(missing=missing)
    model = FRPCAG(random_state=0).fit(torch.from_numpy(X).cuda())
    results = (model.low_rank_, model.sparse_, model.embedding_, model.components_, model.mean_)
    assert all(A.is_cuda for A in results)
    assert model.backend_ == "torch"
    assert model.duality_gap_ <= 1e-3
    graphs = [graph.to_host() for graph in (model.sample_graph_, model.feature_graph_)]
    problem = Problem(
        X - model.center_.cpu().numpy().astype(np.float32),
        *(graph.laplacian for graph in graphs),
        model.gamma1_,
        model.gamma2_,
        null1=graphs[0].null_vector,
        null2=graphs[1].null_vector,
    )
    U = (model.low_rank_ - model.center_).cpu().numpy().astype(np.float32)
    assert certificate(problem, U).gap <= 1.05e-3


def test_many_rows_get_their_exact_neighbours_through_float16():
    from support.neighbors import exact_neighbors

    X = torch.from_numpy(faces(20000, 50)).cuda()
    X[5000:5040] = X[5000]  # ties
    indices, distances = exact_neighbors(X, 10)
    rows = torch.arange(0, 20000, 7, device="cuda")
    truth = torch.cdist(X[rows].double(), X.double())
    truth[torch.arange(len(rows)), rows] = torch.inf
    assert_allclose(distances[rows].cpu(), truth.topk(10, largest=False).values.cpu(), rtol=1e-5, atol=1e-5)
    assert not bool((indices == torch.arange(20000, device="cuda")[:, None]).any())


def test_inverted_lists_find_most_neighbours():
    from support.neighbors import approximate_neighbors, exact_neighbors

    X = torch.from_numpy(faces(30000, 30)).cuda()
    truth, found = exact_neighbors(X, 10), approximate_neighbors(X, 10, random_state=0)
    again = approximate_neighbors(X, 10, random_state=0)
    assert float((found[1] <= truth[1][:, -1:] * (1 + 1e-6)).double().mean()) > 0.9
    assert torch.equal(found[0], again[0])


def test_results_are_the_same_bit_for_bit_in_every_run():
    X = torch.from_numpy(faces()).cuda()
    first, second = (FRPCAG(random_state=0).fit(X) for _ in range(2))
    assert torch.equal(first.low_rank_, second.low_rank_)
    assert first.duality_gap_ == second.duality_gap_


def test_too_little_memory_is_refused_with_the_bytes_needed_and_free():
    from frpcag.backends.torch.backend import require_memory

    with pytest.raises(MemoryError, match=r"needs 1,000,000,000,000,000 bytes of GPU memory, but [\d,]+ are free"):
        require_memory(10**15, torch.device("cuda"))
