"""From a graph, or from points, to labels."""

from frpcag.labels.kmeans import kmeans
from frpcag.labels.spectral import spectral_embedding

__all__ = ["kmeans", "spectral_embedding"]
