"""What the variants of the matrix product cost: arithmetic and memory of a thread, registers as NVRTC allots them.

The ratio to reason with is the thesis's CGMA (compute to global memory access): operations for each number that a
thread reads from global memory, 0.5 for the plain product as multiply-adds, 1 here, where both of them count.
"""

from typing import Any, NamedTuple

import numpy as np

from renderer.gpu.cubin import kernel_resources
from renderer.gpu.kernel_source import preprocess
from renderer.gpu.nvrtc import compile_cubin
from renderer.numerics.matmul import MatmulVariant, variant_constants


class ThreadCosts(NamedTuple):
    """Of one thread: operations (a multiply-add is two), bytes from and to global memory, bytes of local arrays.

    `intensity` are operations a number read from global memory; `threads` is the size of the launch.
    """

    threads: int
    elements: float
    operations: float
    global_bytes: float
    local_bytes: float
    intensity: float


def thread_costs(variant: MatmulVariant, rows: int, columns: int, inner: int, dtype: Any = "f4") -> ThreadCosts:
    """The costs of out (rows, columns) = a (rows, inner) b (inner, columns) for a thread, bounds checks left out.

    Not of packed_panels, whose work-items divide the rows by the number of cores.
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
            shared = _local_numbers(variant, variant_constants(variant, rows, columns, inner, dtype)) * size / group
    operations = 2.0 * elements * inner
    written = elements * size
    intensity = operations / reads if reads else 0.0
    return ThreadCosts(threads, elements, operations, reads * size + written, shared, intensity)


def _local_numbers(variant: MatmulVariant, known: dict[str, Any]) -> int:
    """Numbers in the local arrays of a group."""
    if "THREAD_TILE" in known:
        return known["TILE"] ** 2 * (1 + known["THREAD_TILE"])
    stages = known.get("STAGES") or known.get("BUFFERS", 1)
    padded = known["BLOCK_M"] + known.get("A_PAD", 0) + known["BLOCK_N"]
    return variant.local_bytes // 8 or stages * known["BLOCK_K"] * padded


def registers(variant: MatmulVariant, dtype: Any = "f4", architecture: str = "sm_90") -> int:
    """Registers of a thread of the variant's kernel for sizes that its blocks divide, as NVRTC compiles it.

    UnavailableError without NVRTC; no GPU is needed.
    """
    constants = variant_constants(variant, 4096, 4096, 4096, dtype)
    text = preprocess(variant.file, GROUP_SIZE=variant.group, **constants)
    return kernel_resources(compile_cubin(text, architecture, variant.file))[variant.entry].registers
