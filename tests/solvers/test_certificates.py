"""Facts about certificates: no gap is below the true one in exact fractions, and what is not proved is refused."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from frpcag import FRPCAG, Problem, certificate, solve
from frpcag.problem import objective
from solvers.test_solve import BACKENDS
from support.rationals import true_gap

PATH = np.array([[0.0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0]])
LOSSES = ("l1", "l2", "huber")  # that have optima in fractions
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def laplacian(W):
    return sp.csr_array(np.diag(W.sum(axis=1)) - W)


def drawn(seed, dtype):
    """Return data at any scale and level, and weights and gamma that are exact numbers."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.integers(0, 9, (4, 4)) / 8, 1) + np.triu(PATH)
    X = (
        rng.normal(size=(4, 3)) * 10 ** rng.uniform(-2, 6)
        if seed % 3
        else np.add.outer(np.arange(4), np.arange(3) + 1e4)
    )
    return X.astype(dtype), W + W.T, float(2.0 ** rng.integers(-4, 6))


@quiet
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_no_gap_is_below_the_true_one_in_exact_fractions(backend, loss, dtype):
    for seed in range(8):
        X, W, gamma = drawn(seed, dtype)
        gamma = gamma if loss == "l2" else gamma / float(2 ** np.round(np.log2(np.abs(X).max())))
        delta = float(2 ** np.round(np.log2(X.std())))
        problem = Problem(X, laplacian(W), None, gamma1=gamma, gamma2=0.0, loss=loss, huber_delta=delta)
        for found in (solve(problem, tol=tol, max_iter=300, backend=backend) for tol in (1e-14, 1e-3)):
            at, excess = true_gap(X, found.U, W, gamma, loss, delta)
            assert Fraction(found.gap) * at >= excess
            assert abs(Fraction(found.objective) - at) <= Fraction(found.gap + 1e-6) * at


@quiet
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss", ["l2", "huber"])
def test_squares_that_underflow_prove_nothing(backend, loss):
    X, W, _ = drawn(1, np.float64)
    X *= 2.0**-560
    delta = 2.0**-500
    problem = Problem(X, laplacian(W), None, gamma1=1.0, gamma2=0.0, loss=loss, huber_delta=delta)
    found = solve(problem, backend=backend, max_iter=1, tol=1e-9)
    at, excess = true_gap(X, found.U, W, 1.0, loss, delta)
    assert Fraction(found.gap) * at >= excess > 0
    assert Fraction(certificate(problem, found.U).gap) * at >= excess


def test_row_sums_below_zero_by_rounding_are_repaired_beside_a_held_piece():
    e = 2.0**-24
    L = np.array([[2, -1, 0, 0], [-1, 1, 0, 0], [0, 0, 1 - e, -1], [0, 0, -1, 1 - e]])
    problem = Problem(np.array([[0.0], [0.0], [1.0], [-1.0]]), sp.csr_array(L), None, gamma1=1e8, gamma2=0.0)
    far = np.array([[0.0], [0.0], [1e3], [1e3]])
    assert objective(problem, far) >= solve(problem, tol=1e-6).objective


def with_a_negative_eigenvalue(n):
    """Return the Laplacian of a ring of which one node, all but alone, is pulled away from zero."""
    W = np.roll(np.eye(n), 1, axis=1)
    L = (np.diag(np.full(n, 2.0)) - W - W.T).astype(float)
    L[0], L[:, 0] = 0, 0
    L[0, 0], L[1, 2], L[2, 1] = -1e-3, 1e-9, 1e-9
    return sp.csr_array(L)


@pytest.mark.parametrize("n", [10, 400, 2100])
def test_a_negative_eigenvalue_is_refused_at_any_size(n):
    problem = Problem(np.random.default_rng(0).normal(size=(n, 2)), with_a_negative_eigenvalue(n), None, 0.4, 0.0)
    with pytest.raises(ValueError, match=r"L1 has a negative eigenvalue, -0\.001 or lower"):
        solve(problem)


def test_a_certificate_of_an_indefinite_problem_has_no_bound():
    problem = Problem(np.array([[1.0], [2.0]]), sp.csr_array([[1.0, 2.0], [2.0, 1.0]]), None, gamma1=1.0, gamma2=0.0)
    at = certificate(problem, np.array([[0.1], [0.2]]))
    assert (at.gap, at.bound) == (1.0, -np.inf)


def large_graph(sign):
    """Return a normalised Laplacian without its null vector; or, with a sign, one of positive entries, too."""
    n = 2100
    i, w = np.arange(n), np.linspace(1, 2, n)
    W = sum(sp.csr_array((w, (i, np.roll(i, shift))), shape=(n, n)) for shift in (1, 30, 500))
    W = sp.csr_array(W + W.T)
    s = sp.diags_array(1 / np.sqrt(W.sum(axis=1)))
    odd = sp.csr_array(([sign * 1e-3] * 2, ([0, 2], [2, 0])), shape=(n, n))
    return sp.csr_array((1.002 if sign else 1.0) * sp.eye_array(n) - s @ W @ s - odd)


def test_a_large_normalised_laplacian_needs_no_null_vector():
    X = np.random.default_rng(0).normal(size=(2100, 2))
    assert solve(Problem(X, large_graph(0), None, gamma1=1.0, gamma2=0.0)).gap <= 1e-3


def test_a_large_matrix_without_a_proof_is_refused_with_the_way_out():
    problem = Problem(np.random.default_rng(0).normal(size=(2100, 2)), large_graph(-1), None, gamma1=1.0, gamma2=0.0)
    with pytest.raises(ValueError, match=r"L1 cannot be proved .* and 2100 connected nodes; .* with null1"):
        solve(problem)
    assert certificate(problem, problem.X).gap == 1.0


@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_of_float32_is_summed_in_float64(loss):
    X, W, _ = drawn(3, np.float32)
    problem = Problem(X, laplacian(W), None, gamma1=0.25, gamma2=0.0, loss=loss)
    U = (X * np.float32(1.1)).astype(np.float32)
    at, _ = true_gap(X, U, W, 0.25, loss, 1.0)
    assert objective(problem, U) == pytest.approx(float(at), rel=1e-12)


@quiet
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("backend", ["numpy", "numba", "torch"])
def test_the_objective_is_that_of_the_result_after_rounding_to_float32(backend, loss):
    if backend != "numpy":
        pytest.importorskip(backend)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, W, _ = drawn(1, np.float64)
        X = (rng.normal(size=X.shape) + 1e6 * rng.normal(size=3)).astype(np.float32)
        problem = Problem(X, laplacian(W), None, gamma1=4.0, gamma2=0.0, loss=loss, huber_delta=0.5)
        found = solve(problem, tol=1e-6, max_iter=300, backend=backend)
        at, excess = true_gap(X, found.U, W, 4.0, loss, 0.5)
        assert found.objective == pytest.approx(float(at), rel=1e-6)
        assert Fraction(found.gap) * at >= excess


@quiet
@pytest.mark.parametrize("loss", LOSSES)
def test_the_objective_of_a_fit_is_that_of_its_clean_part(loss):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(4, 3)) + 2.0**20).astype(np.float32)
    model = FRPCAG(
        1,
        gamma1=4.0,
        n_neighbors=3,
        sample_graph=sp.csr_array(PATH),
        feature_graph=None,
        laplacian="combinatorial",
        loss=loss,
        tol=1e-6,
    ).fit(X)
    at, excess = true_gap(X, model.low_rank_, PATH, 4.0, loss, 1.0)  # without a level that no term sees
    assert model.objective_ == pytest.approx(float(at), rel=1e-6)
    assert Fraction(model.duality_gap_) * at >= excess
