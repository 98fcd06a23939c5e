"""What a worker does with one row block, in PyTorch: on its GPU where it has one. The functions of `numba_blocks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from frpcag.backends.torch.operations import (
    Lists,
    advanced,
    certificate_sums,
    gradient,
    in_step_units,
    scaled,
    slopes,
)
from frpcag.linalg.row_blocks import LocalGraph
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.problem import LOSSES, Array
from frpcag.runtime.tasks import Maximum


@dataclass(frozen=True)
class _Host:
    """A tensor on its way to another worker."""

    values: Array


class _Portable:
    """Travels as arrays of the host; tensors wake up on the device of whoever reads them.

    Dask cannot send tensors of a GPU, and opens tuples and lists to look for them: everything that leaves a task is one
    of these, or an array.
    """

    def __getstate__(self) -> dict:
        return {name: _to_host(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict) -> None:
        vars(self).update({name: _from_host(value) for name, value in state.items()})


@dataclass
class FeatureLists(_Portable):
    """The Laplacian of the features, times 2 gamma2, in float64 and for steps."""

    exact: Lists | None
    lists: Lists | None


@dataclass
class BlockData(_Portable):
    """What a block keeps through all steps, on its device."""

    X: Tensor
    seen: Tensor | None  # where X is observed; None where it is throughout
    exact: Lists | None  # 2 gamma1 L1 in float64; columns are own rows, then the halo
    graph: Lists | None  # for steps
    null: Array
    n_halo: int


@dataclass
class Iterates(_Portable):
    """One block of U and Y. ``Y`` has room for the halo below its own rows, filled in by the step that reads it."""

    U: Tensor
    Y: Tensor
    sums: tuple[float, ...] = field(default=(0.0, 0.0, 0.0))


def block_data(X: Array, graph: LocalGraph | None, factor: float, step: float) -> BlockData:
    """Return what a block keeps: its rows, and its part of ``factor`` times the graph."""
    rows = _on_device(X)
    seen = None if torch.isfinite(rows.sum()) else ~torch.isnan(rows)
    if graph is None or factor == 0:
        return BlockData(rows, seen, None, None, np.ones(len(X)) if graph is None else graph.null, 0)
    exact = scaled(TorchCSR.of(graph.rows, rows.device), factor)
    return BlockData(rows, seen, exact, in_step_units(exact, step, rows.dtype), graph.null, graph.n_halo)


def feature_lists(L2: sp.csr_array | None, factor: float, dtype: np.dtype, p: int, step: float) -> FeatureLists:
    """Return ``factor`` times the Laplacian of the features, which every block sees."""
    real = torch.float32 if dtype == np.float32 else torch.float64
    exact = None if L2 is None else scaled(TorchCSR.of(L2, _device()), factor)
    return FeatureLists(exact, in_step_units(exact, step, real))


def iterates(data: BlockData, U0: Array | None, Y0: Array | None = None) -> Iterates:
    """Return iterates at ``U0`` (``X`` if None, missing entries at zero) and ``Y0`` (``U0`` if None)."""
    U = torch.nan_to_num(data.X, nan=0.0) if U0 is None else _on_device(U0)
    return Iterates(U, _with_room(U if Y0 is None else _on_device(Y0), data.n_halo))


def step_block(data: BlockData, features: FeatureLists, old: Iterates, halo: Sequence[Array], numbers: tuple):
    """Do one step on one block; the old iterates stay as they are."""
    n = len(data.X)
    _fill_halo(old.Y, n, halo)
    V = gradient(old.Y, n, data.graph, features.lists)
    U, Y, sums = advanced(data.X, old.U, old.Y[:n], V, data.seen, numbers)
    return Iterates(U, _with_room(Y, data.n_halo), tuple(sums.tolist()))


def gap_block(data: BlockData, features: FeatureLists, at: Iterates, halo: Sequence[Array], numbers: tuple) -> tuple:
    """Return the block's part of a certificate, the numbers of `frpcag.problem.Sums`."""
    n = len(data.X)
    U = _with_room(at.U, data.n_halo)
    _fill_halo(U, n, halo)
    loss, delta, lo, hi, columns = numbers
    box = (lo, hi, *(torch.as_tensor(null, dtype=torch.float64, device=U.device) for null in (data.null, columns)))
    sums = certificate_sums(data.X, U.double(), data.exact, features.exact, data.seen, box, LOSSES[loss], delta)
    return (*sums[:6], Maximum(np.array(sums[6:])))


def slope_block(data: BlockData, features: FeatureLists, at: Iterates, halo: Sequence[Array], numbers: tuple) -> Array:
    """Return the block's part of the gradient of the graph terms at ``U``."""
    n = len(data.X)
    U = _with_room(at.U, data.n_halo)
    _fill_halo(U, n, halo)
    return slopes(U.double(), n, data.exact, features.exact, data.X.dtype).cpu().numpy()


def pack(block: Iterates, shape: tuple[int, int]) -> dict[str, Array]:
    """Return the iterates of a block as a checkpoint stores them."""
    return {"U": block.U.cpu().numpy(), "Y": block.Y[: shape[0]].cpu().numpy()}


def unpack(data: BlockData, saved: dict[str, Array]) -> Iterates:
    """Return the iterates that a checkpoint stored."""
    return iterates(data, saved["U"], saved["Y"])


def pick_Y(block: Iterates, rows: Array) -> Array:
    """Return rows of Y that another block needs."""
    return block.Y[torch.as_tensor(rows, device=block.Y.device)].cpu().numpy()


def pick_U(block: Iterates, rows: Array) -> Array:
    """Return rows of U that another block needs."""
    return block.U[torch.as_tensor(rows, device=block.U.device)].cpu().numpy()


def step_sums(block: Iterates) -> tuple[float, ...]:
    """Return the three numbers of the last step."""
    return block.sums


def own_U(block: Iterates, n: int, p: int) -> Array:
    """Return the clean part on the host."""
    return block.U.cpu().numpy()


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _on_device(A: Array) -> Tensor:
    # A copy: arrays that came over the network may be read-only, which PyTorch does not know.
    return torch.tensor(np.ascontiguousarray(A), device=_device())


def _to_host(value):
    if isinstance(value, Tensor):
        return _Host(value.cpu().numpy())
    return tuple(map(_to_host, value)) if isinstance(value, tuple) else value


def _from_host(value):
    if isinstance(value, _Host):
        return _on_device(value.values)
    return tuple(map(_from_host, value)) if isinstance(value, tuple) else value


def _with_room(Y: Tensor, n_halo: int) -> Tensor:
    return torch.cat([Y, Y.new_zeros((n_halo, Y.shape[1]))])


def _fill_halo(Y: Tensor, n: int, halo: Sequence[Array]) -> None:
    if halo:
        Y[n:] = torch.tensor(np.concatenate(halo), device=Y.device)
