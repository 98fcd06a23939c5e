"""Which cells are wrong: the mixture, exact repeats, and the guard that protects clean data."""

import numpy as np
import pytest

from frpcag.cells.feature_graphs import grid_weights
from frpcag.cells.guard import LEAST_SIGMAS, Judge, cells_in_doubt, hide
from frpcag.cells.metric import column_folds
from frpcag.cells.mixture import fit_mixture, row_probability
from frpcag.cells.repeats import common_values, equal_witnesses, find_repeats


def test_the_mixture_reads_off_share_and_scale():
    rng = np.random.default_rng(0)
    spread = rng.choice([0.1, 1.0], size=(200, 200))
    residual = spread * rng.standard_t(4, size=spread.shape)
    wrong = rng.random(spread.shape) < 0.08
    residual[wrong] = rng.uniform(-20, 20, size=wrong.sum())
    mixture = fit_mixture(residual, spread, np.ones(spread.shape, bool), 40.0)
    assert mixture.share == pytest.approx(0.08, abs=0.02)
    post = mixture.posterior(residual, spread)
    assert post.mean() == pytest.approx(0.08, abs=0.02)
    assert np.mean((post > 0.5) == wrong) > 0.97
    # the same deviation is wrong among cells that agree and right among cells that do not
    same = mixture.posterior(np.full(2, 2.0), np.array([0.1, 1.0]))
    assert same[0] > 0.9 > 0.1 > same[1]


def test_a_row_is_wrong_when_most_of_its_cells_are():
    post = np.zeros((3, 100))
    post[1, :40], post[2, :95] = 1, 1
    probability = row_probability(post, np.ones(post.shape, bool))
    assert probability[0] < 0.01
    assert probability[1] < 0.1
    assert probability[2] > 0.9


def faces(rng, n=150, side=20):
    """Return smooth images without a repeated value."""
    x, y = np.mgrid[:side, :side] / side
    parts = np.stack([np.ones_like(x), x, y, x * y, np.sin(4 * x), np.cos(5 * y)]).reshape(6, -1)
    return rng.normal(size=(n, 6)) @ parts + 0.01 * rng.normal(size=(n, side * side))


def test_scattered_overwriting_is_read_off_with_its_rate():
    rng = np.random.default_rng(1)
    X = faces(rng)
    hit = rng.random(X.shape) < 0.3
    X[hit] = 0
    W2, observed = grid_weights(20, 20), np.ones(X.shape, bool)
    (found,) = find_repeats(X, observed, W2)
    assert (found.kind, found.value) == ("scattered", 0.0)
    assert found.rate == pytest.approx(0.3, abs=0.02)
    np.testing.assert_array_equal(found.posterior(X, observed, W2) > 0.5, hit)


def test_a_patch_is_found_and_a_disc_is_not():
    rng = np.random.default_rng(2)
    W2 = grid_weights(20, 20)
    for kind in ("patch", "disc"):
        X, hit = faces(rng), np.zeros((150, 20, 20), bool)
        x, y = np.mgrid[:20, :20]
        for image in hit:
            top, left = rng.integers(0, 10, size=2)
            if kind == "patch":
                image[top : top + 10, left : left + 10] = True
            else:
                image[(x - top - 5) ** 2 + (y - left - 5) ** 2 < 26] = True
        X[hit.reshape(150, -1)] = 0
        found = find_repeats(X, np.ones(X.shape, bool), W2)
        if kind == "disc":
            assert found == []
        else:
            assert found[0].kind == "patch"
            np.testing.assert_array_equal(found[0].posterior(X, np.ones(X.shape, bool), W2) > 0, hit.reshape(150, -1))


def test_categories_of_one_column_are_no_repeats():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 10))
    X[:, 4] = rng.integers(0, 2, size=300)
    assert common_values(X, np.ones(X.shape, bool)) == []


def test_witnesses_count_the_neighbours_that_are_equal():
    equal = np.zeros((1, 9), bool)
    equal[0, [1, 3]] = True  # above and left of the centre of a 3 x 3 image
    assert equal_witnesses(equal, grid_weights(3, 3))[0, 4] == 2


def judge_of(X):
    rng = np.random.Generator(np.random.SFC64(5))
    return Judge(X.astype(np.float32), np.ones(X.shape, bool), column_folds(X.shape[1]), None, rng, n_jobs=1)


def test_the_judge_keeps_flags_of_wrong_cells():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 15)) + 0.3 * rng.normal(size=(200, 15))
    hit = rng.random(X.shape) < 0.03
    X[hit] += 10 * rng.choice([-1, 1], size=hit.sum())
    seen = np.ones(X.shape, bool)
    assert judge_of(X).compare(seen, ~hit).favours_flags(LEAST_SIGMAS)


def test_the_judge_rejects_flags_of_extremes_that_are_right():
    rng = np.random.default_rng(6)
    X = rng.standard_t(3, size=(200, 3)) @ rng.normal(size=(3, 15)) + 0.3 * rng.normal(size=(200, 15))
    seen = np.ones(X.shape, bool)
    extreme = np.abs(X) > np.quantile(np.abs(X), 0.97)
    verdict = judge_of(X).compare(seen, ~extreme)
    assert verdict.change > 0
    assert not verdict.favours_flags()


def test_cells_in_doubt_are_counted_for_each_flagged_one():
    assert cells_in_doubt(np.array([0.9, 0.8, 0.3, 0.01])) == 0.5


def test_a_hold_out_leaves_something_in_every_row_and_column():
    rng = np.random.Generator(np.random.SFC64(7))
    observed = np.random.default_rng(8).random((30, 30)) < 0.1
    left = observed & ~hide(observed, 0.9, rng)
    assert (left.any(axis=1) == observed.any(axis=1)).all()
    assert (left.any(axis=0) == observed.any(axis=0)).all()
