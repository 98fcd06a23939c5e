"""Files of the user's come in as a matrix and go out again with other numbers, everything else as it was.

csv, tsv, txt, parquet, npy, npz, mat, h5 and h5ad; nothing in a file is ever unpickled.
"""

from frpcag.tables.table import Table, read_matrix, read_table, rounded_like

__all__ = ["Table", "read_matrix", "read_table", "rounded_like"]
