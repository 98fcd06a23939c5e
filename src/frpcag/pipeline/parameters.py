"""What no data could make right in the parameters of a fit is refused before the data are looked at."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.utils import check_random_state

from frpcag.data.preprocess import check_flags
from frpcag.engines.gammas import check_gamma
from frpcag.graphs import check_laplacian, check_metric, check_weight_options
from frpcag.problem import check_numbers
from frpcag.runtime.threads import count_threads
from frpcag.solvers.options import SolveOptions


def check_parameters(model: Any) -> SolveOptions:
    """Return the solver's options of a model; raise ValueError for parameters of `FRPCAG` that cannot be right."""
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
    return SolveOptions.of(model)


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
