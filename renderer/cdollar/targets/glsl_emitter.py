"""Emits expressions for GLSL fragment passes, which read arrays from textures."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import GlslDialect
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import KernelInput, RangesOf
from renderer.errors import UnavailableError
from renderer.gpu.gl import GlContext

WRAPPED_ROW_TEXELS = 4096  # texels in a row of an array whose last dimension is too long for a row


@dataclass(frozen=True)
class TextureLayout:
    """How an array lies in a texture: rows of `width` texels; `row_wrapped` if a row is not its last dimension."""

    width: int
    height: int
    row_wrapped: bool = False


def texture_layout(sizes: tuple[int, ...], max_texture_size: int) -> TextureLayout:
    """The layout of an array; raises UnavailableError if it does not fit into a texture."""
    count = math.prod(sizes)
    width = sizes[-1] if sizes else 1
    height = count // width if width else 0
    if 0 < width <= max_texture_size and height <= max_texture_size:
        return TextureLayout(width, max(1, height))
    width = min(WRAPPED_ROW_TEXELS, max(1, count))
    height = max(1, -(-count // width))
    if height > max_texture_size:
        raise UnavailableError(
            f"--target glsl: an array of {count} elements does not fit into a texture of this driver"
        )
    return TextureLayout(width, height, True)


def fma_rounds_once(gl: GlContext) -> bool:
    """Whether this driver's fma() rounds once: it then gives the rounding error of a product, which is not 0 here."""
    remainder = gl.texture((1, 1), 1)
    gl.render_pass("cdollar/fma_probe.frag")(remainder, a=1.0 + 2.0**-12, b=1.0 + 2.0**-13)
    return bool(remainder.read()[0, 0, 0] != 0)


class GlslEmitter(Emitter):
    """Loads array elements from textures."""

    def __init__(self, strict: bool, ranges_of: RangesOf, layout_of: Callable[[Node], TextureLayout]) -> None:
        """`layout_of` gives the texture layout of an array."""
        super().__init__(GlslDialect(strict), ranges_of)
        self.layout_of = layout_of

    def load(self, source: KernelInput, component: int, type_: str, row: str, last: str, size: str) -> str:
        """An element of an array: by the linear index of all dimensions but the last, the last index and its size."""
        layout = self.layout_of(source.function)
        if not layout.row_wrapped:
            return self.dialect.load(source.buffer(component), f"{last}, {row}", type_)
        linear = last if row == "0" else f"({row} * {size} + {last})"
        width = self.argument((source.name, "width"), "int", layout.width, "w")
        return self.dialect.load(source.buffer(component), texel_of(linear, width), type_)


def texel_of(linear: str, width: str) -> str:
    """Column and row of a linear index in rows of `width` texels."""
    return f"({linear}) % {width}, ({linear}) / {width}"
