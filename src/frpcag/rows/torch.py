"""New rows against a model that was fitted on tensors: the same answers, on the model's device.

What depends on the training data is prepared once, on the host, and copied to the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn.utils.validation import validate_data
from torch import Tensor

from frpcag.backends.torch.linked_rows import solve_rows
from frpcag.backends.torch.operations import scaled
from frpcag.backends.torch.robust_rows import Training, repeat_rates
from frpcag.data.preprocess import refuse_infinite, refuse_lost, validate_matrix
from frpcag.engines.torch import to_host
from frpcag.graphs import Index, Links
from frpcag.linalg.torch_sparse import TorchCSR
from frpcag.losses import LOSSES
from frpcag.rows.explain import FARTHEST, explain_rows, same_cells
from frpcag.rows.terms import MOST_STEPS
from frpcag.runtime.arrays import is_tensor

# Entries of the neighbours of the rows that are cleaned at a time; some ten copies of them.
_ENTRIES = 1 << 24


class TensorAnswers:
    """What a model of tensors says of new rows, on its device.

    Parameters
    ----------
    model : FRPCAG
        Fitted to a tensor.
    host : callable
        Gives the `frpcag.rows.RowModel` of its copy on the host.
    """

    def __init__(self, model: Any, host: Callable[[Any], Any]) -> None:
        self.model, self._host = model, host

    def embed(self, X: Any) -> Tensor:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        return self._rows().embed(_checked(self.model, X))

    def denoise(self, X: Any) -> Tensor:
        """Return rows without their errors, in the units of the data."""
        return self._rows().denoise(_checked(self.model, X))

    def _rows(self) -> TensorRows:
        kept = _PREPARED.get(self.model)
        if kept is None or kept[0] is not self.model.low_rank_:
            prepared = TensorRows(self._host(to_host(self.model)), self.model.low_rank_.device)
            kept = _PREPARED[self.model] = self.model.low_rank_, prepared
        return kept[1]


class TensorRows:
    """What the arrays of `frpcag.rows.RowModel` hold, as tensors, and both answers.

    Parameters
    ----------
    host : RowModel
    device : torch.device
    """

    def __init__(self, host: Any, device: torch.device) -> None:
        def put(A: Any) -> Tensor:
            return torch.tensor(np.asarray(A), device=device)

        known, model = host.known, host.model
        self.model, self.unit, self.near_share = known.model, known.unit, known.near_share
        self.least = known.least
        self.n_neighbors, self.keep, self.nonnegative = known.n_neighbors, LOSSES[model.loss].EXACT, model.nonnegative
        self.X, self.U, self.center, self.scale = (put(A) for A in (known.X, known.U, known.center, known.scale))
        self.mean, self.directions, self.origin = (put(A) for A in (known.mean, model.components_, host.origin))
        self.embedding, self.level = put(model.embedding_), put(known.level)
        training = known.training
        self.training = Training(self.X, training.tol, put(training.common), put(training.rates))
        self.near = Index(self.solved(self.X), known.metric)
        self.clean_rows = put(known.solved(host.U))
        self.terms, self.gamma1, self.links, self.L2 = host.terms, model.gamma1_, None, None
        if model.sample_graph_ is not None and model.gamma1_ > 0:
            self.links = Links(model.sample_graph_)
            self.index = Index(self.clean_rows, host.metric_of_clean_rows)
        if self.terms.L2 is not None:
            self.L2 = scaled(TorchCSR.of(self.terms.L2, device), 1.0)

    def denoise(self, rows: Tensor) -> Tensor:
        """Return rows without their errors, in the units of the data."""
        return torch.cat([self._denoise(*some) for some in self._blocks(rows)]).to(rows.dtype)

    def embed(self, rows: Tensor) -> Tensor:
        """Return rows in the principal directions, smoothed as the fitted ones."""
        return torch.cat([self._embed(*some) for some in self._blocks(rows)]).to(rows.dtype)

    def solved(self, rows: Tensor) -> Tensor:
        """Return rows centred and scaled as for the solve, in their own precision."""
        return ((rows - self.center) / self.scale).to(rows.dtype)

    def _blocks(self, rows: Tensor) -> Iterator[tuple[Tensor, float]]:
        """Give rows a few at a time, and the rounding of a copy of a training row."""
        eps = max(torch.finfo(dtype).eps for dtype in (rows.dtype, self.X.dtype))
        rows = rows.to(torch.promote_types(rows.dtype, self.X.dtype))
        return ((some, eps) for some in rows.split(max(1, _ENTRIES // (self.n_neighbors * rows.shape[1]))))

    def _look(self, rows: Tensor, eps: float) -> tuple[Tensor, ...]:
        """Return rows, predictions and probabilities, the nearest training row of each and whether it is the same."""
        solved = self.solved(rows)
        indices, distances = self.near.query(solved, self.n_neighbors)
        weights = torch.exp(-torch.square(distances / distances.mean(dim=1, keepdim=True).clamp(min=1e-300)))
        weights = (weights / weights.sum(dim=1, keepdim=True)).float()
        seen = ~torch.isnan(solved)
        Z = ((solved - self.level) / self.unit).clamp(-FARTHEST, FARTHEST).float() - self.mean
        Z = Z.nan_to_num(nan=0.0)
        rate = repeat_rates(rows, indices, weights, self.training, least=self.least)
        values, wrong = explain_rows(self.model, Z, seen.float(), rate)
        predicted = (values + self.mean).double() * self.unit + self.level
        if self.near_share > 0:
            around = torch.einsum("mk,mkp->mp", weights.to(self.U.dtype), self.U[indices])
            predicted = (1 - self.near_share) * predicted + self.near_share * self.solved(around)
        first = indices[:, 0]
        known = (same_cells(rows, self.X[first], self.U[first], eps) | ~seen).all(dim=1)
        return solved, predicted.to(solved.dtype), torch.where(seen, wrong, 1.0), first, known

    def _denoise(self, rows: Tensor, eps: float) -> Tensor:
        _, predicted, wrong, first, known = self._look(rows, eps)
        predicted = predicted * self.scale + self.center
        share = wrong.double() if self.keep else torch.ones_like(wrong, dtype=torch.float64)
        clean = (1 - share) * rows.nan_to_num(nan=0.0) + share * predicted
        clean = torch.where(known[:, None], self.U[first], clean.to(rows.dtype))
        return clean.clamp(min=0) if self.nonnegative else clean

    def _embed(self, rows: Tensor, eps: float) -> Tensor:
        solved, predicted, wrong, first, known = self._look(rows, eps)
        repaired = (1 - wrong) * solved.nan_to_num(nan=0.0) + wrong * predicted
        pull = torch.zeros(len(rows), dtype=torch.float64, device=rows.device)
        middle = torch.where(torch.isnan(solved), repaired, solved)
        if self.links is not None:
            indices, distances = self.index.query(repaired, self.n_neighbors)
            diagonal, weights = self.links.of(indices, distances, joined=True)
            pull = self.gamma1 * diagonal
            middle = torch.einsum("mk,mkp->mp", weights, self.clean_rows[indices].double()) / diagonal[:, None]
        given = repaired if np.isinf(LOSSES[self.terms.loss].STEEPEST) else solved
        L2 = None if self.L2 is None else (*self.L2[:2], self.L2[2].to(given.dtype))
        clean = solve_rows(
            given, middle.to(given.dtype), L2, self.terms.loss, self.terms.steps(pull.cpu().numpy()), MOST_STEPS
        )
        clean = clean.clamp(min=0) if self.nonnegative else clean
        found = (clean - self.origin).to(rows.dtype) @ self.directions.T.to(rows.dtype)
        return torch.where(known[:, None], self.embedding[first].to(rows.dtype), found)


_PREPARED: WeakKeyDictionary[Any, tuple[Tensor, TensorRows]] = WeakKeyDictionary()


def _checked(model: Any, X: Any) -> Tensor:
    """Return new rows on the device of a model, refused in the same words as arrays are."""
    device = model.low_rank_.device
    if not is_tensor(X):
        X = validate_matrix(model, X, reset=False)
        return torch.as_tensor(X.toarray() if hasattr(X, "toarray") else np.ascontiguousarray(X), device=device)
    if X.ndim != 2 or not X.is_floating_point() or X.dtype not in (torch.float32, torch.float64) or not len(X):
        X = torch.as_tensor(validate_matrix(model, X, reset=False))
    X = X.detach().to(device)
    validate_data(model, X, skip_check_array=True, reset=False)
    if not bool(torch.isfinite(X.sum())):
        refuse_infinite(int(torch.isinf(X).sum()))
        refuse_lost("row", torch.isnan(X).all(dim=1).nonzero().flatten().tolist())
    return X
