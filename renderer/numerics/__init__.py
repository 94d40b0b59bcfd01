"""Numerical methods on devices: sums, banded systems, matrix products, the Laplacian filter, texture reductions."""
