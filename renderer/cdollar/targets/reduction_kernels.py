"""Reductions by several threads for each output, which combine their results by a tree in local memory.

On GPUs a group has several short rows, one long row or part of one, or neighboring columns (GroupShape). Where several
groups have one output, a second kernel combines their partial results, in order.
"""

from __future__ import annotations

from dataclasses import dataclass

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import CDialect, CpuDialect, indented, neutral_text, storage_type
from renderer.cdollar.targets.emitter import Emitter, LoopReduction, emitter_of
from renderer.cdollar.targets.expression_emitter import RangesOf, index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, finish_plan, volume
from renderer.cdollar.targets.schedule import Schedule
from renderer.cdollar.targets.strict_order import BLOCK, chunk_size, depends_on_order
from renderer.gpu import DeviceProperties

COMBINE_GROUP_SIZE = 256
LONE_GROUP_SIZE = 64  # of a GPU's threads that work alone
CPU_GROUPS_PER_UNIT = 4
CPU_THREADS_PER_UNIT = 16  # which take the outputs in turn: a group costs as much as a short row
LANES = (64, 16)  # states of a work-item of a CPU: of long rows, of others
MIN_LONG_ROW = 4096  # elements
STREAMS = (8, 4)  # neighborhoods of memory that a work-item of a CPU reads in turn: of long parts, of others
MIN_LONG_PART = 1 << 16  # elements
MAX_REPEATED_LINES = 10  # of an element that is in the text so often
MIN_ELEMENTS_PER_THREAD = 16
MIN_ROW_THREADS, ROW_ELEMENTS = 8, 8  # of a GPU for a row, and how many elements are worth one of them
COLUMNS = 32  # neighboring columns of a group


@dataclass(frozen=True)
class GroupShape:
    """A group of `threads` for each of `outputs` outputs; those of one output are `stride` threads apart."""

    threads: int
    outputs: int = 1
    stride: int = 1

    @classmethod
    def of_rows(cls, elements: int, group_size: int) -> GroupShape:
        """Threads for rows of so many elements, which lie beside one another: as many as have some work each."""
        threads = min(MIN_ROW_THREADS, group_size)
        while threads < group_size and 2 * threads * ROW_ELEMENTS <= elements:
            threads *= 2
        return cls(threads, group_size // threads)

    @classmethod
    def of_columns(cls, group_size: int) -> GroupShape:
        """Threads for neighboring columns: those of one row of them read neighboring elements."""
        return cls(group_size // COLUMNS, COLUMNS, COLUMNS)

    @property
    def size(self) -> int:
        """The threads of a group."""
        return self.threads * self.outputs

    def lines(self) -> list[str]:
        """Lines that define the thread of an output, `lane`, and the output of the group, `slot`."""
        if self.outputs == 1:
            return ["const int lane = (int)local_index(), slot = 0;"]
        first, second = ("lane", "slot") if self.stride > 1 else ("slot", "lane")
        inner = self.stride if self.stride > 1 else self.threads
        return [f"const int {first} = (int)local_index() / {inner}, {second} = (int)local_index() % {inner};"]


def plan_reduction(
    node: Node,
    reduction: Node,
    ranges_of: RangesOf,
    schedule: Schedule,
    properties: DeviceProperties,
    strict: bool = False,
    shape: GroupShape | None = None,
) -> KernelPlan:
    """Threads for each value of a reduction; `node` is a function whose body it is, or the reduction itself.

    `shape` is that of the groups of a GPU, by default one output each. In the order of strict_order.py every thread
    works alone, with whole blocks; so do those of a processor.
    """
    outer = node.attribute if node is not reduction else ()
    operator, variables = reduction.attribute
    outputs, elements, scalar_threads = volume(outer), volume(variables), properties.scalar_threads
    in_blocks = strict and depends_on_order(operator, reduction.type)
    is_ordered = operator.ordered or strict and operator.function is not None
    shape = shape or GroupShape(schedule.group_size)
    alone = in_blocks or is_ordered or scalar_threads
    threads, partials = 1 if alone else shape.threads, 1
    if in_blocks:
        partials = -(-elements // chunk_size(elements))
    elif not is_ordered:
        groups_per_unit = CPU_GROUPS_PER_UNIT if scalar_threads else schedule.groups_per_unit
        groups = outputs if scalar_threads else -(-outputs // shape.outputs)
        partials = -(-properties.compute_units * groups_per_unit // groups)
        partials = max(1, min(partials, -(-elements // (threads * MIN_ELEMENTS_PER_THREAD))))
    chunk = chunk_size(elements) if in_blocks else -(-elements // partials)
    partials = -(-elements // chunk)
    contiguous = operator.function is not None or operator.name.startswith("arg") or alone
    dialect = (CpuDialect if scalar_threads else CDialect)(strict)
    emitter = Emitter(dialect, ranges_of) if outer else emitter_of(variables, reduction.inputs, ranges_of, dialect)
    emitter.delinearize(outer, "output")
    state = LoopReduction(emitter, reduction, chunk if in_blocks else None)
    state.start()
    is_whole = partials == 1  # the result is known
    places, group_size = outputs * partials, 1 if scalar_threads else LONE_GROUP_SIZE if alone else shape.size
    per_thread = -(-places // (CPU_THREADS_PER_UNIT * properties.compute_units)) if scalar_threads else 1
    index = index_type(max(elements, places + per_thread))
    if scalar_threads and not in_blocks and operator.function is None and not state.is_arg_extremum:
        loops = lane_loops(emitter, state, chunk, index)
    elif contiguous:
        loops = contiguous_loop(emitter, state, threads, index)
    else:
        loops = strided_loops(emitter, state, schedule, threads, index)
    if alone:
        head = lone_thread(index, shape.stride > 1)
        passed = state.result(state.state) if in_blocks else state.state
        loops += stores(final(emitter, state, state.state) if is_whole else passed)
        group_count = -(-places // (group_size * per_thread))
    else:
        head, group_count = group_of_threads(shape, index), -(-outputs // shape.outputs) * partials
        shared = [f"shared{k}[local_index()]" for k in range(len(state.passed_types))]
        results = stores(final(emitter, state, shared) if is_whole else shared, "lane == 0 && unit < outputs")
        loops += [*tree(state, state.state, contiguous, str(threads), shape), *results]
    types = state.types if is_whole else state.passed_types
    lines = [*head, *emitter.blocks[0].lines, *loops, *emitter.report_poison(state.result_poison)]
    if alone:
        lines = [*lone_loop(index), *indented(lines), "}"]
    sizes = {"outputs": outputs, "partials": partials, "elements": elements, "chunk": min(chunk, elements)}
    sizes |= {"per_thread": per_thread} if alone else {}
    plan = finish_plan(emitter, node, "reduction", sizes, types, lines, group_size, group_count)
    if is_whole:
        return plan
    plan.partial_types, plan.partial_count = state.passed_types, places
    combine = plan_combine_in_order if in_blocks else plan_combine
    plan.combine = combine(node, reduction, outputs, partials, group_size)
    return plan


def final(emitter: Emitter, state: LoopReduction, values: list[str]) -> list[str]:
    """The result's components as elements of arrays."""
    return [emitter.dialect.stored(t, v) for t, v in zip(state.types, state.result(values), strict=True)]


def lone_loop(index: str) -> list[str]:
    """Lines that begin the loop over the places of a thread that works alone.

    Each size has the type that holds it, int or long; OpenCL's min() takes two numbers of one type: hence the casts.
    """
    return [
        f"const {index} start = ({index})thread_index() * per_thread;",
        f"const {index} end = min(start + per_thread, ({index})outputs * partials);",
        f"for ({index} unit = start; unit < end; unit++) {{",
    ]


def lone_thread(index: str, outputs_first: bool) -> list[str]:
    """Lines that define the output and the part of it of a thread that works alone.

    `outputs_first`: neighboring threads have neighboring outputs, else neighboring parts.
    """
    output, partial = ("% outputs", "/ outputs") if outputs_first else ("/ partials", "% partials")
    return [
        f"const {index} output = unit {output}, partial = unit {partial}, place = output * partials + partial;",
    ]


def group_of_threads(shape: GroupShape, index: str) -> list[str]:
    """Lines that define the output of a thread of a group, and its part; those behind the last output repeat it."""
    return [
        *shape.lines(),
        f"const {index} unit = ({index})(group_index() / (uint)partials) * {shape.outputs} + slot;",
        f"const {index} output = min(unit, ({index})outputs - 1), partial = (int)(group_index() % (uint)partials);",
        f"const {index} place = output * partials + partial;",
    ]


def stores(values: list[str], condition: str = "") -> list[str]:
    """Lines that store the results of a thread, if a condition holds."""
    lines = [f"out{k}[place] = {value};" for k, value in enumerate(values)]
    return [f"if ({condition}) {{", *indented(lines), "}"] if condition else lines


def contiguous_loop(emitter: Emitter, loop: LoopReduction, threads: int, index: str) -> list[str]:
    """A loop in which each thread reduces a contiguous range, which keeps the order of the elements."""
    element = indented(emitter.element(loop.variables, loop.combine_element))
    lines = [f"const {index} from = partial * chunk, until = min(from + chunk, ({index})elements);"]
    if threads == 1:
        return [*lines, f"for ({index} linear_index = from; linear_index < until; linear_index++) {{", *element, "}"]
    return [
        *lines,
        f"const {index} per_thread = (until - from + {threads - 1}) / {threads};",
        f"const {index} begin = from + lane * per_thread;",
        f"for ({index} linear_index = begin; linear_index < min(begin + per_thread, until); linear_index++) {{",
        *element,
        "}",
    ]


def lane_loops(emitter: Emitter, loop: LoopReduction, chunk: int, index: str) -> list[str]:
    """Loops of a work-item of a CPU with independent states, `lanes`, so that the compiler vectorizes them."""
    lanes, streams = LANES[chunk < MIN_LONG_ROW], STREAMS[chunk < MIN_LONG_PART]
    types = [storage_type(t) for t in loop.passed_types]
    element = emitter.element(loop.variables, loop.combine_element)
    names = [f"lanes{k}" for k in range(len(types))]
    loads = [f"{t} {state} = {lane}[lane];" for t, state, lane in zip(types, loop.state, names, strict=True)]
    stores = [f"{lane}[lane] = {state};" for state, lane in zip(loop.state, names, strict=True)]
    starts = [f"{lane}[lane] = {state};" for lane, state in zip(names, loop.state, strict=True)]
    pairs = [f"{lane}[lane]" for lane in names], [f"{lane}[lane + apart]" for lane in names]

    def tiles(items: int, end: str) -> list[str]:
        """The loop over whole tiles of so many elements a lane, `stride` apart: each is one stream of the memory."""
        inner: list[str] = []  # without a loop, which would have to be unrolled before this one is vectorized
        for item in range(items):
            offset = f"first + {item} * stride + lane" if item else "first + lane"
            inner += ["{", f"    const {index} linear_index = {offset};", *indented(element), "}"]
        return [
            f"for (; first < {end}; first += {lanes}) {{",
            "    #pragma clang loop unroll(disable) vectorize(enable)",
            f"    for (int lane = 0; lane < {lanes}; lane++) {{",
            *indented(indented([*loads, *inner, *stores])),
            "    }",
            "}",
        ]

    is_short = len(element) <= MAX_REPEATED_LINES
    return [
        f"const {index} from = partial * chunk, until = min(from + chunk, ({index})elements);",
        *(f"{t} {lane}[{lanes}];" for t, lane in zip(types, names, strict=True)),
        f"for (int lane = 0; lane < {lanes}; lane++) {{ {' '.join(starts)} }}",
        f"const {index} stride = {f'(until - from) / {streams * lanes} * {lanes}' if is_short else '0'};",
        f"{index} first = from;",
        *(tiles(streams, "from + stride") if is_short else []),
        f"first = from + {streams} * stride;",
        *tiles(1, f"until - {lanes - 1}"),
        f"for ({index} linear_index = first; linear_index < until; linear_index++) {{",
        *indented(element),
        "}",
        f"for (int apart = {lanes // 2}; apart > 0; apart /= 2) {{",
        "    for (int lane = 0; lane < apart; lane++) {",
        *indented(indented(loop.combine_passed(*pairs))),
        "    }",
        "}",
        *loop.combine_passed(loop.state, [f"{lane}[0]" for lane in names]),
    ]


def strided_loops(emitter: Emitter, loop: LoopReduction, schedule: Schedule, threads: int, type_: str) -> list[str]:
    """Loops in which neighboring threads read neighboring elements, as vectors of four where possible.

    Groups take tiles in turn, so that those that run at the same time read neighboring memory.
    """
    element = emitter.element(loop.variables, loop.combine_element)
    vector = emitter.vector(loop.variables, loop.combine_element)
    if vector:
        return [
            f"const {type_} vectors = elements / 4;",
            *tiled_loops("vector_index", "vectors", vector, schedule.items_per_thread, threads, type_),
            f"for ({type_} linear_index = 4 * vectors + lane; partial == 0 && linear_index < elements; "
            f"linear_index += {threads}) {{",
            *indented(element),
            "}",
        ]
    return tiled_loops("linear_index", "elements", element, schedule.items_per_thread, threads, type_)


def tiled_loops(index: str, limit: str, body: list[str], unroll: int, threads: int, type_: str) -> list[str]:
    """The loop of threads over every `partials`-th tile of `unroll` indices a thread, and over the partial tile."""
    first, tile = f"{index}0", unroll * threads
    return [
        f"{type_} {first} = partial * {tile} + lane;",
        f"for (; {first} + {tile - threads} < {limit}; {first} += partials * {tile}) {{",
        f"    UNROLL for (int item = 0; item < {unroll}; item++) {{",
        f"        const {type_} {index} = {first} + item * {threads};",
        *indented(indented(body)),
        "    }",
        "}",
        f"for ({type_} {index} = {first}; {index} < min({first} + {tile}, ({type_}){limit}); {index} += {threads}) {{",
        *indented(body),
        "}",
    ]


def tree(state: LoopReduction, values: list[str], ordered: bool, threads: str, shape: GroupShape) -> list[str]:
    """A tree over `values` of the `threads` of each output in local memory; its result is that of lane 0.

    `ordered` combines neighbors first, which keeps the order of the elements.
    """
    element, other = ([f"shared{k}[{index}]" for k in range(len(values))] for index in ("index", "next"))
    steps, condition = f"int step = {shape.threads // 2}; step > 0; step /= 2", "lane < step"
    if ordered:
        steps = f"int step = 1; step < {shape.threads}; step *= 2"
        condition = f"lane % (2 * step) == 0 && lane + step < {threads}"
    return [
        *(f"LOCAL_ARRAY({storage_type(t)}, shared{k}, GROUP_SIZE);" for k, t in enumerate(state.passed_types)),
        *(f"shared{k}[local_index()] = {value};" for k, value in enumerate(values)),
        "BARRIER();",
        f"for ({steps}) {{",
        f"    const int index = (int)local_index(), next = index + step{f' * {shape.stride}' * (shape.stride > 1)};",
        f"    if ({condition}) {{",
        *indented(indented(state.combine_passed(element, other))),
        "    }",
        "    BARRIER();",
        "}",
    ]


def plan_combine(node: Node, reduction: Node, outputs: int, partials: int, _: int) -> KernelPlan:
    """The kernel that combines the partial results of a reduction, in order: a work-group for each output.

    Every thread combines a range of partial results, then a tree combines the threads that had any.
    """
    emitter = Emitter(CDialect(), lambda function: ())
    state = LoopReduction(emitter, reduction)
    count = range(len(state.passed_types))
    values, nexts = [f"value{k}" for k in count], [f"next{k}" for k in count]
    types = [storage_type(t) for t in state.passed_types]
    results = final(emitter, state, [f"shared{k}[0]" for k in count])
    lines = [
        "const int output = (int)group_index(), lane = (int)local_index();",
        "const int chunk = (partials + GROUP_SIZE - 1) / GROUP_SIZE, threads = (partials + chunk - 1) / chunk;",
        "const int begin = output * partials + lane * chunk, all = (output + 1) * partials;",
        "const int start = min(begin, all - 1), end = min(begin + chunk, all);",
        *(f"{t} {v} = in{k}[start];" for k, (v, t) in enumerate(zip(values, types, strict=True))),
        "for (int partial = begin + 1; partial < end; partial++) {",
        *(f"    const {t} {n} = in{k}[partial];" for k, (n, t) in enumerate(zip(nexts, types, strict=True))),
        *indented(state.combine_passed(values, nexts)),
        "}",
        *tree(state, values, True, "threads", GroupShape(COMBINE_GROUP_SIZE)),
        "if (lane == 0) {",
        *(f"    out{k}[output] = {result};" for k, result in enumerate(results)),
        "}",
    ]
    return finish_plan(
        emitter, node, "combine_partials", {"partials": partials}, state.types, lines, COMBINE_GROUP_SIZE,
        outputs, inputs=state.passed_types,
    )  # fmt: skip


def plan_combine_in_order(node: Node, reduction: Node, outputs: int, partials: int, group_size: int) -> KernelPlan:
    """The kernel that combines partial results in the order of strict_order.py: by a thread or a group."""
    if group_size > 1 and partials > BLOCK:
        return plan_combine_blocks(node, reduction, outputs, partials)
    emitter = Emitter(CDialect(strict=True), lambda function: ())
    state = LoopReduction(emitter, reduction, partials)
    state.start()
    type_ = storage_type(state.types[0])
    lines = [
        "const int output = (int)thread_index();",
        "if (output >= outputs) return;",
        *emitter.blocks[0].lines,
        "for (int partial = 0; partial < partials; partial++) {",
        f"    const {type_} next = in0[output * partials + partial];",
        *indented(state.combine(state.state, ["next"], "")),
        "}",
        f"out0[output] = {final(emitter, state, state.state)[0]};",
    ]
    sizes, groups = {"outputs": outputs, "partials": partials}, -(-outputs // group_size)
    return finish_plan(
        emitter, node, "combine_partials", sizes, state.types, lines, group_size, groups, inputs=state.passed_types
    )


def plan_combine_blocks(node: Node, reduction: Node, outputs: int, partials: int) -> KernelPlan:
    """A group for each output: a thread combines a block of partial results, then one of what the others have."""
    emitter = Emitter(CDialect(strict=True), lambda function: ())
    state = LoopReduction(emitter, reduction, BLOCK)
    state.start()
    assert partials <= BLOCK * COMBINE_GROUP_SIZE, partials
    type_, (total,) = storage_type(state.types[0]), state.state
    neutral = neutral_text(reduction.attribute[0].name, state.types[0], emitter.dialect)

    def block(source: str) -> list[str]:
        """The loop over the block of a thread."""
        bounds = f"int k = lane * {BLOCK}; k < min((lane + 1) * {BLOCK}, count); k++"
        return [f"for ({bounds}) {total} = {state.combined(total, source)};"]

    lines = [
        "const int output = (int)group_index(), lane = (int)local_index();",
        f"LOCAL_ARRAY({type_}, shared, GROUP_SIZE);",
        *emitter.blocks[0].lines,
        "int count = partials;",
        *block("in0[output * partials + k]"),
        f"for (count = (count + {BLOCK - 1}) / {BLOCK}; count > 1; count = (count + {BLOCK - 1}) / {BLOCK}) {{",
        f"    shared[lane] = {total};",
        f"    {total} = {neutral};",
        "    BARRIER();",
        *indented(block("shared[k]")),
        "    BARRIER();",
        "}",
        f"if (lane == 0) out0[output] = {final(emitter, state, [total])[0]};",
    ]
    return finish_plan(
        emitter, node, "combine_partials", {"partials": partials}, state.types, lines, COMBINE_GROUP_SIZE,
        outputs, inputs=state.passed_types,
    )  # fmt: skip
