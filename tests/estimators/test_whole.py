"""Facts about fits that fail or are interrupted: results appear together or not at all."""

import signal

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from frpcag import FRPCAG, FRPCAGCV, BackgroundSeparator, FRPCAGClustering, RobustGraphCleaner, RobustGraphImputer
from frpcag.problem import Problem, certificate

X = np.random.default_rng(0).normal(size=(60, 6))


def fail(progress):
    raise MemoryError("the caller's own")


def press_ctrl_c(progress):
    if progress.n_iter == 3:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def default_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


MODELS = {
    "FRPCAG": lambda callback: FRPCAG(callback=callback, tol=1e-9, max_iter=50_000),
    "clustering": lambda callback: FRPCAGClustering(2, FRPCAG(callback=callback, tol=1e-9, max_iter=50_000)),
    "cv": lambda callback: FRPCAGCV(FRPCAG(callback=callback, tol=1e-9), multiples1=(1.0,), multiples2=(1.0,)),
    "cleaner": lambda callback: RobustGraphCleaner(FRPCAG(callback=callback, tol=1e-9, max_iter=50_000)),
    "imputer": lambda callback: RobustGraphImputer(FRPCAG(callback=callback, tol=1e-9, max_iter=50_000)),
}


def results(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_fails_leaves_the_model_as_it_was(name):
    model = MODELS[name](None).fit(X)
    before = results(model)
    params = {"callback": fail} if name == "FRPCAG" else {"estimator__callback": fail}
    with pytest.raises(MemoryError, match="the caller's own"):
        model.set_params(**params).fit(X + 100)
    after = results(model)
    assert before.keys() == after.keys()
    assert all(before[key] is after[key] for key in before)


@pytest.mark.parametrize("name", MODELS)
def test_a_first_fit_that_fails_leaves_no_result(name):
    model = MODELS[name](fail)
    with pytest.raises(MemoryError):
        model.fit(X)
    assert results(model) == {}


def test_results_of_an_earlier_fit_do_not_outlive_the_next():
    pd = pytest.importorskip("pandas")
    model = FRPCAG().fit(pd.DataFrame(X, columns=list("abcdef")))
    assert not hasattr(model.fit(X), "feature_names_in_")


@pytest.mark.parametrize("name", MODELS)
def test_ctrl_c_reaches_the_caller_after_the_certified_result_is_stored(name):
    model = MODELS[name](press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    inner = model if name == "FRPCAG" else model.estimator_
    assert inner.status_ == "interrupted"
    graphs = inner.sample_graph_, inner.feature_graph_
    problem = Problem(X - inner.center_, *(graph.laplacian for graph in graphs), inner.gamma1_, inner.gamma2_)
    at = certificate(problem, inner.low_rank_ - inner.center_)
    assert inner.duality_gap_ == pytest.approx(at.gap, abs=1e-9)
    assert 0 < inner.duality_gap_ < 1
    if name == "clustering":
        assert model.labels_.shape == (60,)
    if name == "cleaner":
        assert_array_equal(model.cleaned_, X)


def test_a_loop_of_fits_ends_at_ctrl_c():
    fits = (FRPCAG(callback=press_ctrl_c, tol=1e-9).fit(X) for _ in range(3))
    with pytest.raises(KeyboardInterrupt):
        list(fits)


def test_a_failed_refit_of_a_separator_keeps_the_frozen_background():
    frames = np.random.default_rng(0).integers(0, 255, size=(8, 12, 10)).astype(np.uint8)
    model = BackgroundSeparator().fit(frames)
    before = model.background(frames)
    with pytest.raises(MemoryError):
        model.set_params(callback=fail).fit(255 - frames)
    assert_array_equal(model.background(frames), before)


def test_parameters_of_the_model_inside_are_set_from_outside():
    model = clone(FRPCAGClustering(3, FRPCAG())).set_params(estimator__gamma1=2.0)
    assert model.estimator.gamma1 == 2.0
    assert model.fit(X).estimator_.gamma1_ == 2.0
