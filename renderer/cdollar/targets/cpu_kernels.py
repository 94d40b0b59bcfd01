"""Kernels of processors: a work-item computes blocks of neighboring elements of a row, in loops that vectorize.

The coordinates of a row are computed once a block, what depends on them alone too. A compiler vectorizes innermost
loops only, so that a reduction whose elements neighbor those of the next output (a convolution, sums of columns) has
the loop over outputs inside its own: a block of accumulators stays in the first-level cache.
"""

from __future__ import annotations

from renderer.cdollar.ir.dag import Access, BoundVariable, Node, UserCall, topological_order
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.targets.device_functions import has_loops
from renderer.cdollar.targets.dialects import CpuDialect, indented, storage_type
from renderer.cdollar.targets.emitter import (
    ElementwiseEmitter,
    Emitter,
    LoopReduction,
    is_elementwise,
    is_small,
    loop_lines,
)
from renderer.cdollar.targets.expression_emitter import Block, RangesOf, index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, finish_plan, output_types, volume
from renderer.cdollar.targets.strict_order import depends_on_order

MIN_COLUMNS = 16  # of rows that are worth a loop
SPAN = 2048  # columns of a block of a map
LANES = (1024, 256, 64)  # columns of a block of a reduction: accumulators; the first that leaves every core work
MAX_REPEATED_LINES = 12  # of an element that is in the text so often
ROWS = 4  # elements of a reduction that an accumulator takes at once
BLOCKS_PER_UNIT = 2  # that leave every core work
ITEMS_PER_UNIT = 8  # work-items, so that cores that are late have fewer
VECTORIZE = "#pragma clang loop vectorize(assume_safety)"


def has_rows(node: Node) -> bool:
    """Whether a map has rows that are worth a loop, and no loops inside of it but those that are unrolled."""
    if not node.attribute or volume(node.attribute) < MIN_COLUMNS:
        return False
    for part in (part for body in node.inputs for part in order_within_scope(body)):
        is_loop = isinstance(part.attribute, UserCall) and has_loops(part.attribute.function)
        if is_loop or (part.op == "reduce" and part.free_variables and not is_unrolled(part)):
            return False
    return True


def is_unrolled(reduction: Node) -> bool:
    """Whether a reduction is emitted element by element: it has few, and nothing else is in the way of vectors."""
    operator, variables = reduction.attribute
    is_plain = operator.function is None and not operator.name.startswith("arg") and not operator.ordered
    inner = [part for body in reduction.inputs for part in order_within_scope(body)]
    is_flat = not any(part.op == "reduce" and part.free_variables for part in inner)
    return is_plain and is_flat and is_small(variables)


def plan_cpu_map(node: Node, ranges_of: RangesOf, compute_units: int, strict: bool) -> KernelPlan | None:
    """A map by rows; None if its rows are short."""
    variables = node.attribute
    elementwise = is_elementwise(variables, node.inputs, ranges_of)
    columns = volume(variables if elementwise else variables[-1:])
    if columns < MIN_COLUMNS or index_type(volume(variables)) == "long":
        return None
    emitter = (ElementwiseEmitter if elementwise else Emitter)(CpuDialect(strict), ranges_of)
    with emitter.block() as row:
        if not elementwise:
            emitter.delinearize(variables[:-1], "row")
        with emitter.block() as element:
            if elementwise:
                emitter.bind_element(variables)
            else:
                emitter.delinearize(variables[-1:], "column")
            poison = emit_stores(emitter, node)
    body = [
        *row.lines,
        VECTORIZE,
        "for (int column = start; column < start + width; column++) {",
        "    const int linear_index = row * columns + column;",
        *indented(element.lines),
        *([f"    worst = {poison} > worst ? {poison} : worst;"] if poison else []),
        "}",
    ]
    return block_plan(emitter, node, (columns, SPAN), compute_units, body, poison is not None)


def emit_stores(emitter: Emitter, node: Node) -> str | None:
    """Emit a function's body and the stores of its components; returns the variable with their poison."""
    values = [emitter.value(body) for body in node.inputs]
    for k, value in enumerate(values):
        emitter.line(f"out{k}[linear_index] = {emitter.dialect.stored(node.inputs[k].type, value.names[0])};")
    return emitter.merge_poison([v.poison for v in values], emitter.blocks[-1])


def has_neighbor_outputs(node: Node, reduction: Node, strict: bool) -> bool:
    """Whether neighboring outputs of a reduction read neighboring elements, which plan_cpu_columns makes use of."""
    operator, _ = reduction.attribute
    if operator.function is not None or operator.ordered or operator.name.startswith("arg"):
        return False
    if strict and depends_on_order(operator, reduction.type) or node.attribute[-1].range.size < MIN_COLUMNS:
        return False
    if index_type(volume(node.attribute)) == "long":
        return False
    beside, apart = count_reads(reduction.inputs, node.attribute[-1])
    return beside > 0 and apart == 0 and not is_unrolled(reduction)


def count_reads(bodies: tuple[Node, ...], variable: BoundVariable) -> tuple[int, int]:
    """How many reads have a variable in their last index, and how many in another: of those, elements lie apart."""
    last, others = 0, 0
    for part in topological_order(list(bodies)):
        if part.op == "apply" and isinstance(part.attribute, Access):
            *first, index = (variable in child.free_variables for child in part.inputs[1:])
            last += index
            others += any(first)
    return last, others


def plan_cpu_columns(
    node: Node, reduction: Node, ranges_of: RangesOf, compute_units: int, strict: bool
) -> KernelPlan | None:
    """A reduction to many outputs, LANES of them at a time; None if it checks bounds."""
    emitter, columns = Emitter(CpuDialect(strict), ranges_of), node.attribute[-1].range.size
    rows = volume(node.attribute) // max(1, columns)
    enough = BLOCKS_PER_UNIT * compute_units
    lanes = next((n for n in LANES if rows * -(-columns // n) >= enough), LANES[-1])
    loop = LoopReduction(emitter, reduction)
    with emitter.block() as row:
        emitter.delinearize(node.attribute[:-1], "row")
        loop.start()
        for variable in loop.variables:
            emitter.blocks.append(Block())
            emitter.define(variable, emitter.fresh(variable.name if variable.name.isalnum() else "i"))
        emitter.blocks.append(Block())
        emitter.delinearize(node.attribute[-1:], "column")
        loop.combine_element()
        element = emitter.blocks.pop().lines
        lines = innermost_loops(emitter, loop, emitter.blocks.pop().lines, element)
        for variable in reversed(loop.variables[:-1]):
            inner = [*emitter.blocks.pop().lines, *lines]
            lines = loop_lines(emitter, variable, inner)
    if loop.may_poison:
        return None
    types = [storage_type(t) for t in loop.passed_types]
    body = [
        *row.lines,
        *(f"{t} lanes{k}[{lanes}];" for k, t in enumerate(types)),
        f"for (int lane = 0; lane < {lanes}; lane++) {{",
        *(f"    lanes{k}[lane] = {state};" for k, state in enumerate(loop.state)),
        "}",
        *lines,
        "for (int lane = 0; lane < width; lane++) {",
        f"    out0[row * columns + start + lane] = {loop.result([f'lanes{k}[lane]' for k in range(len(types))])[0]};",
        "}",
    ]
    return block_plan(emitter, node, (columns, lanes), compute_units, body, False)


def innermost_loops(emitter: Emitter, loop: LoopReduction, hoisted: list[str], element: list[str]) -> list[str]:
    """The loop over the last reduced variable around that over the outputs, ROWS elements at a time, and the rest."""
    variable = loop.variables[-1]
    one, several = [*hoisted, *lane_loop(loop, element)], [*hoisted, *element]
    if variable.range.size < 2 * ROWS or len(several) > MAX_REPEATED_LINES:
        return loop_lines(emitter, variable, one)
    (low, high), name, first = emitter.loop_bounds(variable), emitter.variable_names[variable], emitter.fresh("first")
    inner: list[str] = []
    for item in range(ROWS):
        inner += ["{", f"    const {variable.type} {name} = {first} + {item};", *indented(several), "}"]
    return [
        f"{variable.type} {first} = {low};",
        f"for (; {first} + {ROWS - 1} < {high}; {first} += {ROWS}) {{",
        *indented(lane_loop(loop, inner)),
        "}",
        f"for ({variable.type} {name} = {first}; {name} < {high}; {name}++) {{",
        *indented(one),
        "}",
    ]


def lane_loop(loop: LoopReduction, element: list[str]) -> list[str]:
    """The innermost loop: an element of each output of the block."""
    types = [storage_type(t) for t in loop.passed_types]
    return [
        VECTORIZE,
        "for (int lane = 0; lane < width; lane++) {",
        "    const int column = start + lane;",
        *(f"    {t} {s} = lanes{k}[lane];" for k, (t, s) in enumerate(zip(types, loop.state, strict=True))),
        *indented(element),
        *(f"    lanes{k}[lane] = {state};" for k, state in enumerate(loop.state)),
        "}",
    ]


def block_plan(
    emitter: Emitter, node: Node, sizes: tuple[int, int], compute_units: int, body: list[str], checks: bool
) -> KernelPlan:
    """The kernel whose work-items run `body` for blocks of columns; the last one of a row overlaps that before it."""
    columns, span = sizes
    parts = -(-columns // span)
    blocks = volume(node.attribute) // columns * parts
    per_item = -(-blocks // (ITEMS_PER_UNIT * compute_units))
    lines = [
        *emitter.blocks[0].lines,
        *(["int worst = 0;"] if checks else []),
        "const int begin = (int)thread_index() * per_item;",
        "for (int block = begin; block < min(begin + per_item, blocks); block++) {",
        f"    const int row = block / parts, width = min({span}, columns);",
        f"    const int start = min(block % parts * {span}, columns - width);",
        *indented(body),
        "}",
        *(emitter.report_poison("worst") if checks else []),
    ]
    arguments = {"columns": columns, "parts": parts, "blocks": blocks, "per_item": per_item}
    return finish_plan(emitter, node, "map", arguments, output_types(node), lines, 1, -(-blocks // per_item))
