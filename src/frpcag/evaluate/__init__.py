"""U, labels and masks in, numbers out."""

from frpcag.evaluate.clustering import clustering_error, clustering_scores
from frpcag.evaluate.recovery import outlier_scores, relative_error

__all__ = ["clustering_error", "clustering_scores", "outlier_scores", "relative_error"]
