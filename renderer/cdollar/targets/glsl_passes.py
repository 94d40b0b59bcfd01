"""Fragment passes that compute nodes: textures of arrays, uniforms, drawing.

A texture's row is the last dimension of the array, where it is not too long. Several render targets take the components
of a result; one more takes the poison of each value.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from renderer.cdollar.ir.dag import Dag, Node, Range
from renderer.cdollar.ir.operations import wrap_int32
from renderer.cdollar.ir.types import DTYPES
from renderer.cdollar.targets.emitter import Emitter
from renderer.cdollar.targets.glsl_emitter import GlslEmitter, TextureLayout, fma_rounds_once, pass_text, texture_layout
from renderer.cdollar.targets.graph_target import GraphTarget, PendingCheck
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.errors import UnavailableError
from renderer.gpu.gl import GlContext
from renderer.gpu.kernel_source import GeneratedSource

SAMPLER_TYPES = {"float": "sampler2D", "int": "isampler2D", "uint": "usampler2D", "bool": "usampler2D"}
OUTPUT_TYPES = {"float": "float", "int": "int", "uint": "uint", "bool": "uint"}
TEXEL_TYPES = {"float": "f4", "int": "i4", "uint": "u4", "bool": "u4"}
MAX_RENDER_TARGETS = 8
MAX_SAMPLERS = 16


class GlslPasses(GraphTarget):
    """Textures and passes of one program in one GL context."""

    name = "glsl"

    def __init__(self, dag: Dag, gl: GlContext, strict: bool = False) -> None:
        """`strict`: no contraction, correctly rounded division and square root; needs GL 4.0."""
        super().__init__(dag)
        self.gl, self.strict, self.device_name = gl, strict, gl.renderer
        if strict and gl.version < 400:
            raise UnavailableError(f"--strict: GLSL of {gl.renderer} has no `precise`; it needs GL 4.0")
        self.constants = {"STRICT": 1, "SINGLE_ROUNDING_FMA": fma_rounds_once(gl)} if strict else {}
        self.passes: dict[str, Any] = {}  # compiled, by text

    # Textures

    def layout(self, ranges: tuple[Range, ...]) -> TextureLayout:
        """The texture layout of an array over a box of indices."""
        return texture_layout(tuple(r.size for r in ranges), self.gl.max_texture_size)

    def texture(self, layout: TextureLayout, type_: str) -> Any:
        """A texture of one component."""
        if type_ == "double":
            raise UnavailableError(
                "--target glsl: the program uses double, which textures do not hold; use opencl, cuda or numpy"
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
        poison: str | None,
        count: int,
        layout: TextureLayout,
        textures: list,
        checks: list[PendingCheck],
        samplers: dict[str, tuple[str, Any]] | None = None,
    ) -> None:
        """One pass: the emitter's lines at every texel below `count`; `values` are stored in the textures."""
        if emitter.has_doubles:
            self.texture(layout, "double")  # raises
        outputs = [f"layout(location = {k}) out {OUTPUT_TYPES[t]} out{k};" for k, t in enumerate(types)]
        stores = [f"out{k} = {OUTPUT_TYPES[t]}({v});" for k, (v, t) in enumerate(zip(values, types, strict=True))]
        zeros = [f"out{k} = {OUTPUT_TYPES[t]}(0);" for k, t in enumerate(types)]
        if poison:
            outputs.append(f"layout(location = {len(types)}) out int status;")
            stores.append(f"status = {poison};")
            zeros.append("status = 0;")
        uniforms, inputs = self.declare(emitter, samplers or {})
        inputs |= {"count_": count, "width_": layout.width}
        body = [
            "int linear_index = int(gl_FragCoord.y) * width_ + int(gl_FragCoord.x);",
            f"if (linear_index >= count_) {{ {' '.join(zeros)} return; }}",
            *emitter.blocks[0].lines,
            *stores,
        ]
        text = pass_text(["uniform int count_;", "uniform int width_;", *uniforms, *outputs], emitter, body)
        plan = KernelPlan(node, "pass", text, 1, layout.width * layout.height, check_sites=emitter.check_sites)
        targets = list(textures)
        if poison:
            status = self.gl.texture((layout.width, layout.height), 1, "i4")
            targets.append(status)
            checks.append(PendingCheck(lambda: int(status.read().max()), plan))
        if self.trace is not None:
            self.trace.append(("kernel", node, plan))
        self.draw_pass(text, targets[0] if len(targets) == 1 else tuple(targets), inputs)

    def declare(self, emitter: Emitter, samplers: dict[str, tuple[str, Any]]) -> tuple[list[str], dict[str, Any]]:
        """The uniforms that an emitter's text needs and their values; `samplers` are others, with their types."""
        textures = dict(samplers)
        arrays = [(source.function, source.name) for source in emitter.inputs.values()]
        for array, name in [*arrays, *emitter.scalars.items()]:
            representation = self.representation_of(array)
            for k, type_ in enumerate(representation.types):
                textures[f"{name}_{k}"] = (type_, representation.buffers[k])
        if len(textures) > MAX_SAMPLERS:
            raise UnavailableError(
                f"--target glsl: a pass reads {len(textures)} textures, more than {MAX_SAMPLERS}; use `let` to split it"
            )
        lines = [f"uniform {SAMPLER_TYPES[type_]} {name};" for name, (type_, _) in textures.items()]
        values: dict[str, Any] = {name: texture for name, (_, texture) in textures.items()}
        for name, type_, number in emitter.arguments.values():
            lines.append(f"uniform {type_} {name};")
            values[name] = DTYPES[type_](wrap_int32(number, type_)).item()
        return lines, values

    def draw_pass(self, text: str, target: Any, inputs: dict[str, Any]) -> None:
        """Draw a compiled pass into one texture or a tuple of them."""
        if text in self.passes:
            self.counters.cache_hits += 1
        else:
            started = time.perf_counter()
            self.passes[text] = self.gl.render_pass(GeneratedSource("cdollar.frag", text), **self.constants)
            self.counters.compiled += 1
            self.counters.compile_seconds += time.perf_counter() - started
        launch = partial(self.passes[text], target, **inputs)
        launch()
        self.counters.launches += 1
        if self.captured_launches is not None:
            self.captured_launches.append(launch)
