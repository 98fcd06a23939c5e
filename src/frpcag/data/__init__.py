"""X comes in: files, synthetic data, centring and scaling, and run folders."""

from frpcag.data.files import read_matrix
from frpcag.data.preprocess import center_and_scale, restore
from frpcag.data.synthetic import make_low_rank_on_graphs
from frpcag.data.tables import Table, read_table
from frpcag.runtime.atomic import atomic_folder

__all__ = [
    "Table",
    "atomic_folder",
    "center_and_scale",
    "make_low_rank_on_graphs",
    "read_matrix",
    "read_table",
    "restore",
]
