"""Single cells in scanpy's manner: functions that take an AnnData object and fill it."""

from frpcag.anndata.preprocess import cluster, denoise

__all__ = ["cluster", "denoise"]
