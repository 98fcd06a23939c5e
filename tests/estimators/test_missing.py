"""Facts about FRPCAG on data with missing entries."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from reproduction.evaluate.clustering import clustering_error

from frpcag import FRPCAG, FRPCAGClustering, Problem, solve
from frpcag.data.preprocess import center_and_scale
from frpcag.engines.gammas import scale_free_gamma
from frpcag.problem import certificate


def table(n=150, p=40, share=0.3, seed=0, dtype=np.float64):
    """Three clusters, some entries missing, a few gross errors."""
    rng = np.random.default_rng(seed)
    clean = np.repeat(3 * rng.normal(size=(3, p)), n // 3, axis=0) + 20
    X = clean + 0.2 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.05] += 15
    X[rng.random((n, p)) < share] = np.nan
    return X.astype(dtype), clean.astype(dtype), np.repeat(np.arange(3), n // 3)


def test_missing_entries_are_predicted_better_than_by_the_column_mean():
    X, clean, _ = table()
    U = FRPCAG(feature_graph=None).fit(X).low_rank_
    gaps = np.isnan(X)
    mean = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    assert np.abs(U - clean)[gaps].mean() < 0.6 * np.abs(mean - clean)[gaps].mean()


def test_low_rank_and_sparse_part_add_up_to_the_observed_entries():
    X, _, _ = table()
    model = FRPCAG().fit(X)
    seen = ~np.isnan(X)
    assert_allclose((model.low_rank_ + model.sparse_)[seen], X[seen])
    assert (model.sparse_[~seen] == 0).all()
    assert np.isfinite(model.low_rank_).all()


@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_the_certificate_can_be_recomputed_from_the_attributes(laplacian):
    X, _, _ = table()
    model = FRPCAG(laplacian=laplacian, tol=1e-4).fit(X)
    graphs = (model.sample_graph_, model.feature_graph_)
    (L1, L2), (null1, null2) = (
        [G.laplacian for G in graphs],
        [G.null_vector for G in graphs],
    )
    problem = Problem(X - model.center_, L1, L2, model.gamma1_, model.gamma2_, null1=null1, null2=null2)
    at = certificate(problem, model.low_rank_ - model.center_)
    assert model.duality_gap_ <= 1e-4
    assert_allclose(at.gap, model.duality_gap_, atol=1e-9)


def test_values_behind_the_mask_do_not_influence_the_result():
    X, _, _ = table(share=0.0)
    model = FRPCAG(laplacian="combinatorial").fit(X)
    seen = np.random.default_rng(1).random(X.shape) < 0.7
    graphs = (model.sample_graph_.laplacian, model.feature_graph_.laplacian)
    first, second = (
        solve(Problem(A, *graphs, model.gamma1_, model.gamma2_, mask=seen)).U for A in (X, np.where(seen, X, 1e6))
    )
    assert np.array_equal(first, second)


def test_clusters_survive_half_of_the_entries_missing():
    X, _, y = table(share=0.5)
    assert clustering_error(y, FRPCAGClustering(3, random_state=0).fit_predict(X)) == 0


def test_centring_and_scaling_use_the_observed_entries():
    X, _, _ = table()
    Xc, mean, std = center_and_scale(X, center=True, scale=True)
    assert_allclose(mean, np.nanmean(X, axis=0))
    assert_allclose(std, np.nanstd(X, axis=0))
    assert np.array_equal(np.isnan(Xc), np.isnan(X))


def test_the_scale_free_gamma_hardly_changes_when_entries_go_missing():
    X, _, _ = table(share=0.0)
    L = FRPCAG().fit(X).sample_graph_.laplacian
    X = X - X.mean(axis=0)
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.4, np.nan, X)
    assert_allclose(scale_free_gamma(L, gaps, axis=0), scale_free_gamma(L, X, axis=0), rtol=0.2)


def test_float32_and_sparse_input_with_gaps_are_fitted():
    X, _, _ = table(dtype=np.float32)
    model = FRPCAG().fit(X)
    assert model.low_rank_.dtype == np.float32
    assert_allclose(FRPCAG().fit(sp.csr_matrix(X)).low_rank_, model.low_rank_, atol=1e-3)


def test_fit_leaves_missing_entries_missing():
    X, _, _ = table()
    before = X.copy()
    X.flags.writeable = False
    FRPCAG().fit(X)
    assert np.array_equal(X, before, equal_nan=True)


def test_denoise_fills_the_gaps_of_new_rows():
    X, clean, _ = table()
    train = np.arange(len(X)) % 5 != 0
    model = FRPCAG(feature_graph=None).fit(X[train])
    found = model.denoise(X[~train])
    gaps = np.isnan(X[~train])
    mean = np.broadcast_to(model.mean_, found.shape)
    truth = clean[~train]
    assert np.abs(found - truth)[gaps].mean() < 0.6 * np.abs(mean - truth)[gaps].mean()


def test_a_new_row_with_nothing_observed_is_named():
    X, _, _ = table()
    model = FRPCAG().fit(X)
    rows = X[:3].copy()
    rows[1] = np.nan
    with pytest.raises(ValueError, match="row 1 of X has no observed entry"):
        model.transform(rows)


def test_denoise_is_near_the_truth_for_rows_with_a_block_of_gross_errors():
    rng = np.random.default_rng(0)
    prototypes = 5 * rng.normal(size=(4, 60))
    train = np.repeat(prototypes, 30, axis=0) + 0.2 * rng.normal(size=(120, 60))
    rows = np.repeat(prototypes, 5, axis=0)
    hit = rows.copy()
    hit[:, :15] = 40.0
    model = FRPCAG(feature_graph=None).fit(train)
    ours = np.linalg.norm(model.denoise(hit) - rows)
    centred = train - train.mean(axis=0)
    Vt = np.linalg.svd(centred, full_matrices=False)[2][:3]
    pca = np.linalg.norm((hit - train.mean(axis=0)) @ Vt.T @ Vt + train.mean(axis=0) - rows)
    assert ours < 0.3 * pca
