"""X comes in: synthetic data, centring and scaling, and run folders."""

from frpcag.data.preprocess import center_and_scale, restore
from frpcag.data.synthetic import make_low_rank_on_graphs
from frpcag.runtime.atomic import atomic_folder

__all__ = [
    "atomic_folder",
    "center_and_scale",
    "make_low_rank_on_graphs",
    "restore",
]
