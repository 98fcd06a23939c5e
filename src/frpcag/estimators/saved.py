"""Models on disk without pickle: one npz file of arrays and a JSON header, checked before use."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from frpcag.estimators.saved_parts import PARTS, is_part, put_together, taken_apart
from frpcag.estimators.saved_results import check_results
from frpcag.estimators.saved_versions import MIGRATIONS
from frpcag.graphs import Graph
from frpcag.runtime.atomic import atomic_file
from frpcag.runtime.npz import StoredArrays
from frpcag.runtime.warn import warn_user

Array = np.ndarray

# The layout of the file. A change adds one to VERSION and a step to MIGRATIONS, which lifts a header by one version.
FORMAT, VERSION = "frpcag-model", 2
# What a file may ask for, and where it lives.
MODELS = {
    "CompressiveFRPCAG": "frpcag.estimators.compressive",
    "FRPCAG": "frpcag.estimators.decomposition",
    "FRPCAGCV": "frpcag.estimators.heldout",
    "FRPCAGClustering": "frpcag.estimators.clustering",
    "RobustGraphCleaner": "frpcag.estimators.cleaner",
    "RobustGraphImputer": "frpcag.estimators.imputer",
    "BackgroundSeparator": "frpcag.video.separator",
}
_ARRAYS = "array_"
# Characters of the header. JSON of this length takes up to 250 MB to read, however it is nested.
_MOST_TEXT = 8 * 2**20
_DIGEST_BYTES = 4 * 64  # 64 characters, four bytes each in NumPy


class SavedModel:
    """Adds ``save`` and ``load`` to an estimator."""

    # Results that a loaded model can do without.
    _unsaved: tuple[str, ...] = ()

    def save(self, path: str | os.PathLike) -> None:
        """Save the fitted model as an npz file, without pickle; :meth:`load` and :func:`frpcag.load` read it.

        Parameters
        ----------
        path : path
            File to write, usually ``.npz``; it is written completely or not at all. Results on a GPU are stored as
            arrays. A ``callback`` is not stored. Parameters that are objects of other libraries are not stored
            either; a warning names them.
        """
        check_is_fitted(self)
        writer = _Writer()
        header = {"format": FORMAT, "version": VERSION, "writer": _version(), **writer.model(self)}
        text = json.dumps(header)
        if len(text) > _MOST_TEXT:
            raise ValueError(
                f"the parameters and the names of the features take {len(text)} characters, more than {_MOST_TEXT}; "
                "fit without names (an array instead of a frame) or save with joblib."
            )
        _Reader(writer.arrays).model(header)  # what could not be loaded is not written
        parts: dict[str, Any] = {"header": text, "digest": _digest(text, writer.arrays), **writer.arrays}
        with atomic_file(path) as partial, partial.open("wb") as file:
            np.savez(file, **parts)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Load a saved model of this class.

        Parameters
        ----------
        path : path
            A file that :meth:`save` wrote, with this or an earlier version. Loading unpickles nothing, and refuses
            foreign, changed and damaged files.

        Returns
        -------
        estimator
        """
        model = load(path)
        if not isinstance(model, cls):
            kind = type(model).__name__
            raise ValueError(f"{path} holds a {kind}, not a {cls.__name__}; call {kind}.load or frpcag.load.")
        return model

    def _after_load(self) -> None:
        """Derive what is not stored."""


def load(path: str | os.PathLike) -> Any:
    """Load a model of any class from the file that its ``save`` method wrote.

    Parameters
    ----------
    path : path
        The file. Loading unpickles and runs nothing. It refuses foreign, changed and damaged files. This check finds
        accidents; it is not a signature.

    Returns
    -------
    FRPCAG, FRPCAGCV, FRPCAGClustering, CompressiveFRPCAG, RobustGraphCleaner, RobustGraphImputer or BackgroundSeparator

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import frpcag
    >>> X = np.random.default_rng(0).normal(size=(30, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frpcag.FRPCAG(n_components=2).fit(X).save(f"{folder}/model.npz")
    ...     model = frpcag.load(f"{folder}/model.npz")
    >>> model.transform(X[:3]).shape
    (3, 2)
    """
    header, arrays = _read(path)
    try:
        model = _Reader(arrays).model(header)
        check_is_fitted(model)
    except MemoryError:
        raise
    except Exception as error:  # whatever a header that lies makes NumPy, SciPy or a constructor raise
        raise ValueError(f"{path} does not hold a whole model: {error}; fit and save again.") from error
    return model


def _version() -> str:
    return import_module("frpcag").__version__


def _digest(text: str, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape} {arrays[name].dtype}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _read(path: str | os.PathLike) -> tuple[dict, dict[str, Array]]:
    """Return header and arrays of a file, once they are known to be whole."""
    try:
        with StoredArrays(path) as stored:
            text = str(stored.read("header", most=4 * _MOST_TEXT))
            header = _parse(text)
            version = _known_version(path, header)
            names = _array_names(stored)
            stored.check_sums()
            digest = str(stored.read("digest", most=_DIGEST_BYTES))
            arrays = {name: stored.read(name) for name in names}
    except _UnknownVersion as error:
        raise ValueError(str(error)) from None
    except ValueError as error:
        raise _foreign(path, error) from error
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        raise _foreign(path, error) from error
    if digest != _digest(text, arrays):
        raise ValueError(f"{path} was changed or damaged after it was saved; fit and save again.")
    for step in range(version, VERSION):
        header = MIGRATIONS[step](header)
    return header, arrays


def _parse(text: str) -> dict:
    """Return the header, if it is one of ours."""
    try:
        header = json.loads(text)
        known = header["format"] == FORMAT
    except (ValueError, TypeError, KeyError, RecursionError):
        known = False
    if not known:
        raise ValueError("its header is not that of a model")
    return header


class _UnknownVersion(Exception):
    """The file is a model, in a layout that this version does not know."""


def _known_version(path: str | os.PathLike, header: dict) -> int:
    """Return the version of the layout; raise _UnknownVersion if it cannot be read."""
    version, writer = header.get("version"), str(header.get("writer"))[:40]
    if type(version) is not int:
        found = str(version)[:40]
        raise _UnknownVersion(f"{path} says file version {found!r}, which is not an integer; save it again.")
    if version > VERSION:
        raise _UnknownVersion(
            f"{path} was written by frpcag {writer} in file version {version}; this frpcag {_version()} reads versions "
            f"up to {VERSION}: install a newer frpcag."
        )
    if not all(step in MIGRATIONS for step in range(version, VERSION)) or version < 1:
        raise _UnknownVersion(
            f"{path} was written by frpcag {writer} in file version {version}, which this frpcag {_version()} can no "
            "longer read; load it with the version that wrote it, or fit and save again."
        )
    return version


def _array_names(stored: StoredArrays) -> list[str]:
    """Return the names of the arrays, which are numbered."""
    names = [f"{_ARRAYS}{i}" for i in range(len(stored.names) - 2)]
    if set(stored.names) != {"header", "digest", *names}:
        raise ValueError("its members do not have the names of a model")
    return names


def _foreign(path, error: Exception) -> ValueError:
    return ValueError(
        f"{path} is not a saved frpcag model ({error}); pass a file that the save method of a model wrote."
    )


@dataclass
class _Writer:
    """Turns a model into what JSON can hold; arrays go aside and leave their names."""

    arrays: dict[str, Array] = field(default_factory=dict)

    def model(self, model: Any) -> dict:
        name = type(model).__name__
        if MODELS.get(name) != type(model).__module__:
            raise ValueError(f"{name} is not one of frpcag's own models ({', '.join(MODELS)}); save it with joblib.")
        results = {
            key: value
            for key, value in vars(model).items()
            if key.endswith("_") and not key.startswith("_") and key not in model._unsaved
        }
        return {
            "model": name,
            "params": self.params(model),
            "results": {key: self.value(value, key) for key, value in results.items()},
        }

    def params(self, model: Any) -> dict:
        out = {}
        for name, value in model.get_params(deep=False).items():
            if name == "callback":
                continue
            try:
                out[name] = self.value(value, name)
            except TypeError:
                warn_user(
                    f"{name}={value!r} is not stored; the loaded model gives the same answers, but would be fitted "
                    f"again with the default {name}.",
                )
        return out

    def value(self, value: Any, name: str) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, tuple | list):
            return {type(value).__name__: [self.value(item, name) for item in value]}
        if isinstance(value, dict):
            return {"dict": {str(key): self.value(item, str(key)) for key, item in value.items()}}
        if isinstance(value, np.ndarray) and value.dtype == object:  # names of features
            return {"names": [str(item) for item in value]}
        if isinstance(value, np.ndarray):
            return {"array": self.array(value)}
        if isinstance(value, np.random.RandomState) and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            return {"random": self.value(value.get_state(legacy=False), name)}
        if sp.issparse(value):
            return {"sparse": self.sparse(value)}
        if isinstance(value, Graph):
            names = ("sigma", "method", "normalized", "metric")
            parts = {part: getattr(value, part) for part in names}
            return {
                "graph": {"weights": self.sparse(value.weights), "laplacian": self.sparse(value.laplacian), **parts}
            }
        if hasattr(value, "to_host"):  # a graph of tensors
            return self.value(value.to_host(), name)
        if hasattr(value, "detach"):  # a tensor
            return self.value(value.detach().cpu().numpy(), name)
        if isinstance(value, BaseEstimator) and isinstance(value, SavedModel):
            return {"model": self.model(value)}
        if is_part(value):
            kind, fields = taken_apart(value)
            return {"part": {"kind": kind, "fields": {key: self.value(item, key) for key, item in fields.items()}}}
        raise TypeError(f"{name} is a {type(value).__name__}, which cannot be saved; compute it or save with joblib.")

    def array(self, value: Array) -> str:
        name = f"{_ARRAYS}{len(self.arrays)}"
        self.arrays[name] = value
        return name

    def sparse(self, value: Any) -> dict:
        A = sp.csr_array(value)
        parts = {part: self.array(getattr(A, part)) for part in ("data", "indices", "indptr")}
        return {"shape": [int(size) for size in A.shape], **parts}


@dataclass
class _Reader:
    """Turns them back into a model. It checks everything that could make a kernel read outside an array."""

    arrays: dict[str, Array]

    def model(self, parts: dict) -> Any:
        name = parts["model"]
        if name not in MODELS:
            raise ValueError(f"model {name!r} is unknown")
        cls = getattr(import_module(MODELS[name]), name)
        model = cls(**{key: self.value(value) for key, value in parts["params"].items()})
        results = {key: self.value(value) for key, value in parts["results"].items()}
        if results:  # a model may be the parameter of another, not fitted itself
            check_results(name, results)
            vars(model).update(results)
            model._after_load()
        return model

    def value(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        match kind:
            case "tuple":
                return tuple(self.value(item) for item in content)
            case "list":
                return [self.value(item) for item in content]
            case "dict":
                return {key: self.value(item) for key, item in content.items()}
            case "names":
                return np.array([str(item) for item in content], dtype=object)
            case "array":
                return self.arrays[content]
            case "random":
                return _random_state(self.value(content))
            case "sparse":
                return self.sparse(content)
            case "graph":
                return self.graph(content)
            case "model":
                return self.model(content)
            case "part" if content["kind"] in PARTS:
                fields = {key: self.value(item) for key, item in content["fields"].items()}
                return put_together(content["kind"], fields)
        raise ValueError(f"{kind!r} is not a known kind of value")

    def sparse(self, parts: dict) -> sp.csr_array:
        data, indices, indptr = (self.arrays[parts[part]] for part in ("data", "indices", "indptr"))
        shape = tuple(parts["shape"])
        if len(shape) != 2 or not all(type(length) is int and 0 <= length < 2**63 for length in shape):
            raise ValueError(f"a sparse matrix has shape {str(shape)[:40]}")
        if not all(part.ndim == 1 for part in (data, indices, indptr)) or len(data) != len(indices):
            raise ValueError("a sparse matrix has parts of wrong shapes")
        if not all(part.dtype in (np.int32, np.int64) for part in (indices, indptr)) or data.dtype.kind not in "biuf":
            raise ValueError("a sparse matrix has parts of wrong dtypes")
        A = sp.csr_array((data, indices, indptr), shape=shape)
        A.check_format(full_check=True)
        return A

    def graph(self, parts: dict) -> Graph:
        weights, laplacian = self.sparse(parts["weights"]), self.sparse(parts["laplacian"])
        n_nodes = weights.shape[0]
        if weights.shape != (n_nodes, n_nodes) or laplacian.shape != (n_nodes, n_nodes):
            raise ValueError(f"a graph has weights of shape {weights.shape} and a Laplacian of {laplacian.shape}")
        return Graph(
            weights, laplacian, parts["sigma"], parts["method"], bool(parts["normalized"]), parts.get("metric")
        )


def _random_state(state: dict) -> np.random.RandomState:
    """Return a generator in a state; NumPy checks the words of the state but reads wherever its position points."""
    inner = state["state"]
    if state["bit_generator"] != "MT19937" or type(inner["pos"]) is not int or not 0 <= inner["pos"] <= 624:
        raise ValueError("a random state is not one of MT19937")
    if inner["key"].shape != (624,) or inner["key"].dtype != np.uint32:
        raise ValueError("a random state does not have the words of MT19937")
    random_state = np.random.RandomState()
    random_state.set_state(state)
    return random_state
