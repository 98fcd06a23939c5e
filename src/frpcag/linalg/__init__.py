"""Linear algebra of the fit: Lanczos, the Gram factorisation, sparse matrices on a device and in row blocks."""
