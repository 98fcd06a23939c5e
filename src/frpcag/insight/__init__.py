"""Why the model works, in numbers: graph frequencies, alignment, Theorem 1, graph quality and outliers of a fit."""

from frpcag.insight.alignment import alignment_ratio, graph_covariance, shape_interaction, vector_alignment
from frpcag.insight.graph_quality import GraphQuality, graph_quality, neighbor_recall
from frpcag.insight.outliers import OutlierShares, flagged_shares, outlier_shares
from frpcag.insight.spectra import (
    attenuation,
    eigengaps,
    frequency_energy,
    graph_basis,
    low_rank_distance,
    project_low_rank,
    singular_value_ratio,
    suggest_k,
)
from frpcag.insight.theorem import Bound, theorem_bound

__all__ = [
    "Bound",
    "GraphQuality",
    "OutlierShares",
    "alignment_ratio",
    "attenuation",
    "eigengaps",
    "flagged_shares",
    "frequency_energy",
    "graph_basis",
    "graph_covariance",
    "graph_quality",
    "low_rank_distance",
    "neighbor_recall",
    "outlier_shares",
    "project_low_rank",
    "shape_interaction",
    "singular_value_ratio",
    "suggest_k",
    "theorem_bound",
    "vector_alignment",
]
