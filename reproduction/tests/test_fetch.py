"""Fetched data sets land in the layout that the loader reads."""

import numpy as np
import pytest
from reproduction import load_dataset
from reproduction.fetch import OPENML, fetch_dataset
from sklearn.utils import Bunch


def fake_openml(n_features, classes):
    def fetch(*, data_id, as_frame, parser):
        rng = np.random.default_rng(data_id)
        width = n_features[data_id]
        return Bunch(data=rng.normal(size=(6, width)), target=np.array(classes * 3, dtype=object))

    return fetch


def test_a_fetched_set_loads_with_labels_from_zero(tmp_path):
    fetch_dataset("usps", tmp_path, fetch=fake_openml({41082: 256}, ["7", "9"]))
    data = load_dataset("usps", data_home=tmp_path)
    assert data.X.shape == (6, 256)
    assert data.X.dtype == np.float32
    assert data.shape == (16, 16)
    assert data.y.tolist() == [0, 1] * 3


def test_the_views_of_mfeat_are_marked(tmp_path):
    widths = dict(zip(OPENML["mfeat"], (3, 2, 2, 1, 4, 2), strict=True))
    fetch_dataset("mfeat", tmp_path, fetch=fake_openml(widths, ["a", "b"]))
    data = load_dataset("mfeat", data_home=tmp_path)
    assert np.bincount(data.view).tolist() == [3, 2, 2, 1, 4, 2]
    assert data.shape is None


def test_a_file_that_is_there_is_kept(tmp_path):
    first = fetch_dataset("usps", tmp_path, fetch=fake_openml({41082: 256}, ["7", "9"])).read_bytes()
    again = fetch_dataset("usps", tmp_path, fetch=lambda **_: pytest.fail("fetched again"))
    assert again.read_bytes() == first


def test_a_broken_download_leaves_nothing_behind(tmp_path):
    def broken(**_):
        raise OSError("connection lost")

    with pytest.raises(OSError, match="connection lost"):
        fetch_dataset("usps", tmp_path, fetch=broken)
    assert list(tmp_path.iterdir()) == []


def test_a_set_that_openml_does_not_have_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'orl' is not on OpenML; pass one of usps, mnist, mfeat"):
        fetch_dataset("orl", tmp_path)
