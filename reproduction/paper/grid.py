"""What the paper ran: data sets, corruptions, models and their parameter ranges (Shahid et al. 2016, Sec. VII)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from sklearn.datasets import load_digits

from reproduction import block_occlusion, load_dataset, missing_pixels

Array = np.ndarray

SETS = ("orl", "yale", "coil20", "pie", "usps", "mfeat", "mnist")
CORRUPTIONS = ("clean", "block25", "missing20", "missing40", "block15", "block40", "missing10", "missing30")

# The embedding size and the graph weights of the paper's table, as log-spaced subsets of its ranges.
COMPONENTS = tuple(2**power for power in range(1, 9))
FEW_COMPONENTS = (16, 64)
LOW_RANK_COMPONENTS = (8, 16, 32, 64)
BETAS = (0.1, 0.3, 0.5, 0.7, 0.9)
GRAPH_WEIGHTS = (2.0**-3, 2.0**0, 2.0**3, 2.0**6, 2.0**10)
SPARSE_WEIGHTS = (0.25, 0.5, 1.0, 2.0)  # times 1 / sqrt(max(n, p))
# The nuclear norm with a graph takes minutes a try.
FEW_SPARSE_WEIGHTS = (0.5, 1.0)
FEW_GRAPH_WEIGHTS = (2.0**-3, 2.0**0, 2.0**3)
GAMMAS = (1.0, 3.0, 10.0, 30.0, 100.0)

# One solver model for each of the three kinds of graphs; the paper's strategies 1 and 2.
GRAPH_TYPES = {
    "FRPCAG(A)": ("exact", "exact"),
    "FRPCAG(B)": ("exact", "approximate"),
    "FRPCAG(C)": ("approximate", "approximate"),
}
PAPER_MODELS = ("k-means", "NCut", "LE", "PCA", "GLPCA", "MMF", "NMF", "GNMF", "RPCA", "RPCAG", *GRAPH_TYPES)
# Beyond the paper, parameters picked by labels all the same: k-means on rows of W scaled to length one, as NCut does.
ON_UNIT_W = "FRPCAG(A), unit W"
# Beyond the paper: every labeller on U and on W, nothing chosen by labels.
LABELLER_ROWS = "labellers"
# Beyond the paper: no parameter is chosen by labels. The last one is told which entries were hit.
LABEL_FREE = ("spectral clustering", "UMAP + k-means", "FRPCAGClustering", "FRPCAGClustering, NaN")
NONNEGATIVE = ("NMF", "GNMF")
# The paper compares with the nuclear norm and a graph on its small face set only; so do we, on the sets of its size.
RPCAG_SETS = ("orl", "yale", "mfeat", "digits")
# Approximate graphs differ little from exact ones at these sizes: one corruption of each kind shows it.
APPROXIMATE_CORRUPTIONS = ("clean", "block25", "missing20")


@dataclass(frozen=True)
class LabelledSet:
    """Data, labels and the shape of the image behind a row."""

    X: Array
    y: Array
    shape: tuple[int, int] | None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(np.unique(self.y))


@lru_cache(maxsize=2)
def load_set(name: str) -> LabelledSet:
    """Return a data set at the size the paper used, or as near as the real one comes.

    Parameters
    ----------
    name : str
        One of :data:`SETS`; "digits" is the small set of scikit-learn; "orl30" holds the first 30 subjects.

    Returns
    -------
    LabelledSet
        ORL at 56 x 46; all 1440 images of COIL20; 40 lightings of each of 30 subjects of PIE; 350 digits a class
        of USPS; 40 samples a class and 409 columns of MFEAT; 200 digits a class of MNIST, where the paper has
        50,000 in all.
    """
    if name == "digits":
        digits = load_digits(n_class=4)
        keep = _first_of_class(digits.target, 40)
        return LabelledSet(digits.data[keep].astype(np.float32), digits.target[keep], (8, 8))
    data = load_dataset(name.removesuffix("30"))
    X, y, shape = data.X, data.y, data.shape
    if name.startswith("orl"):
        X, shape = X.reshape(-1, 56, 2, 46, 2).mean(axis=(2, 4)).reshape(len(X), -1), (56, 46)
    if name == "mfeat":
        X = X[:, data.view != 4]
    n_classes, per_class = {"orl30": (30, 10), "pie": (30, 40), "usps": (10, 350), "mfeat": (10, 40)}.get(
        name, (len(np.unique(y)), 200)
    )
    keep = _first_of_class(y, per_class)
    keep = keep[y[keep] < n_classes]
    return LabelledSet(X[keep], y[keep], shape)


def _first_of_class(y: Array, n: int) -> Array:
    """Return the first ``n`` samples of each class, class by class."""
    return np.concatenate([np.flatnonzero(y == one)[:n] for one in np.unique(y)])


def corrupt(X: Array, shape: tuple[int, int] | None, corruption: str) -> tuple[Array, Array]:
    """Return corrupted data and where they were hit.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Clean data.
    shape : tuple or None
        Of the image behind a row.
    corruption : str
        "clean", "blockN" (a block of N % of the image area at a random place) or "missingN" (N % of the entries
        set to zero).

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        A corrupted copy.
    hit : ndarray of bool of shape (n_samples, n_features)
        True at the entries that were overwritten.
    """
    kind, share = corruption.rstrip("0123456789"), corruption.lstrip("abcdefghijklmnopqrstuvwxyz")
    if kind == "block":
        if shape is None:
            raise ValueError(f"corruption={corruption!r} needs images; pass 'missingN' for data of other kinds.")
        return block_occlusion(X, shape, int(share) / 100, random_state=0)
    return missing_pixels(X, int(share or 0) / 100, random_state=0)


def clustering_cells(
    sets: tuple[str, ...] = SETS,
    corruptions: tuple[str, ...] = CORRUPTIONS,
    models: tuple[str, ...] = (*PAPER_MODELS, *LABEL_FREE, LABELLER_ROWS, ON_UNIT_W),
) -> list[dict]:
    """Return the cells of the clustering comparison, those that every table needs first.

    Non-negative models are left out where the data are not (USPS, MFEAT), blocks where a row is no image (MFEAT).
    """
    return [
        {"data": name, "corruption": corruption, "model": model}
        for corruption in corruptions
        for name in sets
        for model in models
        if not (name == "mfeat" and corruption.startswith("block"))
        and not (name in ("mfeat", "usps") and model in NONNEGATIVE)
        and not (model == "RPCAG" and name not in RPCAG_SETS)
        and not (model in ("FRPCAG(B)", "FRPCAG(C)") and corruption not in APPROXIMATE_CORRUPTIONS)
    ]
