"""From points and their neighbours to labels: ways to label, the judge between them, the number of clusters.

Arrays come in, NaN where a value is missing; rows that a model has cleaned bring what it made of them.
"""

from frpcag.labels.assign import AS_THE_PAPER, Labelled, check_assignment, label_bytes, label_rows
from frpcag.labels.cleaned import Cleaned, Space, carried, rows_to_label
from frpcag.labels.labellers import LABELLERS, label, spectral_embedding
from frpcag.labels.points import Cloud, cloud_of, distinct_rows, unit_rows

__all__ = [
    "AS_THE_PAPER", "LABELLERS", "Cleaned", "Cloud", "Labelled", "Space", "carried", "check_assignment", "cloud_of",
    "distinct_rows", "label", "label_bytes", "label_rows", "rows_to_label", "spectral_embedding", "unit_rows",
]  # fmt: skip
