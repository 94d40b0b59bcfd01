"""Cost model of the matrix product variants (matmul.py): operations and memory traffic per thread, register counts.

For `rayfold bench run products` and the guide matmul.md. The key figure is the CGMA ratio (compute to global
memory access): operations per number read from global memory. It is 1 for the naive product, since a multiply-add
counts as two operations (the thesis that matmul.py follows counts one: 0.5).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from renderer.gpu.cuda.cubin import kernel_resources
from renderer.gpu.cuda.nvrtc import compile_cubin
from renderer.gpu.kernel_source import preprocess
from renderer.numerics.matmul import MatmulVariant, variant_constants


class ThreadCosts(NamedTuple):
    """The costs of one thread of a launch."""

    threads: int  # threads of the launch
    elements: float  # elements of the product
    operations: float  # a multiply-add is two
    global_bytes: float  # read from and written to global memory
    local_bytes: float  # the thread's fraction of the local arrays of its group
    intensity: float  # operations per number read from global memory


def thread_costs(variant: MatmulVariant, rows: int, columns: int, inner: int, dtype: DTypeLike = "f4") -> ThreadCosts:
    """The costs per thread of out (rows, columns) = a (rows, inner) b (inner, columns), without bounds checks.

    Not defined for packed_panels, whose number of rows per work-item depends on the device.
    """
    size, group = np.dtype(dtype).itemsize, variant.group
    if variant.entry == "row_per_thread":
        elements, reads, shared, threads = float(columns), 2.0 * columns * inner, 0.0, rows
    else:
        height, width = variant.block_tile
        threads = -(-rows // height) * -(-columns // width) * group
        elements = height * width / group
        if variant.entry == "element_per_thread":
            reads, shared = 2.0 * inner, 0.0
        else:  # a group reads its rows of a and its columns of b once
            reads = (height + width) * inner / group
            constants = variant_constants(variant, rows, columns, inner, dtype)
            shared = _local_numbers(variant, {k: v for k, v in constants.items() if isinstance(v, int)}) * size / group
    operations = 2.0 * elements * inner
    written = elements * size
    intensity = operations / reads if reads else 0.0
    return ThreadCosts(threads, elements, operations, reads * size + written, shared, intensity)


def _local_numbers(variant: MatmulVariant, known: dict[str, int]) -> int:
    """The number of elements in the local arrays of a group, from the variant's constants."""
    if "THREAD_TILE" in known:
        return known["TILE"] ** 2 * (1 + known["THREAD_TILE"])
    stages = known.get("STAGES") or known.get("BUFFERS", 1)
    padded = known["BLOCK_M"] + known.get("A_PAD", 0) + known["BLOCK_N"]
    return variant.local_bytes // 8 or stages * known["BLOCK_K"] * padded


def registers(variant: MatmulVariant, dtype: DTypeLike = "f4", architecture: str = "sm_90") -> int:
    """Registers per thread of the variant's kernel without bounds checks, compiled by NVRTC for `architecture`.

    Needs no GPU; UnavailableError without NVRTC.
    """
    constants = variant_constants(variant, 4096, 4096, 4096, dtype)
    text = preprocess(variant.file, GROUP_SIZE=variant.group, **constants)
    return kernel_resources(compile_cubin(text, architecture, variant.file))[variant.entry].registers
