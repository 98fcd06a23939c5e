"""Facts about solve: the optimum, its certificate, its symmetries, and early ends."""

import itertools
import os
import signal
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from frpcag import FRPCAG
from frpcag.backends import BACKENDS as REGISTERED
from frpcag.backends.numpy import NumpyBackend
from frpcag.data import make_low_rank_on_graphs
from frpcag.losses import LOSSES
from frpcag.problem import Problem, certificate, gradient, objective
from frpcag.solvers import SolveInterrupted, solve
from frpcag.solvers.options import SolveOptions
from frpcag.solvers.solve import run
from support.oracles import optimality_residual, random_optimum, random_problem, tolerance
from support.strategies import problems

BACKENDS = [
    pytest.param(
        name, marks=pytest.mark.skipif(name != "numpy" and find_spec(name) is None, reason=f"{name} is not installed")
    )
    for name in REGISTERED
]
KINDS = ("normalized", "combinatorial")
CASES = list(itertools.product(KINDS, LOSSES, ("both", "samples", "features")))
exact = {"tol": 1e-9, "max_iter": 20000}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("kind", "loss", "graphs"), CASES)
@pytest.mark.parametrize("seed", range(2))
def test_objective_agrees_with_cvxpy_and_the_gap_covers_the_true_one(backend, kind, loss, graphs, seed):
    options = {"kind": kind, "loss": loss, "graphs": graphs}
    problem, optimum = random_problem(seed, **options), random_optimum(seed, **options)
    solution = solve(problem, backend=backend, **exact)
    assert_allclose(solution.objective, optimum, rtol=1e-6)
    assert_allclose(solution.objective, objective(problem, solution.U), rtol=1e-12)
    loose = solve(problem, backend=backend, tol=1e-2)
    for found in (loose, solution):
        true_gap = (found.objective - optimum) / found.objective
        assert found.gap >= true_gap - 1e-9  # CVXPY's own accuracy


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(2))
def test_missing_entries_agree_with_cvxpy_and_the_gap_covers_the_true_one(backend, kind, loss, seed):
    options = {"kind": kind, "loss": loss, "mask": 0.4}
    problem, optimum = random_problem(seed, **options), random_optimum(seed, **options)
    solution = solve(problem, backend=backend, tol=1e-8, max_iter=20000)
    assert_allclose(solution.objective, optimum, rtol=1e-6)
    loose = solve(problem, backend=backend, tol=1e-2)
    assert loose.gap >= (loose.objective - optimum) / loose.objective - 1e-9


@given(problems(dtypes=(np.float64,)))
@settings(deadline=None, max_examples=25)
def test_solution_satisfies_the_optimality_condition(problem):
    solution = solve(problem, tol=1e-13, max_iter=5000, backend="numpy", callback=lambda at: at.change < 1e-28)
    assert optimality_residual(problem, solution.U) < 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss", ["l2", "huber"])
def test_solution_commutes_with_transpose(backend, loss):
    problem = random_problem(5, loss=loss)
    flipped = Problem(
        problem.X.T, problem.L2, problem.L1, problem.gamma2, problem.gamma1, loss=loss, huber_delta=problem.huber_delta
    )
    U, Ut = (solve(p, backend=backend, **exact).U for p in (problem, flipped))
    assert_allclose(Ut.T, U, atol=1e-3)  # a gap of 1e-9 leaves about its square root in U


@pytest.mark.parametrize("backend", BACKENDS)
def test_permuting_samples_permutes_the_iterates(backend):
    problem = random_problem(6)
    order = np.random.default_rng(0).permutation(len(problem.X))
    moved = Problem(problem.X[order], problem.L1[order][:, order], problem.L2, problem.gamma1, problem.gamma2)
    with pytest.warns(ConvergenceWarning):
        # The Lanczos estimate of the step depends on the order of the nodes in its last digits; the bound does not.
        U, Up = (solve(p, backend=backend, tol=0, max_iter=20, step="paper").U for p in (problem, moved))
    assert_allclose(Up, U[order], **tolerance(np.float64))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("c", [1e-3, 250.0])
def test_scaling_the_data_scales_the_solution_for_gammas_scaled_back(backend, c):
    problem = random_problem(7)
    scaled = Problem(c * problem.X, problem.L1, problem.L2, problem.gamma1 / c, problem.gamma2 / c)
    U, Uc = (solve(p, backend=backend, tol=1e-4).U for p in (problem, scaled))
    assert_allclose(Uc, c * U, rtol=1e-6, atol=1e-6 * c)


@pytest.mark.parametrize("backend", BACKENDS)
def test_weak_graphs_return_x_itself(backend):
    problem = random_problem(8)
    small = 0.9 / np.abs(gradient(problem, problem.X)).max()
    weak = Problem(problem.X, problem.L1, problem.L2, small * problem.gamma1, small * problem.gamma2)
    solution = solve(weak, backend=backend)
    assert solution.n_iter == 1
    assert np.array_equal(solution.U, problem.X)


def test_without_graphs_the_solution_is_x():
    X = np.random.default_rng(0).normal(size=(4, 3))
    assert np.array_equal(solve(Problem(X, None, None, 1.0, 1.0)).U, X)


def test_gap_stop_reaches_its_tolerance_and_reports_it_truthfully():
    problem = random_problem(9, n=40, p=30)
    solution = solve(problem, tol=1e-5)
    assert solution.converged
    assert solution.gap <= 1e-5
    assert_allclose(solution.gap, certificate(problem, solution.U).gap, atol=1e-12)


def test_restart_needs_fewer_steps_than_the_papers_algorithm():
    problem = random_problem(10, n=60, p=40)
    ours = solve(problem, tol=1e-6, max_iter=5000)
    papers = solve(problem, tol=1e-6, max_iter=5000, restart=False, step="paper")
    assert ours.n_iter < papers.n_iter


def test_change_stop_is_the_rule_of_algorithm_one():
    problem = random_problem(11)
    solution = solve(problem, stop="change", tol=1e-6, backend="numpy", restart=False, step="paper")
    # Algorithm 1 again, in the words of the paper.
    from frpcag.problem import prox
    from frpcag.solvers.fista import lipschitz

    lam, U, Y, t = 1 / lipschitz(problem, bound="paper"), problem.X, problem.X, 1.0
    for j in range(1, 500):  # noqa: B007
        U_next = prox(problem, Y - lam * gradient(problem, Y), lam)
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        Y_next = U_next + (t - 1) / t_next * (U_next - U)
        done = np.sum((Y_next - Y) ** 2) < 1e-6 * np.sum(Y**2)
        U, Y, t = U_next, Y_next, t_next
        if done:
            break
    assert solution.n_iter == j
    assert_allclose(solution.U, U, atol=1e-12)


def test_history_holds_every_certificate():
    solution = solve(random_problem(12, n=40, p=30), tol=1e-6, max_iter=5000)
    assert set(solution.history) == {"n_iter", "objective", "gap", "change"}
    assert solution.history["n_iter"][-1] == solution.n_iter
    assert np.all(np.diff(solution.history["n_iter"]) > 0)
    assert solution.history["gap"][-1] == solution.gap
    assert solution.history["objective"][-1] < solution.history["objective"][0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_warm_start_at_the_solution_ends_at_once(backend):
    problem = random_problem(13, n=40, p=30)
    first = solve(problem, tol=1e-5, max_iter=5000, backend=backend)
    start = first.U.copy()
    again = solve(problem, tol=2e-5, U0=first.U, backend=backend)
    assert again.n_iter <= 3 < first.n_iter
    assert np.array_equal(first.U, start)


@pytest.mark.parametrize("backend", BACKENDS)
def test_callback_stops_early_with_a_valid_certificate(backend):
    problem = random_problem(14, n=40, p=30)
    seen = []

    def stop_at_seven(progress):
        seen.append(progress)
        return progress.n_iter == 7

    solution = solve(problem, tol=1e-9, callback=stop_at_seven, backend=backend)
    assert [p.n_iter for p in seen] == list(range(1, 8))
    assert (solution.n_iter, solution.status, solution.converged) == (7, "stopped", False)
    assert_allclose(solution.gap, certificate(problem, solution.U).gap, atol=1e-9)


@pytest.fixture
def heard_ctrl_c():
    """Hear the signal of Ctrl-C also where the tests run in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard_ctrl_c")
@pytest.mark.parametrize("backend", BACKENDS)
def test_ctrl_c_stops_with_a_valid_certificate(backend):
    problem = random_problem(15, n=40, p=30)

    def press_ctrl_c(progress):
        if progress.n_iter == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(SolveInterrupted, match="interrupted after") as caught:
        solve(problem, tol=1e-9, callback=press_ctrl_c, backend=backend)
    solution = caught.value.solution
    assert solution.status == "interrupted"
    assert_allclose(solution.gap, certificate(problem, solution.U).gap, atol=1e-9)


class InterruptedBackend(NumpyBackend):
    """Hears Ctrl-C in a step: U has moved, the step does not count."""

    def __init__(self, whole_steps):
        super().__init__()
        self.left = whole_steps

    def step(self, state, *, momentum):
        scalars = super().step(state, momentum=momentum)
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return scalars


@pytest.mark.parametrize("whole_steps", [0, 1, 7])  # the first has a certificate, those up to the tenth have none
def test_ctrl_c_in_a_step_counts_those_before_it_and_gives_a_valid_certificate(whole_steps):
    problem = random_problem(15, n=40, p=30)
    with pytest.raises(SolveInterrupted, match=f"interrupted after {whole_steps} step") as caught:
        solve(problem, tol=1e-9, backend=InterruptedBackend(whole_steps))
    solution = caught.value.solution
    assert solution.n_iter == solution.history["n_iter"][-1] == whole_steps
    assert_allclose(solution.gap, certificate(problem, solution.U).gap, atol=1e-9)


def test_reaching_max_iter_warns_with_gap_change_and_tolerance():
    with pytest.warns(ConvergenceWarning, match=r"max_iter=3 steps: relative duality gap .*change.*tol=1e-09"):
        solution = solve(random_problem(16), tol=1e-9, max_iter=3)
    assert (solution.n_iter, solution.status) == (3, "max_iter")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "cuda"}, "backend='cuda' is unknown"),
        ({"stop": "never"}, "stop='never' is unknown"),
        ({"step": "long"}, "step='long' is unknown"),
        ({"tol": -1.0}, "tol=-1.0 must be a finite number >= 0"),
        ({"max_iter": 0}, "max_iter=0 must be an integer >= 1"),
        ({"n_jobs": 0}, "n_jobs=0 must be a non-zero integer or None"),
        ({"U0": np.zeros((2, 2))}, r"U0 has shape \(2, 2\)"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        solve(random_problem(0), **options)


@pytest.mark.parametrize("graphs", ["samples", "features"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_squared_problem_of_one_graph_has_its_closed_form(graphs, kind):
    problem = random_problem(17, loss="l2", graphs=graphs, kind=kind)
    if graphs == "samples":
        closed = np.linalg.solve(np.eye(12) + problem.gamma1 * problem.L1.toarray(), problem.X)
    else:
        closed = np.linalg.solve(np.eye(8) + problem.gamma2 * problem.L2.toarray(), problem.X.T).T
    solution = solve(problem, tol=1e-10)
    # The squared loss is strongly convex: the squared distance to the minimiser is no larger than the gap.
    assert np.square(solution.U - closed).sum() <= 1.01e-10 * solution.objective


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_certificates_far_from_the_target_are_few_and_no_step_is_far_beyond_it():
    problem = random_problem(5, n=30, p=12)
    found = solve(problem, tol=1e-9, backend="numpy").history["n_iter"]
    assert found[:2].tolist() == [10, 20]
    assert 10 < np.diff(found).max() <= 30
    assert solve(problem, tol=0.0, max_iter=int(0.7 * found[-1]), backend="numpy").gap > 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_only_a_start_near_the_optimum_is_certified_after_the_first_step():
    problem = random_problem(13, n=40, p=30)
    far = solve(problem, tol=1e-5, max_iter=5000)
    assert far.history["n_iter"][0] == 10
    assert solve(problem, tol=2e-5, U0=far.U).history["n_iter"].tolist() == [1]
    assert solve(problem, tol=1e-5, max_iter=1).history["n_iter"].tolist() == [1]  # the last step always is


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("missing", [None, 0.2])
def test_data_that_need_not_be_kept_are_dropped_and_the_solution_is_the_same(turned, missing):

    n, p = (20, 40) if turned else (40, 20)
    kept, given = (random_problem(3, n=n, p=p, mask=missing) for _ in range(2))
    expected = solve(kept, backend="numba")
    found = run(given, SolveOptions(backend="numba"), keep_X=False)
    np.testing.assert_array_equal(found.U, expected.U)
    assert found.gap == expected.gap
    assert np.isnan(given.X).all()
    assert given.X.strides == (0, 0)
    assert np.nansum(np.abs(kept.X)) > 0


def test_a_proof_that_fails_for_missing_entries_says_what_to_pass():
    X, _, _ = make_low_rank_on_graphs(60, 36, n_sample_clusters=3, outliers=0.01, random_state=0)
    X[7, ::2] += 9
    X[::2, 31] -= 9
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    with pytest.warns(ConvergenceWarning, match="change nothing any more.*Pass laplacian='combinatorial'"):
        FRPCAG(tol=1e-2).fit(X)
    assert FRPCAG(tol=1e-2, laplacian="combinatorial").fit(X).converged_
