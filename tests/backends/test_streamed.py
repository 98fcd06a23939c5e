"""A solve on a device that is too small for it: row blocks go there and back, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from frpcag.backends.torch import backend as backends  # noqa: E402
from frpcag.backends.torch.backend import TorchBackend  # noqa: E402
from frpcag.backends.torch.streamed import StreamedState  # noqa: E402
from frpcag.solvers import solve  # noqa: E402
from support.oracles import null_vector, random_laplacian, random_problem  # noqa: E402


def little_memory(monkeypatch, budget):
    """Let the device, the CPU or a GPU, have so many bytes free."""
    monkeypatch.setattr(backends, "free_bytes", lambda device: int(budget))


def sparse_problem(seed, *, p=9, **options):
    """Return a problem of 200 rows that have few neighbours each, in no order."""
    problem = random_problem(seed, n=200, p=p, **options)
    if problem.L1 is None:
        return problem
    L1 = random_laplacian(np.random.default_rng(seed), 200, density=0.015)
    return replace(problem, L1=L1, null1=None if problem.null1 is None else null_vector(L1))


def loaded(problem, monkeypatch):
    """Return a backend and a state of the whole problem, and another pair that has room for four arrays."""
    whole, streamed = TorchBackend(fused=False), TorchBackend(fused=False)
    state = whole.load(problem, step=0.2)
    little_memory(monkeypatch, 4 * problem.X.nbytes)
    blocks = streamed.load(problem, step=0.2)
    assert isinstance(blocks, StreamedState)
    assert blocks.n_blocks > 3
    return whole, state, streamed, blocks


@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
@pytest.mark.parametrize("mask", [None, 0.2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_give_the_iterates_and_the_certificate_of_the_whole(monkeypatch, loss, mask, dtype):
    problem = sparse_problem(3, dtype=dtype, loss=loss, mask=mask)
    whole, state, streamed, blocks = loaded(problem, monkeypatch)
    for momentum in (0.0, 0.4, 0.6):
        scalars, found = whole.step(state, momentum=momentum), streamed.step(blocks, momentum=momentum)
        assert_allclose(found, scalars, rtol=1e-5 if dtype == np.float32 else 1e-10)
    rounding = 1e-6 if dtype == np.float32 else 1e-13
    assert_allclose(streamed.gap(blocks), whole.gap(state), rtol=10 * rounding, atol=rounding)
    assert_allclose(streamed.unload(blocks), whole.unload(state), rtol=rounding, atol=rounding)


def test_slopes_come_back_in_the_order_of_the_rows(monkeypatch):
    whole, state, streamed, blocks = loaded(sparse_problem(4, p=7), monkeypatch)
    assert_allclose(streamed.slope(blocks), whole.slope(state), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("graphs", ["samples", "features"])
def test_one_graph_is_enough(monkeypatch, graphs):
    problem = sparse_problem(8, graphs=graphs)
    whole = solve(problem, backend=TorchBackend(fused=False), tol=1e-8)
    little_memory(monkeypatch, 4 * problem.X.nbytes)
    streamed = solve(problem, backend=TorchBackend(fused=False), tol=1e-8)
    assert streamed.n_iter == whole.n_iter > 100
    assert_allclose(streamed.U, whole.U, atol=1e-10)


def test_a_warm_start_is_taken(monkeypatch):
    problem = sparse_problem(6)
    optimum = solve(problem, backend="numpy", tol=1e-9).U
    little_memory(monkeypatch, 4 * problem.X.nbytes)
    assert solve(problem, backend="torch", tol=1e-6, U0=optimum).n_iter == 1


def test_a_budget_below_one_row_is_refused(monkeypatch):
    little_memory(monkeypatch, 100)
    with pytest.raises(MemoryError, match="one row of X with its neighbours"):
        solve(random_problem(3, n=40, p=8), backend="torch")
