"""Time, peak memory and gap of `frpcag.anndata.denoise` on sparse counts of 10,000 cells and 20,000 genes.

``python benchmarks/single_cell.py`` needs no data set: counts of 20 kinds of cells are drawn on the spot, a tenth of
them not zero, and brought to logarithms. The peak is that of the whole process, libraries and counts included;
"beside" leaves out what was there before the fit. It is told by stage, too, so that one sees where it is reached.
``--cells`` and ``--genes`` set other sizes; ``--steps 3`` ends the solver early, for the memory alone. Writes
results/single_cell.json.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter

import anndata
import numpy as np
import scipy.sparse as sp
from machine import write_result
from memory import status
from sklearn.exceptions import ConvergenceWarning

import frpcag.anndata
from frpcag import FRPCAG
from frpcag.anndata.preprocess import COUNTS
from frpcag.engines.memory import fit_bytes
from frpcag.runtime.clock import Clock

KINDS = 20


def log_counts(n: int, p: int) -> sp.csr_matrix:
    """Return logarithms of counts of cells of some kinds, float32; rows are made a few at a time."""
    rng = np.random.default_rng(0)
    rates = rng.gamma(0.3, 1.0, size=p) * np.exp(rng.normal(size=(KINDS, p)))
    rates /= rates.sum(axis=1, keepdims=True)
    parts = []
    for start in range(0, n, 250):
        kinds = rng.integers(0, KINDS, min(250, n - start))
        depth = rng.lognormal(np.log(0.16 * p), 0.3, (len(kinds), 1))
        parts.append(sp.csr_matrix(np.log1p(rng.poisson(rates[kinds] * depth)).astype(np.float32)))
    return sp.vstack(parts, format="csr")


class StagePeaks(dict):
    """The peak of the process in each stage of a fit, noted when the clock is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.lap = Clock.lap
        Clock.lap = lambda clock, stage, *more: (self.note(stage), self.lap(clock, stage, *more))[1]
        self.forget()

    def note(self, stage: str) -> None:
        """Note the peak since the last stage."""
        self[stage] = max(self.get(stage, 0), status("VmHWM"))
        self.forget()

    @staticmethod
    def forget() -> None:
        """Forget the peak so far."""
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")


def main() -> None:
    """Measure once and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--genes", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=500)
    chosen = parser.parse_args()
    frpcag.anndata.denoise(
        anndata.AnnData(log_counts(300, 200)), n_components=5
    )  # loads libraries and compiled kernels
    adata = anndata.AnnData(log_counts(chosen.cells, chosen.genes))
    X, before = adata.X, status("VmRSS")
    predicted = fit_bytes(X, FRPCAG(n_neighbors=15, **COUNTS))
    peaks, start = StagePeaks(), perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        frpcag.anndata.denoise(adata, max_iter=chosen.steps)
    seconds = perf_counter() - start
    peaks.note("embedding graph")
    peak, found = max(peaks.values()), adata.uns["frpcag"]
    for stage, top in peaks.items():
        print(f"{stage:16s}{top / 1e9:6.2f} GB")
    print(
        f"{chosen.cells} cells x {chosen.genes} genes, {X.nnz / np.prod(X.shape):.0%} not zero: {seconds:.0f} s, peak "
        f"{peak / 1e9:.2f} GB, beside {(peak - before) / 1e9:.2f} GB, predicted {predicted / 1e9:.2f} GB, gap "
        f"{found['duality_gap']:.1e} after {found['n_iter']} steps"
    )
    if (chosen.cells, chosen.genes, chosen.steps) == (10_000, 20_000, 500):
        record = {
            "cells": chosen.cells, "genes": chosen.genes, "entries": int(X.nnz), "seconds": seconds,
            "peak_GB": peak / 1e9, "beside_GB": (peak - before) / 1e9, "predicted_GB": predicted / 1e9,
            "gap": found["duality_gap"], "n_iter": found["n_iter"],
            "stages_GB": {stage: top / 1e9 for stage, top in peaks.items()},
        }  # fmt: skip
        write_result("single_cell", record)


if __name__ == "__main__":
    main()
