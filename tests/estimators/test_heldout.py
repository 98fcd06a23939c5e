"""Facts about the path of solutions, the choice of gammas by held-out entries, and the imputer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline

from frpcag import FRPCAG, FRPCAGCV, RobustGraphImputer, regularization_path
from frpcag.cells.search import walk


def table(n=120, p=30, share=0.2, seed=0):
    rng = np.random.default_rng(seed)
    clean = np.repeat(3 * rng.normal(size=(3, p)), n // 3, axis=0) + rng.normal(size=(n, 1))
    X = clean + 0.2 * rng.normal(size=(n, p))
    X[rng.random((n, p)) < 0.05] += 15
    X[rng.random((n, p)) < share] = np.nan
    return X, clean


def test_every_point_of_the_path_is_the_solution_of_a_cold_start():
    X, _ = table()
    gammas1, gammas2 = (0.1, 1.0), (0.05, 0.5)
    points = list(regularization_path(X, gammas1, gammas2, estimator=FRPCAG(tol=1e-5, max_iter=5000)))
    assert [(p.gamma1, p.gamma2) for p in points] == [(0.1, 0.05), (0.1, 0.5), (1.0, 0.5), (1.0, 0.05)]
    for point in points:
        cold = FRPCAG(gamma1=point.gamma1, gamma2=point.gamma2, tol=1e-5, max_iter=5000).fit(X)
        assert point.solution.gap <= 1e-5
        assert_allclose(point.solution.objective, cold.objective_, rtol=2e-5)


@pytest.mark.parametrize(
    "options",
    [
        {"stop": "change", "tol": 1e-2},
        {"n_refine": 2},
        {"nonnegative": True, "callback": lambda at: at.n_iter == 5},  # far from the end some entries are below zero
        {"loss": "huber"},
    ],
)
def test_the_first_point_of_a_path_is_the_fit_with_all_of_its_parameters(options):
    X = np.maximum(table(share=0.05)[0] - 3, 0)
    model = FRPCAG(gamma1=30.0, gamma2=30.0, **options)
    solution = next(regularization_path(X, [30.0], [30.0], estimator=model)).solution
    model.fit(X)
    assert_array_equal(solution.U, model.low_rank_)
    assert (solution.n_iter, solution.gap, solution.status) == (model.n_iter_, model.duality_gap_, model.status_)


def test_a_callback_that_stops_ends_the_path_and_the_refinements():
    seen = []
    model = FRPCAG(n_refine=3, tol=1e-9, callback=lambda at: seen.append(at.n_iter) or at.n_iter == 4)
    points = list(regularization_path(table()[0], [0.1, 1.0], [0.05, 0.5], estimator=model))
    assert seen == [1, 2, 3, 4]
    assert [point.solution.status for point in points] == ["stopped"]


def test_warm_starts_take_fewer_steps_than_cold_ones():
    X, _ = table()
    gammas = np.geomspace(0.5, 1.0, 6)
    warm = [point.solution.n_iter for point in regularization_path(X, gammas, [0.1], estimator=FRPCAG(tol=1e-4))][1:]
    cold = [FRPCAG(gamma1=g, gamma2=0.1, tol=1e-4).fit(X).n_iter_ for g in gammas[1:]]
    assert sum(warm) < sum(cold)


def test_held_out_entries_choose_a_better_pair_than_the_worst_of_the_grid():
    X, clean = table()
    model = FRPCAGCV(random_state=0).fit(X)
    worst = int(np.argmax(model.cv_results_["error"]))
    bad = FRPCAG(gamma1=model.cv_results_["gamma1"][worst], gamma2=model.cv_results_["gamma2"][worst]).fit(X)
    gaps = np.isnan(X)
    errors = [np.abs(m.low_rank_ - clean)[gaps].mean() for m in (model, bad)]
    assert errors[0] < 0.7 * errors[1]


def test_the_chosen_pair_has_the_smallest_held_out_error():
    X, _ = table()
    model = FRPCAGCV(multiples1=(0.1, 1.0), multiples2=(0.01, 0.3), random_state=0).fit(X)
    assert model.best_index_ == np.argmin(model.cv_results_["error"])
    assert len(model.cv_results_["gap"]) == 4
    assert (model.cv_results_["gap"] <= 1e-3).all()


@pytest.mark.parametrize("graphs", [("auto", None), (None, "auto")])
def test_one_graph_leaves_one_gamma_to_choose(graphs):
    X, _ = table()
    model = FRPCAGCV(FRPCAG(sample_graph=graphs[0], feature_graph=graphs[1]), random_state=0).fit(X)
    assert len(model.cv_results_["error"]) == 5


@pytest.mark.parametrize("draw", [np.random.RandomState(0).random_sample, np.random.default_rng(0).random])
def test_entries_are_held_out_also_where_the_same_seed_chose_what_is_missing(draw):
    X = np.random.default_rng(5).normal(size=(60, 20))
    X[draw(X.shape) < 0.3] = np.nan
    hidden = FRPCAGCV(random_state=0)._hide(X)
    assert hidden[~np.isnan(X)].mean() == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("holdout", [0.0, 1.0, -0.1])
def test_an_impossible_share_to_hide_is_named(holdout):
    with pytest.raises(ValueError, match=f"holdout={holdout}"):
        FRPCAGCV(holdout=holdout).fit(table()[0])


def test_the_imputer_keeps_observed_entries_and_fills_the_rest():
    X, clean = table()
    filled = RobustGraphImputer().fit_transform(X)
    seen = ~np.isnan(X)
    assert np.array_equal(filled[seen], X[seen])
    mean = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    assert np.abs(filled - clean)[~seen].mean() < 0.5 * np.abs(mean - clean)[~seen].mean()


def test_the_imputer_can_clean_observed_entries_too():
    X, _ = table()
    imputer = RobustGraphImputer(FRPCAG(), keep_observed=False).fit(X)
    assert_allclose(imputer.transform(X), imputer.estimator_.low_rank_, atol=1e-6)


@pytest.mark.parametrize("keep_observed", [True, False])
def test_the_imputer_fills_the_rows_of_its_fit_without_the_preparation_of_new_ones(keep_observed, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 3)) @ np.ones((3, 12))
    X[::4, 5] = np.nan
    imputer = RobustGraphImputer(keep_observed=keep_observed)
    expected = imputer.fit(X).transform(X)
    monkeypatch.setattr("frpcag.rows.RowModel.of", None)
    filled = imputer.fit_transform(X)
    np.testing.assert_array_equal(filled, expected)
    filled[:] = 0
    assert imputer.estimator_.low_rank_.any()


def test_the_imputer_fills_rows_it_has_not_seen():
    X, clean = table()
    train = np.arange(len(X)) % 4 != 0
    filled = RobustGraphImputer().fit(X[train]).transform(X[~train])
    gaps = np.isnan(X[~train])
    truth, mean = clean[~train], np.broadcast_to(np.nanmean(X[train], axis=0), filled.shape)
    assert np.abs(filled - truth)[gaps].mean() < 0.6 * np.abs(mean - truth)[gaps].mean()


def test_the_imputer_is_a_step_of_a_pipeline():
    X, _ = table()
    labels = make_pipeline(RobustGraphImputer(), KMeans(3, n_init=5, random_state=0)).fit_predict(X)
    assert len(set(labels)) == 3


@pytest.mark.parametrize("gain", [0.0, 0.01])
def test_a_walk_finds_the_least_error_of_a_bowl_and_asks_for_no_spot_twice(gain):
    asked = [(0, 0)]

    def error(i, j):
        asked.append((i, j))
        return 1 + (i - 2) ** 2 + (j + 1) ** 2

    assert walk(error, 6.0, most=30, gain=gain) == (2, -1)
    assert len(set(asked)) == len(asked) <= 16


def test_a_walk_is_nearly_as_good_as_the_grid_and_asks_for_fewer_pairs():
    X, _ = table()
    grid, walked = (FRPCAGCV(search=search, random_state=0).fit(X).cv_results_ for search in ("grid", "walk"))
    assert walked["error"].min() < 1.1 * grid["error"].min()
    assert len(walked["error"]) <= 12 < len(grid["error"])


def test_patches_are_hidden_as_patches():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(80, 30))
    for row in X:
        start = rng.integers(0, 22)
        row[start : start + 8] = np.nan
    hidden, missing = FRPCAGCV(random_state=0)._hide(X), np.isnan(X)
    assert not (hidden & missing).any()
    beside = hidden[:, 1:][hidden[:, :-1] & ~missing[:, 1:]]
    assert beside.mean() > 0.7


def test_the_imputer_is_not_misled_by_columns_of_other_units():
    X, clean = table()
    gaps = np.isnan(X)
    units = np.where(np.arange(X.shape[1]) % 7 == 0, 1e5, 1.0)
    filled = RobustGraphImputer().fit_transform(X * units) / units
    mean = np.broadcast_to(np.nanmean(X, axis=0), X.shape)
    small = gaps & (units == 1)
    assert np.abs(filled - clean)[small].mean() < 0.5 * np.abs(mean - clean)[small].mean()


@pytest.mark.parametrize("changed", ["sign", "unit", "rows", "columns"])
def test_filled_values_stay_when_the_table_is_arranged_or_measured_anew(changed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3)) @ rng.normal(size=(3, 10)) + 0.1 * rng.normal(size=(120, 10))
    X[rng.random(X.shape) < 0.1] = np.nan
    rows, columns, units = np.arange(120), np.arange(10), np.ones(10)
    if changed in ("rows", "columns"):
        rng.shuffle(rows if changed == "rows" else columns)
    else:
        units[2] = -1 if changed == "sign" else 1024
    filled = RobustGraphImputer().fit_transform((X * units)[rows][:, columns])
    expected = (RobustGraphImputer().fit_transform(X) * units)[rows][:, columns]
    assert_allclose(filled / units[columns], expected / units[columns], atol=1e-6)


def test_filled_values_stay_within_the_range_of_their_column():
    rng = np.random.default_rng(1)
    seconds, grams = rng.uniform(8, 24, size=80), rng.uniform(1e3, 5e3, size=80)
    X = np.column_stack([seconds, grams, 2 * grams + rng.normal(size=80), 1e5 - grams])
    X[rng.random(X.shape) < 0.1] = np.nan
    filled = RobustGraphImputer().fit_transform(X)
    assert (filled >= np.nanmin(X, axis=0)).all()
    assert (filled <= np.nanmax(X, axis=0)).all()


def test_gaps_down_the_columns_are_hidden_as_gaps():
    X = np.random.default_rng(6).normal(size=(200, 12))
    for j in range(12):
        X[15 * j : 15 * j + 15, j] = np.nan
    hidden, missing = FRPCAGCV(random_state=0)._hide(X), np.isnan(X)
    assert not (hidden & missing).any()
    assert hidden[1:][hidden[:-1] & ~missing[1:]].mean() > 0.7
