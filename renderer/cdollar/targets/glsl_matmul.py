"""Matrix products by fragment passes (the paper's fastest configuration).

Both operands are packed into textures of four values per texel, one fragment computes one texel of the product, and the
product is unpacked into the layout of the function. On an H200, 1024 x 1024 runs at 196 GFLOP/s this way and at 63 with
one value per texel (tests/fps/results/nvidia_h200_cdollar.jsonl).
"""

from __future__ import annotations

from typing import Any

from renderer.cdollar.targets.dialects import indented
from renderer.cdollar.targets.glsl_emitter import GlslEmitter, pass_text
from renderer.cdollar.targets.glsl_passes import GlslPasses
from renderer.cdollar.targets.kernel_plan import volume
from renderer.cdollar.targets.map_kernels import MIN_MATMUL_DEPTH
from renderer.cdollar.targets.matrix_product import Indices, MatrixProduct, Operand, operand_factors
from renderer.errors import UnavailableError


def can_pack(emitter: GlslEmitter, product: MatrixProduct) -> bool:
    """Whether packing reads only indices that are proven in bounds, and is worth it; uses up the emitter."""
    for factors, indices in operand_factors(product):
        Operand(emitter, factors, indices, checked=False)
    return not emitter.check_sites and volume(product.inner) >= MIN_MATMUL_DEPTH


def draw_product(target: GlslPasses, product: MatrixProduct, output: Any) -> None:
    """Compute a matrix product into the texture `output`."""
    sizes, batch = product.sizes, volume(product.batch)
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    deep, wide = -(-depth // 4), -(-columns // 4)  # texels along k and along columns
    for width, height in ((deep, rows * batch), (wide, depth * batch), (wide, rows * batch)):
        if max(width, height) > target.gl.max_texture_size:
            raise UnavailableError(f"--target glsl: a matrix of {width} x {height} texels does not fit into a texture")
    left, right = operand_factors(product)
    packed = target.gl.texture((wide, rows * batch), 4)
    inputs = {
        "left": pack(target, *left, ("row", rows), ("k", depth), batch),
        "right": pack(target, *right, ("k", depth), ("column", columns), batch),
        "deep_": deep,
        "rows_": rows,
        "depth_": depth,
    }
    draw_lines(target, target.emitter(), ['#include "cdollar/packed_matmul.h"'], "vec4", packed, inputs)
    unpack(target, product, packed, output)


def pack(
    target: GlslPasses,
    factors: tuple,
    indices: Indices,
    down: tuple[str, int],
    across: tuple[str, int],
    batch: int,
) -> Any:
    """A texture of an operand, four values of the index `across` per texel; `down` is the index along texel rows."""
    texture = target.gl.texture((-(-across[1] // 4), down[1] * batch), 4)
    emitter = target.emitter()
    limit = emitter.argument("across", "int", across[1], "n")
    lines = ["int batch = int(gl_FragCoord.y) / height_;", f"int {down[0]} = int(gl_FragCoord.y) % height_;"]
    for value in range(4):
        operand = Operand(emitter, factors, indices, checked=False)
        lines += [
            f"float value{value} = 0.0;",
            "{",
            f"    int {across[0]} = int(gl_FragCoord.x) * 4 + {value};",
            f"    if ({across[0]} < {limit}) {{",
            *indented(indented(operand.lines)),
            f"        value{value} = {operand.name};",
            "    }",
            "}",
        ]
    lines.append("out0 = vec4(value0, value1, value2, value3);")
    draw_lines(target, emitter, lines, "vec4", texture, {"height_": down[1]})
    return texture


def unpack(target: GlslPasses, product: MatrixProduct, packed: Any, output: Any) -> None:
    """Copy the product from texels of (batch, row, column / 4) to the layout of the function's own order."""
    emitter = target.emitter()
    layout = target.layout(tuple(v.range for v in product.node.attribute))
    width = emitter.argument("layout", "int", layout.width, "w")
    emitter.line(f"int linear_index = int(gl_FragCoord.y) * {width} + int(gl_FragCoord.x);")
    emitter.delinearize(product.node.attribute, "linear_index")
    positions = []
    for variables in (product.batch, product.rows, product.columns):
        linear = "0"
        for variable in variables:
            size = emitter.argument((variable.unique_id, "extent"), "int", variable.range.size, "n")
            low = emitter.argument((variable.unique_id, "lowest"), "int", variable.range.low, "l")
            linear = f"({linear} * {size} + int({emitter.variable_names[variable]}) - {low})"
        positions.append(linear)
    batch, row, column = positions
    rows = emitter.argument("rows", "int", volume(product.rows), "n")
    count = emitter.argument("count", "int", volume(product.node.attribute), "n")
    texel = f"texelFetch(texels, ivec2({column} / 4, {batch} * {rows} + {row}), 0)[{column} % 4]"
    draw_lines(
        target, emitter, [f"out0 = linear_index < {count} ? {texel} : 0.0;"], "float", output, {"texels": packed}
    )


def draw_lines(
    target: GlslPasses, emitter: GlslEmitter, lines: list[str], type_: str, texture: Any, inputs: dict[str, Any]
) -> None:
    """Draw one pass of these lines into a texture of `type_`; `inputs` are ints and float textures."""
    declarations = [f"uniform {'int' if isinstance(v, int) else 'sampler2D'} {n};" for n, v in inputs.items()]
    uniforms, values = target.declare(emitter, {})
    declarations += [*uniforms, f"layout(location = 0) out {type_} out0;"]
    target.draw_pass(
        pass_text(declarations, emitter, [*emitter.blocks[0].lines, *lines]), texture, {**inputs, **values}
    )
