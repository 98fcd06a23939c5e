"""Figures of the pages by name, each computed from a record in results/; `check_figures.py` compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

from figures_of_peers import *  # noqa: F403 - the pages name them

RESULTS = Path(__file__).resolve().parents[1] / "results"
IMAGES = ("orl", "usps", "mnist", "coil20", "yale", "pie")


@cache
def record(name: str) -> Any:
    """Return ``results/name``, a JSON file or a list of JSON lines."""
    text = (RESULTS / name).read_text()
    return [json.loads(line) for line in text.splitlines()] if name.endswith("l") else json.loads(text)


@cache
def cleaning() -> dict[tuple[str, str], dict[str, float]]:
    """Return errors by cell and method: at most 300 samples a set, damaged data only."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in record("cleaning.jsonl"):
        if row["most"] == 300 and row["corruption"] != "clean":
            cells.setdefault((row["data"], row["corruption"]), {})[row["method"]] = row["error"]
    return cells


def images(method: str) -> float:
    """Return the mean error on images, in % of their spread."""
    return 100 * mean(cell[method] for (data, _), cell in cleaning().items() if data in IMAGES)


def tables(method: str) -> float:
    """Return the mean error on tables, in % of their spread."""
    return 100 * mean(cell[method] for (data, _), cell in cleaning().items() if data not in IMAGES)


def won(of_images: bool) -> int:
    """Return in how many cells ours is below RPCA and best-rank PCA."""
    cells = [cell for (data, _), cell in cleaning().items() if (data in IMAGES) == of_images]
    return sum(cell["ours"] < min(cell["rpca"], cell["pca"]) for cell in cells)


def total(of_images: bool) -> int:
    """Return how many cells there are."""
    return sum((data in IMAGES) == of_images for data, _ in cleaning())


@cache
def clusters() -> dict[tuple[str, str], dict[str, float]]:
    """Return clustering errors of the paper's cells by model, mean over the seeds."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in record("clustering/records.jsonl"):
        at = row["cell"]
        if "best" in row:  # the record of all labellers has none
            cells.setdefault((at["data"], at["corruption"]), {})[at["model"]] = row["best"]["error_mean"]
    return cells


def clustering(model: str) -> float:
    """Return the mean clustering error of a model over the paper's cells, in %."""
    return 100 * mean(cell[model] for cell in clusters().values())


def first() -> int:
    """Return in how many cells our clusterer has the smallest error of those that see no labels."""
    rivals = ("k-means", "spectral clustering", "UMAP + k-means")
    return sum(cell["FRPCAGClustering"] <= min(cell[name] for name in rivals) for cell in clusters().values())


def n_cells() -> int:
    """Return how many cells of the paper there are."""
    return len(clusters())


def front(name: str) -> float:
    """Return a figure of the picture on the front page."""
    return record("front_page.json")[name]


def faces(name: str) -> float:
    """Return a figure of the faces on the front page."""
    return record("front_faces.json")[name]


def wrong(data: str, corruption: str, model: str = "FRPCAGClustering") -> float:
    """Return the mean clustering error of a model in one cell of the paper, in %."""
    return 100 * clusters()[data, corruption][model]


def zeros_and_nan(data: str, corruption: str) -> list[float]:
    """Return our clustering errors with zeros that are not marked, and with the same entries as NaN, in %."""
    return [wrong(data, corruption), wrong(data, corruption, "FRPCAGClustering, NaN")]


def lead_on_clean(data: str) -> float:
    """Return by how many points our clusterer is ahead of UMAP on a clean set."""
    return wrong(data, "clean", "UMAP + k-means") - wrong(data, "clean")


def at(name: str, *keys: Any) -> Any:
    """Return a value of a record by the keys that lead to it."""
    value = record(name)
    for key in keys:
        value = value[key]
    return value


def printed(example: str, line: int, number: int = 0) -> float:
    """Return a number that an example prints, by its line and its place there."""
    return float(re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", record("examples.json")[example][line])[number])


def same_class(data: str, kind: str) -> list[float]:
    """Return the share of neighbours of the same label by metric."""
    found = next(row for row in record("metric.json")["table"] if (row.get("data"), row.get("kind")) == (data, kind))
    return [found["same_class"][name] for name in ("euclidean", "l1", "truncated")]


def mean_same_class() -> list[float]:
    """Return the mean share over the cells of the seven image sets by metric, and that of the metric "auto" takes."""
    rows = [row for row in record("metric.json")["table"] if "data" in row]
    means = [mean(row["same_class"][name] for row in rows) for name in ("euclidean", "l1", "truncated")]
    return [*means, mean(row["same_class"][row["auto"]] for row in rows)]


def neighbors(n_neighbors: int) -> float:
    """Return the error of the paper's protocol on ORL with a number of neighbours, in %."""
    rows = {row["cell"]["n_neighbors"]: row["best"] for row in record("neighbors/records.jsonl")}
    return 100 * rows[n_neighbors]["error_min"]


def chosen_by_labels() -> list[float]:
    """Return by how many points gammas that labels choose are better, on average and at most."""
    ahead = [100 * (row["label_free"] - row["label_tuned"]) for row in record("gamma_grid.jsonl")]
    return [mean(ahead), max(ahead)]


def choice(data: str, corruption: str, method: str) -> float:
    """Return an error of the cells that the default clusterer was chosen on, in %."""
    rows = {(row["data"], row["corruption"]): row["errors"] for row in record("clustering_choice.jsonl")}
    return 100 * rows[data, corruption][method]


def choice_means() -> list[float]:
    """Return the mean error of the default clusterer over these cells, and of the best of three usual ones, in %."""
    rows = [row["errors"] for row in record("clustering_choice.jsonl")]
    best = (min(row[name] for name in ("k-means X", "PCA + k-means", "spectral X")) for row in rows)
    return [100 * mean(row["FRPCAGClustering"] for row in rows), 100 * mean(best)]


def times_of_rpca() -> list[float]:
    """Return how many times our solve RPCA takes, least and most of the data sets."""
    solve: dict[str, dict[str, float]] = {}
    for row in record("times/records.jsonl"):
        solve.setdefault(row["cell"]["data"], {})[row["cell"]["model"]] = row["times"]["solve"]
    ratios = [times["RPCA"] / times["FRPCAG"] for times in solve.values() if "RPCA" in times]
    return [min(ratios), max(ratios)]


def gpu_over_cpu() -> list[float]:
    """Return how many times as long a step, and a fit, take on the CPU of the machine of the GPU."""
    cpu, gpu = at("gpu.json", "cpu"), record("gpu.json")
    fit = next(row for row in gpu["fits"] if row["n"] == cpu["n"])
    return [cpu["step_ms"] / gpu["steps"][0]["step_ms"], cpu["fit_seconds"] / fit["seconds"]]


def cleaned_first() -> list[float]:
    """Return how many times as long clustering takes that cleans first, least and most."""
    ratios = [row["tclean"] / row["t"] for row in record("cleaning_first.jsonl")]
    return [min(ratios), max(ratios)]


@cache
def known_figures() -> dict[str, list[str]]:
    """Return the figures that the records hold, as pages show them, with the names of the records."""
    found: dict[str, list[str]] = {}
    for file in sorted([*RESULTS.glob("*.json*"), *RESULTS.glob("*/records.jsonl")]):
        if file.suffix in (".json", ".jsonl"):
            name = str(file.relative_to(RESULTS))
            for value in set(_numbers(record(name))):
                units = (1, 100, 1000, 1e-3, 1e-6, 1e-9)
                shapes = {f"{value * unit:.{k}f}" for unit in units for k in range(4)}
                shapes |= {shape.removeprefix("0") for shape in shapes if shape.startswith("0.")}
                for shown in shapes | {f"{value:.{k}e}" for k in range(3)}:
                    names = found.setdefault(shown, [])
                    if name not in names:
                        names.append(name)
    return found


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _numbers(one)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def new_rows(where: str, method: str) -> float:
    """Return milliseconds for each of 10,000 new rows of a model on a GPU, or on the cores of its machine."""
    rows = record("gpu.json")["rows"]
    return next(r["ms_per_row"] for r in rows if (r["where"], r["method"], r["batch"]) == (where, method, 10_000))


def video(clip: str, method: str, key: str = "score") -> float:
    """Return the F1 of a method on a clip; ``key`` may be "used", the masks as a user gets them."""
    row = next(r for r in record("video.json")["records"] if (r["clip"], r["method"]) == (clip, method))
    if key == "used":
        return max(row[name]["f1"] for name in ("auto", "filtered") if name in row)
    return row[key]


def video_clips() -> list[str]:
    """Return the names of the clips."""
    return list(dict.fromkeys(row["clip"] for row in record("video.json")["records"]))


def video_mean(method: str, key: str = "score") -> float:
    """Return the mean F1 of a method over the clips."""
    return mean(video(clip, method, key) for clip in video_clips())


def video_ratio(clip: str) -> float:
    """Return how many times our seconds RPCA takes on a clip."""
    return video(clip, "rpca", "seconds") / video(clip, "ours", "seconds")


def video_rows() -> Iterator[tuple[str, list[float | None]]]:
    """Yield the rows of the table of clips; the level of RPCA's masks is not recorded."""
    methods = ("ours", "rpca", "median", "mog2", "knn", "gsoc", "truth")
    used = ("ours", None, "mog2", "knn")
    for clip in video_clips():
        found = [video(clip, method) for method in methods]
        size = video_shape(clip)
        yield (
            f"| {clip} {size} |",
            [*found, *(None if name is None else video(clip, name, "used") for name in used)],
        )
    means = [video_mean(method) for method in methods]
    yield "| mean |", [*means, *(None if name is None else video_mean(name, "used") for name in used)]


def video_shape(clip: str) -> str:
    """Return frames, height and width of a clip, as the table writes them."""
    row = next(r for r in record("video.json")["records"] if r["clip"] == clip)
    return " x ".join(str(size) for size in row["shape"][:3])


def scaling_rows() -> Iterator[tuple[str, list[float | None]]]:
    """Yield the rows of the runs on Dask workers."""
    for row in record("dask.json")["rows"]:
        values: list[float | None] = [
            row["n"],
            row["workers"],
            *(row[key] for key in ("limit", "blocks") if row.get(key) is not None),
        ]
        if "halo_rows" in row:
            values.append(100 * row["halo_rows"] / row["n"])
        values += [row[key] for key in ("recall",) if key in row]
        values += [row["n_iter"], row["gap"], row["timings"]["sample_graph"], row["timings"]["solve"]]
        values += [row["step_seconds"], row["seconds"], row["cpu_seconds"]]
        values.append(max(row.get("peak_MB_per_worker") or [row.get("peak_MB")]))
        if "peak_MB_per_worker" in row:
            values.append(None)  # what the formula says
        yield f"| {row['kind']} | {row['n']} | {row['workers']} |", values[2:]


def labellers(name: str) -> float:
    """Return the mean error of a labeller on U or W over the paper's cells, in %."""
    rows = [row["labellers"] for row in record("clustering/records.jsonl") if "labellers" in row]
    return 100 * mean(row[name][0] for row in rows)


def clean_leads() -> list[float]:
    """Return by how many points our clusterer is ahead of UMAP on the clean sets: least, most, on average."""
    found = [lead_on_clean(data) for data, corruption in clusters() if corruption == "clean"]
    return [min(found), max(found), mean(found)]


def alignment_ratios(laplacian: str) -> list[float]:
    """Return by how much s_r is below the paper's figures: 0.97 for digit 3, 0.82 for all."""
    paper = {"3": 0.97, "all": 0.82}
    return [paper[row["cell"]["digits"]] - row["s_r"][laplacian] for row in record("alignment/records.jsonl")]


def same_time(data: str, model: str) -> float:
    """Return how many times our solve another model takes on a data set."""
    rows = {row["cell"]["model"]: row for row in record("times/records.jsonl") if row["cell"]["data"] == data}
    return rows[model]["times"]["solve"] / rows["FRPCAG"]["times"]["solve"]


def steps() -> list[float]:
    """Return the fewest and the most steps of the fits that are timed."""
    rows = [*record("fit.json")["ours"], *record("dask.json")["rows"]]
    rows += [row for row in record("times/records.jsonl") if row["cell"]["model"] == "FRPCAG"]
    found = [row["n_iter"] for row in rows]
    return [min(found), max(found)]


def ahead(clip: str, one: str, other: str) -> float:
    """Return by how many points the F1 of a method is above that of another on a clip."""
    return 100 * (video(clip, one) - video(clip, other))


def worth_of_whitening() -> list[float]:
    """Return by how many points labels from W are better than from U, least and most of the labellers."""
    names = ("linkage", "spectral", "cluster_qr", "kmeans")
    found = [labellers(f"{name}, U") - labellers(f"{name}, W") for name in names]
    return [min(found), max(found)]


def worth_of_linkage() -> list[float]:
    """Return by how many points linkage on W is ahead of the other labellers, least and most."""
    found = [labellers(f"{name}, W") - labellers("linkage, W") for name in ("spectral", "cluster_qr", "kmeans")]
    return [min(found), max(found)]


def rpca_steps() -> list[float]:
    """Return the steps of RPCA, fewest and most."""
    found = [row["n_iter"] for row in record("times/records.jsonl") if row["cell"]["model"] == "RPCA"]
    return [min(found), max(found)]


def n_lost(*, unit_rows: bool = False) -> int:
    """Return in how many of the paper's cells k-means on U or W, as labels choose, is behind another model."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for row in record("clustering/records.jsonl"):
        cell = row["cell"]
        for key, name in (("best", cell["model"]), ("best_on_W", "FRPCAG(A), W")):
            if key in row:
                cells.setdefault((cell["data"], cell["corruption"]), {})[name] = row[key]["error_min"]
    ours = ("FRPCAG(A)", "FRPCAG(A), W", *(["FRPCAG(A), unit W"] if unit_rows else []))
    without_labels = ("spectral clustering", "UMAP + k-means")
    lost = 0
    for found in cells.values():
        rivals = [v for name, v in found.items() if not name.startswith("FRPCAG") and name not in without_labels]
        lost += min(found[name] for name in ours if name in found) > min(rivals)
    return lost


def new_row_means(*names: str) -> list[float]:
    """Return the mean distance of new rows from the truth, relative to that of the training mean."""
    rows = record("transform.json")["truth"]
    return [mean(row[name] for row in rows) for name in names]


def n_rows_cells() -> int:
    """Return on how many cells of data and corruption new rows were measured."""
    return len(record("transform.json")["truth"])


def n_rows_won() -> int:
    """Return in how many of them `denoise` is nearer to the truth than PCA."""
    return sum(row["denoise"] < row["PCA"] for row in record("transform.json")["truth"])


def row_labels(training: str) -> list[float]:
    """Return the mean share of new rows that a classifier gets right: PCA, before, now, and without errors."""
    rows = [row for row in record("transform.json")["labels"] if row["training rows"] == training]
    return [mean(row[name] for row in rows) for name in ("PCA", "before", "transform", "transform, nothing wrong")]


def first_calls() -> list[float]:
    """Return the seconds of the first call for new rows, on USPS and ORL."""
    return [row["first call, s"] for row in record("transform.json")["times"]["now"]]


def rows_ms(name: str) -> list[float]:
    """Return milliseconds for a new row in a batch, on USPS and ORL."""
    return [row[name] for row in record("transform.json")["times"]["now"]]


def carried(name: str, factor: float, pick: Callable = min) -> list[float]:
    """Return a figure of the clusters of MNIST from samples of 5000, 10,000 and 20,000 images, of all seeds."""
    rows = [row for row in record("compressive.json")["rows"] if row["of"] == "clusters"]
    return [factor * pick(row[name] for row in rows if row["kept"] == kept) for kept in (5000, 10_000, 20_000)]
