"""What stands still for long: it is foreground where other frames show its place free."""

import numpy as np
import pytest
from reproduction.evaluate.foreground import mask_scores
from scipy.ndimage import gaussian_filter

from frpcag import BackgroundSeparator
from frpcag.video.ghosts import find_free_places, free_first
from frpcag.video.masks import foreground_score


def standing(share, *, n=80, h=48, w=64):
    """A person who walks in, stands still for a share of the clip and walks out: frames, wall, truth."""
    rng = np.random.default_rng(0)
    wall = 100 + 30 * gaussian_filter(rng.normal(size=(h, w)), 2) / 0.14
    coat = 170 + 20 * rng.normal(size=(h, w))
    stands = round(share * n)
    came = (n - stands) // 2
    truth = np.zeros((n, h, w), bool)
    for t in range(n):
        left = 30 if came <= t < came + stands else rng.choice([*range(18), *range(42, 55)])
        truth[t, 20:38, left : left + 9] = True
    frames = np.where(truth, coat, wall) + rng.normal(0, 3, truth.shape)
    return np.clip(np.rint(frames), 0, 255).astype(np.uint8), wall, truth


@pytest.mark.parametrize("share", [0.6, 0.7, 0.8])
def test_a_person_who_stands_still_does_not_burn_in(share):
    frames, wall, truth = standing(share)
    model = BackgroundSeparator().fit(frames)
    assert mask_scores(model.mask_, truth.astype(int))["f1"] > 0.9
    behind = truth & truth[40]  # the wall behind the person who stands
    assert np.abs(model.background_ - wall)[behind].mean() < 4
    # The median of the clip is what a place looks like for most of the time: the person.
    assert np.abs(np.median(frames, axis=0) - wall)[truth[40]].mean() > 30


def found_in(frames, noise):
    return find_free_places(frames, noise, lambda S: foreground_score(S, noise))


def test_a_free_place_is_found_in_the_light_it_was_seen_in():
    frames, wall, truth = standing(0.7)
    dark = np.concatenate([frames, frames // 2])
    found = found_in(dark, 3.0)
    assert found.places.shape[0] == 2
    assert len(np.unique(found.light[:80])) == len(np.unique(found.light[80:])) == 1
    inside = truth[40]
    for which, scale in ((found.light[0], 1.0), (found.light[-1], 0.5)):
        assert found.places[which][inside].mean() > 0.8
        free = found.places[which] & inside
        assert np.abs(found.free[which] - scale * wall)[free].mean() < 4


def test_nothing_is_found_where_nothing_stands_still():
    rng = np.random.default_rng(0)
    frames = rng.normal(100, 3, (60, 32, 48))
    for frame in frames:
        top, left = rng.integers(0, 20), rng.integers(0, 36)
        frame[top : top + 12, left : left + 12] = rng.uniform(150, 250)
    assert not found_in(frames, 3.0)


def test_what_stands_in_a_free_place_is_left_out_and_the_rest_is_not():
    frames, _, truth = standing(0.7)
    planes = frames.reshape(80, -1, 1).astype(np.float32)
    first, moving = planes.copy(), np.zeros(planes.shape[:2], bool)
    found = found_in(frames, 3.0)
    free_first(found, planes, first, moving, 3.0)
    at = found.places[0].ravel() & truth[40].ravel()
    assert moving[40][at].mean() > 0.9
    assert moving[2][at].mean() < 0.05
    np.testing.assert_array_equal(first[:, ~found.places[0].ravel()], planes[:, ~found.places[0].ravel()])
