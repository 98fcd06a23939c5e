"""Facts about fits and solves on PyTorch tensors, on the CPU where there is no GPU."""

import importlib.util

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from frpcag import FRPCAG, FRPCAGCV  # noqa: E402
from frpcag.backends import select_backend  # noqa: E402
from frpcag.backends.torch.backend import require_memory  # noqa: E402
from frpcag.graphs import Graph  # noqa: E402
from frpcag.linalg.factorize import gram_svd  # noqa: E402
from frpcag.solvers import solve  # noqa: E402
from support.oracles import random_problem, tolerance  # noqa: E402


def corrupted(n=90, p=24, seed=0, dtype=np.float64, missing=0.0):
    """Three clusters of noisy rows, 10 % of the entries hit by gross errors, some missing."""
    rng = np.random.default_rng(seed)
    X = np.repeat(3 * rng.normal(size=(3, p)), n // 3, axis=0) + 0.1 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 6
    X[rng.random((n, p)) < missing] = np.nan
    return X.astype(dtype)


@pytest.mark.parametrize("stop", ["gap", "change"])
@pytest.mark.parametrize("restart", [True, False])
def test_bursts_of_steps_end_where_single_steps_do(stop, restart):
    problem = random_problem(5, n=30, p=12)
    runs = [solve(problem, backend=name, tol=1e-5, stop=stop, restart=restart) for name in ("numpy", "torch")]
    assert runs[1].n_iter == runs[0].n_iter > 10
    assert_allclose(runs[1].U, runs[0].U, **tolerance(np.float64))
    for key, values in runs[0].history.items():
        assert_allclose(runs[1].history[key], values, rtol=1e-6, atol=1e-10)


def test_the_solver_looks_only_when_the_gap_is_due():
    backend = select_backend("torch")
    bursts = []
    run = backend.run_on_device
    backend.run_on_device = lambda state, n_steps, **options: (bursts.append(n_steps), run(state, n_steps, **options))[
        1
    ]
    solution = solve(random_problem(5, n=30, p=12), backend=backend, tol=1e-6)
    assert sum(bursts) == solution.n_iter
    # The first step alone says whether the start is worth a certificate; here it is not.
    assert (bursts[0], len(bursts)) == (1, 1 + len(solution.history["gap"]))
    assert len(bursts) < solution.n_iter / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("n", "p"), [(90, 24), (30, 50)])
def test_a_fit_on_tensors_equals_the_fit_on_arrays(dtype, missing, n, p):
    X = corrupted(n, p, dtype=dtype, missing=missing)
    host, device = FRPCAG(backend="numpy").fit(X), FRPCAG().fit(torch.from_numpy(X))
    assert device.backend_ == "torch"
    assert device.n_iter_ == host.n_iter_
    near = {"atol": 1e-4 if dtype == np.float32 else 1e-5}  # neighbour distances are float32 in both
    for name in ("low_rank_", "sparse_", "mean_", "center_", "scale_"):
        found = getattr(device, name)
        assert isinstance(found, torch.Tensor)
        assert_allclose(found.numpy(), getattr(host, name), **near, err_msg=name)
    assert device.low_rank_.dtype == torch.from_numpy(X).dtype
    assert_allclose([device.gamma1_, device.gamma2_], [host.gamma1_, host.gamma2_], rtol=1e-6)
    assert_allclose(device.duality_gap_, host.duality_gap_, atol=1e-6)
    assert_allclose(device.embedding_ @ device.components_, host.embedding_ @ host.components_, atol=1e-3)


def test_arrays_in_give_arrays_and_host_graphs_out():
    X = corrupted()
    model = FRPCAG(backend="torch", scale=True, n_refine=1).fit(X)
    reference = FRPCAG(backend="numpy", scale=True, n_refine=1).fit(X)
    assert model.backend_ == "torch"
    assert isinstance(model.sample_graph_, Graph)
    assert sp.issparse(model.sample_graph_.weights)
    assert not any(isinstance(value, torch.Tensor) for value in vars(model).values())
    assert model.n_refine_ == reference.n_refine_
    assert_allclose(model.low_rank_, reference.low_rank_, atol=1e-4)
    assert_allclose(model.transform(X[:5] + 0.01), reference.transform(X[:5] + 0.01), atol=1e-3)


def test_new_rows_of_a_tensor_fit_are_cleaned_into_tensors():
    X = corrupted()
    host, device = FRPCAG(n_components=3).fit(X), FRPCAG(n_components=3).fit(torch.from_numpy(X))
    rows = X[:7] + 0.01
    for method in ("transform", "denoise"):
        found = getattr(device, method)(torch.from_numpy(rows))
        assert isinstance(found, torch.Tensor)
        assert_allclose(found, getattr(host, method)(rows), atol=1e-3)
    back = device.inverse_transform(device.embedding_)
    assert_allclose(back, host.inverse_transform(host.embedding_), atol=1e-3)


def test_a_fit_leaves_the_tensor_untouched():
    X = torch.from_numpy(corrupted(missing=0.1))
    before = X.clone()
    FRPCAG().fit(X)
    assert torch.equal(torch.nan_to_num(X, nan=-7.0), torch.nan_to_num(before, nan=-7.0))


def test_cross_validated_gammas_are_those_of_arrays():
    X = corrupted(60, 12)
    options = {"multiples1": (0.1, 1.0), "multiples2": (0.1, 1.0), "random_state": 0}
    host, device = (FRPCAGCV(FRPCAG(backend=name), **options).fit(X) for name in ("auto", "torch"))
    assert_allclose(device.gamma1_, host.gamma1_, rtol=1e-6)


@pytest.mark.parametrize("shape", [(40, 9), (9, 40)])
@pytest.mark.parametrize("n_components", [None, 3, 0.9])
def test_factors_of_a_tensor_are_those_of_the_array(shape, n_components):
    U = np.random.default_rng(0).normal(size=shape)
    host, device = gram_svd(U, n_components), gram_svd(torch.from_numpy(U), n_components)
    for expected, found in zip(host, device, strict=True):
        assert_allclose(found, expected, atol=1e-9)


def test_the_sketch_of_a_large_tensor_agrees_with_the_dense_svd(monkeypatch):
    monkeypatch.setattr("frpcag.linalg.factorize._TENSOR_GRAM_SIDE", 10)
    rng = np.random.default_rng(0)
    U = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 40)) + 0.3 * rng.normal(size=(60, 40))
    W, Sigma, V = gram_svd(torch.from_numpy(U), 5, random_state=0)
    left, values, right = np.linalg.svd(U, full_matrices=False)
    assert_allclose(Sigma, values[:5], rtol=1e-7)
    assert_allclose((W * Sigma) @ V.T, (left[:, :5] * values[:5]) @ right[:5], atol=1e-5)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.full((3, 2), np.inf), "infinite entries"),
        (np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 4.0]]), "row 1 of X has no observed entry"),
        (np.array([[1.0, np.nan], [2.0, np.nan]]), "column 1 of X has no observed entry"),
        (np.zeros((1, 2)), "1 sample.* minimum of 2 is required by FRPCAG"),
    ],
)
def test_tensors_that_cannot_be_fitted_are_refused_with_the_reason(X, words):
    with pytest.raises(ValueError, match=words):
        FRPCAG().fit(torch.from_numpy(X))


@pytest.mark.parametrize(("option", "value"), [("loss", "l3"), ("huber_delta", -1.0), ("gamma1", -2.0)])
def test_wrong_options_are_refused_for_tensors_too(option, value):
    with pytest.raises(ValueError, match=f"{option.removeprefix('huber_')}={value!r}"):
        FRPCAG(**{option: value}).fit(torch.from_numpy(corrupted(30, 6)))


def test_a_backend_that_takes_no_tensors_says_so():
    with pytest.raises(ValueError, match="backend='numba' does not take PyTorch tensors"):
        FRPCAG(backend="numba").fit(torch.zeros((5, 3)))


def test_missing_pytorch_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"backend='torch' needs PyTorch; install frpcag\[gpu\]"):
        select_backend("torch")


def test_too_little_memory_is_refused_with_the_bytes_needed_and_free(monkeypatch):
    for name, value in (("mem_get_info", (1000, 9000)), ("memory_reserved", 700), ("memory_allocated", 200)):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    require_memory(1500, torch.device("cuda"))
    with pytest.raises(MemoryError, match=r"needs 1,501 bytes of GPU memory, but 1,500 are free"):
        require_memory(1501, torch.device("cuda"))
