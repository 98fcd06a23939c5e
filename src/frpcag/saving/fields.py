"""What a saved model holds: the kind, the shape and the range of every result, so that no kernel reads outside one.

A rule reads "f np >=0": a kind, then letters that stand for lengths shared by the results of a model, then a limit,
a number or one of these lengths. A new result gets a line in the table of its class.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from importlib import import_module
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import ELIGIBLE, METRICS, Graph

Sizes = dict[str, int]

_DECOMPOSITION = {
    "low_rank_": "f np", "components_": "f cp", "embedding_": "f nc", "singular_values_": "f c >=0", "mean_": "f p",
    "center_": "f p", "scale_": "f p >0", "n_features_in_": "int p", "feature_names_in_": "names p?", "n_iter_": "int",
    "converged_": "bool", "status_": "str", "backend_": "str", "duality_gap_": "number >=0", "timings_": "dict",
}  # fmt: skip
_OVER_FRPCAG = {"estimator_": "model np", "n_features_in_": "int p", "feature_names_in_": "names p?"}
RESULTS: dict[str, Mapping[str, str]] = {
    "FRPCAG": {
        **_DECOMPOSITION, "sparse_": "f np", "sample_graph_": "graph n", "feature_graph_": "graph p",
        "gamma1_": "number >=0", "gamma2_": "number >=0", "n_refine_": "int", "objective_": "number",
        "history_": "table",
    },
    "FRPCAGCV": {**_OVER_FRPCAG, "cv_results_": "table", "best_index_": "int none"},
    "CompressiveFRPCAG": {
        **_DECOMPOSITION, "low_rank_": "f np?", "sample_indices_": "i m <n",
        "estimator_": "model mp", "heldout_error_": "float",
    },
    "FRPCAGClustering": {
        **_OVER_FRPCAG, "n_iter_": "int", "labels_": "i n", "n_clusters_": "int", "affinity_": "weights n?",
        "candidates_": "table ?", "counts_": "table ?", "missing_share_": "number >=0",
    },
    "RobustGraphCleaner": {
        **_OVER_FRPCAG, "cleaned_": "f np", "predicted_": "f np", "deviation_": "nan np", "scale_": "f p >0",
        "outlier_probability_": "share np", "outliers_": "b np", "row_outlier_probability_": "share n",
        "cv_results_": "table", "notes_": "texts", "feature_shape_": "sides all", "rules_": "part CellRules",
        "sample_indices_": "i n?",
    },
    "RobustGraphImputer": {**_OVER_FRPCAG, "units_": "part Units none"},
    "BackgroundSeparator": {
        "frame_shape_": "frame", "references_": "h rhw", "noise_map_": "f hw >=0", "drift_": "f hw",
        "noise_": "number >=0", "threshold_": "number", "gamma1_": "number >=0", "n_iter_": "int",
        "duality_gap_": "number >=0", "n_links_": "int <=r",
    },
}  # fmt: skip


class Part(NamedTuple):
    """What is no estimator of its own: where its class lives, and its fields."""

    home: str
    fields: Mapping[str, str]


_CELLS = "frpcag.cells"
_METRIC = f"word {' '.join(ELIGIBLE)}"
PARTS = {
    "CellRules": Part(
        f"{_CELLS}.model",
        {"columns": "i p <p", "medians": "f p", "keys": "bytes nz", "model": "part CellModel none"},
    ),
    "CellModel": Part(
        f"{_CELLS}.model",
        {
            "units": "part Units", "W2": "weights p", "weights": "f w >=0", "graph": "part ReferencePredictor none",
            "low_rank": "part LowRankPredictor none", "columns": "part ColumnPredictor none",
            "mixture": "part Mixture", "repeats": "parts Repeat Occluder", "scattered": "bool", "damage": "f dp >=0",
        },
    ),
    "Units": Part(
        f"{_CELLS}.units",
        {"center": "f p", "scale": "f p", "low": "f p", "high": "f p", "far": "number >=0", "mixed": "bool"},
    ),
    "ReferencePredictor": Part(
        f"{_CELLS}.predictors",
        {
            "reference": "f rp", "metric": _METRIC, "W2": "weights p", "gamma1": "number >=0", "gamma2": "number >=0",
            "folds": "columns p", "loss": "word l1 l2 huber", "delta": "number >0", "n_jobs": "int none",
        },
    ),
    "LowRankPredictor": Part(
        f"{_CELLS}.low_rank",
        {
            "rank": "int", "n_iter": "int", "robust": "bool", "mean_": "f p", "B_": "f pb", "scale_": "number",
            "size_": "number ?",
        },
    ),
    "ColumnPredictor": Part(
        f"{_CELLS}.columns", {"robust": "bool", "center_": "f p", "scale_": "f p >0", "C_": "f pp"}
    ),
    "Mixture": Part(
        f"{_CELLS}.mixture",
        {
            "edges": "f e", "scales": "f s >=0", "floor": "number >0", "width": "number >0", "share": "number >=0",
            "span": "number >0",
        },
    ),
    "Occluder": Part(
        f"{_CELLS}.occluders",
        {
            "value": "number", "kind": "str", "size": "sides", "shape": "sides all", "covered": "number >=0",
            "natural": "f g >0", "scale": "number >=0",
        },
    ),
    "Repeat": Part(
        f"{_CELLS}.repeats",
        {"value": "number", "kind": "str", "rate": "number >=0", "table": "f t >=0", "scale": "number >=0"},
    ),
}  # fmt: skip

_COMPARE = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}
_DTYPES = {
    "f": "f4 f8", "nan": "f4 f8", "share": "f4 f8", "h": "f2 f4 f8", "b": "b1", "i": "i4 i8", "bytes": "u1"
}  # fmt: skip
_LIMITS = {"share": (">=0", "<=1"), "i": (">=0",)}
_TYPES = {"bool": bool, "str": str, "dict": dict, "float": float}


def to_fields(part: Any) -> tuple[str, dict[str, Any]] | None:
    """Return the kind of a part and its fields, without what is made of others; None for anything else."""
    kind = type(part).__name__
    if kind not in PARTS or PARTS[kind].home != type(part).__module__:
        return None
    return kind, {name: vars(part)[name] for name in PARTS[kind].fields if name in vars(part)}


def from_fields(kind: str, fields: Mapping[str, Any]) -> Any:
    """Return a part with these fields; they are checked with the model that they belong to."""
    made = object.__new__(getattr(import_module(PARTS[kind].home), kind))
    vars(made).update(fields)
    return made


def check_fields(
    kind: str, found: Mapping[str, Any], table: Mapping[str, str], sizes: Sizes, *, inside: str = ""
) -> None:
    """Raise ValueError unless these are the results of a model, or the fields of a part, as its table says."""
    for name in found:
        if name not in table:
            raise ValueError(f"{inside}{name} is not a result of {kind}")
    for name, rule in table.items():
        if name in found:
            _check(inside + name, found[name], rule.replace("?", ""), sizes)
        elif "?" not in rule:
            raise ValueError(f"{inside}{name} is missing")


def _check(name: str, value: Any, rule: str, sizes: Sizes) -> None:
    kind, *more = rule.split()
    if kind in _DTYPES:
        _array(name, value, kind, more, sizes)
    elif kind in _TYPES:
        _require(isinstance(value, _TYPES[kind]), name, f"is a {type(value).__name__}, not a {_TYPES[kind].__name__}")
    else:
        _CHECKS[kind](name, value, more, sizes)


def _require(holds: bool, name: str, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"{name} {otherwise}")


def _within(name: str, value: Any, limits: list[str], sizes: Sizes) -> None:
    """Check a number or all entries of an array against limits such as ">=0" or "<n"."""
    for limit in limits:
        sign, end = limit.rstrip("0123456789abcdefghijklmnopqrstuvwxyz"), limit.lstrip("<>=")
        bound = int(end) if end.isdigit() else sizes[end]
        _require(bool(np.all(_COMPARE[sign](value, bound))), name, f"has a value that is not {sign} {bound}")


def _array(name: str, value: Any, kind: str, more: list[str], sizes: Sizes) -> None:
    letters, *limits = more
    letters += "k" if "k" in sizes and letters.endswith("hw") else ""  # the channels of colour
    _require(isinstance(value, np.ndarray), name, f"is a {type(value).__name__}, not an array")
    known = value.dtype.str[1:] in _DTYPES[kind].split()
    _require(known, name, f"has dtype {value.dtype}, not one of {_DTYPES[kind]}")
    _require(value.ndim == len(letters), name, f"has {value.ndim} dimensions, not {len(letters)}")
    expected = tuple(sizes.setdefault(letter, length) for letter, length in zip(letters, value.shape, strict=True))
    _require(value.shape == expected, name, f"has shape {value.shape}, not {expected}")
    with np.errstate(over="ignore", invalid="ignore"):  # a sum is one pass; where it overflows, the flags decide
        if value.dtype.kind == "f" and not np.isfinite(value.sum(dtype=np.float64)):
            bad = np.isinf(value) if kind == "nan" else ~np.isfinite(value)
            _require(not bad.any(), name, "has entries that are NaN or infinite")
    _within(name, value, [*_LIMITS.get(kind, ()), *limits], sizes)


def _number(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    plain = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    _require(plain, name, f"is {repr(value)[:40]}, not a finite number")
    _within(name, value, more, sizes)


def _int(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    if value is None and "none" in more:
        return
    _require(type(value) is int and 0 <= value < 2**63, name, f"is {repr(value)[:40]}, not an integer >= 0")
    for each in set(more) - {"none"}:
        if each.isalpha():
            size = sizes.setdefault(each, value)
            _require(size == value, name, f"is {value}, not {size}")
        else:
            _within(name, value, [each], sizes)


def _table(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    columns = isinstance(value, dict) and all(isinstance(each, np.ndarray) for each in value.values())
    _require(columns and len({each.shape for each in value.values()}) <= 1, name, "is no table")


def _names(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    n = sizes[more[0]]
    right = isinstance(value, np.ndarray) and value.dtype == object and value.shape == (n,)
    _require(right, name, f"are not {n} names")


def _word(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    _require(value in more, name, f"is {str(value)[:40]!r}, not one of {', '.join(more)}")


def _texts(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    _require(isinstance(value, list) and all(isinstance(item, str) for item in value), name, "are not sentences")


def _graph(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    if value is None:
        return
    _require(isinstance(value, Graph), name, f"is a {type(value).__name__}, not a Graph")
    _require(value.n_nodes == sizes[more[0]], name, f"has {value.n_nodes} nodes, not {sizes[more[0]]}")
    _array(f"{name}.weights", value.weights.data, "f", ["e", ">=0"], {})
    _array(f"{name}.laplacian", value.laplacian.data, "f", ["e"], {})
    if value.sigma is not None:
        _number(f"{name}.sigma", value.sigma, [">=0"], {})
    known = value.metric is None or value.metric in METRICS
    _require(known, f"{name}.metric={str(value.metric)[:40]!r}", "is not a metric")


def _weights(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    if value is None:
        return
    most = sizes[more[0]]
    square = sp.issparse(value) and value.shape[0] == value.shape[1] <= most
    _require(square, name, f"is not a graph of at most {most} nodes")
    _array(name, value.data, "f", ["e", ">=0"], {})


def _model(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    _require(hasattr(value, "embedding_"), name, "is not a fitted FRPCAG")
    shape = len(value.embedding_), value.n_features_in_
    expected = tuple(sizes.setdefault(letter, length) for letter, length in zip(more[0], shape, strict=True))
    _require(shape == expected, name, f"was fitted to shape {shape}, not {expected}")


def _part(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    if value is None and "none" in more:
        return
    kind = type(value).__name__
    _require(kind in more, name, f"is a {kind}, not a {' or '.join(more)}")
    check_fields(kind, vars(value), PARTS[kind].fields, sizes, inside=f"{name}.")


def _parts(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    _require(isinstance(value, list), name, "is not a list")
    for one in value:
        _part(f"{name}[]", one, more, {"p": sizes["p"]})


def _columns(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    _require(isinstance(value, list), name, "is not a list")
    for one in value:
        _array(f"{name}[]", one, "i", ["e", f"<{more[0]}"], {more[0]: sizes[more[0]]})


def _sides(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    """Check height and width in pixels; "all" makes them those of the image behind a row, or None."""
    if value is None and "all" in more:
        return
    whole = isinstance(value, tuple) and len(value) == 2 and all(type(side) is int and side > 0 for side in value)
    area = value[0] * value[1] if whole else 0
    right = area == sizes["p"] if "all" in more else 0 < area <= sizes["p"]
    _require(right, name, f"is {repr(value)[:40]}, which does not fit {sizes['p']} pixels")


def _frame(name: str, value: Any, more: list[str], sizes: Sizes) -> None:
    whole = isinstance(value, tuple) and all(type(length) is int and length > 0 for length in value)
    right = whole and (len(value) == 2 or (len(value) == 3 and value[2] == 3))
    _require(right, name, f"is {repr(value)[:40]}, not the shape of a frame")
    sizes.update(zip("hwk", value, strict=False))


_CHECKS = {
    "number": _number, "int": _int, "table": _table, "names": _names, "texts": _texts, "word": _word,
    "graph": _graph, "weights": _weights, "model": _model, "part": _part, "parts": _parts, "columns": _columns,
    "sides": _sides, "frame": _frame,
}  # fmt: skip
