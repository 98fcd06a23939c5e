"""Seeded cases for the fuzzer: an entry point, an odd input, random arguments, and the verdict on what came of it.

``run_case(seed, folder)`` gives one record. Its outcome is "ok" (a right answer), "error" (a clear refusal of what may
or must be refused) or "FAIL" (anything else: a wrong or unchecked answer, a changed input, a warning nobody documented,
an error from the inside of some library, a valid input refused, an invalid one accepted).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from reproduction import block_occlusion, missing_pixels, salt_and_pepper
from reproduction.evaluate import clustering_error, clustering_scores, outlier_scores, relative_error
from reproduction.evaluate.foreground import best_threshold, mask_scores

from frpcag import (
    FRPCAG,
    FRPCAGCV,
    BackgroundSeparator,
    FRPCAGClustering,
    Problem,
    RobustGraphImputer,
    build_graph,
    regularization_path,
    solve,
)
from support import fuzz_cli, fuzz_params
from support.fuzz_arrays import KINDS, dense, fingerprint, low_rank, make
from support.fuzz_oracles import (
    check_gap,
    check_graph,
    check_model,
    check_solution,
    host,
    judge_error,
    judge_warnings,
    require,
)
from support.oracles import null_vector, random_laplacian

Array = np.ndarray
Generator = np.random.Generator


@dataclass
class Case:
    """One call: ``expect`` is "ok", "error" or "either", ``names`` what an error must name."""

    entry: str
    kind: str
    call: Callable[[], None]
    expect: str = "either"
    inputs: list[Any] = field(default_factory=list)
    names: tuple[str, ...] = ()


def case(seed: int, folder: Path) -> Case:
    """Return the case of a seed; files go to ``folder``."""
    rng = np.random.default_rng(seed)
    entry = str(rng.choice(list(ENTRIES), p=_SHARES))
    return ENTRIES[entry][1](rng, entry, folder)


def run_case(seed: int, folder: Path) -> dict[str, Any]:
    """Return the record of a seed."""
    one = case(seed, folder)
    before = [fingerprint(X) for X in one.inputs]
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            one.call()
        except BaseException as raised:
            if isinstance(raised, (KeyboardInterrupt, SystemExit)):
                raise
            error = raised
    verdict = _verdict(one, error, caught)
    if [fingerprint(X) for X in one.inputs] != before:
        verdict = verdict or "the input was changed"
    outcome = "FAIL" if verdict else "ok" if error is None else "error"
    said = verdict if verdict else "" if error is None else str(error)
    if verdict and error is not None:
        said = f"{verdict} | {type(error).__name__}: {error}"
    return {
        "seed": seed,
        "entry": one.entry,
        "kind": one.kind,
        "outcome": outcome,
        "said": " ".join(said.split())[:240],
    }


def _verdict(one: Case, error: BaseException | None, caught: list[Any]) -> str | None:
    """Return what is wrong with an outcome, None for nothing."""
    if error is None:
        if one.expect == "error":
            return "accepted what must be refused"
        return judge_warnings(caught)
    if type(error).__name__ == "Wrong":
        return "wrong answer"
    if one.expect == "ok":
        return "refused a valid input"
    if problem := judge_error(error):
        return problem
    if one.names and not any(name in str(error) for name in one.names):
        return f"the message does not name {one.names[0]}"
    return judge_warnings(caught)


# ------------------------------------------------------------------------------------------- what the entries draw


def _matrix(rng: Generator, kinds: list[str] | None = None) -> tuple[str, Any, str]:
    kind = str(rng.choice(list(KINDS) if kinds is None else kinds))
    return kind, make(rng, kind), KINDS[kind].expect


def _shape(X: Any) -> tuple[int, int]:
    """Return a shape to draw arguments for, whatever X is."""
    shape = np.shape(X) if isinstance(X, (np.ndarray, list)) and not _ragged(X) else getattr(X, "shape", (12, 6))
    return (int(shape[0]), int(shape[1])) if len(shape) == 2 and min(shape) > 0 else (12, 6)


def _ragged(X: Any) -> bool:
    return isinstance(X, list) and len({len(row) for row in X}) > 1


def _estimator_case(rng: Generator, entry: str, use: Callable, *, own: dict[str, list[Any]], names: list[str]) -> Case:
    """Return a case of an estimator: an odd matrix with valid arguments, or a plain one with one that is not."""
    if rng.random() < 0.25:
        name = str(rng.choice([*names, *own]))
        value = fuzz_params.INVALID[name][int(rng.integers(len(fuzz_params.INVALID[name])))]
        X = low_rank(rng, 16, 8)
        # Huber's delta is looked at where there is one.
        params = {name: value, **({"loss": "huber"} if name == "huber_delta" else {})}
        mentions = (name, *fuzz_params.SYNONYMS.get(name, ()))
        return Case(entry, f"invalid {name}", lambda: use(X, params, rng), "error", [X], mentions)
    kind, X, expect = _matrix(rng)
    n, p = _shape(X)
    params = {} if rng.random() < 0.25 else fuzz_params.draw(rng, n, p, tuple(names))
    for name, values in own.items():
        if rng.random() < 0.5:
            params[name] = values[int(rng.integers(len(values)))]
    if expect == "ok" and params:
        expect = _expect(kind, params)
    if entry == "path" and kind.startswith("missing-"):
        expect = "either"  # a given graph predicts what has no observed entry
    if entry == "cv" and hasattr(params.get("sample_graph"), "fit_transform"):
        expect = "either"  # scikit-learn's search does not take the entries that are held out
    if entry == "build_graph" and (
        kind.startswith("missing") or kind == "one-row" or (expect == "ok" and _few_nodes(X, params))
    ):
        expect = "either"  # a graph needs its own axis observed, and more nodes than neighbours
    return Case(entry, kind, lambda: use(X, params, rng), expect, [X])


def _expect(kind: str, params: dict[str, Any]) -> str:
    """Return what valid arguments make of a kind that is right in itself."""
    tensor, torch = kind.startswith("tensor"), params.get("backend") == "torch"
    # Given graphs, scales and other backends may rule out what is right by default; then the message must say so.
    awkward = tensor and params.get("backend", "auto") not in ("auto", "torch")
    transformer = hasattr(params.get("sample_graph"), "fit_transform")
    hard = kind in ("1e30", "1e-30", "spike", "offset") or "missing" in kind or kind in ("csr-nan", "one-column")
    few = kind in ("two-rows", "two-by-two", "fewer-than-K")
    large = params.get("gamma1") == 1e6 or params.get("gamma2") == 1e6
    return "either" if awkward or torch or tensor or (transformer and (hard or few)) or (hard and large) else "ok"


def _few_nodes(X: Any, params: dict[str, Any]) -> bool:
    return dense(X).shape[params.get("axis", 0)] <= params.get("n_neighbors", 1)


def _fit(entry: str) -> Callable:
    def use(X: Any, params: dict[str, Any], rng: Generator) -> None:
        model = FRPCAG(**params)
        if entry == "fit_transform":
            embedding = model.fit_transform(X)
            require(embedding is model.embedding_, "fit_transform is not embedding_")
        else:
            require(model.fit(X) is model, "fit does not return the estimator")
        check_model(model, X)
        if entry in ("transform", "denoise"):
            _check_new_rows(model, X, entry, rng)
        if entry == "inverse_transform":
            back = host(model.inverse_transform(model.embedding_))
            require(back.shape == host(model.low_rank_).shape and np.isfinite(back).all(), "inverse_transform")

    return lambda rng, entry, folder: _estimator_case(rng, entry, use, own={}, names=_FRPCAG_ARGUMENTS)


def _check_new_rows(model: Any, X: Any, method: str, rng: Generator) -> None:
    """Use new rows: the training rows, some rows of them, or rows grossly changed."""
    which = int(rng.integers(3))
    new = X
    if which and isinstance(X, np.ndarray):
        new = np.array(X[: max(1, len(X) // 2)])
        if which == 2 and new.dtype.kind == "f":
            new[0, 0] *= np.float32(-3)
            new[-1] = new[-1] + np.ones((), new.dtype)
    before = fingerprint(new)
    out = host(getattr(model, method)(new))
    width = len(host(model.components_)) if method == "transform" else dense(X).shape[1]
    require(out.shape == (dense(new).shape[0], width), f"{method} has shape {out.shape}")
    require(np.isfinite(out).all(), f"{method} is not finite")
    require(out.dtype == dense(X).dtype.newbyteorder("="), f"{method} has dtype {out.dtype}")
    require(fingerprint(new) == before, f"{method} changed its input")


def composed(cls: Any, params: dict[str, Any]) -> Any:
    """Return an estimator around an FRPCAG, each with the parameters that are its own."""
    own = {name: value for name, value in params.items() if name in cls().get_params(deep=False)}
    model = FRPCAG(**{name: value for name, value in params.items() if name in FRPCAG().get_params()})
    return cls(estimator=model, **own)


def _cluster(X: Any, params: dict[str, Any], rng: Generator) -> None:
    model = composed(FRPCAGClustering, {"n_clusters": 2, "n_init": 2, **params})
    labels = host(model.fit_predict(X))
    require(labels.shape == (dense(X).shape[0],) and labels.dtype.kind == "i", f"labels {labels.dtype} {labels.shape}")
    require(labels.min() >= 0 and labels.max() < model.n_clusters, "labels out of range")
    if model.missing_share_ == np.isnan(dense(X)).mean():  # else cells that were overwritten count as missing
        check_model(model.estimator_, X)


def _impute(X: Any, params: dict[str, Any], rng: Generator) -> None:
    model = RobustGraphImputer(FRPCAG(**params) if params or rng.random() < 0.5 else None)
    filled = host(model.fit_transform(X))
    X_in = dense(X)
    require(filled.shape == X_in.shape and np.isfinite(filled).all(), "not filled")
    seen = ~np.isnan(X_in)
    require((filled[seen] == X_in[seen]).all(), "observed entries were changed")


def _cv(X: Any, params: dict[str, Any], rng: Generator) -> None:
    model = composed(FRPCAGCV, {"multiples1": (0.1, 1.0), "multiples2": (1.0,), "random_state": 0, **params}).fit(X)
    check_model(model.estimator_, X)
    require(all(np.isfinite(values).all() for values in model.cv_results_.values()), "cv_results_ is not finite")


def _path(X: Any, params: dict[str, Any], rng: Generator) -> None:
    params = {"gammas1": [0.1, 1.0], "gammas2": [0.5], "max_iter": 50, **params}
    gammas1, gammas2 = params.pop("gammas1"), params.pop("gammas2")
    points = list(regularization_path(X, gammas1, gammas2, estimator=FRPCAG(**params)))
    require(len(points) == len(gammas1) * len(gammas2), "not all pairs were visited")
    for point in points:
        require(point.solution.U.shape == dense(X).shape, "U has another shape")
        require(np.isfinite(point.solution.U).all(), "U is not finite")
        check_gap(point.solution.gap, point.solution.converged, "gap", params.get("tol", 1e-3))


def _graph(X: Any, params: dict[str, Any], rng: Generator) -> None:
    params = {"n_neighbors": 1, **params}
    check_graph(build_graph(X, **params), dense(X).shape[params.get("axis", 0)])


def _of(use: Callable, own: dict[str, list[Any]], names: list[str]) -> Callable:
    return lambda rng, entry, folder: _estimator_case(rng, entry, use, own=own, names=names)


# ------------------------------------------------------------------------------------------- frames


def _frames(rng: Generator) -> tuple[str, Any, str]:
    """Return odd clips."""
    n, h, w = (int(size) for size in rng.integers((4, 3, 3), (16, 12, 12)))
    clip = rng.normal(100, 3, (n, h, w))
    clip[:, : h // 2, : w // 2] += 80 * (rng.random((n, 1, 1)) < 0.2)
    colour = np.repeat(clip[..., None], 3, axis=3) * (1, 0.5, 0.7)
    fixed = clip.copy()
    fixed.flags.writeable = False
    holed = clip.copy()
    holed[1, 1, 1] = np.nan
    endless = clip.copy()
    endless[1, 1, 1] = np.inf
    kinds: dict[str, tuple[Any, str]] = {
        "uint8": (clip.astype(np.uint8), "ok"),
        "uint16": ((clip * 100).astype(np.uint16), "ok"),
        "int64": (clip.astype(np.int64), "ok"),
        "float32": (clip.astype(np.float32), "ok"),
        "float16": (clip.astype(np.float16), "ok"),
        "float64": (clip, "ok"),
        "bool": (clip > 100, "ok"),
        "colour": (colour, "ok"),
        "colour-uint8": (colour.astype(np.uint8), "ok"),
        "list": (clip.tolist(), "ok"),
        "read-only": (fixed, "ok"),
        "fortran": (np.asfortranarray(clip), "ok"),
        "negative-strides": (clip[::-1, ::-1, ::-1], "ok"),
        "constant": (np.full((n, h, w), 7, np.uint8), "ok"),
        "zeros": (np.zeros((n, h, w)), "ok"),
        "one-pixel": (clip[:, :1, :1], "ok"),
        "one-line": (clip[:, :1], "ok"),
        "one-column": (clip[:, :, :1], "ok"),
        "two-frames": (clip[:2], "ok"),
        "negative": (-clip, "ok"),
        "1e-30": (clip * 1e-30, "either"),
        "1e30": (clip * 1e30, "either"),
        "1e300": (clip * 1e300, "either"),
        "1e36-32": ((clip * 1e34).astype(np.float32), "either"),
        "subnormal": (clip * 1e-312, "either"),
        "uint64": (np.full((n, h, w), 2**64 - 1, np.uint64), "either"),
        "one-frame": (clip[:1], "error"),
        "no-frames": (clip[:0], "error"),
        "no-pixels": (clip[:, :0], "error"),
        "flat": (clip[0], "error"),
        "four-channels": (np.repeat(clip[..., None], 4, axis=3), "error"),
        "five-axes": (clip[None, ..., None], "error"),
        "missing": (holed, "error"),
        "infinite": (endless, "error"),
        "complex": (clip + 1j, "error"),
        "words": (np.full((n, h, w), "a"), "error"),
        "objects": (clip.astype(object), "either"),
        "None": (None, "error"),
        "ragged": ([[[1.0]], [[1.0, 2.0]]], "error"),
    }
    kind = str(rng.choice(list(kinds)))
    return kind, *kinds[kind]


def _background(rng: Generator, entry: str, folder: Path) -> Case:
    names = ["n_neighbors", "gamma1", "threshold", "tol", "max_iter", "backend", "n_jobs", "callback"]
    if rng.random() < 0.25:
        name = str(rng.choice(names))
        value = fuzz_params.INVALID[name][int(rng.integers(len(fuzz_params.INVALID[name])))]
        clip = rng.normal(100, 3, (8, 5, 6))
        return Case(entry, f"invalid {name}", lambda: _separate(clip, {name: value}, "fit"), "error", [clip], (name,))
    kind, clip, expect = _frames(rng)
    values: dict[str, list[Any]] = {
        "n_neighbors": ["auto", 1, np.int64(1)],
        "gamma1": ["auto", 0.0, 0.1, 10],
        "threshold": ["auto", 0, 5.0],
        "tol": [0.05, 1e-3, 0],
        "max_iter": [1, 10, 30],
        "backend": ["auto", "numpy", "numba"],
        "n_jobs": [None, 1, 2],
        "callback": [None, fuzz_params.stop_at_three],
    }
    params = {name: values[name][int(rng.integers(len(values[name])))] for name in names if rng.random() < 0.3}
    return Case(entry, f"frames {kind}", lambda: _separate(clip, params, entry), expect, [clip])


def _separate(clip: Any, params: dict[str, Any], entry: str) -> None:
    model = BackgroundSeparator(**params).fit(clip)
    frames = np.asarray(clip)
    frames = frames.astype(np.uint8) if frames.dtype == bool else frames
    for name in ("background_", "foreground_"):
        A = getattr(model, name)
        require(A.shape == frames.shape and A.dtype == np.float32, f"{name} is {A.dtype} {A.shape}")
        require(np.isfinite(A).all(), f"{name} is not finite")
    require(model.mask_.shape == frames.shape[:3] and model.mask_.dtype == bool, "mask_")
    size = float(np.abs(frames.astype(np.float64)).max())
    off = np.abs(frames.astype(np.float64) - model.background_ - model.foreground_).max()
    require(off <= 1e-6 * size, f"frames are not background_ + foreground_ ({off:.2g})")
    require(np.isfinite([model.noise_, model.gamma1_, model.threshold_]).all(), "a number is not finite")
    check_gap(model.duality_gap_, False, "gap", model.tol)
    if entry == "background transform":
        mask = model.transform(frames)
        require(mask.shape == frames.shape[:3] and mask.dtype == bool, "transform")
        require(model.transform(frames[0]).shape == frames.shape[1:3], "transform of one frame")
        require(np.isfinite(model.background(frames[:1])).all(), "background is not finite")


# ------------------------------------------------------------------------------------------- problems


def _solve(rng: Generator, entry: str, folder: Path) -> Case:
    invalid = rng.random() < 0.25
    X = low_rank(rng, int(rng.integers(1, 25)), int(rng.integers(1, 25)))
    kind, expect = "plain", "ok"
    if not invalid and rng.random() < 0.5:
        kind, X, expect = _matrix(rng, [name for name in KINDS if not name.startswith(("csr", "csc", "coo", "tensor"))])
        expect = "ok" if kind in ("one-row", "missing-row", "missing-column") else expect
    shape = np.shape(X) if not _ragged(X) else ()
    n, p = (shape[0], shape[1]) if len(shape) == 2 else (5, 4)
    graphs = ["normalized", "combinatorial"]
    L1 = random_laplacian(rng, n, str(rng.choice(graphs))) if rng.random() < 0.8 else None
    L2 = random_laplacian(rng, p, str(rng.choice(graphs))) if rng.random() < 0.8 else None
    arguments: dict[str, Any] = {
        "gamma1": float(rng.choice([0.0, 1e-3, 0.3, 3.0, 1e4])),
        "gamma2": float(rng.choice([0.0, 0.3, 3.0])),
        "loss": str(rng.choice(["l1", "l2", "huber"])),
        "null1": null_vector(L1) if n and L1 is not None else None,
        "null2": null_vector(L2) if p and L2 is not None else None,
    }
    if rng.random() < 0.2 and len(shape) == 2 and min(shape) > 0:
        arguments["mask"] = rng.random(shape) < 0.7
        expect = "either"  # the mask may leave nothing
    options: dict[str, Any] = {
        "tol": float(rng.choice([1e-1, 1e-3, 1e-6])),
        "max_iter": int(rng.choice([1, 20, 200])),
        "stop": str(rng.choice(["gap", "change"])),
        "backend": str(rng.choice(["auto", "numpy", "numba"])),
        "restart": bool(rng.integers(2)),
        "step": str(rng.choice(["lanczos", "paper"])) if L1 is None and L2 is None else "lanczos",
    }
    names: tuple[str, ...] = ()
    if invalid:
        bad = {
            **{name: fuzz_params.INVALID[name] for name in ("gamma1", "loss", "tol", "max_iter", "stop", "backend")},
            "mask": [np.ones(X.shape), np.ones((1, 99), bool), "none"],
            "L1": [np.ones((3, 2)), np.triu(np.ones((n, n)), 1), np.full((n, n), np.nan), "graph"][: 4 if n > 1 else 1],
            "U0": [np.zeros((99, 2)), np.full(X.shape, np.nan), "X"],
            "step": ["long", None],
            "n_jobs": fuzz_params.INVALID["n_jobs"],
        }
        name = str(rng.choice(list(bad)))
        value = bad[name][int(rng.integers(len(bad[name])))]
        kind, expect, names = f"invalid {name}", "error", (name,)
        if name == "L1":
            L1 = value
        else:
            (arguments if name in ("gamma1", "loss", "mask") else options)[name] = value
    elif kind in ("1e30", "1e-30", "spike", "offset") or KINDS[kind].expect != "ok":
        expect = "either" if expect == "ok" else expect

    def call() -> None:
        problem = Problem(X, L1, L2, **arguments)
        check_solution(problem, solve(problem, **options), options["stop"], options["tol"])

    return Case(entry, kind, call, expect, [X], names)


# ------------------------------------------------------------------------------------------- numbers and corruption


def _evaluate(rng: Generator, entry: str, folder: Path) -> Case:
    kind, X, _ = _matrix(rng)
    other = X if rng.random() < 0.6 else make(rng, str(rng.choice(list(KINDS))))
    function = [relative_error, outlier_scores, clustering_error, clustering_scores, mask_scores, best_threshold][
        int(rng.integers(6))
    ]
    labels = function in (clustering_error, clustering_scores)
    if labels and rng.random() < 0.7:
        size = int(rng.integers(0, 30))
        X = rng.integers(0, 4, size)
        other = [rng.integers(0, 5, size), np.array(["a", "b"])[rng.integers(0, 2, size)], rng.normal(size=size)][
            int(rng.integers(3))
        ]
    elif function in (mask_scores, best_threshold) and rng.random() < 0.7:
        X = rng.random((3, 4, 5)) ** 3
        X = X > 0.5 if function is mask_scores else X
        other = rng.choice([0, 1, 255], size=(3, 4, 5))
    elif function is outlier_scores and isinstance(X, np.ndarray) and X.ndim == 2:
        other = rng.random(X.shape) < 0.1

    def call() -> None:
        result = function(X, other)
        numbers = list(result.values()) if isinstance(result, dict) else [result]
        require(np.isfinite(numbers).all(), f"{function.__name__} gave {numbers}")
        shares = [v for k, v in result.items() if k not in ("threshold", "ari")] if isinstance(result, dict) else []
        require(all(0 <= v <= 1 + 1e-9 for v in shares), f"shares out of range: {result}")

    return Case(entry, f"{function.__name__} {kind}", call, "either", [X, other])


def _corrupt(rng: Generator, entry: str, folder: Path) -> Case:
    kind, X, _ = _matrix(rng)
    p = _shape(X)[1]
    fraction = [0.0, 0.1, 0.25, 1.0, 1, 0.999, 1e-9, -0.1, 1.5, float("nan"), "half", None][int(rng.integers(12))]
    value = [0, 0.5, float("nan"), 255, -1, 1e300, "x"][int(rng.integers(7))]
    which = int(rng.integers(3))
    shape = [(1, p), (p, 1), (2, 3), (0, p), (p,), "ab", None, (1.0, p)][int(rng.integers(8))]

    def call() -> None:
        if which == 0:
            out, mask = block_occlusion(X, shape, fraction, value=value, random_state=0)
        elif which == 1:
            out, mask = missing_pixels(X, fraction, value=value, random_state=0)
        else:
            out, mask = salt_and_pepper(X, fraction, random_state=0)
        given = np.asarray(X)
        require(out.shape == mask.shape == given.shape and mask.dtype == bool, f"{out.shape}, {mask.shape}")
        require(out.dtype == given.dtype, f"{given.dtype} became {out.dtype}")
        same = (out == given) | (np.isnan(out) & np.isnan(given)) if given.dtype.kind == "f" else out == given
        require(same[~mask].all(), "entries outside the mask were changed")

    return Case(entry, kind, call, "either", [X])


def _command(rng: Generator, entry: str, folder: Path) -> Case:
    kind, call, expect = fuzz_cli.command(rng, folder)
    return Case(entry, kind, call, expect)


_FRPCAG_ARGUMENTS = [
    name for name in fuzz_params.valid(np.random.default_rng(0), 12, 6) if name not in ("feature_shape", "random_state")
]
_INVALIDABLE = [name for name in _FRPCAG_ARGUMENTS if name in fuzz_params.INVALID]
_PATH = ["n_neighbors", "sample_graph", "feature_graph", "laplacian", "loss", "center", "scale", "tol", "max_iter"]
_PATH += ["n_jobs"]
_GRAPH = ["n_neighbors", "sigma", "laplacian", "n_jobs"]
_GRAPH_OWN: dict[str, list[Any]] = {
    "axis": [0, 1],
    "weights": ["gaussian", "binary"],
    "method": ["auto", "exact", "approximate"],
}
_NO_GAMMAS = [name for name in _INVALIDABLE if name not in ("gamma1", "gamma2")]

# Share of the cases, and how one is drawn.
ENTRIES: dict[str, tuple[float, Callable[[Generator, str, Path], Case]]] = {
    "fit": (0.22, _fit("fit")),
    "fit_transform": (0.04, _fit("fit_transform")),
    "transform": (0.08, _fit("transform")),
    "denoise": (0.05, _fit("denoise")),
    "inverse_transform": (0.03, _fit("inverse_transform")),
    "clustering": (
        0.08,
        _of(
            _cluster,
            {"n_clusters": [1, 2], "assign": ["auto", "spectral", "kmeans", "components"], "n_init": [1, 3]},
            _INVALIDABLE,
        ),
    ),
    "imputer": (0.05, _of(_impute, {}, ["gamma1", "n_neighbors", "loss", "laplacian", "max_iter"])),
    "cv": (0.04, _of(_cv, {"holdout": [0.1, 0.5], "multiples1": [(0.3,), (1.0, 3.0)]}, _NO_GAMMAS)),
    "path": (0.05, _of(_path, {"gammas1": [[0.0], [1.0, 0.1]]}, _PATH)),
    "build_graph": (0.08, _of(_graph, _GRAPH_OWN, _GRAPH)),
    "background fit": (0.05, _background),
    "background transform": (0.04, _background),
    "solve": (0.09, _solve),
    "evaluate": (0.03, _evaluate),
    "corrupt": (0.03, _corrupt),
    "command line": (0.04, _command),
}
_SHARES = [share for share, _ in ENTRIES.values()]


@contextmanager
def working_folder(path: Path) -> Iterator[None]:
    """Work in a folder for a while."""
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)
