"""Scores: clean parts, labels and masks compared with the truth."""

from reproduction.evaluate.clustering import clustering_error, clustering_scores
from reproduction.evaluate.foreground import best_threshold, mask_scores
from reproduction.evaluate.recovery import outlier_scores, relative_error

__all__ = [
    "best_threshold",
    "clustering_error",
    "clustering_scores",
    "mask_scores",
    "outlier_scores",
    "relative_error",
]
