"""Every backend takes the same steps as the NumPy reference."""

import subprocess
import sys
import threading
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.backends import BACKENDS, select_backend
from frpcag.losses import LOSSES
from frpcag.problem import Problem
from frpcag.solvers import solve
from frpcag.solvers.fista import lipschitz
from support.oracles import random_laplacian, random_problem, tolerance
from support.strategies import problems

OTHERS = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"{name} is not installed"))
    for name in BACKENDS
    if name != "numpy"
]


def run_steps(name, problem, *, n_steps=15, n_jobs=None, U0=None):
    backend = select_backend(name, n_jobs=n_jobs)
    beta = lipschitz(problem)
    state = backend.load(problem, step=1 / beta if beta > 0 else 1.0, U0=U0)
    scalars = [backend.step(state, momentum=k / (k + 3)) for k in range(n_steps)]
    at = backend.gap(state)
    return backend.unload(state), np.array(scalars), at


@pytest.mark.parametrize("name", OTHERS)
@given(problem=problems())
@settings(deadline=None, max_examples=60)
def test_iterates_and_certificate_equal_the_reference(name, problem):
    U, scalars, at = run_steps("numpy", problem)
    found = run_steps(name, problem)
    near = tolerance(problem.X.dtype)
    scale = max(np.abs(problem.X).max(), 1.0)
    assert_allclose(found[0] / scale, U / scale, **near)
    assert_allclose(found[1], scalars, rtol=1e-3 if problem.X.dtype == np.float32 else 1e-8, atol=near["atol"])
    assert_allclose(found[2], at, rtol=1e-4 if problem.X.dtype == np.float32 else 1e-9, atol=near["atol"])
    assert found[0].dtype == problem.X.dtype


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_missing_entries_move_as_in_the_reference(name, loss, kind):
    problem = random_problem(1, n=70, p=20, loss=loss, kind=kind, mask=0.3)
    U, _, at = run_steps("numpy", problem)
    U_found, _, at_found = run_steps(name, problem)
    assert_allclose(U_found, U, **tolerance(np.float64))
    assert_allclose(at_found, at, rtol=1e-9)


@pytest.mark.parametrize("name", OTHERS)
def test_shapes_beyond_one_tile_equal_the_reference(name):
    rng = np.random.default_rng(0)
    n, p = 333, 150
    X = rng.normal(size=(n, p)).astype(np.float32)
    problem = Problem(X, random_laplacian(rng, n, density=0.05), random_laplacian(rng, p, density=0.1), 0.7, 0.4)
    U0 = rng.normal(size=(n, p)).astype(np.float32)
    assert_allclose(run_steps(name, problem, U0=U0)[0], run_steps("numpy", problem, U0=U0)[0], **tolerance(np.float32))


def large_problem(dtype=np.float32):
    """Return a problem that is worth several threads."""
    rng = np.random.default_rng(1)
    n, p = 1200, 150
    X = rng.normal(size=(n, p)).astype(dtype)
    L1, L2 = random_laplacian(rng, n, density=0.015), random_laplacian(rng, p, density=0.1)
    return Problem(X, L1, L2, 0.7, 0.4)


@contextmanager
def numba_threads(n_threads):
    yield {"n_jobs": n_threads}


@contextmanager
def torch_threads(n_threads):
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    yield {}
    torch.set_num_threads(before)


@contextmanager
def dask_threads(n_threads):
    from distributed import Client, LocalCluster

    options = {"processes": False, "n_workers": 1, "threads_per_worker": n_threads, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster):
        yield {}


@pytest.mark.parametrize("name", OTHERS)
def test_results_do_not_depend_on_the_number_of_threads(name):
    # What each backend computes with: threads of its own, PyTorch's, or those of a worker. `n_jobs` reaches Numba only.
    threads, counts = {
        "numba": (numba_threads, (2, 3, 7)),
        "torch": (torch_threads, (2, 3, 7)),
        "dask": (dask_threads, (2, 4)),
    }[name]
    problems = [large_problem(dtype) for dtype in (np.float32, np.float64)]

    def runs(n_threads):
        with threads(n_threads) as options:
            return [run_steps(name, problem, **options) for problem in problems]

    # PyTorch adds up the parts of its threads: the sums, not the iterates, move in the last bit of float64.
    rounding = 1e-10 if name == "torch" else 0
    one = runs(1)
    for n_threads in counts:
        for (U, scalars, at), (U_one, scalars_one, at_one) in zip(runs(n_threads), one, strict=True):
            assert_array_equal(U, U_one)
            assert_allclose(scalars, scalars_one, rtol=rounding, atol=0)
            assert_allclose(at, at_one, rtol=rounding, atol=0)


def test_numba_computes_a_large_problem_in_threads():
    problem = large_problem()
    for n_jobs in (1, 3):
        backend = select_backend("numba", n_jobs=n_jobs)
        state = backend.load(problem, step=1 / lipschitz(problem))
        before = threading.active_count()
        backend.step(state, momentum=0.0)
        assert (threading.active_count() > before) == (n_jobs > 1)


def test_solving_leaves_the_callers_arrays_untouched():
    problem = large_problem()
    X, U0 = problem.X.copy(), problem.X.copy()
    X.flags.writeable = U0.flags.writeable = False
    frozen = Problem(X, problem.L1, problem.L2, 0.7, 0.4)
    before = [problem.L1.data.copy(), problem.L2.data.copy()]
    solve(frozen, tol=1e-2, U0=U0)
    assert np.array_equal(X, problem.X)
    assert np.array_equal(problem.L1.data, before[0])
    assert np.array_equal(problem.L2.data, before[1])


def in_new_process(code, **env):
    import os

    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env={**os.environ, **env}, capture_output=True, text=True
    )


SMALL_FIT = """
import numpy as np
from frpcag import FRPCAG
print(FRPCAG().fit(np.random.default_rng(0).normal(size=(40, 12))).backend_)
"""


def test_numba_works_where_no_cache_folder_is_writable(tmp_path):
    # A regular file in place of the folder: not even root can write a cache below it.
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = in_new_process(SMALL_FIT, NUMBA_CACHE_DIR=str(blocked / "cache"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "numba"
