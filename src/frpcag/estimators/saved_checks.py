"""Checks of what a model file holds: the kind, the shape and the range of a value."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

import numpy as np
import scipy.sparse as sp

from frpcag.graphs import Graph
from frpcag.graphs.metric import METRICS

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


def whole_numbers(shape: str, *, below: str | None = None) -> Check:
    """Check an array of integers >= 0; with ``below`` they are places in a shared length."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "iu", shape, sizes)
        if value.size and value.min() < 0:
            raise ValueError(f"{name} has entries below 0")
        if below is not None and value.size and value.max() >= sizes[below]:
            raise ValueError(f"{name} has entries that are not below {sizes[below]}")

    return check


def number(*, least: float = -np.inf) -> Check:
    """Check a finite number."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < least:
            limit = f" >= {least:g}" if least > -np.inf else ""
            raise ValueError(f"{name}={_short(value)} is not a finite number{limit}")

    return check


def count(least: int = 0, *, size: str | None = None, most: str | None = None) -> Check:
    """Check an integer; with ``size`` it is one of the shared lengths, with ``most`` at most one."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        if type(value) is not int or not least <= value < 2**63:
            raise ValueError(f"{name}={_short(value)} is not an integer >= {least}")
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


def search_results(name: str, value: Any, sizes: Sizes) -> None:
    """Check a dict of arrays of one length, numbers or words."""
    one_of(dict)(name, value, sizes)
    own: Sizes = {}
    for key, item in value.items():
        _array(f"{name}[{key!r}]", item, "fiubO", "k", own)


def texts(name: str, value: Any, sizes: Sizes) -> None:
    """Check a list of sentences."""
    one_of(list)(name, value, sizes)
    if not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} has items that are not text")


def shares(shape: str) -> Check:
    """Check an array of numbers from 0 to 1."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        floats(shape, least=0.0)(name, value, sizes)
        if value.size and value.max() > 1:
            raise ValueError(f"{name} has entries above 1")

    return check


def flags(shape: str) -> Check:
    """Check an array of truth values."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "b", shape, sizes)

    return check


def floats_or_missing(shape: str) -> Check:
    """Check an array of numbers, NaN where one is missing."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "f", shape, sizes)
        if np.isinf(value).any():
            raise ValueError(f"{name} has entries that are infinite")

    return check


def image_shape(name: str, value: Any, sizes: Sizes) -> None:
    """Check the height and width of the image behind a row, or None."""
    if value is None:
        return
    whole = isinstance(value, tuple) and len(value) == 2 and all(type(side) is int and side > 0 for side in value)
    if not whole or value[0] * value[1] != sizes["p"]:
        raise ValueError(f"{name}={_short(value)} is not the shape of an image of {sizes['p']} pixels")


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
        if value.metric is not None and value.metric not in METRICS:
            raise ValueError(f"{name}.metric={_short(value.metric)} is not a metric")

    return check


def weights(name: str, value: Any, sizes: Sizes) -> None:
    """Check a square sparse matrix of weights >= 0 with no more nodes than samples, or None."""
    if value is None:
        return
    one_of(sp.csr_array)(name, value, sizes)
    if value.shape[0] != value.shape[1] or value.shape[0] > sizes["n"]:
        raise ValueError(f"{name} has shape {value.shape}, not that of a graph of at most {sizes['n']} nodes")
    floats("k", least=0.0)(name, value.data, {})


def names(nodes: str) -> Check:
    """Check the names of features."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        _array(name, value, "O", nodes, sizes)

    return check


def fitted(name: str, value: Any, sizes: Sizes) -> None:
    """Note the lengths of a fitted FRPCAG or CompressiveFRPCAG, which was checked when it was read."""
    if not hasattr(value, "embedding_"):
        raise ValueError(f"{name} is not a fitted FRPCAG")
    sizes["n"], sizes["p"] = len(value.embedding_), value.n_features_in_


def fitted_on(shape: str) -> Check:
    """Check a fitted FRPCAG and the shape of what it was fitted to."""

    def check(name: str, value: Any, sizes: Sizes) -> None:
        fitted(name, value, {})
        floats(shape)(f"{name}.low_rank_", getattr(value, "low_rank_", None), sizes)

    return check


def frame_shape(name: str, value: Any, sizes: Sizes) -> None:
    """Check height and width of a frame, and three channels if it has colour; note them."""
    whole = isinstance(value, tuple) and all(type(length) is int and length > 0 for length in value)
    if not whole or len(value) not in (2, 3) or (len(value) == 3 and value[2] != 3):
        raise ValueError(f"{name}={_short(value)} is not the shape of a frame")
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
