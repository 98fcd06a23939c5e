"""The paper's experiments: what to run, one JSON record a cell, tables and figures."""

from reproduction.paper.experiments import EXPERIMENTS, render, write_results
from reproduction.paper.run import Experiment, read_records, run_cells

__all__ = ["EXPERIMENTS", "Experiment", "read_records", "render", "run_cells", "write_results"]
