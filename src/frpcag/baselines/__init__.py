"""The ten models of the paper's comparison, as estimators with one interface.

Each is a scikit-learn estimator whose ``fit`` gives ``embedding_``, the points that k-means labels. The class
attributes ``preprocess``, ``uses_graph``, ``nonnegative`` and ``nested`` say how the paper uses it.
"""

from frpcag.baselines.base import Baseline, BasisBaseline
from frpcag.baselines.classical import NMF, PCA, OriginalSpace
from frpcag.baselines.factorized import GLPCA, GNMF, MMF
from frpcag.baselines.protocol import PREPROCESSING, preprocess
from frpcag.baselines.robust import RPCA, RPCAG
from frpcag.baselines.spectral import LaplacianEigenmaps, NCut

# In the order of Shahid et al. 2016, Sec. VI.
BASELINES: dict[str, type[Baseline]] = {
    "k-means": OriginalSpace,
    "NCut": NCut,
    "LE": LaplacianEigenmaps,
    "PCA": PCA,
    "GLPCA": GLPCA,
    "MMF": MMF,
    "NMF": NMF,
    "GNMF": GNMF,
    "RPCA": RPCA,
    "RPCAG": RPCAG,
}

__all__ = [
    "BASELINES",
    "GLPCA",
    "GNMF",
    "MMF",
    "NMF",
    "PCA",
    "PREPROCESSING",
    "RPCA",
    "RPCAG",
    "Baseline",
    "BasisBaseline",
    "LaplacianEigenmaps",
    "NCut",
    "OriginalSpace",
    "preprocess",
]
