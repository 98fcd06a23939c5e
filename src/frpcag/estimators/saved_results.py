"""What each saved model must hold: the kind, the shape and the range of every result, checked when a file is loaded.

A new result gets a line in the table of its class, and a name in ``OPTIONAL`` if earlier files do not have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph

# Lengths that results share, by letter, noted where they come first.
Sizes = dict[str, int]
Check = Callable[[str, Any, Sizes], None]


def floats(shape: str, *, least: float = -np.inf, half: bool = False) -> Check:
    """Check an array of finite numbers; ``shape`` is a letter for each dimension, such as "np"."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "f", shape, sizes)
        if value.dtype.itemsize not in ((2, 4, 8) if half else (4, 8)):
            raise ValueError(f"{name} has dtype {value.dtype}, not float32 or float64")
        _finite(name, value)
        if value.size and value.min() < least:
            raise ValueError(f"{name} has entries below {least:g}")

    return check


def whole_numbers(shape: str) -> Check:
    """Check an array of integers >= 0."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "iu", shape, sizes)
        if value.size and value.min() < 0:
            raise ValueError(f"{name} has entries below 0")

    return check


def number(*, least: float = -np.inf) -> Check:
    """Check a finite number."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < least:
            raise ValueError(f"{name}={_short(value)} is no finite number{f' >= {least:g}' if least > -np.inf else ''}")

    return check


def count(least: int = 0, *, size: str | None = None, most: str | None = None) -> Check:
    """Check an integer; with ``size`` it is one of the shared lengths, with ``most`` at most one."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if type(value) is not int or not least <= value < 2**63:
            raise ValueError(f"{name}={_short(value)} is no integer >= {least}")
        if size is not None and sizes.setdefault(size, value) != value:
            raise ValueError(f"{name} is {value}, not {sizes[size]}")
        if most is not None and value > sizes[most]:
            raise ValueError(f"{name} is {value}, more than {sizes[most]}")

    return check


def one_of(kind: type) -> Check:
    """Check the type of a value."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if not isinstance(value, kind):
            raise ValueError(f"{name} is a {type(value).__name__}, not a {kind.__name__}")

    return check


def series(name: str, value: Any, sizes: Sizes) -> None:
    """Check a dict of arrays of one length; NaN is what was not measured."""
    one_of(dict)(name, value, sizes)
    own: Sizes = {}
    for key, item in value.items():
        _array(f"{name}[{key!r}]", item, "fiu", "k", own)


def seconds(name: str, value: Any, sizes: Sizes) -> None:
    """Check a dict of numbers >= 0."""
    one_of(dict)(name, value, sizes)
    for key, item in value.items():
        number(least=0)(f"{name}[{key!r}]", item, sizes)


def graph(nodes: str) -> Check:
    """Check a Graph with as many nodes as a shared length says, or None."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if value is None:
            return
        one_of(Graph)(name, value, sizes)
        if value.n_nodes != sizes.get(nodes):
            raise ValueError(f"{name} has {value.n_nodes} nodes, not {sizes.get(nodes)}")
        for part, least in (("weights", 0.0), ("laplacian", -np.inf)):
            A: sp.csr_array = getattr(value, part)
            floats("k", least=least)(f"{name}.{part}", A.data, {})
        if value.sigma is not None:
            number(least=0)(f"{name}.sigma", value.sigma, sizes)
        one_of(str)(f"{name}.method", value.method, sizes)

    return check


def names(nodes: str) -> Check:
    """Check the names of features."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "O", nodes, sizes)

    return check


def fitted(name: str, value: Any, sizes: Sizes) -> None:
    """Note the lengths of a fitted FRPCAG, which was checked when it was read."""
    if not hasattr(value, "low_rank_"):
        raise ValueError(f"{name} is no fitted FRPCAG")
    sizes["n"], sizes["p"] = value.low_rank_.shape


def frame_shape(name: str, value: Any, sizes: Sizes) -> None:
    """Check height and width of a frame, and three channels if it has colour; note them."""
    whole = isinstance(value, tuple) and all(type(length) is int and length > 0 for length in value)
    if not whole or len(value) not in (2, 3) or (len(value) == 3 and value[2] != 3):
        raise ValueError(f"{name}={_short(value)} is no shape of a frame")
    for letter, length in zip("hwb", value, strict=False):
        sizes[letter] = length


def frames(shape: str, *, least: float = -np.inf, half: bool = False) -> Check:
    """Check an array of frames; colour is a dimension more."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        floats(shape + ("b" if "b" in sizes else ""), least=least, half=half)(name, value, sizes)

    return check


def best_index(name: str, value: Any, sizes: Sizes) -> None:
    """Check an index, or None where nothing was searched."""
    if value is not None:
        count()(name, value, sizes)


_FRPCAG: dict[str, Check] = {
    "low_rank_": floats("np"),
    "sparse_": floats("np"),
    "components_": floats("cp"),
    "embedding_": floats("nc"),
    "singular_values_": floats("c", least=0.0),
    "mean_": floats("p"),
    "center_": floats("p"),
    "scale_": floats("p", least=np.nextafter(0.0, 1.0)),
    "n_features_in_": count(1, size="p"),
    "feature_names_in_": names("p"),
    "sample_graph_": graph("n"),
    "feature_graph_": graph("p"),
    "gamma1_": number(least=0),
    "gamma2_": number(least=0),
    "n_refine_": count(),
    "n_iter_": count(),
    "converged_": one_of(bool),
    "status_": one_of(str),
    "backend_": one_of(str),
    "duality_gap_": number(least=0),
    "objective_": number(),
    "history_": series,
    "timings_": seconds,
}
_OVER_FRPCAG: dict[str, Check] = {
    "estimator_": fitted,
    "n_features_in_": count(1, size="p"),
    "feature_names_in_": names("p"),
}
RESULTS: dict[str, Mapping[str, Check]] = {
    "FRPCAG": _FRPCAG,
    "FRPCAGCV": {**_OVER_FRPCAG, "cv_results_": series, "best_index_": best_index},
    "FRPCAGClustering": {**_OVER_FRPCAG, "n_iter_": count(), "labels_": whole_numbers("n")},
    "RobustGraphImputer": _OVER_FRPCAG,
    "BackgroundSeparator": {
        "frame_shape_": frame_shape,
        "references_": frames("rhw", half=True),
        "noise_map_": frames("hw", least=0.0),
        "drift_": frames("hw"),
        "noise_": number(least=0),
        "threshold_": number(),
        "gamma1_": number(least=0),
        "n_iter_": count(),
        "duality_gap_": number(least=0),
        "n_links_": count(1, most="r"),
    },
}
# Results that a file may lack.
OPTIONAL = frozenset({"feature_names_in_", "drift_"})


def check_results(kind: str, results: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are the results of a model of class ``kind``.

    Parameters
    ----------
    kind : str
        Name of the class.
    results : mapping of str to object
        Fitted attributes.
    """
    table = RESULTS[kind]
    for name in results:
        if name not in table:
            raise ValueError(f"{name!r} is no result of {kind}")
    sizes: Sizes = {}
    for name, check in table.items():
        if name in results:
            check(name, results[name], sizes)
        elif name not in OPTIONAL:
            raise ValueError(f"{name} is missing")


def _array(name: str, value: Any, kinds: str, shape: str, sizes: Sizes) -> None:
    """Check the kind of an array and its shape, whose letters stand for shared lengths."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in kinds:
        raise ValueError(f"{name} is {getattr(value, 'dtype', type(value).__name__)}, not what it was saved as")
    expected = tuple(sizes.get(letter, length) for letter, length in zip(shape, value.shape, strict=False))
    if value.ndim != len(shape):
        raise ValueError(f"{name} has {value.ndim} dimensions, not {len(shape)}")
    if value.shape != expected:
        raise ValueError(f"{name} has shape {value.shape}, not {expected}")
    sizes.update(zip(shape, value.shape, strict=True))


def _finite(name: str, value: Any) -> None:
    # A sum is one pass without an array of flags; where it overflows, the flags decide.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(value.sum(dtype=np.float64)) and not np.isfinite(value).all():
            raise ValueError(f"{name} has entries that are NaN or infinite")


def _short(value: Any) -> str:
    return repr(value)[:40]
