"""What a fitted model says of new rows, where the model and the rows are."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from frpcag.data.preprocess import restore, validate_matrix
from frpcag.engines.base import map_chunks, on_client, on_device_of, on_host
from frpcag.rows.model import RowModel
from frpcag.runtime.arrays import is_dask, is_tensor

Array = np.ndarray


class Answers:
    """Answers of a model on one machine.

    Parameters
    ----------
    model : FRPCAG
        Fitted to arrays.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def embed(self, X: Any) -> Array:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        return RowModel.of(self.model).embed(validate_matrix(self.model, X, reset=False))

    def denoise(self, X: Any) -> Array:
        """Return rows without their errors, in the units of the data."""
        return RowModel.of(self.model).denoise(validate_matrix(self.model, X, reset=False))


class ChunkAnswers(Answers):
    """The same for the row chunks of a Dask array, lazily."""

    def embed(self, X: Any) -> Any:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        return map_chunks(Answers(self.model).embed, X, len(self.model.components_))

    def denoise(self, X: Any) -> Any:
        """Return rows without their errors, in the units of the data."""
        return map_chunks(Answers(self.model).denoise, X, self.model.n_features_in_)


def answers_of(model: Any, X: Any) -> Any:
    """Return what answers for ``X``. A model of tensors answers on its device, one in row blocks by rows kept here."""
    model = on_client(model)
    if is_tensor(model.low_rank_):
        return import_module("frpcag.rows.torch").TensorAnswers(model, RowModel.of)
    return ChunkAnswers(model) if is_dask(X) else Answers(model)


def inverted(model: Any, E: Any) -> Any:
    """Return the rows that those of an embedding stand for, in the units of the data."""
    host = on_host(model)
    rows = partial(_inverted, host.components_, host.mean_, host.scale_)
    if host is not model:
        return on_device_of(model.low_rank_, rows(E))
    return map_chunks(rows, E, host.n_features_in_) if is_dask(E) else rows(E)


def _inverted(components: Array, mean: Array, scale: Array, E: Any) -> Array:
    E = check_array(E, dtype=[np.float64, np.float32])
    if E.shape[1] != len(components):
        raise ValueError(
            f"X has {E.shape[1]} columns, but the embedding has {len(components)} components; pass what "
            "transform returns."
        )
    return restore(E @ components, mean, scale)
