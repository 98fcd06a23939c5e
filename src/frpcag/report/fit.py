"""What a report is about: the arrays and the record of one fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from frpcag.insight import OutlierShares, outlier_shares
from frpcag.linalg.spreads import column_units
from frpcag.report.cells import Cells

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Pictures:
    """Rows of matrices as pictures of one size, or frames of a video.

    Parameters
    ----------
    stacks : mapping of str to array-like of shape (n, h, w) or (n, h, w, 3)
        Title and pictures of each pane, such as ``{"X": ..., "U": ..., "S": ...}``; arrays may be memory-mapped.
    signed : collection of str
        Panes drawn with zero in white, negative blue and positive red.
    is_video : bool
        Frames in time order, with a button to play them; otherwise images, which can be sorted by corruption.
    total : int, optional
        How many there are in all, where these are but some.
    """

    stacks: Mapping[str, Any]
    signed: Sequence[str] = ("S",)
    is_video: bool = False
    total: int | None = None

    def __len__(self) -> int:
        return len(next(iter(self.stacks.values())))


@dataclass(frozen=True, eq=False)
class Fit:
    """A decomposition ``X = U + S`` and all that is known about how it came about.

    Only ``U`` and ``S`` must be there; every part of a report that lacks its ingredients is left out.

    Parameters
    ----------
    U, S : array of shape (n_samples, n_features)
        Clean part and corruptions in the units of the data; may be memory-mapped.
    title : str
        What it is called, the name of the data file say.
    embedding : ndarray of shape (n_samples, c), optional
    singular_values : ndarray of shape (c,), optional
    gamma1, gamma2 : float
    has_missing : bool
        Some entries of the data were missing; ``U + S`` holds their prediction.
    labels : array-like of shape (n_samples,), optional
    feature_names : sequence of str, optional
    sample_names : sequence of str, optional
        The ids of the samples.
    feature_shape : (int, int), optional
        Height and width of the image behind a row.
    pictures : Pictures, optional
        What to show instead of the rows as images of ``feature_shape``: the frames of a video.
    numbers : sequence of int, optional
        What the samples are called, where they are but some frames of a video; 0, 1, ... by default.
    shares : OutlierShares, optional
        Where entries stand out, if that is known from elsewhere (the masks of a video); else from ``S``.
    cells : Cells, optional
        What a cleaner says of every cell; then ``U`` is the cleaned table and ``S`` what was taken off it.
    lines : sequence of str, optional
        Sentences for the summary instead of the usual ones.
    certificate : mapping
        ``relative_gap``, ``tol``, ``n_iter``, ``status``.
    history : mapping, optional
        ``n_iter``, ``gap``, ``objective`` along the run.
    parameters, timings, versions : mapping
    warnings : sequence of str
    files : mapping of str to str
        Name and address of each array to download, relative to the page.
    """

    U: Array
    S: Array
    title: str = "fit"
    embedding: Array | None = None
    singular_values: Array | None = None
    gamma1: float = 0.0
    gamma2: float = 0.0
    has_missing: bool = False
    labels: Array | None = None
    feature_names: Sequence[str] | None = None
    sample_names: Sequence[str] | None = None
    feature_shape: tuple[int, int] | None = None
    pictures: Pictures | None = None
    numbers: Sequence[int] | None = None
    shares: OutlierShares | None = None
    cells: Cells | None = None
    lines: Sequence[str] | None = None
    certificate: Mapping[str, Any] = field(default_factory=dict)
    history: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.labels is not None:
            object.__setattr__(self, "labels", np.asarray(self.labels))
            if np.shape(self.labels) != (self.n_samples,):
                raise ValueError(
                    f"labels has shape {np.shape(self.labels)} but there are {self.n_samples} samples; pass one each."
                )

    @classmethod
    def of_model(cls, model: Any, **more: Any) -> Fit:
        """Return what a fitted :class:`~frpcag.FRPCAG` holds; ``more`` overrides or adds fields."""
        if hasattr(model.low_rank_, "cpu"):  # fitted on tensors
            from frpcag.engines import torch as gpu

            model = gpu.to_host(model)
        names = getattr(model, "feature_names_in_", None)
        fields = {
            "U": model.low_rank_,
            "S": model.sparse_,
            "title": type(model).__name__,
            "embedding": model.embedding_,
            "singular_values": model.singular_values_,
            "gamma1": model.gamma1_,
            "gamma2": model.gamma2_,
            "feature_names": None if names is None else list(names),
            "feature_shape": model.feature_shape,
            "certificate": {
                "relative_gap": model.duality_gap_,
                "tol": model.tol,
                "n_iter": model.n_iter_,
                "status": model.status_,
                "objective": model.objective_,
            },
            "history": model.history_,
            "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
            "timings": model.timings_,
        }
        return cls(**{**fields, **more})

    @classmethod
    def of_cleaner(cls, model: Any, **more: Any) -> Fit:
        """Return what a fitted :class:`~frpcag.RobustGraphCleaner` holds; ``more`` overrides or adds fields."""
        cells, shape = Cells.of_model(model), model.feature_shape_
        X = model.predicted_ + model.deviation_
        names = getattr(model, "feature_names_in_", None)
        changed = np.where(model.outliers_, X - model.cleaned_, 0)
        fields = {
            "U": model.cleaned_,
            "S": changed,
            "title": type(model).__name__,
            "embedding": model.estimator_.embedding_,
            "singular_values": model.estimator_.singular_values_,
            "has_missing": bool(cells.n_filled),
            "feature_names": None if names is None else list(names),
            "shares": cells.shares,
            "cells": cells,
            "parameters": {name: _plain(value) for name, value in model.get_params(deep=False).items()},
        }
        if shape is not None:
            stacks = {"as given": X, "found wrong": changed, "cleaned": model.cleaned_}
            images = {title: rows.reshape(-1, *shape) for title, rows in stacks.items()}
            fields["pictures"] = Pictures(images, signed=("found wrong",))
        return cls(**{**fields, **more})

    @property
    def n_samples(self) -> int:
        """Rows."""
        return self.U.shape[0]

    @property
    def n_features(self) -> int:
        """Columns."""
        return self.U.shape[1]

    @property
    def is_video(self) -> bool:
        """Whether samples are frames and features pixels."""
        return self.pictures is not None and self.pictures.is_video

    def number(self, i: int) -> int:
        """Return what the i-th sample is called."""
        return int(i) if self.numbers is None else int(self.numbers[i])

    @cached_property
    def outliers(self) -> OutlierShares:
        """Shares of outlying entries by sample and by feature, in the unit of each column where units differ."""
        if self.shares is not None:
            return self.shares
        rows = np.unique(np.linspace(0, self.n_samples - 1, min(self.n_samples, 500)).astype(int))
        return outlier_shares(self.S, units=column_units(np.asarray(self.U[rows] + self.S[rows])))


def _plain(value: Any) -> Any:
    """Return a parameter as something to print in a table."""
    return value if value is None or isinstance(value, (bool, int, float, str, tuple)) else type(value).__name__
