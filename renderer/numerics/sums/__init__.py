"""Sums of huge arrays and .npy files: fast, reproducible or exact; statistics computed from exact sums.

Halving, the tree of the first programs here: Parallel addition of huge arrays of floating-point numbers (OpenCL), whose
figures are in the lesson `sums`.

    from renderer.gpu import open_context
    from renderer.numerics.sums import array_sum, variance

    devices = open_context().devices
    array_sum(devices, "big.npy").rounded()    # the sum of all numbers, rounded once
    variance(devices, x)                       # x: an array or a path

`rayfold sum` is command.py; programs can call its sum_files().
"""

from renderer.numerics.sums.aggregates import dot, mean, minmax, norm, pairwise_sum, variance, weighted_mean
from renderer.numerics.sums.by_key import reduce_by_key
from renderer.numerics.sums.dask_sums import dask_total
from renderer.numerics.sums.device_sums import BinnedSum, FastSum, array_sum
from renderer.numerics.sums.exact_blas import axis_mean, axis_sum, axis_variance, matmul, matvec
from renderer.numerics.sums.exact_sum import ExactSum

__all__ = [
    "BinnedSum",
    "ExactSum",
    "FastSum",
    "array_sum",
    "axis_mean",
    "axis_sum",
    "axis_variance",
    "dask_total",
    "dot",
    "matmul",
    "matvec",
    "mean",
    "minmax",
    "norm",
    "pairwise_sum",
    "reduce_by_key",
    "variance",
    "weighted_mean",
]
