"""The Triton kernels laid out for a problem and launched: steps, and the sums of a certificate."""

from __future__ import annotations

from math import ceil, log2, sqrt
from typing import Any

import torch
from torch import Tensor

from frpcag.backends.base import power_of_two
from frpcag.backends.torch import triton_kernels as kernels
from frpcag.backends.torch.backend import TRITON_LOSSES, TorchState, box
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
_PANELS = {False: (64, 8), True: (128, 4)}
_EXACT_PANEL = (64, 4)
# Programs of the step pass: enough to fill the GPU several times over, few enough that one program adds their sums.
_PROGRAMS = 1 << 15
_FINISH_BLOCK = 8192
# Steps read neighbours in float16 until a certificate shows a gap below this, or one that hardly fell: the rounding
# begins to show there.
_FINE_GAP, _STALLED = 0.02, 0.8
# Entries of the feature gradient that a certificate holds at a time: it is in float64.
_EXACT_ENTRIES = 1 << 23


def load(state: TorchState) -> None:
    """Lay out graphs, scratch and sums for the kernels."""
    problem, X = state.problem, state.X
    n, p = X.shape
    empty = (torch.zeros(1, dtype=torch.int64, device=X.device), torch.zeros(1, dtype=torch.int32, device=X.device))
    one = (*empty, X.new_zeros(1))
    if problem.gamma1 > 0:
        L1: Any = problem.L1
        one = L1.ptr, L1.idx, (power_of_two(state.lam) * 2 * problem.gamma1 * L1.val).to(X.dtype)
    layouts = {half: _layout(n, p, *_PANELS[half]) for half in (False, True)}
    n_columns = max(grid[0] * grid[1] for grid, _ in layouts.values())
    lo, hi, row_scale, column_scale = box(problem)
    # From a warm start, the iterates go to where the data are.
    y_scale = _HALF_RANGE / _power_of_two(max(A.nan_to_num(nan=0.0).abs_().max() for A in (X, state.U)))
    state.buffers = {
        "one": one,
        "y_scale": y_scale,
        "has": {"ONE": problem.gamma1 > 0, "TWO": problem.gamma2 > 0},
        "G": torch.empty_like(X) if problem.gamma2 > 0 else X.new_zeros(1),
        "Y": (state.Y, torch.empty_like(state.Y)),
        "sums": torch.zeros((3, n_columns), dtype=torch.float64, device=X.device),
        "control": torch.zeros(kernels.CONTROL_SIZE, dtype=torch.float64, device=X.device),
        "box": (row_scale, column_scale),
        "layouts": layouts,
        "exact": None,
    }
    keep, edge, limit = LOSSES[problem.loss].numbers(state.lam, problem.huber_delta)
    step = state.lam / power_of_two(state.lam)
    _set(
        state, LAM=step, KEEP=keep, EDGE=edge, LIMIT=limit, LOW=lo, HIGH=hi, DELTA=problem.huber_delta, Y_SCALE=y_scale
    )
    if problem.gamma2 > 0:
        dense = X.dtype == torch.float32 and _DENSE_FROM <= p <= _DENSE_TO
        (_load_dense_features if dense else _load_feature_lists)(state)
    if X.dtype == torch.float32:
        _load_halves(state)


def _layout(n: int, p: int, panel: int, neighbours: int) -> tuple[tuple[int, int], dict[str, int]]:
    """Return grid and shape of the step pass: so many columns and neighbours at a time."""
    panel = 64 if p <= 64 else panel
    n_panels = -(-p // panel)
    rows = max(1, -(-n * n_panels // _PROGRAMS))
    return (-(-n // rows), n_panels), {"ROWS": rows, "PANEL": panel, "K": neighbours, "num_warps": 1}


def _load_halves(state: TorchState) -> None:
    """Prepare steps that read ``Y`` in float16: the memory of the second ``Y`` holds its two copies."""
    b, (n, p) = state.buffers, state.X.shape
    b["halves"] = tuple(b["Y"][1].view(torch.float16).view(2, n, p))
    b["halves"][0].copy_(state.Y * b["y_scale"])
    b["one_half"] = _divided(b["one"], b["y_scale"])
    state.coarse = True


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


def _load_feature_lists(state: TorchState) -> None:
    """Prepare L2 as index lists, with a transposed tile of rows for each program."""
    b = state.buffers
    factor = power_of_two(state.lam) * 2 * state.problem.gamma2
    b["two"], n_programs, shape = _feature_lists(state, factor, state.X.dtype, len(state.X))
    scratch, *lists = b["two"]
    b["two_half"] = (scratch.view(torch.float16), *_divided(tuple(lists), b["y_scale"]))
    b["feature_pass"], b["feature_shape"] = kernels.feature_pass[(n_programs,)], {False: shape, True: shape}


def _feature_lists(state: TorchState, factor: float, dtype: torch.dtype, n: int) -> tuple[tuple, int, dict[str, int]]:
    """Return scratch and lists of ``factor * L2``, the number of programs for ``n`` rows, and the shape of a tile."""
    L2: Any = state.problem.L2
    X, p = state.X, state.X.shape[1]
    rows = 64
    while rows > 16 and rows * p * X.itemsize > _TILE_BYTES:
        rows //= 2
    n_programs = 4 * torch.cuda.get_device_properties(X.device).multi_processor_count if X.is_cuda else 2
    n_programs = min(n_programs, -(-n // rows))
    lists = _sliced_lists(L2, factor, dtype)
    return (
        (X.new_empty(n_programs * p * rows), *lists),
        n_programs,
        {"ROWS": rows, "FEATURES": _FEATURES, "num_warps": 8},
    )


def _load_dense_features(state: TorchState) -> None:
    """Prepare L2 as two float16 matrices."""
    L2: Any = state.problem.L2
    X, b = state.X, state.buffers
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
    b["two"] = (high, (dense - high.float()).half(), starts.int(), (blocks % n_blocks).int(), b["control"])
    b["two_half"] = b["two"]
    factor = power_of_two(state.lam) * 2 * state.problem.gamma2
    _set(state, G_SCALE=factor / b["y_scale"] / L_scale)
    b["feature_pass"] = kernels.dense_feature_pass[(-(-n // rows) * -(-p // columns),)]
    shape = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "num_warps": 4, "num_stages": 3}
    b["feature_shape"] = {half: shape | {"HALF": half} for half in (False, True)}


def _power_of_two(largest: Tensor) -> float:
    """Return the power of two next above a number, 1 for 0."""
    return 2.0 ** ceil(log2(float(largest))) if float(largest) > 0 else 1.0


def step(state: TorchState, *, momentum: float) -> list[float]:
    """Do one step; return its change, norm and restart product."""
    _read_in_full(state)
    _set(state, T=1.0, MOMENTUM=momentum, RESTARTS=0.0)
    _launch(state)
    return state.buffers["control"][3:6].tolist()


def advance(state: TorchState, n_steps: int, *, t: float, restart: bool, rough: bool) -> tuple[list[float], float]:
    """Do several steps; return change, norm and restart product of the last, and ``t``."""
    if not rough:
        _read_in_full(state)
    _set(state, T=t, MOMENTUM=(t - 1) / ((1 + sqrt(1 + 4 * t * t)) / 2), RESTARTS=float(restart))
    for _ in range(n_steps):
        _replay(state)
    t, _, _, *scalars = state.buffers["control"][:6].tolist()
    return scalars, t


def _set(state: TorchState, **numbers: float) -> None:
    """Write neighbouring places of ``control``, the first of them named first."""
    first = getattr(kernels, next(iter(numbers))).value
    values = torch.tensor(list(numbers.values()), dtype=torch.float64)
    state.buffers["control"][first : first + len(numbers)] = values


def _launch(state: TorchState) -> None:
    """Launch the kernels of one step, from the current ``Y`` buffer to the other one, or between their halves."""
    b, half = state.buffers, state.coarse
    near, near_next = _pair(b["halves" if half else "Y"], state.flipped)
    Y, Y_next = (b["Y"][0], b["Y"][0]) if half else (near, near_next)
    if b["has"]["TWO"]:
        lists = b["two_half" if half else "two"]
        b["feature_pass"](near, b["G"], *lists, *state.X.shape, **b["feature_shape"][half])
    grid, shape = b["layouts"][half]
    kernels.step_pass[grid](
        state.X, Y, state.U, Y_next, near, near_next, b["G"], *b["one_half" if half else "one"], b["control"],
        b["sums"], *state.X.shape, HALF=half, **b["has"], **shape,
    )  # fmt: skip
    n_columns = grid[0] * grid[1]
    kernels.finish_step[(1,)](b["sums"], b["control"], n_columns, BLOCK=_FINISH_BLOCK, num_warps=32)
    state.flipped = not state.flipped


def _pair(buffers: tuple[Tensor, Tensor], flipped: bool) -> tuple[Tensor, Tensor]:
    return (buffers[1], buffers[0]) if flipped else buffers


def look_closer(state: TorchState, gap: float) -> None:
    """Read neighbours in full from now on, if a gap says that float16 has done what it can."""
    if state.coarse and not _FINE_GAP < gap <= _STALLED * state.buffers.get("gap", float("inf")):
        _read_in_full(state)
    state.buffers["gap"] = gap


def _read_in_full(state: TorchState) -> None:
    if state.coarse:  # the first buffer of Y is the current one
        state.coarse, state.flipped = False, False
        state.graphs.clear()


def _replay(state: TorchState) -> None:
    """Do one step as a CUDA graph: launching the kernels one by one costs more than a small step itself."""
    way = state.flipped
    if not state.X.is_cuda or way not in state.graphs:
        _launch(state)  # compiles, the first time
        state.graphs[way] = None
        return
    if state.graphs[way] is None:
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream(state.X.device)
        stream.wait_stream(torch.cuda.current_stream(state.X.device))
        with torch.cuda.stream(stream):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads may go on allocating
            try:
                _launch(state)
            finally:
                graph.capture_end()
        torch.cuda.current_stream(state.X.device).wait_stream(stream)
        state.graphs[way] = graph
    state.graphs[way].replay()
    state.flipped = not way


def gap_sums(state: TorchState) -> list[float]:
    """Return the numbers of `frpcag.problem.Sums` at ``U``, chunk of rows by chunk of rows."""
    b, problem = state.buffers, state.problem
    if b["exact"] is None:
        b["exact"] = _load_exact(state)
    exact, (n, p) = b["exact"], state.X.shape
    (_, n_panels), shape = exact["layout"]
    found = []
    for start in range(0, n, exact["rows"]):
        stop = min(start + exact["rows"], n)
        if exact["dense"] is not None:
            torch.mm(state.U[start:stop].double(), exact["dense"], out=exact["G"][: stop - start])
        elif b["has"]["TWO"]:
            kernels.feature_pass[(exact["programs"],)](
                state.U[start:stop], exact["G"], *exact["two"], stop - start, p, **exact["feature_shape"]
            )
        grid = (-(-(stop - start) // shape["ROWS"]), n_panels)
        sums = torch.empty((9, grid[0] * grid[1]), dtype=torch.float64, device=state.X.device)
        kernels.gap_pass[grid](
            state.X, state.U, exact["G"], *exact["one"], b["control"], *b["box"], sums, start, stop, p,
            LOSS=TRITON_LOSSES.index(problem.loss), MISSING=problem.mask is not None, **b["has"], **shape,
        )  # fmt: skip
        found.append(torch.cat([sums[:6].sum(dim=1), sums[6:].amax(dim=1)]))
    parts = torch.stack(found)
    return torch.cat([parts[:, :6].sum(dim=0), parts[:, 6:].amax(dim=0)]).tolist()


def _load_exact(state: TorchState) -> dict[str, Any]:
    """Lay out what certificates need: both graphs in float64, and a chunk of the feature gradient."""
    problem, X, b = state.problem, state.X, state.buffers
    n, p = X.shape
    wide = torch.zeros(1, dtype=torch.float64, device=X.device)
    one = (*b["one"][:2], wide)
    if problem.gamma1 > 0:
        L1: Any = problem.L1
        one = L1.ptr, L1.idx, 2 * problem.gamma1 * L1.val
    layout = _layout(n, p, *_EXACT_PANEL)
    exact: dict[str, Any] = {"one": one, "G": wide, "rows": n, "layout": layout, "dense": None}
    if problem.gamma2 > 0:
        L2: Any = problem.L2
        exact["rows"] = rows = min(n, max(1, _EXACT_ENTRIES // p))
        exact["G"] = torch.empty((rows, p), dtype=torch.float64, device=X.device)
        if p <= _DENSE_TO:  # tensor cores multiply float64; adding the zeros of a dense matrix rounds nothing
            exact["dense"] = torch.zeros((p, p), dtype=torch.float64, device=X.device)
            exact["dense"][L2.rows, L2.idx.long()] = 2 * problem.gamma2 * L2.val.double()
        else:
            exact["two"], exact["programs"], exact["feature_shape"] = _feature_lists(
                state, 2 * problem.gamma2, torch.float64, rows
            )
    return exact
