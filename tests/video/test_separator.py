"""BackgroundSeparator: what it separates, what it keeps, what it refuses."""

import os

import numpy as np
import pytest
from reproduction.evaluate.foreground import mask_scores
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from frpcag import BackgroundSeparator
from frpcag.video.masks import foreground_score
from frpcag.video.similar_frames import nearest_frames, noise_map, shrink


def scene(n=60, h=32, w=48, *, seed=0):
    """A noisy wall with texture and a square that jumps about: frames, background, truth."""
    rng = np.random.default_rng(seed)
    wall = 100 + 30 * gaussian_filter(rng.normal(size=(h, w)), 2) / 0.14
    truth = np.zeros((n, h, w), bool)
    for t in range(n):
        top, left = rng.integers(0, h - 12), rng.integers(0, w - 12)
        truth[t, top : top + 12, left : left + 12] = True
    frames = np.where(truth, 220.0, wall) + rng.normal(0, 3, (n, h, w))
    return np.clip(np.rint(frames), 0, 255).astype(np.uint8), wall, truth


@pytest.fixture
def walk():
    return scene()


def f1(mask, truth):
    return mask_scores(mask, truth.astype(int))["f1"]


def test_what_moves_is_masked_and_the_wall_behind_it_is_seen(walk):
    frames, wall, truth = walk
    model = BackgroundSeparator().fit(frames)
    assert f1(model.mask_, truth) > 0.9
    assert np.abs(model.background_ - wall)[truth].mean() < 4
    assert model.background_.dtype == model.foreground_.dtype == np.float32
    np.testing.assert_allclose(model.background_ + model.foreground_, frames, atol=1e-3)


def test_a_light_switch_belongs_to_the_background(walk):
    frames, _, truth = walk
    dark = (np.arange(60) // 15) % 2 == 1
    switched = np.where(dark[:, None, None], frames // 2, frames).astype(np.uint8)
    model = BackgroundSeparator().fit(switched)
    assert f1(model.mask_, truth) > 0.9
    assert abs(np.median(model.background_[dark]) / np.median(model.background_[~dark]) - 0.5) < 0.05
    still = np.abs(switched - np.median(switched, axis=0)) > 20  # one background for all frames calls the dark moving
    assert f1(still, truth) < 0.5


def test_noise_is_that_of_the_clip():
    rng = np.random.default_rng(0)
    model = BackgroundSeparator().fit(rng.normal(100, 5, (80, 20, 30)))
    assert model.noise_ == pytest.approx(5, rel=0.15)
    assert model.mask_.mean() < 0.01


@pytest.mark.parametrize("scale", [1 / 255, 257.0])
def test_the_units_of_the_frames_do_not_matter(walk, scale):
    frames = walk[0][:30]
    one, other = BackgroundSeparator().fit(frames), BackgroundSeparator().fit(frames * scale)
    np.testing.assert_array_equal(one.mask_, other.mask_)
    # Not a power of two: the solver rounds differently.
    np.testing.assert_allclose(other.background_, scale * one.background_, rtol=1e-3)
    assert other.gamma1_ * scale == pytest.approx(one.gamma1_, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_frames_of_other_precisions_are_separated_as_the_next_one(walk, dtype):
    frames = walk[0][:30].astype(dtype)
    model, usual = BackgroundSeparator().fit(frames), BackgroundSeparator().fit(frames.astype(np.float64))
    np.testing.assert_array_equal(model.transform(frames[0]), usual.transform(frames[0].astype(np.float64)))


def test_grey_as_colour_gives_the_mask_of_grey(walk):
    frames = walk[0][:30]
    grey = BackgroundSeparator().fit(frames)
    colour = BackgroundSeparator().fit(np.repeat(frames[..., None], 3, axis=3))
    assert colour.background_.shape == (30, 32, 48, 3)
    np.testing.assert_array_equal(colour.mask_, grey.mask_)
    np.testing.assert_array_equal(colour.background_[..., 1], grey.background_)


def test_colour_finds_what_grey_cannot_see(walk):
    frames, _, truth = walk
    wall = np.median(frames, axis=0).astype(np.float32)
    red = np.where(truth, wall + 60, wall)
    green = np.where(truth, wall - 60, wall)
    clip = np.stack([red, green, np.broadcast_to(wall, red.shape)], axis=3)
    clip += np.random.default_rng(1).normal(0, 3, clip.shape)
    assert f1(BackgroundSeparator().fit(clip).mask_, truth) > 0.9
    assert f1(BackgroundSeparator().fit(clip.mean(axis=3)).mask_, truth) < 0.1


@pytest.mark.parametrize("shape", [(2, 5, 7), (3, 1, 9), (5, 16, 1), (4, 2, 2, 3)])
def test_tiny_clips_are_separated(shape):
    frames = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    model = BackgroundSeparator().fit(frames)
    assert model.mask_.shape == shape[:3]
    assert np.isfinite(model.background_).all()


def test_a_constant_clip_has_no_foreground():
    model = BackgroundSeparator().fit(np.full((10, 8, 8), 7, np.uint8))
    assert not model.mask_.any()
    np.testing.assert_array_equal(model.background_, 7)


def test_results_do_not_depend_on_the_number_of_threads(walk):
    one, two = (BackgroundSeparator(n_jobs=n).fit(walk[0]) for n in (1, 2))
    np.testing.assert_array_equal(one.background_, two.background_)
    np.testing.assert_array_equal(one.mask_, two.mask_)


def test_it_is_a_scikit_learn_estimator(walk):
    model = BackgroundSeparator(threshold=5.0, max_iter=3)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.fit(walk[0]).threshold_ == 5.0
    np.testing.assert_array_equal(copy.fit_transform(walk[0]), copy.mask_)


def test_a_lower_threshold_masks_more(walk):
    low, high = (BackgroundSeparator(threshold=level).fit(walk[0]).mask_ for level in (4.0, 16.0))
    assert low.sum() > high.sum()


def test_new_frames_are_masked_against_the_frozen_background(walk):
    frames, wall, truth = walk
    model = BackgroundSeparator().fit(frames[:40])
    assert f1(model.transform(frames[40:]), truth[40:]) > 0.9
    # A background pixel may leave the mean of its references by 1 / (2 gamma1).
    assert np.abs(model.background(frames[40:]) - wall)[truth[40:]].mean() < 3 + 1 / (2 * model.gamma1_)


def test_a_new_frame_does_not_depend_on_the_others(walk):
    model = BackgroundSeparator().fit(walk[0][:40])
    rest = walk[0][40:]
    np.testing.assert_array_equal(model.transform(rest)[3], model.transform(rest[3]))
    np.testing.assert_array_equal(model.background(rest)[3], model.background(rest[3]))


def test_the_background_of_a_new_frame_solves_its_problem(walk):
    frames = walk[0]
    model = BackgroundSeparator().fit(frames[:40])
    x = frames[50].astype(float)
    distance = np.abs(shrink(model.references_) - shrink(x[None])).sum(axis=1)
    mean = model.references_[np.argsort(distance)[: model.n_links_]].mean(axis=0, dtype=float)
    found = model.background(x)
    for i, j in [(0, 0), (15, 6), (15, 20), (31, 47)]:
        best = minimize_scalar(
            lambda u, i=i, j=j: abs(x[i, j] - u) + model.gamma1_ * (u - mean[i, j]) ** 2,
            bounds=(0, 255),
            method="bounded",
            options={"xatol": 1e-6},
        )
        assert found[i, j] == pytest.approx(best.x, abs=1e-2)


def test_saved_and_loaded_it_masks_the_same(walk, tmp_path):
    model = BackgroundSeparator(threshold=9.0).fit(walk[0][:40])
    model.save(tmp_path / "model.npz")
    back = BackgroundSeparator.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(back.transform(walk[0][40:]), model.transform(walk[0][40:]))
    np.testing.assert_array_equal(back.background(walk[0][40:]), model.background(walk[0][40:]))
    assert back.get_params() == model.get_params()
    assert os.listdir(tmp_path) == ["model.npz"]


def test_few_references_stand_for_a_still_scene_and_one_for_each_light(walk, tmp_path):
    frames, _, _ = walk
    model = BackgroundSeparator().fit(frames)
    model.save(tmp_path / "model.npz")
    assert len(model.references_) <= 4
    assert (tmp_path / "model.npz").stat().st_size < frames.nbytes
    dark = (np.arange(60) // 15) % 2 == 1
    switched = BackgroundSeparator().fit(np.where(dark[:, None, None], frames // 2, frames))
    levels = np.median(switched.references_.astype(float), axis=(1, 2))
    assert levels.min() < 60 < 90 < levels.max()


def test_a_background_that_follows_takes_dusk_for_background(walk):
    frames, _, truth = walk
    model = BackgroundSeparator().fit(frames)
    dusk = [
        (np.clip(frame * (1 - t / 600), 0, 255), seen)
        for t, (frame, seen) in enumerate(zip([*frames] * 4, [*truth] * 4, strict=True))
    ]
    frozen = f1(model.transform(dusk[-1][0]), dusk[-1][1])
    followed = [model.follow(frame)[1] for frame, _ in dusk]
    assert (
        f1(np.stack(followed[-20:]), np.stack([seen for _, seen in dusk[-20:]])) > 0.85 > 0.8 > frozen
    )  # frozen, dusk is a shadow


def test_partial_fit_is_a_fit_first_and_then_follows(walk):
    frames = walk[0]
    model = BackgroundSeparator().partial_fit(frames[:40])
    np.testing.assert_array_equal(model.references_, BackgroundSeparator().fit(frames[:40]).references_)
    by_hand = BackgroundSeparator().fit(frames[:40])
    for frame in frames[40:50]:
        by_hand.follow(frame)
    model.partial_fit(frames[40:49]).partial_fit(frames[49])
    np.testing.assert_array_equal(model.drift_, by_hand.drift_)
    assert model.drift_.any()


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        (np.zeros((1, 4, 4)), "one frame"),
        (np.zeros((4, 4)), r"shape \(4, 4\)"),
        (np.zeros((0, 4, 4)), r"shape \(0, 4, 4\)"),
        (np.zeros((3, 4, 4, 2)), r"shape \(3, 4, 4, 2\)"),
        (np.full((3, 4, 4), np.nan), "NaN or infinite"),
        (np.zeros((3, 4, 4), complex), "dtype complex128"),
    ],
)
def test_bad_frames_are_refused(frames, words):
    with pytest.raises(ValueError, match=words):
        BackgroundSeparator().fit(frames)


@pytest.mark.parametrize(
    "params", [{"n_neighbors": 60}, {"n_neighbors": 0}, {"gamma1": -1}, {"threshold": "high"}, {"callback": 3}]
)
def test_bad_parameters_are_named(params, walk):
    with pytest.raises(ValueError, match=next(iter(params))):
        BackgroundSeparator(**params).fit(walk[0])


def test_new_frames_of_another_size_are_refused(walk):
    model = BackgroundSeparator(max_iter=2).fit(walk[0])
    with pytest.raises(ValueError, match=r"fitted to frames of \(32, 48\)"):
        model.transform(np.zeros((3, 8, 8)))


def test_ctrl_c_ends_the_fit(walk):
    def interrupt(at):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BackgroundSeparator(callback=interrupt).fit(walk[0])


def test_similar_frames_are_the_nearest_that_are_not_near_in_time():
    Z = np.random.default_rng(0).normal(size=(50, 6))
    near = nearest_frames(Z, 4)
    for i in range(50):
        far = [j for j in range(50) if abs(i - j) >= 50 / 20]
        expected = sorted(far, key=lambda j: np.abs(Z[i] - Z[j]).sum())[:4]
        assert near[i].tolist() == expected
    np.testing.assert_array_equal(nearest_frames(Z, 4, rows=np.array([7, 30])), near[[7, 30]])


def test_thumbnails_are_means_of_blocks():
    frames = np.random.default_rng(0).normal(size=(3, 70, 100)).astype(np.float32)
    side = 2  # 7000 pixels in about 1200 cells
    expected = frames.reshape(3, 35, side, 50, side).mean(axis=(2, 4)).reshape(3, -1)
    np.testing.assert_allclose(shrink(frames), expected, atol=1e-6)


def test_thumbnails_of_sizes_that_do_not_divide_are_means_too():
    np.testing.assert_allclose(shrink(np.full((1, 71, 103), 5.0)), 5.0)


def test_each_pixel_has_its_own_noise():
    rng = np.random.default_rng(0)
    planes = rng.normal(0, 1, (200, 40, 1)) * np.where(np.arange(40) < 20, 2, 8)[:, None]
    near = np.stack([rng.permutation(200)[:30] for _ in range(200)])
    found = noise_map(planes, np.arange(200), near)[:, 0]
    np.testing.assert_allclose(found[:20].mean(), 2, rtol=0.1)
    np.testing.assert_allclose(found[20:].mean(), 8, rtol=0.1)


def test_score_is_the_smoothed_size_and_slope_in_noise_levels():
    S = np.random.default_rng(0).normal(0, 5, (20, 12, 15))
    size = np.abs(S) / 5 + 2 * np.hypot(*np.gradient(S / 5, axis=(1, 2)))
    expected = gaussian_filter(np.minimum(size, 18), (0, 2, 2), truncate=3.0)
    np.testing.assert_allclose(foreground_score(S, 5.0), expected, rtol=1e-4)
    np.testing.assert_allclose(foreground_score(S[:1], np.full((12, 15), 5.0)), expected[:1], rtol=1e-4)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("FRPCAG_DATA"), reason="FRPCAG_DATA does not point at the data sets")
@pytest.mark.parametrize("clip", ["mall", "escalator"])
def test_real_footage_is_separated_better_than_by_the_median(clip):
    with np.load(os.path.join(os.environ["FRPCAG_DATA"], f"video_{clip}.npz")) as data:
        frames, at, truth = data["frames"], data["gt_idx"], data["gt"]
    mask = BackgroundSeparator().fit_transform(frames)
    off = np.abs(frames[at] - np.median(frames, axis=0))
    best_median = max(mask_scores(off > level, truth)["f1"] for level in range(5, 100, 5))
    assert mask_scores(mask[at], truth)["f1"] > best_median + 0.05


def test_scikit_learn_is_told_that_it_takes_frames():
    with pytest.warns(SkipTestWarning, match="BackgroundSeparator"):
        check_estimator(BackgroundSeparator())
