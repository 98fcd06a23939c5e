"""Wrong and missing entries of a table: what each cell should be, which ones are wrong, and in which units to ask.

Dense float arrays come in, NaN where a cell is missing; what comes out depends neither on the order of rows and
columns nor on the units of the columns.
"""

from frpcag.cells.feature_graphs import find_shape
from frpcag.cells.order import canonical_order
from frpcag.cells.overwritten import Overwriting, find_overwriting, judged_rows, without_overwritten
from frpcag.cells.search import FACTOR, walk
from frpcag.cells.units import MIXED, Units, find_units

__all__ = [
    "FACTOR", "MIXED", "Overwriting", "Units", "canonical_order", "find_overwriting", "find_shape", "find_units",
    "judged_rows", "walk", "without_overwritten",
]  # fmt: skip
