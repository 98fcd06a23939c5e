"""Data sets by name, and synthetic data against their own definition."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from reproduction import DATASETS, list_datasets, load_dataset
from sklearn.datasets import load_digits

needs_data = pytest.mark.skipif(
    not os.environ.get("FRPCAG_DATA"), reason="FRPCAG_DATA does not point at the data folder"
)


@pytest.fixture
def data_home(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "yale.npz",
        X=rng.integers(0, 256, (4, 6), dtype=np.uint8),
        y=np.array([0, 1, 1, 0], dtype=np.uint8),
        shape=np.array([2, 3]),
    )
    np.savez(tmp_path / "mfeat.npz", X=np.ones((3, 2)), y=np.arange(3), shape=[0, 0], view=[0, 1])
    np.savez(tmp_path / "video_hall.npz", frames=np.arange(24, dtype=np.uint8).reshape(2, 3, 4), gt_idx=[1])
    np.savez(tmp_path / "wordvec.npz", X=np.array([[2, -4]], dtype=np.int8), scale=np.float32(0.5))
    np.savez(tmp_path / "unknown.npz", X=np.ones((3, 2)))
    return tmp_path


def test_digits_are_those_of_scikit_learn():
    ours, theirs = load_dataset("digits"), load_digits()
    assert_array_equal(ours.X, theirs.data)
    assert_array_equal(ours.y, theirs.target)
    assert (ours.shape, ours.name, ours.X.dtype) == ((8, 8), "digits", np.float32)


def test_images_come_as_float32_with_labels_and_shape(data_home):
    yale = load_dataset("yale", data_home=data_home)
    assert (yale.X.dtype, yale.X.shape, yale.y.dtype, yale.shape) == (np.float32, (4, 6), np.int64, (2, 3))
    assert_array_equal(yale.y, [0, 1, 1, 0])


def test_data_that_are_no_images_have_no_shape_and_keep_their_other_fields(data_home):
    mfeat = load_dataset("mfeat", data_home=data_home)
    assert mfeat.shape is None
    assert_array_equal(mfeat.view, [0, 1])


def test_frames_of_a_video_are_rows(data_home):
    video = load_dataset("video_hall", data_home=data_home)
    assert_array_equal(video.X.reshape(-1, *video.shape), np.arange(24).reshape(2, 3, 4))
    assert video.y is None
    assert_array_equal(video.gt_idx, [1])


def test_word_vectors_are_multiplied_by_their_scale(data_home):
    assert_array_equal(load_dataset("wordvec", data_home=data_home).X, [[1, -2]])


def test_the_environment_variable_names_the_data_folder(data_home, monkeypatch):
    monkeypatch.setenv("FRPCAG_DATA", str(data_home))
    assert load_dataset("yale").name == "yale"
    assert list_datasets() == ["digits", "yale", "mfeat", "video_hall", "wordvec"]


def test_only_digits_are_listed_without_a_data_folder(monkeypatch):
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    assert list_datasets() == ["digits"]


def test_a_missing_data_folder_tells_how_to_set_it(monkeypatch):
    monkeypatch.delenv("FRPCAG_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"needs usps.npz .*export FRPCAG_DATA="):
        load_dataset("usps")


def test_a_data_folder_without_the_file_is_named(data_home):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*orl\.npz; point FRPCAG_DATA or data_home"):
        load_dataset("orl", data_home=data_home)


@pytest.mark.parametrize("name", ["unknown", "../yale", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(data_home, name):
    with pytest.raises(ValueError, match="not a known data set; pass one of digits, usps"):
        load_dataset(name, data_home=data_home)


def test_pickled_data_are_not_loaded(tmp_path):
    np.savez(tmp_path / "orl.npz", X=np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        load_dataset("orl", data_home=tmp_path)


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(
    ("name", "size", "n_classes", "shape"),
    [
        ("usps", (9298, 256), 10, (16, 16)),
        ("orl", (400, 10304), 40, (112, 92)),
        ("yale", (165, 1024), 15, (32, 32)),
        ("coil20", (1440, 1024), 20, (32, 32)),
        ("pie", (2856, 1024), 68, (32, 32)),
        ("mnist", (70000, 784), 10, (28, 28)),
        ("mfeat", (2000, 649), 10, None),
        ("scrna_worm", (4186, 2000), 10, None),
        ("video_hall", (120, 144 * 176), None, (144, 176)),
        ("wordvec", (341479, 100), None, None),
    ],
)
def test_real_data_have_the_published_sizes(name, size, n_classes, shape):
    data = load_dataset(name)
    assert (data.X.shape, data.shape, data.X.dtype) == (size, shape, np.float32)
    assert np.isfinite(data.X).all()
    assert (None if data.y is None else len(np.unique(data.y))) == n_classes


@pytest.mark.data
@needs_data
def test_every_real_data_set_is_found():
    assert list_datasets() == list(DATASETS)
