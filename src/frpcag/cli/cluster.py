"""frpcag cluster: a table in a file goes in, a cluster for each of its rows comes out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from frpcag import FRPCAGClustering
from frpcag.cli.models import parameters, record_of, rows_of, solved, with_settings
from frpcag.cli.runs import Result, Run
from frpcag.cli.tables import clusters_row, data_row, read_input, write_labels
from frpcag.report import Fit


def work(run: Run) -> Result:
    """Cluster the rows of a table."""
    asked, table = run.asked, read_input(run)
    common = {"random_state": asked.seed, "n_jobs": asked.jobs}
    clusterer = with_settings(FRPCAGClustering(asked.clusters, **common), asked.set, **common)
    run.bar.stage("finding clusters")
    run.fit(clusterer, table.X)
    run.lap("cluster")
    model, labels = solved(clusterer), clusterer.labels_
    run.record |= {"parameters": parameters(clusterer), "seed": asked.seed, **record_of(model)}
    run.record["clusters"] = {"number": clusterer.n_clusters_, "missing_share": clusterer.missing_share_}
    names = {"feature_names": table.names, "sample_names": table.ids}

    def write(folder: Path) -> None:
        write_labels(folder, table, labels)
        if asked.save_model:
            clusterer.save(folder / "model.npz")

    return Result(
        write=write,
        page=partial(Fit.of_model, model, has_missing=clusterer.missing_share_ > 0, labels=labels, **names),
        rows=lambda record: [data_row(record["data"]), clusters_row(labels), *rows_of(record)],
    )
