"""Scores: clean parts, labels and masks compared with the truth."""

from frpcag.evaluate.clustering import clustering_error, clustering_scores
from frpcag.evaluate.foreground import best_threshold, mask_scores
from frpcag.evaluate.recovery import outlier_scores, relative_error

__all__ = [
    "best_threshold",
    "clustering_error",
    "clustering_scores",
    "mask_scores",
    "outlier_scores",
    "relative_error",
]
