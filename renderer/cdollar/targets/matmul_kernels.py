"""Recognizes functions that are matrix products, and plans their kernels; called by map_kernels.py and the GLSL target.

As in BLAS, the output has m rows and n columns, and each element is a sum of k products. A product of two arrays as
they lie in memory runs by the kernels of renderer.numerics.matmul. A product whose operands are expressions runs by
tiles in local memory on GPUs (shaders/cdollar/tiled_matmul.h), by register blocks on CPUs (cpu_matmul.h).
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from renderer.cdollar.ir import dag
from renderer.cdollar.ir.contraction import contraction_factors
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.ir.types import DTYPES, component_types
from renderer.cdollar.targets.dialects import CDialect, operation_text
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import StoredRanges
from renderer.cdollar.targets.kernel_plan import BufferArgument, KernelPlan, PlanContext, finish_plan, volume
from renderer.cdollar.targets.schedule import DEFAULT, TILE_SIZES, Schedule
from renderer.gpu import Device

MIN_DEPTH = 4  # the fewest products per sum for which these kernels are faster than a map
MIN_CPU_ROWS = 48  # the fewest rows of a work-item on CPUs
BAND_TILES = 8  # tile rows that groups traverse together, so that the L2 cache serves both operands
LOCAL_MEMORY_BYTES = 48 * 1024  # the local memory of a work-group that every GPU has
MIN_OCCUPANCY = 0.9  # the fewest tiles per compute unit for which choose_tile_size() takes a tile size
# Each entry: variables, and the name of the C variable that holds their row-major position.
Indices = list[tuple[dag.Variables, str]]
Operand = tuple[dag.Nodes, Indices]  # the factors of an operand, and the indices of its elements


class MatrixProduct(NamedTuple):
    """A function that is a sum of products of left factors (batch, rows, k) and right factors (batch, k, columns).

    The fields `batch`, `rows`, `columns` and `inner` (k) are groups of bound variables; a group may be empty or have
    several variables, as in einsum.
    """

    node: dag.Node
    left: dag.Nodes
    right: dag.Nodes
    batch: dag.Variables
    rows: dag.Variables
    columns: dag.Variables
    inner: dag.Variables

    @property
    def type(self) -> str:
        """The scalar type: float or double."""
        return dag.scalar_types(self.node.inputs[0])[0]

    @property
    def description(self) -> str:
        """The sizes of the operands, for --explain."""
        return "a product of {rows} x {depth} and {depth} x {columns}".format(**self.sizes)

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of rows, columns and products per sum."""
        return {"rows": volume(self.rows), "columns": volume(self.columns), "depth": volume(self.inner)}


def match_matrix_product(node: dag.Node) -> MatrixProduct | None:
    """Match a function with a matrix product; None if its body is not a sum of products of a left and a right side."""
    if node.op != "function" or len(node.inputs) != 1 or node.inputs[0].op != "reduce":
        return None
    reduction = node.inputs[0]
    factors = contraction_factors(reduction)
    if factors is None:
        return None
    if any(n.op == "reduce" and n.free_variables for f in factors for n in order_within_scope(f)):
        return None  # a factor contains another reduction
    inner = frozenset(reduction.attribute[1])
    left: list[dag.Node] = [factors[0]]
    right: list[dag.Node] = []
    # The left side is the first factor, and every factor that depends on no other output variables; the right side has
    # the other factors. Output variables of both sides are the batch.
    rows = factors[0].free_variables - inner
    for factor in factors[1:]:
        (left if factor.free_variables - inner <= rows else right).append(factor)
    if not right:
        return None
    columns = frozenset().union(*(f.free_variables for f in right)) - inner
    batch = rows & columns
    if not rows - batch or not columns - batch or (rows | columns) != frozenset(node.attribute):
        return None

    def in_order(variables: frozenset[dag.BoundVariable]) -> dag.Variables:
        return tuple(v for v in node.attribute if v in variables)

    groups = in_order(batch), in_order(rows - batch), in_order(columns - batch)
    return MatrixProduct(node, tuple(left), tuple(right), *groups, reduction.attribute[1])


def plain_operands(product: MatrixProduct, stored_ranges: StoredRanges) -> tuple[dag.Node, dag.Node] | None:
    """The arrays a and b of a product a(row, k) b(k, column) over all of their elements; None for other products."""
    variables = product.node.attribute
    if len(variables) != 2 or len(product.inner) != 1:
        return None
    (row, column), (k,) = variables, product.inner
    # The operand with the output's first variable is a: match_matrix_product() took the first factor for the left side.
    left, right = (product.left, product.right) if row in product.rows else (product.right, product.left)
    operands = []
    for factors, wanted in ((left, (row, k)), (right, (k, column))):
        if len(factors) != 1 or not isinstance(factors[0].attribute, dag.Access):
            return None
        array = dag.without_lets(factors[0].inputs[0])
        is_read_in_place = dag.reads_in_place(factors[0], wanted, stored_ranges(array))
        if not is_read_in_place or component_types(array.type.result) != (product.type,):
            return None
        operands.append(array)
    return operands[0], operands[1]


def varies_along(factors: dag.Nodes, variables: dag.Variables) -> bool:
    """True if the last index of the first array that `factors` read depends on the last of `variables`.

    Threads that step along `variables` then usually read neighboring elements.
    """
    for factor in factors:
        for node in order_within_scope(factor):
            if node.op == "apply" and isinstance(node.attribute, dag.Access):
                return variables[-1] in node.inputs[-1].free_variables
    return False


def emit_operand(emitter: Emitter, factors: dag.Nodes, indices: Indices, checked: bool = True) -> tuple[list[str], str]:
    """Return lines that compute one element of an operand, the product of `factors`, and the C variable that holds it.

    If `checked`, the lines also write a read out of bounds to the status word, which the host reads after the run.
    """
    type_ = factors[0].type
    with emitter.scope() as scope:
        for variables, linear_index in indices:
            emitter.delinearize(variables, linear_index)
        first, *others = values = [emitter.value(f) for f in factors]
        name = first.names[0]
        for value in others:
            name = operation_text(emitter.dialect, "*", type_, type_, [name, value.names[0]])
        poison = emitter.merge_poison([v.poison for v in values], scope.lines)
    return [*scope.lines, *(emitter.report_poison(poison) if checked else [])], name


def operand_factors(product: MatrixProduct) -> list[Operand]:
    """The factors of both operands: the left one at (batch, row, k), the right one at (batch, k, column)."""
    batch, k = (product.batch, "batch"), (product.inner, "k")
    left = product.left, [batch, (product.rows, "row"), k]
    right = product.right, [batch, (product.columns, "column"), k]
    return [left, right]


def plan_matmul(product: MatrixProduct, context: PlanContext) -> KernelPlan:
    """Plan the kernel of a matrix product; a schedule other than DEFAULT gives the tile size of the tiled kernel."""
    is_default = context.schedule == DEFAULT
    plan = plan_plain_matmul(product, context) if is_default else None
    if plan is not None:
        return plan
    if context.is_cpu:
        return plan_cpu_matmul(product, context)
    schedule = choose_tile_size(product, context.properties.compute_units) if is_default else context.schedule
    return plan_tiled_matmul(product, context, schedule)


def choose_tile_size(product: MatrixProduct, compute_units: int) -> Schedule:
    """The largest tiles that give nearly every compute unit a tile, for products that were not tuned."""
    rows, columns, batch = volume(product.rows), volume(product.columns), volume(product.batch)
    for change in TILE_SIZES:
        schedule = replace(DEFAULT, **change)
        tiles = -(-rows // schedule.tile_rows) * -(-columns // schedule.tile_columns) * batch
        if tiles >= MIN_OCCUPANCY * compute_units:
            return schedule
    return schedule


def fit_local_memory(schedule: Schedule, type_: str) -> Schedule:
    """The schedule with `tile_depth` halved, to 4 at least, until two tiles of each operand fit local memory."""
    line = 2 * (schedule.tile_rows + schedule.tile_columns + 8) * (8 if type_ == "double" else 4)
    while schedule.tile_depth * line > LOCAL_MEMORY_BYTES and schedule.tile_depth > 4:
        schedule = replace(schedule, tile_depth=schedule.tile_depth // 2)
    return schedule


def plan_plain_matmul(product: MatrixProduct, context: PlanContext) -> KernelPlan | None:
    """Plan the kernel of renderer.numerics.matmul for plain_operands(); None for other products."""
    operands = plain_operands(product, context.stored_ranges)
    if operands is None:
        return None
    from renderer.numerics import matmul  # imported for matrix products only

    rows, columns, depth = (v.range.size for v in (*product.node.attribute, *product.inner))
    dtype = DTYPES[product.type]
    device = cast(Device, SimpleNamespace(properties=context.properties))  # matmul.py reads only the properties
    variant = matmul.choose_variant(device, rows, columns, dtype)
    constants: dict[str, Any] = matmul.variant_constants(variant, rows, columns, depth, dtype)
    text = "".join(f"#define {name} {value}\n" for name, value in sorted(constants.items()))
    groups = -(-matmul.thread_count(variant, device, rows, columns, matmul.vector_length(dtype)) // variant.group)
    arguments: list[Any] = [BufferArgument("array", 0, node) for node in operands]
    arguments += [BufferArgument("output"), *map(np.uint32, (rows, columns, depth))]
    return KernelPlan(
        product.node, "matmul", f'{text}#include "{variant.file}"\n', variant.group, groups, arguments,
        has_doubles=product.type == "double", entry=variant.entry, local_bytes=variant.local_bytes,
        reason=product.description,
    )  # fmt: skip


def plan_tiled_matmul(product: MatrixProduct, context: PlanContext, schedule: Schedule) -> KernelPlan:
    """Plan the GPU kernel for operands that are expressions, shaders/cdollar/tiled_matmul.h.

    A work-group computes a tile of the output, a thread thread_rows x thread_columns elements in registers.
    """
    s = fit_local_memory(schedule, product.type)
    threads_across, threads_down = s.tile_columns // s.thread_columns, s.tile_rows // s.thread_rows
    constants = {
        **{name.upper(): value for name, value in asdict(s).items() if name.startswith(("tile_", "thread_"))},
        "THREADS_ACROSS": threads_across,
        "THREADS_DOWN": threads_down,
        "BAND_TILES": BAND_TILES,
        "VECTOR_LOADS": int(product.type == "float"),
        "LEFT_K_CONTIGUOUS": int(varies_along(product.left, product.inner)),
        "RIGHT_K_CONTIGUOUS": int(varies_along(product.right, product.inner)),
    }
    sizes, batch = product.sizes, volume(product.batch)
    group_count = -(-sizes["rows"] // s.tile_rows) * -(-sizes["columns"] // s.tile_columns) * batch
    group_size = threads_across * threads_down
    plan = plan_product(product, context, "tiled_matmul", constants, group_size, group_count)
    plan.reason = product.description + (f", {batch} times" if product.batch else "")
    return plan


def plan_cpu_matmul(product: MatrixProduct, context: PlanContext) -> KernelPlan:
    """Plan the CPU kernel for operands that are expressions, shaders/cdollar/cpu_matmul.h.

    A core gets about eight work-items, each with a panel of columns and at least MIN_CPU_ROWS rows.
    """
    if product.node.attribute[-1] in product.rows:  # swap the sides: vectors run along the last dimension of the output
        left, right, rows, columns = product.right, product.left, product.columns, product.rows
        product = product._replace(left=left, right=right, rows=rows, columns=columns)
    lanes = 16 if product.type == "float" and context.properties.simd_width >= 16 else 8
    panels = -(-volume(product.columns) // (2 * lanes)) * volume(product.batch)  # PANEL_WIDTH of cpu_matmul.h
    parts = max(1, min(-(-8 * context.properties.compute_units // panels), volume(product.rows) // MIN_CPU_ROWS))
    wide: dict[str, int | str] = {"WIDE": f"{product.type}{lanes}", "SIMD_LANES": lanes}
    return plan_product(product, context, "cpu_matmul", wide, 1, panels * parts, {"parts": parts})


def plan_product(
    product: MatrixProduct,
    context: PlanContext,
    kind: Literal["tiled_matmul", "cpu_matmul"],
    constants: Mapping[str, int | str],
    group_size: int,
    group_count: int,
    extra_sizes: Mapping[str, int] | None = None,
) -> KernelPlan:
    """Plan a kernel that includes shaders/cdollar/`kind`.h after macros for constants, operands and output index."""
    emitter = Emitter(CDialect(), context.stored_ranges)
    loads = []
    for name, factors in zip(("LEFT", "RIGHT"), operand_factors(product), strict=True):
        lines, element = emit_operand(emitter, *factors)
        loads += [f"#define LOAD_{name}(value) {{ \\", *(f"    {line} \\" for line in lines)]
        loads += [f"    value = {element}; \\", "}"]
    body = [
        *emitter.prologue,
        f"#define TYPE {product.type}",
        *(f"#define {name} {value}" for name, value in constants.items()),
        f"#define OUTPUT_INDEX ({output_index(emitter, product)})",
        *loads,
        f'#include "cdollar/{kind}.h"',
    ]
    sizes = {**product.sizes, "batches": volume(product.batch), **(extra_sizes or {})}
    return finish_plan(emitter, product.node, kind, sizes, (product.type,), body, group_size, group_count)


def output_index(emitter: Emitter, product: MatrixProduct) -> str:
    """The linear index of an element of the product in the order of the function's variables."""
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
