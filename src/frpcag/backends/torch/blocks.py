"""What a worker does with its run of row blocks, in PyTorch: on its GPU where it has one. As the Numba counterpart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from frpcag.backends.torch.operations import (
    Lists,
    advanced,
    certificate_sums,
    gradient_rows,
    in_step_units,
    scaled,
)
from frpcag.linalg.row_blocks import Cut, LocalGraph, join_graphs
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.problem import LOSSES, Array


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
class Rows(_Portable):
    """What stays as it is through all steps: the rows of a run of blocks and their graph, on the device."""

    X: Tensor
    seen: Tensor | None  # where X is observed; None where it is throughout
    exact: Lists | None  # 2 gamma1 L1 in float64; columns are own rows, then the halo
    graph: Lists | None  # for steps
    null: Array
    needs: dict[int, Array]
    cut: Cut


def join_rows(
    blocks: Sequence[Array],
    graphs: Sequence[LocalGraph | None],
    run: tuple[int, Array, Array],
    factor: float,
    step: float,
) -> Rows:
    """Return a run of blocks: their rows, and their part of ``factor`` times the graph."""
    index, sizes, firsts = run
    cut = Cut(index, sizes, sizes, firsts)
    X = _on_device(np.concatenate(blocks))
    seen = None if torch.isfinite(X.sum()) else ~torch.isnan(X)
    null = np.concatenate(
        [np.ones(len(block)) if graph is None else graph.null for block, graph in zip(blocks, graphs, strict=True)]
    )
    if graphs[0] is None or factor == 0:
        return Rows(X, seen, None, None, null, {}, cut)
    L, needs = join_graphs(graphs, cut)  # type: ignore[arg-type]
    # Not `TorchCSR.of`, which would sort the entries: they are in the order of all rows, which is that of the sums.
    lists = (L.indptr.astype(np.int64), L.indices, L.data.astype(np.float64))
    exact = scaled(TorchCSR(*(torch.from_numpy(A).to(X.device) for A in lists)), factor)
    return Rows(X, seen, exact, in_step_units(exact, step, X.dtype), null, needs, cut)


def own_rows(rows: Rows, p: int) -> list[Array]:
    """Return the blocks that `join_rows` joined."""
    return [rows.X[at].cpu().numpy() for at in rows.cut.rows]


def feature_lists(L2: sp.csr_array | None, factor: float, dtype: np.dtype, p: int, step: float) -> FeatureLists:
    """Return ``factor`` times the Laplacian of the features, which every worker sees."""
    real = torch.float32 if dtype == np.float32 else torch.float64
    exact = None if L2 is None else scaled(TorchCSR.of(L2, _device()), factor)
    return FeatureLists(exact, in_step_units(exact, step, real))


class Live:
    """The iterates of a run of blocks, on the device; Y has room for the halo below its own rows.

    Every block is worked on by itself: the sums of PyTorch depend on the shapes of what is summed.
    """

    def __init__(
        self, rows: Rows, features: FeatureLists, start: Sequence[dict[str, Array]] | None, *, n_threads: int = 1
    ) -> None:
        self.rows, self.needs, self.features = rows, rows.needs, features
        n_halo = sum(map(len, rows.needs.values()))
        if start is None:
            self.U = torch.nan_to_num(rows.X, nan=0.0)
            Y = self.U
        else:
            self.U, Y = (_on_device(np.concatenate([block[name] for block in start])) for name in ("U", "Y"))
        self.Y = torch.cat([Y, Y.new_zeros((n_halo, Y.shape[1]))])
        self.spare = torch.empty_like(self.Y)

    def step(self, numbers: tuple[float, ...]) -> Array:
        """Do one step; return the three sums of every block."""
        sums = []
        for at in self.rows.cut.rows:
            V = gradient_rows(self.Y, at, self.rows.graph, self.features.lists)
            here = self.rows.X[at], self.U[at], self.Y[at]
            self.U[at], self.spare[at], done = advanced(*here, V, self._seen(at), numbers)
            sums.append(done.tolist())
        self.Y, self.spare = self.spare, self.Y
        return np.array(sums)

    def look_at_U(self) -> None:
        """Bring U to where `pick`, `fill`, `gap` and `slope` expect it."""
        self.spare[: len(self.U)] = self.U

    def gap(self, numbers: tuple) -> list[tuple[Array, Array]]:
        """Return the sums of every block for `frpcag.problem.Sums`, then its maxima."""
        loss, delta, lo, hi, columns = numbers
        real = {"dtype": torch.float64, "device": self.U.device}
        null, right = (torch.as_tensor(values, **real) for values in (self.rows.null, columns))
        found, U = [], self.spare.double()
        graphs = self.rows.exact, self.features.exact
        for at in self.rows.cut.rows:
            box, seen = (lo, hi, null[at], right), self._seen(at)
            sums = certificate_sums(self.rows.X[at], U, *graphs, seen, box, LOSSES[loss], delta, at.start)
            found.append((np.array(sums[:6]), np.array(sums[6:])))
        return found

    def slope(self) -> None:
        """Write the gradient of the graph terms at ``U`` over Y."""
        U = self.spare.double()
        for at in self.rows.cut.rows:
            self.Y[at] = gradient_rows(U, at, self.rows.exact, self.features.exact).to(self.Y.dtype)

    def settle(self) -> None:
        """Let go of all arrays but ``U``."""
        self.Y = self.spare = self.U[:0]

    def pick(self, which: str, rows: Array) -> Array:
        """Return rows that another run needs, on the host."""
        A = self.Y if which == "Y" else self.spare
        return A[torch.as_tensor(rows, device=A.device)].cpu().numpy()

    def fill(self, which: str, pieces: dict[int, Array]) -> None:
        """Write the rows of other runs below those of this one."""
        if self.needs:
            halo = np.concatenate([pieces[j] for j in sorted(self.needs)])
            (self.Y if which == "Y" else self.spare)[len(self.U) :] = _on_device(halo)

    def blocks(self, which: str, p: int) -> list[Array]:
        """Return a copy of every block of U, of Y, or of the slope, on the host."""
        A = self.U if which == "U" else self.Y
        return [A[at].cpu().numpy().copy() for at in self.rows.cut.rows]

    def _seen(self, at: slice) -> Tensor | None:
        return None if self.rows.seen is None else self.rows.seen[at]


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
