"""Sums of products of two arrays as matrix products: local memory tiles on GPUs, panels of registers on processors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from renderer.cdollar.ir.dag import Access, BoundVariable, Node
from renderer.cdollar.ir.passes import order_within_scope
from renderer.cdollar.targets.dialects import C, operation_text
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.kernel_plan import (
    KernelPlan,
    assembled,
    closed_up,
    decode,
    header,
    report,
    strides,
    volume,
)
from renderer.cdollar.targets.numpy_target import contraction
from renderer.cdollar.targets.schedule import TILE_SIZES, Schedule


@dataclass(frozen=True)
class MatrixProduct:
    """A sum of products over matrices: factors of the left (batch, rows, k) and of the right (batch, k, columns)."""

    node: Node
    left: tuple[Node, ...]
    right: tuple[Node, ...]
    batch: tuple[BoundVariable, ...]
    rows: tuple[BoundVariable, ...]
    columns: tuple[BoundVariable, ...]
    inner: tuple[BoundVariable, ...]


def match_matrix_product(node: Node) -> MatrixProduct | None:
    """The function as a matrix product, if its body is a sum of products of two sides."""
    if len(node.inputs) != 1 or node.inputs[0].op != "reduce" or node.inputs[0].type not in ("float", "double"):
        return None
    reduce_node = node.inputs[0]
    factors = contraction(reduce_node)
    if factors is None or any(has_inner_reduction(f) for f in factors):
        return None
    inner = frozenset(reduce_node.attribute[1])
    left, right = [factors[0]], []
    rows = factors[0].free_variables - inner
    for factor in factors[1:]:
        (left if factor.free_variables - inner <= rows else right).append(factor)
    if not right:
        return None
    columns = frozenset().union(*(f.free_variables for f in right)) - inner
    batch = rows & columns
    if not rows - batch or not columns - batch or (rows | columns) != frozenset(node.attribute):
        return None

    def in_order(some: frozenset) -> tuple[BoundVariable, ...]:
        return tuple(v for v in node.attribute if v in some)

    return MatrixProduct(
        node,
        tuple(left),
        tuple(right),
        in_order(batch),
        in_order(rows - batch),
        in_order(columns - batch),
        reduce_node.attribute[1],
    )


def has_inner_reduction(node: Node) -> bool:
    return any(part.op == "reduce" and part.free_variables for part in order_within_scope(node))


def runs_along(factors: tuple[Node, ...], variables: tuple[BoundVariable, ...]) -> bool:
    """Whether the last index of the first array in some factors runs with the last of these variables."""
    for factor in factors:
        for part in order_within_scope(factor):
            if part.op == "apply" and isinstance(part.attribute, Access):
                return variables[-1] in part.inputs[-1].free_variables
    return False


class Operand:
    """Text that loads one element of a side of a product into a variable, at linear coordinates."""

    def __init__(
        self,
        writer: Emitter,
        factors: tuple[Node, ...],
        groups: list[tuple[tuple[BoundVariable, ...], str]],
        checked: bool = True,
    ):
        held, outer = writer.blocks, writer.blocks[0]
        writer.blocks = [outer, type(outer)(frozenset())]
        for variables, place in groups:
            decode(writer, variables, place)
        values = [writer.value(f) for f in factors]
        text = values[0].names[0]
        type_ = factors[0].type
        for value in values[1:]:
            text = operation_text(writer.dialect, "*", type_, type_, [text, value.names[0]])
        bad = writer.one_bad([v.bad for v in values if v.bad], writer.blocks[-1])
        self.lines, self.name = [*writer.blocks[-1].lines, *(report(writer, bad) if checked else [])], text
        self.bad = bad
        writer.blocks = held


def sized(schedule: Schedule, product: MatrixProduct, units: int) -> Schedule:
    """The largest tiles that still give every unit of the processor work, for products that the tuner has not seen."""
    rows, columns, batch = volume(product.rows), volume(product.columns), volume(product.batch)
    for change in TILE_SIZES:
        found = replace(schedule, **change)
        if -(-rows // found.rows) * -(-columns // found.columns) * batch >= 0.9 * units:
            return found
    return found


def plan_tiled_matmul(product: MatrixProduct, ranges_of, schedule: Schedule) -> KernelPlan:
    """Tiles of both sides in local memory, `thread_rows` x `thread_columns` results in the registers of a thread.

    The next tile is loaded into registers while this one is multiplied (`pipelined`), and rows of the left tile lie
    next to each other for each k, so that a thread reads four at a time.
    """
    node = product.node
    type_ = node.inputs[0].type
    s = fitting(schedule, type_)
    writer = Emitter(C(), ranges_of)
    rows, columns, depth = (volume(v) for v in (product.rows, product.columns, product.inner))
    group = (s.rows // s.thread_rows) * (s.columns // s.thread_columns)
    left = Operand(writer, product.left, [(product.batch, "batch"), (product.rows, "row"), (product.inner, "deep")])
    right = Operand(
        writer, product.right, [(product.batch, "batch"), (product.columns, "column"), (product.inner, "deep")]
    )
    lines = tile_lines(
        s, type_, group, left, right, runs_along(product.left, product.inner), runs_along(product.right, product.inner)
    )
    lines = [*writer.blocks[0].lines, *lines, *store_lines(writer, product)]
    outs = [f"GLOBAL {type_} *RESTRICT out0"]
    head, arguments = header(writer, "part", ["int rows", "int columns", "int depth", "GLOBAL int *status", *outs])
    found = KernelPlan(node, "tile", assembled(writer, head, lines), group)
    tiles = -(-rows // s.rows) * -(-columns // s.columns)
    found.groups = tiles * volume(product.batch)
    found.arguments = [np.int32(rows), np.int32(columns), np.int32(depth), ("status",), ("out", node, 0), *arguments]
    found.why = f"a product of {rows} x {depth} and {depth} x {columns}" + (
        f", {volume(product.batch)} times" if product.batch else ""
    )
    return closed_up(found, writer)


def store_lines(writer: Emitter, product: MatrixProduct) -> list[str]:
    """Where a result of (batch, row, column) goes: its place in the order of the function's variables."""
    step = dict(zip(product.node.attribute, strides(product.node.attribute), strict=True))
    plain = product.node.attribute == (*product.batch, *product.rows, *product.columns)
    lines = []
    if plain:
        place = "((batch * rows + row) * columns + column)"
    else:
        terms = []
        for variables, name in ((product.batch, "batch"), (product.rows, "row"), (product.columns, "column")):
            rest = name
            for variable in reversed(variables):
                size = writer.argument((variable.unique_id, "size"), "int", variable.range.size, "n")
                stride = writer.argument((variable.unique_id, "stride"), "int", step[variable], "n")
                terms.append(f"({rest} % {size}) * {stride}")
                rest = f"({rest} / {size})"
        place = " + ".join(terms)
    lines += [
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) {",
        "    UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) {",
        "        const int row = row0 + ROW_OF(i), column = column0 + COLUMN_OF(j);",
        f"        if (row < rows && column < columns) out0[{place}] = sum[i][j];",
        "    }",
        "}",
    ]
    return lines


def tile_lines(
    s: Schedule, type_: str, group: int, left: Operand, right: Operand, left_deep: bool, right_deep: bool
) -> list[str]:
    loads = [
        ("left", left, s.rows, "row", left_deep),
        ("right", right, s.columns, "column", right_deep),
    ]
    quad = f"{type_}4" if type_ == "float" else ""
    lines = [
        f"#define THREAD_ROWS {s.thread_rows}",
        f"#define THREAD_COLUMNS {s.thread_columns}",
        f"#define ACROSS {s.columns // s.thread_columns}",
        f"#define DOWN {s.rows // s.thread_rows}",
        # A thread's rows lie in quads, a quad of every thread side by side: reads of local memory do not collide.
        "#define ROW_OF(i) (((i) / 4) * (DOWN * 4) + mine_down * 4 + (i) % 4)",
        "#define COLUMN_OF(j) (((j) / 4) * (ACROSS * 4) + mine_across * 4 + (j) % 4)",
        *tile_arrays(s, type_),
        *thread_places(s),
        f"const int tiles_across = (columns + {s.columns - 1}) / {s.columns};",
        f"const int tiles_down = (rows + {s.rows - 1}) / {s.rows}, tiles = tiles_across * tiles_down;",
        "const int tile = (int)group_index() % tiles, batch = (int)group_index() / tiles;",
        # Groups that run together take a band of 8 tile rows, so that the second-level cache serves both sides.
        "const int band = tile / (8 * tiles_across), band_rows = min(8, tiles_down - band * 8);",
        "const int in_band = tile - band * 8 * tiles_across;",
        f"const int row0 = (band * 8 + in_band % band_rows) * {s.rows}, column0 = (in_band / band_rows) * {s.columns};",
        f"{type_} sum[THREAD_ROWS][THREAD_COLUMNS];",
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] = 0;",
    ]
    for name, _, width, _, _ in loads:
        lines.append(f"{type_} {name}_next[{-(-width * s.depth // group)}];")
    fetch = [
        line
        for name, side, width, place, deep in loads
        for line in fetch_lines(s, type_, group, name, side, width, place, deep)
    ]
    put = [line for name, side, width, place, deep in loads for line in put_lines(s, group, name, width, deep)]
    multiply = multiply_lines(s, type_, quad)
    lines += ["int deep0 = 0, half_ = 0;", *fetch, *put, "BARRIER();"]
    lines.append("for (; deep0 < depth; ) {")
    lines += [f"    deep0 += {s.depth};", "    if (deep0 < depth) {", *("        " + x for x in fetch), "    }"]
    lines += ["    " + x for x in multiply]
    lines += [
        "    half_ = 1 - half_;",
        "    if (deep0 < depth) {",
        *("        " + x for x in put),
        "    }",
        "    BARRIER();",
        "}",
    ]
    if not s.pipelined:
        start = lines.index("int deep0 = 0, half_ = 0;")
        lines = [*lines[:start], "const int half_ = 0;", f"for (int deep0 = 0; deep0 < depth; deep0 += {s.depth}) {{"]
        lines += ["    " + x for x in [*fetch, *put, "BARRIER();", *multiply, "BARRIER();"]]
        lines.append("}")
    return lines


def thread_places(s: Schedule) -> list[str]:
    """Which of a tile's results a thread makes: a warp takes 8 x 4 threads, so that its reads of local memory meet."""
    across, down = s.columns // s.thread_columns, s.rows // s.thread_rows
    if across % 8 or down % 4:
        return ["const int me = (int)local_index(), mine_across = me % ACROSS, mine_down = me / ACROSS;"]
    return [
        "const int me = (int)local_index(), warp = me / 32;",
        f"const int mine_across = warp % {across // 8} * 8 + me % 8;",
        f"const int mine_down = warp / {across // 8} * 4 + me % 32 / 8;",
    ]


def tile_arrays(s: Schedule, type_: str) -> list[str]:
    """Two halves of each tile in local memory, aligned so that four floats are read at once."""
    lines = []
    for name, width in (("left", s.rows), ("right", s.columns)):
        count = (2 if s.pipelined else 1) * s.depth * (width + 4)
        if type_ == "float":
            lines.append(f"LOCAL_ARRAY(float4, {name}_quads, {count // 4});")
            lines.append(f"LOCAL float *{name}_tile = (LOCAL float *){name}_quads;")
        else:
            lines.append(f"LOCAL_ARRAY({type_}, {name}_tile, {count});")
    return lines


def fitting(s: Schedule, type_: str) -> Schedule:
    """The schedule with tiles shallow enough for 48 KiB of local memory, which every device has."""
    size = 8 if type_ == "double" else 4
    while (2 if s.pipelined else 1) * s.depth * (s.rows + s.columns + 8) * size > 48 * 1024 and s.depth > 4:
        s = replace(s, depth=s.depth // 2)
    return s


def fetch_lines(
    s: Schedule, type_: str, group: int, name: str, side: Operand, width: int, place: str, deep_first: bool
) -> list[str]:
    """The part of a tile that this thread loads, into its registers; what lies outside of the matrix is 0."""
    limit = "rows" if place == "row" else "columns"
    across, along = ("deep_in", "wide_in") if deep_first else ("wide_in", "deep_in")
    fast = s.depth if deep_first else width
    opening = [
        f"UNROLL for (int part = 0; part < {-(-width * s.depth // group)}; part++) {{",
        f"    const int element = me + part * {group}, {across} = element % {fast}, {along} = element / {fast};",
        f"    const int {place} = {place}0 + wide_in, deep = deep0 + deep_in;",
    ]
    whole = [*opening, *("    " + line for line in side.lines), f"    {name}_next[part] = {side.name};", "}"]
    guarded = [
        *opening,
        f"    {name}_next[part] = 0;",
        f"    if ({place} < {limit} && deep < depth"
        + (f" && element < {width * s.depth}" if width * s.depth % group else "")
        + ") {",
        *("        " + line for line in side.lines),
        f"        {name}_next[part] = {side.name};",
        "    }",
        "}",
    ]
    if width * s.depth % group:
        return guarded
    inside = f"if ({place}0 + {width} <= {limit} && deep0 + {s.depth} <= depth) {{"
    return [inside, *("    " + x for x in whole), "} else {", *("    " + x for x in guarded), "}"]


def put_lines(s: Schedule, group: int, name: str, width: int, deep_first: bool) -> list[str]:
    fast = s.depth if deep_first else width
    across, along = ("deep_in", "wide_in") if deep_first else ("wide_in", "deep_in")
    guard = f"if (element < {width * s.depth}) " if width * s.depth % group else ""
    return [
        f"UNROLL for (int part = 0; part < {-(-width * s.depth // group)}; part++) {{",
        f"    const int element = me + part * {group}, {across} = element % {fast}, {along} = element / {fast};",
        f"    {guard}{name}_tile[(half_ * {s.depth} + deep_in) * {width + 4} + wide_in] = {name}_next[part];",
        "}",
    ]


def multiply_lines(s: Schedule, type_: str, quad: str) -> list[str]:
    lines = [f"UNROLL for (int deep = 0; deep < {s.depth}; deep++) {{"]
    for name, count, width, of, mine in (
        ("left", s.thread_rows, s.rows, "DOWN", "mine_down"),
        ("right", s.thread_columns, s.columns, "ACROSS", "mine_across"),
    ):
        lines.append(f"    {type_} {name}_row[{count}];")
        base = f"(half_ * {s.depth} + deep) * {width + 4} + {mine} * 4"
        for k in range(count // 4):
            at = f"{base} + {k} * {of} * 4"
            if quad:
                lines.append(f"    {{ const {quad} four = *(LOCAL const {quad} *)&{name}_tile[{at}];")
                lines.append(
                    "      " + " ".join(f"{name}_row[{4 * k + c}] = four.{'xyzw'[c]};" for c in range(4)) + " }"
                )
            else:
                lines.append("    " + " ".join(f"{name}_row[{4 * k + c}] = {name}_tile[{at} + {c}];" for c in range(4)))
    lines += [
        "    UNROLL for (int i = 0; i < THREAD_ROWS; i++)",
        "        UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] += left_row[i] * right_row[j];",
        "}",
    ]
    return lines


def plan_cpu_matmul(product: MatrixProduct, ranges_of, schedule: Schedule) -> KernelPlan:
    """For processors of one lane: a thread makes 4 rows x 32 columns, the inner loop along the columns for SIMD."""
    node, type_ = product.node, product.node.inputs[0].type
    rows, columns, depth = (volume(v) for v in (product.rows, product.columns, product.inner))
    high, wide = 4, 32
    writer = Emitter(C(), ranges_of)
    left = Operand(writer, product.left, [(product.batch, "batch"), (product.rows, "row"), (product.inner, "deep")])
    right = Operand(
        writer, product.right, [(product.batch, "batch"), (product.columns, "column"), (product.inner, "deep")]
    )
    lines = [
        f"#define THREAD_ROWS {high}",
        f"#define THREAD_COLUMNS {wide}",
        "#define ROW_OF(i) (i)",
        "#define COLUMN_OF(j) (j)",
        f"const int panels = (columns + {wide - 1}) / {wide}, blocks = (rows + {high - 1}) / {high};",
        "const int tile = (int)thread_index() % (panels * blocks), batch = (int)thread_index() / (panels * blocks);",
        f"const int row0 = (tile % blocks) * {high}, column0 = (tile / blocks) * {wide};",
        f"if (batch < {writer.argument('batches', 'int', volume(product.batch), 'n')}) {{",
        f"{type_} sum[{high}][{wide}];",
        f"for (int i = 0; i < {high}; i++) for (int j = 0; j < {wide}; j++) sum[i][j] = 0;",
        "for (int deep = 0; deep < depth; deep++) {",
        f"    {type_} left_row[{high}], right_row[{wide}];",
        f"    for (int i = 0; i < {high}; i++) {{",
        "        const int row = min(row0 + i, rows - 1);",
        *("        " + line for line in left.lines),
        f"        left_row[i] = {left.name};",
        "    }",
        f"    if (column0 + {wide} <= columns) {{",
        f"        for (int j = 0; j < {wide}; j++) {{",
        "            const int column = column0 + j;",
        *("            " + line for line in right.lines),
        f"            right_row[j] = {right.name};",
        "        }",
        "    } else {",
        f"        for (int j = 0; j < {wide}; j++) {{",
        "            const int column = min(column0 + j, columns - 1);",
        *("            " + line for line in right.lines),
        f"            right_row[j] = {right.name};",
        "        }",
        "    }",
        f"    for (int i = 0; i < {high}; i++)",
        f"        for (int j = 0; j < {wide}; j++) sum[i][j] += left_row[i] * right_row[j];",
        "}",
    ]
    lines = [*writer.blocks[0].lines, *lines, *store_lines(writer, product), "}"]
    head, arguments = header(
        writer, "part", ["int rows", "int columns", "int depth", "GLOBAL int *status", f"GLOBAL {type_} *RESTRICT out0"]
    )
    found = KernelPlan(node, "panel", assembled(writer, head, lines), 1)
    found.groups = -(-rows // high) * -(-columns // wide) * volume(product.batch)
    found.arguments = [np.int32(rows), np.int32(columns), np.int32(depth), ("status",), ("out", node, 0), *arguments]
    return closed_up(found, writer)
