"""A fit on row blocks: the stages of the estimator for matrices that no single machine holds."""

from frpcag.outofcore.stages import fit, transform_chunks

__all__ = ["fit", "transform_chunks"]
