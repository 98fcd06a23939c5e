"""A report in words: what stands out is named, and the certificate says what is proved."""

from dataclasses import replace

import numpy as np
import pytest

from frpcag.insight import outlier_shares
from frpcag.report import Fit
from frpcag.report.words import certificate, percent, summary, table_of, worst_features, worst_samples


def test_where_nothing_stands_out_the_largest_means_come_first():
    S = np.diag([1.0, 3.0, 2.0])
    fit = Fit(U=np.ones((3, 3)), S=S, shares=replace(outlier_shares(S), samples=np.zeros(3), features=np.zeros(3)))
    assert [row["number"] for row in worst_samples(fit)] == [1, 2, 0]
    assert [row["number"] for row in worst_features(fit)] == [1, 2, 0]


def test_summary_names_the_bad_sample_and_the_bad_feature(fit):
    words = " ".join(summary(replace(fit, feature_names=[f"sensor {j}" for j in range(36)])))
    assert "60 samples with 36 features" in words
    assert "Worst sample: 7 " in words
    assert "worst feature: sensor 31 " in words


def test_summary_of_clean_data_says_so():
    assert "No entry stands out" in " ".join(summary(Fit(U=np.ones((3, 2)), S=np.zeros((3, 2)))))


@pytest.mark.parametrize(
    ("status", "words"), [("max_iter", "30 steps, the limit"), ("stopped", "30 steps, then stopped")]
)
def test_certificate_says_why_the_solver_ended(status, words):
    assert words in certificate({"relative_gap": 0.2, "tol": 1e-3, "n_iter": 30, "status": status})


def test_small_shares_keep_their_digits():
    assert [percent(share) for share in (0.00018, 0.034, 0.5, 1.0)] == ["0.018 %", "3.4 %", "50 %", "100 %"]


def test_nested_records_become_flat_tables():
    assert table_of({"a": {"b_c": 0.123456}, "d": None}) == [("a b c", "0.1235"), ("d", "None")]
