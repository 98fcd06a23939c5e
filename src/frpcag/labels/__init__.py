"""From points and their neighbours to labels."""

from frpcag.labels.cloud import Cloud, cloud_of
from frpcag.labels.labellers import LABELLERS, label

__all__ = ["LABELLERS", "Cloud", "cloud_of", "label"]
