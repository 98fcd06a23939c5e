"""Results of a fit appear together: a fit that fails leaves what was there before."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def whole_fit(model: Any) -> Iterator[Any]:
    """Give a copy of an estimator without results; what it has at the end of the block replaces the model's results.

    An exception in the block leaves the model as it was.
    """
    fresh = copy.copy(model)
    for name in _results(fresh):
        delattr(fresh, name)
    yield fresh
    for name in _results(model):
        delattr(model, name)
    params = model.get_params(deep=False)
    vars(model).update({name: value for name, value in vars(fresh).items() if name not in params})


def fit_as_far_as_possible(model: Any, X: Any) -> Any:
    """Fit a model and return it; after Ctrl-C with the certified result so far, where there is one."""
    try:
        return model.fit(X)
    except KeyboardInterrupt:
        if getattr(getattr(model, "estimator_", model), "status_", None) != "interrupted":
            raise
        return model


def raise_if_interrupted(model: Any) -> None:
    """Raise KeyboardInterrupt if Ctrl-C ended the fit of a model, now that its results are stored."""
    if model.status_ == "interrupted":
        raise KeyboardInterrupt(
            f"the fit was interrupted; the model holds its result after {model.n_iter_} steps, at a relative duality "
            f"gap of {model.duality_gap_:.2g}."
        )


def take_columns(model: Any, inner: Any) -> None:
    """Note of the columns of the training data what an inner model has noted."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(inner, name):
            setattr(model, name, getattr(inner, name))


def _results(model: Any) -> list[str]:
    """Return the names of what a fit has set."""
    return [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
