"""The PyTorch backend: fused Triton kernels on a GPU, the same steps in tensor operations elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from frpcag import memory
from frpcag.backends.base import StepScalars
from frpcag.problem import Certificate, Problem, dual_bound, shrinkage
from frpcag.torch_sparse import TorchCSR

# Columns, starts of the rows, and entries of a sparse matrix.
Lists = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class TensorProblem(Problem):
    """A `Problem` whose arrays are tensors of one device; NaN in ``X`` is missing. Built by the estimator."""

    def __post_init__(self) -> None:
        self._check_numbers()
        for name, L in (("gamma1", self.L1), ("gamma2", self.L2)):
            object.__setattr__(self, name, float(getattr(self, name)) if L is not None else 0.0)
        X: Any = self.X
        object.__setattr__(self, "mask", None if torch.isfinite(X.sum()) else ~torch.isnan(X))

    def transpose(self) -> TensorProblem:
        """Return the same problem for ``X.T``."""
        X: Any = self.X
        return replace(
            self,
            X=X.T.contiguous(),
            L1=self.L2,
            L2=self.L1,
            gamma1=self.gamma2,
            gamma2=self.gamma1,
            null1=self.null2,
            null2=self.null1,
        )

    @classmethod
    def of(cls, problem: Problem, device: torch.device) -> TensorProblem:
        """Return a problem of NumPy arrays, copied to the device."""
        L1, L2 = (None if L is None else TorchCSR.of(L, device) for L in (problem.L1, problem.L2))
        X = torch.from_numpy(np.ascontiguousarray(problem.X)).to(device)
        kept = {name: getattr(problem, name) for name in ("gamma1", "gamma2", "loss", "delta", "null1", "null2")}
        return cls(X, L1=L1, L2=L2, **kept)


@dataclass
class TorchState:
    """Iterates on the device, and what the kernels need beside them."""

    problem: TensorProblem
    lam: float
    X: Tensor
    U: Tensor
    Y: Tensor
    L1: Lists | None  # 2 gamma1 L1 for the tensor operations; None with the Triton kernels
    L2: Lists | None
    on_host: bool  # whether the caller's arrays were NumPy's
    fused: Any = None  # the module that launches the Triton kernels
    buffers: dict[str, Any] = field(default_factory=dict)
    flipped: bool = False  # which of the two Y buffers is the current one
    graphs: dict[bool, Any] = field(default_factory=dict)


class TorchBackend:
    """Tensors on the GPU where there is one, else on the CPU.

    Parameters
    ----------
    n_jobs : int, optional
        Ignored: PyTorch has its own threads.
    device : torch.device or str, optional
        Where problems of NumPy arrays go; the current GPU, or the CPU without one. Tensors stay where they are.
    fused : bool, optional
        Whether to use the Triton kernels; on GPUs, where Triton is installed, by default.
    """

    name = "torch"

    def __init__(self, *, n_jobs: int | None = None, device: Any = None, fused: bool | None = None) -> None:
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.fused = fused

    def load(self, problem: Problem, *, step: float, U0: Any = None) -> TorchState:
        """Place the problem and its iterates on the device."""
        on_host = not isinstance(problem, TensorProblem)
        if not isinstance(problem, TensorProblem):
            n_arrays = 6 if problem.L2 is not None else 5
            require_memory(n_arrays * problem.X.nbytes, self.device)
            problem = TensorProblem.of(problem, self.device)
        X: Any = problem.X
        X = X.contiguous()
        U = torch.nan_to_num(X, nan=0.0) if U0 is None else torch.as_tensor(U0, dtype=X.dtype, device=X.device).clone()
        U = U.contiguous()
        fused = (X.is_cuda and _has_triton()) if self.fused is None else self.fused
        state = TorchState(problem, step, X, U, U.clone(), None, None, on_host)
        if fused:
            from frpcag.backends import triton_steps

            state.fused = triton_steps
            state.fused.load(state)
        else:
            state.L1, state.L2 = (
                _scaled(L, 2 * gamma, X.dtype)
                for L, gamma in ((problem.L1, problem.gamma1), (problem.L2, problem.gamma2))
            )
        return state

    def step(self, state: TorchState, *, momentum: float) -> StepScalars:
        """Do one step of Shahid et al. 2016, Algorithm 1."""
        if state.fused is None:
            return _step(state, momentum)
        with torch.cuda.device_of(state.X):
            return StepScalars(*state.fused.step(state, momentum=momentum))

    def advance(self, state: TorchState, n_steps: int, *, t: float, restart: bool) -> tuple[StepScalars, float]:
        """Do several steps; momentum and restarts are decided on the device. Return the last scalars and ``t``."""
        if state.fused is None:
            for _ in range(n_steps):
                t_next = (1 + sqrt(1 + 4 * t * t)) / 2
                scalars = _step(state, (t - 1) / t_next)
                t = 1.0 if restart and scalars.restart > 0 else t_next
            return scalars, t
        with torch.cuda.device_of(state.X):
            sums, t = state.fused.advance(state, n_steps, t=t, restart=restart)
        return StepScalars(*sums), t

    def gap(self, state: TorchState) -> Certificate:
        """Return objective and dual bound at ``U``; sums in float64."""
        with torch.cuda.device_of(state.X):
            data, VU, VX, VV, Vmax = (_gap_sums if state.fused is None else state.fused.gap_sums)(state)
        bound = dual_bound(state.problem, VX=VX, VV=VV, g=VU / 2, Vmax=Vmax)
        return Certificate(data + VU / 2, bound)

    def unload(self, state: TorchState) -> Any:
        """Return ``U``, a NumPy array if the problem's were."""
        state.graphs.clear()
        return state.U.cpu().numpy() if state.on_host else state.U


def require_memory(n_bytes: int, device: torch.device) -> None:
    """Raise MemoryError unless that many bytes are free on the device."""
    if device.type != "cuda":
        return memory.require_memory(n_bytes, f"the fit on PyTorch's device {device}")
    free = torch.cuda.mem_get_info(device)[0]
    free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    if n_bytes > free:
        raise MemoryError(
            f"the fit needs {n_bytes:,} bytes of GPU memory, but {free:,} are free on {device}; pass float32 data, "
            "free other tensors, fit fewer rows, or use backend='numba'."
        )


def _has_triton() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:  # a GPU on a platform without Triton
        return False
    return True


def _scaled(L: TorchCSR | None, factor: float, dtype: torch.dtype) -> Lists | None:
    if L is None or factor == 0:
        return None
    return L.idx.long(), L.ptr[:-1], (factor * L.val).to(dtype)


def _gathered(lists: Lists, Y: Tensor) -> Tensor:
    """Return the weighted sums of rows of ``Y``: faster than PyTorch's sparse products on a CPU."""
    idx, starts, val = lists
    return embedding_bag(idx, Y, starts, mode="sum", per_sample_weights=val)


def gradient(Y: Tensor, n: int, L1: Lists | None, L2: Lists | None) -> Tensor:
    """Return the gradient of the smooth part at the first ``n`` rows of ``Y``; the graph may reach below them."""
    V = torch.zeros_like(Y[:n])
    if L1 is not None:
        V += _gathered(L1, Y)
    if L2 is not None:
        V += _gathered(L2, Y[:n].T.contiguous()).T
    return V


def advanced(X: Tensor, U_old: Tensor, Y: Tensor, V: Tensor, seen: Any, numbers: tuple) -> tuple[Tensor, Tensor, tuple]:
    """Do one step: return the next U and Y, and the sums of `StepScalars`.

    ``seen`` is None, or where ``X`` is observed; ``numbers`` are step size, the three of `shrinkage`, and momentum.
    """
    lam, keep, edge, limit, momentum = numbers
    Z = Y - lam * V
    D = Z - X
    U = torch.where(D.abs() <= edge, X + keep * D, Z - D.sign() * limit)
    U = U if seen is None else torch.where(seen, U, Z)
    Y_next = U + momentum * (U - U_old)
    sums = ((Y_next - Y).square(), Y.square(), (Y - U) * (U - U_old))
    return U, Y_next, tuple(float(s.sum(dtype=torch.float64)) for s in sums)


def certificate_sums(X: Tensor, U: Tensor, V: Tensor, seen: Any, box: tuple, loss: str, delta: float) -> list[float]:
    """Return data term, <V, U>, <V, X>, <V, V> and max |V|, in float64; ``box`` as of `box`, for missing entries."""
    X, U, V = X.double(), U.double(), V.double()
    VX, R = V * X, (X - U).abs()
    VU = float((V * U).sum())
    if seen is not None:
        lo, hi, rows, columns = box
        least = torch.minimum(V * lo, V * hi) * rows[:, None] * columns
        VX, V, R = torch.where(seen, VX, least), torch.where(seen, V, 0.0), torch.where(seen, R, 0.0)
    if loss == "l2":
        R = R.square()
    elif loss == "huber":
        R = torch.where(delta < R, R - delta / 2, R.square() / (2 * delta))
    return [float(R.sum()), VU, float(VX.sum()), float(V.square().sum()), float(V.abs().max())]


def _step(state: TorchState, momentum: float) -> StepScalars:
    V = gradient(state.Y, len(state.X), state.L1, state.L2)
    numbers = (state.lam, *shrinkage(state.problem, state.lam), momentum)
    state.U, state.Y, sums = advanced(state.X, state.U, state.Y, V, state.problem.mask, numbers)
    return StepScalars(*sums)


def _gap_sums(state: TorchState) -> list[float]:
    problem = state.problem
    V = gradient(state.U, len(state.X), state.L1, state.L2)
    return certificate_sums(state.X, state.U, V, problem.mask, box(problem), problem.loss, problem.delta)


def box(problem: TensorProblem) -> tuple[float, float, Tensor, Tensor]:
    """Return what `frpcag.problem.solution_box` says, as tensors."""
    X: Any = problem.X
    rows, columns = (
        torch.ones(n, dtype=torch.float64, device=X.device)
        if null is None
        else torch.as_tensor(null, dtype=torch.float64, device=X.device)
        for null, n in zip((problem.null1, problem.null2), X.shape, strict=True)
    )
    if problem.mask is None:
        return 0.0, 0.0, rows, columns
    Z = X / rows[:, None] / columns
    return (
        float(torch.nan_to_num(Z, nan=torch.inf).min()),
        float(torch.nan_to_num(Z, nan=-torch.inf).max()),
        rows,
        columns,
    )
