"""FRPCAG: the whole flow from ``X`` to clean data and components, one call per stage."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from frpcag.estimators.frames import as_asked
from frpcag.estimators.tags import accepts_matrices
from frpcag.estimators.whole import raise_if_interrupted, whole_fit
from frpcag.pipeline import prepare
from frpcag.rows import answers_of, inverted
from frpcag.runtime.arrays import is_dask
from frpcag.runtime.stages import StageReport
from frpcag.saving import SavedModel
from frpcag.solvers import Progress


class FRPCAG(SavedModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Fast robust PCA on graphs: the clean, nearly low-rank part of corrupted data (Shahid et al. 2016).

    Samples and features are linked in two k-nearest-neighbour graphs; the clean part ``U`` minimises
    ``sum |X - U| + gamma1 tr(U' L1 U) + gamma2 tr(U L2 U')``. The problem is convex, needs no SVD in its loop, and
    the answer comes with a proof of how close to the optimum it is (``duality_gap_``).

    Parameters
    ----------
    n_components : int or float, optional
        Components of the embedding; a float in (0, 1) is a share of the squared singular values; None keeps the
        singular values above 1 % of the largest.
    gamma1, gamma2 : "auto" or float, default="auto"
        Weight of the sample and of the feature graph, the paper's gammas on the centred and scaled data.
        "auto" takes ``1 / mean |2 L X|``, which does not depend on the units of ``X``.
    n_neighbors : int, default=10
        Neighbours of each node, at most one less than there are nodes.
    sample_graph, feature_graph : str, sparse matrix, graph, edge list, transformer or None, default="auto"
        "auto", "exact" (the paper's strategy 1), "approximate" (strategy 2), "grid" (features are pixels, with
        ``feature_shape``), a symmetric adjacency, a :class:`Graph`, a graph of NetworkX or igraph, edges as an array of
        shape (m, 2) or (m, 3) with two nodes and a weight, an object with the interface of scikit-learn's
        ``KNeighborsTransformer``, or None to drop the term. The paper's graph types are A ("exact", "exact"),
        B ("exact", "approximate") and C ("approximate", "approximate").
    metric : {"euclidean", "l1", "truncated", "cosine", "auto"}, default="euclidean"
        What makes samples neighbours. "l1" (the sum of absolute differences) and "truncated" (each difference counts up
        to twice the mean absolute deviation) keep gross errors from deciding which samples these are; "cosine" is
        Euclidean between samples divided by their lengths, after centring; "auto" takes the one of the first three
        whose neighbours predict the entries best, without labels. New rows find their neighbours by the same
        metric. A given graph keeps its edges; the feature graph is always Euclidean.
    sigma : "auto" or float, default="auto"
        Width of the Gaussian edge weights; "auto" is the mean distance of connected nodes.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        "normalized" is the paper's, for clustering; "combinatorial" keeps levels, for data whose level matters.
    loss : {"l1", "l2", "huber", "logcosh"}, default="l1"
        The data term: absolute, squared, Huber's, or a smooth one much like Huber's.
    huber_delta : float, default=1.0
        Where Huber's loss turns linear, and the smooth one nearly so, in units of the centred and scaled data.
    center, scale : bool, default=True and False
        Subtract the mean of each feature; divide by its standard deviation.
    nonnegative : bool, default=False
        Keep the clean part at or above zero, for counts and their logarithms; ``X`` must not be negative. The problem
        is then solved without subtracting the mean; ``embedding_`` is still taken about the mean of ``low_rank_``.
    n_refine : int or "auto", default=0
        How often, at most, the graphs are rebuilt from ``U`` and the problem is solved again. It ends early if the
        sample graph keeps nine tenths of its edges. "auto" refines once, and only if ``U`` keeps fewer than half of the
        edges of ``X``: the graph of ``X`` was then mostly noise. On clean data refinement blurs.
    tol : float, default=1e-3
        Tolerance of ``stop``.
    max_iter : int, default=500
        Limit of solver steps; reaching it warns with the gap reached.
    stop : {"gap", "change"}, default="gap"
        Stop on the relative duality gap, or on the change of the iterates as the paper does.
    backend : {"auto", "numpy", "numba", "torch", "dask"} or DaskBackend, default="auto"
        What computes the fit. "torch" computes graphs, solve and factors on the GPU where there is one; "dask" computes
        them on the workers of the current Dask client, row block by row block; a :class:`DaskBackend` also says where
        checkpoints and results go. "auto" takes torch for tensors, Dask for Dask arrays, and for others a GPU that is
        there and predicted to be faster (the environment variable ``FRPCAG_GPU=0`` forbids it), else Numba.
    feature_shape : (int, int), optional
        Height and width of the image behind a row, for ``feature_graph="grid"``.
    random_state : int, RandomState or None
        Seed of the approximate neighbour search. The solver is deterministic.
    n_jobs : int, optional
        Number of threads, all cores by default. Results do not depend on it.
    verbose : int, default=0
        1 tells each stage when it is done, with its seconds and the gap of the solve.
    callback : callable, optional
        Called after every solver step with a ``Progress(n_iter, max_iter, change, gap, objective, tol)``; a true
        return value stops the fit early with a valid, certified result. Ctrl-C does too, and then raises
        ``KeyboardInterrupt``.

    Attributes
    ----------
    low_rank_, sparse_ : ndarray of shape (n_samples, n_features)
        The clean part and the corruptions, ``X = low_rank_ + sparse_``, in the units of ``X``; where ``X`` is missing,
        ``low_rank_`` predicts it and ``sparse_`` is zero.
    embedding_ : ndarray of shape (n_samples, n_components)
        Samples in the principal directions, ``W * Sigma``.
    components_ : ndarray of shape (n_components, n_features)
        Principal directions.
    singular_values_ : ndarray of shape (n_components,)
        Singular values of the clean part, centred and scaled.
    mean_ : ndarray of shape (n_features,)
        Mean of ``low_rank_``, the origin of the embedding; zero without ``center``.
    center_, scale_ : ndarray of shape (n_features,)
        What was subtracted from ``X`` and what it was divided by before the problem was solved.
    gamma1_, gamma2_ : float
        Weights used.
    sample_graph_, feature_graph_ : Graph or None
        Graphs used.
    n_iter_ : int
        Solver steps.
    duality_gap_, objective_ : float
        Relative duality gap at the result, and its objective.
    n_refine_ : int
        Refinements done.
    converged_ : bool
        Whether ``stop`` was met.
    status_ : {"converged", "max_iter", "stopped", "interrupted"}
        Why the solver ended: the rule, the step limit, the callback, or Ctrl-C.
    backend_ : str
        Backend used.
    history_ : dict of str to ndarray
        ``n_iter``, ``objective``, ``gap`` and ``change`` along the run.
    timings_ : dict of str to float
        Seconds spent in each stage.

    Notes
    -----
    A fit holds at most six arrays of the size of ``X`` at a time, ``X`` included, beside the graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from frpcag import FRPCAG
    >>> rng = np.random.default_rng(0)
    >>> clean = np.repeat(rng.normal(size=(3, 20)), 20, axis=0)
    >>> X = clean + 5 * (rng.random(clean.shape) < 0.05)
    >>> model = FRPCAG(n_components=2).fit(X)
    >>> model.duality_gap_ <= 1e-3
    True
    >>> bool(np.abs(model.low_rank_ - clean).mean() < np.abs(X - clean).mean())
    True
    """

    def __init__(
        self,
        n_components: int | float | None = None,
        *,
        gamma1: str | float = "auto",
        gamma2: str | float = "auto",
        n_neighbors: int = 10,
        sample_graph="auto",
        feature_graph="auto",
        metric: str = "euclidean",
        sigma: str | float = "auto",
        laplacian: str = "normalized",
        loss: str = "l1",
        huber_delta: float = 1.0,
        center: bool = True,
        scale: bool = False,
        nonnegative: bool = False,
        n_refine: int | str = 0,
        tol: float = 1e-3,
        max_iter: int = 500,
        stop: str = "gap",
        backend: str = "auto",
        feature_shape: tuple[int, int] | None = None,
        random_state=None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callable[[Progress], object] | None = None,
    ):
        self.n_components = n_components
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.metric = metric
        self.sigma = sigma
        self.laplacian = laplacian
        self.loss = loss
        self.huber_delta = huber_delta
        self.center = center
        self.scale = scale
        self.nonnegative = nonnegative
        self.n_refine = n_refine
        self.tol = tol
        self.max_iter = max_iter
        self.stop = stop
        self.backend = backend
        self.feature_shape = feature_shape
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y=None):
        """Find the clean part of ``X`` and its components.

        Parameters
        ----------
        X : array-like, sparse matrix, torch tensor or Dask array of shape (n_samples, n_features)
            The data. float32 stays float32; other types become float64. NaN is missing: such entries have no data term,
            distances use the entries that two samples or features share, and ``low_rank_`` predicts them. For a tensor,
            all results are tensors on its device; for a Dask array, results of its size are Dask arrays.
            ``backend="dask"`` also takes a zarr or HDF5 array, a memory map, or the path of a ``.npy`` or ``.zarr``.
        y : None
            Ignored.

        Returns
        -------
        FRPCAG
            The fitted estimator.
        """
        with whole_fit(self) as fresh:
            fresh._fit(X)
        raise_if_interrupted(self)
        return self

    def transform(self, X):
        """Return new rows in the principal directions, cleaned as the fitted samples were.

        The answer to "where does this row lie among the fitted ones?": each row is linked to the fitted rows that are
        nearest once its wrong cells are repaired, and smoothed as these were, so that what was learnt on ``embedding_``
        holds for it. What rows are compared with is prepared on the first call after a fit, and kept.

        Parameters
        ----------
        X : array-like, sparse matrix or tensor of shape (n_rows, n_features)
            New samples; NaN is missing. Each row is treated on its own, alone or in a batch alike to the last bit (on a
            GPU to rounding); rows of the training data give their ``embedding_``, equal ones that of one of them.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            A tensor for a model that was fitted on one, computed on its device.
        """
        check_is_fitted(self)
        return answers_of(self, X).embed(X)

    def denoise(self, X):
        """Return new rows without their errors, in the units of ``X``.

        The answer to "what would this row be without its errors?": with ``loss="l1"`` cells that are fine stay as they
        are, and wrong and missing ones are predicted. Other losses take noise in every cell for granted, and all cells
        are predicted. Nothing else is smoothed, unlike ``low_rank_``; a row of the training data gets its row of that.

        A frame if ``set_output`` says so.
        """
        check_is_fitted(self)
        return as_asked(self, answers_of(self, X).denoise(X), X)

    def inverse_transform(self, X):
        """Return the data, in the units of the training data, that the rows of an embedding stand for.

        A frame if ``set_output`` says so.
        """
        check_is_fitted(self)
        return as_asked(self, inverted(self, X), X)

    def _fit(self, X, *, multiples: tuple[float, float] = (1.0, 1.0)) -> None:
        """Fit; automatic gammas take these multiples."""
        with StageReport(self.verbose) as report:
            prepared = prepare(X, self, report=report, multiples=multiples)
            solved, results = prepared.fit((self.gamma1, self.gamma2))
            self.__dict__.update(results)
        solution = solved.solution
        self.gamma1_, self.gamma2_ = solved.gammas
        self.n_iter_, self.converged_, self.status_ = solution.n_iter, solution.converged, solution.status
        self.duality_gap_, self.objective_, self.history_ = solution.gap, solution.objective, solution.history
        self.n_refine_, self.backend_, self.timings_ = solved.n_refine, solution.backend, prepared.clock.seconds

    def fit_transform(self, X, y=None):
        """Fit and return ``embedding_``, the training samples in the principal directions."""
        return self.fit(X).embedding_

    def report(self, path=None, **more):
        """Write one self-contained HTML page about the fit: words, images, tables, plots.

        Parameters
        ----------
        path : path, optional
            The file to write. Without it, the page is returned as an object that a notebook shows.
        **more
            Fields of :class:`frpcag.report.Fit` to add, such as ``labels`` of the samples, ``title``, or
            ``feature_shape``, the height and width of the image behind a row.

        Returns
        -------
        Path or InlineReport
        """
        check_is_fitted(self)
        from frpcag.report import Fit, InlineReport, render_report, write_report

        fit = Fit.of_model(self, **more)
        return InlineReport(render_report(fit)) if path is None else write_report(path, fit)

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._card()

    def _repr_mimebundle_(self, **kwargs) -> dict[str, str]:
        """Return what a notebook shows: scikit-learn's diagram and, once fitted, what came of it."""
        shown = super()._repr_mimebundle_(**kwargs)
        return shown | {"text/html": shown["text/html"] + self._card()} if "text/html" in shown else shown

    def _card(self) -> str:
        if not hasattr(self, "low_rank_") or is_dask(self.low_rank_):
            return ""
        from frpcag.report import fit_card

        return fit_card(self)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self):
        return accepts_matrices(super().__sklearn_tags__())
