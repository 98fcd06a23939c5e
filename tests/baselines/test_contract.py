"""Facts that hold for every comparison model in the registry."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from frpcag import build_graph
from frpcag.baselines import BASELINES, PREPROCESSING, preprocess

# Steps enough for the small data here: models that run out of them warn.
ENOUGH = {"NMF": {"max_iter": 2000}, "GNMF": {"max_iter": 2000}}
BASIS = pytest.mark.parametrize("name", [name for name, model in BASELINES.items() if hasattr(model, "transform")])
ALL = pytest.mark.parametrize("name", BASELINES)
WITH_GRAPH = pytest.mark.parametrize("name", [name for name, model in BASELINES.items() if model.uses_graph])
NONNEGATIVE = pytest.mark.parametrize("name", [name for name, model in BASELINES.items() if model.nonnegative])
NESTED = pytest.mark.parametrize("name", [name for name, model in BASELINES.items() if model.nested])


def make(name, **params):
    model = BASELINES[name](**ENOUGH.get(name, {}), **params)
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def points(n=40, p=7, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).random((n, p)).astype(dtype)


@parametrize_with_checks([make(name) for name in BASELINES])
@pytest.mark.filterwarnings("ignore:n_neighbors=10 is not smaller")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def test_the_registry_holds_the_ten_models_in_the_order_of_the_paper():
    assert list(BASELINES) == ["k-means", "NCut", "LE", "PCA", "GLPCA", "MMF", "NMF", "GNMF", "RPCA", "RPCAG"]
    assert {model.preprocess for model in BASELINES.values()} == set(PREPROCESSING)


@ALL
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_embedding_has_a_finite_row_for_every_sample_in_the_dtype_of_the_data(name, dtype):
    X = points(dtype=dtype)
    before = X.copy()
    model = make(name)
    embedding = model.fit(X).embedding_
    assert embedding.shape == (40, {"k-means": 7}.get(name, getattr(model, "n_components", embedding.shape[1])))
    assert embedding.dtype == dtype
    assert np.isfinite(embedding).all()
    assert_array_equal(X, before)


def test_every_model_but_those_of_a_graph_alone_maps_new_rows():
    assert {name for name in BASELINES if not hasattr(BASELINES[name], "transform")} == {"NCut", "LE", "GLPCA"}


@BASIS
def test_a_model_with_a_basis_stands_in_a_pipeline(name):
    X, new = points(), points(n=5, seed=1)
    pipeline = make_pipeline(make(name), KMeans(3, n_init=1, random_state=0)).fit(X)
    assert set(pipeline.predict(new)) <= {0, 1, 2}
    model = pipeline[0]
    rows = model.transform(new)
    assert rows.shape == (5, model.embedding_.shape[1])
    assert_allclose(rows[:1], model.transform(new[:1]), atol=1e-6)


@pytest.mark.parametrize("name", ["MMF", "RPCA", "RPCAG"])
def test_rows_of_the_basis_come_back(name):
    model = make(name).fit(points())
    Z = points(n=6, p=len(model.components_), seed=2)
    assert_allclose(model.transform(Z @ model.components_), Z, atol=1e-10)


@ALL
def test_a_seed_gives_the_same_embedding_again(name):
    X = points()
    model = make(name)
    assert_array_equal(model.fit(X).embedding_, clone(model).fit(X).embedding_)


@ALL
def test_the_embedding_does_not_share_memory_with_the_data(name):
    X = points()
    assert not np.shares_memory(make(name).fit(X).embedding_, X)


@NESTED
def test_fewer_components_are_the_first_ones_of_a_larger_fit(name):
    X = points() - 0.5
    large = make(name, n_components=6).fit(X)
    for c in (1, 3, 6):
        assert_allclose(large.first_components(c), make(name, n_components=c).fit(X).embedding_, atol=1e-8)


@ALL
def test_first_components_are_refused_where_there_are_none(name):
    model = make(name).fit(points())
    limit = model.embedding_.shape[1]
    with pytest.raises(ValueError, match=f"n_components={limit + 1}"):
        model.first_components(limit + 1)


@WITH_GRAPH
@pytest.mark.parametrize("kind", ["adjacency", "graph", "transformer"])
def test_a_given_graph_is_used(name, kind):
    X = points()
    other = build_graph(points(seed=1), n_neighbors=4)
    given = {
        "adjacency": other.weights,
        "graph": other,
        "transformer": KNeighborsTransformer(n_neighbors=4, mode="connectivity"),
    }[kind]
    model = make(name, sample_graph=given).fit(X)
    if kind == "transformer":
        assert model.sample_graph_.method == "transformer"
    else:
        assert abs(model.sample_graph_.weights - other.weights).max() == 0
        assert_allclose(model.embedding_, make(name, sample_graph=sp.csr_array(other.weights)).fit(X).embedding_)


@WITH_GRAPH
def test_too_many_neighbours_are_lowered_with_a_warning(name):
    with pytest.warns(UserWarning, match="n_neighbors=10 is not smaller than n_samples=8; using 7"):
        assert make(name).fit(points(n=8)).embedding_.shape[0] == 8


@NONNEGATIVE
def test_negative_data_are_refused(name):
    X = points()
    X[2, 3] = -0.25
    with pytest.raises(ValueError, match=r"lowest entry of X is -0\.25"):
        make(name).fit(X)


@ALL
def test_missing_values_are_refused(name):
    X = points()
    X[2, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        make(name).fit(X)


@pytest.mark.parametrize("name", [name for name in BASELINES if hasattr(BASELINES[name](), "n_components")])
@pytest.mark.parametrize("bad", [0, 1.5, True, 41])
def test_impossible_numbers_of_components_are_refused(name, bad):
    with pytest.raises(ValueError, match=f"n_components={bad}"):
        make(name, n_components=bad).fit(points())


def test_standardised_features_have_mean_zero_and_deviation_one_unless_constant():
    X = points() * 5 + 3
    X[:, 2] = 0.1
    out = preprocess(X, "standardize")
    spread = np.ones(7)
    spread[2] = 0
    assert_allclose(out.mean(axis=0), 0, atol=1e-12)
    assert_allclose(out.std(axis=0), spread, atol=1e-12)


@pytest.mark.parametrize("how", ["unit", "standardize+unit"])
def test_unit_samples_have_length_one_unless_zero(how):
    X = points(dtype=np.float32)
    if how == "unit":
        X[3] = 0
    out = preprocess(X, how)
    lengths = np.linalg.norm(out, axis=1)
    assert out.dtype == np.float32
    assert_allclose(lengths, [0 if how == "unit" and i == 3 else 1 for i in range(40)], rtol=1e-6)


def test_preprocessing_leaves_its_input_and_refuses_unknown_words():
    X = points()
    before = X.copy()
    for how in PREPROCESSING:
        assert not np.shares_memory(preprocess(X, how), X)
    assert_array_equal(X, before)
    with pytest.raises(ValueError, match="how='whiten'"):
        preprocess(X, "whiten")
