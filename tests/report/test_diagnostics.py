"""The numbers of a report against those of the fit."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import FRPCAG
from frpcag.data import make_low_rank_on_graphs
from frpcag.insight import alignment_ratio, graph_basis, graph_covariance, outlier_shares, theorem_bound
from frpcag.problem import objective
from frpcag.report import Fit, diagnostics
from frpcag.report.diagnostics import diagnose, shown_samples
from frpcag.report.words import certificate, percent, summary, table_of, theory, worst_features, worst_samples


def test_the_problem_of_a_report_is_the_one_that_was_solved(model, fit):
    assert_allclose(objective(fit.problem, fit.clean), model.objective_, rtol=1e-9)


@pytest.mark.parametrize("options", [{"scale": True}, {"center": False}, {"loss": "huber", "huber_delta": 0.3}])
def test_the_problem_follows_the_preprocessing_and_the_loss(options):
    X, _, _ = make_low_rank_on_graphs(40, 20, random_state=0)
    model = FRPCAG(**options).fit(X)
    fit = Fit.of_model(model)
    assert_allclose(objective(fit.problem, fit.clean), model.objective_, rtol=1e-9)


def test_certificate_computed_again_is_that_of_the_fit(model, fit):
    assert_allclose(diagnose(fit).gap, model.duality_gap_, rtol=1e-6, atol=1e-9)


def test_certificate_computed_again_tells_a_result_that_was_tampered_with(fit):
    U = fit.U.copy()
    U[3] += 5
    assert diagnose(replace(fit, U=U, S=fit.U + fit.S - U)).gap > 0.01


def test_a_fit_with_missing_entries_shows_the_certificate_of_the_fit_alone(model):
    X = model.low_rank_ + model.sparse_
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    fit = Fit.of_model(FRPCAG(tol=1e-2, laplacian="combinatorial").fit(X), has_missing=True)
    numbers = diagnose(fit)
    assert numbers.gap is None
    assert not any("computed again" in row[0] for row in theory(fit, numbers))
    assert fit.certificate["relative_gap"] <= 1e-2


def test_where_nothing_stands_out_the_largest_means_come_first():
    S = np.diag([1.0, 3.0, 2.0])
    fit = Fit(U=np.ones((3, 3)), S=S, shares=replace(outlier_shares(S), samples=np.zeros(3), features=np.zeros(3)))
    shares = diagnostics.corruption(fit)
    assert [row["number"] for row in worst_samples(fit, shares)] == [1, 2, 0]
    assert [row["number"] for row in worst_features(fit, shares)] == [1, 2, 0]


def test_numbers_are_those_of_inspect(fit):
    numbers = diagnose(fit)
    _, P = graph_basis(fit.feature_graph)
    assert_allclose(numbers.s_r, alignment_ratio(graph_covariance(fit.U + fit.S, P)))
    bound = theorem_bound(fit.problem, fit.clean, k1=numbers.samples.k, k2=numbers.features.k)
    assert_allclose([numbers.bound.left, numbers.bound.right], [bound.left, bound.right])
    assert_allclose(numbers.sigma_X[:5], np.linalg.svd(fit.problem.X, compute_uv=False)[:5])
    assert numbers.distance_U < numbers.distance_X


def test_clusters_are_found_by_the_eigengap():
    X, _, _ = make_low_rank_on_graphs(80, 30, n_sample_clusters=5, n_feature_clusters=3, outliers=0, random_state=0)
    numbers = diagnose(Fit.of_model(FRPCAG(n_neighbors=8).fit(X)))
    assert (numbers.samples.k, numbers.features.k) == (5, 3)


def test_large_feature_graphs_are_looked_at_in_part(fit, monkeypatch):
    monkeypatch.setattr(diagnostics, "FULL_BASIS", 10)
    numbers = diagnose(fit)
    assert len(numbers.Gamma) == len(numbers.features.eigenvalues) == 35
    assert any("first 35 frequencies" in what for what, _, _ in theory(fit, numbers))


def test_an_approximate_graph_gets_its_recall(fit):
    X, _, _ = make_low_rank_on_graphs(200, 20, random_state=0)
    approximate = FRPCAG(sample_graph="approximate", random_state=0).fit(X)
    assert 0.5 < diagnose(Fit.of_model(approximate)).samples.recall <= 1
    assert diagnose(fit).samples.recall is None


@pytest.mark.parametrize("absent", ["sample_graph", "feature_graph"])
def test_one_graph_gives_the_numbers_that_one_graph_has(model, absent):
    one = FRPCAG(**{absent: None}).fit(model.low_rank_ + model.sparse_)
    numbers = diagnose(Fit.of_model(one))
    assert (numbers.samples is None) == (absent == "sample_graph")
    assert numbers.bound is None
    assert theory(Fit.of_model(one), numbers)


def test_samples_are_shown_in_the_order_of_their_labels(fit, monkeypatch):
    monkeypatch.setattr(diagnostics, "N_SHOWN", 12)
    shown = shown_samples(fit)
    assert len(shown) == 12
    assert (np.diff(fit.labels[shown]) >= 0).all()


def test_summary_names_the_bad_sample_and_the_bad_feature(fit):
    words = " ".join(
        summary(replace(fit, feature_names=[f"sensor {j}" for j in range(36)]), diagnostics.corruption(fit))
    )
    assert "60 samples with 36 features" in words
    assert "Worst sample: 7 " in words
    assert "worst feature: sensor 31 " in words


def test_summary_says_when_there_may_be_more_components(fit):
    shares, c = diagnostics.corruption(fit), len(fit.singular_values)
    assert f"with {c} components" in summary(fit, shares)[0]
    assert f"with at least {c} components" in summary(replace(fit, max_components=c), shares)[0]


def test_summary_of_clean_data_says_so():
    words = " ".join(
        summary(
            Fit(U=np.ones((3, 2)), S=np.zeros((3, 2))), diagnostics.corruption(Fit(np.ones((3, 2)), np.zeros((3, 2))))
        )
    )
    assert "No entry stands out" in words


@pytest.mark.parametrize(
    ("status", "words"), [("max_iter", "30 steps, the limit"), ("stopped", "30 steps, then stopped")]
)
def test_certificate_says_why_the_solver_ended(status, words):
    assert words in certificate({"relative_gap": 0.2, "tol": 1e-3, "n_iter": 30, "status": status})


def test_small_shares_keep_their_digits():
    assert [percent(share) for share in (0.00018, 0.034, 0.5, 1.0)] == ["0.018 %", "3.4 %", "50 %", "100 %"]


def test_nested_records_become_flat_tables():
    assert table_of({"a": {"b_c": 0.123456}, "d": None}) == [("a b c", "0.1235"), ("d", "None")]
