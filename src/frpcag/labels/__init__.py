"""From points and their neighbours to labels."""

from frpcag.labels.labellers import LABELLERS, label, spectral_embedding
from frpcag.labels.points import Cloud, cloud_of, distinct_rows, unit_rows

__all__ = ["LABELLERS", "Cloud", "cloud_of", "distinct_rows", "label", "spectral_embedding", "unit_rows"]
