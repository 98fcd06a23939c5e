"""Make the pictures of docs/report.md and the figures of its tables, which go to results/diagnostics.json.

python docs/images/make_report.py pictures   # needs chromium and FRPCAG_DATA
python docs/images/make_report.py alignment  # needs FRPCAG_DATA
python docs/images/make_report.py theorem
"""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "benchmarks")]


def pictures() -> None:
    """Save screenshots of the reports of digits, faces and a video."""
    from reproduction import load_dataset
    from reproduction.corrupt import block_occlusion

    from frpcag import FRPCAG
    from frpcag.cli.main import main as frpcag
    from support.browser import Browser

    folder = Path(tempfile.mkdtemp())
    digits, faces, clip = (load_dataset(name) for name in ("digits", "orl", "video_hallmonitor"))
    X = faces.X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(400, -1)
    X[::4] = block_occlusion(X[::4], (56, 46), 0.2, random_state=0)[0]
    D = digits.X.copy()
    D[::12] = block_occlusion(D[::12], (8, 8), 0.2, random_state=0)[0]
    FRPCAG().fit(D).report(folder / "digits.html", labels=digits.y, feature_shape=(8, 8), title="digits")
    FRPCAG().fit(X).report(
        folder / "orl.html", labels=faces.y, feature_shape=(56, 46), title="ORL faces, a quarter occluded"
    )
    np.save(folder / "hallmonitor.npy", clip.X.reshape(-1, *clip.shape).astype(np.uint8))
    clip_file, run = str(folder / "hallmonitor.npy"), str(folder / "video")
    frpcag(["video", clip_file, "--output", run, "--quiet"])
    browser = Browser(folder / "profile")
    for name, address, window in (
        ("digits", (folder / "digits.html").as_uri(), {"height": 1900}),
        ("digits-dark", (folder / "digits.html").as_uri(), {"height": 1900, "dark": True}),
        ("orl", (folder / "orl.html").as_uri(), {"height": 1900}),
        ("phone", (folder / "orl.html").as_uri(), {"width": 390, "height": 1400}),
        ("video", (folder / "video" / "report.html").as_uri(), {"height": 1900}),
    ):
        browser.open(address, **window)
        if name in ("orl", "phone"):
            browser.run("document.querySelector('.jump[data-index=\"312\"]')?.click(); scrollTo(0, 0)")
        if name == "video":
            browser.run(
                "document.getElementById('position').value = 120; "
                "document.getElementById('position').dispatchEvent(new Event('input'))"
            )
        browser.wait("[...document.images].every(image => image.complete)")
        browser.screenshot(HERE / f"report-{name}.png", whole=False)
        assert browser.errors == [], browser.errors
    browser.close()


def alignment() -> None:
    """Compute s_r of USPS for each Laplacian and sigma rule."""
    from reproduction import load_dataset

    from frpcag import build_graph
    from frpcag.insight import alignment_ratio, graph_basis, graph_covariance

    data = load_dataset("usps")
    part = np.concatenate([np.flatnonzero(data.y == digit)[:350] for digit in range(10)])
    three = data.X[data.y == 3]
    sets = {"digit 3": three, "digit 3, first 350": three[:350], "all": data.X, "350 of each": data.X[part]}
    rows = []
    for kind in ("combinatorial", "normalized"):
        for rule in ("mean distance", "root mean square distance", "1", "binary"):
            found = {}
            for name, X in sets.items():
                options = {"axis": 1, "n_neighbors": 10, "method": "exact", "laplacian": kind}
                if rule == "root mean square distance":
                    d2 = _squares(X.T)
                    sigma = float(np.sqrt(np.sort(d2, axis=1)[:, 1:11].mean()))
                else:
                    sigma = 1.0 if rule == "1" else "auto"
                weights = "binary" if rule == "binary" else "gaussian"
                graph = build_graph(X, sigma=sigma, weights=weights, **options)
                found[name] = float(alignment_ratio(graph_covariance(X, graph_basis(graph)[1])))
            rows.append({"laplacian": kind, "weights": rule if rule == "binary" else f"sigma = {rule}", "s_r": found})
    _keep("alignment", rows)


def _keep(name: str, found: object) -> None:
    from machine import RESULTS, write_result

    path = RESULTS / "diagnostics.json"
    write_result("diagnostics", {**(json.loads(path.read_text()) if path.exists() else {}), name: found})
    print(json.dumps(found, indent=1))


def _squares(points: np.ndarray) -> np.ndarray:
    points = points.astype(np.float64)
    norms = np.square(points).sum(axis=1)
    return np.maximum(norms[:, None] + norms - 2 * points @ points.T, 0)


def theorem() -> None:
    """Count where Theorem 1 holds, as proved and as printed, on random problems with rough graphs."""
    from frpcag import Problem, build_graph, solve
    from frpcag.data import make_low_rank_on_graphs
    from frpcag.insight import graph_basis, theorem_bound

    warnings.simplefilter("ignore")
    proved = printed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        k1, k2 = (int(k) for k in rng.integers(2, 6, size=2))
        X, clean, _ = make_low_rank_on_graphs(
            int(rng.integers(30, 60)),
            int(rng.integers(25, 50)),
            n_sample_clusters=k1,
            n_feature_clusters=k2,
            noise=rng.uniform(0, 0.5),
            outliers=rng.uniform(0, 0.2),
            random_state=seed,
        )
        L1, L2 = (build_graph(X, axis=axis, n_neighbors=5).laplacian for axis in (0, 1))
        gamma = np.exp(rng.uniform(-3, 2))
        gammas = gamma / graph_basis(L1)[0][k1], gamma / graph_basis(L2)[0][k2]
        problem = Problem(X, L1, L2, *gammas)
        bound = theorem_bound(problem, solve(problem, tol=1e-6, max_iter=5000).U, k1=k1, k2=k2, clean=clean)
        left = bound.loss_U + gammas[0] * bound.outside_samples + gammas[1] * bound.outside_features
        proved += bound.left <= bound.right + bound.slack
        printed += left <= bound.right + bound.slack
    _keep("theorem", {"problems": 200, "as proved": int(proved), "as printed": int(printed)})


if __name__ == "__main__":
    {"pictures": pictures, "alignment": alignment, "theorem": theorem}[sys.argv[1]]()
