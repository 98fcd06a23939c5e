"""Cleaned rows come back as frames where ``set_output`` asks for them; scikit-learn wraps ``transform`` alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config


def as_asked(model: Any, rows: Any, original: Any) -> Any:
    """Return rows over the training features as the container that ``model.set_output`` names.

    Parameters
    ----------
    model : FRPCAG
        Fitted.
    rows : ndarray of shape (n_rows, n_features)
        Others, tensors and Dask arrays, are returned as they are.
    original : object
        What the user passed; its index is kept.
    """
    wanted = _get_output_config("transform", model)["dense"]
    if wanted == "default" or not isinstance(rows, np.ndarray):
        return rows
    names = getattr(model, "feature_names_in_", None)
    columns = [f"x{j}" for j in range(rows.shape[1])] if names is None else names
    return ADAPTERS_MANAGER.adapters[wanted].create_container(rows, original, columns=columns, inplace=False)
