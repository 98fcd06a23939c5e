"""Facts about the maths of problem.py."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import check_grad, minimize_scalar

from frpcag.losses import LOSSES
from frpcag.problem import (
    Certificate,
    Problem,
    certificate,
    data_term,
    gradient,
    objective,
    prox,
    smooth_part,
    solution_box,
)
from frpcag.solvers.fista import lipschitz
from support.oracles import random_laplacian, random_optimum, random_problem
from support.strategies import problems


def test_smooth_part_is_the_trace_of_the_paper():
    problem = random_problem(0)
    U, L1, L2 = problem.X, problem.L1.toarray(), problem.L2.toarray()
    expected = problem.gamma1 * np.trace(U.T @ L1 @ U) + problem.gamma2 * np.trace(U @ L2 @ U.T)
    assert_allclose(smooth_part(problem, U), expected)


@pytest.mark.parametrize("graphs", ["both", "samples", "features"])
def test_gradient_is_the_derivative_of_the_smooth_part(graphs):
    problem = random_problem(1, n=4, p=3, graphs=graphs)

    def value(u):
        return smooth_part(problem, u.reshape(4, 3))

    def slope(u):
        return gradient(problem, u.reshape(4, 3)).ravel()

    assert check_grad(value, slope, np.random.default_rng(0).normal(size=12)) < 1e-5


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("step", [0.1, 1.0, 7.0])
def test_prox_minimises_its_definition(loss, step):
    for x, z in [(0.0, 3.0), (1.0, 0.9), (-2.0, 2.0), (0.5, 0.5)]:
        problem = Problem(np.array([[x]]), None, None, 0, 0, loss=loss, huber_delta=0.5)
        found = prox(problem, np.array([[z]]), step)[0, 0]
        best = minimize_scalar(
            lambda u, z=z, problem=problem: step * data_term(problem, np.array([[u]])) + (u - z) ** 2 / 2,
            bounds=(-10, 10),
            method="bounded",
            options={"xatol": 1e-9},
        ).x
        assert_allclose(found, best, atol=1e-5)


@given(problems(), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_prox_is_nonexpansive(problem, seed):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(2, *problem.X.shape)).astype(problem.X.dtype)
    moved = np.linalg.norm(prox(problem, A, 0.7) - prox(problem, B, 0.7))
    assert moved <= np.linalg.norm(A - B) * (1 + 1e-5)


@given(problems(dtypes=(np.float64,)))
@settings(deadline=None, max_examples=30)
def test_lipschitz_bounds_the_curvature(problem):
    zero = np.zeros((1, 1))
    L1 = problem.L1.toarray() if problem.L1 is not None else zero
    L2 = problem.L2.toarray() if problem.L2 is not None else zero
    curvature = 2 * problem.gamma1 * np.linalg.eigvalsh(L1)[-1] + 2 * problem.gamma2 * np.linalg.eigvalsh(L2)[-1]
    assert lipschitz(problem) >= curvature * (1 - 1e-12)
    assert lipschitz(problem) <= curvature * 1.1 + 1e-12


def test_lipschitz_of_the_paper_takes_two_for_each_eigenvalue():
    problem = random_problem(2)
    assert_allclose(lipschitz(problem, bound="paper"), 4 * problem.gamma1 + 4 * problem.gamma2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_the_dual_bound_never_exceeds_the_optimum(loss, seed):
    options = {"kind": "normalized", "loss": loss, "graphs": "both"}
    problem, optimum = random_problem(seed, **options), random_optimum(seed, **options)
    rng = np.random.default_rng(seed)
    for U in (problem.X, 0 * problem.X, rng.normal(size=problem.X.shape), np.full_like(problem.X, 3.0)):
        at = certificate(problem, U)
        assert at.bound <= optimum * (1 + 1e-9)
        assert at.objective >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_the_dual_bound_holds_with_missing_entries(kind, loss, seed):
    options = {"kind": kind, "loss": loss, "mask": 0.4}
    problem, optimum = random_problem(seed, **options), random_optimum(seed, **options)
    rng = np.random.default_rng(seed)
    for U in (np.nan_to_num(problem.X), rng.normal(size=problem.X.shape)):
        assert certificate(problem, U).bound <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_clipping_to_the_box_lowers_the_objective(kind):
    problem = random_problem(4, kind=kind, mask=0.4)
    lo, hi, rows, columns = solution_box(problem)
    units = np.outer(rows, columns)
    rng = np.random.default_rng(0)
    for scale in (1.0, 5.0, 20.0):
        U = scale * rng.normal(size=problem.X.shape)
        assert objective(problem, np.clip(U / units, lo, hi) * units) <= objective(problem, U)


def test_missing_entries_and_a_normalised_graph_need_its_null_vector():
    problem = random_problem(0, mask=0.3)
    with pytest.raises(ValueError, match="null1=None is not in the null space of L1"):
        Problem(problem.X, problem.L1, problem.L2, 1.0, 1.0)


def test_x_is_certified_optimal_when_its_gradient_stays_below_one():
    problem = random_problem(3)
    small = 0.99 / np.abs(gradient(problem, problem.X)).max()
    weak = Problem(problem.X, problem.L1, problem.L2, small * problem.gamma1, small * problem.gamma2)
    assert certificate(weak, problem.X).gap < 1e-12


def test_objective_ignores_entries_outside_the_mask():
    rng = np.random.default_rng(0)
    X, mask = rng.normal(size=(5, 4)), rng.random((5, 4)) < 0.6
    other = np.where(mask, X, 1e6)
    values = [objective(Problem(A, None, None, 0, 0, mask=mask), np.zeros((5, 4))) for A in (X, other)]
    assert_allclose(values, np.abs(X[mask]).sum())


def test_gap_of_a_zero_objective_is_zero():
    assert Certificate(0.0, 0.0).gap == 0


def test_problem_leaves_the_callers_array_untouched():
    X = np.ones((3, 2))
    X.flags.writeable = False
    problem = Problem(X, random_laplacian(np.random.default_rng(0), 3), None, 1, 0, mask=np.eye(3, 2) == 0)
    assert np.isnan(problem.X[0, 0])
    assert X[0, 0] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones(3)}, r"X has shape \(3,\)"),
        ({"X": np.array([[np.inf, 0], [0, 0]])}, "infinite"),
        ({"X": np.full((2, 2), np.nan)}, "no observed entry"),
        ({"L1": sp.eye_array(3)}, r"L1 has shape \(3, 3\); it must be \(2, 2\)"),
        ({"L2": sp.csr_array(np.array([[0.0, 1.0], [0.0, 0.0]]))}, "L2 is not symmetric"),
        ({"L1": sp.csr_array(np.array([[np.nan, 0.0], [0.0, 0.0]]))}, "L1 has entries that are not finite"),
        ({"gamma1": -1.0}, "gamma1=-1.0 must be a finite number >= 0"),
        ({"gamma2": np.nan}, "gamma2=nan"),
        ({"loss": "l3"}, "loss='l3' is unknown; choose one of 'l1', 'l2', 'huber', 'logcosh'"),
        ({"huber_delta": 0.0}, "huber_delta=0.0 must be a positive number"),
        ({"mask": np.ones((3, 2), dtype=bool)}, r"mask has shape \(3, 2\)"),
        ({"mask": np.ones((2, 2))}, "dtype float64; it must be a bool array"),
    ],
)
def test_bad_arguments_are_named(change, message):
    good = {"X": np.ones((2, 2)), "L1": None, "L2": None, "gamma1": 1.0, "gamma2": 1.0}
    with pytest.raises(ValueError, match=message):
        Problem(**{**good, **change})
