"""The stages of a fit on PyTorch tensors: they stay on their device from the data to the factors."""

from __future__ import annotations

import copy
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import validate_data
from torch import Tensor
from torch.nn.functional import embedding_bag

from frpcag.backends.torch.backend import TensorProblem, require_memory
from frpcag.data.preprocess import (
    check_range,
    check_shape,
    column_moments,
    refuse_infinite,
    refuse_lost,
    validate_matrix,
)
from frpcag.engines.arrays import ArrayEngine
from frpcag.engines.base import Centred, Factors
from frpcag.engines.gammas import (
    column_sums,
    gamma_of,
    looked_at,
    pull_at,
    reference_row,
    rounding_of,
    spread_sums,
)
from frpcag.graphs.torch.graphs import TensorGraph
from frpcag.graphs.torch.search import BLOCK
from frpcag.linalg.factorize import check_n_components, gram_svd
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.runtime.arrays import is_tensor

# Rows per block of sums over rows: bounds the float64 copy of a float32 block.
_BLOCK = 1 << 16
# Arrays of the size of X that a solve holds: the caller's X, the centred one, U, both Y, and the feature gradient.
ARRAYS = 6


def fit_bytes(shape: tuple[int, int], itemsize: int, n_neighbors: int) -> int:
    """Return the most GPU memory a fit takes, ``X`` included: while it solves, or while it looks for neighbours.

    The solve holds six arrays of the size of ``X`` and the graphs, 80 bytes for each of the K neighbours of a node. The
    search holds ``X``, centred and in float16 too, and four blocks of scores or differences.

    Examples
    --------
    >>> from frpcag.engines.torch import fit_bytes
    >>> fit_bytes((70000, 784), 4, 10) / 1e9
    1.8...
    """
    n, p = shape
    size = n * p * itemsize
    blocks = 16 * min(max(n * n, p * p, 32 * n * p), BLOCK)
    return max(ARRAYS * size + 80 * (n + p) * n_neighbors, 7 * size // 2 + blocks)


class TorchEngine(ArrayEngine):
    """Tensors on their own device, or arrays on the GPU where there is one; the results are of the kind of ``X``."""

    gives_tensors = True
    problem_type = TensorProblem

    def wait(self) -> None:
        """Return when the device has done what it was given."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def check(self, X: Any) -> Tensor:
        """Return ``X`` on the device where it is fitted: its own for a tensor, the GPU if there is one for others.

        Raises
        ------
        MemoryError
            With the bytes needed and free, when the arrays of the fit would not fit in the device's memory.
        """
        self.gives_tensors = is_tensor(X)
        X = self._checked_tensor(X.detach()) if is_tensor(X) else self._copied(X)
        check_n_components(self.model.n_components, *X.shape)
        self.check_nonnegative(X)
        return X

    def some_rows(self, X: Tensor) -> np.ndarray:
        """Return some rows of ``X`` on the host, evenly spaced."""
        return X[:: max(1, len(X) // 500)].cpu().numpy()

    def centre(self, X: Tensor) -> Centred:
        """Return a centred and scaled copy of ``X``."""
        center, scale = self.centres, self.model.scale
        mean, std = column_moments(_TensorSums(X), eps=torch.finfo(X.dtype).eps, center=center, scale=scale)
        mean, std = (torch.from_numpy(v).to(X.device) for v in (mean, std))
        Xc = torch.empty_like(X, memory_format=torch.contiguous_format)
        for rows, out in zip(X.split(_BLOCK), Xc.split(_BLOCK), strict=True):
            out.copy_((rows.double() - mean) / std)
        largest = Xc.abs().nan_to_num_(nan=0.0).amax(dim=0)
        reach, center_, scale_ = (v.double().cpu().numpy() for v in (largest, mean, std))
        check_range(reach, center_, scale_, _numpy_dtype(X))
        return Centred(Xc, mean, std)

    def as_array(self, Xc: Tensor) -> np.ndarray:
        """Return centred data as a NumPy array on the host."""
        return Xc.cpu().numpy()

    def scale_free_gamma(self, Xc: Any, graph: Any, axis: int) -> float:
        """Return the gamma of `frpcag.engines.gammas` along an axis."""
        return tensor_gamma(graph.laplacian, Xc, axis=axis, loss=self.model.loss)

    def factors(self, U: Tensor) -> Factors:
        """Return the factors of the clean part about its mean, which is taken off ``U`` in place."""
        origin = U.mean(dim=0, dtype=torch.float64)
        origin = origin if self.model.center else torch.zeros_like(origin)
        U -= origin.to(U.dtype)
        W, Sigma, V = gram_svd(U, self.model.n_components, random_state=self.model.random_state)
        return Factors(origin, W, Sigma, V.T.contiguous().T)

    def large(self, X: Tensor, low_rank: Tensor, centred: Centred, factors: Factors) -> tuple[Tensor, Tensor, Tensor]:
        """Return the clean part, the corruptions and the embedding."""
        return low_rank, (X - low_rank).nan_to_num_(nan=0.0), factors.W * factors.Sigma

    def handed(self, value: Any) -> Any:
        """Return a result of the kind of the matrix given."""
        return value if self.gives_tensors else _on_host(value)

    def _copied(self, X: Any) -> Tensor:
        X = validate_matrix(self.model, X, reset=True)
        device = _device()
        require_memory(fit_bytes(X.shape, X.dtype.itemsize, self._neighbors()), device)
        X = np.ascontiguousarray(X.toarray() if hasattr(X, "toarray") else X)
        return torch.from_numpy(X if X.flags.writeable else X.copy()).to(device)

    def _checked_tensor(self, X: Tensor) -> Tensor:
        check_shape(self.model, tuple(X.shape), str(X.dtype).removeprefix("torch."))
        validate_data(self.model, X, skip_check_array=True)
        X = X if X.dtype in (torch.float32, torch.float64) else X.double()
        size = X.numel() * X.itemsize  # there already
        require_memory(fit_bytes(tuple(X.shape), X.itemsize, self._neighbors()) - size, X.device)
        if bool(torch.isfinite(X.sum())):
            return X
        refuse_infinite(int(torch.isinf(X).sum()))
        for what, axis in (("row", 1), ("column", 0)):
            refuse_lost(what, torch.isnan(X).all(dim=axis).nonzero().flatten().tolist())
        return X

    def _neighbors(self) -> int:
        k = self.model.n_neighbors
        return int(k) if isinstance(k, Integral) else 0  # the graphs will complain


def _device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


class _TensorSums:
    """Sums over the rows of a tensor, for `column_moments`."""

    def __init__(self, X: Tensor) -> None:
        self.X = X

    def lowest(self) -> np.ndarray:
        """Return the least entry of each column, float64."""
        return torch.where(torch.isnan(self.X), torch.inf, self.X).amin(dim=0).double().cpu().numpy()

    def deviations(self, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of ``X - reference`` over the rows, and how many entries are observed."""
        at = torch.from_numpy(reference).to(self.X.device)
        total, count = torch.zeros_like(at), torch.zeros_like(at)
        for block in self.X.split(_BLOCK):
            total += (block.double() - at).nansum(dim=0)
            count += (~torch.isnan(block)).sum(dim=0)
        return total.cpu().numpy(), count.cpu().numpy()

    def squares(self, mean: np.ndarray) -> np.ndarray:
        """Return the sums of ``(X - mean)**2`` over the rows."""
        at = torch.from_numpy(mean).to(self.X.device)
        total = torch.zeros_like(at)
        for block in self.X.split(_BLOCK):
            total += (block.double() - at).square_().nansum(dim=0)
        return total.cpu().numpy()


def tensor_gamma(L: TorchCSR, X: Tensor, *, axis: int, loss: str = "l1") -> float:
    """Return what `frpcag.engines.gammas.scale_free_gamma` does, of a tensor and a Laplacian on its device."""
    rows = torch.from_numpy(looked_at(len(X))).to(X.device)
    seen = X[rows].double()
    if axis == 0:
        product, near = _product(L, rows)
        pull = pull_at(product, L.diagonal()[rows], seen, X[near].double(), torch)
    else:
        product, near = _product(L, torch.arange(X.shape[1], device=X.device))
        points = seen.T.contiguous()
        pull = pull_at(product, L.diagonal(), points, points[near], torch).T
    reference = reference_row(X[0].cpu().numpy())
    sums: Any = column_sums(pull, seen, torch.from_numpy(reference).to(X.device), torch)

    def spread(mean: np.ndarray) -> np.ndarray:
        return spread_sums(seen, torch.from_numpy(mean).to(X.device), torch).cpu().numpy()

    sums = tuple(part.cpu().numpy() for part in sums)
    rounding = rounding_of(L if axis == 0 else L.to_scipy(), axis)
    return gamma_of(sums, reference, spread, rounding, _numpy_dtype(X), loss)


def _product(L: TorchCSR, nodes: Tensor) -> tuple[Any, Tensor]:
    """Return the product with the weights between ``nodes`` and those they are linked to, and which these are."""
    at, columns, values = L.take(nodes)
    weights = torch.where(columns == nodes[at], 0.0, -values)
    starts = torch.searchsorted(at, torch.arange(len(nodes), device=nodes.device))
    near, places = torch.unique(columns, return_inverse=True)
    return lambda A: embedding_bag(places, A, starts, mode="sum", per_sample_weights=weights.to(A.dtype)), near


def _numpy_dtype(X: Tensor) -> np.dtype:
    return np.dtype(str(X.dtype).removeprefix("torch."))


def _on_host(value: Any) -> Any:
    """Return a tensor as a NumPy array, a graph of tensors as one of SciPy matrices, and other values as they are."""
    if isinstance(value, TensorGraph):
        return value.to_host()
    return value.cpu().numpy() if isinstance(value, Tensor) else value


def to_host(model: Any) -> Any:
    """Return a copy of a fitted model whose attributes are NumPy arrays and graphs of SciPy matrices."""
    model = copy.copy(model)
    for name, value in vars(model).items():
        setattr(model, name, _on_host(value))
    return model


def to_device(result: Any, like: Tensor) -> Tensor:
    """Return an array as a tensor on the device of another."""
    return torch.from_numpy(np.asarray(result)).to(like.device)
