"""Images inside a report: which, how, and how large they may get."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from PIL import Image

from frpcag.report import Fit, Pictures, pictures
from frpcag.report.pictures import picture_browser


def decoded(src):
    kind, content = src.split(",", 1)
    assert kind == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content))))


def browse(fit, **options):
    return picture_browser(fit, **options)


def test_rows_are_shown_as_images_of_x_u_and_s(fit):
    found = browse(fit)
    assert found["panes"] == ["X, as given", "U, cleaned", "S, corruption"]
    assert [item["index"] for item in found["items"]] == list(range(60))
    item = found["items"][7]
    assert item["label"] == "1"
    assert item["corrupted"] == pytest.approx(100 * fit.outliers.samples[7], abs=0.01)
    assert decoded(item["src"][0]).shape == (6, 6, 3)


def test_grey_values_are_those_of_the_data_between_their_percentiles(fit):
    X = fit.U + fit.S
    low, high = np.percentile(X, [0.5, 99.5])
    expected = np.clip((X[4] - low) / (high - low), 0, 1).reshape(6, 6) * 255
    assert_allclose(decoded(browse(fit)["items"][4]["src"][0])[..., 0], expected, atol=1)


def test_corruption_is_red_above_and_blue_below_zero(fit):
    S = np.zeros_like(fit.S)
    S[0, 0], S[0, 1] = 3.0, -3.0
    red, blue, none = decoded(browse(replace(fit, S=S))["items"][0]["src"][2])[0, :3].astype(int)
    assert red[0] > red[2] + 50
    assert blue[2] > blue[0] + 50
    assert none.min() > 240


def test_of_many_images_half_are_the_most_corrupted(fit):
    shares = fit.outliers
    found = browse(fit, limit=10)
    chosen = [item["index"] for item in found["items"]]
    assert len(set(chosen)) == 10
    assert set(shares.worst_samples(5).tolist()) <= set(chosen)
    assert chosen == sorted(chosen)
    assert found["total"] == 60


def test_of_many_frames_those_shown_are_evenly_spaced():
    U = np.zeros((100, 20))
    clip = Pictures({"frame": np.zeros((100, 4, 5), np.uint8)}, signed=(), is_video=True, total=400)
    found = browse(Fit(U=U, S=U, pictures=clip, numbers=np.arange(100) * 4), limit=12)
    assert [item["index"] for item in found["items"]] == [4 * i for i in np.linspace(0, 99, 12).astype(int)]
    assert (found["is_video"], found["total"], found["ratio"]) == (True, 400, 1.25)


def test_masks_colour_and_grey_keep_their_values():
    rng, U = np.random.default_rng(0), np.zeros((3, 64))
    colour, mask = rng.integers(0, 256, (3, 8, 8, 3), dtype=np.uint8), rng.random((3, 8, 8)) < 0.5
    clip = Pictures({"frame": colour, "mask": mask}, signed=(), is_video=True)
    frame, on = browse(Fit(U=U, S=U, pictures=clip))["items"][1]["src"]
    assert_allclose(decoded(frame), colour[1], atol=1)
    assert_allclose(decoded(on)[..., 0], 255 * mask[1], atol=1)


def test_large_images_are_made_smaller():
    U = np.random.default_rng(0).random((2, 300 * 200))
    src = browse(Fit(U=U, S=np.zeros_like(U), feature_shape=(300, 200)))["items"][0]["src"][1]
    assert max(decoded(src).shape) == pictures.MAX_SIDE


def test_pictures_end_where_the_page_would_get_too_large(fit, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_BYTES", 3000)
    found = browse(fit)
    assert 0 < len(found["items"]) < 60
    assert sum(len(src) for item in found["items"] for src in item["src"]) <= 3000


def test_rows_that_are_no_images_have_no_browser(fit):
    assert browse(replace(fit, feature_shape=None)) is None
    assert browse(replace(fit, feature_shape=(5, 5))) is None


def test_constant_and_missing_values_still_draw(fit):
    U = np.full_like(fit.U, 2.0)
    U[0, 0] = np.nan
    assert len(browse(replace(fit, U=U, S=np.zeros_like(U)))["items"]) == 60
