"""Wrong cells in the report: the words, the map, the tables come from the probabilities of a cleaner."""

import numpy as np
import pandas as pd
import pytest

from frpcag import FRPCAG, RobustGraphCleaner
from frpcag.report import Fit, render_report
from frpcag.report.cells import Cells, sentences
from support.browser import needs_browser


def cells(repaired=(), wrong_rows=(), n_filled=0, shape=(20, 5)):
    flags = np.zeros(shape, bool)
    for at in repaired:
        flags[at] = True
    return Cells(
        np.where(flags, 3.0, 0.1), flags.astype(float), flags, np.array(wrong_rows, int), np.ones(shape[1]), n_filled
    )


def said(found):
    return " ".join(sentences(found, lambda i: f"day {i}", lambda j: f"sensor {j}"))


def test_nothing_wrong_is_said_in_a_word():
    assert said(cells()) == ("20 samples with 5 features: no cell contradicts the others, so no value was changed.")


def test_wrong_cells_are_counted_and_the_worst_are_named():
    text = said(cells([(3, 1), (4, 1), (4, 2)]))
    assert "3 cells (3 %) are probably wrong and were repaired" in text
    assert "features sensor 1 (10 % of its cells), sensor 2 (5 % of its cells)" in text
    assert "samples day 4 (40 % of its cells), day 3 (20 % of its cells)" in text


def test_whole_rows_and_missing_cells_are_told_apart():
    text = said(cells([(0, 0)], wrong_rows=[7, 8, 9, 10], n_filled=2))
    assert "1 cell (1 %) is probably wrong and was repaired" in text
    assert "4 samples are wrong as a whole (day 7, day 8, day 9 and 1 more): look at them. They were left" in text
    assert text.endswith("2 missing cells were filled in.")


@pytest.fixture(scope="module")
def cleaner():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 6)) + 0.05 * rng.normal(size=(80, 6))
    X[rng.random(X.shape) < 0.05] += 6
    X[5, 2] = np.nan
    return RobustGraphCleaner(FRPCAG(tol=1e-2), random_state=0).fit(pd.DataFrame(X, columns=list("abcdef")))


def test_a_cleaner_as_a_report_shares_its_probabilities(cleaner):
    fit = Fit.of_cleaner(cleaner)
    wrong = cleaner.outlier_probability_ > 0.5
    np.testing.assert_allclose(fit.shares.features, wrong.mean(axis=0))
    changed = fit.S != 0
    np.testing.assert_array_equal(changed, cleaner.outliers_)
    text = render_report(fit)
    assert f"{cleaner.outliers_.sum()} cells (" in text
    assert 'id="plot-cells"' in text
    assert 'id="plot-outliers"' not in text
    assert "|S|" not in text
    assert "1 missing cell was filled in" in text


@needs_browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_page_of_a_cleaner_fits_the_window(cleaner, browser, tmp_path, width, dark):
    page = cleaner.report(tmp_path / "cells.html", title="table.csv", sample_names=[f"day {i}" for i in range(80)])
    browser.errors.clear()
    browser.open(page.as_uri(), width=width, dark=dark)
    assert browser.errors == []
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("document.querySelector('#plot-cells img').naturalWidth") > 300
