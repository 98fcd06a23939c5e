"""Data files made to harm whoever reads them: each is refused in words, and nothing else is read, written or run."""

import json
import pickle

import h5py
import numpy as np
import pytest
import scipy.io
from scipy import sparse

from frpcag.dask.row_chunks import as_row_chunks
from frpcag.runtime import memory
from frpcag.tables import read_matrix, read_table

FAR = 2_000_000_000


@pytest.fixture
def other(tmp_path):
    """A file that is none of the sender's business."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["X"] = np.arange(6.0).reshape(2, 3)
    return tmp_path / "other.h5"


def external(path, other):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (4, 4), "u1", external=[(str(other), 0, 16)])


def virtual(path, other):
    layout = h5py.VirtualLayout((2, 3), "f8")
    layout[...] = h5py.VirtualSource(str(other), "X", (2, 3))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("deep/X", layout)


@pytest.mark.parametrize("write", [external, virtual])
def test_a_data_set_that_lies_in_another_file_is_not_read(write, tmp_path, other):
    write(tmp_path / "x.h5", other)
    with pytest.raises(ValueError, match=r"points to other files in .*X .*are not read"):
        read_matrix(tmp_path / "x.h5")


def test_a_link_to_another_file_is_no_array_of_this_one(tmp_path, other):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["X"] = h5py.ExternalLink(str(other), "/X")
    with pytest.raises(ValueError, match="holds no array"):
        read_matrix(tmp_path / "x.h5")
    with pytest.raises(ValueError, match="key='X' is not in"):
        read_matrix(tmp_path / "x.h5", key="X")


@pytest.fixture
def cells(tmp_path):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(sparse.csr_matrix(np.eye(3))).write_h5ad(tmp_path / "x.h5ad")
    return tmp_path / "x.h5ad"


def test_cells_that_lie_in_another_file_are_not_read(cells, other):
    with h5py.File(cells, "a") as file:
        del file["X"]
        file["X"] = h5py.ExternalLink(str(other), "/X")
    with pytest.raises(ValueError, match=r"points to other files in / .*are not read"):
        read_table(cells)


def test_sparse_cells_that_point_outside_the_matrix_are_refused(cells):
    with h5py.File(cells, "a") as file:
        file["X/indices"][...] = [0, 1, FAR]  # made dense as it is, this writes 16 GB behind the array
    with pytest.raises(ValueError, match=r"x\.h5ad holds a sparse matrix whose parts do not agree"):
        read_table(cells)


def test_a_sparse_mat_file_that_points_outside_the_matrix_is_refused(tmp_path):
    path = tmp_path / "x.mat"
    scipy.io.savemat(path, {"X": sparse.csc_matrix(np.eye(3))})
    content, rows = path.read_bytes(), np.arange(3, dtype="<i4").tobytes()
    assert content.count(rows) == 2  # the row of each entry, and where the columns begin
    path.write_bytes(content.replace(rows, np.array([0, 1, FAR], "<i4").tobytes(), 1))
    with pytest.raises(ValueError, match=r"x\.mat holds a sparse matrix whose parts do not agree"):
        read_matrix(path)


def nothing_stored(path):
    with h5py.File(path, "w") as file:
        file.create_dataset("X", (10**7, 10**6), "f8", chunks=(100, 100), compression="gzip")


def no_entries(path):
    scipy.io.savemat(path, {"X": sparse.csc_matrix((10**6, 10**7))})


@pytest.mark.parametrize(("name", "write"), [("x.h5", nothing_stored), ("x.mat", no_entries)])
def test_a_small_file_that_claims_terabytes_is_refused_unread(name, write, tmp_path):
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 10**8
    with pytest.raises(MemoryError, match=rf"reading the matrix in .*{name} needs about 72"):
        read_matrix(tmp_path / name)


def zeros_npz(path):
    np.savez_compressed(path, X=np.zeros((1000, 100)))


def zeros_mat(path):
    scipy.io.savemat(path, {"X": np.zeros((1000, 100))}, do_compression=True)


def zeros_parquet(path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pd.DataFrame(np.zeros((1000, 100))).rename(columns=str).to_parquet(path)


@pytest.mark.parametrize(("name", "write"), [("x.npz", zeros_npz), ("x.mat", zeros_mat), ("x.parquet", zeros_parquet)])
def test_what_unpacks_to_more_than_the_free_memory_is_refused_unread(name, write, tmp_path, monkeypatch):
    write(tmp_path / name)
    assert (tmp_path / name).stat().st_size < 100_000
    monkeypatch.setattr(memory, "LEAST", 0)
    monkeypatch.setattr(memory, "available_bytes", lambda: 700_000)  # of a machine that is nearly full
    with pytest.raises(MemoryError, match=rf"reading the matrix in .*{name} needs about"):
        read_matrix(tmp_path / name)
    monkeypatch.setattr(memory, "available_bytes", lambda: 900_000)
    assert read_matrix(tmp_path / name)[0].shape == (1000, 100)


class Command:
    """What runs when it is unpickled."""

    def __init__(self, proof):
        self.proof = proof

    def __reduce__(self):
        return (open, (str(self.proof), "w"))


@pytest.mark.parametrize("place", ["filters", "compressor"])
def test_a_zarr_store_of_pickles_runs_nothing(place, tmp_path):
    pytest.importorskip("zarr")
    pytest.importorskip("dask")
    store, proof = tmp_path / "x.zarr", tmp_path / "it-ran"
    store.mkdir()
    codec = {"id": "pickle", "protocol": 4}
    told = {"zarr_format": 2, "shape": [4, 2], "chunks": [4, 2], "dtype": "<f8", "fill_value": 0, "order": "C"}
    codecs = {"filters": [codec], "compressor": None} if place == "filters" else {"filters": None, "compressor": codec}
    (store / ".zarray").write_text(json.dumps({**told, **codecs}))
    (store / "0.0").write_bytes(pickle.dumps(Command(proof)))
    # zarr 3 does not know such an array, zarr 2 would read it.
    with pytest.raises(ValueError, match=r"pickle"):
        as_row_chunks(str(store)).compute()
    assert not proof.exists()


def test_a_zarr_array_with_a_pickle_among_its_filters_is_refused(tmp_path):
    zarr, codecs = pytest.importorskip("zarr"), pytest.importorskip("numcodecs")
    pytest.importorskip("dask")
    if int(zarr.__version__.split(".")[0]) < 3:
        pytest.skip("the test above reads such an array with zarr 2")
    X = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=(4, 2), dtype="f8", zarr_format=2, filters=[codecs.Pickle()], compressors=None
    )
    with pytest.raises(ValueError, match="holds pickled Python objects, which are never loaded"):
        as_row_chunks(X)
