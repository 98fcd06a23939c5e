"""The stages of a fit, and where each kind of data goes through them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from frpcag.backends import select_backend
from frpcag.data.preprocess import check_flags
from frpcag.engines.devices import takes_gpu
from frpcag.engines.gammas import check_gamma
from frpcag.graphs.checks import check_weight_options
from frpcag.graphs.laplacian import check_laplacian
from frpcag.graphs.metric import check_metric
from frpcag.linalg.spreads import compare_spreads
from frpcag.linalg.units import Moves, Units
from frpcag.problem import check_numbers
from frpcag.runtime.arrays import is_dask, is_tensor
from frpcag.runtime.clock import Clock
from frpcag.runtime.threads import count_threads
from frpcag.runtime.warn import warn_user
from frpcag.solvers.solve import check_options
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
        """The same for `frpcag.linalg.units`."""
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

    Attributes
    ----------
    clock : Clock
        Seconds per stage.
    backend : str or Backend
        What computes the steps of the solve.
    shown : StageReport or None
        What tells a person of the stages.
    multiples : (float, float)
        Of the scale-free gammas, where gamma is "auto".
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.clock = Clock()
        self.backend = model.backend
        self.multiples = (1.0, 1.0)
        self.shown: Any = None

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

    def gamma(self, Xc: Any, graph: Any, axis: int) -> float:
        """Return the weight of the graph's term."""
        given = getattr(self.model, f"gamma{axis + 1}")
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
            A.clip(0, None, out=A)
        return low_rank

    def factors(self, U: Any) -> Factors:
        """Return the factors of the clean part about its mean; ``U`` may be overwritten."""
        raise NotImplementedError

    def results(self, X: Any, low_rank: Any, centred: Centred, factors: Factors, graphs: tuple[Any, Any]) -> dict:
        """Return the results by name."""
        raise NotImplementedError

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


def engine_for(X: Any, model: Any) -> Engine:
    """Return the engine for ``X`` and the parameters of a model, which are checked."""
    check_parameters(model)
    name = getattr(model.backend, "name", model.backend)
    select_backend(name, X=X)  # says what is unknown or missing
    if is_dask(X) and name not in ("auto", "dask"):
        raise ValueError(f"backend={name!r} does not take Dask arrays; pass backend='dask' or X.compute().")
    module, attribute = ENGINES[_kind_of(X, name, model)]
    return getattr(import_module(module), attribute)(model)


def _kind_of(X: Any, name: Any, model: Any) -> str:
    """Return where ``X`` goes through the stages; "auto" leaves one too large for the GPU on the host."""
    if is_dask(X) or name == "dask":
        return "dask"
    if is_tensor(X) or name == "torch":
        return "torch"
    return "torch" if name == "auto" and takes_gpu(X, model) else "host"


def check_parameters(model: Any) -> None:
    """Raise ValueError for parameters of `FRPCAG` that no data could make right."""
    check_flags(center=model.center, scale=model.scale, nonnegative=model.nonnegative)
    check_verbose(model.verbose)
    for name in ("gamma1", "gamma2"):
        check_gamma(name, getattr(model, name))
    check_numbers(model.loss, model.huber_delta)
    check_laplacian(model.laplacian)
    check_weight_options(sigma=model.sigma, weights="gaussian")
    check_metric(model.metric)
    check_refinement(model.n_refine)
    check_seed(model.random_state)
    count_threads(model.n_jobs)
    check_options(
        tol=model.tol, max_iter=model.max_iter, stop=model.stop, backend=model.backend, callback=model.callback
    )


def check_verbose(verbose: Any) -> None:
    """Raise ValueError unless ``verbose`` is a whole number of at least 0."""
    if not isinstance(verbose, (Integral, bool)) or int(verbose) < 0:
        raise ValueError(f"verbose={verbose!r} must be an integer >= 0; 0 is silent, 1 tells the stages.")


def check_seed(random_state: Any) -> None:
    """Raise ValueError unless ``random_state`` can seed NumPy's generators."""
    try:
        check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state={random_state!r} must be None, an integer from 0 to 2**32 - 1 or a RandomState."
        ) from error


def check_refinement(n_refine: Any) -> None:
    """Raise ValueError unless ``n_refine`` is "auto" or a number of rounds."""
    if isinstance(n_refine, str) and n_refine == "auto":
        return
    if not isinstance(n_refine, Integral) or isinstance(n_refine, bool) or int(n_refine) < 0:
        raise ValueError(f"n_refine={n_refine!r} must be 'auto' or an integer >= 0.")


def call_on_rows(model: Any, method: str, X: Any) -> Any:
    """Call a method of a fitted model that takes new rows, where the model and the rows are.

    A model of tensors answers on its device. Of a model in row blocks some rows are kept on the client. Rows of a Dask
    array go through chunk by chunk, lazily.
    """
    if is_dask(model.low_rank_):
        model = import_module("frpcag.dask").on_client(model)
    if is_tensor(model.low_rank_):
        return import_module("frpcag.engines.torch_rows").answer(model, method, X)
    if is_dask(X):
        return map_rows(model, method, X)
    return getattr(model, method)(X)


def rows_on_client(X: Any, seed: int, *, most: int) -> tuple[Any, Any]:
    """Return some rows of a matrix in row chunks as an array, all of them where they are few, and which they are."""
    return import_module("frpcag.dask").rows_on_client(X, seed, most=most)


def map_rows(model: Any, method: str, X: Any) -> Any:
    """Call a method of a model that is on one machine on every chunk of a Dask array, lazily."""
    return import_module("frpcag.dask").map_chunks(model, method, X)


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
    return import_module("frpcag.engines.torch").to_host(model) if is_tensor(model.low_rank_) else model


def on_device_of(X: Any, Z: Any) -> Any:
    """Return an array as a tensor on the device of ``X``, in its own dtype: that of ``X`` may hold no NaN."""
    return import_module("frpcag.engines.torch").to_device(Z, X)
