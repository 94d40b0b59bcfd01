"""Plans kernels for CPUs (PoCL, Intel OpenCL): loops over the columns of a tile, which the compiler vectorizes.

map_kernels.plan_kernel() calls plan_cpu_map() and plan_cpu_columns() for a "function" node, whose result is an array.
The last of its bound variables counts the columns of the output, the others its rows. A tile is a range of neighboring
columns of one row; a work-item computes several tiles. Values that depend on the row alone are computed once per tile.
Compilers vectorize innermost loops only. A reduction whose neighboring outputs read neighboring elements (a
convolution, sums of columns) therefore has the loop over columns inside the loop over reduced elements; an accumulator
for each column of the tile stays in the first-level cache.
"""

import re

from renderer.cdollar.ir.contraction import tested_ends
from renderer.cdollar.ir.dag import Access, BoundVariable, Node, Nodes, UserCall, Variables, topological_order
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.targets.accumulator import Accumulator
from renderer.cdollar.targets.dialects import CpuDialect, indented
from renderer.cdollar.targets.emitter import ElementwiseEmitter, Emitter, choose_emitter, is_small
from renderer.cdollar.targets.expression_emitter import index_type
from renderer.cdollar.targets.kernel_plan import KernelPlan, PlanContext, finish_plan, output_types, volume
from renderer.cdollar.targets.strict_order import fixed_chunk

MIN_COLUMNS = 16  # the fewest columns for which a loop with vectors is worth its start
MAP_TILE = 2048  # columns of a tile of a map
REDUCTION_TILES = (1024, 256, 64)  # columns of a tile of a reduction: the first size that gives every core enough tiles
TILES_PER_UNIT = 2  # tiles that are enough for a core
UNROLLED = 4  # reduced elements that one round of the loop over columns adds to an accumulator
MAX_REPEATED_LINES = 12  # an element with more lines of text is not repeated UNROLLED times
ITEMS_PER_UNIT = 8  # work-items per core, so that a core that starts late takes fewer
NEAR = re.compile(r"\b(sin|cos|tan|log|log2|log10|exp|exp2|pow)_float\(")  # elementary.h has near_NAME, too
VECTORIZE = "#pragma clang loop vectorize(assume_safety) vectorize_width(16)"


def is_unrolled(reduction: Node) -> bool:
    """True if the text repeats a reduction's few elements one by one, so that no loop prevents vectors around it."""
    operator, variables = reduction.attribute
    inner = [operand for body in reduction.inputs for operand in order_within_scope(body)]
    is_flat = not any(operand.op == "reduce" and operand.free_variables for operand in inner)
    return operator.is_operator and not operator.ordered and is_flat and is_small(variables)


def plan_cpu_map(node: Node, context: PlanContext) -> KernelPlan | None:
    """Plan a map, an array whose elements are independent; None if rows are short or an element needs a loop."""
    variables = node.attribute
    if not variables or any(has_loop(operand) for body in node.inputs for operand in order_within_scope(body)):
        return None
    emitter = choose_emitter(variables, node.inputs, context.stored_ranges, CpuDialect(context.strict))
    elementwise = isinstance(emitter, ElementwiseEmitter)
    columns = volume(variables if elementwise else variables[-1:])
    if columns < MIN_COLUMNS or index_type(volume(variables)) == "long":
        return None
    with emitter.scope() as row:  # gets the lines that depend on the row alone; `element` gets the others
        if not elementwise:
            emitter.delinearize(variables[:-1], "row")
        with emitter.scope() as element:
            if elementwise:
                emitter.bind_element(variables)
            else:
                emitter.delinearize(variables[-1:], "column")
            poison = emitter.emit_stores(node)
    loop = [
        VECTORIZE,
        "for (int column = start; column < start + width; column++) {",
        "    const int linear_index = row * columns + column;",
        *indented(element.lines),
        *([f"    worst = {poison} > worst ? {poison} : worst;"] if poison else []),
        "}",
    ]
    # near_NAME() is shorter than NAME_float(), but right for usual operands only: it raises `rarity` for others. A tile
    # in which `rarity` reaches RARE is computed again by the second loop (elementary.h).
    near = [NEAR.sub(r"near_\1(&rarity, ", line) for line in loop]
    if near != loop:
        loop = ["uint rarity = 0;", *near, "if (rarity >= RARE) {", *indented(loop), "}"]
    body = [*row.lines, *loop]
    return tiled_plan(emitter, node, columns, MAP_TILE, context, body, poison is not None)


def has_loop(node: Node) -> bool:
    """True if a node is emitted with a loop: a call of a function with loops, or a reduction that is not unrolled."""
    if isinstance(node.attribute, UserCall):
        return bool(node.attribute.function.has_loops)
    return node.op == "reduce" and bool(node.free_variables) and not is_unrolled(node)


def plan_cpu_columns(node: Node, reduction: Node, context: PlanContext) -> KernelPlan | None:
    """Plan an array of reductions whose neighboring outputs read neighboring elements.

    None for other reductions, for rows of less than MIN_COLUMNS, and for a reduction that checks bounds.
    """
    (operator, variables), columns = reduction.attribute, node.attribute[-1].range.size
    has_order = fixed_chunk(reduction, volume(variables), context.strict) is not None
    if not operator.is_operator or has_order or columns < MIN_COLUMNS:
        return None
    by_element, by_rows = count_reads(reduction.inputs, node.attribute[-1])
    if not by_element or by_rows or is_unrolled(reduction) or index_type(volume(node.attribute)) == "long":
        return None
    if tested_ends(reduction).checks:
        return None
    emitter, rows = Emitter(CpuDialect(context.strict), context.stored_ranges), volume(node.attribute) // columns
    enough = TILES_PER_UNIT * context.properties.compute_units
    tile = next((size for size in REDUCTION_TILES if rows * -(-columns // size) >= enough), REDUCTION_TILES[-1])
    accumulator = Accumulator(emitter, reduction)
    with emitter.scope() as row:
        emitter.delinearize(node.attribute[:-1], "row")
        accumulator.start()
        loops = column_loops(emitter, accumulator, node.attribute[-1], accumulator.variables)
    if accumulator.result_poison:  # this kernel reports no failed checks
        return None
    types = accumulator.storage_types
    (result,) = accumulator.result([f"lanes{k}[lane]" for k in range(len(types))])  # operators combine single numbers
    body = [
        *row.lines,
        *(f"{t} lanes{k}[{tile}];" for k, t in enumerate(types)),
        f"for (int lane = 0; lane < {tile}; lane++) {{",
        *(f"    lanes{k}[lane] = {state};" for k, state in enumerate(accumulator.state)),
        "}",
        *loops,
        "for (int lane = 0; lane < width; lane++) {",  # `lane` counts the columns of a tile
        f"    out0[row * columns + start + lane] = {result};",
        "}",
    ]
    return tiled_plan(emitter, node, columns, tile, context, body, checks=False)


def count_reads(bodies: Nodes, variable: BoundVariable) -> tuple[int, int]:
    """Count the array reads that step by one element along a variable, and the reads that step by rows.

    A read steps by one element if its last index depends on the variable, by rows if another index does.
    """
    by_element, by_rows = 0, 0
    for operand in topological_order(list(bodies)):
        if operand.op == "apply" and isinstance(operand.attribute, Access):
            *in_others, in_last = (variable in index.free_variables for index in operand.inputs[1:])
            by_element += in_last
            by_rows += any(in_others)
    return by_element, by_rows


def column_loops(emitter: Emitter, accumulator: Accumulator, column: BoundVariable, reduced: Variables) -> list[str]:
    """The loops over the `reduced` variables, the last one innermost, and inside them the loop over the columns."""
    variable, *inner = reduced
    with emitter.scope() as scope:
        emitter.bind_loop_variable(variable)
        if inner:
            loops = column_loops(emitter, accumulator, column, tuple(inner))
        else:
            with emitter.scope() as element:
                emitter.delinearize((column,), "column")
                accumulator.combine_element()
    if inner:
        return emitter.loop(variable, [*scope.lines, *loops])
    return innermost_loops(emitter, accumulator, variable, scope.lines, element.lines)


def innermost_loops(
    emitter: Emitter, accumulator: Accumulator, variable: BoundVariable, hoisted: list[str], element: list[str]
) -> list[str]:
    """The loop over the last reduced variable, UNROLLED values a round, around the loop over the columns.

    `hoisted`: lines that do not depend on the column; `element`: the lines that combine one element.
    """
    single_round, repeated = [*hoisted, *lane_loop(accumulator, element)], [*hoisted, *element]
    if variable.range.size < 2 * UNROLLED or len(repeated) > MAX_REPEATED_LINES:
        return emitter.loop(variable, single_round)
    (low, high), name, first = emitter.loop_bounds(variable), emitter.variable_names[variable], emitter.fresh("first")
    inner: list[str] = []
    for item in range(UNROLLED):
        inner += ["{", f"    const {variable.type} {name} = {first} + {item};", *indented(repeated), "}"]
    return [
        f"{variable.type} {first} = {low};",
        f"for (; {first} + {UNROLLED - 1} < {high}; {first} += {UNROLLED}) {{",
        *indented(lane_loop(accumulator, inner)),
        "}",
        f"for ({variable.type} {name} = {first}; {name} < {high}; {name}++) {{",
        *indented(single_round),
        "}",
    ]


def lane_loop(accumulator: Accumulator, element: list[str]) -> list[str]:
    """The loop over the columns of a tile, which combines an element into the accumulator of each column."""
    types, state = accumulator.storage_types, accumulator.state
    return [
        VECTORIZE,
        "for (int lane = 0; lane < width; lane++) {",
        "    const int column = start + lane;",
        *(f"    {t} {s} = lanes{k}[lane];" for k, (t, s) in enumerate(zip(types, state, strict=True))),
        *indented(element),
        *(f"    lanes{k}[lane] = {s};" for k, s in enumerate(state)),
        "}",
    ]


def tiled_plan(
    emitter: Emitter, node: Node, columns: int, tile: int, context: PlanContext, body: list[str], checks: bool
) -> KernelPlan:
    """Finish a kernel whose work-items run `body` for tiles of at most `tile` of the `columns` of a row.

    In the text a row has `parts` tiles, and the tiles of all rows are numbered `block`. The last tile of a row overlaps
    the tile before, so that all tiles are equally wide. `checks`: the body sets `worst` to the greatest poison of its
    elements. The body may use `row`, `start` (the tile's first column), `width` (its columns) and `columns`.
    """
    parts = -(-columns // tile)
    blocks = volume(node.attribute) // columns * parts
    per_item = -(-blocks // (ITEMS_PER_UNIT * context.properties.compute_units))
    lines = [
        *emitter.prologue,
        *(["int worst = 0;"] if checks else []),
        "const int begin = (int)thread_index() * per_item;",
        "for (int block = begin; block < min(begin + per_item, blocks); block++) {",
        f"    const int row = block / parts, width = min({tile}, columns);",
        f"    const int start = min(block % parts * {tile}, columns - width);",
        *indented(body),
        "}",
        *(emitter.report_poison("worst") if checks else []),
    ]
    sizes = {"columns": columns, "parts": parts, "blocks": blocks, "per_item": per_item}
    return finish_plan(emitter, node, "map", sizes, output_types(node), lines, 1, -(-blocks // per_item))
