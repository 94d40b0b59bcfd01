"""Fragment passes that compute nodes: textures of arrays, expressions that read them, uniforms, drawing.

A texture's row is the last dimension of the array, where it is not too long. Several render targets take the components
of a result; one more takes the poison of each value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from renderer.cdollar.ir.dag import Dag, Node, Range
from renderer.cdollar.ir.operations import argument_of
from renderer.cdollar.ir.passes import PASSES
from renderer.cdollar.ir.types import promoted_type
from renderer.cdollar.targets.dialects import GlslDialect, indented
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.expression_emitter import KernelInput, RangesOf
from renderer.cdollar.targets.glsl_sums import SumsByKey
from renderer.cdollar.targets.graph_target import GraphTarget, PendingCheck
from renderer.cdollar.targets.kernel_plan import KernelPlan, in_registers
from renderer.errors import UnavailableError
from renderer.gpu.gl import GlContext
from renderer.gpu.kernel_source import GeneratedSource

SAMPLER_TYPES = {"float": "sampler2D", "int": "isampler2D", "uint": "usampler2D", "bool": "usampler2D"}
SAMPLER_TYPES |= {"half": "sampler2D", "byte": "isampler2D"}  # a texel has 32 bits
OUTPUT_TYPES = {
    "float": "float",
    "int": "int",
    "uint": "uint",
    "bool": "uint",
    "vec4": "vec4",
    "half": "float",
    "byte": "int",
}
TEXEL_TYPES = {"float": "f4", "int": "i4", "uint": "u4", "bool": "u4", "half": "f4", "byte": "i4"}
WRAPPED_ROW_TEXELS = 4096  # texels in a row of an array whose last dimension is too long for a row
MAX_RENDER_TARGETS = 8
MAX_SAMPLERS = 16


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

    def first_index(self, source: KernelInput, dimension: int) -> str:
        """A literal: compiled by NVIDIA's driver 580, texelFetch() at `i + 1 - uniform` returns 0."""
        return str(self.ranges_of(source.function)[dimension].low)

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


class GlslPasses(GraphTarget):
    """Textures and passes of one program in one GL context."""

    name = "glsl"

    def __init__(self, dag: Dag, gl: GlContext, strict: bool = False) -> None:
        """`strict`: no contraction, correctly rounded division and square root; needs GL 4.0."""
        super().__init__(dag)
        self.gl, self.strict, self.device_name = gl, strict, gl.renderer
        self.passes = [SumsByKey(), *PASSES]
        if strict and gl.version < 400:
            raise UnavailableError(f"--strict: GLSL of {gl.renderer} has no `precise`; it needs GL 4.0")
        self.constants = {"STRICT": 1, "SINGLE_ROUNDING_FMA": fma_rounds_once(gl)} if strict else {}

    def time_seconds(self, work: Callable[[], Any]) -> float:
        """Time of drawing."""
        return self.gl.time_seconds(work)

    # Textures

    def layout(self, ranges: tuple[Range, ...]) -> TextureLayout:
        """The texture layout of an array over a box of indices."""
        return texture_layout(tuple(r.size for r in ranges), self.gl.max_texture_size)

    def texture(self, layout: TextureLayout, type_: str) -> Any:
        """A texture of one component."""
        if type_ in ("double", "long"):
            raise UnavailableError(
                f"--target glsl: the program uses {type_}, which textures do not hold; use opencl, cuda or numpy"
            )
        return self.gl.texture((layout.width, layout.height), 1, TEXEL_TYPES[type_])

    def upload(self, array: np.ndarray, type_: str) -> Any:
        """A texture with one component of an array."""
        layout = texture_layout(array.shape, self.gl.max_texture_size)
        flat = np.zeros(layout.width * layout.height, TEXEL_TYPES.get(type_, "f4"))
        texture = self.texture(layout, type_)
        flat[: array.size] = np.asarray(array).reshape(-1)
        return texture.write(flat.reshape(layout.height, layout.width, 1))

    def emitter(self) -> GlslEmitter:
        """An emitter for a pass."""
        return GlslEmitter(self.strict, self.ranges_of, lambda function: self.layout(self.ranges_of(function)))

    # Drawing

    def draw(
        self,
        node: Node,
        emitter: Emitter,
        values: list[str],
        types: tuple[str, ...],
        layout: TextureLayout,
        textures: list,
        count: int | None = None,
        poison: str | None = None,
        inputs: dict[str, tuple[str, Any]] | None = None,
    ) -> None:
        """One pass: the emitter's lines at every texel; `values` are stored in the textures.

        Only texels whose `linear_index` is below `count`, if it is given, are computed. `poison` is stored in one more
        texture, to be checked. `inputs` are more uniforms: by name, their GLSL type and value.
        """
        if emitter.has_doubles:
            self.texture(layout, "double")  # raises
        if poison:
            status = self.gl.texture((layout.width, layout.height), 1, "i4")
            values, types, textures = [*values, poison], (*types, "int"), [*textures, status]
        stored = [(OUTPUT_TYPES[t], f"out{k}", v) for k, (t, v) in enumerate(zip(types, values, strict=True))]
        uniforms = self.uniforms_of(emitter) | (inputs or {})
        body = [*emitter.blocks[0].lines, *(f"{name} = {type_}({value});" for type_, name, value in stored)]
        if count is not None:
            zeros = " ".join(f"{name} = {type_}(0);" for type_, name, _ in stored)
            body = [
                "int linear_index = int(gl_FragCoord.y) * width_ + int(gl_FragCoord.x);",
                f"if (linear_index >= count_) {{ {zeros} return; }}",
                *body,
            ]
            uniforms |= {"count_": ("int", count), "width_": ("int", layout.width)}
        zero = emitter.dialect.zero
        if zero and any(zero in line for line in [*body, *emitter.function_text]):
            uniforms[zero] = ("float", 0.0)
        samplers = sum(type_ in SAMPLER_TYPES.values() for type_, _ in uniforms.values())
        if samplers > MAX_SAMPLERS:
            raise UnavailableError(
                f"--target glsl: a pass reads {samplers} textures, more than {MAX_SAMPLERS}; use `let` to split it"
            )
        declarations = [f"uniform {type_} {name};" for name, (type_, _) in uniforms.items()]
        declarations += [f"layout(location = {k}) out {type_} {name};" for k, (type_, name, _) in enumerate(stored)]
        if any(re.search(r"\blong\b", line) for line in (*emitter.function_text, *body)):
            raise UnavailableError("--target glsl: the program uses long; use opencl, cuda or numpy")
        head = ['#include "cdollar/builtins.h"', *declarations, *emitter.function_text]
        text = in_registers("\n".join([*head, "void main() {", *indented(body), "}"]) + "\n")
        plan = KernelPlan(node, "pass", text, 1, layout.width * layout.height, check_sites=emitter.check_sites)
        if poison:
            self.checks.append(PendingCheck(lambda: int(status.read().max()), plan))
        if self.trace is not None:
            self.trace.append(("kernel", node, plan))
        source = GeneratedSource("cdollar.frag", text)
        render_pass = self.compiled(text, lambda: self.gl.render_pass(source, **self.constants))
        given = {name: value for name, (_, value) in uniforms.items()}
        self.launch(partial(render_pass, textures[0] if len(textures) == 1 else tuple(textures), **given))

    def uniforms_of(self, emitter: Emitter) -> dict[str, tuple[str, Any]]:
        """The uniforms that an emitter's text needs: by name, their GLSL type and value."""
        uniforms: dict[str, tuple[str, Any]] = {}
        arrays = [(source.function, source.name) for source in emitter.inputs.values()]
        for array, name in [*arrays, *emitter.scalars.items()]:
            representation = self.representation_of(array)
            for k, (type_, buffer) in enumerate(zip(representation.types, representation.buffers, strict=True)):
                uniforms[f"{name}_{k}"] = (SAMPLER_TYPES[type_], buffer)
        for name, type_, number in emitter.arguments.values():
            uniforms[name] = (promoted_type(type_), argument_of(number, type_).item())
        return uniforms
