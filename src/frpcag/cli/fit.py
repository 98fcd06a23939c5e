"""frpcag fit: a matrix in a file goes in, a run folder with its clean part comes out."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from frpcag import FRPCAG, FRPCAGClustering
from frpcag.cli import options
from frpcag.cli.errors import CTRL_C, InputError, input_errors, printable
from frpcag.cli.progress import Bar, collected_warnings, print_notices, print_warnings
from frpcag.cli.runs import (
    INTERRUPTED,
    PAGE,
    Timer,
    certificate,
    certificate_in_words,
    check_output,
    fit_or_partial,
    library_versions,
    percent,
    print_json,
    run_folder,
    seconds_in_words,
    write_run,
)
from frpcag.cli.tables import describe_table, read_input
from frpcag.insight import outlier_shares
from frpcag.linalg.spreads import column_units
from frpcag.report import Fit, write_report
from frpcag.report.cells import count_of
from frpcag.tables import Table as DataTable


def fit(
    file: options.File,
    key: options.Key = None,
    columns: options.Columns = None,
    drop: options.Drop = None,
    id: options.Id = None,
    missing: options.Missing = None,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = None,
    encoding: options.Encoding = None,
    float32: Annotated[
        bool, typer.Option("--float32", help="Compute in float32: half the memory.", rich_help_panel=options.DATA)
    ] = False,
    center: Annotated[
        bool,
        typer.Option("--center/--no-center", help="Subtract the mean of each feature.", rich_help_panel=options.DATA),
    ] = True,
    scale: Annotated[
        bool,
        typer.Option("--scale/--no-scale", help="Divide by the standard deviation.", rich_help_panel=options.DATA),
    ] = False,
    nonnegative: Annotated[
        bool,
        typer.Option(
            "--nonnegative", help="Keep the clean part at or above zero, for counts.", rich_help_panel=options.MODEL
        ),
    ] = False,
    feature_shape: Annotated[
        Any,
        typer.Option(
            parser=options.parse_feature_shape,
            metavar="HxW",
            help="Rows are images of this size, which are drawn; --feature-graph grid needs it.",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    clusters: Annotated[
        Any,
        typer.Option(
            parser=options.parse_clusters,
            metavar="auto|N",
            help="Also find N clusters of samples, as FRPCAGClustering(N) does; auto looks for a number that fits.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    n_components: Annotated[
        Any,
        typer.Option(
            "--n-components",
            parser=options.parse_components,
            metavar="N",
            help="Components: a number, or a share in (0, 1) of the squared singular values. "
            "By default all above 1 % of the largest singular value.",
            rich_help_panel=options.MODEL,
        ),
    ] = None,
    gamma1: Annotated[Any, options.gamma_option("Weight of the sample graph.")] = "auto",
    gamma2: Annotated[Any, options.gamma_option("Weight of the feature graph.")] = "auto",
    neighbors: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Neighbours of each node, in both graphs.", rich_help_panel=options.MODEL
        ),
    ] = 10,
    sample_graph: Annotated[
        options.SampleGraph,
        typer.Option(
            metavar="NAME",
            help="How to link the samples: auto, exact, approximate, or none, which drops the term.",
            rich_help_panel=options.MODEL,
        ),
    ] = options.SampleGraph.auto,
    feature_graph: Annotated[
        options.FeatureGraph,
        typer.Option(
            metavar="NAME",
            help="How to link the features: as above, or grid, for pixels.",
            rich_help_panel=options.MODEL,
        ),
    ] = options.FeatureGraph.auto,
    metric: options.Metric = "euclidean",
    laplacian: Annotated[
        options.Laplacian,
        typer.Option(
            metavar="NAME",
            help="normalized, for clusters, or combinatorial, which keeps levels.",
            rich_help_panel=options.MODEL,
        ),
    ] = options.Laplacian.normalized,
    loss: Annotated[
        options.Loss,
        typer.Option(help="Loss of the data term.", rich_help_panel=options.MODEL),
    ] = options.Loss["l1"],
    tol: Annotated[
        Any,
        typer.Option(
            parser=options.parse_tol,
            metavar="X",
            help="Relative duality gap to reach.",
            rich_help_panel=options.SOLVER,
        ),
    ] = 1e-3,
    max_iter: Annotated[
        int, typer.Option(min=1, metavar="N", help="Limit of steps.", rich_help_panel=options.SOLVER)
    ] = 500,
    seed: Annotated[Any, options.seed_option("Seed of k-means and the approximate search.")] = 0,
    jobs: options.Jobs = None,
    backend: Annotated[
        options.BackendName, typer.Option(help="What computes the steps.", rich_help_panel=options.SOLVER)
    ] = options.BackendName.auto,
    output: options.Output = None,
    overwrite: options.Overwrite = False,
    save_model: Annotated[
        bool,
        typer.Option(
            "--save-model",
            help="Also write model.npz, and clusters.npz with --clusters, which frpcag.load reads.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    no_plots: Annotated[
        bool, typer.Option("--no-plots", help="Write no report.", rich_help_panel=options.OUTPUT)
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.Json = False,
) -> None:
    """Clean a corrupted matrix, find its components and, if asked, its clusters.

    Ctrl-C during the solve stops it early: the result so far is valid, certified and written; the exit code is 130.
    """
    if feature_graph is options.FeatureGraph.grid and feature_shape is None:
        raise InputError("--feature-graph=grid needs --feature-shape, height and width of an image, such as 28x28.")
    target = output if output is not None else Path(f"frpcag-run-{file.stem}")
    check_output(target, overwrite=overwrite)
    parameters = {
        "n_components": n_components,
        "gamma1": gamma1,
        "gamma2": gamma2,
        "n_neighbors": neighbors,
        "sample_graph": _graph_argument(sample_graph),
        "feature_graph": _graph_argument(feature_graph),
        "metric": metric,
        "laplacian": laplacian.value,
        "loss": loss.value,
        "center": center,
        "scale": scale,
        "nonnegative": nonnegative,
        "tol": tol,
        "max_iter": max_iter,
        "backend": backend.value,
        "feature_shape": feature_shape,
        "n_jobs": jobs,
    }
    with Bar(shown=not (as_json or quiet)) as bar:
        timer = Timer()
        bar.stage(f"reading {file.name}")
        how = {"key": key, "columns": columns, "drop": drop, "id": id, "missing": missing}
        how |= {"delimiter": delimiter, "decimal": decimal, "encoding": encoding}
        table = read_input(file, how, float32=float32, feature_shape=feature_shape)
        X = table.X
        read_seconds = timer.lap("read")
        bar.stage("preparing")
        # A function, because estimators that are copied copy their parameters, and a bar has but one screen.
        model = FRPCAG(**parameters, random_state=seed, callback=lambda progress: bar(progress))
        clusterer = None
        with input_errors(file), collected_warnings(table.column_name) as notes:
            fit_or_partial(model, X)
            if clusters is not None and model.status_ != INTERRUPTED:
                bar.stage("finding clusters")
                timer.lap("fit")
                clusterer = FRPCAGClustering(clusters, random_state=seed, n_jobs=jobs).fit(X)
        labels = None if clusterer is None else clusterer.labels_
        if model.status_ == INTERRUPTED:
            gap = f"a relative duality gap of {model.duality_gap_:.2g}"
            notes.append(f"interrupted after {model.n_iter_} steps; the result is valid, with {gap}.")
        timings = {"read": read_seconds, **model.timings_}
        if clusterer is not None:
            timings["cluster"] = timer.lap("cluster")
        record = _record(
            model,
            about=describe_table(table, file, float32=float32),
            parameters=parameters,
            seed=seed,
            notes=notes,
            timings=timings,
        )
        timer.lap("describe")
        bar.stage(f"writing {target}")
        with run_folder(target, overwrite=overwrite) as folder:
            _write_arrays(folder, model, labels, table)
            if save_model:
                model.save(folder / "model.npz")
                if clusterer is not None:
                    clusterer.save(folder / "clusters.npz")
            if not no_plots:
                about = {"feature_names": table.names, "sample_names": table.ids, "versions": record["versions"]}
                about |= {"labels": labels, "timings": timings, "warnings": notes, "title": file.name}
                about["files"] = {path.name: path.name for path in sorted(folder.iterdir())}
                write_report(folder / PAGE, Fit.of_model(model, has_missing=bool(np.isnan(X).any()), **about))
            timings["write"] = timer.lap("write")
            record["files"] = sorted(path.name for path in folder.iterdir())
            write_run(folder, record)
    if as_json:
        print_json(record)
    else:
        print_warnings(notes)
        if not quiet:
            print_notices(table.notices)
        if not quiet:
            _print_summary(record, target, labels)
    if model.status_ == INTERRUPTED:
        raise typer.Exit(CTRL_C)


def _graph_argument(choice) -> str | None:
    return None if choice.value == "none" else choice.value


def _record(model, *, about, parameters, seed, notes, timings) -> dict[str, Any]:
    """Return everything about a run but the names of its files."""
    shares = outlier_shares(model.sparse_, units=column_units(model.low_rank_ + model.sparse_))
    return {
        "command": "fit",
        **about,
        "parameters": parameters,
        "seed": seed,
        "gamma1": model.gamma1_,
        "gamma2": model.gamma2_,
        "backend": model.backend_,
        "graphs": {
            "samples": _describe_graph(model.sample_graph_),
            "features": _describe_graph(model.feature_graph_),
        },
        "certificate": certificate(model),
        "history": {name: _finite(values) for name, values in model.history_.items()},
        "rank": len(model.singular_values_),
        "corrupted": {"share": shares.share, "threshold": shares.threshold, "in_units": shares.in_units},
        "timings": timings,
        "warnings": notes,
        "versions": library_versions(),
    }


def _finite(values) -> list[float | None]:
    """Return numbers as JSON has them: None for those that were not measured."""
    return [float(value) if np.isfinite(value) else None for value in values]


def _describe_graph(graph) -> dict[str, Any] | None:
    if graph is None:
        return None
    laplacian = "normalized" if graph.normalized else "combinatorial"
    told = {name: getattr(graph, name) for name in ("method", "metric", "n_edges", "sigma")}
    return {**told, "laplacian": laplacian}


def _write_arrays(folder: Path, model, labels, table: DataTable) -> None:
    for name in ("low_rank", "sparse", "embedding", "components", "singular_values"):
        np.save(folder / f"{name}.npy", getattr(model, f"{name}_"))
    if labels is not None:
        np.save(folder / "labels.npy", labels)
        names = range(len(labels)) if table.ids is None else table.ids
        with (folder / "labels.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow([table.id_name or "sample", "label"])
            rows.writerows(zip(names, labels, strict=True))
    if table.names is not None:  # the table again, with its names, ids, dates and text
        table.write(folder / f"low_rank{table.suffix}", model.low_rank_)


def _print_summary(record: dict[str, Any], target: Path, labels) -> None:
    console = Console(highlight=False, markup=False)
    data, asked = record["data"], record["parameters"]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row(
        "data",
        f"{printable(data['file'])}: {data['n_samples']} samples x {data['n_features']} features, {data['dtype']}"
        + (f", {percent(data['missing'])} missing" if data["missing"] else ""),
    )
    table.add_row("certificate", certificate_in_words(record["certificate"]))
    rule = "singular values above 1 % of the largest" if asked["n_components"] is None else "as asked"
    table.add_row("components", f"{record['rank']} ({rule})")
    corrupted = record["corrupted"]
    table.add_row(
        "corruption",
        f"{percent(corrupted['share'])} of the entries stand out, |S| > {corrupted['threshold']:.2g}"
        + (" of the spread of the column" if corrupted["in_units"] else "")
        + "; frpcag clean judges every cell",
    )
    for name in ("gamma1", "gamma2"):
        table.add_row(name, f"{record[name]:.4g}{' (auto)' if asked[name] == 'auto' else ''}")
    for name, graph in record["graphs"].items():
        words = (
            "none"
            if graph is None
            else f"{graph['method']}, {count_of(graph['n_edges'], 'edge')}, {graph['laplacian']}"
        )
        table.add_row(f"graph of {name}", words)
    if labels is not None:
        sizes = np.bincount(labels)
        low, high = sizes.min(), sizes.max()
        table.add_row("clusters", f"{len(sizes)}, of {low if low == high else f'{low} to {high}'} samples")
    table.add_row("time", seconds_in_words(record["timings"]))
    table.add_row("written to", f"{target}{'/' if not str(target).endswith('/') else ''}")
    table.add_row("", ", ".join([*record["files"], "run.json"]))
    console.print(table)
