"""What each saved model must hold: the kind, the shape and the range of every result, checked when a file is loaded.

A new result gets a line in the table of its class, and a name in ``OPTIONAL`` if earlier files do not have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from frpcag.estimators.saved_checks import (
    Check,
    Sizes,
    best_index,
    count,
    fitted,
    fitted_on,
    flags,
    floats,
    floats_or_missing,
    frame_shape,
    frames,
    graph,
    image_shape,
    names,
    number,
    one_of,
    search_results,
    seconds,
    series,
    shares,
    texts,
    weights,
    whole_numbers,
)
from frpcag.estimators.saved_parts import part

# What every decomposition has, of all rows or of a sample.
_DECOMPOSITION: dict[str, Check] = {
    "low_rank_": floats("np"),
    "components_": floats("cp"),
    "embedding_": floats("nc"),
    "singular_values_": floats("c", least=0.0),
    "mean_": floats("p"),
    "center_": floats("p"),
    "scale_": floats("p", least=np.nextafter(0.0, 1.0)),
    "n_features_in_": count(1, size="p"),
    "feature_names_in_": names("p"),
    "n_iter_": count(),
    "converged_": one_of(bool),
    "status_": one_of(str),
    "backend_": one_of(str),
    "duality_gap_": number(least=0),
    "timings_": seconds,
}
_FRPCAG: dict[str, Check] = {
    **_DECOMPOSITION,
    "sparse_": floats("np"),
    "sample_graph_": graph("n"),
    "feature_graph_": graph("p"),
    "gamma1_": number(least=0),
    "gamma2_": number(least=0),
    "n_refine_": count(),
    "objective_": number(),
    "history_": series,
}
_OVER_FRPCAG: dict[str, Check] = {
    "estimator_": fitted,
    "n_features_in_": count(1, size="p"),
    "feature_names_in_": names("p"),
}
RESULTS: dict[str, Mapping[str, Check]] = {
    "FRPCAG": _FRPCAG,
    "FRPCAGCV": {**_OVER_FRPCAG, "cv_results_": series, "best_index_": best_index},
    "CompressiveFRPCAG": {
        **_DECOMPOSITION,
        "sample_indices_": whole_numbers("m", below="n"),
        "estimator_": fitted_on("mp"),
        "heldout_error_": one_of(float),
    },
    "FRPCAGClustering": {
        **_OVER_FRPCAG,
        "n_iter_": count(),
        "labels_": whole_numbers("n"),
        "n_clusters_": count(1),
        "affinity_": weights,
        "candidates_": search_results,
        "counts_": series,
        "missing_share_": number(least=0),
    },
    "RobustGraphCleaner": {
        **_OVER_FRPCAG,
        "cleaned_": floats("np"),
        "predicted_": floats("np"),
        "deviation_": floats_or_missing("np"),
        "scale_": floats("p", least=np.nextafter(0.0, 1.0)),
        "outlier_probability_": shares("np"),
        "outliers_": flags("np"),
        "row_outlier_probability_": shares("n"),
        "cv_results_": search_results,
        "notes_": texts,
        "feature_shape_": image_shape,
        "rules_": part("CellRules"),
        "sample_indices_": whole_numbers("n"),
    },
    "RobustGraphImputer": {**_OVER_FRPCAG, "units_": part("Units", optional=True)},
    "BackgroundSeparator": {
        "frame_shape_": frame_shape,
        "references_": frames("rhw", half=True),
        "noise_map_": frames("hw", least=0.0),
        "drift_": frames("hw"),
        "noise_": number(least=0),
        "threshold_": number(),
        "gamma1_": number(least=0),
        "n_iter_": count(),
        "duality_gap_": number(least=0),
        "n_links_": count(1, most="r"),
    },
}
# Results that a file may lack, of any class or of one.
OPTIONAL = frozenset(
    {"feature_names_in_", "n_clusters_", "affinity_", "candidates_", "counts_", "missing_share_", "drift_"}
    | {("CompressiveFRPCAG", "low_rank_"), ("RobustGraphCleaner", "sample_indices_")}
)


def check_results(kind: str, results: Mapping[str, Any]) -> None:
    """Raise ValueError unless these are the results of a model of class ``kind``.

    Parameters
    ----------
    kind : str
        Name of the class.
    results : mapping of str to object
        Fitted attributes.
    """
    table = RESULTS[kind]
    for name in results:
        if name not in table:
            raise ValueError(f"{name!r} is not a result of {kind}")
    sizes: Sizes = {}
    for name, check in table.items():
        if name in results:
            check(name, results[name], sizes)
        elif name not in OPTIONAL and (kind, name) not in OPTIONAL:
            raise ValueError(f"{name} is missing")
