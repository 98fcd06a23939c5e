"""Matrices from files: every format read back, every broken file refused in words."""

import io
import pickle
import struct
import sys
import zipfile
import zlib

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io
from numpy.testing import assert_array_equal
from scipy import sparse

from frpcag.tables import read_matrix, read_table


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((5, 3))


def write_v73(path, X, name="X"):
    """Write the HDF5 file MATLAB calls v7.3: a 512-byte header, then matrices by columns."""
    with h5py.File(path, "w", userblock_size=512) as file:
        file[name] = X.T
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


def write_h5(path, X):
    with h5py.File(path, "w") as file:
        file["X"] = X


WRITERS = {
    "X.npy": np.save,
    "X.npz": lambda path, X: np.savez_compressed(path, X=X),
    "X.csv": lambda path, X: np.savetxt(path, X, delimiter=",", fmt="%.17g"),
    "X.tsv": lambda path, X: np.savetxt(path, X, delimiter="\t", fmt="%.17g"),
    "X.parquet": lambda path, X: pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(path),
    "X.mat": lambda path, X: scipy.io.savemat(path, {"X": X}),
    "v73.mat": write_v73,
    "X.h5": write_h5,
    "X.HDF5": write_h5,
}
every_format = pytest.mark.parametrize("name", WRITERS)


@every_format
def test_every_format_reads_back(tmp_path, X, name):
    WRITERS[name](tmp_path / name, X)
    read, names = read_matrix(str(tmp_path / name))
    assert_array_equal(read, X)
    assert names == (["a", "b", "c"] if name.endswith("parquet") else None)


@every_format
def test_truncated_files_are_refused(tmp_path, name):
    X = np.random.default_rng(0).standard_normal((200, 30))
    if name == "X.parquet":
        pd.DataFrame(X).to_parquet(tmp_path / name)
    else:
        WRITERS[name](tmp_path / name, X)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=name):
        read_matrix(tmp_path / name)


@every_format
def test_empty_files_are_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ValueError, match=f"{name} is empty"):
        read_matrix(tmp_path / name)


@pytest.mark.parametrize("name", [name for name in WRITERS if name[-3:] not in ("csv", "tsv")])
def test_files_of_another_format_are_refused(tmp_path, name):
    (tmp_path / name).write_text("height,width\n1,2\n")
    with pytest.raises(ValueError, match=rf"{name} is damaged, truncated, or not a \.\w+ file"):
        read_matrix(tmp_path / name)


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.npy; check the path"):
        read_matrix(tmp_path / "none.npy")


def test_folders_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder; pass the path of a file"):
        read_matrix(tmp_path)


def test_unknown_suffixes_are_refused_with_the_known_ones(tmp_path):
    (tmp_path / "X.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"suffix '.xlsx', which is not one of .npy, .npz, .csv"):
        read_matrix(tmp_path / "X.xlsx")


SEVERAL = {
    "two.npz": lambda path, X: np.savez(path, X=X, y=X[:, :1]),
    "two.mat": lambda path, X: scipy.io.savemat(path, {"X": X, "y": X[:, :1]}),
    "two.h5": lambda path, X: h5py.File(path, "w").close() or append_h5(path, X=X, y=X[:, :1]),
}


def append_h5(path, **arrays):
    with h5py.File(path, "a") as file:
        for name, array in arrays.items():
            file[name] = array


@pytest.mark.parametrize("name", SEVERAL)
def test_several_arrays_need_a_key_and_are_listed(tmp_path, X, name):
    SEVERAL[name](tmp_path / name, X)
    with pytest.raises(ValueError, match=f"{name} holds several arrays; pass key, one of X, y"):
        read_matrix(tmp_path / name)
    assert_array_equal(read_matrix(tmp_path / name, key="X")[0], X)


@pytest.mark.parametrize("name", SEVERAL)
def test_wrong_keys_are_refused_with_the_right_ones(tmp_path, X, name):
    SEVERAL[name](tmp_path / name, X)
    with pytest.raises(ValueError, match=f"key='Z' is not in .*{name}; pass one of X, y"):
        read_matrix(tmp_path / name, key="Z")


def test_keys_are_refused_where_there_is_nothing_to_choose(tmp_path, X):
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=r"key='X' does not apply to .*X\.npy"):
        read_matrix(tmp_path / "X.npy", key="X")


def test_h5_keys_reach_into_groups(tmp_path, X):
    append_h5(tmp_path / "deep.h5", **{"group/X": X, "other": X + 1})
    assert_array_equal(read_matrix(tmp_path / "deep.h5", key="/group/X")[0], X)


@pytest.mark.parametrize("name", ["none.npz", "none.h5", "none.mat"])
def test_files_without_arrays_are_refused(tmp_path, name):
    {
        "none.npz": lambda path: np.savez(path),
        "none.h5": lambda path: h5py.File(path, "w").close(),
        "none.mat": lambda path: scipy.io.savemat(path, {}),
    }[name](tmp_path / name)
    with pytest.raises(ValueError, match=f"{name} holds no array"):
        read_matrix(tmp_path / name)


class Bomb:
    """Unpickling this would raise: that no test sees it is the proof that nothing is unpickled."""

    def __reduce__(self):
        return (exec, ("raise SystemError('unpickled')",))


@pytest.mark.parametrize("kind", ["object.npy", "object.npz", "raw.npy"])
def test_pickles_are_never_loaded(tmp_path, kind):
    objects = np.array([[Bomb(), 1.0]], dtype=object)
    path = tmp_path / kind
    if kind == "raw.npy":
        path.write_bytes(pickle.dumps(objects))
    elif kind == "object.npy":
        np.save(path, objects, allow_pickle=True)
    else:
        buffer = io.BytesIO()
        np.save(buffer, objects, allow_pickle=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("X.npy", buffer.getvalue())
    with pytest.raises(ValueError, match=f"{kind} holds pickled Python objects, which are never loaded"):
        read_matrix(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(4), r"shape \(4,\); a matrix \(n_samples, n_features\) is needed"),
        (np.ones((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.ones((0, 4)), r"shape \(0, 4\), without entries"),
        (np.ones((2, 2)) * 1j, "complex numbers .* save X.real"),
        (np.array([["a", "b"]]), "dtype <U1 .* instead of numbers"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "instead of numbers"),
    ],
)
def test_arrays_that_are_not_real_matrices_are_refused(tmp_path, array, message):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match=rf"bad\.npy holds .*{message}"):
        read_matrix(tmp_path / "bad.npy")


@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int16, bool])
def test_the_dtype_of_the_file_is_kept(tmp_path, dtype):
    np.save(tmp_path / "X.npy", np.eye(3, dtype=dtype))
    assert read_matrix(tmp_path / "X.npy")[0].dtype == dtype


def test_sparse_matlab_matrices_come_dense(tmp_path, X):
    scipy.io.savemat(tmp_path / "X.mat", {"X": sparse.csc_matrix(X)})
    assert_array_equal(read_matrix(tmp_path / "X.mat")[0], X)


def test_matlab_cells_are_refused(tmp_path):
    scipy.io.savemat(tmp_path / "X.mat", {"X": np.array([["a", 1.0]], dtype=object)})
    with pytest.raises(ValueError, match=r"X\.mat holds values of dtype object"):
        read_matrix(tmp_path / "X.mat")


def test_parquet_columns_without_numbers_are_named(tmp_path):
    pd.DataFrame({"a": [1.0], "city": ["Rome"]}).to_parquet(tmp_path / "X.parquet")
    with pytest.raises(ValueError, match=r"columns without numbers: city \(text\); read it with read_table"):
        read_matrix(tmp_path / "X.parquet")


def test_parquet_integers_with_gaps_become_nan(tmp_path):
    pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 1.5]}).to_parquet(tmp_path / "X.parquet")
    assert_array_equal(read_matrix(tmp_path / "X.parquet")[0], [[1, 0.5], [np.nan, 1.5]])


@pytest.mark.parametrize(("name", "module"), [("X.parquet", "pyarrow"), ("X.h5", "h5py")])
def test_a_missing_extra_is_named(tmp_path, X, monkeypatch, name, module):
    WRITERS[name](tmp_path / name, X)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"needs .*; install frpcag\[io\]"):
        read_matrix(tmp_path / name)


def mat_with(place, content):
    """Return how to write a mat file with some bytes replaced."""

    def write(path):
        scipy.io.savemat(path, {"X": np.arange(12.0).reshape(3, 4)})
        whole = bytearray(path.read_bytes())
        whole[place : place + len(content)] = content
        path.write_bytes(whole)

    return write


@pytest.mark.parametrize(
    ("place", "content"), [(176, b"\x09\x09"), (180, b"\xff\xff\xff\x7f"), (136, b"\x00"), (145, b"\x08")]
)
def test_a_mat_file_with_an_impossible_element_is_refused_before_scipy_reads_it(tmp_path, place, content):
    mat_with(place, content)(tmp_path / "X.mat")
    with pytest.raises(ValueError, match=r"X\.mat is damaged.*(an element has type|a matrix has 4 parts)"):
        read_matrix(tmp_path / "X.mat")


def test_an_impossible_element_is_found_in_a_compressed_file(tmp_path):
    mat_with(176, b"\x09\x09")(tmp_path / "X.mat")
    whole = (tmp_path / "X.mat").read_bytes()
    packed = zlib.compress(whole[128:])
    (tmp_path / "X.mat").write_bytes(whole[:128] + struct.pack("<II", 15, len(packed)) + packed)
    with pytest.raises(ValueError, match=r"X\.mat is damaged.*an element has type 2313"):
        read_matrix(tmp_path / "X.mat")


@pytest.mark.parametrize("compressed", [True, False])
def test_intact_mat_files_pass_the_check_of_their_elements(tmp_path, compressed):
    others = {"words": "text", "cells": np.array([[1, "a"]], object), "parts": {"x": 1.0, "y": np.eye(2)}}
    X = np.arange(30000.0).reshape(100, 300)
    scipy.io.savemat(tmp_path / "X.mat", {**others, "X": X}, do_compression=compressed)
    assert_array_equal(read_matrix(tmp_path / "X.mat", key="X")[0], X)


def test_damaged_h5ad_files_are_refused_in_one_way(tmp_path):
    anndata = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    anndata.AnnData(rng.poisson(1, (20, 6)).astype("f4")).write_h5ad(tmp_path / "whole.h5ad")
    whole = np.frombuffer((tmp_path / "whole.h5ad").read_bytes(), np.uint8)
    refused = 0
    for _ in range(40):
        bad = whole.copy()
        bad[rng.integers(len(bad), size=50)] = rng.integers(256, size=50)
        (tmp_path / "bad.h5ad").write_bytes(bad.tobytes())
        try:
            read_table(tmp_path / "bad.h5ad")
        except ValueError:
            refused += 1
    assert refused > 10
