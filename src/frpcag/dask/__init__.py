"""Everything that needs Dask: a fit on row blocks, for matrices that no single machine holds.

Row chunks come in, as Dask arrays or files; a model comes out whose large results are Dask arrays.
"""

from frpcag.dask.backend import DaskBackend
from frpcag.dask.engine import DaskEngine, map_chunks
from frpcag.dask.kept import on_client, rows_on_client
from frpcag.dask.row_chunks import as_row_chunks

__all__ = ["DaskBackend", "DaskEngine", "as_row_chunks", "map_chunks", "on_client", "rows_on_client"]
