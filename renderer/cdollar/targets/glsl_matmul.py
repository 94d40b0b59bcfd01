"""Matrix products by fragment passes (the paper's fastest configuration).

Both operands are packed into textures of four values per texel, one fragment computes one texel of the product, and the
product is unpacked into the layout of the function. On an H200, 1024 x 1024 runs at 196 GFLOP/s this way and at 63 with
one value per texel (tests/fps/results/nvidia_h200_cdollar.jsonl).
"""

from __future__ import annotations

from typing import Any

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import indented
from renderer.cdollar.targets.glsl_passes import GlslEmitter, GlslPasses, TextureLayout
from renderer.cdollar.targets.kernel_plan import volume
from renderer.cdollar.targets.map_kernels import MIN_MATMUL_DEPTH
from renderer.cdollar.targets.matrix_product import Indices, MatrixProduct, emit_operand, operand_factors


def can_pack(emitter: GlslEmitter, product: MatrixProduct, max_texture_size: int) -> bool:
    """Whether packing is worth it, fits into textures and reads only indices proven in bounds; uses up the emitter."""
    for factors, indices in operand_factors(product):
        emit_operand(emitter, factors, indices, checked=False)
    sizes, batch = product.sizes, volume(product.batch)
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    extents = -(-depth // 4), -(-columns // 4), rows * batch, depth * batch
    return not emitter.check_sites and depth >= MIN_MATMUL_DEPTH and max(extents) <= max_texture_size


def draw_product(target: GlslPasses, product: MatrixProduct, output: Any) -> None:
    """Compute a matrix product that can_pack() into the texture `output`."""
    sizes, batch = product.sizes, volume(product.batch)
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    deep, wide = -(-depth // 4), -(-columns // 4)  # texels along k and along columns
    left, right = operand_factors(product)
    inputs = {
        "left": ("sampler2D", pack(target, product, left, ("row", rows), ("k", depth))),
        "right": ("sampler2D", pack(target, product, right, ("k", depth), ("column", columns))),
        "deep_": ("int", deep),
        "rows_": ("int", rows),
        "depth_": ("int", depth),
    }
    emitter, layout = target.emitter(), TextureLayout(wide, rows * batch)
    emitter.line('#include "cdollar/packed_matmul.h"')
    packed = target.gl.texture((layout.width, layout.height), 4)
    target.draw(product.node, emitter, ["sum"], ("vec4",), layout, [packed], inputs=inputs)
    unpack(target, product, packed, output)


def pack(
    target: GlslPasses,
    product: MatrixProduct,
    operand: tuple[tuple[Node, ...], Indices],
    down: tuple[str, int],
    across: tuple[str, int],
) -> Any:
    """A texture of an operand, four values of the index `across` per texel; `down` is the index along texel rows."""
    layout = TextureLayout(-(-across[1] // 4), down[1] * volume(product.batch))
    texture = target.gl.texture((layout.width, layout.height), 4)
    emitter = target.emitter()
    height = emitter.argument("down", "int", down[1], "n")
    limit = emitter.argument("across", "int", across[1], "n")
    lines, value = emit_operand(emitter, *operand, checked=False)
    emitter.blocks[0].lines += [
        f"int batch = int(gl_FragCoord.y) / {height}, {down[0]} = int(gl_FragCoord.y) % {height};",
        "vec4 texel = vec4(0.0);",
        "for (int component = 0; component < 4; component++) {",
        f"    int {across[0]} = int(gl_FragCoord.x) * 4 + component;",
        f"    if ({across[0]} < {limit}) {{",
        *indented(indented(lines)),
        f"        texel[component] = {value};",
        "    }",
        "}",
    ]
    target.draw(product.node, emitter, ["texel"], ("vec4",), layout, [texture])
    return texture


def unpack(target: GlslPasses, product: MatrixProduct, packed: Any, output: Any) -> None:
    """Copy the product from texels of (batch, row, column / 4) to the layout of the function's own order."""
    emitter, variables = target.emitter(), product.node.attribute
    layout = target.layout(tuple(v.range for v in variables))
    emitter.delinearize(variables, "linear_index")
    positions = []
    for group in (product.batch, product.rows, product.columns):
        linear = "0"
        for variable in group:
            size = emitter.argument((variable.unique_id, "extent"), "int", variable.range.size, "n")
            low = emitter.argument((variable.unique_id, "lowest"), "int", variable.range.low, "l")
            linear = f"({linear} * {size} + int({emitter.variable_names[variable]}) - {low})"
        positions.append(linear)
    batch, row, column = positions
    rows = emitter.argument("rows", "int", volume(product.rows), "n")
    texel = f"texelFetch(texels, ivec2({column} / 4, {batch} * {rows} + {row}), 0)[{column} % 4]"
    inputs = {"texels": ("sampler2D", packed)}
    target.draw(product.node, emitter, [texel], ("float",), layout, [output], volume(variables), inputs=inputs)
