"""Kernels of functions (maps), and the choice among the kinds of kernels.

A kernel computes a function of bound variables (its result is an array) or a reduction to one value.
"""

from __future__ import annotations

import math

from renderer.cdollar.ir.dag import (
    Access,
    BoundVariable,
    Component,
    Node,
    inputs_outside_functions,
    topological_order,
    without_lets,
)
from renderer.cdollar.targets.cpu_kernels import (
    count_reads,
    has_neighbor_outputs,
    has_rows,
    plan_cpu_columns,
    plan_cpu_map,
)
from renderer.cdollar.targets.dialects import CDialect, indented, storage_type
from renderer.cdollar.targets.emitter import Emitter, emitter_of
from renderer.cdollar.targets.expression_emitter import RangesOf, index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, finish_plan, output_types, volume
from renderer.cdollar.targets.matmul_kernels import (
    choose_tile_size,
    plan_cpu_matmul,
    plan_plain_matmul,
    plan_tiled_matmul,
)
from renderer.cdollar.targets.matrix_product import match_matrix_product
from renderer.cdollar.targets.reduction_kernels import GroupShape, plan_reduction
from renderer.cdollar.targets.schedule import DEFAULT, Schedule
from renderer.gpu import DeviceProperties

MAX_REDUCTION_OUTPUTS = 4096  # outputs below which a long reduction gets a work-group for each
MIN_REDUCTION_LENGTH = 512  # elements of a reduction that is worth a work-group
MIN_GROUP_ROW_LENGTH = 32  # elements of a row that several threads of a GPU reduce, however many rows there are
THREADS_PER_UNIT = 1024  # of one output each, below which columns are reduced by several
MIN_MATMUL_DEPTH = 4
MIN_ROW_LENGTH = 64  # elements of a row that a work-item of a CPU reduces with vectors


def plan_kernel(
    node: Node, ranges_of: RangesOf, schedule: Schedule, properties: DeviceProperties, strict: bool = False
) -> KernelPlan:
    """The kernel that computes a function or a closed reduction on a device; `strict`: in the order of strict_order."""
    if node.op == "reduce":
        return plan_reduction(node, node, ranges_of, schedule, properties, strict)
    product = None if strict or needs_long(node, ranges_of) else match_matrix_product(node)
    if product is not None and volume(product.inner) >= MIN_MATMUL_DEPTH:
        plan = plan_plain_matmul(product, ranges_of, properties) if schedule == DEFAULT else None
        if plan is not None:
            return plan
        if properties.scalar_threads:
            return plan_cpu_matmul(product, ranges_of, properties)
        if schedule == DEFAULT:
            schedule = choose_tile_size(product, properties.compute_units)
        return plan_tiled_matmul(product, ranges_of, schedule)
    reduction, units = whole_reduction(node), properties.compute_units
    if properties.scalar_threads and reduction is not None and has_neighbor_outputs(node, reduction, strict):
        plan = plan_cpu_columns(node, reduction, ranges_of, units, strict)
        if plan is not None:
            return plan
    is_split = reduction is not None and not reduction.attribute[0].ordered
    is_split &= index_type(volume(node.attribute)) == "int"
    if reduction is not None and is_split and properties.scalar_threads and is_row_reduction(reduction):
        return plan_reduction(node, reduction, ranges_of, schedule, properties, strict)
    if reduction is not None and is_split and not properties.scalar_threads:
        shape = group_shape(node, reduction, schedule, units)
        if shape is not None:
            return plan_reduction(node, reduction, ranges_of, schedule, properties, strict, shape)
    if properties.scalar_threads and has_rows(node):
        plan = plan_cpu_map(node, ranges_of, units, strict)
        if plan is not None:
            return plan
    return plan_map(node, ranges_of, schedule, properties.scalar_threads, strict)


def needs_long(node: Node, ranges_of: RangesOf) -> bool:
    """Whether a kernel writes, reads or reduces more elements than int counts."""
    counts = [volume(node.attribute)] if node.op == "function" else []
    for part in topological_order(node.inputs, inputs_outside_functions):
        if part.op == "reduce":
            counts.append(volume(part.attribute[1]))
        elif part.op == "apply" and isinstance(part.attribute, Access):
            counts.append(math.prod(r.size for r in ranges_of(without_lets(part.inputs[0]))))
    return any(index_type(count) == "long" for count in counts)


def group_shape(node: Node, reduction: Node, schedule: Schedule, compute_units: int) -> GroupShape | None:
    """How the groups of a GPU reduce the outputs of a reduction; None if each is worth one thread only."""
    outputs, elements = volume(node.attribute), volume(reduction.attribute[1])
    operator, variables = reduction.attribute
    along_outputs, _ = count_reads(reduction.inputs, node.attribute[-1])
    if along_outputs == 0 and elements >= MIN_GROUP_ROW_LENGTH and reads_rows(reduction, variables[-1]):
        return GroupShape.of_rows(elements, schedule.group_size)
    if elements < MIN_REDUCTION_LENGTH:
        return None
    if along_outputs and operator.function is None and outputs < THREADS_PER_UNIT * compute_units:
        return GroupShape.of_columns(schedule.group_size)
    return GroupShape.of_rows(elements, schedule.group_size) if outputs <= MAX_REDUCTION_OUTPUTS else None


def reads_rows(reduction: Node, variable: BoundVariable) -> bool:
    """Whether some read takes neighbors along a reduced variable, in a row of its own for each output."""
    for part in topological_order(list(reduction.inputs)):
        if part.op == "apply" and isinstance(part.attribute, Access):
            *rows, last = (child.free_variables for child in part.inputs[1:])
            if variable in last and any(row - frozenset(reduction.attribute[1]) for row in rows):
                return True
    return False


def is_row_reduction(reduction: Node) -> bool:
    """Whether a work-item of a CPU reduces neighbors in memory, many enough to be worth a work-group."""
    operator, variables = reduction.attribute
    is_plain = operator.function is None and not operator.name.startswith("arg")
    is_long = len(variables) == 1 and volume(variables) >= MIN_ROW_LENGTH
    return is_plain and is_long and count_reads(reduction.inputs, variables[0])[1] == 0


def whole_reduction(node: Node) -> Node | None:
    """The reduction whose components are exactly those of a function; None for other functions."""
    body = node.inputs[0]
    reduction = body.inputs[0] if isinstance(body.attribute, Component) else body
    if reduction.op != "reduce" or not reduction.free_variables:
        return None
    if isinstance(reduction.type, tuple):
        whole = [((reduction,), Component(k)) for k in range(len(reduction.type))]
        return reduction if [(b.inputs, b.attribute) for b in node.inputs] == whole else None
    return reduction if node.inputs == (reduction,) else None


def plan_map(
    node: Node, ranges_of: RangesOf, schedule: Schedule, scalar_threads: bool, strict: bool = False
) -> KernelPlan:
    """A thread computes one element, or `items_per_thread` of an elementwise function of 4-byte numbers."""
    types, count = output_types(node), volume(node.attribute)
    index = index_type(count)
    emitter = emitter_of(node.attribute, node.inputs, ranges_of, CDialect(strict))
    element = emitter.element(node.attribute, lambda: emit_outputs(emitter, node))
    vectors, vector = 0 if scalar_threads or index == "long" else schedule.items_per_thread // 4, []
    if vectors:
        vector = emitter.vector(node.attribute, lambda: emit_outputs(emitter, node), types)
    if vector:
        loop = vector_loop(types, vectors, vector, element)
    else:
        thread = "thread_index()" if index == "int" else "thread_index_long()"
        loop = [
            f"const {index} linear_index = ({index}){thread};",
            "if (linear_index < count) {",
            *indented(element),
            "}",
        ]
    lines = [*emitter.blocks[0].lines, *loop]
    group_count = -(-count // (schedule.group_size * (4 * vectors if vector else 1)))
    return finish_plan(emitter, node, "map", {"count": count}, types, lines, schedule.group_size, group_count)


def emit_outputs(emitter: Emitter, node: Node) -> None:
    """Emit a function's body and the stores of its components."""
    values = [emitter.value(body) for body in node.inputs]
    poison = emitter.merge_poison([v.poison for v in values], emitter.blocks[-1])
    for k, value in enumerate(values):
        target = f"out{k}_vector.{emitter.component}" if emitter.component else f"out{k}[linear_index]"
        emitter.line(f"{target} = {emitter.dialect.stored(node.inputs[k].type, value.names[0])};")
    emitter.blocks[-1].lines += emitter.report_poison(poison)


def vector_loop(types: tuple[str, ...], vectors: int, vector: list[str], element: list[str]) -> list[str]:
    """The loop of an elementwise function over `vectors` vectors of four elements per thread."""
    vector = [
        *(f"{type_}4 out{k}_vector;" for k, type_ in enumerate(map(storage_type, types))),
        *vector,
        *(
            f"((GLOBAL {type_}4 *)out{k})[vector_index] = out{k}_vector;"
            for k, type_ in enumerate(map(storage_type, types))
        ),
    ]
    first = f"(int)(group_index() * (GROUP_SIZE * {vectors}) + local_index())"
    return [
        f"UNROLL for (int item = 0; item < {vectors}; item++) {{",
        f"    const int vector_index = {first} + item * GROUP_SIZE;",
        "    if (4 * vector_index + 3 < count) {",
        *indented(indented(vector)),
        "    } else {",
        "        for (int linear_index = 4 * vector_index; linear_index < count; linear_index++) {",
        *indented(indented(indented(element))),
        "        }",
        "    }",
        "}",
    ]
