"""Matrix products: tiles in local memory on GPUs, register blocks on CPUs (shaders/cdollar/*_matmul.h).

As in BLAS, the output has m rows and n columns, and each element is a sum of k products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from renderer.cdollar.ir.types import DTYPES
from renderer.cdollar.targets.dialects import CDialect
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import RangesOf
from renderer.cdollar.targets.kernel_plan import BufferArgument, KernelKind, KernelPlan, finish_plan, volume
from renderer.cdollar.targets.matrix_product import (
    MatrixProduct,
    emit_operand,
    is_contiguous_along,
    operand_factors,
    plain_operands,
)
from renderer.cdollar.targets.schedule import DEFAULT, TILE_SIZES, Schedule
from renderer.gpu import Device, DeviceProperties

CPU_ROWS = 48  # the least rows of a work-item
BAND_TILES = 8  # tile rows that groups traverse together, so that the L2 cache serves both operands
LOCAL_MEMORY_BYTES = 48 * 1024  # what every device has
MIN_OCCUPANCY = 0.9  # tiles per compute unit that a tile size must leave


def choose_tile_size(product: MatrixProduct, compute_units: int) -> Schedule:
    """The largest tiles that still give every compute unit work, for products that were not tuned."""
    rows, columns, batch = volume(product.rows), volume(product.columns), volume(product.batch)
    for change in TILE_SIZES:
        schedule = replace(DEFAULT, **change)
        tiles = -(-rows // schedule.tile_rows) * -(-columns // schedule.tile_columns) * batch
        if tiles >= MIN_OCCUPANCY * compute_units:
            return schedule
    return schedule


def fit_local_memory(schedule: Schedule, type_: str) -> Schedule:
    """The schedule, with tiles shallow enough for local memory."""
    line = 2 * (schedule.tile_rows + schedule.tile_columns + 8) * (8 if type_ == "double" else 4)
    while schedule.tile_depth * line > LOCAL_MEMORY_BYTES and schedule.tile_depth > 4:
        schedule = replace(schedule, tile_depth=schedule.tile_depth // 2)
    return schedule


def plan_plain_matmul(product: MatrixProduct, ranges_of: RangesOf, properties: DeviceProperties) -> KernelPlan | None:
    """The kernel of renderer.numerics.matmul for arrays that are multiplied as they lie in memory; else None."""
    operands = plain_operands(product, ranges_of)
    if operands is None:
        return None
    from renderer.numerics.matmul import choose_variant, thread_count, variant_constants  # only for those who multiply

    rows, columns, depth = (v.range.size for v in (*product.node.attribute, *product.inner))
    dtype = DTYPES[product.type]
    device = cast(Device, SimpleNamespace(properties=properties))  # nothing else is asked of it
    variant = choose_variant(device, rows, columns, dtype)
    constants: dict[str, Any] = variant_constants(variant, rows, columns, depth, dtype)
    text = "".join(f"#define {name} {value}\n" for name, value in sorted(constants.items()))
    groups = -(-thread_count(variant, device, rows, columns, constants["VECTOR_LENGTH"]) // variant.group)
    arguments: list[Any] = [BufferArgument("array", 0, node) for node in operands]
    arguments += [BufferArgument("output"), *map(np.uint32, (rows, columns, depth))]
    return KernelPlan(
        product.node, "matmul", f'{text}#include "{variant.file}"\n', variant.group, groups, arguments,
        has_doubles=product.type == "double", entry=variant.entry, local_bytes=variant.local_bytes,
        reason=f"a product of {rows} x {depth} and {depth} x {columns}",
    )  # fmt: skip


def plan_tiled_matmul(product: MatrixProduct, ranges_of: RangesOf, schedule: Schedule) -> KernelPlan:
    """A work-group computes a tile of the output, a thread thread_rows x thread_columns elements in registers."""
    s = fit_local_memory(schedule, product.type)
    threads_across, threads_down = s.tile_columns // s.thread_columns, s.tile_rows // s.thread_rows
    constants = {
        **{name.upper(): value for name, value in asdict(s).items() if name.startswith(("tile_", "thread_"))},
        "THREADS_ACROSS": threads_across,
        "THREADS_DOWN": threads_down,
        "BAND_TILES": BAND_TILES,
        "VECTOR_LOADS": int(product.type == "float"),
        "LEFT_K_CONTIGUOUS": int(is_contiguous_along(product.left, product.inner)),
        "RIGHT_K_CONTIGUOUS": int(is_contiguous_along(product.right, product.inner)),
    }
    sizes, batch = product.sizes, volume(product.batch)
    group_count = -(-sizes["rows"] // s.tile_rows) * -(-sizes["columns"] // s.tile_columns) * batch
    group_size = threads_across * threads_down
    plan = plan_product(product, ranges_of, "tiled_matmul", constants, group_size, group_count)
    plan.reason = f"a product of {sizes['rows']} x {sizes['depth']} and {sizes['depth']} x {sizes['columns']}"
    plan.reason += f", {batch} times" if product.batch else ""
    return plan


def plan_cpu_matmul(product: MatrixProduct, ranges_of: RangesOf, properties: DeviceProperties) -> KernelPlan:
    """About eight work-items a core, each with a panel of columns and at least CPU_ROWS rows."""
    if product.node.attribute[-1] in product.rows:  # rows of the output are what vectors run along
        left, right, rows, columns = product.right, product.left, product.columns, product.rows
        product = replace(product, left=left, right=right, rows=rows, columns=columns)
    lanes = 16 if product.type == "float" and properties.simd_width >= 16 else 8
    panels = -(-volume(product.columns) // (2 * lanes)) * volume(product.batch)
    parts = max(1, min(-(-8 * properties.compute_units // panels), volume(product.rows) // CPU_ROWS))
    wide: dict[str, int | str] = {"WIDE": f"{product.type}{lanes}", "SIMD_LANES": lanes}
    return plan_product(product, ranges_of, "cpu_matmul", wide, 1, panels * parts, {"parts": parts})


def plan_product(
    product: MatrixProduct,
    ranges_of: RangesOf,
    kind: KernelKind,
    constants: Mapping[str, int | str],
    group_size: int,
    group_count: int,
    more_sizes: Mapping[str, int] | None = None,
) -> KernelPlan:
    """The kernel shaders/cdollar/`kind`.h with its constants, loads of the operands and index of the output."""
    emitter = Emitter(CDialect(), ranges_of)
    loads = []
    for name, factors in zip(("LEFT", "RIGHT"), operand_factors(product), strict=True):
        lines, element = emit_operand(emitter, *factors)
        loads += [f"#define LOAD_{name}(value) {{ \\", *(f"    {line} \\" for line in lines)]
        loads += [f"    value = {element}; \\", "}"]
    body = [
        *emitter.blocks[0].lines,
        f"#define TYPE {product.type}",
        *(f"#define {name} {value}" for name, value in constants.items()),
        f"#define OUTPUT_INDEX ({output_index(emitter, product)})",
        *loads,
        f'#include "cdollar/{kind}.h"',
    ]
    sizes = {**product.sizes, "batches": volume(product.batch), **(more_sizes or {})}
    return finish_plan(emitter, product.node, kind, sizes, (product.type,), body, group_size, group_count)


def output_index(emitter: Emitter, product: MatrixProduct) -> str:
    """The linear index of an element of the product in the function's own order of variables."""
    variables = product.node.attribute
    if variables == (*product.batch, *product.rows, *product.columns):
        return "(batch * rows + row) * columns + column"
    terms = []
    for group, rest in ((product.batch, "batch"), (product.rows, "row"), (product.columns, "column")):
        for variable in reversed(group):
            stride = volume(variables[variables.index(variable) + 1 :])
            size = emitter.argument((variable.unique_id, "size"), "int", variable.range.size, "n")
            step = emitter.argument((variable.unique_id, "stride"), "int", stride, "n")
            terms.append(f"({rest} % {size}) * {step}")
            rest = f"({rest} / {size})"
    return " + ".join(terms)
