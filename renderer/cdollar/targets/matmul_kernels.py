"""Matrix products: tiles in local memory on GPUs, register blocks on CPUs.

As in BLAS, the output has m rows and n columns, and each element is a sum of k products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from renderer.cdollar.targets.dialects import CDialect
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import RangesOf, indented
from renderer.cdollar.targets.kernel_plan import KernelPlan, finish_plan, volume
from renderer.cdollar.targets.matrix_product import MatrixProduct, Operand, is_contiguous_along, operands_of
from renderer.cdollar.targets.schedule import DEFAULT, TILE_SIZES, Schedule

CPU_ROWS, CPU_COLUMNS = 4, 32  # the block of the output that a work-item computes
BAND_TILES = 8  # tile rows that groups traverse together, so that the L2 cache serves both operands
LOCAL_MEMORY_BYTES = 48 * 1024  # what every device has
MIN_OCCUPANCY = 0.9  # tiles per compute unit that a tile size must leave


@dataclass(frozen=True)
class TileOperand:
    """An operand in a tiled kernel: `extent` of its tile along `index` (row or column), and which index is contiguous.

    The tile is stored in local memory with k as the slower dimension.
    """

    name: str
    operand: Operand
    extent: int
    index: str
    limit: str
    k_contiguous: bool


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


def plan_tiled_matmul(product: MatrixProduct, ranges_of: RangesOf, schedule: Schedule) -> KernelPlan:
    """A work-group computes a tile of the output, a thread thread_rows x thread_columns elements in registers.

    The next tiles of the operands are loaded into registers while these are multiplied.
    """
    s = fit_local_memory(schedule, product.type)
    group_size = (s.tile_rows // s.thread_rows) * (s.tile_columns // s.thread_columns)
    emitter = Emitter(CDialect(), ranges_of)
    left, right = operands_of(emitter, product)
    tiles = [
        TileOperand("left", left, s.tile_rows, "row", "rows", is_contiguous_along(product.left, product.inner)),
        TileOperand(
            "right", right, s.tile_columns, "column", "columns", is_contiguous_along(product.right, product.inner)
        ),
    ]
    lines = [*tile_coordinates(s), *multiply_tiles(s, product.type, group_size, tiles), *store_lines(emitter, product)]
    sizes, batch = product.sizes, volume(product.batch)
    group_count = -(-sizes["rows"] // s.tile_rows) * -(-sizes["columns"] // s.tile_columns) * batch
    body = [*emitter.blocks[0].lines, *lines]
    plan = finish_plan(emitter, product.node, "tiled_matmul", sizes, (product.type,), body, group_size, group_count)
    plan.reason = f"a product of {sizes['rows']} x {sizes['depth']} and {sizes['depth']} x {sizes['columns']}"
    plan.reason += f", {batch} times" if product.batch else ""
    return plan


def tile_coordinates(s: Schedule) -> list[str]:
    """Lines that map groups to tiles of the output, and threads to sub-tiles.

    A thread's rows (and columns) lie in runs of four, one run of every thread side by side, so that vector loads from
    local memory do not conflict. Where the tile divides so, a warp covers 8 x 4 sub-tiles, so that its 32 threads read
    only 8 column runs and 4 row runs (broadcast).
    """
    across, down = s.tile_columns // s.thread_columns, s.tile_rows // s.thread_rows
    threads = [
        "const int thread = (int)local_index(), thread_column = thread % THREADS_ACROSS, "
        "thread_row = thread / THREADS_ACROSS;"
    ]
    if across % 8 == 0 and down % 4 == 0:
        threads = [
            "const int thread = (int)local_index(), warp = thread / 32;",
            f"const int thread_column = warp % {across // 8} * 8 + thread % 8;",
            f"const int thread_row = warp / {across // 8} * 4 + thread % 32 / 8;",
        ]
    return [
        f"#define THREAD_ROWS {s.thread_rows}",
        f"#define THREAD_COLUMNS {s.thread_columns}",
        f"#define THREADS_ACROSS {across}",
        f"#define THREADS_DOWN {down}",
        "#define ROW_OF(i) (((i) / 4) * (THREADS_DOWN * 4) + thread_row * 4 + (i) % 4)",
        "#define COLUMN_OF(j) (((j) / 4) * (THREADS_ACROSS * 4) + thread_column * 4 + (j) % 4)",
        *threads,
        f"const int tiles_across = (columns + {s.tile_columns - 1}) / {s.tile_columns};",
        f"const int tiles_down = (rows + {s.tile_rows - 1}) / {s.tile_rows}, tiles = tiles_across * tiles_down;",
        "const int tile = (int)group_index() % tiles, batch = (int)group_index() / tiles;",
        f"const int band = tile / ({BAND_TILES} * tiles_across);",
        f"const int band_rows = min({BAND_TILES}, tiles_down - band * {BAND_TILES});",
        f"const int in_band = tile - band * {BAND_TILES} * tiles_across;",
        f"const int row0 = (band * {BAND_TILES} + in_band % band_rows) * {s.tile_rows};",
        f"const int column0 = (in_band / band_rows) * {s.tile_columns};",
    ]


def multiply_tiles(s: Schedule, type_: str, group_size: int, tiles: list[TileOperand]) -> list[str]:
    """The sums of a thread over all tiles along k, with two stages in local memory."""
    declarations = []
    for tile in tiles:
        count = 2 * s.tile_depth * (tile.extent + 4)
        if type_ == "float":  # aligned for loads of four
            declarations.append(f"LOCAL_ARRAY(float4, {tile.name}_vectors, {count // 4});")
            declarations.append(f"LOCAL float *{tile.name}_tile = (LOCAL float *){tile.name}_vectors;")
        else:
            declarations.append(f"LOCAL_ARRAY({type_}, {tile.name}_tile, {count});")
        declarations.append(f"{type_} {tile.name}_next[{-(-tile.extent * s.tile_depth // group_size)}];")
    load = [line for tile in tiles for line in load_to_registers(s, group_size, tile)]
    store = [line for tile in tiles for line in store_to_local(s, group_size, tile)]
    return [
        *declarations,
        f"{type_} sum[THREAD_ROWS][THREAD_COLUMNS];",
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] = 0;",
        "int k0 = 0, stage = 0;",
        *load,
        *store,
        "BARRIER();",
        "for (; k0 < depth; ) {",
        f"    k0 += {s.tile_depth};",
        "    if (k0 < depth) {",
        *indented(indented(load)),
        "    }",
        *indented(multiply_tile(s, type_)),
        "    stage = 1 - stage;",
        "    if (k0 < depth) {",
        *indented(indented(store)),
        "    }",
        "    BARRIER();",
        "}",
    ]


def tile_elements(s: Schedule, group_size: int, tile: TileOperand) -> tuple[str, str]:
    """The loop over a thread's elements of a tile, and their coordinates; neighboring threads read the contiguous one.

    k_in_tile is the coordinate along k, mn_in_tile that along rows or columns.
    """
    fast, slow = ("k_in_tile", "mn_in_tile") if tile.k_contiguous else ("mn_in_tile", "k_in_tile")
    width = s.tile_depth if tile.k_contiguous else tile.extent
    return (
        f"UNROLL for (int slot = 0; slot < {-(-tile.extent * s.tile_depth // group_size)}; slot++) {{",
        f"    const int element = thread + slot * {group_size};"
        f" const int {fast} = element % {width}, {slow} = element / {width};",
    )


def load_to_registers(s: Schedule, group_size: int, tile: TileOperand) -> list[str]:
    """Lines that load a thread's elements of a tile into registers; elements outside of the matrix are 0."""
    is_partial = tile.extent * s.tile_depth % group_size
    name, index, operand = tile.name, tile.index, tile.operand
    opening = [
        *tile_elements(s, group_size, tile),
        f"    const int {index} = {index}0 + mn_in_tile, k = k0 + k_in_tile;",
    ]
    in_tile = f" && element < {tile.extent * s.tile_depth}" if is_partial else ""
    guarded = [
        *opening,
        f"    {name}_next[slot] = 0;",
        f"    if ({index} < {tile.limit} && k < depth{in_tile}) {{",
        *indented(indented(operand.lines)),
        f"        {name}_next[slot] = {operand.name};",
        "    }",
        "}",
    ]
    if is_partial:
        return guarded
    inside = [*opening, *indented(operand.lines), f"    {name}_next[slot] = {operand.name};", "}"]
    condition = f"{index}0 + {tile.extent} <= {tile.limit} && k0 + {s.tile_depth} <= depth"
    return [f"if ({condition}) {{", *indented(inside), "} else {", *indented(guarded), "}"]


def store_to_local(s: Schedule, group_size: int, tile: TileOperand) -> list[str]:
    """Lines that store a thread's elements of a tile to local memory, padded by 4 to avoid bank conflicts."""
    count = tile.extent * s.tile_depth
    guard = f"if (element < {count}) " if count % group_size else ""
    position = f"(stage * {s.tile_depth} + k_in_tile) * {tile.extent + 4} + mn_in_tile"
    return [
        *tile_elements(s, group_size, tile),
        f"    {guard}{tile.name}_tile[{position}] = {tile.name}_next[slot];",
        "}",
    ]


def multiply_tile(s: Schedule, type_: str) -> list[str]:
    """Lines that add the products of a tile in local memory to the sums of a thread."""
    lines = [f"UNROLL for (int k = 0; k < {s.tile_depth}; k++) {{"]
    for name, count, extent, threads, thread in (
        ("left", s.thread_rows, s.tile_rows, "THREADS_DOWN", "thread_row"),
        ("right", s.thread_columns, s.tile_columns, "THREADS_ACROSS", "thread_column"),
    ):
        lines.append(f"    {type_} {name}_line[{count}];")
        for run in range(count // 4):
            position = f"(stage * {s.tile_depth} + k) * {extent + 4} + {thread} * 4 + {run} * {threads} * 4"
            if type_ == "float":
                load = f"const float4 four = *(LOCAL const float4 *)&{name}_tile[{position}];"
                stores = " ".join(f"{name}_line[{4 * run + c}] = four.{'xyzw'[c]};" for c in range(4))
                lines.append(f"    {{ {load} {stores} }}")
            else:
                loads = [f"{name}_line[{4 * run + c}] = {name}_tile[{position} + {c}];" for c in range(4)]
                lines.append("    " + " ".join(loads))
    return [
        *lines,
        "    UNROLL for (int i = 0; i < THREAD_ROWS; i++)",
        "        UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) sum[i][j] += left_line[i] * right_line[j];",
        "}",
    ]


def store_lines(emitter: Emitter, product: MatrixProduct) -> list[str]:
    """Lines that store a thread's sums at the linear indices of the function's own order of variables."""
    variables = product.node.attribute
    if variables == (*product.batch, *product.rows, *product.columns):
        linear_index = "((batch * rows + row) * columns + column)"
    else:
        strides, stride = {}, 1
        for variable in reversed(variables):
            strides[variable] = stride
            stride *= variable.range.size
        terms = []
        for group, rest in ((product.batch, "batch"), (product.rows, "row"), (product.columns, "column")):
            for variable in reversed(group):
                size = emitter.argument((variable.unique_id, "size"), "int", variable.range.size, "n")
                step = emitter.argument((variable.unique_id, "stride"), "int", strides[variable], "n")
                terms.append(f"({rest} % {size}) * {step}")
                rest = f"({rest} / {size})"
        linear_index = " + ".join(terms)
    return [
        "UNROLL for (int i = 0; i < THREAD_ROWS; i++) {",
        "    UNROLL for (int j = 0; j < THREAD_COLUMNS; j++) {",
        "        const int row = row0 + ROW_OF(i), column = column0 + COLUMN_OF(j);",
        f"        if (row < rows && column < columns) out0[{linear_index}] = sum[i][j];",
        "    }",
        "}",
    ]


def plan_cpu_matmul(product: MatrixProduct, ranges_of: RangesOf) -> KernelPlan:
    """A work-item computes a 4 x 32 block; its inner loops run along the columns, so that the compiler vectorizes."""
    type_, rows, columns = product.type, CPU_ROWS, CPU_COLUMNS
    sizes, batch = product.sizes, volume(product.batch)
    emitter = Emitter(CDialect(), ranges_of)
    left, right = operands_of(emitter, product)
    batches = emitter.argument("batches", "int", batch, "n")

    def load_columns(column: str) -> list[str]:
        return [
            f"    for (int j = 0; j < {columns}; j++) {{",
            f"        const int column = {column};",
            *indented(indented(right.lines)),
            f"        right_line[j] = {right.name};",
            "    }",
        ]

    lines = [
        f"#define THREAD_ROWS {rows}",
        f"#define THREAD_COLUMNS {columns}",
        "#define ROW_OF(i) (i)",
        "#define COLUMN_OF(j) (j)",
        f"const int blocks_across = (columns + {columns - 1}) / {columns}, blocks_down = (rows + {rows - 1}) / {rows};",
        "const int blocks = blocks_across * blocks_down;",
        "const int block = (int)thread_index() % blocks, batch = (int)thread_index() / blocks;",
        f"const int row0 = (block % blocks_down) * {rows}, column0 = (block / blocks_down) * {columns};",
        f"if (batch < {batches}) {{",
        f"{type_} sum[{rows}][{columns}];",
        f"for (int i = 0; i < {rows}; i++) for (int j = 0; j < {columns}; j++) sum[i][j] = 0;",
        "for (int k = 0; k < depth; k++) {",
        f"    {type_} left_line[{rows}], right_line[{columns}];",
        f"    for (int i = 0; i < {rows}; i++) {{",
        "        const int row = min(row0 + i, rows - 1);",
        *indented(indented(left.lines)),
        f"        left_line[i] = {left.name};",
        "    }",
        f"    if (column0 + {columns} <= columns) {{",
        *indented(load_columns("column0 + j")),
        "    } else {",
        *indented(load_columns("min(column0 + j, columns - 1)")),
        "    }",
        f"    for (int i = 0; i < {rows}; i++)",
        f"        for (int j = 0; j < {columns}; j++) sum[i][j] += left_line[i] * right_line[j];",
        "}",
        *store_lines(emitter, product),
        "}",
    ]
    group_count = -(-sizes["rows"] // rows) * -(-sizes["columns"] // columns) * batch
    body = [*emitter.blocks[0].lines, *lines]
    return finish_plan(emitter, product.node, "cpu_matmul", sizes, (type_,), body, 1, group_count)
