"""The stages of a fit, and where each kind of data goes through them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from frpcag.backends import select_backend
from frpcag.backends.units import Moves, Units
from frpcag.engines.devices import takes_gpu
from frpcag.linalg.spreads import compare_spreads
from frpcag.runtime.arrays import is_dask, is_tensor
from frpcag.runtime.warn import warn_user
from frpcag.solvers.stopping import Solution


@dataclass
class Centred:
    """Data ready for the solve, and what undoes it: ``X = Xc * scale + center``."""

    Xc: Any
    center: Any
    scale: Any

    @property
    def level(self) -> float | None:
        """Sum over the entries of what was subtracted, in units of ``Xc``; None where ``Xc`` is ``X``."""
        if not (self.center != 0).any() and not (self.scale != 1).any():
            return None
        return self.Xc.shape[0] * float(abs(self.center / self.scale).sum())

    @property
    def units(self) -> Units:
        """The same for `frpcag.backends.units`."""
        return Units(np.ones(self.Xc.shape[0]), self.center, self.scale)


class Factors(NamedTuple):
    """``U - origin = W diag(Sigma) V'``."""

    origin: Any
    W: Any  # None where rows are in blocks: the restored rows give it
    Sigma: Any
    V: Any


class UnitsWarning(UserWarning):
    """Columns have different units, and the widest decide alone."""


class Engine:
    """The stages of a fit for one kind of data; `FRPCAG.fit` calls them in order.

    Parameters
    ----------
    model : FRPCAG
        Whose parameters are read. Nothing of it is written, except by scikit-learn's ``validate_data``.
    multiples : (float, float)
        Of the scale-free gammas, where gamma is "auto".

    Attributes
    ----------
    backend : str or Backend
        What computes the steps of the solve.
    """

    def __init__(self, model: Any, multiples: tuple[float, float] = (1.0, 1.0)) -> None:
        self.model, self.multiples = model, multiples
        self.backend = model.backend

    def wait(self) -> None:
        """Return when the device has done what it was given."""

    def whole(self, stages: Callable[[], Any], again: Callable[[], None]) -> Any:
        """Return what the stages after `centre` come to; where they lose data, they begin after ``again``."""
        return stages()

    def check(self, X: Any) -> Any:
        """Return ``X`` as the other stages take it; raise for matrices and parameters that no fit can use."""
        raise NotImplementedError

    def centre(self, X: Any) -> Centred:
        """Return a centred and scaled copy of ``X``."""
        raise NotImplementedError

    def data(self, centred: Centred) -> Any:
        """Return all of the centred and scaled data."""
        return centred.Xc

    def lend(self, centred: Centred) -> bool:
        """Let go of the centred and scaled data while the solver has a copy; False where they are kept."""
        return False

    def warn_of_units(self, X: Any) -> None:
        """Warn if the columns of ``X``, as `check` returns it, are so unlike that the widest decide alone."""
        model = self.model
        found = None if model.scale else compare_spreads(self.some_rows(X))
        if found is not None:
            names = getattr(model, "feature_names_in_", None)
            wide, narrow = (j if names is None else repr(str(names[j])) for j in (found.widest, found.narrowest))
            warn_user(
                f"columns of X have different units: column {wide} spreads {found.ratio:.2g} times as far as column "
                f"{narrow}, so it alone decides which rows are neighbours, and the narrow ones count for nothing. Pass "
                "scale=True, or scale X robustly first (sklearn.preprocessing.RobustScaler).",
                UnitsWarning,
            )

    def some_rows(self, X: Any) -> Any:
        """Return rows of ``X`` on the host, enough to see how far its columns spread."""
        return X

    def check_nonnegative(self, X: Any) -> None:
        """Raise ValueError if ``nonnegative`` is asked for and ``X`` has negative entries."""
        values = X.data if hasattr(X, "indptr") else X
        if self.model.nonnegative and bool((values < 0).any()):
            raise ValueError(
                "nonnegative=True needs X >= 0, but X has negative entries; pass counts or their logarithms."
            )

    @property
    def centres(self) -> bool:
        """Whether the mean of each feature is subtracted; levels stay where the clean part must not fall below zero."""
        return self.model.center and not self.model.nonnegative

    def graph(self, basis: Any, axis: int) -> Any:
        """Return the graph of the samples or features of ``basis``, centred data or a clean part; None without one."""
        raise NotImplementedError

    def gamma(self, Xc: Any, graph: Any, axis: int, given: str | float) -> float:
        """Return the weight of the graph's term; "auto" is scale-free."""
        if graph is None:
            return 0.0
        if not isinstance(given, str):
            return float(given)
        return self.multiples[axis] * self.scale_free_gamma(Xc, graph, axis)

    def scale_free_gamma(self, Xc: Any, graph: Any, axis: int) -> float:
        """Return the gamma of `frpcag.engines.gammas` along an axis."""
        raise NotImplementedError

    def problem(self, Xc: Any, graphs: tuple[Any, Any], gammas: tuple[float, float]) -> Any:
        """Return the problem to solve."""
        raise NotImplementedError

    def restore(self, X: Any, solution: Solution, centred: Centred, problem: Any) -> tuple[Any, Moves | None]:
        """Return the clean part in the units and of the kind of ``X``, and what rounding has moved, None for nothing.

        ``problem`` is the one that was solved; ``solution`` stays as it is.
        """
        raise NotImplementedError

    def clipped(self, low_rank: Any, solution: Solution) -> Any:
        """Return the clean part without what the solver left below zero, also in ``solution``.

        Clipping lowers the objective, so that the gap that is proved for the unclipped part holds: the data are not
        negative, and for a Laplacian, whose entries off the diagonal are none of them positive, the positive part of a
        vector has no more energy than the vector. docs/maths.md has the proof.
        """
        for A in (low_rank, solution.U):
            A[A < 0] = 0
        return low_rank

    def factors(self, U: Any) -> Factors:
        """Return the factors of the clean part about its mean; ``U`` may be overwritten."""
        raise NotImplementedError

    def large(self, X: Any, low_rank: Any, centred: Centred, factors: Factors) -> tuple[Any, Any, Any]:
        """Return the clean part, the corruptions and the embedding as they are handed out."""
        raise NotImplementedError

    def handed(self, value: Any) -> Any:
        """Return a result of the kind of the matrix given."""
        return value

    def as_array(self, Xc: Any) -> Any:
        """Return centred data as a NumPy array on the host."""
        raise NotImplementedError

    def chosen_neighbors(self, n_nodes: int, axis: int) -> Any:
        """Return ``n_neighbors``, at most one less than there are nodes."""
        k = self.model.n_neighbors
        if not isinstance(k, Integral) or k < n_nodes:
            return k
        if axis == 0:  # the two graphs share n_neighbors, so few features are no reason to complain
            warn_user(f"n_neighbors={k} is not smaller than n_samples={n_nodes}; using {n_nodes - 1}.")
        return n_nodes - 1


# Paths, so that PyTorch and Dask are imported only where they are used.
ENGINES = {
    "host": ("frpcag.engines.host", "HostEngine"),
    "torch": ("frpcag.engines.torch", "TorchEngine"),
    "dask": ("frpcag.dask", "DaskEngine"),
}


def engine_for(X: Any, model: Any, multiples: tuple[float, float] = (1.0, 1.0)) -> Engine:
    """Return the engine for ``X`` and the parameters of a model."""
    name = getattr(model.backend, "name", model.backend)
    select_backend(name, X=X)  # says what is unknown or missing
    if is_dask(X) and name not in ("auto", "dask"):
        raise ValueError(f"backend={name!r} does not take Dask arrays; pass backend='dask' or X.compute().")
    module, attribute = ENGINES[_kind_of(X, name, model)]
    return getattr(import_module(module), attribute)(model, multiples)


def _kind_of(X: Any, name: Any, model: Any) -> str:
    """Return where ``X`` goes through the stages; "auto" leaves one too large for the GPU on the host."""
    if is_dask(X) or name == "dask":
        return "dask"
    if is_tensor(X) or name == "torch":
        return "torch"
    return "torch" if name == "auto" and takes_gpu(X, model) else "host"


def rows_on_client(X: Any, seed: int, *, most: int) -> tuple[Any, Any]:
    """Return some rows of a matrix in row chunks as an array, all of them where they are few, and which they are."""
    return import_module("frpcag.dask").rows_on_client(X, seed, most=most)


def on_client(model: Any) -> Any:
    """Return a fitted model with arrays of this machine; of one in row blocks a copy that keeps some of its rows."""
    return import_module("frpcag.dask").on_client(model) if is_dask(model.low_rank_) else model


def map_chunks(function: Any, X: Any, n_columns: int) -> Any:
    """Apply a function of rows to every chunk of a Dask array, lazily."""
    return import_module("frpcag.dask").map_chunks(function, X, n_columns)


def in_blocks(model: Any) -> bool:
    """Say whether a model asks for row blocks, whatever the matrix is."""
    backend = getattr(model, "backend", None)
    return getattr(backend, "name", backend) == "dask"


def refuse_dask(X: Any, name: str) -> None:
    """Raise ValueError for a Dask array where a model holds all rows at once."""
    if is_dask(X):
        raise ValueError(
            f"{name} does not take Dask arrays; pass X.compute(), or a subsample that fits in memory. FRPCAG itself "
            "fits Dask arrays block by block."
        )


def on_host(model: Any) -> Any:
    """Return a fitted model with NumPy arrays and SciPy graphs, a copy if it was fitted on tensors."""
    return import_module("frpcag.engines.torch").to_host(model) if is_tensor(model.components_) else model


def on_device_of(X: Any, Z: Any) -> Any:
    """Return an array as a tensor on the device of ``X``, in its own dtype: that of ``X`` may hold no NaN."""
    return import_module("frpcag.engines.torch").to_device(Z, X)
