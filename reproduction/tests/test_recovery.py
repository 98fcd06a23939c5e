"""Recovery scores against direct formulas and scikit-learn."""

import numpy as np
import pytest
from reproduction.evaluate import outlier_scores, relative_error
from sklearn.metrics import precision_recall_fscore_support


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_relative_error_is_the_ratio_of_frobenius_norms(rng):
    clean = rng.standard_normal((2500, 7))
    U = clean + rng.standard_normal((2500, 7))
    assert relative_error(U, clean) == pytest.approx(np.linalg.norm(U - clean) / np.linalg.norm(clean), rel=1e-12)


def test_relative_error_accumulates_float32_in_float64():
    clean = np.full((3000, 10), 1e4, dtype=np.float32)
    U = clean + np.float32(1)
    assert relative_error(U, clean) == pytest.approx(1e-4, rel=1e-12)


def test_relative_error_of_unsigned_images_does_not_wrap():
    U, clean = np.array([[10]], dtype=np.uint8), np.array([[30]], dtype=np.uint8)
    assert relative_error(U, clean) == pytest.approx(2 / 3)


def test_relative_error_refuses_other_shapes():
    with pytest.raises(ValueError, match=r"U has shape \(2, 2\) and clean \(2, 3\)"):
        relative_error(np.ones((2, 2)), np.ones((2, 3)))


def test_relative_error_refuses_a_clean_matrix_of_zeros():
    with pytest.raises(ValueError, match="clean is all zero"):
        relative_error(np.ones((2, 2)), np.zeros((2, 2)))


def test_outlier_scores_agree_with_scikit_learn(rng):
    S, mask = rng.standard_normal((30, 20)), rng.random((30, 20)) < 0.2
    scores = outlier_scores(S, mask, threshold=1.0)
    expected = precision_recall_fscore_support(mask.ravel(), np.abs(S).ravel() > 1, average="binary")
    assert [scores["precision"], scores["recall"], scores["f1"]] == pytest.approx(expected[:3])
    assert scores["threshold"] == 1.0


def test_outlier_scores_find_gross_errors_in_gaussian_noise(rng):
    S, mask = rng.standard_normal((200, 100)), rng.random((200, 100)) < 0.1
    S[mask] += 50
    scores = outlier_scores(S, mask)
    # The median is taken over all entries, outliers included, so the threshold is a little above 3.
    assert 3 < scores["threshold"] < 3.6
    assert scores["recall"] == 1
    assert scores["precision"] > 0.97


def test_outlier_scores_take_rounding_for_zero():
    S = np.array([[5.0, 1e-13, -1e-12, 0.0, 0.0]])
    assert outlier_scores(S, [[True, False, False, False, False]])["precision"] == 1


def test_outlier_scores_of_nothing_claimed_and_nothing_corrupted_are_one():
    scores = outlier_scores(np.zeros((2, 2)), np.zeros((2, 2)))
    assert scores == {"precision": 1, "recall": 1, "f1": 1, "threshold": 0}


def test_outlier_scores_of_nothing_claimed_miss_everything():
    scores = outlier_scores(np.zeros((2, 2)), np.ones((2, 2)))
    assert (scores["precision"], scores["recall"], scores["f1"]) == (1, 0, 0)


def test_outlier_scores_refuse_a_mask_of_another_shape():
    with pytest.raises(ValueError, match=r"S has shape \(2, 2\) and mask \(1, 2\)"):
        outlier_scores(np.ones((2, 2)), np.ones((1, 2)))
