"""Plans kernels of reductions in which several threads, or several groups of threads, share an output.

map_kernels.py calls plan_reduction() for a reduction to one value, and for an array whose elements (outputs) are
reductions. The elements that an output reduces are split into ranges, the chunks. On GPUs the threads of a work-group
reduce a chunk and combine their values by a tree in local memory: a group takes several short rows, a chunk of one long
row, or neighboring columns (GroupShape). On CPUs, in folds, and under --strict (strict_order.py), an independent
thread reduces a chunk. If an output has several chunks, a second kernel combines their partial results in order.

The lines of the kernels' texts come from an Emitter (emitter.py) and an Accumulator (accumulator.py). In all texts
`output` is the index of a thread's output, `partial` of its chunk, `lane` the index among the threads of one chunk, and
`place` the index of the partial result that the thread stores.
"""

from typing import NamedTuple

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.accumulator import Accumulator
from renderer.cdollar.targets.dialects import CDialect, CpuDialect, indented, neutral_text, storage_type
from renderer.cdollar.targets.emitter import Emitter, choose_emitter
from renderer.cdollar.targets.expression_emitter import index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, PlanContext, finish_plan, volume
from renderer.cdollar.targets.strict_order import BLOCK, fixed_chunk

COMBINE_GROUP_SIZE = 256  # threads of a group of the kernel `combine`
SERIAL_GROUP_SIZE = 64  # independent threads of a group on GPUs
CPU_CHUNKS_PER_UNIT = 4  # chunks per core
CPU_THREADS_PER_UNIT = 16  # work-items per core; each takes several chunks, as its start costs as much as a short row
LANES = (128, 16)  # accumulators of a CPU's work-item: for long chunks, for others
MIN_LONG_ROW = 4096  # elements of a long chunk for LANES
MIN_ELEMENTS_PER_THREAD = 16  # fewer elements are not worth another chunk
MIN_ROW_THREADS, ROW_ELEMENTS = 8, 8  # the fewest threads of a GPU that reduce a row; the elements for each thread
COLUMNS = 32  # neighboring columns of a group


class GroupShape(NamedTuple):
    """A GPU's group: `outputs` outputs with `threads` threads each, `stride` apart in the group."""

    threads: int
    outputs: int = 1
    stride: int = 1

    @classmethod
    def for_rows(cls, elements: int, group_size: int) -> "GroupShape":
        """The shape for rows of neighboring elements: about a thread per ROW_ELEMENTS elements of a row."""
        threads = min(MIN_ROW_THREADS, group_size)
        while threads < group_size and 2 * threads * ROW_ELEMENTS <= elements:
            threads *= 2
        return cls(threads, group_size // threads)

    @classmethod
    def for_columns(cls, group_size: int) -> "GroupShape":
        """The shape for neighboring columns: COLUMNS neighboring threads read neighboring elements of a row."""
        return cls(group_size // COLUMNS, COLUMNS, COLUMNS)

    @property
    def size(self) -> int:
        """The threads of a group."""
        return self.threads * self.outputs

    def indices(self) -> str:
        """A line that defines `lane`, the index among an output's threads, and `slot`, the output in the group."""
        if self.outputs == 1:
            return "const int lane = (int)local_index(), slot = 0;"
        if self.stride > 1:
            return f"const int lane = (int)local_index() / {self.stride}, slot = (int)local_index() % {self.stride};"
        return f"const int slot = (int)local_index() / {self.threads}, lane = (int)local_index() % {self.threads};"


class Split(NamedTuple):
    """The division of each output's elements into `partials` chunks of `chunk` elements, each with a partial result.

    `threads` threads of a group reduce a chunk; 1 is an independent thread. `is_fixed`: the reduction has a fixed order
    (strict_order.py), which gives the chunks.
    """

    chunk: int
    partials: int
    threads: int
    is_fixed: bool


def split_elements(reduction: Node, outputs: int, context: PlanContext, shape: GroupShape) -> Split:
    """Choose chunks so that every compute unit gets work; `outputs` is the number of reductions of the kernel."""
    elements, properties = volume(reduction.attribute[1]), context.properties
    fixed = fixed_chunk(reduction, elements, context.strict)
    if fixed is not None:
        return Split(fixed, -(-elements // fixed), 1, is_fixed=True)
    threads, outputs_per_group = (1, 1) if context.is_cpu else (shape.threads, shape.outputs)
    groups_per_unit = CPU_CHUNKS_PER_UNIT if context.is_cpu else context.schedule.groups_per_unit
    partials = -(-properties.compute_units * groups_per_unit // -(-outputs // outputs_per_group))
    partials = max(1, min(partials, -(-elements // (threads * MIN_ELEMENTS_PER_THREAD))))
    chunk = -(-elements // partials)
    return Split(chunk, -(-elements // chunk), threads, is_fixed=False)


def plan_reduction(node: Node, reduction: Node, context: PlanContext, shape: GroupShape | None = None) -> KernelPlan:
    """Plan the kernel of `reduction`; `node` is the function whose body is the reduction, or the reduction itself.

    `shape` says which outputs a GPU's work-group reduces; by default a group reduces one output. The plan has a second
    kernel, `combine`, if an output has several partial results.
    """
    outer = node.attribute if node is not reduction else ()  # the variables of the outputs
    operator, variables = reduction.attribute
    outputs, elements, is_cpu = volume(outer), volume(variables), context.is_cpu
    shape = shape or GroupShape(context.schedule.group_size)
    split = split_elements(reduction, outputs, context, shape)
    is_serial = is_cpu or split.is_fixed  # an independent thread reduces a chunk
    keeps_order = is_serial or not operator.is_operator  # user functions need not commute; argmin takes the first index
    dialect = (CpuDialect if is_cpu else CDialect)(context.strict)
    if outer:
        emitter = Emitter(dialect, context.stored_ranges)
    else:
        emitter = choose_emitter(variables, reduction.inputs, context.stored_ranges, dialect)
    emitter.delinearize(outer, "output")
    accumulator = Accumulator(emitter, reduction, split.chunk)
    accumulator.start()
    is_final = split.partials == 1  # else the kernel `combine` computes the results
    results = outputs * split.partials  # partial results of the kernel, one for each chunk
    per_thread = -(-results // (CPU_THREADS_PER_UNIT * context.properties.compute_units)) if is_cpu else 1
    index = index_type(max(elements, results + per_thread))
    loops = chunk_loops(emitter, accumulator, split, context, keeps_order, index)
    if is_serial:
        # Threads that differ by 1 have neighboring outputs in columns, else neighboring chunks of an output.
        output, chunk = ("% outputs", "/ outputs") if shape.stride > 1 else ("/ partials", "% partials")
        head = [f"const {index} output = unit {output}, partial = unit {chunk}, place = output * partials + partial;"]
        loops += stores(accumulator.stored_result(accumulator.state) if is_final else accumulator.partial_result())
        group_size = 1 if is_cpu else SERIAL_GROUP_SIZE
        group_count = -(-results // (group_size * per_thread))
    else:
        head, group_size = group_of_threads(shape, index), shape.size
        group_count = -(-outputs // shape.outputs) * split.partials
        shared = [f"shared{k}[local_index()]" for k in range(len(accumulator.partial_types))]
        values = accumulator.stored_result(shared) if is_final else shared
        loops += tree(accumulator, accumulator.state, keeps_order, str(split.threads), shape)
        loops += stores(values, "lane == 0 && unit < outputs")
    types = accumulator.types if is_final else accumulator.partial_types
    lines = [*head, *emitter.prologue, *loops, *emitter.report_poison(accumulator.result_poison)]
    if is_serial:
        lines = [*serial_loop(index), *indented(lines), "}"]
    sizes = {"outputs": outputs, "partials": split.partials, "elements": elements, "chunk": min(split.chunk, elements)}
    sizes |= {"per_thread": per_thread} if is_serial else {}
    plan = finish_plan(emitter, node, "reduction", sizes, types, lines, group_size, group_count)
    if is_final:
        return plan
    plan.partial_types, plan.partial_count = accumulator.partial_types, results
    if split.is_fixed:
        plan.combine = plan_combine_in_order(node, reduction, outputs, split.partials, group_size)
    else:
        plan.combine = plan_combine(node, reduction, outputs, split.partials)
    return plan


def chunk_loops(
    emitter: Emitter, accumulator: Accumulator, split: Split, context: PlanContext, keeps_order: bool, index: str
) -> list[str]:
    """The loops of a thread over the elements of its chunk; `index` is the C type of indices.

    If `keeps_order`, a thread takes neighboring elements; else GPUs interleave the threads' elements.
    """
    if context.is_cpu and not split.is_fixed and accumulator.reduction.is_operator:
        return lane_loops(emitter, accumulator, split.chunk, index)
    if keeps_order:
        return contiguous_loop(emitter, accumulator, split.threads, index)
    return strided_loops(emitter, accumulator, context.schedule.items_per_thread, split.threads, index)


def serial_loop(index: str) -> list[str]:
    """Lines that begin the loop over the chunks of an independent thread; `unit` numbers the chunks of all outputs.

    Each size has the type that holds it, int or long; OpenCL's min() takes two numbers of one type: hence the casts.
    """
    return [
        f"const {index} start = ({index})thread_index() * per_thread;",
        f"const {index} end = min(start + per_thread, ({index})outputs * partials);",
        f"for ({index} unit = start; unit < end; unit++) {{",
    ]


def group_of_threads(shape: GroupShape, index: str) -> list[str]:
    """Lines that define the output and the chunk of a group's thread; threads past the last output repeat that one.

    `unit` is the output's index before that; a thread that repeats an output stores nothing.
    """
    return [
        shape.indices(),
        f"const {index} unit = ({index})(group_index() / (uint)partials) * {shape.outputs} + slot;",
        f"const {index} output = min(unit, ({index})outputs - 1), partial = (int)(group_index() % (uint)partials);",
        f"const {index} place = output * partials + partial;",
    ]


def stores(values: list[str], condition: str = "") -> list[str]:
    """Lines that store the results of a thread, if `condition` holds."""
    lines = [f"out{k}[place] = {value};" for k, value in enumerate(values)]
    return [f"if ({condition}) {{", *indented(lines), "}"] if condition else lines


def contiguous_loop(emitter: Emitter, accumulator: Accumulator, threads: int, index: str) -> list[str]:
    """A loop in which each thread reduces a contiguous range, so that a tree over the threads keeps the order."""
    element = indented(emitter.element(accumulator.variables, accumulator.combine_element))
    lines = [f"const {index} from = partial * chunk, until = min(from + chunk, ({index})elements);"]
    first, end = "from", "until"
    if threads > 1:
        lines.append(f"const {index} per_thread = (until - from + {threads - 1}) / {threads};")
        lines.append(f"const {index} begin = from + lane * per_thread;")
        first, end = "begin", "min(begin + per_thread, until)"
    return [*lines, f"for ({index} linear_index = {first}; linear_index < {end}; linear_index++) {{", *element, "}"]


def lane_loops(emitter: Emitter, accumulator: Accumulator, chunk: int, index: str) -> list[str]:
    """Loops of a CPU's work-item over a chunk with an accumulator per vector lane, for the compiler to vectorize.

    The arrays `lanes0`, `lanes1`, ... hold the accumulators. A loop without vectors reduces the last elements, and a
    tree combines the lanes.
    """
    lanes = LANES[0] if chunk >= MIN_LONG_ROW else LANES[1]
    element = emitter.element(accumulator.variables, accumulator.combine_element)
    types, state = accumulator.storage_types, accumulator.state
    arrays = [f"lanes{k}" for k in range(len(types))]
    loads = [f"{t} {s} = {array}[lane];" for t, s, array in zip(types, state, arrays, strict=True)]
    stores = [f"{array}[lane] = {s};" for array, s in zip(arrays, state, strict=True)]
    pairs = [f"{array}[lane]" for array in arrays], [f"{array}[lane + apart]" for array in arrays]

    return [
        f"const {index} from = partial * chunk, until = min(from + chunk, ({index})elements);",
        *(f"{t} {array}[{lanes}];" for t, array in zip(types, arrays, strict=True)),
        f"for (int lane = 0; lane < {lanes}; lane++) {{ {' '.join(stores)} }}",
        f"{index} first = from;",
        f"for (; first < until - {lanes - 1}; first += {lanes}) {{",
        "    #pragma clang loop unroll(disable) vectorize(enable) vectorize_width(16)",
        f"    for (int lane = 0; lane < {lanes}; lane++) {{",
        f"        const {index} linear_index = first + lane;",
        *indented(indented([*loads, *element, *stores])),
        "    }",
        "}",
        f"for ({index} linear_index = first; linear_index < until; linear_index++) {{",
        *indented(element),
        "}",
        f"for (int apart = {lanes // 2}; apart > 0; apart /= 2) {{",
        "    for (int lane = 0; lane < apart; lane++) {",
        *indented(indented(accumulator.combine_partials(*pairs))),
        "    }",
        "}",
        *accumulator.combine_partials(state, [f"{array}[0]" for array in arrays]),
    ]


def strided_loops(emitter: Emitter, accumulator: Accumulator, unroll: int, threads: int, type_: str) -> list[str]:
    """Loops in which neighboring threads read neighboring elements (coalesced), as vectors of four where possible.

    Groups take tiles in turn, so that groups that run at the same time read neighboring memory. `unroll` is the number
    of elements, or vectors, of a thread in a tile; `threads` the threads of a group for an output; `type_` the C type
    of indices.
    """
    element = emitter.element(accumulator.variables, accumulator.combine_element)
    vector = emitter.vector(accumulator.variables, accumulator.combine_element)
    if vector:
        return [
            f"const {type_} vectors = elements / 4;",
            *tiled_loops("vector_index", "vectors", vector, unroll, threads, type_),
            f"for ({type_} linear_index = 4 * vectors + lane; partial == 0 && linear_index < elements; "
            f"linear_index += {threads}) {{",
            *indented(element),
            "}",
        ]
    return tiled_loops("linear_index", "elements", element, unroll, threads, type_)


def tiled_loops(index: str, limit: str, body: list[str], unroll: int, threads: int, type_: str) -> list[str]:
    """A loop over every `partials`-th tile of `unroll` indices a thread, then a loop over the incomplete last tile."""
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


def tree(accumulator: Accumulator, values: list[str], ordered: bool, threads: str, shape: GroupShape) -> list[str]:
    """Lines that combine the `values` of an output's `threads` by a tree in local memory; lane 0 gets the result.

    `ordered` combines neighboring threads first, which keeps the order of the elements; there `threads`, a C
    expression, may be no power of two. `next` is the index of the thread `step` lanes further on.
    """
    element, other = ([f"shared{k}[{index}]" for k in range(len(values))] for index in ("index", "next"))
    apart = f"step * {shape.stride}" if shape.stride > 1 else "step"
    steps, condition = f"int step = {shape.threads // 2}; step > 0; step /= 2", "lane < step"
    if ordered:
        steps = f"int step = 1; step < {shape.threads}; step *= 2"
        condition = f"lane % (2 * step) == 0 && lane + step < {threads}"
    return [
        *(f"LOCAL_ARRAY({t}, shared{k}, GROUP_SIZE);" for k, t in enumerate(accumulator.storage_types)),
        *(f"shared{k}[local_index()] = {value};" for k, value in enumerate(values)),
        "BARRIER();",
        f"for ({steps}) {{",
        f"    const int index = (int)local_index(), next = index + {apart};",
        f"    if ({condition}) {{",
        *indented(indented(accumulator.combine_partials(element, other))),
        "    }",
        "    BARRIER();",
        "}",
    ]


def finish_combine(
    accumulator: Accumulator, node: Node, sizes: dict[str, int], body: list[str], group_size: int, groups: int
) -> KernelPlan:
    """The plan of a kernel that combines the partial results of `node`."""
    outputs, inputs = accumulator.types, accumulator.partial_types
    return finish_plan(
        accumulator.emitter, node, "combine_partials", sizes, outputs, body, group_size, groups, inputs=inputs
    )  # fmt: skip


def plan_combine(node: Node, reduction: Node, outputs: int, partials: int) -> KernelPlan:
    """Plan the kernel that combines each output's partial results in order, with a work-group for each output.

    Every thread combines a range of partial results, then a tree combines the values of the threads. A thread whose
    range is empty repeats the last partial result; the tree leaves it out.
    """
    accumulator = Accumulator(Emitter(CDialect(), lambda function: ()), reduction)  # the text reads no arrays
    count = range(len(accumulator.partial_types))
    values, nexts = [f"value{k}" for k in count], [f"next{k}" for k in count]
    types = accumulator.storage_types
    results = accumulator.stored_result([f"shared{k}[0]" for k in count])
    lines = [
        "const int output = (int)group_index(), lane = (int)local_index();",
        # `chunk` partial results for each thread; the first `threads` threads have some
        "const int chunk = (partials + GROUP_SIZE - 1) / GROUP_SIZE, threads = (partials + chunk - 1) / chunk;",
        "const int begin = output * partials + lane * chunk, all = (output + 1) * partials;",
        "const int start = min(begin, all - 1), end = min(begin + chunk, all);",
        *(f"{t} {v} = in{k}[start];" for k, (v, t) in enumerate(zip(values, types, strict=True))),
        "for (int partial = begin + 1; partial < end; partial++) {",
        *(f"    const {t} {n} = in{k}[partial];" for k, (n, t) in enumerate(zip(nexts, types, strict=True))),
        *indented(accumulator.combine_partials(values, nexts)),
        "}",
        *tree(accumulator, values, True, "threads", GroupShape(COMBINE_GROUP_SIZE)),
        "if (lane == 0) {",
        *(f"    out{k}[output] = {result};" for k, result in enumerate(results)),
        "}",
    ]
    return finish_combine(accumulator, node, {"partials": partials}, lines, COMBINE_GROUP_SIZE, outputs)


def plan_combine_in_order(node: Node, reduction: Node, outputs: int, partials: int, group_size: int) -> KernelPlan:
    """Plan the kernel that combines each output's partial results in the order of strict_order.py.

    A group combines more than one block of partial results, unless groups have one thread (CPUs); else a thread does.
    """
    if group_size > 1 and partials > BLOCK:
        return plan_combine_blocks(node, reduction, outputs, partials)
    emitter = Emitter(CDialect(strict=True), lambda function: ())
    accumulator = Accumulator(emitter, reduction, partials)
    accumulator.start()
    type_ = storage_type(accumulator.types[0])
    lines = [
        "const int output = (int)thread_index();",
        "if (output >= outputs) return;",
        *emitter.prologue,
        "for (int partial = 0; partial < partials; partial++) {",
        f"    const {type_} next = in0[output * partials + partial];",
        *indented(accumulator.combine(accumulator.state, ["next"], "")),
        "}",
        f"out0[output] = {accumulator.stored_result(accumulator.state)[0]};",
    ]
    sizes = {"outputs": outputs, "partials": partials}
    return finish_combine(accumulator, node, sizes, lines, group_size, -(-outputs // group_size))


def plan_combine_blocks(node: Node, reduction: Node, outputs: int, partials: int) -> KernelPlan:
    """Plan plan_combine_in_order()'s kernel with a group for each output.

    In every level of the tree of blocks, each thread combines one block of the values of the level below.
    """
    emitter = Emitter(CDialect(strict=True), lambda function: ())
    accumulator = Accumulator(emitter, reduction, BLOCK)
    accumulator.start()
    assert partials <= BLOCK * COMBINE_GROUP_SIZE, partials  # MAX_PARTIALS of strict_order.py
    type_, (total,) = storage_type(accumulator.types[0]), accumulator.state
    neutral = neutral_text(reduction.attribute[0].name, accumulator.types[0], emitter.dialect)

    def block(source: str) -> list[str]:
        """The loop over a thread's block."""
        bounds = f"int k = lane * {BLOCK}; k < min((lane + 1) * {BLOCK}, count); k++"
        return [f"for ({bounds}) {total} = {accumulator.combined(total, source)};"]

    lines = [
        "const int output = (int)group_index(), lane = (int)local_index();",
        f"LOCAL_ARRAY({type_}, shared, GROUP_SIZE);",
        *emitter.prologue,
        "int count = partials;",
        *block("in0[output * partials + k]"),
        f"for (count = (count + {BLOCK - 1}) / {BLOCK}; count > 1; count = (count + {BLOCK - 1}) / {BLOCK}) {{",
        f"    shared[lane] = {total};",
        f"    {total} = {neutral};",
        "    BARRIER();",
        *indented(block("shared[k]")),
        "    BARRIER();",
        "}",
        f"if (lane == 0) out0[output] = {accumulator.stored_result([total])[0]};",
    ]
    return finish_combine(accumulator, node, {"partials": partials}, lines, COMBINE_GROUP_SIZE, outputs)
