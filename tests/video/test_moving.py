"""A background that moves: what linked frames show in the same place is background, people in front of it are not."""

import numpy as np
import pytest
from reproduction.evaluate.foreground import mask_scores

from frpcag import BackgroundSeparator
from frpcag.video.similar_frames import explain, typical_size


def stripes(n=60, h=40, w=60, *, seed=0):
    """Stripes that move down in the right half, a wall in the left one, and a square that jumps about."""
    rng = np.random.default_rng(seed)
    down = np.arange(h)[:, None]
    truth = np.zeros((n, h, w), bool)
    frames = np.empty((n, h, w))
    for t in range(n):
        passing = np.where((down - rng.integers(12)) % 12 < 6, 60, 140)
        frames[t] = np.where(np.arange(w) >= w // 2, passing, 100)
        top, left = rng.integers(0, h - 12), rng.integers(0, w - 12)
        truth[t, top : top + 12, left : left + 12] = True
    frames[truth] = 225
    frames += rng.normal(0, 2, frames.shape)
    return np.clip(np.rint(frames), 0, 255).astype(np.uint8), truth


def sorted_by_hand(frame, mean, planes, moving, links, noise):
    """What ``explain`` says, pixel by pixel, by sorting all distances."""
    out = mean.copy()
    for at in np.ndindex(*mean.shape):
        off = frame[at] - mean[at]
        free = [abs(planes[link][at] - frame[at]) for link in links if not moving[link, at[0]]]
        rank = max(int(np.ceil(0.2 * len(free))), 2)
        if abs(off) > 2 * noise and len(free) >= rank:
            left = min(abs(off), sorted(free)[rank - 1] + 2 * noise)
            out[at] = frame[at] - np.sign(off) * left
    return out


@pytest.mark.parametrize("n_links", [0, 1, 2, 11])
def test_a_value_that_a_fifth_of_the_free_linked_frames_show_explains_a_frame(n_links):
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 255, (14, 30, 3)).astype(np.float32)
    moving = rng.random((14, 30)) < 0.3
    mean, links = rng.uniform(80, 160, (30, 3)).astype(np.float32), rng.permutation(14)[:n_links]
    found = explain(planes[0], mean, planes, moving, links, 3.0)
    np.testing.assert_allclose(found, sorted_by_hand(planes[0], mean, planes, moving, links, 3.0), atol=1e-3)
    assert (found != mean).any() == (n_links > 1)


def test_stripes_that_pass_are_background_and_who_stands_in_front_is_not():
    frames, truth = stripes()
    model = BackgroundSeparator().fit(frames)
    half = np.s_[:, :, 32:]  # clear of the rim between wall and stripes
    scores = mask_scores(model.mask_[half], truth[half].astype(int))
    assert scores["precision"] > 0.8
    assert scores["recall"] > 0.9


def test_the_typical_size_is_the_median_of_what_is_free():
    rng = np.random.default_rng(0)
    off, hidden = rng.normal(size=(21, 5, 2)), rng.random((21, 5)) < 0.4
    hidden[:, 3] = True
    found = typical_size(off, hidden, otherwise=7.0)
    for pixel in range(5):
        shown = np.abs(off[~hidden[:, pixel], pixel])
        by_hand = 1.4826 * np.median(shown, axis=0) if len(shown) else 7.0
        np.testing.assert_allclose(found[pixel], by_hand, rtol=1e-5)
