"""Scores of foreground masks."""

import numpy as np
import pytest
from reproduction.evaluate.foreground import best_threshold, mask_scores
from sklearn.metrics import precision_recall_fscore_support


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    truth = rng.choice([0, 0, 0, 1, 255], size=(3, 10, 12))
    return np.abs(rng.normal(size=truth.shape) + 1.5 * (truth == 1)), truth


def sklearn_scores(mask, truth):
    counts = truth != 255
    return precision_recall_fscore_support(truth[counts] == 1, mask[counts], average="binary")[:3]


def test_scores_are_those_of_scikit_learn(scored):
    score, truth = scored
    found = mask_scores(score > 1, truth)
    np.testing.assert_allclose(list(found.values()), sklearn_scores(score > 1, truth))


def test_best_threshold_is_the_best_of_all_thresholds(scored):
    score, truth = scored
    best = best_threshold(score, truth)
    by_force = max(sklearn_scores(score >= value, truth)[2] for value in score.ravel())
    assert best["f1"] == pytest.approx(by_force, abs=2e-3)  # 4096 thresholds, not all of them
    np.testing.assert_allclose(
        [best[key] for key in ("precision", "recall", "f1")], sklearn_scores(score >= best["threshold"], truth)
    )


def test_pixels_to_ignore_do_not_count(scored):
    score, truth = scored
    other = np.where(truth == 255, 99.0, score)
    assert mask_scores(score > 1, truth) == mask_scores(other > 1, truth)
    expected = best_threshold(score, truth)["f1"]
    assert best_threshold(np.minimum(other, 9), truth)["f1"] == pytest.approx(expected, abs=2e-3)


def test_a_scene_without_foreground_is_scored():
    empty = np.zeros((1, 2, 2), int)
    assert mask_scores(empty > 0, empty) == {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert best_threshold(np.zeros((1, 2, 2)), empty)["f1"] == 1.0


def test_shapes_that_differ_are_refused():
    with pytest.raises(ValueError, match=r"mask has shape \(2, 2\) and truth \(2, 3\)"):
        mask_scores(np.zeros((2, 2), bool), np.zeros((2, 3)))


def test_scores_below_zero_are_refused():
    with pytest.raises(ValueError, match="score has entries that are negative"):
        best_threshold(np.array([[[-1.0]]]), np.array([[[1]]]))


def test_a_mask_is_a_score_too():
    mask = np.array([[[True, False, True, False]]])
    assert best_threshold(mask, mask)["f1"] == 1.0
