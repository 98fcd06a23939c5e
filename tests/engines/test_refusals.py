"""Every engine refuses the same arguments and matrices, with the same exception, in the same words."""

import re
import warnings
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from frpcag import FRPCAG, FRPCAGCV, DaskBackend, FRPCAGClustering, RobustGraphImputer, build_graph
from frpcag.engines.base import UnitsWarning
from support.engines import BY_INPUT, ENGINES, OTHERS, REFERENCE, N, P, clusters, known, needs, on_host, over

NAN, INF = np.nan, np.inf

# Values of the arguments of FRPCAG that fit no matrix of N rows and P columns, and what goes with them.
BAD_VALUES = {
    "n_components": [0, -1, 1.5, "x", True, P + 1],
    "gamma1": [-1, NAN, "x", INF, True, None],
    "gamma2": [-1, NAN, "x", INF, True, None],
    "n_neighbors": [0, -1, 2.5, "x", True, None],
    "metric": ["x", None, 3],
    "sigma": [0, -1, "x", NAN, True],
    "laplacian": ["x", None],
    "loss": ["x", None],
    "huber_delta": [0, NAN, "x"],
    "center": ["no", 1, None],
    "scale": ["no", 1, None],
    "n_refine": [-1, 1.5, "x", True],
    "tol": [-1, NAN, "x"],
    "max_iter": [0, 1.5, "x"],
    "stop": ["x", None],
    "backend": ["x", 3, None],
    "random_state": ["x"],
    "n_jobs": [0, 1.5, "x"],
    "callback": [3],
}
BAD_GRAPHS = {
    "unknown": "foo",
    "number": 3,
    "other-size": np.ones((7, 7)),
    "not-square": np.ones((2, 5)),
    "graph-of-other-size": build_graph(clusters()[:7], n_neighbors=2),
}


def _bad_arguments():
    """Return what to pass, by name: one bad argument each, with those that make it matter."""
    bad = {f"{name}={value!r}": {name: value} for name, values in BAD_VALUES.items() for value in values}
    for name, n in (("sample_graph", N), ("feature_graph", P)):
        graphs = BAD_GRAPHS | {
            "one-sided": np.triu(np.ones((n, n))),
            "negative": -np.ones((n, n)),
            "nan": np.full((n, n), NAN),
        }
        bad |= {f"{name}={kind}": {name: graph} for kind, graph in graphs.items()}
    shapes = [None, (3, 3), (8,), (2.0, 4.0), "x"]
    bad |= {f"feature_shape={shape!r}": {"feature_graph": "grid", "feature_shape": shape} for shape in shapes}
    return bad


BAD_ARGUMENTS = _bad_arguments()


def with_entry(value, *, row=3, column=2, dtype=np.float64):
    """Return a matrix with one entry, row or column replaced."""
    X = clusters().astype(dtype)
    X[row, column] = value
    return X


ALL = slice(None)

# Matrices that no engine can fit, and the arguments that go with them.
BAD_MATRICES = {
    "one-dimension": (lambda: clusters()[:, 0], {}),
    "three-dimensions": (lambda: clusters().reshape(5, 6, P), {}),
    "no-rows": (lambda: np.empty((0, P)), {}),
    "no-columns": (lambda: np.empty((N, 0)), {}),
    "one-row": (lambda: clusters()[:1], {}),
    "infinite": (lambda: with_entry(INF), {}),
    "infinite-float32": (lambda: with_entry(-INF, dtype=np.float32), {}),
    "empty-row": (lambda: with_entry(NAN, column=ALL), {}),
    "empty-column": (lambda: with_entry(NAN, row=ALL), {}),
    "all-missing": (lambda: np.full((N, P), NAN), {}),
    "words": (lambda: with_entry("word", dtype="U20"), {}),
    "words-in-objects": (lambda: with_entry("word", dtype=object), {}),
    "digits-as-strings": (lambda: clusters().astype(str), {}),
    "complex": (lambda: clusters().astype(complex), {}),
    "end-of-float32": (lambda: with_entry(1e38, dtype=np.float32), {}),
    "end-of-float64": (lambda: with_entry(1e308), {}),
    "end-of-float32-throughout": (lambda: (1e37 * clusters()).astype(np.float32), {}),
    "end-of-float64-throughout": (lambda: 1e307 * clusters(), {}),
    "end-of-float32-uncentred": (lambda: with_entry(1e38, dtype=np.float32), {"center": False}),
    "end-of-float64-scaled": (lambda: with_entry(1e308), {"scale": True}),
    "too-small-for-auto": (lambda: 1e-310 * clusters(), {}),
}

# The reference quotes entries of the matrix. An engine that has not read it says this: engine, matrix, words.
OWN_WORDS = [
    ("dask", "one-dimension", r"X has shape \(30,\); it must have two dimensions, at least 2 rows and 1 column\."),
    (
        "dask",
        "words|words-in-objects|complex",
        r"X has dtype \S+ but must hold real numbers; convert it, such as by .*",
    ),
]

SEED = "random_state is looked at only by an approximate search"
THREADS = "n_jobs is not looked at"
SHAPE = "the engine checks the shape itself, in words of its own"
INFINITE = "the engine looks for infinities itself, in words of its own"
GIVEN = "Dask looks at given graphs itself, in words of its own"
RANGE = "only the host checks the range in preprocessing"

# Engine, argument or matrix, and fact ("refused", with ValueError, or "words") as regular expressions; then the cause.
HOLES: list[tuple[str, ...]] = []


@cache  # the reference is asked once for all engines
def outcome(engine, case):
    """Return type and words of the exception that a fit raises; (None, "") if it raises none."""
    how = ENGINES[engine]
    make, params = BAD_MATRICES[case] if case in BAD_MATRICES else (clusters, BAD_ARGUMENTS[case])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)  # a word about the columns may come before the refusal
        try:
            FRPCAG(**{"backend": how.backend, "n_neighbors": 4, "n_jobs": 1, **params}).fit(how.load(make()))
        except Exception as error:
            return type(error), str(error)
    return None, ""


def grid(fact, bad, engines):
    """Parametrise a test over the engines and what they must refuse."""
    return pytest.mark.parametrize(
        ("engine", "case"),
        [
            pytest.param(engine, case, marks=[*needs(engine), *known(HOLES, engine, case, fact)], id=f"{engine}-{case}")
            for engine in engines
            for case in bad
            if bad is BAD_ARGUMENTS or ENGINES[engine].takes(BAD_MATRICES[case][0]())
        ],
    )


@grid("refused", BAD_ARGUMENTS, ENGINES)
def test_every_engine_refuses_bad_arguments(engine, case):
    assert outcome(engine, case)[0] is ValueError


@grid("words", BAD_ARGUMENTS, OTHERS)
def test_every_engine_refuses_bad_arguments_in_the_same_words(engine, case):
    assert outcome(REFERENCE, case)[0] is not None
    assert outcome(engine, case) == outcome(REFERENCE, case)


@grid("refused", BAD_MATRICES, ENGINES)
def test_every_engine_refuses_bad_matrices(engine, case):
    assert outcome(engine, case)[0] is ValueError


@grid("words", BAD_MATRICES, OTHERS)
def test_every_engine_refuses_bad_matrices_in_the_same_words(engine, case):
    found, wanted = outcome(engine, case), outcome(REFERENCE, case)
    assert wanted[0] is not None
    own = [words for name, cases, words in OWN_WORDS if name == engine and re.fullmatch(cases, case)]
    assert found == wanted or any(re.fullmatch(words, found[1]) for words in own)


# Backends that do not take a type of matrix, and the words for both.
MISMATCHES = {
    "tensor": ("PyTorch tensors", ["numpy", "numba", "dask", "DaskBackend"]),
    "dask": ("Dask arrays", ["numpy", "numba", "torch"]),
}


def name_of(backend):
    return "dask" if backend == "DaskBackend" else backend


@pytest.mark.parametrize(
    ("engine", "backend"),
    [
        pytest.param(engine, backend, marks=[*needs(engine), *needs(name), *known(HOLES, engine, backend, "mismatch")])
        for engine, (_, backends) in MISMATCHES.items()
        for backend, name in zip(backends, map(name_of, backends), strict=True)
    ],
)
def test_a_backend_refuses_matrices_of_another_engine(engine, backend):
    X = ENGINES[engine].load(clusters())
    with pytest.raises(
        ValueError, match=f"^backend='{name_of(backend)}' does not take {MISMATCHES[engine][0]}; pass backend="
    ):
        FRPCAG(backend=DaskBackend() if backend == "DaskBackend" else backend).fit(X)


@pytest.mark.parametrize("engine", over(ENGINES, "max_iter", "clean", holes=HOLES))
def test_a_refused_fit_leaves_the_model_unfitted(engine):
    model = FRPCAG(backend=ENGINES[engine].backend, max_iter="x")
    with pytest.raises(ValueError, match="max_iter='x' must be"):
        model.fit(ENGINES[engine].load(clusters()))
    # scikit-learn's validation notes the columns first.
    assert {name for name in vars(model) if name.endswith("_")} <= {"n_features_in_"}


@pytest.mark.parametrize("engine", over(BY_INPUT))
@pytest.mark.parametrize("name", ["multiples1", "multiples2"])
@pytest.mark.parametrize("value", [[], [-1.0], [NAN], [INF], ["one"], None, 1.0, "x"], ids=repr)
def test_every_engine_refuses_bad_multiples(engine, name, value):
    with pytest.raises(ValueError) as refused:
        FRPCAGCV(**{name: value}).fit(ENGINES[engine].load(clusters()))
    assert str(refused.value) == f"{name}={value!r} must be a sequence of finite numbers >= 0, at least one."


@pytest.mark.parametrize("engine", over(BY_INPUT))
@pytest.mark.parametrize("value", [0, 1, 1.5, -0.5, NAN, "x", None], ids=repr)
def test_every_engine_refuses_bad_shares_to_hold_out(engine, value):
    with pytest.raises(ValueError) as refused:
        FRPCAGCV(holdout=value).fit(ENGINES[engine].load(clusters()))
    assert str(refused.value) == f"holdout={value!r} must be a share in (0, 1) of the observed entries."


# Estimators on top of FRPCAG, which know the engine by the matrix. Where one has no way for it, it refuses in words.
ESTIMATORS = {
    "cv": lambda X: FRPCAGCV(multiples1=(0.3, 1.0), multiples2=(0.3,), random_state=0).fit(X).cv_results_["error"],
    "clustering": lambda X: FRPCAGClustering(3, random_state=0).fit(X).labels_,
    "imputer": lambda X: RobustGraphImputer(FRPCAG(n_neighbors=4)).fit(X).transform(X),
}
TAKES = {("tensor", name) for name in ESTIMATORS} | {("dask", "clustering"), ("dask", "cv")}


@pytest.mark.parametrize(
    ("engine", "name"),
    [
        pytest.param(engine, name, marks=[*needs(engine), *known(HOLES, engine, name, "inputs")])
        for engine in BY_INPUT
        if engine != REFERENCE
        for name in ESTIMATORS
    ],
)
def test_other_estimators_give_the_reference_or_refuse_in_words(engine, name):
    wanted, X = ESTIMATORS[name](clusters(missing=0.1)), ENGINES[engine].load(clusters(missing=0.1))
    if (engine, name) in TAKES:
        assert_allclose(on_host(ESTIMATORS[name](X)), wanted, rtol=1e-6)
    else:
        with pytest.raises((ValueError, NotImplementedError), match=r"(?i)\bdask\b"):
            ESTIMATORS[name](X)
