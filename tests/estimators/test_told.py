"""What a fit tells people: units that differ, stages, the gap it did not reach, and itself in a notebook."""

import logging
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from frpcag import FRPCAG, FRPCAGClustering, RobustGraphCleaner
from frpcag.backends.numpy import NumpyBackend
from frpcag.data import make_low_rank_on_graphs
from frpcag.engines.base import UnitsWarning
from frpcag.insight import outlier_shares
from frpcag.linalg.spreads import column_units, compare_spreads
from frpcag.report import Fit
from frpcag.report.words import summary


@pytest.fixture
def X():
    return make_low_rank_on_graphs(60, 12, n_sample_clusters=3, n_feature_clusters=3, random_state=0)[0]


def messages(model, X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X)
    return caught


def test_columns_of_other_units_warn_once_with_their_names_and_the_way_out(X):
    frame = pd.DataFrame(X * np.r_[1e4, np.ones(11)], columns=[f"c{j}" for j in range(12)])
    (warned,) = messages(FRPCAG(), frame)
    assert warned.category is UnitsWarning
    assert "column 'c0' spreads" in str(warned.message)
    assert "scale=True" in str(warned.message)
    assert warned.filename == __file__


@pytest.mark.parametrize("scale", [{"scale": True}, {}])
def test_scaled_columns_and_columns_of_one_unit_do_not_warn(X, scale):
    assert messages(FRPCAG(**scale), X * (np.r_[1e4, np.ones(11)] if scale else 1.0)) == []


def test_pixels_that_are_mostly_black_are_no_units(X):
    images = np.clip(255 * np.abs(X), 0, 255)
    images[:, 0] = 0
    images[:3, 1] = 1
    images[3:, 1] = 0
    assert compare_spreads(images) is None


def test_a_tenth_of_wild_values_do_not_hide_or_make_units(X):
    table = X * np.r_[1e3, np.ones(11)]
    table[0, 5] = -9999
    assert compare_spreads(table) is not None
    assert compare_spreads(np.where(np.arange(60)[:, None] == 0, 1e9, X)) is None


def test_a_large_column_is_not_called_corrupted_because_it_is_large(X):
    rng = np.random.default_rng(0)
    S = rng.normal(size=X.shape) * np.r_[1e4, np.ones(11)]
    assert outlier_shares(S).features[0] > 0.4
    table = (X + rng.normal(size=X.shape)) * np.r_[1e4, np.ones(11)]
    in_units = outlier_shares(S, units=column_units(table))
    assert in_units.features[0] < 0.05
    S[5, 3] = 1e3  # a wild entry of a small column does stand out
    fit = Fit(U=table - S, S=S)
    assert "of the spread of its column" in summary(fit)[1]


def test_the_stages_are_told_with_the_gap(X, capsys):
    FRPCAG(verbose=1).fit(X)
    told = capsys.readouterr().out
    assert "neighbours of the samples: " in told
    assert "relative duality gap" in told
    assert told.rstrip().splitlines()[-1].startswith("factors: ")


def test_a_silent_fit_tells_nothing_and_the_callback_is_still_called(X, capsys):
    seen = []
    FRPCAG(verbose=1, callback=lambda at: seen.append(at.n_iter)).fit(X)
    capsys.readouterr()
    FRPCAG().fit(X)
    assert capsys.readouterr().out == ""
    assert seen == list(range(1, len(seen) + 1))


def test_the_report_looks_at_no_step_of_its_own(X, capsys, monkeypatch):
    batches = []
    monkeypatch.setattr(NumpyBackend, "run_on_device", lambda self, state, n_steps, **_: batches.append(n_steps))
    FRPCAG(backend="numpy").fit(X)
    silent = batches.copy()
    batches.clear()
    FRPCAG(backend="numpy", verbose=1).fit(X)
    assert batches == silent
    assert max(silent) > 1


def test_a_warning_that_one_fit_leaves_out_reaches_the_fits_of_other_threads(X):
    table = X * np.r_[1e4, np.ones(11)]

    def fit_elsewhere(progress):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(FRPCAG().fit, table).result()
        return True

    caught = messages(RobustGraphCleaner(FRPCAG(callback=fit_elsewhere)), table)
    assert [one.category for one in caught] == [UnitsWarning]


def test_a_warning_below_a_method_of_scikit_learn_points_at_the_line():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 5)), 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="3 distinct rows") as caught:
        FRPCAGClustering(4).fit_predict(X)
    assert [one.filename for one in caught] == [__file__]


@pytest.mark.parametrize("model", [FRPCAG, RobustGraphCleaner])
@pytest.mark.parametrize("verbose", [-3, "yes"])
def test_a_wrong_verbose_is_refused(X, model, verbose):
    with pytest.raises(ValueError, match=f"verbose={verbose!r} must be an integer >= 0"):
        model(verbose=verbose).fit(X)


def test_the_cleaner_tells_its_stages_and_decisions_and_leaves_loggers_alone(X, capsys):
    level = logging.getLogger("frpcag").level
    cleaner = RobustGraphCleaner(verbose=1).fit(X)
    told = capsys.readouterr().out
    assert [line.partition(":")[0] for line in told.splitlines() if " s" in line and line[0] != " "][:1] == [
        "wrong cells"
    ]
    assert "".join(cleaner.notes_[0].split()) in "".join(told.split())
    assert told.rstrip().splitlines()[-1].startswith("factors: ")
    assert logging.getLogger("frpcag").level == level


def test_an_unreached_gap_says_what_it_means_and_points_at_the_line(X):
    (warned,) = messages(FRPCAG(max_iter=2), X)
    assert warned.category is ConvergenceWarning
    assert "is proved to be within" in str(warned.message)
    assert "raise max_iter to 8" in str(warned.message)
    assert warned.filename == __file__


def test_a_fitted_model_shows_its_certificate_in_a_notebook(X):
    unfitted, model = FRPCAG(), FRPCAG().fit(X)
    assert "proved" not in unfitted._repr_html_()
    for shown in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "is proved to be within" in shown
        assert "60 samples, 12 features" in shown
        assert shown.count("<img") == 3


def test_a_report_without_a_path_shows_itself(X):
    shown = FRPCAG().fit(X).report(title="<b>mine</b>")._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert "<b>" not in shown
