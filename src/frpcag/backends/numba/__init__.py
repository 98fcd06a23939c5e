"""The CPU backend: fused kernels in Numba."""
