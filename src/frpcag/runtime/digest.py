"""Digests of content: the same for equal values, and for no others."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from hashlib import blake2b
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp


def content_digest(value: Any) -> str:
    """Return a digest of arrays, sparse matrices, numbers, words, and whatever is made of them.

    Parameters
    ----------
    value : object
        Lists, dicts, dataclasses, estimators and random states are taken apart; any other object is its ``repr``.

    Returns
    -------
    str
        The same in every process and on every machine. Numbers that are equal give the same digest, arrays of other
        dtypes do not.

    Examples
    --------
    >>> from frpcag.runtime.digest import content_digest
    >>> content_digest([1, "a"]) == content_digest((1.0, "a"))
    True
    >>> content_digest(["1", "23"]) == content_digest(["12", "3"])
    False
    """
    digest = blake2b(digest_size=16)
    _add(digest, value)
    return digest.hexdigest()


def _add(digest: Any, value: Any) -> None:
    """Feed a value, every piece with its kind and length, so that no two values run into the same bytes."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype != object:
        _word(digest, f"array {value.dtype.str} {value.shape}")
        digest.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif sp.issparse(value):
        csr = value.tocsr()
        _all(digest, f"sparse {value.shape}", [csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data])
    elif value is None or isinstance(value, (str, bytes, bool)):
        _word(digest, f"{type(value).__name__} {value!r}")
    elif isinstance(value, Real):
        _word(digest, f"number {float(value)!r}")
    elif isinstance(value, dict):
        _all(digest, "dict", sorted(value.items(), key=lambda pair: repr(pair[0])))
    elif isinstance(value, (list, tuple, np.ndarray)):
        _all(digest, "list", list(value))
    elif isinstance(value, np.random.RandomState):
        _all(digest, "random state", list(value.get_state()))
    elif is_dataclass(value) and not isinstance(value, type):
        _all(digest, type(value).__name__, [getattr(value, field.name) for field in fields(value)])
    elif hasattr(value, "get_params") and not isinstance(value, type):
        _all(digest, type(value).__name__, [value.get_params(deep=False)])
    else:
        _word(digest, f"{type(value).__name__} {value!r}")


def _all(digest: Any, kind: str, parts: list[Any]) -> None:
    _word(digest, f"{kind} {len(parts)}")
    for part in parts:
        _add(digest, part)


def _word(digest: Any, word: str) -> None:
    text = word.encode()
    digest.update(len(text).to_bytes(8, "little") + text)
