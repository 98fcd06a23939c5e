"""Facts about every loss of the registry: prox and dual by their definitions, and the same in compiled kernels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

from frpcag import FRPCAG, Problem, solve
from frpcag.losses import LOSSES
from frpcag.problem import certificate, check_numbers
from support.oracles import random_optimum, random_problem

each_loss = pytest.mark.parametrize("loss", LOSSES)
DELTAS = st.floats(1e-3, 1e3)
SLOPES = st.floats(-1, 1)


def values(loss, residuals, delta):
    return LOSSES[loss].value(np.abs(np.asarray(residuals, float)), delta, np)


@each_loss
@given(st.floats(-50, 50), st.floats(1e-3, 1e3), DELTAS)
@settings(deadline=None, max_examples=60)
def test_prox_is_the_minimiser_of_its_definition(loss, d, step, delta):
    found = LOSSES[loss].prox(np.array(d), np.array(0.0), LOSSES[loss].numbers(step, delta), np)

    def aim(u):
        return float(values(loss, u, delta)) + (u - d) ** 2 / (2 * step)

    best = minimize_scalar(aim, bounds=(min(d, 0.0) - 1e-3, max(d, 0.0) + 1e-3), method="bounded").fun
    assert aim(float(found)) <= best + 1e-12 * (1 + aim(0.0))


@each_loss
@given(SLOPES, st.floats(0, 1), DELTAS)
@settings(deadline=None, max_examples=60)
def test_the_dual_bounds_the_conjugate_at_every_smaller_slope(loss, v, a, delta):
    """Fenchel and Young: ``phi*(a v) >= a v r - phi(r)`` for all r, and a**2 times the dual is no less."""
    r = np.sign(v) * delta * np.concatenate([[0], np.geomspace(1e-6, 60, 400)])
    least = (a * v * r - values(loss, r, delta)).max()
    total = float(LOSSES[loss].dual(np.array([v]), np).sum())
    bound = a * a * LOSSES[loss].conjugate(total, 0.0, 1, abs(v), delta)
    assert bound >= least - 1e-12 * delta


@each_loss
@given(SLOPES, DELTAS)
@settings(deadline=None, max_examples=60)
def test_the_dual_is_the_conjugate_itself(loss, v, delta):
    """So that the gap of a solution is zero."""
    v = 0.999 * v
    r = np.sign(v) * np.linspace(0, 6 * delta if LOSSES[loss].DEGREE == 1 else 1, 20001)
    most = (v * r - values(loss, r, delta)).max()
    total = float(LOSSES[loss].dual(np.array([v]), np).sum())
    assert LOSSES[loss].conjugate(total, 0.0, 1, abs(v), delta) <= most + 1e-6 * delta


@each_loss
@given(st.floats(0, 1.5), st.floats(0, 1e-3), DELTAS)
@settings(deadline=None, max_examples=60)
def test_the_conjugate_of_slopes_that_are_off_is_no_smaller(loss, v, slip, delta):
    own = LOSSES[loss]
    here, there = (float(own.dual(np.array([x]), np).sum()) for x in (v, v + slip))
    exact = own.conjugate(there, 0.0, 1, v + slip, delta)
    assert own.conjugate(here, slip, 1, v, delta) >= exact * (1 - 1e-12)


@each_loss
def test_a_unit_of_the_data_scales_the_loss_by_its_degree(loss):
    r, unit = np.linspace(0, 5, 7), 4.0
    assert_allclose(values(loss, unit * r, unit * 0.5), unit ** LOSSES[loss].DEGREE * values(loss, r, 0.5))


@each_loss
def test_no_slope_is_steeper_than_declared(loss):
    r = np.linspace(0, 100, 1001)
    assert (np.diff(values(loss, r, 0.5)) <= LOSSES[loss].STEEPEST * 0.1 * (1 + 1e-9)).all()


@each_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_compile_the_same_formulas(loss, dtype):
    pytest.importorskip("numba", reason="Numba is not installed")
    from frpcag.backends.numba.linked_rows import kernel_for

    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(2, 5, 7)).astype(dtype)
    ones, empty = np.ones(5, dtype), (np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, dtype))
    numbers = np.tile(np.array(LOSSES[loss].numbers(0.7, 0.5), dtype), (5, 1))
    out = np.empty_like(X)
    kernel_for(loss)(X, Z, *empty, ones, 0 * ones, 0 * ones, ones, numbers, 1, out)
    expected = LOSSES[loss].prox(Z, X, tuple(numbers[0]), np)
    assert_allclose(out, expected, rtol=20 * np.finfo(dtype).eps, atol=20 * np.finfo(dtype).eps)


@each_loss
@pytest.mark.parametrize("mask", [None, 0.3])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_the_gap_falls_to_nothing_and_never_below_the_true_one(loss, kind, mask):
    options = {"loss": loss, "kind": kind, "mask": mask}
    problem, optimum = random_problem(3, **options), random_optimum(3, **options)
    found = solve(problem, tol=1e-7, max_iter=20000)
    assert found.gap <= 1e-7
    assert found.objective == pytest.approx(optimum, rel=1e-6)
    for U in (np.nan_to_num(problem.X), found.U, found.U + 1e-3):
        at = certificate(problem, U)
        assert at.gap >= (at.objective - optimum) / at.objective - 1e-9


@pytest.mark.parametrize("r", [1e-150, 1e-9, 0.3, 1.0, 40.0, 1e200])
def test_the_smooth_loss_keeps_its_digits_at_every_size(r):
    mpmath = pytest.importorskip("mpmath", reason="mpmath is not installed")
    with mpmath.workdps(400):
        y = mpmath.mpf(r) / 2
        exact = y * y / 2 if r < 1e-100 else mpmath.log(mpmath.cosh(y)) if r < 1e3 else y - mpmath.log(2)
        assert float(values("logcosh", r, 2.0) / (2 * exact) - 1) == pytest.approx(0, abs=1e-15)


@each_loss
@pytest.mark.parametrize("documented", [Problem, FRPCAG])
def test_the_docs_name_every_loss(loss, documented):
    assert f'"{loss}"' in next(line for line in documented.__doc__.splitlines() if line.strip().startswith("loss :"))


@each_loss
def test_the_triton_kernels_refuse_what_they_do_not_hold(loss):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    from frpcag.backends.torch.backend import TRITON_LOSSES, TorchBackend

    problem = random_problem(0, loss=loss)
    if loss not in TRITON_LOSSES:
        with pytest.raises(ValueError, match=f"loss={loss!r} has no Triton kernel; .* pass fused=False"):
            TorchBackend(fused=True).load(problem, step=1.0)


def test_an_unknown_loss_is_refused_with_the_names_of_all():
    with pytest.raises(ValueError, match=f"loss='l3' is unknown; choose one of {', '.join(map(repr, LOSSES))}"):
        check_numbers("l3", 1.0)
    with pytest.raises(ValueError, match="loss='l3' is unknown"):
        Problem(np.zeros((2, 2)), None, None, 1.0, 1.0, loss="l3")


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_hubers_function_is_in_range_where_its_argument_is(scale):
    assert LOSSES["huber"].value(np.array([0.5 * scale, 3 * scale]), scale, np).tolist() == [0.125 * scale, 2.5 * scale]
