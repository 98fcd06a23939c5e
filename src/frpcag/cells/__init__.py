"""Wrong and missing entries of a table: what each cell should be, which ones are wrong, and in which units to ask.

Dense float arrays come in, NaN where a cell is missing; what comes out depends neither on the order of rows and
columns nor on the units of the columns.
"""

from frpcag.cells.feature_graphs import find_shape
from frpcag.cells.low_rank import column_medians
from frpcag.cells.mixture import row_probability
from frpcag.cells.model import CellRules, row_keys
from frpcag.cells.order import canonical_order
from frpcag.cells.overwritten import Overwriting, find_overwriting, judged_rows, without_overwritten
from frpcag.cells.search import FACTOR, walk
from frpcag.cells.table import CHUNK, find_wrong_cells
from frpcag.cells.units import MIXED, Units, find_units

__all__ = [
    "CHUNK", "FACTOR", "MIXED", "CellRules", "Overwriting", "Units", "canonical_order", "column_medians",
    "find_overwriting", "find_shape", "find_units", "find_wrong_cells", "judged_rows", "row_keys", "row_probability",
    "walk", "without_overwritten",
]  # fmt: skip
