"""Chooses the kind of kernel for a node of the DAG, and plans maps: kernels that compute each element independently.

DeviceTarget and the autotuner call plan_kernel(). A kernel computes a "function" node, whose result is an array with an
element for each point of its bound variables' box, or a "reduce" node, whose result is one value. If the elements are
reductions, several threads may share each one (reduction_kernels.py), or the function may be a matrix product
(matmul_kernels.py). On CPUs cpu_kernels.py plans loops that the compiler vectorizes.
"""

import math

from renderer.cdollar.ir import dag as ir
from renderer.cdollar.ir.contraction import tested_ends
from renderer.cdollar.targets.cpu_kernels import count_reads, plan_cpu_columns, plan_cpu_map
from renderer.cdollar.targets.dialects import CDialect, indented, storage_type
from renderer.cdollar.targets.emitter import choose_emitter
from renderer.cdollar.targets.expression_emitter import StoredRanges, index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, PlanContext, finish_plan, output_types, volume
from renderer.cdollar.targets.matmul_kernels import MIN_DEPTH, match_matrix_product, plan_matmul
from renderer.cdollar.targets.reduction_kernels import GroupShape, plan_reduction
from renderer.cdollar.targets.schedule import Schedule
from renderer.gpu import DeviceProperties

# Several threads share a row up to so many outputs if neighboring outputs read neighboring elements; the limit of
# other outputs is half of THREADS_PER_UNIT a compute unit (group_shape).
MAX_REDUCTION_OUTPUTS = 4096
MIN_REDUCTION_LENGTH = 512  # the fewest elements of an output that several threads share
MIN_GROUP_ROW_LENGTH = 32  # the fewest elements of a row that several threads share for any number of rows
THREADS_PER_UNIT = 1024  # outputs of a compute unit below which several threads share a column
RAGGED_OUTPUTS = 16  # outputs of a compute unit from which a thread computes an output with a range held by arrays
MIN_ROW_LENGTH = 64  # the fewest elements of a row that a work-item of a CPU reduces with vectors


def plan_kernel(
    node: ir.Node, stored_ranges: StoredRanges, schedule: Schedule, properties: DeviceProperties, strict: bool = False
) -> KernelPlan:
    """Plan the kernel that computes a function or a reduction without free variables; for the rest see PlanContext."""
    context = PlanContext(stored_ranges, schedule, properties, strict)
    if node.op == "reduce":
        return plan_reduction(node, node, context)
    product = None if strict or needs_long(node, stored_ranges) else match_matrix_product(node)
    if product is not None and volume(product.inner) >= MIN_DEPTH:
        return plan_matmul(product, context)
    reduction = reduction_of_all_components(node)
    plan = plan_shared_reductions(node, reduction, context) if reduction is not None else None
    if plan is None and context.is_cpu:
        plan = plan_cpu_map(node, context)
    return plan or plan_map(node, context)


def plan_shared_reductions(node: ir.Node, reduction: ir.Node, context: PlanContext) -> KernelPlan | None:
    """Plan a function whose elements are reductions; None if one thread, or a map on a CPU, should compute each.

    A range whose ends arrays hold (`j : p(i)..p(i + 1)`) favors one thread: it visits that range alone, while threads
    that share an output visit all elements.
    """
    many = volume(node.attribute) >= RAGGED_OUTPUTS * context.properties.compute_units
    if many and not context.strict and tested_ends(reduction).has_data_ends:
        return None
    plan = plan_cpu_columns(node, reduction, context) if context.is_cpu else None
    operator, _variables = reduction.attribute
    # Elements whose order the operator must keep are not split among threads.
    if plan is not None or operator.ordered or index_type(volume(node.attribute)) == "long":
        return plan
    if context.is_cpu:
        return plan_reduction(node, reduction, context) if is_row_reduction(reduction) else None
    shape = group_shape(node, reduction, context)
    return plan_reduction(node, reduction, context, shape) if shape is not None else None


def needs_long(node: ir.Node, stored_ranges: StoredRanges) -> bool:
    """True if a kernel writes, reads or reduces more elements than an int can count."""
    counts = [volume(node.attribute)] if node.op == "function" else []
    for operand in ir.topological_order(node.inputs, ir.inputs_outside_functions):
        if operand.op == "reduce":
            counts.append(volume(operand.attribute[1]))
        elif operand.op == "apply" and isinstance(operand.attribute, ir.Access):
            counts.append(math.prod(r.size for r in stored_ranges(ir.without_lets(operand.inputs[0]))))
    return any(index_type(count) == "long" for count in counts)


def group_shape(node: ir.Node, reduction: ir.Node, context: PlanContext) -> GroupShape | None:
    """Choose how a GPU's work-group divides the reductions of `node`; None gives each output one thread."""
    outputs, elements = volume(node.attribute), volume(reduction.attribute[1])
    (operator, variables), group_size = reduction.attribute, context.schedule.group_size
    along_outputs, _by_rows = count_reads(reduction.inputs, node.attribute[-1])
    if along_outputs == 0 and elements >= MIN_GROUP_ROW_LENGTH and reads_rows(reduction, variables[-1]):
        return GroupShape.for_rows(elements, group_size)
    if elements < MIN_REDUCTION_LENGTH:
        return None
    threads = THREADS_PER_UNIT * context.properties.compute_units
    if along_outputs and operator.function is None and outputs < threads:
        return GroupShape.for_columns(group_size)
    # If no read steps by one element along the outputs, rows give up no coalescing: on an H200 with 132 units shared
    # outputs of 4,096 terms take 0.47 of the time at 32,768 outputs, 1.16 at 131,072.
    limit = MAX_REDUCTION_OUTPUTS if along_outputs else threads // 2
    return GroupShape.for_rows(elements, group_size) if outputs <= limit else None


def reads_rows(reduction: ir.Node, variable: ir.BoundVariable) -> bool:
    """True if an array is read along its rows.

    The last index of the read depends on `variable`, a reduced variable; an index before it, on a variable of outputs.
    """
    for operand in ir.topological_order(list(reduction.inputs)):
        if operand.op == "apply" and isinstance(operand.attribute, ir.Access):
            *rows, last = (index.free_variables for index in operand.inputs[1:])
            if variable in last and any(row - frozenset(reduction.attribute[1]) for row in rows):
                return True
    return False


def is_row_reduction(reduction: ir.Node) -> bool:
    """True if a reduction adds neighbors in memory, many enough for the vectors of a CPU's work-item."""
    operator, variables = reduction.attribute
    is_long = len(variables) == 1 and volume(variables) >= MIN_ROW_LENGTH
    _by_element, by_rows = count_reads(reduction.inputs, variables[0])
    return operator.is_operator and is_long and by_rows == 0


def reduction_of_all_components(node: ir.Node) -> ir.Node | None:
    """The reduction that computes all components of a function's elements, in order; None for other functions."""
    body = node.inputs[0]
    reduction = body.inputs[0] if isinstance(body.attribute, ir.Component) else body
    if reduction.op != "reduce" or not reduction.free_variables:
        return None
    if isinstance(reduction.type, tuple):
        components = [((reduction,), ir.Component(k)) for k in range(len(reduction.type))]
        return reduction if [(b.inputs, b.attribute) for b in node.inputs] == components else None
    return reduction if node.inputs == (reduction,) else None


def plan_map(node: ir.Node, context: PlanContext) -> KernelPlan:
    """Plan a kernel in which a thread computes one element of `node`.

    In an elementwise function of numbers of at most 4 bytes, a GPU's thread computes `items_per_thread` elements, in
    vectors of four.
    """
    types, count, schedule = output_types(node), volume(node.attribute), context.schedule
    index = index_type(count)
    emitter = choose_emitter(node.attribute, node.inputs, context.stored_ranges, CDialect(context.strict))

    def emit() -> None:
        emitter.emit(*emitter.report_poison(emitter.emit_stores(node)))

    element = emitter.element(node.attribute, emit)
    vectors = 0 if context.is_cpu or index == "long" else schedule.items_per_thread // 4
    vector = emitter.vector(node.attribute, emit, types) if vectors else []
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
    lines = [*emitter.prologue, *loop]
    group_count = -(-count // (schedule.group_size * (4 * vectors if vector else 1)))
    return finish_plan(emitter, node, "map", {"count": count}, types, lines, schedule.group_size, group_count)


def vector_loop(types: tuple[str, ...], vectors: int, vector: list[str], element: list[str]) -> list[str]:
    """The loop of an elementwise function over `vectors` vectors of four elements per thread.

    `vector` are the lines for the four elements at vector_index, `element` for the element at linear_index: the last
    vector may be incomplete.
    """
    stored = list(enumerate(map(storage_type, types)))
    vector = [
        *(f"{type_}4 out{k}_vector;" for k, type_ in stored),
        *vector,
        *(f"((GLOBAL {type_}4 *)out{k})[vector_index] = out{k}_vector;" for k, type_ in stored),
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
