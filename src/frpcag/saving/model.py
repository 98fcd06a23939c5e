"""A fitted model as JSON and arrays, and back: only classes of ours, and only results that their tables know."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from frpcag.graphs import Graph
from frpcag.runtime.atomic import atomic_file
from frpcag.runtime.warn import warn_user
from frpcag.saving.archive import MOST_TEXT, read_archive, write_archive
from frpcag.saving.fields import PARTS, RESULTS, check_fields, from_fields, to_fields

Array = np.ndarray

# The layout of the file, and the only one that is read.
FORMAT, VERSION = "frpcag-model", 3
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
_GRAPH = ("sigma", "method", "normalized", "metric")
_MATRIX = ("data", "indices", "indptr")


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
        packed = _Packed()
        text = json.dumps({"format": FORMAT, "version": VERSION, "writer": _version(), **packed.model(self)})
        if 4 * len(text) > MOST_TEXT:
            raise ValueError(
                f"the parameters and the names of the features take {len(text)} characters, more than "
                f"{MOST_TEXT // 4}; fit without names (an array instead of a frame) or save with joblib."
            )
        _unpacked_model(json.loads(text), packed.arrays)  # what could not be loaded is not written
        with atomic_file(path) as partial, partial.open("wb") as file:
            write_archive(file, text, packed.arrays)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Self:
        """Load a saved model of this class.

        Parameters
        ----------
        path : path
            A file that :meth:`save` wrote. Loading unpickles nothing, and refuses foreign, changed and damaged files.

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
    try:
        text, arrays = read_archive(path)
        header = json.loads(text)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise ValueError("its header is not that of a model")
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is not a saved frpcag model ({error}); pass a file that the save method of a model wrote."
        ) from error
    if header.get("version") != VERSION:
        raise ValueError(
            f"{path} was written by frpcag {str(header.get('writer'))[:40]} in file version "
            f"{str(header.get('version'))[:40]}; this frpcag {_version()} reads version {VERSION}: load it with the "
            "version that wrote it, or fit and save again."
        )
    try:
        model = _unpacked_model(header, arrays)
        check_is_fitted(model)
    except MemoryError:
        raise
    except Exception as error:  # whatever a header that lies makes NumPy, SciPy or a constructor raise
        raise ValueError(f"{path} does not hold a whole model: {error}; fit and save again.") from error
    return model


def _version() -> str:
    return import_module("frpcag").__version__


@dataclass
class _Packed:
    """What JSON can hold of a model; arrays go aside and leave their names."""

    arrays: dict[str, Array] = field(default_factory=dict)

    def model(self, model: Any) -> dict:
        name = type(model).__name__
        if MODELS.get(name) != type(model).__module__:
            raise ValueError(f"{name} is not one of frpcag's own models ({', '.join(MODELS)}); save it with joblib.")
        results = {
            key: self.value(value, key)
            for key, value in vars(model).items()
            if key.endswith("_") and not key.startswith("_") and key not in model._unsaved
        }
        return {"model": name, "params": self.params(model), "results": results}

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
                    f"again with the default {name}."
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
        if isinstance(value, np.ndarray):
            return {"names": [*map(str, value)]} if value.dtype == object else {"array": self.array(value)}
        if isinstance(value, np.random.RandomState) and value.get_state(legacy=False)["bit_generator"] == "MT19937":
            return {"random": self.value(value.get_state(legacy=False)["state"], name)}
        if sp.issparse(value):
            parts = {part: self.array(getattr(sp.csr_array(value), part)) for part in _MATRIX}
            return {"sparse": {"shape": [int(size) for size in value.shape], **parts}}
        if isinstance(value, Graph):
            names = ("weights", "laplacian", *_GRAPH)
            return {"graph": {part: self.value(getattr(value, part), part) for part in names}}
        if hasattr(value, "to_host"):  # a graph of tensors
            return self.value(value.to_host(), name)
        if hasattr(value, "detach"):  # a tensor
            return self.value(value.detach().cpu().numpy(), name)
        if isinstance(value, BaseEstimator) and isinstance(value, SavedModel):
            return {"model": self.model(value)}
        if (found := to_fields(value)) is not None:
            kind, fields = found
            return {"part": {"kind": kind, "fields": {key: self.value(item, key) for key, item in fields.items()}}}
        raise TypeError(f"{name} is a {type(value).__name__}, which cannot be saved; compute it or save with joblib.")

    def array(self, value: Array) -> str:
        name = f"array_{len(self.arrays)}"
        self.arrays[name] = value
        return name


def _unpacked_model(parts: dict, arrays: dict[str, Array]) -> Any:
    name = parts["model"]
    if name not in MODELS:
        raise ValueError(f"model {name!r} is unknown")
    params, results = ({key: _unpacked(v, arrays) for key, v in parts[p].items()} for p in ("params", "results"))
    model = getattr(import_module(MODELS[name]), name)(**params)
    if results:  # a model may be the parameter of another, not fitted itself
        check_fields(name, results, RESULTS[name], {})
        for key, value in results.items():
            setattr(model, key, value)
        model._after_load()
    return model


def _unpacked(value: Any, arrays: dict[str, Array]) -> Any:
    """Return a value; checks all that could make a kernel read outside an array."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "tuple":
            return tuple(_unpacked(item, arrays) for item in content)
        case "list":
            return [_unpacked(item, arrays) for item in content]
        case "dict":
            return {key: _unpacked(item, arrays) for key, item in content.items()}
        case "names":
            return np.array([str(item) for item in content], dtype=object)
        case "array":
            return arrays[content]
        case "random":
            return _random_state(_unpacked(content, arrays))
        case "sparse":
            return _matrix(content["shape"], *(arrays[content[part]] for part in _MATRIX))
        case "graph":
            weights, laplacian = (_unpacked(content[part], arrays) for part in ("weights", "laplacian"))
            if not weights.shape == laplacian.shape == weights.shape[::-1]:
                raise ValueError(f"a graph has weights of shape {weights.shape} and a Laplacian of {laplacian.shape}")
            return Graph(weights, laplacian, *(content[part] for part in _GRAPH))
        case "model":
            return _unpacked_model(content, arrays)
        case "part" if content["kind"] in PARTS:
            fields = {key: _unpacked(item, arrays) for key, item in content["fields"].items()}
            return from_fields(content["kind"], fields)
    raise ValueError(f"{kind!r} is not a known kind of value")


def _matrix(shape: Any, data: Array, indices: Array, indptr: Array) -> sp.csr_array:
    if len(shape) != 2 or not all(type(length) is int and 0 <= length < 2**63 for length in shape):
        raise ValueError(f"a sparse matrix has shape {str(shape)[:40]}")
    flat = all(part.ndim == 1 for part in (data, indices, indptr)) and len(data) == len(indices)
    if not flat or data.dtype.kind not in "biuf" or {indices.dtype.str, indptr.dtype.str} - {"<i4", "<i8"}:
        raise ValueError("a sparse matrix has parts of wrong shapes or dtypes")
    A = sp.csr_array((data, indices, indptr), shape=tuple(shape))
    A.check_format(full_check=True)
    return A


def _random_state(state: dict) -> np.random.RandomState:
    """Return a generator in a state; NumPy checks the words of the state but reads wherever its position points."""
    key, position = state["key"], state["pos"]
    if type(position) is not int or not 0 <= position <= 624 or key.shape != (624,) or key.dtype != np.uint32:
        raise ValueError("a random state is not one of MT19937")
    random_state = np.random.RandomState()
    random_state.set_state({"bit_generator": "MT19937", "state": state})
    return random_state
