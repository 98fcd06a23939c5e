"""Every engine gives the attributes of the NumPy reference, on every kind of input and option."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning

from frpcag import FRPCAG, DaskBackend
from support.engines import (
    BASE,
    CASES,
    ENGINES,
    OTHERS,
    REFERENCE,
    clusters,
    fit,
    fitted,
    graph_on_host,
    known,
    needs,
    on_host,
    over,
    refusal,
    results,
    tol_of,
)

UNITS = ("mean_", "center_", "scale_")  # in float64 whatever X is
ARRAYS = ("low_rank_", "sparse_", "embedding_", "components_", "singular_values_", *UNITS)
LARGE = ("low_rank_", "sparse_", "embedding_")
NUMBERS = {
    "gamma1_": float,
    "gamma2_": float,
    "n_iter_": int,
    "duality_gap_": float,
    "objective_": float,
    "n_refine_": int,
    "n_features_in_": int,
    "converged_": bool,
    "status_": str,
    "backend_": str,
}
NAMES = {*ARRAYS, *NUMBERS, "sample_graph_", "feature_graph_", "history_", "timings_"}

# Engines whose sample graph stays in row blocks, so that it has no matrices to compare.
GRAPH_IN_BLOCKS = {"dask"}

DISTANCES = "block graphs take distances in float32, which under- and overflow"
SQUARES = "the Gram matrix is summed without the unit that keeps squares in range (host: factorize._unit)"

# Engine, case and fact as regular expressions, and the cause.
HOLES: list[tuple[str, ...]] = []


def grid(fact, engines=OTHERS, cases=tuple(CASES)):
    """Parametrise a test over the engines and the cases that they do."""
    return pytest.mark.parametrize(
        ("engine", "case"),
        [
            pytest.param(engine, case, marks=[*needs(engine), *known(HOLES, engine, case, fact)], id=f"{engine}-{case}")
            for engine in engines
            for case in cases
            if ENGINES[engine].takes(CASES[case].X()) and refusal(engine, case) is None
        ],
    )


def rtol_of(case):
    """Return how far numbers of the same problem may lie apart: rounding, of graphs searched in float32 too."""
    return 1e-5 if CASES[case].X().dtype == np.float32 else 1e-6


def near(case):
    """Return how far two certified results may lie apart, relative to their size.

    With gap ``g`` and objective ``f`` a squared loss bounds their distance by the square root of ``f g``. For the other
    losses the minimiser need not be unique.
    """
    single = CASES[case].X().dtype == np.float32
    if CASES[case].params.get("loss") == "l2":
        return 3e-3 if single else 1e-4
    return 1e-2 if single else 1e-3


def distance(found, wanted):
    """Return the distance of two arrays, relative to the size of the second; units do not matter."""
    unit = np.abs(wanted).max() or 1.0
    found, wanted = (A.astype(np.float64) / unit for A in (found, wanted))
    return np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-300) if wanted.any() else np.abs(found).max()


def as_solved(arrays, A):
    """Return data in the units of the problem, in float64."""
    return (A.astype(np.float64) - arrays["center_"]) / arrays["scale_"]


@grid("attributes", ENGINES)
def test_attributes_have_the_names_types_shapes_and_dtypes_that_are_documented(engine, case):
    model, wanted, X = fitted(engine, case), fitted(REFERENCE, case), CASES[case].X()
    assert {name for name in vars(model) if name.endswith("_")} == NAMES
    assert {name: type(getattr(model, name)) for name in NUMBERS} == NUMBERS
    assert model.history_.keys() == wanted.history_.keys() == {"n_iter", "objective", "gap", "change"}
    assert model.timings_.keys() == wanted.timings_.keys()
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    for name in ARRAYS:
        value = getattr(model, name)
        library = ENGINES[engine].large if name in LARGE else ENGINES[engine].small
        assert type(value).__module__.partition(".")[0] == library, name
        assert tuple(value.shape) == getattr(wanted, name).shape, name
        assert results(engine, case)[name].dtype == (np.float64 if name in UNITS else dtype), name
    assert tuple(model.low_rank_.shape) == X.shape


@grid("gammas")
def test_centre_scale_and_gammas_equal_the_reference(engine, case):
    model, wanted = fitted(engine, case), fitted(REFERENCE, case)
    assert_allclose(results(engine, case)["center_"], wanted.center_, rtol=1e-12)
    assert_allclose(results(engine, case)["scale_"], wanted.scale_, rtol=1e-6)
    assert_allclose([model.gamma1_, model.gamma2_], [wanted.gamma1_, wanted.gamma2_], rtol=rtol_of(case))


@grid("graphs")
def test_graphs_equal_the_reference(engine, case):
    for name in ("sample_graph_", "feature_graph_"):
        graph, wanted = (getattr(fitted(e, case), name) for e in (engine, REFERENCE))
        assert (graph is None) == (wanted is None), name
        if wanted is None:
            continue
        for fact in ("n_nodes", "n_edges", "normalized", "metric"):
            assert getattr(graph, fact) == getattr(wanted, fact), (name, fact)
        assert (graph.sigma is None) == (wanted.sigma is None), name
        if wanted.sigma is not None:
            assert_allclose(graph.sigma, wanted.sigma, rtol=1e-6)
        largest = np.linalg.eigvalsh(wanted.laplacian.toarray())[-1]
        assert largest * (1 - 1e-6) <= graph.lmax <= 1.03 * largest, name  # an upper estimate, of some percent
        if name == "sample_graph_" and engine in GRAPH_IN_BLOCKS:
            continue
        graph = graph_on_host(graph)
        for matrix in ("weights", "laplacian"):
            A, B = getattr(graph, matrix), getattr(wanted, matrix)
            assert A.shape == B.shape
            assert_allclose(A.toarray(), B.toarray(), rtol=1e-5, atol=1e-12, err_msg=f"{name}.{matrix}")


@grid("certificate")
def test_objective_and_certificate_equal_the_reference(engine, case):
    model, wanted, tol = fitted(engine, case), fitted(REFERENCE, case), tol_of(CASES[case].X())
    # Both lie within their gap of the optimum; the rest is the rounding of the graphs.
    assert_allclose(model.objective_, wanted.objective_, rtol=2 * tol + rtol_of(case))
    assert (model.converged_, model.status_) == (True, "converged")
    assert (model.n_refine_, model.n_features_in_) == (wanted.n_refine_, CASES[case].X().shape[1])
    if CASES[case].params.get("stop") != "change":
        assert model.duality_gap_ <= tol
    # Rounding may move the step at which the gap is small enough.
    assert abs(model.n_iter_ - wanted.n_iter_) <= max(10, wanted.n_iter_ // 10)


@grid("objective", ENGINES)
def test_objective_is_that_of_the_low_rank_part(engine, case):
    model, graphs = fitted(engine, case), fitted(REFERENCE, case)
    arrays = results(engine, case)
    X, U = (as_solved(arrays, A) for A in (CASES[case].X(), arrays["low_rank_"]))
    unit = np.nanmax(np.abs(X)) or 1.0  # squares of the extremes leave the range
    X, U = X / unit, U / unit
    R, delta = np.abs(np.nan_to_num(X - U)), CASES[case].params.get("huber_delta", 1.0) / unit
    losses = {"l1": R, "l2": unit * R**2, "huber": np.where(delta < R, R - delta / 2, R**2 / (2 * delta))}
    losses["logcosh"] = delta * (np.logaddexp(R / delta, -R / delta) - np.log(2))
    value = losses[CASES[case].params.get("loss", "l1")].sum()
    if graphs.sample_graph_ is not None:
        value += unit * model.gamma1_ * np.sum(U * (graphs.sample_graph_.laplacian.toarray() @ U))
    if graphs.feature_graph_ is not None:
        value += unit * model.gamma2_ * np.sum(U * (U @ graphs.feature_graph_.laplacian.toarray()))
    assert_allclose(model.objective_ / unit, value, rtol=10 * rtol_of(case), atol=1e-12)


@grid("parts")
def test_low_rank_and_sparse_part_equal_the_reference(engine, case):
    found, wanted, X = results(engine, case), results(REFERENCE, case), CASES[case].X().astype(np.float64)
    assert distance(*(as_solved(arrays, arrays["low_rank_"]) for arrays in (found, wanted))) <= near(case)
    L, S = (found[name].astype(np.float64) for name in ("low_rank_", "sparse_"))
    seen, eps = ~np.isnan(X), np.finfo(found["low_rank_"].dtype).eps
    assert_allclose((L + S)[seen], X[seen], rtol=0, atol=4 * eps * np.abs(X[seen]).max())
    assert not S[~seen].any()


@grid("factors")
def test_components_and_embedding_equal_the_reference(engine, case):
    found, wanted = results(engine, case), results(REFERENCE, case)
    size = np.abs(wanted["low_rank_"]).max()  # a mean may be zero
    assert np.abs(found["mean_"] - wanted["mean_"]).max() <= near(case) * size
    assert distance(found["singular_values_"], wanted["singular_values_"]) <= near(case)
    # Directions turn more than values move.
    assert distance(found["embedding_"], wanted["embedding_"]) <= 10 * near(case)
    assert distance(found["components_"], wanted["components_"]) <= 10 * near(case)


@grid("projection", ENGINES)
def test_the_embedding_is_the_low_rank_part_in_orthonormal_directions(engine, case):
    arrays = results(engine, case)
    V, U = (arrays[name].astype(np.float64) for name in ("components_", "low_rank_"))
    wanted = (U - arrays["mean_"]) / arrays["scale_"] @ V.T
    single = CASES[case].X().dtype == np.float32
    assert distance(arrays["embedding_"], wanted) <= (1e-4 if single else 1e-9)
    if U.any():
        assert_allclose(V @ V.T, np.eye(len(V)), atol=1e-4 if single else 1e-6)
        assert (V[np.arange(len(V)), np.abs(V).argmax(axis=1)] > 0).all()


@grid("method", cases=("plain-float64-default", "plain-float64-given-adjacency", "given-graph"))
def test_graphs_say_how_they_were_found_as_the_reference_does(engine, case):
    for name in ("sample_graph_", "feature_graph_"):
        graph, wanted = (getattr(fitted(e, case), name) for e in (engine, REFERENCE))
        assert (graph.method, graph.metric) == (wanted.method, wanted.metric), name


@grid("lmax", cases=("plain-float64-default", "plain-float64-given-adjacency"))
def test_largest_eigenvalues_are_estimated_by_the_same_steps(engine, case):
    for name in ("sample_graph_", "feature_graph_"):
        graph, wanted = (getattr(fitted(e, case), name) for e in (engine, REFERENCE))
        assert_allclose(graph.lmax, wanted.lmax, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("engine", "case"),
    [
        pytest.param(engine, case, marks=needs(engine), id=f"{engine}-{case}")
        for engine in ENGINES
        for case in CASES
        if refusal(engine, case) is not None
    ],
)
def test_what_an_engine_does_not_do_it_refuses_in_words(engine, case):
    with pytest.raises(ValueError, match=refusal(engine, case)):
        fitted(engine, case)


@pytest.mark.parametrize("engine", over(ENGINES, "plain-float64-default", "steps", holes=HOLES))
def test_a_callback_sees_every_step_and_ends_the_fit(engine):
    def stopped(name):
        seen = []
        model = fit(name, clusters(), **BASE, callback=lambda step: seen.append(step.n_iter) or step.n_iter == 3)
        return model, seen

    (model, seen), (wanted, _) = stopped(engine), stopped(REFERENCE)
    assert seen == [1, 2, 3]
    assert (model.n_iter_, model.status_, model.converged_) == (3, "stopped", False)
    assert_allclose([model.objective_, model.duality_gap_], [wanted.objective_, wanted.duality_gap_], rtol=1e-6)


@pytest.mark.parametrize("engine", over(ENGINES))
@pytest.mark.parametrize(
    ("params", "kind", "words"),
    [
        ({"n_neighbors": 40}, UserWarning, "n_neighbors=40 is not smaller than n_samples=30; using 29"),
        ({"max_iter": 2}, ConvergenceWarning, "no convergence in max_iter=2 steps: relative duality gap 0.5, "),
    ],
    ids=["too-many-neighbours", "too-few-steps"],
)
def test_every_engine_warns_in_the_same_words(engine, params, kind, words):
    with pytest.warns(kind, match=words):
        model = fit(engine, clusters(), **BASE | params)
    assert model.converged_ == ("max_iter" not in params)


@pytest.mark.parametrize("engine", over(ENGINES))
@pytest.mark.parametrize("params", [{}, {"center": False, "n_refine": 0}], ids=["centred", "uncentred"])
def test_a_fit_leaves_the_callers_matrix_untouched(engine, params):
    X = clusters(missing=0.15)
    given = ENGINES[engine].load(X)
    FRPCAG(**BASE | params, backend=ENGINES[engine].backend).fit(given)
    assert np.array_equal(on_host(given), clusters(missing=0.15), equal_nan=True)


@pytest.mark.parametrize("engine", over(["numpy", "dask"]))
def test_a_dask_backend_object_gives_what_its_name_gives(engine):
    pytest.importorskip("dask")
    X, models = ENGINES[engine].load(clusters()), []
    for backend in ("dask", DaskBackend()):
        models.append(FRPCAG(**BASE, backend=backend).fit(X))
    assert [model.backend_ for model in models] == ["dask", "dask"]
    assert np.array_equal(*(on_host(model.low_rank_) for model in models))
