"""A fit on row blocks: the stages for matrices that no single machine holds."""

from frpcag.engines.dask.kept import on_client, rows_on_client
from frpcag.engines.dask.stages import DaskEngine, map_chunks

__all__ = ["DaskEngine", "map_chunks", "on_client", "rows_on_client"]
