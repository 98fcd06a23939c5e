"""Facts about FRPCAG as users meet it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from frpcag import FRPCAG, FRPCAGCV, FRPCAGClustering, Problem, RobustGraphImputer, build_graph
from frpcag.graphs import graph_from_weights
from frpcag.problem import certificate


@parametrize_with_checks(
    [
        FRPCAG(),
        FRPCAGClustering(n_clusters=3, n_init=1),
        FRPCAGCV(multiples1=(0.1, 1.0), multiples2=(0.1,)),
        RobustGraphImputer(FRPCAG()),  # by default it searches gammas, as the one before does
    ]
)
@pytest.mark.filterwarnings("ignore:n_neighbors=10 is not smaller")
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


def corrupted(n=120, p=30, seed=0, dtype=np.float64):
    """Three clusters of noisy rows, 10 % of the entries hit by gross errors."""
    rng = np.random.default_rng(seed)
    clean = np.repeat(3 * rng.normal(size=(3, p)), n // 3, axis=0)
    X = clean + 0.1 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.1] += 6
    return X.astype(dtype), clean.astype(dtype), np.repeat(np.arange(3), n // 3)


def test_low_rank_and_sparse_part_add_up_to_x():
    X, _, _ = corrupted()
    model = FRPCAG().fit(X)
    assert_allclose(model.low_rank_ + model.sparse_, X, atol=1e-12)


def test_low_rank_is_nearer_to_the_clean_data_than_x_and_pca():
    X, clean, _ = corrupted()
    U = FRPCAG().fit(X).low_rank_
    centred = X - X.mean(axis=0)
    W, s, Vt = np.linalg.svd(centred, full_matrices=False)
    pca = (W[:, :2] * s[:2]) @ Vt[:2] + X.mean(axis=0)
    errors = [np.abs(A - clean).mean() for A in (U, pca, X)]
    assert errors[0] < errors[1] < errors[2]


def test_the_certificate_can_be_recomputed_from_the_attributes():
    X, _, _ = corrupted()
    model = FRPCAG(tol=1e-4).fit(X)
    problem = Problem(
        X - model.center_,
        model.sample_graph_.laplacian,
        model.feature_graph_.laplacian,
        model.gamma1_,
        model.gamma2_,
    )
    at = certificate(problem, model.low_rank_ - model.center_)
    assert model.duality_gap_ <= 1e-4
    assert_allclose(at.gap, model.duality_gap_, atol=1e-9)
    assert_allclose(at.objective, model.objective_)


def test_embedding_and_components_factorise_the_centred_clean_part():
    X, _, _ = corrupted()
    model = FRPCAG(n_components=X.shape[1]).fit(X)
    assert_allclose(model.embedding_ @ model.components_ + model.mean_, model.low_rank_, atol=1e-6)
    assert_allclose(np.linalg.norm(model.embedding_, axis=0), model.singular_values_, atol=1e-6)


def test_the_embedding_is_centred():
    X, _, _ = corrupted()
    assert_allclose(FRPCAG().fit(X).embedding_.mean(axis=0), 0, atol=1e-9)


def test_inverse_transform_undoes_a_full_embedding():
    X, _, _ = corrupted()
    model = FRPCAG(n_components=X.shape[1], scale=True).fit(X)
    assert_allclose(model.inverse_transform(model.embedding_), model.low_rank_, atol=1e-6)


def test_gammas_auto_do_not_depend_on_the_units_of_x():
    X, _, _ = corrupted()
    model, scaled = FRPCAG().fit(X), FRPCAG().fit(1000 * X)
    assert_allclose(scaled.gamma1_, model.gamma1_ / 1000)
    assert_allclose(scaled.low_rank_, 1000 * model.low_rank_, rtol=1e-6, atol=1e-4)


def test_given_gammas_are_taken_literally():
    X, _, _ = corrupted()
    model = FRPCAG(gamma1=3, gamma2=0.5).fit(X)
    assert (model.gamma1_, model.gamma2_) == (3.0, 0.5)


def test_translation_of_the_features_moves_only_the_low_rank_part():
    X, _, _ = corrupted()
    shift = np.arange(X.shape[1]) * 10.0
    model, moved = FRPCAG(tol=1e-6).fit(X), FRPCAG(tol=1e-6).fit(X + shift)
    assert_allclose(moved.low_rank_ - shift, model.low_rank_, atol=1e-5)
    assert_allclose(moved.sparse_, model.sparse_, atol=1e-5)


@pytest.mark.parametrize("graphs", [("exact", None), (None, "exact")])
def test_a_graph_of_none_drops_its_term(graphs):
    X, _, _ = corrupted()
    model = FRPCAG(sample_graph=graphs[0], feature_graph=graphs[1]).fit(X)
    assert [model.sample_graph_ is None, model.feature_graph_ is None] == [graph is None for graph in graphs]
    assert model.converged_


@pytest.mark.parametrize(
    ("kind", "graphs"),
    [("A", ("exact", "exact")), ("B", ("exact", "approximate")), ("C", ("approximate", "approximate"))],
)
def test_graph_types_of_the_paper_are_two_arguments(kind, graphs):
    X = np.random.default_rng(0).normal(size=(150, 150))
    model = FRPCAG(sample_graph=graphs[0], feature_graph=graphs[1]).fit(X)
    assert (model.sample_graph_.method, model.feature_graph_.method) == graphs


def test_adjacency_graph_and_transformer_give_the_result_of_their_own_edges():
    X, _, _ = corrupted()
    auto = FRPCAG(center=False).fit(X)
    adjacency = FRPCAG(center=False, sample_graph=auto.sample_graph_.weights).fit(X)
    graph = FRPCAG(center=False, sample_graph=build_graph(X)).fit(X)
    transformer = FRPCAG(center=False, sample_graph=KNeighborsTransformer(n_neighbors=10)).fit(X)
    for other in (adjacency, graph, transformer):
        # Distances of the neighbour searches agree to float32.
        assert_allclose(other.low_rank_, auto.low_rank_, atol=2e-2)


def test_grid_graph_links_pixels():
    X = load_digits().data[:100]
    model = FRPCAG(feature_graph="grid", feature_shape=(8, 8)).fit(X)
    assert model.feature_graph_.n_edges == 2 * 8 * 7


def test_combinatorial_laplacian_keeps_a_constant_level():
    X = np.full((20, 6), 7.0)
    X[3, 2] = 90
    assert_allclose(FRPCAG(laplacian="combinatorial", center=False, gamma1=5.0, gamma2=5.0).fit(X).low_rank_[0], 7)


@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
def test_every_loss_converges(loss):
    assert FRPCAG(loss=loss).fit(corrupted()[0]).converged_


def test_l1_leaves_most_entries_of_x_exactly_alone():
    X, _, _ = corrupted()
    S = FRPCAG(center=False, gamma1=0.3, gamma2=0.1).fit(X).sparse_
    assert 0.02 < (S != 0).mean() < 0.6


def test_refinement_rebuilds_the_graphs_from_the_clean_part():
    X, _, _ = corrupted()
    plain, refined = FRPCAG().fit(X), FRPCAG(n_refine=1).fit(X)
    assert (plain.n_refine_, refined.n_refine_) == (0, 1)
    assert (plain.sample_graph_.weights != refined.sample_graph_.weights).nnz > 0


def test_float32_stays_float32_and_agrees_with_float64():
    X, _, _ = corrupted()
    double, single = FRPCAG(tol=1e-5).fit(X), FRPCAG(tol=1e-5).fit(X.astype(np.float32))
    for name in ("low_rank_", "sparse_", "embedding_", "components_", "singular_values_"):
        assert getattr(single, name).dtype == np.float32
    assert_allclose(single.objective_, double.objective_, rtol=1e-4)


def test_sparse_input_gives_the_result_of_the_dense_one():
    X, _, _ = corrupted()
    X[np.abs(X) < 0.5] = 0
    assert_allclose(FRPCAG().fit(sp.csr_matrix(X)).low_rank_, FRPCAG().fit(X).low_rank_, atol=1e-9)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_feature_names(frame):
    X, _, _ = corrupted()
    names = [f"sensor{j}" for j in range(X.shape[1])]
    model = FRPCAG(n_components=2).fit(frame(dict(zip(names, X.T, strict=True))))
    assert model.feature_names_in_.tolist() == names
    assert model.get_feature_names_out().tolist() == ["frpcag0", "frpcag1"]


def test_set_output_gives_frames():
    X, _, _ = corrupted()
    out = FRPCAG(n_components=2).set_output(transform="pandas").fit_transform(X)
    assert list(out.columns) == ["frpcag0", "frpcag1"]


def test_memory_mapped_and_fortran_input_give_the_same_result(tmp_path):
    X, _, _ = corrupted()
    np.save(tmp_path / "X.npy", X)
    expected = FRPCAG().fit(X).low_rank_
    for view in (np.load(tmp_path / "X.npy", mmap_mode="r"), np.asfortranarray(X), X[::-1][::-1]):
        assert_allclose(FRPCAG().fit(view).low_rank_, expected, atol=1e-6)


def test_fit_leaves_x_untouched():
    X, _, _ = corrupted()
    before = X.copy()
    X.flags.writeable = False
    FRPCAG(center=False).fit(X)
    assert np.array_equal(X, before)


def test_transform_of_training_rows_is_their_embedding():
    X, _, _ = corrupted()
    model = FRPCAG(n_components=3).fit(X)
    assert_allclose(model.transform(X[5:9]), model.embedding_[5:9], atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "l1", "truncated", "auto"])
def test_denoise_brings_new_corrupted_rows_nearer_to_the_truth(metric):
    X, clean, _ = corrupted(n=150)
    train = np.arange(150) % 5 != 0
    model = FRPCAG(feature_graph=None, metric=metric).fit(X[train])
    found = model.denoise(X[~train])
    assert np.abs(found - clean[~train]).mean() < 0.75 * np.abs(X[~train] - clean[~train]).mean()


@pytest.mark.parametrize("method", ["transform", "denoise"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_rows_cleaned_a_few_at_a_time_are_those_cleaned_at_once(method, container, monkeypatch):
    X, _, _ = corrupted(n=150)
    model = FRPCAG(n_components=3).fit(X[:120])
    at_once = getattr(model, method)(X[120:])
    monkeypatch.setattr("frpcag.rows.model._ENTRIES", 7 * X.shape[1])
    assert_allclose(getattr(model, method)(container(X[120:])), at_once, atol=1e-6)


def test_callback_stops_the_fit_with_a_valid_result():
    X, _, _ = corrupted()
    model = FRPCAG(callback=lambda progress: progress.n_iter == 4, tol=1e-9).fit(X)
    assert (model.n_iter_, model.converged_) == (4, False)
    assert 0 < model.duality_gap_ < 1


def test_reaching_max_iter_warns():
    with pytest.warns(ConvergenceWarning, match="no convergence in max_iter=2 steps"):
        FRPCAG(max_iter=2, tol=1e-8).fit(corrupted()[0])


def test_works_in_a_pipeline_under_grid_search():
    X, _, y = corrupted()
    pipeline = make_pipeline(StandardScaler(), FRPCAG(n_components=2), KMeans(3, n_init=3, random_state=0))
    search = GridSearchCV(
        pipeline,
        {"frpcag__gamma1": [0.1, 1.0]},
        scoring=lambda estimator, X, y: adjusted_rand_score(y, estimator.predict(X)),
        cv=KFold(3, shuffle=True, random_state=0),
    ).fit(X, y)
    assert search.best_score_ > 0.8


def test_clone_keeps_the_parameters():
    model = FRPCAG(3, gamma1=2.0, loss="huber", n_jobs=1)
    assert clone(model).get_params() == model.get_params()


@pytest.mark.filterwarnings("ignore:n_neighbors=10 is not smaller")
@pytest.mark.parametrize("shape", [(2, 1), (2, 50), (3, 2), (8, 300), (11, 1)])
def test_small_and_fat_data_are_fitted(shape):
    X = np.random.default_rng(0).normal(size=shape)
    model = FRPCAG().fit(X)
    assert model.low_rank_.shape == shape
    assert np.isfinite(model.low_rank_).all()


def test_more_neighbours_than_samples_warn_and_are_cut():
    with pytest.warns(UserWarning, match="n_neighbors=10 is not smaller than n_samples=6; using 5"):
        FRPCAG().fit(np.random.default_rng(0).normal(size=(6, 20)))


def test_constant_and_duplicated_data_are_fitted():
    constant = np.full((30, 12), 4.0)
    assert_allclose(FRPCAG().fit(constant).low_rank_, constant)
    rows = np.repeat(np.random.default_rng(0).normal(size=(2, 12)), 20, axis=0)
    assert np.isfinite(FRPCAG().fit(rows).low_rank_).all()


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_extreme_units_give_the_scaled_result(factor):
    X, _, _ = corrupted()
    assert_allclose(FRPCAG().fit(factor * X).low_rank_ / factor, FRPCAG().fit(X).low_rank_, atol=1e-3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma1": -1.0}, "gamma1=-1.0 must be 'auto' or a finite number >= 0"),
        ({"gamma2": "big"}, "gamma2='big' is unknown; pass 'auto' or a number >= 0"),
        ({"gamma1": None}, "gamma1=None must be 'auto'"),
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"n_neighbors": 2.5}, "n_neighbors=2.5"),
        ({"n_components": 99}, "n_components=99 must be None, an integer from 1 to"),
        ({"sample_graph": "flann"}, "sample_graph='flann' is unknown"),
        ({"sample_graph": sp.eye_array(7)}, "sample_graph has 7 nodes"),
        ({"feature_graph": graph_from_weights(np.ones((3, 3)))}, "feature_graph is a graph of 3 nodes"),
        ({"feature_graph": "grid"}, "feature_shape=None does not fit feature_graph='grid'"),
        ({"feature_graph": "grid", "feature_shape": (4, 4)}, r"\(4, 4\)"),
        ({"sigma": -1.0}, "sigma=-1.0"),
        ({"laplacian": "random-walk"}, "laplacian='random-walk'"),
        ({"loss": "l0"}, "loss='l0' is unknown"),
        ({"stop": "soon"}, "stop='soon' is unknown"),
        ({"backend": "cuda"}, "backend='cuda' is unknown"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"n_refine": -1}, "n_refine=-1 must be 'auto' or an integer >= 0"),
        ({"n_jobs": 0}, "n_jobs=0"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        FRPCAG(**params).fit(corrupted()[0])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, np.nan], [1.0, np.nan]]), "column 1 of X has no observed entry"),
        (np.array([[1.0, 1.0], [np.nan, np.nan], [1.0, 2.0]]), "row 1 of X has no observed entry"),
        (np.array([[1.0, np.inf], [0.0, 1.0], [1.0, 1.0]]), "X has 1 infinite entries"),
        (np.ones(5), r"shape \(5,\) but must have two dimensions"),
        (np.ones((0, 5)), "0 sample"),
        (np.array([["a", "b"], ["c", "d"]]), "could not convert|dtype"),
    ],
)
def test_bad_data_are_named(X, message):
    with pytest.raises(ValueError, match=message):
        FRPCAG().fit(X)


def test_inverse_transform_of_the_wrong_width_is_named():
    model = FRPCAG(n_components=2).fit(corrupted()[0])
    with pytest.raises(ValueError, match="X has 3 columns, but the embedding has 2 components"):
        model.inverse_transform(np.ones((4, 3)))


def ring(n=60):
    """A smooth closed curve: its neighbour graph is a ring, with or without smoothing."""
    z = np.exp(2j * np.pi * np.arange(n) / n)[:, None] * np.arange(1, 6)
    return np.hstack([z.real, z.imag])


def test_refinement_ends_when_the_graph_keeps_its_edges():
    assert FRPCAG(n_refine=5, n_neighbors=4).fit(ring()).n_refine_ == 0


def test_automatic_refinement_acts_only_where_the_graph_was_mostly_noise():
    rng = np.random.default_rng(0)
    noisy = rng.normal(size=(400, 3)) @ rng.normal(size=(3, 1000)) + 3
    noisy[rng.random(noisy.shape) < 0.4] = 0
    assert FRPCAG(n_refine="auto").fit(noisy).n_refine_ == 1
    assert FRPCAG(n_refine="auto", n_neighbors=4).fit(ring()).n_refine_ == 0
