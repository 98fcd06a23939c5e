"""The PyTorch backend: fused Triton kernels on a GPU, the same steps in tensor operations elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from frpcag.backends.base import Backend, StepScalars, power_of_two
from frpcag.backends.torch.operations import (
    Lists,
    advanced,
    certificate_sums,
    gradient,
    in_step_units,
    scaled,
    slopes,
)
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.losses import LOSSES
from frpcag.problem import Certificate, Problem, Sums, certified, check_numbers, widened
from frpcag.runtime import memory

if TYPE_CHECKING:
    from frpcag.backends.torch.triton_steps import FusedSteps

# Losses whose formulas the Triton kernels hold, in the order of their number there.
TRITON_LOSSES = ("l1", "l2", "huber")
Pair = tuple[Lists | None, Lists | None]


@dataclass(frozen=True, eq=False)
class TensorProblem(Problem):
    """A `Problem` whose arrays are tensors of one device; NaN in ``X`` is missing. Built by the estimator."""

    def __post_init__(self) -> None:
        check_numbers(self.loss, self.huber_delta, gamma1=self.gamma1, gamma2=self.gamma2)
        for name, L in (("gamma1", self.L1), ("gamma2", self.L2)):
            object.__setattr__(self, name, float(getattr(self, name)) if L is not None else 0.0)
        X: Any = self.X
        object.__setattr__(self, "mask", None if torch.isfinite(X.sum()) else ~torch.isnan(X))

    @cached_property
    def reaches(self) -> tuple[Any, Any]:
        """As in `Problem`."""
        X: Any = self.X
        first, second = (
            torch.zeros(n, dtype=torch.float64, device=X.device) if L is None else gamma * L.sum_rows(L.val.abs())
            for L, gamma, n in ((self.L1, self.gamma1, X.shape[0]), (self.L2, self.gamma2, X.shape[1]))
        )
        return first, second

    @cached_property
    def stiffness(self) -> tuple[float, int]:
        """As in `Problem`."""
        longest = (0 if L is None else int(L.ptr.diff().max()) for L in (self.L1, self.L2))
        return 2 * float(sum(reach.max() for reach in self.reaches)), sum(longest)

    def transpose(self) -> TensorProblem:
        """Return the same problem for ``X.T``, in one piece."""
        turned: Any = super().transpose()
        return replace(turned, X=turned.X.contiguous())

    def start(self, U0: Any) -> Any:
        """Return a warm start as a tensor."""
        return torch.as_tensor(U0)

    def turn(self, U: Any) -> Any:
        """Return the transpose of a solution, rows in one piece."""
        return U.T.contiguous()

    @classmethod
    def of(cls, problem: Problem, device: torch.device) -> TensorProblem:
        """Return a problem of NumPy arrays, copied to the device."""
        L1, L2 = (None if L is None else TorchCSR.of(L, device) for L in (problem.L1, problem.L2))
        X = torch.from_numpy(np.ascontiguousarray(problem.X)).to(device)
        names = ("gamma1", "gamma2", "loss", "huber_delta", "null1", "null2", "lmax1", "lmax2")
        kept = {name: getattr(problem, name) for name in names}
        copied = cls(X, L1=L1, L2=L2, **kept)
        for name in ("level1", "level2"):
            object.__setattr__(copied, name, getattr(problem, name))
        return copied


@dataclass
class TorchState:
    """Iterates on the device, and what the kernels need beside them."""

    problem: TensorProblem
    lam: float
    X: Tensor
    U: Tensor
    Y: Tensor
    on_host: bool  # whether the caller's arrays were NumPy's
    exact: Pair = (None, None)  # 2 gamma1 L1 and 2 gamma2 L2 in float64, for the tensor operations
    graphs: Pair = (None, None)  # times `power_of_two` of the step
    fused: FusedSteps | None = None  # the Triton kernels, where they do the steps


class TorchBackend(Backend):
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
            require_memory((6 if problem.L2 is not None else 5) * problem.X.nbytes, self.device)
            problem = TensorProblem.of(problem, self.device)
        X: Any = problem.X
        X = X.contiguous()
        U = torch.nan_to_num(X, nan=0.0) if U0 is None else torch.as_tensor(U0, dtype=X.dtype, device=X.device).clone()
        U = U.contiguous()
        fused = self.fused
        if fused is None:
            fused = X.is_cuda and _has_triton() and problem.loss in TRITON_LOSSES
        elif fused and problem.loss not in TRITON_LOSSES:
            known = ", ".join(map(repr, TRITON_LOSSES))
            raise ValueError(f"loss={problem.loss!r} has no Triton kernel; choose one of {known}, or pass fused=False.")
        state = TorchState(problem, step, X, U, U.clone(), on_host)
        if fused:
            from frpcag.backends.torch.triton_steps import FusedSteps

            state.fused = FusedSteps(problem, step, X, U, state.Y)
        else:
            state.exact = _exact_graphs(problem)
            L1, L2 = state.exact
            state.graphs = in_step_units(L1, step, X.dtype), in_step_units(L2, step, X.dtype)
        return state

    def step(self, state: TorchState, *, momentum: float) -> StepScalars:
        """Do one step of Shahid et al. 2016, Algorithm 1."""
        if state.fused is None:
            return _step(state, momentum)
        with torch.cuda.device_of(state.X):
            return StepScalars(*state.fused.step(momentum=momentum))

    def run_on_device(self, state: TorchState, n_steps: int, *, t: float, restart: bool, rough: bool = True):
        """Do several steps; the Triton kernels decide momentum and restarts on the device."""
        if state.fused is None:
            return None
        with torch.cuda.device_of(state.X):
            sums, t = state.fused.advance(n_steps, t=t, restart=restart, rough=rough)
        return StepScalars(*sums), t

    def gap(self, state: TorchState) -> Certificate:
        """Return what is proved about ``U``, in float64."""
        with torch.cuda.device_of(state.X):
            sums = _gap_sums(state) if state.fused is None else state.fused.gap_sums()
        found = certified(state.problem, Sums(*sums))
        if state.fused is not None:
            state.fused.look_closer(found.gap)
        return found

    def slope(self, state: TorchState) -> Any:
        """Return the gradient of the graph terms at ``U``."""
        state.fused, state.graphs, state.Y = None, (None, None), state.U
        V = slopes(state.U.double(), len(state.U), *_exact_graphs(state.problem), state.U.dtype)
        return V.cpu().numpy() if state.on_host else V

    def unload(self, state: TorchState) -> Any:
        """Return ``U``, a NumPy array if the problem's were."""
        state.fused = None
        return state.U.cpu().numpy() if state.on_host else state.U


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes that are free on a GPU; None for the host, where results would lie anyway."""
    if device.type != "cuda":
        return None
    free = torch.cuda.mem_get_info(device)[0]
    return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)


def require_memory(n_bytes: int, device: torch.device) -> None:
    """Raise MemoryError unless that many bytes are free on the device."""
    free = free_bytes(device)
    if free is None:
        return memory.require_memory(n_bytes, f"the fit on PyTorch's device {device}")
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


def _step(state: TorchState, momentum: float) -> StepScalars:
    V = gradient(state.Y, len(state.X), *state.graphs)
    loss = LOSSES[state.problem.loss]
    prox = partial(loss.prox, numbers=loss.numbers(state.lam, state.problem.huber_delta), xp=torch)
    lam = state.lam / power_of_two(state.lam)
    state.U, state.Y, sums = advanced(state.X, state.U, state.Y, V, state.problem.mask, lam, prox, momentum)
    return StepScalars(*sums.tolist())


def _exact_graphs(problem: Any) -> Pair:
    return scaled(problem.L1, 2 * problem.gamma1), scaled(problem.L2, 2 * problem.gamma2)


def _gap_sums(state: TorchState) -> list[float]:
    problem = state.problem
    box_of = box(problem)
    loss = problem.loss, problem.huber_delta
    return certificate_sums(state.X, state.U.double(), *state.exact, problem.mask, box_of, *loss)


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
    lo, hi = float(torch.nan_to_num(Z, nan=torch.inf).min()), float(torch.nan_to_num(Z, nan=-torch.inf).max())
    return *widened(lo, hi, X.dtype, held="held" in (problem.level1, problem.level2)), rows, columns
