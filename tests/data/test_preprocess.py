"""Centring and scaling against StandardScaler, and the way back."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from frpcag.data import center_and_scale, preprocess, restore
from frpcag.data.preprocess import CentredRows


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.standard_normal((57, 6)) * [1, 10, 1e3, 1e-3, 1, 5] + [0, 1e3, -5, 2, 0, 7]


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("scale", [False, True])
def test_center_and_scale_agrees_with_standard_scaler(X, center, scale):
    Xc, mean, std = center_and_scale(X, center=center, scale=scale)
    assert_allclose(Xc, StandardScaler(with_mean=center, with_std=scale).fit_transform(X), rtol=1e-9, atol=1e-12)
    assert_allclose(mean, X.mean(axis=0) if center else np.zeros(6), rtol=1e-12)
    assert_allclose(std, X.std(axis=0) if scale else np.ones(6), rtol=1e-12)


def test_center_and_scale_does_not_depend_on_the_block_size(X, monkeypatch):
    whole = center_and_scale(X, center=True, scale=True)
    monkeypatch.setattr(preprocess, "_BLOCK_ENTRIES", 24)
    for blocked, at_once in zip(center_and_scale(X, center=True, scale=True), whole, strict=True):
        assert_allclose(blocked, at_once, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("given", "returned"),
    [(np.float32, np.float32), (np.float64, np.float64), (np.int64, np.float64), (np.uint8, np.float64)],
)
def test_center_and_scale_keeps_float_dtypes(given, returned):
    Xc, mean, std = center_and_scale(np.arange(6).reshape(3, 2).astype(given), center=True, scale=True)
    assert (Xc.dtype, mean.dtype, std.dtype) == (returned, np.float64, np.float64)


def test_center_and_scale_leaves_its_input_untouched(X):
    X.flags.writeable = False
    Xc, _, _ = center_and_scale(X, center=False, scale=False)
    assert not np.shares_memory(Xc, X)
    assert_array_equal(Xc, X)


def test_center_and_scale_accumulates_float32_in_float64():
    # In float32 a running sum of ones stops at 2**24; here each value is off by 1e-7 of the sum.
    X = np.full((200_000, 1), 0.1, dtype=np.float32)
    X[::2] += 100
    _, mean, std = center_and_scale(X, center=True, scale=True)
    exact = X.astype(np.float64)
    assert_allclose([mean[0], std[0]], [exact.mean(), exact.std()], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [0.0, 0.1, 1e8])
def test_center_and_scale_divides_a_constant_feature_by_one(dtype, value):
    Xc, _, std = center_and_scale(np.full((999, 2), value, dtype=dtype), center=True, scale=True)
    assert_array_equal(std, [1, 1])
    assert_array_equal(Xc, 0)


def test_center_and_scale_takes_a_spread_of_rounding_for_constant():
    x = np.full((100, 1), 0.3)
    x[::2] = np.nextafter(0.3, 1)
    assert center_and_scale(x, center=True, scale=True)[2] == [1.0]


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_center_and_scale_makes_sparse_data_dense(X, kind):
    X[np.abs(X) < 1] = 0
    for ours, dense in zip(
        center_and_scale(kind(X), center=True, scale=True),
        center_and_scale(X, center=True, scale=True),
        strict=True,
    ):
        assert isinstance(ours, np.ndarray)
        assert_array_equal(ours, dense)


def test_center_and_scale_makes_one_copy_of_the_data():
    X = np.ones((40_000, 100), dtype=np.float32)
    tracemalloc.start()
    try:
        center_and_scale(X, center=True, scale=True)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The result, and a few blocks of 8 MiB in float64.
    assert peak < X.nbytes + 4 * 8 * preprocess._BLOCK_ENTRIES


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 2, 2)])
def test_center_and_scale_refuses_what_is_not_a_matrix_of_samples(shape):
    with pytest.raises(ValueError, match="X has shape"):
        center_and_scale(np.zeros(shape), center=True, scale=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_restore_undoes_center_and_scale_in_place(X, dtype):
    X = X.astype(dtype)
    Xc, mean, std = center_and_scale(X, center=True, scale=True)
    assert restore(Xc, mean, std) is Xc
    assert_allclose(Xc, X, rtol=8 * np.finfo(dtype).eps, atol=8 * np.finfo(dtype).eps * np.abs(X).max())


def test_restore_refuses_integers():
    with pytest.raises(ValueError, match="U has dtype int64"):
        restore(np.zeros((2, 2), dtype=np.int64), np.zeros(2), np.ones(2))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_centred_rows_are_made_again_bit_for_bit(X, kind, dtype):
    X = kind(X.astype(dtype))
    whole, mean, std = center_and_scale(X, center=True, scale=True)
    again = CentredRows(X, mean, std)
    assert_array_equal(again.whole(), whole)
    assert_array_equal(again[3:7], whole[3:7])
    assert again[3:7].dtype == whole.dtype


def test_centred_rows_of_a_damaged_file_do_not_warn():
    X = np.array([[0x7FF0000000000001, 0x3FF0000000000000]], np.uint64).view(np.float64)  # a NaN that signals, and 1
    assert_array_equal(CentredRows(X, np.zeros(2), np.ones(2)).whole(), [[np.nan, 1.0]])
