"""Parts of a model that are not estimators: what a cleaner has learnt, each field with its check."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.cells.blocks import N_DISTANCES
from frpcag.estimators.saved_checks import Check, Sizes, count, floats, image_shape, number, one_of

Array = np.ndarray


class Part(NamedTuple):
    """Where the class of a part lives, and its fields."""

    home: str
    fields: Mapping[str, Check]


def word(*choices: str) -> Check:
    """Check a word out of a few."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if value not in choices:
            raise ValueError(f"{name}={str(value)[:40]!r} is not one of {', '.join(choices)}")

    return check


def part(*kinds: str, optional: bool = False) -> Check:
    """Check a part and all of its fields."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if value is None and optional:
            return
        kind = type(value).__name__
        if kind not in kinds:
            raise ValueError(f"{name} is a {kind}, not a {' or '.join(kinds)}")
        for field, inner in PARTS[kind].fields.items():
            if field in vars(value):
                inner(f"{name}.{field}", vars(value)[field], sizes)
            elif field not in OPTIONAL.get(kind, ()):
                raise ValueError(f"{name}.{field} is missing")

    return check


def listed(inner: Check) -> Check:
    """Check every item of a list."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        one_of(list)(name, value, sizes)
        for item in value:
            inner(f"{name}[]", item, sizes)

    return check


def columns(name: str, value: Any, sizes: Sizes) -> None:
    """Check numbers of columns, each at most once."""
    if not isinstance(value, np.ndarray) or value.ndim != 1 or value.dtype.kind not in "iu" or not len(value):
        raise ValueError(f"{name} are not column numbers")
    if value.min() < 0 or value.max() >= sizes["p"] or len(np.unique(value)) != len(value):
        raise ValueError(f"{name} names columns that do not exist")


def whole_order(name: str, value: Any, sizes: Sizes) -> None:
    """Check an order of all columns."""
    columns(name, value, sizes)
    if len(value) != sizes["p"]:
        raise ValueError(f"{name} is not an order of {sizes['p']} columns")


def weights(name: str, value: Any, sizes: Sizes) -> None:
    """Check the weights of a graph of the columns, or None."""
    if value is None:
        return
    if not sp.issparse(value) or value.shape != (sizes["p"], sizes["p"]):
        raise ValueError(f"{name} is not a graph of {sizes['p']} columns")
    floats("k", least=0.0)(name, value.data, {})


def keys(name: str, value: Any, sizes: Sizes) -> None:
    """Check the keys of the rows."""
    if not isinstance(value, np.ndarray) or value.dtype != np.uint8 or value.shape != (sizes["n"], 32):
        raise ValueError(f"{name} are not the keys of {sizes['n']} rows")


def jobs(name: str, value: Any, sizes: Sizes) -> None:
    """Check a number of threads, or None."""
    if value is not None:
        number()(name, value, sizes)


def nothing(name: str, value: Any, sizes: Sizes) -> None:
    """Check that nothing is there, or as many nothings as there are folds."""
    if value is not None and not (isinstance(value, list) and all(item is None for item in value)):
        raise ValueError(f"{name} is not empty")


def repeats(name: str, value: Any, sizes: Sizes) -> None:
    """Check overwriting values: scattered ones, and rectangles that fit into their image."""
    listed(part("Repeat", "Block"))(name, value, sizes)
    for one in value:
        if type(one).__name__ == "Block":
            inside = all(side <= whole for side, whole in zip(one.size, one.shape, strict=True))
            if not inside or len(one.natural) != (N_DISTANCES if one.scale else sizes["p"]):
                raise ValueError(f"{name} has a rectangle that does not fit into its image")


def sides(name: str, value: Any, sizes: Sizes) -> None:
    """Check the height and width of a rectangle."""
    whole = isinstance(value, tuple) and len(value) == 2 and all(type(side) is int and side > 0 for side in value)
    if not whole or value[0] * value[1] > sizes["p"]:
        raise ValueError(f"{name} are not the sides of a rectangle inside {sizes['p']} pixels")


def errors(name: str, value: Any, sizes: Sizes) -> None:
    """Check a dict of numbers."""
    one_of(dict)(name, value, sizes)
    for key, item in value.items():
        number()(f"{name}[{key!r}]", item, sizes)


_TINY = float(np.finfo(np.float64).tiny)
_LOSS, _METRIC = word("l1", "l2", "huber"), word("euclidean", "l1", "truncated")
_CELLS = "frpcag.cells"
PARTS: dict[str, Part] = {
    "CellRules": Part(
        "frpcag.estimators.cell_rules",
        {
            "columns": whole_order,
            "units": part("Units"),
            "medians": floats("p"),
            "keys": keys,
            "rounds": part("CellRounds", optional=True),
        },
    ),
    "CellRounds": Part(
        "frpcag.estimators.cell_rounds",
        {
            "units": part("Units"),
            "graph_": part("GraphPredictor"),
            "low_rank_": part("LowRankPredictor"),
            "columns_": part("ColumnPredictor"),
            "choice": part("Choice"),
            "mixture": part("Mixture"),
            "repeats": repeats,
            "scattered": one_of(bool),
            "damage": floats("dp", least=0),
            "W2": weights,
            "n_jobs": jobs,
        },
    ),
    "Units": Part(
        f"{_CELLS}.units",
        {
            "center": floats("p"),
            "scale": floats("p"),
            "low": floats("p"),
            "high": floats("p"),
            "mixed": one_of(bool),
        },
    ),
    "GraphPredictor": Part(
        f"{_CELLS}.predictors",
        {
            "W1": nothing,
            "W2": weights,
            "gamma1": number(least=0),
            "gamma2": number(least=0),
            "folds": listed(columns),
            "loss": _LOSS,
            "delta": number(least=_TINY),
            "max_iter": count(),
            "tol": number(least=0),
            "n_jobs": jobs,
            "reference": floats("rp"),
            "metric": _METRIC,
            "n_neighbors": count(1),
        },
    ),
    "LowRankPredictor": Part(
        f"{_CELLS}.low_rank",
        {
            "rank": count(),
            "n_iter": count(),
            "robust": one_of(bool),
            "start": nothing,
            "mean_": floats("p"),
            "B_": floats("pb"),
            "scale_": number(least=0),
            "size_": number(least=0),
            "floor_": number(least=0),
        },
    ),
    "ColumnPredictor": Part(
        f"{_CELLS}.columns",
        {"robust": one_of(bool), "center_": floats("p"), "scale_": floats("p", least=_TINY), "C_": floats("pp")},
    ),
    "Choice": Part(
        "frpcag.estimators.cell_rounds",
        {"setting": part("GraphSetting"), "rank": count(), "weights": floats("w", least=0.0), "errors": errors},
    ),
    "GraphSetting": Part(
        "frpcag.estimators.heldout_search",
        {
            "metric": _METRIC,
            "feature_graph": one_of(str),
            "gamma1": number(least=0),
            "gamma2": number(least=0),
            "loss": _LOSS,
            "delta": number(least=_TINY),
        },
    ),
    "Mixture": Part(
        f"{_CELLS}.mixture",
        {
            "edges": floats("e"),
            "scales": floats("s", least=0.0),
            "floor": number(least=_TINY),
            "width": number(least=_TINY),
            "share": number(least=0),
            "span": number(least=_TINY),
        },
    ),
    "Block": Part(
        f"{_CELLS}.blocks",
        {
            "value": number(),
            "kind": word("rectangle"),
            "size": sides,
            "shape": image_shape,
            "covered": number(least=0),
            "natural": floats("g", least=_TINY),
            "scale": number(least=0),
        },
    ),
    "Repeat": Part(
        f"{_CELLS}.repeats",
        {
            "value": number(),
            "kind": word("scattered", "block"),
            "rate": number(least=0),
            "table": floats("t", least=0.0),
            "scale": number(least=0),
        },
    ),
}
# A predictor without weight was never fitted, and one of rank 0 has no directions.
OPTIONAL = {
    "LowRankPredictor": ("mean_", "B_", "scale_", "size_", "floor_"),
    "ColumnPredictor": ("center_", "scale_", "C_"),
}


def is_part(value: Any) -> bool:
    """Say whether a value is one of ours to take apart."""
    kind = PARTS.get(type(value).__name__)
    return kind is not None and kind.home == type(value).__module__


def taken_apart(value: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind of a part and its fields; what is made of others, such as a cached result, is left out."""
    kind = type(value).__name__
    return kind, {field: vars(value)[field] for field in PARTS[kind].fields if field in vars(value)}


def put_together(kind: str, fields: Mapping[str, Any]) -> Any:
    """Return a part with these fields; they are checked with the model that they belong to."""
    home, known = PARTS[kind]
    foreign = set(fields) - set(known)
    if foreign:
        raise ValueError(f"{sorted(foreign)[0]!r} is not a field of {kind}")
    made = object.__new__(getattr(import_module(home), kind))
    vars(made).update(fields)
    return made
