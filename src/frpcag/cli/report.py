"""frpcag report: a run folder as one HTML page."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import typer

from frpcag.cli import options
from frpcag.cli.errors import InputError
from frpcag.cli.runs import GRAPHS_FILE, load_weights, percent, print_json, read_run
from frpcag.data.preprocess import center_and_scale
from frpcag.graphs import Graph, build_graph, graph_from_weights
from frpcag.insight import OutlierShares
from frpcag.report import Fit, Pictures, write_report
from frpcag.report.pictures import MAX_PICTURES, MAX_SIDE
from frpcag.runtime.atomic import RUN_FILE
from frpcag.video.frames import FrameSource

PAGE = "report.html"
_SHARED = (".npy", ".npz", ".csv", ".json", ".mp4")
_OPTIONAL = ("embedding", "singular_values", "components", "labels")


def report(
    run: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder that frpcag fit or frpcag video has written.")
    ],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"The page to write; {PAGE} in the run folder by default.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Write one HTML page about a run: summary, images, tables, plots and diagnostics. It needs no network."""
    page = output if output is not None else run / PAGE
    fit = load_run(run, page=page)
    try:
        write_report(page, fit)
    except OSError as error:
        raise InputError(f"--output={page} cannot be written ({error.strerror}); pass another file.") from error
    if as_json:
        print_json({"command": "report", "run": str(run), "page": str(page), "bytes": page.stat().st_size})
    else:
        print(f"written to {page}")


def load_run(run: Path, *, page: Path) -> Fit:
    """Return what a run folder holds; arrays stay on disk until they are looked at.

    Parameters
    ----------
    run : Path
        Written by ``frpcag fit`` or ``frpcag video``.
    page : Path
        Where the report will be, for the addresses of the arrays.

    Returns
    -------
    Fit
        The graphs are built again from the data, and left out where they would not be those of the run.
    """
    if not run.exists():
        raise InputError(f"there is no folder {run}; check the path (working folder: {Path.cwd()}).")
    record = read_run(run)
    loaders = {"fit": _load_fit, "video": _load_video}
    if record.get("command") == "clean":
        raise InputError(f"{run} was written by frpcag clean, with its report in it; open {run / PAGE}.")
    if record.get("command") not in loaders:
        raise InputError(
            f"{run} is not a folder that frpcag fit or frpcag video has written ({RUN_FILE} does not say so); pass one."
        )
    try:
        return loaders[record["command"]](run, record, _links(run, page))
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{run / RUN_FILE} does not say what a run says ({what}); fit again.") from error


def _load_fit(run: Path, record: dict[str, Any], files: dict[str, str]) -> Fit:
    U, S = (_array(run, name) for name in ("low_rank", "sparse"))
    if U.ndim != 2 or U.shape != S.shape:
        raise InputError(f"{run}: low_rank.npy and sparse.npy are not matrices of one shape; fit again.")
    parameters, data = record.get("parameters", {}), record.get("data", {})
    center, scale = (bool(parameters.get(name, default)) for name, default in (("center", True), ("scale", False)))
    center = center and not parameters.get("nonnegative", False)
    Xc, mean, std = center_and_scale(U + S, center=center, scale=scale)
    has_missing = bool(data.get("missing"))
    (G1, G2), reason = _graphs(run, Xc, record)
    found: dict[str, Any] = {name: _array(run, name) for name in _OPTIONAL if (run / f"{name}.npy").is_file()}
    shape = parameters.get("feature_shape")
    return Fit(
        U=U,
        S=S,
        title=str(data.get("file", run.name)),
        center=mean,
        scale=std,
        gamma1=float(record.get("gamma1", 0.0)),
        gamma2=float(record.get("gamma2", 0.0)),
        sample_graph=G1,
        feature_graph=G2,
        no_graphs=reason,
        has_missing=has_missing,
        loss=str(parameters.get("loss", "l1")),
        n_neighbors=int(parameters.get("n_neighbors", 10)),
        feature_names=record.get("feature_names"),
        sample_names=record.get("sample_ids"),
        feature_shape=None if shape is None else (int(shape[0]), int(shape[1])),
        certificate=record.get("certificate", {}),
        history=record.get("history"),
        parameters={**parameters, "seed": record.get("seed"), "backend used": record.get("backend")},
        timings=record.get("timings", {}),
        versions=record.get("versions", {}),
        warnings=[str(line) for line in record.get("warnings", [])],
        files=files,
        **found,
    )


def _load_video(run: Path, record: dict[str, Any], files: dict[str, str]) -> Fit:
    """Return frames, evenly spaced and small, of the videos of a run; where the mask is off, S is zero."""
    n = int(record["data"]["n_frames"])
    numbers = np.unique(np.linspace(0, n - 1, min(n, MAX_PICTURES)).astype(int))
    height, width, *channels = record["data"]["frame_shape"]
    factor = min(1.0, MAX_SIDE / max(height, width))
    size, color = (max(1, round(factor * height)), max(1, round(factor * width))), bool(channels)
    try:
        background, foreground, mask = (
            _frames(run / f"{name}.mp4", numbers, size=size, color=color and name != "mask")
            for name in ("background", "foreground", "mask")
        )
    except (OSError, ValueError, ImportError) as error:
        raise InputError(f"{run}: its videos cannot be read ({error}).") from error
    beside = run / "side_by_side.mp4"
    originals = {}
    if beside.exists():  # clip, background and mask, beside each other
        wide = _frames(beside, numbers, size=(size[0], 3 * size[1]), color=color)
        originals = {"frame": wide[:, :, : size[1]]}
    on = mask > 127
    cut = on[..., None] if color else on
    S = np.where(cut, foreground.astype(np.float32) - background, np.float32(0))
    m, h, w = on.shape
    flat = S.reshape(m, h, w, -1).mean(axis=3).reshape(m, -1)
    share = record["foreground"]
    lines = [
        f"{n} frames of {width} x {height} pixels were split into a background and what moves in front of it.",
        f"{percent(share['share'])} of the pixels are foreground, {percent(share['largest'])} in the fullest frame: "
        f"where the clip leaves its background by more than {record['threshold']:.3g} "
        f"(its noise is {record['noise']:.3g}).",
    ]
    if record.get("certificate"):
        proof = record["certificate"]
        lines.append(_gap_in_words(float(proof["relative_gap"]), int(proof["n_iter"])))
    return Fit(
        U=background.reshape(m, h, w, -1).mean(axis=3, dtype=np.float32).reshape(m, -1),
        S=flat,
        title=str(record["data"]["file"]),
        gamma1=float(record["gamma1"]),
        no_graphs="a run of frpcag video keeps no graphs",
        feature_names=[f"row {row / factor:.0f}, column {x / factor:.0f}" for row in range(h) for x in range(w)],
        pictures=Pictures(
            {**originals, "background": background, "foreground": foreground, "mask": on},
            signed=(),
            is_video=True,
            total=n,
        ),
        numbers=numbers.tolist(),
        shares=OutlierShares(
            float(record["threshold"]), float(on.mean()), on.mean(axis=(1, 2)), on.mean(axis=0).ravel()
        ),
        lines=lines,
        parameters=record.get("parameters", {}),
        timings=record.get("timings", {}),
        versions=record.get("versions", {}),
        files=files,
    )


def _gap_in_words(gap: float, n_iter: int) -> str:
    """Say what the certificate of a video means."""
    if gap <= 0.05:
        return f"The background is proved to be within {percent(gap)} of the optimum after {n_iter} steps."
    return (
        f"The solver stopped at its step limit ({n_iter} steps), as the preset for video asks: the objective is proved "
        f"to be at most {percent(gap)} above the least one. This is a loose proof of the objective, no error of masks: "
        "twice the steps moved their F1 by half a point on four test clips."
    )


def _frames(path: Path, numbers: np.ndarray, *, size: tuple[int, int], color: bool) -> np.ndarray:
    """Return the frames of a video that have these numbers, at this height and width."""
    wanted = set(numbers.tolist())
    frames = [frame for i, frame in enumerate(FrameSource(path, resize=size, color=color)) if i in wanted]
    if len(frames) != len(numbers):
        raise ValueError(f"{path.name} has fewer frames than {RUN_FILE} says")
    return np.stack(frames)


def _array(run: Path, name: str) -> np.ndarray:
    path = run / f"{name}.npy"
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}); fit again.") from error


def _graphs(run: Path, Xc: np.ndarray, record: dict[str, Any]) -> tuple[tuple[Graph | None, Graph | None], str]:
    """Return both graphs, as the run has kept them, or built as the fit did if they come out as the run says."""
    kept = [_kept_graph(run, name, Xc.shape[axis], record) for axis, name in enumerate(("samples", "features"))]
    if any(graph is not None for graph in kept):
        return (kept[0], kept[1]), "the fit used no graph"
    if record.get("data", {}).get("missing"):
        return (None, None), "the data had missing entries, and the run does not keep its graphs"
    parameters = record.get("parameters", {})
    graphs: list[Graph | None] = []
    for axis, name in enumerate(("samples", "features")):
        told = record.get("graphs", {}).get(name)
        if told is None:
            graphs.append(None)
            continue
        graph = build_graph(
            Xc,
            axis=axis,
            n_neighbors=min(int(parameters["n_neighbors"]), Xc.shape[axis] - 1),
            method=told["method"],
            metric=told.get("metric") or "euclidean",
            laplacian=told["laplacian"],
            feature_shape=parameters.get("feature_shape"),
            random_state=record.get("seed"),
        )
        same_sigma = graph.sigma is None or np.isclose(graph.sigma, told["sigma"], rtol=1e-4)
        if graph.n_edges != told["n_edges"] or not same_sigma:
            return (None, None), f"the graph of the {name} could not be built again as it was"
        graphs.append(graph)
    return (graphs[0], graphs[1]), "the fit used no graph"


def _kept_graph(run: Path, name: str, n_nodes: int, record: dict[str, Any]) -> Graph | None:
    told = record.get("graphs", {}).get(name)
    try:
        weights = load_weights(run, name)
        if told is None or weights is None:
            return None
        graph = graph_from_weights(weights, laplacian=told["laplacian"], method=told["method"], n_nodes=n_nodes)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{run / GRAPHS_FILE} cannot be read ({error}); fit again.") from error
    return replace(graph, sigma=told["sigma"])


def _links(run: Path, page: Path) -> dict[str, str]:
    """Return the arrays of a run and their addresses as seen from the page."""
    folder = os.path.relpath(run.resolve(), page.resolve().parent)
    names = sorted(path.name for path in run.iterdir() if path.suffix in _SHARED)
    return {name: quote(name if folder == "." else f"{folder}/{name}") for name in names}
