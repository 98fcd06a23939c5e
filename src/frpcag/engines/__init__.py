"""Where the data live: the stages of a fit on NumPy arrays, tensors and row blocks."""
