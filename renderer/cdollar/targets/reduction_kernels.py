"""Reductions with few outputs: one or more work-groups per output reduce by a tree in local memory.

A second kernel combines the partial results of the groups, in order.
"""

from __future__ import annotations

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import CDialect, CpuDialect, indented, storage_type
from renderer.cdollar.targets.emitter import Emitter, LoopReduction, emitter_of
from renderer.cdollar.targets.expression_emitter import RangesOf, index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, finish_plan, volume
from renderer.cdollar.targets.schedule import Schedule
from renderer.cdollar.targets.strict_order import chunk_size, depends_on_order
from renderer.gpu import DeviceProperties

COMBINE_GROUP_SIZE = 256
CPU_GROUPS_PER_UNIT = 4
LANES = 16  # states of a work-item of a CPU
MIN_ELEMENTS_PER_THREAD = 16


def plan_reduction(
    node: Node,
    reduction: Node,
    ranges_of: RangesOf,
    schedule: Schedule,
    properties: DeviceProperties,
    strict: bool = False,
) -> KernelPlan:
    """Work-groups for each value of a reduction; `node` is a function whose body it is, or the reduction itself.

    In the order of strict_order.py a work-group is one thread, with whole blocks.
    """
    outer = node.attribute if node is not reduction else ()
    operator, variables = reduction.attribute
    outputs, elements, scalar_threads = volume(outer), volume(variables), properties.scalar_threads
    group_size, partials = 1, 1
    in_blocks = strict and depends_on_order(operator, reduction.type)
    if in_blocks:
        partials = -(-elements // chunk_size(elements))
    elif not (operator.ordered or strict and operator.function is not None):
        group_size = 1 if scalar_threads else schedule.group_size
        groups_per_unit = CPU_GROUPS_PER_UNIT if scalar_threads else schedule.groups_per_unit
        target_groups = -(-properties.compute_units * groups_per_unit // outputs)
        partials = max(1, min(target_groups, -(-elements // (group_size * MIN_ELEMENTS_PER_THREAD))))
    chunk = chunk_size(elements) if in_blocks else -(-elements // partials)
    partials = -(-elements // chunk)
    contiguous = operator.function is not None or operator.name.startswith("arg") or group_size == 1
    dialect = (CpuDialect if scalar_threads else CDialect)(strict)
    emitter = Emitter(dialect, ranges_of) if outer else emitter_of(variables, reduction.inputs, ranges_of, dialect)
    emitter.delinearize(outer, "output")
    state = LoopReduction(emitter, reduction, chunk if in_blocks else None)
    state.start()
    has_lanes = scalar_threads and not in_blocks and operator.function is None and not state.is_arg_extremum
    index = index_type(elements)
    if has_lanes:
        loops = lane_loops(emitter, state, index)
    else:
        loops = contiguous_loop(emitter, state, index) if contiguous else strided_loops(emitter, state, schedule, index)
    is_whole = has_lanes and partials == 1  # a work-item has the result
    types = state.types if is_whole else state.passed_types
    values = state.result(state.state) if in_blocks or is_whole else state.state
    lines = [
        f"const {index} output = (int)(group_index() / (uint)partials), "
        "partial = (int)(group_index() % (uint)partials);",
        *emitter.blocks[0].lines,
        *loops,
        *(stores(values) if is_whole else [*tree(state, values, contiguous), *stores(shared_values(state))]),
        *emitter.report_poison(state.result_poison),
    ]
    sizes = {"outputs": outputs, "partials": partials, "elements": elements, "chunk": min(chunk, elements)}
    plan = finish_plan(emitter, node, "reduction", sizes, types, lines, group_size, outputs * partials)
    if is_whole:
        return plan
    plan.partial_types = state.passed_types
    combine = plan_combine_in_order if in_blocks else plan_combine
    plan.combine = combine(node, reduction, outputs, partials)
    return plan


def stores(values: list[str]) -> list[str]:
    """Lines in which the first thread of a group stores its results."""
    return ["if (local_index() == 0) {", *(f"    out{k}[group_index()] = {v};" for k, v in enumerate(values)), "}"]


def shared_values(state: LoopReduction) -> list[str]:
    """The results of tree()."""
    return [f"shared{k}[0]" for k in range(len(state.passed_types))]


def contiguous_loop(emitter: Emitter, loop: LoopReduction, index: str) -> list[str]:
    """A loop in which each thread reduces a contiguous range, which keeps the order of the elements."""
    return [
        f"const {index} from = partial * chunk, until = min(from + chunk, elements);",
        f"const {index} per_thread = (until - from + GROUP_SIZE - 1) / GROUP_SIZE;",
        f"const {index} begin = from + (int)local_index() * per_thread;",
        f"for ({index} linear_index = begin; linear_index < min(begin + per_thread, until); linear_index++) {{",
        *indented(emitter.element(loop.variables, loop.combine_element)),
        "}",
    ]


def lane_loops(emitter: Emitter, loop: LoopReduction, index: str) -> list[str]:
    """Loops of a work-item of a CPU with LANES independent states, so that the compiler vectorizes them."""
    types = [storage_type(t) for t in loop.passed_types]
    element = emitter.element(loop.variables, loop.combine_element)
    names = [f"lanes{k}" for k in range(len(types))]
    loads = [f"{t} {state} = {lane}[lane];" for t, state, lane in zip(types, loop.state, names, strict=True)]
    stores = [f"{lane}[lane] = {state};" for state, lane in zip(loop.state, names, strict=True)]
    starts = [f"{lane}[lane] = {state};" for lane, state in zip(names, loop.state, strict=True)]
    return [
        f"const {index} from = partial * chunk, until = min(from + chunk, elements);",
        *(f"{t} {lane}[{LANES}];" for t, lane in zip(types, names, strict=True)),
        f"for (int lane = 0; lane < {LANES}; lane++) {{ {' '.join(starts)} }}",
        f"{index} first = from;",
        f"for (; first + {LANES - 1} < until; first += {LANES}) {{",
        "    #pragma clang loop unroll(disable) vectorize(enable)",
        f"    for (int lane = 0; lane < {LANES}; lane++) {{",
        f"        const {index} linear_index = first + lane;",
        *indented(indented([*loads, *element, *stores])),
        "    }",
        "}",
        f"for ({index} linear_index = first; linear_index < until; linear_index++) {{",
        *indented(element),
        "}",
        f"for (int lane = 0; lane < {LANES}; lane++) {{",
        *indented(loop.combine_passed(loop.state, [f"{lane}[lane]" for lane in names])),
        "}",
    ]


def strided_loops(emitter: Emitter, loop: LoopReduction, schedule: Schedule, type_: str) -> list[str]:
    """Loops in which neighboring threads read neighboring elements, as vectors of four where possible.

    Groups take tiles in turn, so that those that run at the same time read neighboring memory.
    """
    element = emitter.element(loop.variables, loop.combine_element)
    vector = emitter.vector(loop.variables, loop.combine_element)
    if vector:
        return [
            f"const {type_} vectors = elements / 4;",
            *tiled_loops("vector_index", "vectors", vector, schedule.items_per_thread, type_),
            f"for ({type_} linear_index = 4 * vectors + (int)local_index(); partial == 0 && linear_index < elements; "
            "linear_index += GROUP_SIZE) {",
            *indented(element),
            "}",
        ]
    return tiled_loops("linear_index", "elements", element, schedule.items_per_thread, type_)


def tiled_loops(index: str, limit: str, body: list[str], unroll: int, type_: str) -> list[str]:
    """The loop of a group over every `partials`-th tile of `unroll` * GROUP_SIZE indices, and over the partial tile."""
    first, tile = f"{index}0", f"({unroll} * GROUP_SIZE)"
    return [
        f"{type_} {first} = partial * {tile} + (int)local_index();",
        f"for (; {first} + {unroll - 1} * GROUP_SIZE < {limit}; {first} += partials * {tile}) {{",
        f"    UNROLL for (int item = 0; item < {unroll}; item++) {{",
        f"        const {type_} {index} = {first} + item * GROUP_SIZE;",
        *indented(indented(body)),
        "    }",
        "}",
        f"for ({type_} {index} = {first}; {index} < min({first} + {tile}, {limit}); {index} += GROUP_SIZE) {{",
        *indented(body),
        "}",
    ]


def tree(state: LoopReduction, values: list[str], ordered: bool, threads: str = "GROUP_SIZE") -> list[str]:
    """A tree over `values` of the threads of a group in local memory, whose result is the state of thread 0.

    `ordered` combines neighbors first, which keeps the order of the elements, for the first `threads` of the group.
    """
    element, other = ([f"shared{k}[{index}]" for k in range(len(values))] for index in ("index", "next"))
    steps, condition = "int step = GROUP_SIZE / 2; step > 0; step /= 2", "index < step"
    if ordered:
        steps = "int step = 1; step < GROUP_SIZE; step *= 2"
        condition = f"index % (2 * step) == 0 && next < {threads}"
    return [
        *(f"LOCAL_ARRAY({storage_type(t)}, shared{k}, GROUP_SIZE);" for k, t in enumerate(state.passed_types)),
        *(f"shared{k}[local_index()] = {value};" for k, value in enumerate(values)),
        "BARRIER();",
        f"for ({steps}) {{",
        "    const int index = (int)local_index(), next = index + step;",
        f"    if ({condition}) {{",
        *indented(indented(state.combine_passed(element, other))),
        "    }",
        "    BARRIER();",
        "}",
    ]


def plan_combine(node: Node, reduction: Node, outputs: int, partials: int) -> KernelPlan:
    """The kernel that combines the partial results of a reduction, in order: a work-group for each output.

    Every thread combines a range of partial results, then a tree combines the threads that had any.
    """
    emitter = Emitter(CDialect(), lambda function: ())
    state = LoopReduction(emitter, reduction)
    count = range(len(state.passed_types))
    values, nexts = [f"value{k}" for k in count], [f"next{k}" for k in count]
    types = [storage_type(t) for t in state.passed_types]
    results = state.result([f"shared{k}[0]" for k in count])
    lines = [
        "const int output = (int)group_index();",
        "const int chunk = (partials + GROUP_SIZE - 1) / GROUP_SIZE, threads = (partials + chunk - 1) / chunk;",
        "const int begin = output * partials + (int)local_index() * chunk, all = (output + 1) * partials;",
        "const int start = min(begin, all - 1), end = min(begin + chunk, all);",
        *(f"{t} {v} = in{k}[start];" for k, (v, t) in enumerate(zip(values, types, strict=True))),
        "for (int partial = begin + 1; partial < end; partial++) {",
        *(f"    const {t} {n} = in{k}[partial];" for k, (n, t) in enumerate(zip(nexts, types, strict=True))),
        *indented(state.combine_passed(values, nexts)),
        "}",
        *tree(state, values, True, "threads"),
        "if (local_index() == 0) {",
        *(f"    out{k}[output] = {emitter.dialect.stored(state.types[k], v)};" for k, v in enumerate(results)),
        "}",
    ]
    return finish_plan(
        emitter, node, "combine_partials", {"partials": partials}, state.types, lines, COMBINE_GROUP_SIZE,
        outputs, inputs=state.passed_types,
    )  # fmt: skip


def plan_combine_in_order(node: Node, reduction: Node, outputs: int, partials: int) -> KernelPlan:
    """The kernel that combines partial results in the order of strict_order.py: a thread for each output."""
    emitter = Emitter(CDialect(strict=True), lambda function: ())
    state = LoopReduction(emitter, reduction, partials)
    state.start()
    type_ = storage_type(state.types[0])
    lines = [
        "const int output = (int)group_index();",
        *emitter.blocks[0].lines,
        "for (int partial = 0; partial < partials; partial++) {",
        f"    const {type_} next = in0[output * partials + partial];",
        *indented(state.combine(state.state, ["next"], "")),
        "}",
        f"out0[output] = {state.result(state.state)[0]};",
    ]
    sizes = {"partials": partials}
    return finish_plan(
        emitter, node, "combine_partials", sizes, state.types, lines, 1, outputs, inputs=state.passed_types
    )
