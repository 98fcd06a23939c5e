"""The PyTorch backend: Triton kernels on a GPU, tensor operations elsewhere."""
