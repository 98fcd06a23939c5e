"""Store a small model of this version, once for every release: ``python tests/golden/make_model.py``.

The file stays as it is for ever; later versions must load it (tests/test_saved.py).
"""

from pathlib import Path

import numpy as np

import frpcag

HERE = Path(__file__).parent


def main() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(3 * rng.normal(size=(3, 10)), 15, axis=0) + rng.normal(size=(45, 10))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[rng.random(X.shape) < 0.05] = 30
    rows = X[::5] + rng.normal(size=(9, 10))
    model = frpcag.FRPCAG(n_components=3, n_neighbors=5, random_state=0).fit(X)
    target = HERE / f"model-{frpcag.__version__}.npz"
    if target.exists():
        raise SystemExit(f"{target.name} is there already; released files are never written again.")
    model.save(target)
    parts = {"rows": rows, "clean": model.denoise(rows), "embedding": model.transform(rows)}
    np.savez(HERE / f"rows-{frpcag.__version__}.npz", **parts)


if __name__ == "__main__":
    main()
