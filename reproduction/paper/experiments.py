"""The registry of the experiments, and the page that gathers their tables."""

from __future__ import annotations

from pathlib import Path

from frpcag.runtime.atomic import atomic_file
from reproduction.paper import clustering, paper, speed, theory, videos
from reproduction.paper.grid import (
    CORRUPTIONS,
    GRAPH_TYPES,
    LABEL_FREE,
    LABELLER_ROWS,
    ON_UNIT_W,
    PAPER_MODELS,
    clustering_cells,
)
from reproduction.paper.run import Experiment, cell_key, read_records

NUCLEAR_MODELS = ("RPCA", "RPCAG", *GRAPH_TYPES)


def _clustering_cells(smoke: bool) -> list[dict]:
    if not smoke:
        return clustering_cells()
    free = tuple(model for model in LABEL_FREE if not model.startswith("UMAP"))  # an extra of its own
    return clustering_cells(("digits",), ("block25",), (*PAPER_MODELS, *free, LABELLER_ROWS, ON_UNIT_W))


def _nuclear_cells(smoke: bool) -> list[dict]:
    if smoke:
        return clustering_cells(("digits",), ("clean",), NUCLEAR_MODELS)
    return clustering_cells(("orl",), CORRUPTIONS, NUCLEAR_MODELS)


def _neighbor_cells(smoke: bool) -> list[dict]:
    data, neighbors = ("digits", (5, 10)) if smoke else ("orl", tuple(paper.PAPER_NEIGHBORS))
    cell = {"data": data, "corruption": "clean", "model": "FRPCAG(A)"}
    return [{**cell, "n_neighbors": K} for K in neighbors]


EXPERIMENTS = {
    one.name: one
    for one in (
        Experiment(
            "clustering",
            "Clustering errors of all models (Fig. 6)",
            _clustering_cells,
            clustering.measure,
            paper.render_clustering,
            records="clustering",
        ),
        Experiment(
            "nuclear",
            "Nuclear-norm models on ORL (Fig. 6, last panel)",
            _nuclear_cells,
            clustering.measure,
            paper.render_nuclear,
            records="clustering",
        ),
        Experiment(
            "spectra",
            "Singular values under occlusion (Fig. 5)",
            theory.spectra_cells,
            theory.measure_spectra,
            paper.render_spectra,
            records="spectra",
        ),
        Experiment(
            "subspaces",
            "What the two gammas do (Fig. 4)",
            theory.subspaces_cells,
            theory.measure_subspaces,
            paper.render_subspaces,
            records="subspaces",
        ),
        Experiment(
            "components",
            "Two principal components (Fig. 7)",
            theory.components_cells,
            theory.measure_components,
            paper.render_components,
            records="components",
        ),
        Experiment(
            "neighbors",
            "Number of neighbours on ORL (Sec. VII-C)",
            _neighbor_cells,
            clustering.measure,
            paper.render_neighbors,
            records="neighbors",
        ),
        Experiment(
            "alignment",
            "Graph and covariance eigenvectors of USPS (Figs. 2 and 3)",
            theory.alignment_cells,
            theory.measure_alignment,
            paper.render_alignment,
            records="alignment",
        ),
        Experiment(
            "videos",
            "Static backgrounds (Fig. 8)",
            videos.cells,
            videos.measure,
            videos.render,
            records="videos",
        ),
        Experiment(
            "times", "Computation times (Tab. V)", speed.cells, speed.measure, paper.render_times, "times", timed=True
        ),
    )
}


def render(experiment: Experiment, folder: Path, *, smoke: bool = False) -> str | None:
    """Draw the figures of an experiment from its records and return its tables, or None without any record.

    Parameters
    ----------
    experiment : Experiment
        Which one.
    folder : Path
        Of its records; figures land there, and the tables as ``<name>.md``.
    smoke : bool, default=False
        Which version was run.
    """
    known = read_records(folder)
    records = [known[key] for cell in experiment.cells(smoke) if (key := cell_key(cell)) in known]
    if not records:
        return None
    text = experiment.render(records, folder)
    with atomic_file(folder / f"{experiment.name}.md") as partial:
        partial.write_text(text)
    return text


def write_results(page: Path, tables: dict[str, str]) -> None:
    """Put tables between the marks of a page: ``<!-- begin NAME -->`` and ``<!-- end NAME -->``; the rest stays."""
    text = page.read_text()
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        if begin in text and end in text:
            head, _, rest = text.partition(begin)
            text = head + begin + table + rest[rest.index(end) :]
    with atomic_file(page) as partial:
        partial.write_text(text)
