"""What scikit-learn is told about the matrices that our estimators take."""

from __future__ import annotations

from typing import Any


def accepts_matrices(tags: Any) -> Any:
    """Return tags that also say: sparse matrices and NaN are welcome, and float32 stays float32."""
    tags.input_tags.sparse = True
    tags.input_tags.allow_nan = True
    if tags.transformer_tags is not None:
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
    return tags
