"""Sparse matrices with the indices that other libraries take."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def with_small_indices(A: sp.csr_array) -> sp.csr_array:
    """Return ``A`` with 32-bit indices where they fit; values are shared, and ``A`` itself is left as it is.

    scikit-learn refuses sparse matrices with 64-bit indices, and products read half as many bytes of them.
    """
    if A.indices.dtype == A.indptr.dtype == np.int32 or max(*A.shape, A.nnz) > np.iinfo(np.int32).max:
        return A
    return sp.csr_array((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
