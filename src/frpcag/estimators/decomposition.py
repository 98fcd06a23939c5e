"""FRPCAG: the whole flow from ``X`` to clean data and components, one call per stage."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from frpcag.backends import is_tensor, select_backend
from frpcag.clock import Clock
from frpcag.data.preprocess import center_and_scale, restore, validate_matrix
from frpcag.data.row_chunks import is_dask
from frpcag.factorize import check_n_components, gram_svd
from frpcag.graphs import Graph, build_graph
from frpcag.memory import require_memory_for
from frpcag.new_rows import NewRowsMixin
from frpcag.problem import Problem, scale_free_gamma
from frpcag.saved import SavedModel
from frpcag.solvers import Progress, Solution, solve

Array = np.ndarray


class FRPCAG(NewRowsMixin, SavedModel, ClassNamePrefixFeaturesOutMixin, BaseEstimator):
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
    sample_graph, feature_graph : str, sparse matrix, Graph, transformer or None, default="auto"
        "auto", "exact" (the paper's strategy 1), "approximate" (strategy 2), "grid" (features are pixels, with
        ``feature_shape``), a symmetric adjacency, a :class:`Graph`, an object with the interface of scikit-learn's
        ``KNeighborsTransformer``, or None to drop the term. The paper's graph types are A ("exact", "exact"),
        B ("exact", "approximate") and C ("approximate", "approximate").
    sigma : "auto" or float, default="auto"
        Width of the Gaussian edge weights; "auto" is the mean distance of connected nodes.
    laplacian : {"normalized", "combinatorial"}, default="normalized"
        "normalized" is the paper's, for clustering; "combinatorial" keeps levels, for data whose level matters.
    loss : {"l1", "l2", "huber"}, default="l1"
        The data term: absolute, squared, or Huber's.
    huber_delta : float, default=1.0
        Where Huber's loss turns linear, in units of the centred and scaled data.
    center, scale : bool, default=True and False
        Subtract the mean of each feature; divide by its standard deviation.
    n_refine : int or "auto", default=0
        How often at most the graphs are rebuilt from ``U`` and the problem solved again; it ends early when the sample
        graph keeps nine tenths of its edges. "auto" refines once, and only if ``U`` keeps fewer than half of the edges
        of ``X``: the graph of ``X`` was then mostly noise. On clean data refinement blurs.
    tol : float, default=1e-3
        Tolerance of ``stop``.
    max_iter : int, default=500
        Limit of solver steps; reaching it warns with the gap reached.
    stop : {"gap", "change"}, default="gap"
        Stop on the relative duality gap, or on the change of the iterates as the paper does.
    backend : {"auto", "numpy", "numba", "torch", "dask"} or DaskBackend, default="auto"
        Who does the arithmetic. "torch" does graphs, solve and factors on the GPU where there is one; "dask" does them
        on the workers of the current Dask client, row block by row block; a
        `frpcag.backends.dask_backend.DaskBackend` also says where checkpoints and results go. "auto" takes torch for
        tensors, Dask for Dask arrays and Numba for others.
    feature_shape : (int, int), optional
        Height and width of the image behind a row, for ``feature_graph="grid"``.
    random_state : int, RandomState or None
        Seed of the approximate neighbour search. The solver is deterministic.
    n_jobs : int, optional
        Number of threads, all cores by default. Results do not depend on it.
    callback : callable, optional
        Called after every solver step with a ``Progress(n_iter, max_iter, change, gap, objective, tol)``; a true
        return value stops the fit early with a valid, certified result, as Ctrl-C does.

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
        sigma: str | float = "auto",
        laplacian: str = "normalized",
        loss: str = "l1",
        huber_delta: float = 1.0,
        center: bool = True,
        scale: bool = False,
        n_refine: int | str = 0,
        tol: float = 1e-3,
        max_iter: int = 500,
        stop: str = "gap",
        backend: str = "auto",
        feature_shape: tuple[int, int] | None = None,
        random_state=None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], object] | None = None,
    ):
        self.n_components = n_components
        self.gamma1 = gamma1
        self.gamma2 = gamma2
        self.n_neighbors = n_neighbors
        self.sample_graph = sample_graph
        self.feature_graph = feature_graph
        self.sigma = sigma
        self.laplacian = laplacian
        self.loss = loss
        self.huber_delta = huber_delta
        self.center = center
        self.scale = scale
        self.n_refine = n_refine
        self.tol = tol
        self.max_iter = max_iter
        self.stop = stop
        self.backend = backend
        self.feature_shape = feature_shape
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.callback = callback

    def fit(self, X, y=None):
        """Find the clean part of ``X`` and its components.

        Parameters
        ----------
        X : array-like, sparse matrix, torch tensor or Dask array of shape (n_samples, n_features)
            The data. float32 stays float32; other types become float64. NaN is missing: such entries have no data term,
            distances are taken over what two samples or features have in common, and ``low_rank_`` predicts them. Of a
            tensor, all results are tensors on its device; of a Dask array, those of its size are Dask arrays. With
            ``backend="dask"`` also a zarr or HDF5 array, a memory map, or the path of a ``.npy`` or ``.zarr``.
        y : None
            Ignored.

        Returns
        -------
        FRPCAG
            The fitted estimator.
        """
        if self.backend == "torch" or is_tensor(X):
            return self._fit_tensor(X)
        if is_dask(X) or getattr(self.backend, "name", self.backend) == "dask":
            return self._fit_blocks(X)
        require_memory_for(X, self.n_neighbors, backend=self.backend)
        X = validate_matrix(self, X, reset=True)
        check_n_components(self.n_components, *X.shape)
        clock = Clock()
        Xc, self.center_, self.scale_ = center_and_scale(X, center=self.center, scale=self.scale)
        clock.lap("preprocess")
        solution = self._solve_refined(Xc, clock)
        del Xc
        # The clean part of centred data is not itself centred: the normalised Laplacian pulls towards sqrt(degree).
        U = solution.U
        origin = U.mean(axis=0, dtype=np.float64) if self.center else np.zeros(U.shape[1])
        U -= origin.astype(U.dtype)
        self.mean_ = self.center_ + origin * self.scale_
        W, Sigma, V = gram_svd(U, self.n_components, random_state=self.random_state)
        self.embedding_, self.components_, self.singular_values_ = W * Sigma, V.T, Sigma
        clock.lap("factorize")
        self.low_rank_ = restore(U, self.mean_, self.scale_)
        self.sparse_ = np.asarray(X - self.low_rank_)
        np.nan_to_num(self.sparse_, copy=False, nan=0.0)
        self._note(solution, clock)
        return self

    def _fit_tensor(self, X):
        """Do the same on PyTorch tensors, on their device; the results are NumPy arrays if ``X`` was one."""
        select_backend(self.backend, X=X)  # says what is missing
        from frpcag import gpu

        clock = Clock(gpu.torch.cuda.synchronize if gpu.torch.cuda.is_available() else None)
        tensor = gpu.load_matrix(self, X)
        check_n_components(self.n_components, *tensor.shape)
        Xc, self.center_, self.scale_ = gpu.center_and_scale(tensor, center=self.center, scale=self.scale)
        clock.lap("preprocess")
        solution = self._solve_refined(Xc, clock)
        del Xc
        gpu.finish(self, tensor, solution.U)
        clock.lap("factorize")
        if not is_tensor(X):
            vars(self).update(vars(gpu.to_host(self)))
            clock.lap("unload")
        self._note(solution, clock)
        return self

    def _fit_blocks(self, X):
        """Do the same on row blocks, on the workers of a Dask cluster."""
        name = getattr(self.backend, "name", self.backend)
        if name not in ("auto", "dask"):
            raise ValueError(f"backend={name!r} does not take Dask arrays; pass backend='dask' or X.compute().")
        select_backend("dask")  # says what is missing
        from frpcag import outofcore

        clock = Clock()
        self._note(outofcore.fit(self, X, clock), clock)
        return self

    def _note(self, solution: Solution, clock: Clock) -> None:
        """Keep what the solver says of its run."""
        self.n_iter_, self.converged_, self.status_ = solution.n_iter, solution.converged, solution.status
        self.backend_ = solution.backend
        self.duality_gap_, self.objective_, self.history_ = solution.gap, solution.objective, solution.history
        self.timings_ = clock.seconds

    def fit_transform(self, X, y=None):
        """Fit and return ``embedding_``, the training samples in the principal directions."""
        return self.fit(X).embedding_

    def report(self, path, **more):
        """Write one self-contained HTML page about the fit: words, images, tables, plots, diagnostics.

        Parameters
        ----------
        path : path
            The file to write.
        **more
            Fields of :class:`frpcag.report.Fit` to add, such as ``labels`` of the samples, ``title``, or ``shape``, the
            height and width of the image behind a row.

        Returns
        -------
        Path
        """
        check_is_fitted(self)
        from frpcag.report import Fit, write_report

        return write_report(path, Fit.of_model(self, **more))

    def _solve_refined(self, Xc: Array, clock: Clock) -> Solution:
        """Solve, and again on the graphs of the solution as often as ``n_refine`` asks for."""
        limit, enough = _refinement(self.n_refine)
        solution, self.n_refine_ = self._solve(Xc, Xc, clock), 0
        while self.n_refine_ < limit and self._edges_kept(solution.U, clock) < enough:
            solution = self._solve(Xc, solution.U, clock)
            self.n_refine_ += 1
        return solution

    def _solve(self, Xc: Array, basis: Array, clock: Clock) -> Solution:
        """Build both graphs from ``basis``, ``Xc`` itself or its clean part, choose the gammas, and solve."""
        self.sample_graph_ = self._graph(basis, 0, self.sample_graph)
        clock.lap("sample_graph")
        self.feature_graph_ = self._graph(basis, 1, self.feature_graph)
        clock.lap("feature_graph")
        L1, L2 = (graph.laplacian if graph is not None else None for graph in (self.sample_graph_, self.feature_graph_))
        self.gamma1_, self.gamma2_ = self._gammas(Xc, L1, L2)
        clock.lap("gammas")
        null1, null2 = (
            graph.null_vector if graph is not None else None for graph in (self.sample_graph_, self.feature_graph_)
        )
        problem = _problem_type(Xc)(
            Xc, L1, L2, self.gamma1_, self.gamma2_, loss=self.loss, delta=self.huber_delta, null1=null1, null2=null2
        )
        solution = solve(
            problem,
            tol=self.tol,
            max_iter=self.max_iter,
            stop=self.stop,
            backend=self.backend,
            n_jobs=self.n_jobs,
            callback=self.callback,
            U0=None if basis is Xc else basis,
        )
        clock.lap("solve")
        return solution

    def _gammas(self, Xc: Array, L1, L2) -> tuple[float, float]:
        """Return the weights of the two graph terms."""
        return (
            _resolve_gamma("gamma1", self.gamma1, L1, Xc, axis=0),
            _resolve_gamma("gamma2", self.gamma2, L2, Xc, axis=1),
        )

    def _edges_kept(self, U: Array, clock: Clock) -> float:
        """Return the share of the sample graph's edges that the graph of ``U`` has too."""
        graph, fresh = self.sample_graph_, self._graph(U, 0, self.sample_graph)
        clock.lap("refine")
        return 1.0 if graph is None or fresh is None else graph.edges_kept_by(fresh)

    def _graph(self, X: Array, axis: int, method) -> Graph | None:
        n_nodes = X.shape[axis]
        if method is None or (isinstance(method, str) and method == "auto" and n_nodes == 1):
            return None
        k = self.n_neighbors
        if isinstance(k, Integral) and k >= n_nodes:
            k = n_nodes - 1
            if axis == 0:  # the two graphs share n_neighbors, so few features are no reason to complain
                warnings.warn(
                    f"n_neighbors={self.n_neighbors} is not smaller than n_samples={n_nodes}; using {k}.",
                    stacklevel=4,
                )
        return build_graph(
            X,
            axis=axis,
            n_neighbors=k,
            method=method,
            sigma=self.sigma,
            laplacian=self.laplacian,
            shape=self.feature_shape,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _check_loaded(self) -> None:
        (n, p), c = self.low_rank_.shape, len(self.components_)
        shapes = {
            "sparse_": (n, p),
            "embedding_": (n, c),
            "components_": (c, p),
            "singular_values_": (c,),
            **dict.fromkeys(("mean_", "center_", "scale_"), (p,)),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")
        for name, n_nodes in (("sample_graph_", n), ("feature_graph_", p)):
            graph = getattr(self, name)
            if graph is not None and graph.n_nodes != n_nodes:
                raise ValueError(f"{name} has {graph.n_nodes} nodes, not {n_nodes}")

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _problem_type(X) -> type[Problem]:
    """Return the class of problems for arrays or for tensors."""
    if not is_tensor(X):
        return Problem
    from frpcag.backends.torch_backend import TensorProblem

    return TensorProblem


def _refinement(n_refine) -> tuple[int, float]:
    """Return how often to refine at most, and the share of edges kept at which there is nothing left to do."""
    if isinstance(n_refine, str) and n_refine == "auto":
        return 1, 0.5
    if isinstance(n_refine, Integral) and not isinstance(n_refine, bool) and int(n_refine) >= 0:
        return int(n_refine), 0.9
    raise ValueError(f"n_refine={n_refine!r} must be 'auto' or an integer >= 0.")


def _resolve_gamma(name: str, gamma, L, X: Array, axis: int) -> float:
    if isinstance(gamma, str):
        if gamma != "auto":
            raise ValueError(f"{name}={gamma!r} is unknown; pass 'auto' or a number >= 0.")
        return scale_free_gamma(L, X, axis=axis)
    if not isinstance(gamma, Real) or isinstance(gamma, bool) or not 0 <= float(gamma) < np.inf:
        raise ValueError(f"{name}={gamma!r} must be 'auto' or a finite number >= 0.")
    return float(gamma)
