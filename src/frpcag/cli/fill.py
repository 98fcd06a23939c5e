"""frpcag fill: a table with missing cells goes in, the same table with them filled in comes out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from frpcag import RobustGraphImputer
from frpcag.cli.models import parameters, record_of, rows_of, solved, with_settings
from frpcag.cli.runs import Result, Run
from frpcag.cli.tables import data_row, read_input
from frpcag.insight import flagged_shares
from frpcag.report import Fit
from frpcag.report.cells import count_of, percent


def work(run: Run) -> Result:
    """Fill in the missing cells of a table."""
    asked, table = run.asked, read_input(run)
    imputer = with_settings(RobustGraphImputer(), asked.set)
    run.bar.stage("filling in")
    filled = run.fit(imputer, table.X, "fit_transform")
    if run.interrupted:
        filled = imputer.transform(table.X)
    run.lap("fill")
    missing = np.isnan(table.X)
    said = f"{count_of(int(missing.sum()), 'missing cell')} ({percent(missing.mean())}) filled in"
    model = solved(imputer)
    run.record |= {"parameters": parameters(imputer), "cells": {"filled": int(missing.sum())}, **record_of(model)}

    names: dict[str, Any] = {"feature_names": table.names, "sample_names": table.ids}

    def write(folder: Path) -> None:
        table.write(folder / f"filled{table.suffix}", filled)
        if asked.save_model:
            imputer.save(folder / "model.npz")

    def page(**about: Any) -> Fit:
        return Fit(
            U=filled,
            S=np.zeros_like(filled),
            gamma1=model.gamma1_,
            gamma2=model.gamma2_,
            shares=flagged_shares(missing),
            **names,
            parameters=run.record["parameters"],
            lines=[f"{said}. The shares below are those of the cells that were missing."],
            **about,
        )

    return Result(
        write=write, page=page, rows=lambda record: [data_row(record["data"]), ("filled in", said), *rows_of(record)]
    )
