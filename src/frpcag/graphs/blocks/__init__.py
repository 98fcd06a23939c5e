"""Graphs over row blocks on a Dask cluster."""
