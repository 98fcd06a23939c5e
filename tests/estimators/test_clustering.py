"""Facts about FRPCAGClustering."""

import warnings

import numpy as np
import pytest
from reproduction.corrupt import block_occlusion, missing_pixels
from reproduction.evaluate.clustering import clustering_error
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import scale

from frpcag import FRPCAG, FRPCAGClustering
from frpcag.estimators.clustering import has_mixed_units
from frpcag.labels import cleaned
from frpcag.labels.assign import ASSIGNMENTS


def corrupted_digits(n=600):
    digits = load_digits()
    X, _ = missing_pixels(digits.data[:n], 0.3, random_state=0)
    return X, digits.target[:n]


@pytest.mark.parametrize("assign", ASSIGNMENTS)
def test_labels_are_one_per_sample_and_cover_the_clusters(assign):
    X, _ = corrupted_digits(200)
    labels = FRPCAGClustering(10, assign=assign, random_state=0).fit_predict(X)
    assert labels.shape == (200,)
    assert set(labels) == set(range(10))


def test_clusters_of_corrupted_digits_beat_k_means_on_raw_pixels():
    X, y = corrupted_digits()
    ours = clustering_error(y, FRPCAGClustering(10, random_state=0).fit_predict(X))
    raw = clustering_error(y, KMeans(10, n_init=10, random_state=0).fit_predict(X))
    assert ours < raw


def test_kmeans_assignment_is_k_means_on_the_low_rank_part():
    X, _ = corrupted_digits(300)
    model = FRPCAGClustering(10, assign="kmeans", n_init=20, random_state=0).fit(X)
    direct = KMeans(10, n_init=20, random_state=0).fit(model.estimator_.low_rank_)
    assert adjusted_rand_score(model.labels_, direct.labels_) > 0.9


def test_the_same_seed_gives_the_same_labels():
    X, _ = corrupted_digits(200)
    first, second = (FRPCAGClustering(10, random_state=3).fit_predict(X) for _ in range(2))
    assert np.array_equal(first, second)


def test_whole_numbers_of_a_tensor_have_gaps_as_those_of_an_array():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    X = block_occlusion(np.round(60 * drawn_shapes()[0]).clip(0, 255), (12, 12), 0.25, random_state=0)[0].astype(
        np.uint8
    )
    expected, found = (FRPCAGClustering(4, random_state=0).fit(rows) for rows in (X, torch.from_numpy(X)))
    assert expected.missing_share_ > 0.05
    assert np.abs(expected.estimator_.low_rank_ - found.estimator_.low_rank_).max() < 1.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"assign": "dbscan"}, "assign='dbscan' is unknown; choose one of 'auto'"),
        ({"n_clusters": 0}, "n_clusters=0 must be 'auto' or an integer from 1 to n_samples=200"),
        ({"n_clusters": 201}, "n_clusters=201"),
        ({"n_clusters": "many"}, "n_clusters='many'"),
        ({"estimator": FRPCAG(gamma1=-2.0)}, "gamma1=-2.0"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        FRPCAGClustering(**params).fit(corrupted_digits(200)[0])


def lit_faces(seed):
    """Return eight classes under forty lightings, the same for all classes and as strong as what sets them apart."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(8), 40)
    lightings = np.tile(rng.normal(size=(40, 2)), (8, 1)) @ rng.normal(size=(2, 200))
    return rng.normal(size=(8, 200))[y] + 0.8 * lightings + 0.1 * rng.normal(size=(320, 200)), y


def test_whitened_components_find_classes_that_strong_directions_hide():
    def error(assign):
        found = (
            clustering_error(y, FRPCAGClustering(8, assign=assign, random_state=0).fit_predict(X))
            for X, y in map(lit_faces, range(1, 4))
        )
        return np.mean(list(found))

    assert error("auto") < error("spectral") - 0.05


def test_whitening_leaves_out_directions_that_are_rounding():
    X = np.outer(np.repeat([0.0, 10.0, 30.0], 20), np.arange(1.0, 6.0))
    model = FRPCAGClustering(3, FRPCAG(gamma1=1e-9, gamma2=1e-9, n_refine="auto"), random_state=0).fit(X)  # U = X
    assert cleaned.Cleaned(X, model.estimator_.low_rank_, model.estimator_).whitened(3).shape == (60, 1)


@pytest.mark.parametrize("change", [scale, np.asarray], ids=["standardised", "raw"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_tables_cluster_as_well_as_k_means_does(load, change):
    X, y = load(return_X_y=True)
    labels = FRPCAGClustering(len(set(y)), random_state=0).fit_predict(change(X))
    centres = KMeans(len(set(y)), n_init=10, random_state=0).fit_predict(change(X))
    assert adjusted_rand_score(y, labels) > adjusted_rand_score(y, centres) - 0.05


def test_badly_conditioned_graphs_are_clustered():
    X = np.random.default_rng(1).lognormal(sigma=4, size=(300, 10))
    assert set(FRPCAGClustering(3, random_state=0).fit_predict(X)) == {0, 1, 2}


@pytest.mark.parametrize("assign", ["auto", "linkage", "spectral"])
def test_equal_rows_get_one_label(assign):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))[rng.integers(0, 40, 200)]
    model = FRPCAGClustering(4, assign=assign, random_state=0).fit(X)
    assert len({(*row, label) for row, label in zip(X.tolist(), model.labels_, strict=True)}) == len(
        np.unique(X, axis=0)
    )
    assert model.n_clusters_ == 4


def test_fewer_distinct_rows_than_clusters_warn():
    X = np.repeat(np.eye(3), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="n_clusters=5 is more than the 3 distinct rows"):
        model = FRPCAGClustering(5, random_state=0).fit(X)
    assert model.n_clusters_ == 3


def drawn_shapes(n=160):
    """Return images of four smooth shapes, 12 x 12, and their classes."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, n)
    across, down = np.meshgrid(np.linspace(0, np.pi, 12), np.linspace(0, np.pi, 12))
    bases = np.stack([np.sin((1 + c % 2) * across) * np.sin((1 + c // 2) * down) for c in range(4)]).reshape(4, -1)
    return 2 + bases[y] + 0.2 * rng.normal(size=(n, 144)), y


def test_patches_of_one_value_count_as_missing():
    X, y = drawn_shapes()
    X, hit = block_occlusion(X, (12, 12), 0.25, random_state=0)
    model = FRPCAGClustering(4, random_state=0).fit(X)
    assert model.missing_share_ == pytest.approx(hit.mean(), abs=0.02)
    assert clustering_error(y, model.labels_) < 0.05


def test_clean_data_have_nothing_missing():
    assert FRPCAGClustering(4, random_state=0).fit(drawn_shapes()[0]).missing_share_ == 0


@pytest.mark.parametrize("n_features", [20, 144])
def test_candidates_tell_what_was_tried_and_the_best_was_taken(n_features):
    X, _ = drawn_shapes()
    model = FRPCAGClustering(4, random_state=0).fit(X[:, :n_features])
    tried = model.candidates_
    assert len({len(column) for column in tried.values()}) == 1
    assert set(tried["points"]) == {"W" if n_features >= 100 else "X"}
    assert np.isfinite(tried["score"]).all()
    assert model.affinity_.shape == (len(X), len(X))


@pytest.mark.parametrize("n_features", [6, 120])
@pytest.mark.parametrize("k", [2, 5])
def test_the_number_of_clear_clusters_is_found(k, n_features, tmp_path):
    rng = np.random.default_rng(k)
    X = np.repeat(4 * rng.normal(size=(k, n_features)), 30, axis=0) + rng.normal(size=(30 * k, n_features))
    model = FRPCAGClustering("auto", random_state=0).fit(X)
    assert model.n_clusters_ == k
    assert model.counts_["n_clusters"][np.nanargmax(model.counts_["score"])] == k
    model.save(tmp_path / "model.npz")
    again = FRPCAGClustering.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.counts_["score"], model.counts_["score"])
    assert (again.affinity_ != model.affinity_).nnz == 0


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_number_of_clusters_comes_for_few_samples(n):
    X = np.random.default_rng(0).normal(size=(n, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer samples than neighbours
        assert FRPCAGClustering("auto", random_state=0).fit(X).n_clusters_ == 2


def test_mixed_units_are_told_from_rare_counts():
    rng = np.random.default_rng(0)
    table = rng.normal(10, 1, size=(200, 6)) * [1, 1, 2, 1, 1000, 0.5]
    often = np.concatenate([[0.9], np.full(9, 0.005)])
    counts = rng.poisson(3, size=(200, 10)) * (rng.random((200, 10)) < often)
    assert has_mixed_units(table)
    assert not has_mixed_units(counts.astype(float))


def row_blocks(X, size):
    return pytest.importorskip("dask.array").from_array(X, chunks=(size, -1))


@pytest.mark.parametrize("n_features", [20, 144])
def test_row_blocks_get_the_labels_of_the_whole(n_features):
    X = drawn_shapes()[0][:, :n_features]
    whole = FRPCAGClustering(4, random_state=0).fit(X)
    blocks = FRPCAGClustering(4, random_state=0).fit(row_blocks(X, 50))
    # Sums over blocks round in another order, and k-means draws other starts.
    assert adjusted_rand_score(whole.labels_, blocks.labels_) > 0.95
    assert blocks.n_features_in_ == n_features


@pytest.mark.parametrize("assign", ASSIGNMENTS)
@pytest.mark.parametrize("n_features", [20, 144])
def test_rows_that_are_not_labelled_themselves_take_the_label_of_the_nearest(assign, n_features, monkeypatch):
    rng = np.random.default_rng(5)
    y = rng.permutation(np.repeat(np.arange(4), 60))
    X = 3 * rng.normal(size=(4, n_features))[y] + rng.normal(size=(240, n_features))
    monkeypatch.setattr(cleaned, "LEAST_LABELLED", 0)
    monkeypatch.setattr(cleaned, "LABELLED_ROWS", 120)
    model = FRPCAGClustering(4, FRPCAG(n_components=3), assign=assign, random_state=0).fit(row_blocks(X, 70))
    assert model.sample_indices_.shape == (120,)
    assert adjusted_rand_score(y, model.labels_) > 0.98


def test_patches_count_as_missing_in_row_blocks_too():
    X, y = drawn_shapes()
    X, hit = block_occlusion(X, (12, 12), 0.25, random_state=0)
    model = FRPCAGClustering(4, random_state=0).fit(row_blocks(X, 60))
    assert model.missing_share_ == pytest.approx(hit.mean(), abs=0.02)
    assert clustering_error(y, model.labels_) < 0.05


def spiked(share=0.05):
    """Return smooth shapes of four classes with spikes that differ from each other, and where these are."""
    X, y = drawn_shapes()
    rng = np.random.default_rng(11)
    hit = rng.random(X.shape) < share
    return np.where(hit, X + rng.choice([-1, 1], X.shape) * rng.uniform(3, 6, X.shape), X), y, hit


def test_wrong_cells_count_as_missing_where_asked():
    X, _, hit = spiked()
    assert FRPCAGClustering(4, random_state=0).fit(X).missing_share_ == 0
    model = FRPCAGClustering(4, clean=True, random_state=0).fit(X)
    assert model.missing_share_ == pytest.approx(hit.mean(), abs=0.01)


def test_cleaning_first_leaves_clean_data_as_they_are():
    X, _ = drawn_shapes()
    plain, cleaned = (FRPCAGClustering(4, clean=clean, random_state=0).fit(X) for clean in (False, True))
    assert cleaned.missing_share_ == 0
    np.testing.assert_array_equal(plain.labels_, cleaned.labels_)


def test_cleaning_is_refused_for_row_blocks_and_for_words():
    X, _ = drawn_shapes()
    with pytest.raises(ValueError, match=r"clean=True .* Dask"):
        FRPCAGClustering(4, clean=True).fit(row_blocks(X, 60))
    with pytest.raises(ValueError, match="clean='no' must be True or False"):
        FRPCAGClustering(4, clean="no").fit(X)
