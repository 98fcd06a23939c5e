"""X comes in: files, data sets, corruptions, centring and scaling, and run folders."""

from frpcag.data.corrupt import block_occlusion, missing_pixels, salt_and_pepper
from frpcag.data.datasets import DATASETS, list_datasets, load_dataset, make_low_rank_on_graphs
from frpcag.data.files import read_matrix
from frpcag.data.preprocess import center_and_scale, restore
from frpcag.data.tables import Table, read_table
from frpcag.runtime.atomic import atomic_folder

__all__ = [
    "DATASETS",
    "Table",
    "atomic_folder",
    "block_occlusion",
    "center_and_scale",
    "list_datasets",
    "load_dataset",
    "make_low_rank_on_graphs",
    "missing_pixels",
    "read_matrix",
    "read_table",
    "restore",
    "salt_and_pepper",
]
