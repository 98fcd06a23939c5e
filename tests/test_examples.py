"""Every example of the gallery runs, draws, and finds what its text says it finds."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))

# What each text claims, in the names of its example.
CLAIMS = {
    "big_data": lambda x: x["difference"] < 0.05 and x["by_blocks"].duality_gap_ <= 1e-3,
    "bad_sensors": lambda x: (
        set(x["worst"]) == {*x["spiky"], x["stuck"]}
        and set(np.argsort(x["by_day"])[::-1][:2]) == set(x["bad_days"])
        and x["error"]["U"] < x["error"]["U, searched graph"] < x["error"]["X"]
        and x["recall"] < 0.5 < x["scores"]["recall"]
    ),
    "certificate": lambda x: (
        x["paper"].gap > 0.05
        and x["ours"].gap <= 1e-3
        and x["runs"]["the same with restart (default)"].gap < 1e-6 < x["runs"]["step size by Lanczos"].gap
    ),
    "clusters": lambda x: (
        x["errors"]["the same, told by NaN"][-1] < min(v[-1] for k, v in x["errors"].items() if "NaN" not in k) - 0.1
        and all(
            x["errors"]["FRPCAGClustering"][level] < x["errors"][rival][level]
            for level in range(3)
            for rival in ("k-means", "spectral clustering")
        )
        and 0.3 < x["errors"]["FRPCAGClustering"][-1] < 0.4
    ),
    "faces": lambda x: (
        x["error"]["repaired"] < 0.5 * x["error"]["robust PCA"] < 0.5 * x["error"]["as given"]
        and x["found"] > 0.98
        and x["untouched"] > 0.98
    ),
    "first_fit": lambda x: (
        x["distance"]["FRPCAG"] < x["distance"]["PCA"] < x["distance"]["as given"]
        and x["on_clean"]["PCA"] < x["on_clean"]["FRPCAG"]
    ),
    "gammas": lambda x: (
        x["worst_gap"] <= 1e-3
        and x["distance"][2, 2] < 1.1 * x["distance"].min()
        and x["distance"].min() < x["by_cv"] < x["distance"][2, 2] < 0.7 * x["as_given"]
    ),
    "missing_values": lambda x: (
        min(x["imputers"], key=lambda name: x["errors"][0.3, name]) == "RobustGraphImputer"
        and abs(x["errors"][0.7, "RobustGraphImputer"] - x["errors"][0.7, "KNNImputer"]) < 0.1
    ),
    "new_rows": lambda x: all(ours < pca for pca, ours in x["distance"].values()),
    "pipeline": lambda x: x["accuracy"]["FRPCAG"] > x["accuracy"]["mean, PCA"],
    "single_cells": lambda x: (
        all(value > x["agreement"]["PCA"] - 0.1 for value in x["agreement"].values())
        and x["adata"].layers["frpcag"].min() >= 0
        and all(after > before for before, after in x["score"].values())
        and min(after for _, after in x["score"].values()) > 0.9
    ),
    "video_background": lambda x: x["f1"]["BackgroundSeparator"] > 0.85 > 0.4 > x["f1"]["one median for all frames"],
    "when_pca_is_better": lambda x: (
        x["distance"]["subspace", "PCA"][0] < 0.3 * x["distance"]["subspace", "FRPCAG"][0]
        and all(np.less(x["distance"]["subspace", "RPCA"], x["distance"]["subspace", "FRPCAG"]))
        and all(np.less(x["distance"]["groups", "FRPCAG"], x["distance"]["groups", "PCA"]))
        and all(np.less(x["distance"]["groups", "FRPCAG"], x["distance"]["groups", "RPCA"]))
    ),
    "wrong_cells": lambda x: (
        x["precision"] > 0.95
        and x["recall"] > 0.9
        and x["bad_hours"].tolist() == [100]
        and x["untouched"]
        and x["error"]["RobustGraphCleaner"] < 0.2 * x["error"]["RPCA"] < 0.2 * x["error"]["as given"]
    ),
    "which_graph": lambda x: (
        x["distance"]["pixels on a grid"] < x["distance"]["both searched (default)"]
        and x["distance"]["from clean images"] == min(x["distance"].values())
        and x["recall"]["the same, against the neighbours in clean images"] < 0.5
    ),
    "which_laplacian": lambda x: x["errors"]["combinatorial"] < 0.5 * x["errors"]["normalized"],
    "why_it_works": lambda x: (
        x["s_r"] > 0.9 > 0.5 > x["s_r_shuffled"] and x["low"]["U"] > x["low"]["X"] and x["rank"]["U"] < x["rank"]["X"]
    ),
}


# What an example needs that the tests do not bring along; the site, which runs all of them, does.
NEEDS = {"single_cells": "scanpy"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem.removeprefix("plot_"))
def test_an_example_draws_and_finds_what_it_says(path, tmp_path, monkeypatch):
    if needed := NEEDS.get(path.stem.removeprefix("plot_")):
        pytest.importorskip(needed, reason=f"{needed} is not installed")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.close("all")
    try:
        names = runpy.run_path(str(path))
        assert plt.get_fignums(), "the example draws nothing"
    finally:
        plt.close("all")
    assert CLAIMS[path.stem.removeprefix("plot_")](names)
    assert not list(tmp_path.iterdir()), "the example leaves files behind"


def test_every_example_has_a_place_in_the_gallery():
    order = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery.py"))["ORDER"]
    assert sorted(order) == [path.stem.removeprefix("plot_") for path in EXAMPLES]
