"""The target `glsl`: programs as fragment passes. Arrays are textures; a reduction is two passes."""

from __future__ import annotations

import math

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.targets.dialects import indented
from renderer.cdollar.targets.emitter import LoopReduction, unrolled_loop
from renderer.cdollar.targets.glsl_matmul import can_pack, draw_product
from renderer.cdollar.targets.glsl_passes import (
    MAX_RENDER_TARGETS,
    SAMPLER_TYPES,
    GlslPasses,
    TextureLayout,
    texel_of,
    texture_layout,
)
from renderer.cdollar.targets.graph_target import Representation
from renderer.cdollar.targets.kernel_plan import output_types, volume
from renderer.cdollar.targets.matrix_product import match_matrix_product
from renderer.cdollar.targets.strict_order import chunk_size, depends_on_order

MIN_REDUCED_PER_TEXEL = 64


class GlslTarget(GlslPasses):
    """Evaluates nodes of one program by fragment passes."""

    def run_kernel(self, node: Node) -> Representation:
        """Compute a function or a closed reduction whose inputs are computed."""
        ranges, types = self.output_ranges(node), output_types(node)
        layout = self.layout(ranges)
        outputs = Representation(ranges, [self.texture(layout, t) for t in types], types)
        if not outputs.size:
            return outputs
        product = None if self.strict else match_matrix_product(node)
        if node.op == "reduce":
            self.draw_reduction(node, outputs)
        elif product is not None and can_pack(self.emitter(), product, self.gl.max_texture_size):
            draw_product(self, product, outputs.buffers[0])
        else:
            self.draw_map(node, layout, outputs)
        return outputs

    def draw_map(self, node: Node, layout: TextureLayout, outputs: Representation) -> None:
        """Every component at every texel; more components than render targets take several passes."""
        step = MAX_RENDER_TARGETS - 1
        for first in range(0, len(node.inputs), step):
            bodies, types = node.inputs[first : first + step], outputs.types[first : first + step]
            emitter = self.emitter()
            emitter.delinearize(node.attribute, "linear_index")
            values = [emitter.value(body) for body in bodies]
            poison = emitter.merge_poison([v.poison for v in values], emitter.blocks[0])
            names = [v.names[0] for v in values]
            textures = outputs.buffers[first : first + step]
            self.draw(node, emitter, names, types, layout, textures, outputs.size, poison)

    def draw_reduction(self, node: Node, outputs: Representation) -> None:
        """A texel for each range of elements, then one texel that combines these partial results."""
        reduction, variables = node.attribute
        elements = volume(variables)
        chunk = elements if reduction.ordered else max(MIN_REDUCED_PER_TEXEL, math.isqrt(elements - 1) + 1)
        in_blocks = self.strict and depends_on_order(reduction, node.type)
        if in_blocks:
            chunk = chunk_size(elements)
        elif self.strict and reduction.function is not None:
            chunk = elements
        partials = -(-elements // chunk)
        emitter = self.emitter()
        state = LoopReduction(emitter, node, chunk if in_blocks else None)
        count = emitter.argument("elements", "int", elements, "n")
        per_texel = emitter.argument("chunk", "int", chunk, "n")
        state.start()
        body = emitter.element(state.variables, state.combine_element)
        emitter.line(f"int end = min(linear_index * {per_texel} + {per_texel}, {count});")
        loop = unrolled_loop(
            "int", "element", f"linear_index * {per_texel}", "end", ["int linear_index = element;", *body], "first",
            state.poison,
        )  # fmt: skip
        emitter.blocks[0].lines += loop
        state.may_poison = True
        layout = texture_layout((partials,), self.gl.max_texture_size)
        textures = [self.texture(layout, t) for t in state.passed_types]
        values = state.result(state.state) if in_blocks else state.state
        self.draw(node, emitter, values, state.passed_types, layout, textures, partials, state.result_poison)
        self.combine_partials(node, textures, layout, partials, outputs)

    def combine_partials(
        self, node: Node, textures: list, layout: TextureLayout, partials: int, outputs: Representation
    ) -> None:
        """One texel that combines all partial results in order."""
        emitter = self.emitter()
        in_blocks = self.strict and depends_on_order(node.attribute[0], node.type)
        state = LoopReduction(emitter, node, partials if in_blocks else None)
        count = emitter.argument("partials", "int", partials, "n")
        width = emitter.argument("width", "int", layout.width, "w")
        names, nexts = ([f"{name}{k}" for k in range(len(state.passed_types))] for name in ("value", "next"))

        def loads(variables: list[str], partial_index: str) -> list[str]:
            texel = texel_of(partial_index, width)
            return [
                f"{type_} {name} = {emitter.dialect.load(f'in{k}', texel, type_)};"
                for k, (name, type_) in enumerate(zip(variables, state.passed_types, strict=True))
            ]

        if in_blocks:
            state.start()
            names = state.state
        emitter.blocks[0].lines += [
            *([] if in_blocks else loads(names, "0")),
            f"for (int index = {int(not in_blocks)}; index < {count}; index++) {{",
            *indented([*loads(nexts, "index"), *state.combine_passed(names, nexts)]),
            "}",
        ]
        inputs = {f"in{k}": (SAMPLER_TYPES[t], textures[k]) for k, t in enumerate(state.passed_types)}
        values = state.result(names)
        self.draw(node, emitter, values, state.types, TextureLayout(1, 1), outputs.buffers, inputs=inputs)
