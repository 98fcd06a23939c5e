"""CompressiveFRPCAG: solve for a sample of the rows, carry the result over the graph to all others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from numbers import Integral
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import check_is_fitted

from frpcag.data.preprocess import restore
from frpcag.data.row_source import RowSource, block_rows, let_go
from frpcag.engines.base import on_host, refuse_dask
from frpcag.estimators.decomposition import FRPCAG
from frpcag.estimators.frames import as_asked
from frpcag.estimators.kept import carry_bytes, check_compression, count_kept
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import fit_as_far_as_possible, raise_if_interrupted, whole_fit
from frpcag.linalg.factorize import fix_signs
from frpcag.rows import RowModel, inverted
from frpcag.runtime.arrays import row_blocks
from frpcag.runtime.atomic import atomic_file
from frpcag.runtime.clock import Clock
from frpcag.runtime.memory import require_memory
from frpcag.runtime.stages import StageReport
from frpcag.runtime.threads import block_pool
from frpcag.saving import SavedModel

Array = np.ndarray

# Rows outside the sample whose cells are hidden, and the share of their cells.
HELD_OUT, HIDDEN = 1000, 0.1


class Sample(NamedTuple):
    """Rows drawn from a matrix, and what a compressive fit knows until they are carried over."""

    source: RowSource
    kept: Array
    model: FRPCAG
    seed: np.random.RandomState
    clock: Clock


class CompressiveFRPCAG(SavedModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """:class:`FRPCAG` for very many rows: solved on a sample of them, carried over the graph to all others.

    After compressive PCA on graphs (Shahid, Perraudin, Puy and Vandergheynst 2016b, arXiv 1602.02070): rows are drawn
    at random, :class:`FRPCAG` cleans them, and every other row is linked to its nearest rows of the sample and solves
    its own problem, loss and links, with these held fixed; the feature term is left aside. Rows are read and written
    block by block, so a memory-mapped file larger than memory will do.

    Parameters
    ----------
    estimator : FRPCAG, optional
        The model that cleans the sample; its threads and ``verbose`` hold for the rest too.
    n_samples_kept : "auto", int or float, default="auto"
        Rows of the sample, a number or a share; "auto" keeps 16.8 million entries, within 1000 and 20,000 rows.
    keep_low_rank : bool, default=True
        Whether ``low_rank_`` is kept; it has the size of ``X``.
    output : path, optional
        A folder for ``low_rank.npy`` and ``embedding.npy``, which are written block by block, replaced if they are
        there, and given as memory maps. By default both are arrays in memory.
    random_state : int, RandomState or None
        Seed of the sample, and of the neighbour search where ``estimator`` is None.

    Attributes
    ----------
    embedding_ : ndarray or memmap of shape (n_samples, n_components)
        Rows in the principal directions.
    low_rank_ : ndarray or memmap of shape (n_samples, n_features)
        The clean part, in the units of ``X``, with ``keep_low_rank``.
    components_ : ndarray of shape (n_components, n_features)
        Principal directions.
    singular_values_ : ndarray of shape (n_components,)
        Of the clean part of all rows, centred and scaled.
    mean_ : ndarray of shape (n_features,)
        Mean of the clean part, the origin of the embedding; zero without ``center``.
    center_, scale_ : ndarray of shape (n_features,)
        What was subtracted and divided by.
    sample_indices_ : ndarray of int
        Rows of the sample.
    heldout_error_ : float
        A tenth of the cells of up to 1000 rows outside the sample was hidden: their mean absolute distance from what is
        carried over, in units of that from the mean of each column. 1 is no better than the mean; NaN where all rows
        are kept. Compare it over ``n_samples_kept``.
    estimator_ : FRPCAG
        The model of the sample, with its certificate.
    n_iter_, duality_gap_, converged_, status_, backend_ : object
        Those of ``estimator_``; they say nothing about the rows outside the sample.
    timings_ : dict of str to float
        Seconds of drawing, fitting and carrying over.

    Notes
    -----
    Ctrl-C while the sample is fitted ends that solve; its result is carried over, then ``KeyboardInterrupt`` is raised.
    Ctrl-C after that leaves the model and its files as they were.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import CompressiveFRPCAG
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat(rng.normal(size=(3, 20)), 200, axis=0)
    >>> X = clean + 5 * (rng.random(clean.shape) < 0.05)
    >>> model = CompressiveFRPCAG(n_samples_kept=150, random_state=0).fit(X)
    >>> bool(np.abs(model.low_rank_ - clean).mean() < np.abs(X - clean).mean() / 2)
    True
    """

    def __init__(
        self,
        estimator: FRPCAG | None = None,
        *,
        n_samples_kept: str | int | float = "auto",
        keep_low_rank: bool = True,
        output=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.n_samples_kept = n_samples_kept
        self.keep_low_rank = keep_low_rank
        self.output = output
        self.random_state = random_state

    def fit(self, X, y=None):
        """Clean a sample of ``X``, and carry the result over to all rows.

        Parameters
        ----------
        X : array-like, sparse matrix, memory map or path of a ``.npy``, of shape (n_samples, n_features)
            The data; NaN is missing. float32 stays float32. A memory map or path is read block by block.
        y : None
            Ignored.

        Returns
        -------
        CompressiveFRPCAG
            The fitted estimator.
        """
        with whole_fit(self) as fresh:
            fresh._fit(X)
        raise_if_interrupted(self)
        return self

    def fit_transform(self, X, y=None):
        """Fit and return ``embedding_``."""
        return self.fit(X).embedding_

    def transform(self, X):
        """Clean new rows against the sample and return them in the principal directions."""
        check_is_fitted(self)
        origin = (self.mean_ - self.center_) / self.scale_
        return np.concatenate([(clean - origin.astype(clean.dtype)) @ self.components_.T for clean in self._cleaned(X)])

    def denoise(self, X):
        """Return new rows cleaned against the sample, in the units of ``X``; a frame if ``set_output`` says so."""
        check_is_fitted(self)
        parts = [restore(clean, self.center_, self.scale_) for clean in self._cleaned(X)]
        return as_asked(self, np.concatenate(parts), X)

    def inverse_transform(self, X):
        """Return the data that rows of an embedding stand for; a frame if ``set_output`` says so."""
        check_is_fitted(self)
        return as_asked(self, inverted(self, X), X)

    def _cleaned(self, X) -> Iterator[Array]:
        source, model = RowSource(X, self, reset=False), RowModel.of(self.estimator_)
        for _, rows in source.blocks():
            rows = self._as_solved(rows)
            yield model.carry(rows, model.near(rows))

    def _as_solved(self, rows: Array) -> Array:
        out = np.empty_like(rows)

        def fill(at: slice) -> None:
            out[at] = (rows[at] - self.center_) / self.scale_

        with block_pool(self.estimator_.n_jobs) as run:
            run(fill, row_blocks(rows.shape))
        return out

    def _fit(self, X) -> None:
        sample = self._draw(X)
        self._spread(sample, fit_as_far_as_possible(sample.model, sample.kept))

    def _draw(self, X) -> Sample:
        """Return the rows to clean, and the model to clean them with."""
        refuse_dask(X, "CompressiveFRPCAG")
        check_compression(self)
        clock, seed = Clock(), check_random_state(self.random_state)
        source = RowSource(X, self)
        n, p = source.shape
        model = FRPCAG(random_state=seed.randint(2**31)) if self.estimator is None else clone(self.estimator)
        m = count_kept("n_samples_kept", self.n_samples_kept, n, least=2, width=p)
        self._require_memory(source, (m, p), model)
        self.sample_indices_ = np.sort(sample_without_replacement(n, m, random_state=seed))
        kept = source.take(self.sample_indices_)
        clock.lap("draw")
        return Sample(source, kept, model, seed, clock)

    def _spread(self, sample: Sample, model: FRPCAG, labels: Array | None = None) -> Array | None:
        """Carry the model of a sample over to all rows, and its labels; return those of all rows."""
        source, clock, (n, _) = sample.source, sample.clock, sample.source.shape
        self.estimator_ = on_host(model)
        self.center_, self.scale_ = self.estimator_.center_, self.estimator_.scale_
        clock.lap("fit_sample")
        with StageReport(self.estimator_.verbose) as shown:  # after the report of the sample's own fit
            carrying = Clock(shown.lap)
            labels = self._carry(source, labels, shown)
            carrying.lap("carry")
            drawn = sample_without_replacement(n, min(n, len(sample.kept) + HELD_OUT), random_state=sample.seed)
            others = np.sort(sample.seed.permutation(np.setdiff1d(drawn, self.sample_indices_))[:HELD_OUT])
            self.heldout_error_ = self._hidden_error(self._as_solved(source.take(others)))
            carrying.lap("heldout_error")
        for name in ("n_iter_", "duality_gap_", "converged_", "status_", "backend_"):
            setattr(self, name, getattr(self.estimator_, name))
        self.timings_ = clock.seconds | carrying.seconds
        return labels

    def _carry(self, source: RowSource, labels: Array | None, shown: StageReport) -> Array | None:
        """Clean all rows, a block at a time; then turn the embedding into the principal directions of all of them."""
        (n, p), model, V = source.shape, RowModel.of(self.estimator_), self.estimator_.components_.T
        total, done = np.zeros(p), 0
        votes: list[Array] = []
        with ExitStack() as files:
            E = self._room(files, "embedding", (n, V.shape[1]), source.dtype)
            low_rank = self._room(files, "low_rank", (n, p), source.dtype) if self.keep_low_rank else None
            for at, rows in source.blocks():
                rows = self._as_solved(rows)
                near = model.near(rows)
                U = model.carry(rows, near)
                first, last = np.searchsorted(self.sample_indices_, (at.start, at.stop))
                own = self.sample_indices_[first:last] - at.start
                U[own] = model.carried.U[first:last]
                total += self._write(U, V, E[at], None if low_rank is None else low_rank[at])
                if labels is not None:
                    found = model.vote(labels, near)
                    found[own] = labels[first:last]
                    votes.append(found)
                for room in (E, low_rank):
                    if isinstance(room, np.memmap):
                        let_go(room)
                done += len(rows)
                shown.count("carrying over", done, n)
            origin = total / n if self.estimator_.center else np.zeros(p)
            self.singular_values_, R = self._turn(E, origin @ V)
            self.components_ = np.ascontiguousarray((V @ R).T.astype(source.dtype))
            self.mean_ = self.center_ + origin * self.scale_
            del E, low_rank
        self.embedding_ = self._results["embedding"]()
        if self.keep_low_rank:
            self.low_rank_ = self._results["low_rank"]()
        del self._results
        return np.concatenate(votes) if votes else None

    def _hidden_error(self, rows: Array) -> float:
        """Return how far hidden cells of rows outside the sample are from what the sample says of them.

        A tenth of the cells is hidden, and the rows are linked and decoded by the others. The mean absolute error, in
        units of that of the mean of each column; NaN where no cell can be hidden.
        """
        # A generator of its own: a seed that someone else used may have chosen the very cells that are wrong.
        hidden = np.random.default_rng([2016, *rows.shape]).random(rows.shape) < HIDDEN
        hidden &= np.isfinite(rows)
        hidden &= (np.isfinite(rows) & ~hidden).any(axis=1, keepdims=True)  # something to link each row by
        if not hidden.any():
            return float("nan")
        shown = np.where(hidden, rows.dtype.type(np.nan), rows)
        model = RowModel.of(self.estimator_)
        clean = model.carried.place(shown, *model.near(shown)[:2])
        mean = model.carried.points.mean(axis=0, dtype=np.float64)
        scale = float(np.abs(rows - mean)[hidden].mean())
        return float(np.abs(rows - clean)[hidden].mean(dtype=np.float64)) / scale if scale > 0 else 0.0

    def _write(self, U: Array, V: Array, embedding: Array, low_rank: Array | None) -> Array:
        """Write what is kept of clean rows, and return their sum."""

        def fill(at: slice) -> Array:
            embedding[at] = U[at] @ V
            if low_rank is not None:
                low_rank[at] = U[at] * self.scale_ + self.center_
            return U[at].sum(axis=0, dtype=np.float64)

        with block_pool(self.estimator_.n_jobs) as run:
            return np.sum(run(fill, row_blocks(U.shape)), axis=0)

    def _turn(self, E: Array, origin: Array) -> tuple[Array, Array]:
        """Centre the embedding and turn it into its own principal directions, in place; return Sigma and the turn."""
        step = block_rows(max(E.shape[1], 1))
        blocks = [slice(start, start + step) for start in range(0, len(E), step)]
        gram = np.zeros((E.shape[1], E.shape[1]))
        for at in blocks:
            part = E[at] - origin
            gram += part.T @ part
        values, vectors = np.linalg.eigh(gram)
        R = fix_signs(vectors[:, ::-1])[0]
        for at in blocks:
            E[at] = (E[at] - origin) @ R
            if isinstance(E, np.memmap):
                let_go(E)
        return np.sqrt(np.maximum(values[::-1], 0)).astype(E.dtype), R

    def _room(self, files: ExitStack, name: str, shape: tuple[int, int], dtype: np.dtype) -> Array:
        """Return an array to write a result to; a memory-mapped file that is put in place when ``files`` closes."""
        results = self.__dict__.setdefault("_results", {})
        if self.output is None:
            array = np.empty(shape, dtype)
            results[name] = lambda: array
            return array
        folder = Path(self.output)
        folder.mkdir(parents=True, exist_ok=True)
        partial = files.enter_context(atomic_file(folder / f"{name}.npy"))
        results[name] = lambda: np.load(folder / f"{name}.npy", mmap_mode="r")
        return np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)

    def _require_memory(self, source: RowSource, kept: tuple[int, int], model: FRPCAG) -> None:
        c = model.n_components
        n_components = int(c) if isinstance(c, Integral) else min(kept)
        k = int(model.n_neighbors) if isinstance(model.n_neighbors, Integral) else 10
        needed = carry_bytes(
            source.shape, source.dtype.itemsize, kept=kept, n_neighbors=k, n_components=n_components,
            stored=self.output is not None, low_rank=self.keep_low_rank,
        )  # fmt: skip
        what = f"a compressive fit of X with shape {source.shape} that keeps {kept[0]} rows"
        if self.output is None:
            what += ", results in memory (output=folder writes them to files),"
        require_memory(needed, what)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
