"""Exact sums of Dask arrays: each worker adds its own chunks, and only the ExactSums are sent and merged.

    dask_total(array).compute().rounded()                # the sum of a Dask array of any size
    dask_total(array, y=other).compute().rounded()       # the dot product of two

Aggregate functions for other systems (DuckDB, Arrow) work the same way: array_sum() of each batch, then + of the sums.
"""

import operator
from functools import lru_cache, reduce
from typing import Any, TypeVar

import numpy as np

from renderer.errors import import_optional
from renderer.gpu import Device, open_context
from renderer.numerics.sums.device_sums import array_sum
from renderer.numerics.sums.exact_sum import ComplexSum, ExactSum
from renderer.numerics.sums.tensors import dask_blocks
from renderer.system.install import pip_install

Sum = TypeVar("Sum", ExactSum, ComplexSum)
FAN_IN = 16  # partial sums that one task merges


def dask_total(array: Any, y: Any = None, spellings: tuple[str, ...] = ()) -> Any:
    """A dask.delayed ExactSum of a Dask array, or of its products with `y`, computed by the workers' devices.

    `spellings` name the devices as for --device. InputError of dask_blocks(), UnavailableError without Dask.
    """
    delayed = import_optional("dask.delayed", f"Dask is not installed: {pip_install('farm')}").delayed
    sums = [delayed(_block_sum)(block, other, spellings) for block, other in dask_blocks(array, y)]
    merge = delayed(_merge)
    while len(sums) > 1:
        sums = [merge(sums[k : k + FAN_IN]) for k in range(0, len(sums), FAN_IN)]
    return sums[0] if sums else delayed(ExactSum)()


@lru_cache(maxsize=4)
def devices_of_worker(spellings: tuple[str, ...]) -> list[Device]:
    """The devices of this process, a Dask worker, opened once; `spellings` as for --device."""
    return open_context(*spellings).devices


def _block_sum(block: np.ndarray, other: np.ndarray | None, spellings: tuple[str, ...]) -> ExactSum | ComplexSum:
    total: ExactSum | ComplexSum = array_sum(devices_of_worker(spellings), block, y=other)
    return total


def _merge(parts: list[Sum]) -> Sum:
    return reduce(operator.add, parts)
