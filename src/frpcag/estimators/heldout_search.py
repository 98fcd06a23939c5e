"""The walk over gammas, as `frpcag.estimators.heldout` takes it."""

from frpcag.cells import FACTOR, walk

__all__ = ["FACTOR", "walk"]
