"""Graphs of tensors, built on their own device."""
