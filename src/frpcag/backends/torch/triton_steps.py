"""The Triton kernels laid out for a problem and launched: steps, and the sums of a certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, log2, sqrt
from typing import Any

import torch
from torch import Tensor

from frpcag.backends.base import power_of_two
from frpcag.backends.torch import triton_kernels as kernels
from frpcag.backends.torch.backend import TRITON_LOSSES, box
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.losses import LOSSES

# L2 as a dense matrix on tensor cores: faster than its lists between these numbers of features (docs/decisions/gpu.md).
_DENSE_FROM, _DENSE_TO = 257, 2048
# Largest entry of Y and of L2 in float16: leaves a factor of 64 to the end of its range.
_HALF_RANGE = 1024.0
# A tile of rows, transposed: four of them fit the level-1 cache of a multiprocessor.
_TILE_BYTES = 1 << 16
_FEATURES = 64
# Rows, columns and depth of a block of the dense product.
_DENSE_BLOCK = (128, 64, 16)
# Columns of a panel, and neighbours at a time: of steps in full, of steps in float16, of a certificate.
_PANEL, _HALF_PANEL, _EXACT_PANEL = (64, 8), (128, 4), (64, 4)
# Programs of the step pass: enough to fill the GPU several times over, few enough that one program adds their sums.
_PROGRAMS = 1 << 15
_FINISH_BLOCK = 8192
# Steps read neighbours in float16 until a certificate shows a gap below this, or one that hardly fell: the rounding
# begins to show there.
_FINE_GAP, _STALLED = 0.02, 0.8
# Entries of the feature gradient that a certificate holds at a time: it is in float64.
_EXACT_ENTRIES = 1 << 23


@dataclass
class Reading:
    """How steps read neighbours, in full or in float16: both graphs in units of the step, and the shape of a launch."""

    Y: tuple[Tensor, Tensor]  # what is read, this step and the next
    one: tuple[Tensor, ...]
    grid: tuple[int, int]
    shape: dict[str, int]
    two: tuple[Tensor, ...] = ()
    feature_shape: dict[str, Any] = field(default_factory=dict)


@dataclass
class Exact:
    """What certificates need: both graphs in float64, and a chunk of the feature gradient, so many rows."""

    one: tuple[Tensor, ...]
    G: Tensor
    rows: int
    dense: Tensor | None = None
    two: tuple[Tensor, ...] = ()
    programs: int = 0
    feature_shape: dict[str, Any] = field(default_factory=dict)


class FusedSteps:
    """The steps of one solve: its iterates, laid out with graphs, scratch and sums for the kernels."""

    def __init__(self, problem: Any, lam: float, X: Tensor, U: Tensor, Y: Tensor) -> None:
        self.problem, self.lam, self.X, self.U = problem, lam, X, U
        n, p = X.shape
        self.has = {"ONE": problem.gamma1 > 0, "TWO": problem.gamma2 > 0}
        empty = (torch.zeros(1, dtype=torch.int64, device=X.device), torch.zeros(1, dtype=torch.int32, device=X.device))
        one = (*empty, X.new_zeros(1))
        if problem.gamma1 > 0:
            L1 = problem.L1
            one = L1.ptr, L1.idx, (power_of_two(lam) * 2 * problem.gamma1 * L1.val).to(X.dtype)
        Ys = (Y, torch.empty_like(Y))
        self.full = Reading(Ys, one, *_layout(n, p, *_PANEL))
        self.half: Reading | None = None  # until a certificate shows its rounding
        self.flipped = False  # which of the two Y is the current one
        self.before = float("inf")  # the gap of the last certificate
        self.exact: Exact | None = None
        self.graphs: dict[bool, Any] = {}
        lo, hi, *self.box = box(problem)
        # From a warm start, the iterates go to where the data are.
        self.y_scale = _HALF_RANGE / _power_of_two(max(A.nan_to_num(nan=0.0).abs_().max() for A in (X, U)))
        if X.dtype == torch.float32:  # the memory of the second Y holds two copies in float16
            halves = Ys[1].view(torch.float16).view(2, n, p)
            halves[0].copy_(Y * self.y_scale)
            self.half = Reading(tuple(halves), _divided(one, self.y_scale), *_layout(n, p, *_HALF_PANEL))
        self.G = torch.empty_like(X) if problem.gamma2 > 0 else X.new_zeros(1)
        n_columns = max(each.grid[0] * each.grid[1] for each in (self.full, self.half) if each is not None)
        self.sums = torch.zeros((3, n_columns), dtype=torch.float64, device=X.device)
        self.control = torch.zeros(kernels.CONTROL_SIZE, dtype=torch.float64, device=X.device)
        keep, edge, limit = LOSSES[problem.loss].numbers(lam, problem.huber_delta)
        step = lam / power_of_two(lam)
        delta = problem.huber_delta
        self._set(LAM=step, KEEP=keep, EDGE=edge, LIMIT=limit, LOW=lo, HIGH=hi, DELTA=delta, Y_SCALE=self.y_scale)
        if problem.gamma2 > 0:
            dense = X.dtype == torch.float32 and _DENSE_FROM <= p <= _DENSE_TO
            (self._load_dense_features if dense else self._load_feature_lists)()

    @property
    def reading(self) -> Reading:
        """How the next step reads neighbours."""
        return self.full if self.half is None else self.half

    def _load_feature_lists(self) -> None:
        """Prepare L2 as index lists, with a transposed tile of rows for each program."""
        factor = power_of_two(self.lam) * 2 * self.problem.gamma2
        self.full.two, programs, shape = self._feature_lists(factor, self.X.dtype, len(self.X))
        self.feature_pass: Any = kernels.feature_pass[(programs,)]
        self.full.feature_shape = shape
        if self.half is not None:
            scratch, *lists = self.full.two
            self.half.two = (scratch.view(torch.float16), *_divided(tuple(lists), self.y_scale))
            self.half.feature_shape = shape

    def _feature_lists(self, factor: float, dtype: torch.dtype, n: int) -> tuple[tuple, int, dict[str, int]]:
        """Return scratch and lists of ``factor * L2``, how many programs do ``n`` rows, and the shape of a tile."""
        X, p = self.X, self.X.shape[1]
        rows = 64
        while rows > 16 and rows * p * X.itemsize > _TILE_BYTES:
            rows //= 2
        n_programs = 4 * torch.cuda.get_device_properties(X.device).multi_processor_count if X.is_cuda else 2
        n_programs = min(n_programs, -(-n // rows))
        lists = _sliced_lists(self.problem.L2, factor, dtype)
        shape = {"ROWS": rows, "FEATURES": _FEATURES, "num_warps": 8}
        return (X.new_empty(n_programs * p * rows), *lists), n_programs, shape

    def _load_dense_features(self) -> None:
        """Prepare L2 as two float16 matrices."""
        L2, X = self.problem.L2, self.X
        n, p = X.shape
        L_scale = _HALF_RANGE / _power_of_two(L2.val.abs().max())
        dense = torch.zeros((p, p), dtype=torch.float32, device=X.device)
        dense[L2.rows, L2.idx.long()] = (L_scale * L2.val).float()
        high = dense.half()
        rows, columns, depth = _DENSE_BLOCK
        # Blocks of L2 that are not zero, panel of columns by panel of columns.
        n_panels, n_blocks = -(-p // columns), -(-p // depth)
        blocks = torch.unique(L2.idx.long() // columns * n_blocks + L2.rows // depth)
        starts = torch.searchsorted(blocks, torch.arange(n_panels + 1, device=X.device) * n_blocks)
        two = (high, (dense - high.float()).half(), starts.int(), (blocks % n_blocks).int(), self.control)
        self._set(G_SCALE=power_of_two(self.lam) * 2 * self.problem.gamma2 / self.y_scale / L_scale)
        self.feature_pass = kernels.dense_feature_pass[(-(-n // rows) * -(-p // columns),)]
        shape = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": 4, "num_stages": 3}
        for each, half in ((self.full, False), (self.half, True)):
            if each is not None:
                each.two, each.feature_shape = two, shape | {"HALF": half}

    def step(self, *, momentum: float) -> list[float]:
        """Do one step; return its change, norm and restart product."""
        self._read_in_full()
        self._set(T=1.0, MOMENTUM=momentum, RESTARTS=0.0)
        self._launch()
        return self.control[3:6].tolist()

    def advance(self, n_steps: int, *, t: float, restart: bool, rough: bool) -> tuple[list[float], float]:
        """Do several steps; return change, norm and restart product of the last, and ``t``."""
        if not rough:
            self._read_in_full()
        self._set(T=t, MOMENTUM=(t - 1) / ((1 + sqrt(1 + 4 * t * t)) / 2), RESTARTS=float(restart))
        for _ in range(n_steps):
            self._replay()
        t, _, _, *scalars = self.control[:6].tolist()
        return scalars, t

    def _set(self, **numbers: float) -> None:
        """Write neighbouring places of ``control``, the first of them named first."""
        first = getattr(kernels, next(iter(numbers))).value
        self.control[first : first + len(numbers)] = torch.tensor(list(numbers.values()), dtype=torch.float64)

    def _launch(self) -> None:
        """Launch the kernels of one step, from the current ``Y`` buffer to the other one, or between their halves."""
        by, half = self.reading, self.half is not None
        near, near_next = by.Y[::-1] if self.flipped else by.Y
        Y, Y_next = (self.full.Y[0], self.full.Y[0]) if half else (near, near_next)
        if self.has["TWO"]:
            self.feature_pass(near, self.G, *by.two, *self.X.shape, **by.feature_shape)
        kernels.step_pass[by.grid](
            self.X, Y, self.U, Y_next, near, near_next, self.G, *by.one, self.control,
            self.sums, *self.X.shape, HALF=half, **self.has, **by.shape,
        )  # fmt: skip
        n_columns = by.grid[0] * by.grid[1]
        kernels.finish_step[(1,)](self.sums, self.control, n_columns, BLOCK=_FINISH_BLOCK, num_warps=32)
        self.flipped = not self.flipped

    def look_closer(self, gap: float) -> None:
        """Read neighbours in full from now on, if a gap says that float16 has done what it can."""
        if not _FINE_GAP < gap <= _STALLED * self.before:
            self._read_in_full()
        self.before = gap

    def _read_in_full(self) -> None:
        if self.half is not None:  # the first buffer of Y is the current one
            self.half, self.flipped = None, False
            self.graphs.clear()

    def _replay(self) -> None:
        """Do one step as a CUDA graph: launching the kernels one by one costs more than a small step itself."""
        way = self.flipped
        if not self.X.is_cuda or way not in self.graphs:
            self._launch()  # compiles, the first time
            self.graphs[way] = None
            return
        if self.graphs[way] is None:
            graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(self.X.device)
            stream.wait_stream(torch.cuda.current_stream(self.X.device))
            with torch.cuda.stream(stream):
                graph.capture_begin(capture_error_mode="thread_local")  # other threads may go on allocating
                try:
                    self._launch()
                finally:
                    graph.capture_end()
            torch.cuda.current_stream(self.X.device).wait_stream(stream)
            self.graphs[way] = graph
        self.graphs[way].replay()
        self.flipped = not way

    def gap_sums(self) -> list[float]:
        """Return the numbers of `frpcag.problem.Sums` at ``U``, chunk of rows by chunk of rows."""
        self.exact = exact = self.exact or self._load_exact()
        n, p = self.X.shape
        (_, n_panels), shape = _layout(n, p, *_EXACT_PANEL)
        found = []
        for start in range(0, n, exact.rows):
            stop = min(start + exact.rows, n)
            if exact.dense is not None:
                torch.mm(self.U[start:stop].double(), exact.dense, out=exact.G[: stop - start])
            elif self.has["TWO"]:
                kernels.feature_pass[(exact.programs,)](
                    self.U[start:stop], exact.G, *exact.two, stop - start, p, **exact.feature_shape
                )
            grid = (-(-(stop - start) // shape["ROWS"]), n_panels)
            sums = torch.empty((9, grid[0] * grid[1]), dtype=torch.float64, device=self.X.device)
            kernels.gap_pass[grid](
                self.X, self.U, exact.G, *exact.one, self.control, *self.box, sums, start, stop, p,
                LOSS=TRITON_LOSSES.index(self.problem.loss), MISSING=self.problem.mask is not None,
                **self.has, **shape,
            )  # fmt: skip
            found.append(torch.cat([sums[:6].sum(dim=1), sums[6:].amax(dim=1)]))
        parts = torch.stack(found)
        return torch.cat([parts[:, :6].sum(dim=0), parts[:, 6:].amax(dim=0)]).tolist()

    def _load_exact(self) -> Exact:
        problem, X = self.problem, self.X
        n, p = X.shape
        wide = torch.zeros(1, dtype=torch.float64, device=X.device)
        one = (*self.full.one[:2], 2 * problem.gamma1 * problem.L1.val if problem.gamma1 > 0 else wide)
        if problem.gamma2 == 0:
            return Exact(one, wide, n)
        L2, rows = problem.L2, min(n, max(1, _EXACT_ENTRIES // p))
        G = torch.empty((rows, p), dtype=torch.float64, device=X.device)
        if p > _DENSE_TO:
            return Exact(one, G, rows, None, *self._feature_lists(2 * problem.gamma2, torch.float64, rows))
        # Tensor cores multiply float64; adding the zeros of a dense matrix rounds nothing.
        dense = torch.zeros((p, p), dtype=torch.float64, device=X.device)
        dense[L2.rows, L2.idx.long()] = 2 * problem.gamma2 * L2.val.double()
        return Exact(one, G, rows, dense)


def _layout(n: int, p: int, panel: int, neighbours: int) -> tuple[tuple[int, int], dict[str, int]]:
    """Return grid and shape of the step pass: so many columns and neighbours at a time."""
    panel = 64 if p <= 64 else panel
    n_panels = -(-p // panel)
    rows = max(1, -(-n * n_panels // _PROGRAMS))
    return (-(-n // rows), n_panels), {"ROWS": rows, "PANEL": panel, "K": neighbours, "num_warps": 1}


def _divided(lists: tuple[Tensor, ...], scale: float) -> tuple[Tensor, ...]:
    """Return index lists with their values divided by a power of two."""
    *places, values = lists
    return (*places, values / scale)


def _sliced_lists(L: TorchCSR, factor: float, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """Return the lists of ``factor * L`` for slices of features: starts, and columns and values k by k.

    In a slice all lists are as long as the longest, filled up with zeros, so that the features of a slice go through
    their lists in step.
    """
    p, device = L.shape[0], L.val.device
    lengths = torch.zeros(-(-p // _FEATURES) * _FEATURES, dtype=torch.int64, device=device)
    lengths[:p] = L.ptr.diff()
    longest = lengths.view(-1, _FEATURES).amax(dim=1)
    starts = torch.cat([longest.new_zeros(1), longest.cumsum(0)])
    size = int(starts[-1]) * _FEATURES
    idx = torch.zeros(size, dtype=torch.int32, device=device)
    val = torch.zeros(size, dtype=dtype, device=device)
    k = torch.arange(L.nnz, device=device) - L.ptr[L.rows]
    at = (starts[L.rows // _FEATURES] + k) * _FEATURES + L.rows % _FEATURES
    idx[at], val[at] = L.idx, (factor * L.val).to(dtype)
    return starts.int(), idx, val


def _power_of_two(largest: Tensor) -> float:
    """Return the power of two next above a number, 1 for 0."""
    return 2.0 ** ceil(log2(float(largest))) if float(largest) > 0 else 1.0
