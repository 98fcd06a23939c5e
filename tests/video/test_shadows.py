"""Shadows count less than objects, and a coat of nearly the colour of the wall is still found."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import BackgroundSeparator
from frpcag.video.masks import foreground_score

NOISE = 2.0
INSIDE = (0, slice(16, 32), slice(20, 44))  # away from the rim, where slope counts


def tiles(channels=None):
    """Return a wall of tiles 4 pixels wide, from 80 to 120 grey levels."""
    wall = np.where((np.add.outer(np.arange(48), np.arange(64)) // 4) % 2, 120.0, 80.0)[None]
    return wall if channels is None else np.repeat(wall[..., None], channels, axis=3)


def scores(frame, wall):
    """Return the mean score inside, with the background known and without."""
    return [foreground_score(frame - wall, NOISE, background=b)[INSIDE].mean() for b in (wall, None)]


def test_a_shadow_counts_for_less_than_half():
    wall = tiles()
    frame = wall.copy()
    frame[:, 8:40, 12:52] *= 0.75
    known, unknown = scores(frame, wall)
    assert unknown > 15
    assert known < 0.4 * unknown


@pytest.mark.parametrize("change", [lambda wall: 0 * wall + 70, lambda wall: 200 - wall, lambda wall: 1.3 * wall])
def test_objects_and_lights_count_as_before(change):
    wall = tiles()
    frame = wall.copy()
    frame[:, 8:40, 12:52] = change(wall)[:, 8:40, 12:52]
    known, unknown = scores(frame, wall)
    assert known > 0.95 * unknown


def test_what_is_darker_than_a_shadow_can_be_is_an_object():
    wall = tiles()
    frame = wall.copy()
    frame[:, 8:40, 12:52] *= 0.4
    known, unknown = scores(frame, wall)
    assert_allclose(known, unknown, rtol=1e-6)


def test_a_colour_is_no_shadow():
    wall = tiles(3)
    grey, blue = wall.copy(), wall.copy()
    grey[:, 8:40, 12:52] *= 0.75
    blue[:, 8:40, 12:52] *= [0.55, 0.7, 1.0]  # as dark in the mean
    assert scores(grey, wall)[0] < 7
    assert scores(blue, wall)[0] > 14


@pytest.mark.parametrize("scale", [1e-3, 300.0])
def test_the_units_do_not_matter(scale):
    rng = np.random.default_rng(0)
    wall = tiles()
    frame = wall + rng.normal(0, NOISE, wall.shape)
    frame[:, 8:40, 12:52] *= 0.8
    expected = foreground_score(frame - wall, NOISE, background=wall)
    got = foreground_score(scale * (frame - wall), scale * NOISE, background=scale * wall)
    assert_allclose(got, expected, rtol=1e-3, atol=1e-3)


def test_frames_below_black_have_no_shadows_and_no_warnings():
    wall = tiles() - 100
    frame = wall.copy()
    frame[:, 8:40, 12:52] -= 25
    score = foreground_score(frame - wall, NOISE, background=wall)
    assert np.isfinite(score).all()
    assert score[INSIDE].mean() > 8


def test_masks_are_made_of_the_whole_difference_to_the_references():
    rng = np.random.default_rng(0)
    frames = rng.normal(100, NOISE, (30, 24, 32)).astype(np.float32)
    for t in range(30):
        frames[t, 6:18, t % 20 : t % 20 + 8] += 22
    model = BackgroundSeparator(threshold=5.0).fit(frames)
    model._keep(model.references_[:1], 1)
    behind = np.broadcast_to(model.references_[:1].astype(np.float32), frames.shape)
    score = foreground_score(frames - behind, model.noise_map_, background=behind)
    clear = np.abs(score - 5) > 0.02  # sums in another order
    mask = model.transform(frames)
    assert (mask == (score > 5))[clear].all()
    assert 0 < mask.mean() < 0.9
