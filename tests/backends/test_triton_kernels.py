"""The Triton kernels take the same steps as the NumPy reference: in Triton's interpreter, or on a GPU."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag.backends import select_backend
from frpcag.backends.base import power_of_two
from frpcag.problem import Problem, gradient
from frpcag.solvers import solve
from frpcag.solvers.fista import lipschitz
from support.oracles import random_laplacian, random_problem, tolerance

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")


def fused_backend():
    from frpcag.backends.torch.backend import TorchBackend

    return TorchBackend(fused=True)


def run_steps(backend, problem, *, n_steps=2, U0=None):
    state = backend.load(problem, step=1 / lipschitz(problem), U0=U0)
    scalars = [backend.step(state, momentum=k / (k + 3)) for k in range(n_steps)]
    at = backend.gap(state)
    return backend.unload(state), np.array(scalars), at


def assert_same_run(problem, **options):
    U, scalars, at = run_steps(select_backend("numpy"), problem, **options)
    found = run_steps(fused_backend(), problem, **options)
    near = tolerance(problem.X.dtype)
    assert_allclose(found[0], U, **near)
    assert_allclose(found[1], scalars, rtol=1e-3 if problem.X.dtype == np.float32 else 1e-9)
    assert_allclose(found[2], at, rtol=1e-4 if problem.X.dtype == np.float32 else 1e-9)
    assert found[0].dtype == problem.X.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("graphs", ["both", "samples", "features"])
def test_steps_equal_the_reference(dtype, graphs):
    assert_same_run(random_problem(0, n=9, p=7, graphs=graphs, dtype=dtype))


@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_missing_entries_move_as_in_the_reference(loss, kind):
    assert_same_run(random_problem(1, n=8, p=5, loss=loss, kind=kind, mask=0.3))


@pytest.mark.parametrize("most_dense", [0, 2048])  # certificates by lists, and by a dense product
def test_several_tiles_panels_and_slices_equal_the_reference(most_dense, monkeypatch):
    monkeypatch.setattr("frpcag.backends.torch.triton_steps._DENSE_TO", most_dense)
    monkeypatch.setattr("frpcag.backends.torch.triton_steps._TILE_BYTES", 1)  # 16 rows a tile
    monkeypatch.setattr("frpcag.backends.torch.triton_steps._PROGRAMS", 8)  # several rows a program
    rng = np.random.default_rng(0)
    n, p = 37, 137
    X = rng.normal(size=(n, p)).astype(np.float32)
    problem = Problem(X, random_laplacian(rng, n, density=0.1), random_laplacian(rng, p, density=0.05), 0.7, 0.4)
    assert_same_run(problem, n_steps=1, U0=rng.normal(size=(n, p)).astype(np.float32))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_tensor_cores_keep_the_accuracy_of_float32(scale, monkeypatch):
    monkeypatch.setattr("frpcag.backends.torch.triton_steps._DENSE_FROM", 1)
    rng = np.random.default_rng(0)
    n, p = 20, 70
    X = (scale * rng.normal(size=(n, p)) * 10.0 ** rng.integers(-2, 2, size=(n, p))).astype(np.float32)
    problem = Problem(X, None, random_laplacian(rng, p, density=0.1), 0.0, 0.4 / scale)
    backend = fused_backend()
    state = backend.load(problem, step=0.1)
    assert "DEPTH" in state.fused.full.feature_shape
    backend.step(state, momentum=0.0)  # leaves the feature term of the gradient behind, times a power of two
    exact = gradient(Problem(X.astype(np.float64), None, problem.L2, 0.0, problem.gamma2), X.astype(np.float64))
    assert_allclose(state.fused.G.cpu().numpy() / power_of_two(0.1), exact, atol=1e-6 * np.abs(exact).max())


def test_the_device_decides_on_restarts_as_the_solver_does():
    problem = random_problem(3, n=6, p=4)
    backend = fused_backend()
    state = backend.load(problem, step=1 / lipschitz(problem))
    reference = select_backend("numpy")
    expected = reference.load(problem, step=1 / lipschitz(problem))
    t, restarts = 1.0, 0
    for _ in range(24):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        scalars = reference.step(expected, momentum=(t - 1) / t_next)
        t = 1.0 if scalars.restart > 0 else t_next
        restarts += scalars.restart > 0
    found, t_found = backend.run_on_device(state, 9, t=1.0, restart=True)
    found, t_found = backend.run_on_device(state, 15, t=t_found, restart=True)
    assert restarts > 1
    assert_allclose(t_found, t, rtol=1e-12)
    assert_allclose(found, scalars, rtol=1e-6)
    assert_allclose(backend.unload(state), reference.unload(expected), atol=1e-10)


@pytest.mark.parametrize("dense_from", [1, 257])
@pytest.mark.parametrize("graphs", ["both", "samples", "features"])
def test_steps_far_from_the_optimum_read_neighbours_in_half(graphs, dense_from, monkeypatch):
    monkeypatch.setattr("frpcag.backends.torch.triton_steps._DENSE_FROM", dense_from)
    problem = random_problem(5, n=9, p=7, graphs=graphs, dtype=np.float32, mask=0.2)
    backend, reference = fused_backend(), select_backend("numpy")
    state, expected = (one.load(problem, step=1 / lipschitz(problem)) for one in (backend, reference))
    assert state.fused.half is not None
    backend.run_on_device(state, 3, t=1.0, restart=False)
    t = 1.0
    for _ in range(3):
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        reference.step(expected, momentum=(t - 1) / t_next)
        t = t_next
    U, V = backend.unload(state), reference.unload(expected)
    assert_allclose(U, V, atol=3e-3 * np.abs(V).max())
    assert not np.array_equal(U, V)


@pytest.mark.parametrize(
    ("gaps", "coarse"), [([0.9, 0.5], True), ([0.5, 0.45], False), ([0.01], False), ([np.nan], False)]
)
def test_neighbours_are_read_in_full_once_half_has_done_what_it_can(gaps, coarse):
    state = fused_backend().load(random_problem(5, dtype=np.float32), step=0.1)
    for gap in gaps:
        state.fused.look_closer(gap)
    assert (state.fused.half is not None) == coarse


def test_steps_in_half_lead_to_the_same_optimum():
    problem = random_problem(6, n=6, p=4, dtype=np.float32)
    found, expected = (solve(problem, tol=1e-3, backend=one) for one in (fused_backend(), select_backend("numpy")))
    assert found.converged
    assert_allclose(found.objective, expected.objective, rtol=1e-3)


def test_the_change_of_the_iterates_is_not_that_of_their_rounding():
    problem = random_problem(6, n=6, p=4, dtype=np.float32)
    options = {"stop": "change", "tol": 1e-9, "max_iter": 200}
    found, expected = (solve(problem, backend=one, **options) for one in (fused_backend(), select_backend("numpy")))
    assert found.status == expected.status == "converged"
    assert found.n_iter == expected.n_iter
    assert_allclose(found.U, expected.U, **tolerance(np.float32))


def test_a_start_far_below_the_data_stays_in_the_range_of_half():
    problem = random_problem(6, n=6, p=4, dtype=np.float32)
    large = replace(
        problem, X=60000 * problem.X, gamma1=problem.gamma1 / 60000, gamma2=problem.gamma2 / 60000, mask=problem.mask
    )
    found = solve(large, tol=1e-3, backend=fused_backend(), U0=np.zeros_like(large.X))
    assert found.converged


def test_iterates_beyond_the_range_of_half_bring_no_infinity():
    problem = random_problem(6, n=6, p=4, dtype=np.float32)
    backend = fused_backend()
    state = backend.load(problem, step=1 / lipschitz(problem))
    for place in (state.U, state.Y):
        place.mul_(1e4)
    backend.run_on_device(state, 3, t=1.0, restart=True)
    assert np.isfinite(backend.unload(state)).all()


def test_results_are_the_same_bit_for_bit_in_every_run():
    problem = random_problem(4, n=12, p=9, dtype=np.float32)
    first, second = (run_steps(fused_backend(), problem) for _ in range(2))
    assert np.array_equal(first[0], second[0])
    assert np.array_equal(first[1], second[1])
    assert first[2] == second[2]
