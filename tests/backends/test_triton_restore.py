"""The kernel that brings a clean part back to the units of the data does what the readable lines do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from frpcag.linalg.units import Terms, Units, restore_rows

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["l1", "l2", "huber"])
@pytest.mark.parametrize("scaled", [False, True])
def test_result_and_bounds_are_those_of_the_rows(dtype, loss, scaled):
    from frpcag.backends.torch.triton_restore import restore_tensor

    rng = np.random.default_rng(0)
    n, p = 7, 131  # more than a tile either way
    units = Units(rng.normal(size=n), 1e3 * rng.normal(size=p), rng.uniform(1, 3, p) if scaled else 4.0, 1e-16)
    inner = rng.normal(size=(n, p)).astype(dtype)
    X = (inner * units.unit + units.left[:, None] * units.right).astype(dtype)
    U = np.where(rng.random((n, p)) < 0.5, inner, inner + rng.normal(size=(n, p)).astype(dtype))
    X[1, 2] = inner[1, 2] = np.nan
    V = None if scaled else rng.normal(size=(n, p)).astype(dtype)
    terms = Terms(rng.uniform(size=n), rng.uniform(size=p), loss, 0.7)
    expected, moves = restore_rows(X, inner, U, V, units, terms)
    on_device = [None if A is None else torch.from_numpy(A.copy()).to(DEVICE) for A in (X, inner, U, V)]
    found = restore_tensor(*on_device, units, terms)
    assert_array_equal(on_device[2].cpu().numpy(), expected)
    assert_allclose(found, moves, rtol=1e-12)


def test_entries_that_were_not_moved_are_those_of_the_data():
    from frpcag.backends.torch.triton_restore import restore_tensor

    X = torch.tensor([[0.1, 1e8]], device=DEVICE)
    inner = torch.tensor([[0.3, 0.7]], device=DEVICE)
    U = inner.clone()
    restore_tensor(X, inner, U, None, Units(np.ones(1), np.ones(2), 1.0), Terms(np.ones(1), np.ones(2), "l1", 1.0))
    assert torch.equal(U, X)
