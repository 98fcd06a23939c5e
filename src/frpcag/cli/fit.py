"""frpcag fit: a matrix in a file goes in, a run folder with its clean part comes out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from frpcag import FRPCAG, FRPCAGClustering
from frpcag.cli.models import parameters, record_of, rows_of, with_settings
from frpcag.cli.runs import Result, Rows, Run
from frpcag.cli.tables import clusters_row, data_row, read_input, write_labels
from frpcag.insight import outlier_shares
from frpcag.linalg.spreads import column_units
from frpcag.report import Fit
from frpcag.report.cells import percent
from frpcag.tables import Table


def work(run: Run) -> Result:
    """Fit, and cluster the data as they are."""
    asked, table = run.asked, read_input(run)
    model = FRPCAG(
        asked.n_components,
        scale=asked.scale,
        nonnegative=asked.nonnegative,
        feature_shape=asked.feature_shape,
        random_state=asked.seed,
        n_jobs=asked.jobs,
        # A function, because estimators that are copied copy their parameters, and a bar has but one screen.
        callback=lambda progress: run.bar(progress),
    )
    run.bar.stage("preparing")
    run.fit(with_settings(model, asked.set), table.X)
    run.lap("fit", model.timings_)
    clusterer = None
    if asked.clusters is not None and not run.interrupted:
        run.bar.stage("finding clusters")
        clusterer = FRPCAGClustering(asked.clusters, random_state=asked.seed, n_jobs=asked.jobs).fit(table.X)
        run.lap("cluster")
    shares = outlier_shares(model.sparse_, units=column_units(model.low_rank_ + model.sparse_))
    run.record |= {
        "parameters": parameters(model),
        "seed": asked.seed,
        **record_of(model),
        "rank": len(model.singular_values_),
        "corrupted": {"share": shares.share, "threshold": shares.threshold, "in_units": shares.in_units},
    }
    labels = None if clusterer is None else clusterer.labels_
    names: dict[str, Any] = {"feature_names": table.names, "sample_names": table.ids, "labels": labels}
    return Result(
        write=lambda folder: _write(folder, table, model, clusterer, save=asked.save_model),
        page=partial(Fit.of_model, model, has_missing=bool(np.isnan(table.X).any()), **names),
        rows=lambda record: _rows(record, labels),
    )


def _write(folder: Path, table: Table, model: FRPCAG, clusterer: FRPCAGClustering | None, *, save: bool) -> None:
    for name in ("low_rank", "sparse", "embedding", "components", "singular_values"):
        np.save(folder / f"{name}.npy", getattr(model, f"{name}_"))
    if table.names is not None:  # the table again, with its names, ids, dates and text
        table.write(folder / f"low_rank{table.suffix}", model.low_rank_)
    if clusterer is not None:
        write_labels(folder, table, clusterer.labels_)
    if save:
        model.save(folder / "model.npz")
        if clusterer is not None:
            clusterer.save(folder / "clusters.npz")


def _rows(record: dict[str, Any], labels: np.ndarray | None) -> Rows:
    proof, *chosen = rows_of(record)
    rule = "singular values above 1 % of the largest" if record["parameters"]["n_components"] is None else "as asked"
    corrupted = record["corrupted"]
    unit = " of the spread of the column" if corrupted["in_units"] else ""
    return [
        data_row(record["data"]),
        proof,
        ("components", f"{record['rank']} ({rule})"),
        (
            "corruption",
            f"{percent(corrupted['share'])} of the entries stand out, |S| > {corrupted['threshold']:.2g}{unit}; "
            "frpcag clean judges every cell",
        ),
        *chosen,
        *([] if labels is None else [clusters_row(labels)]),
    ]
