"""The target `glsl`: runs a program's DAG as fragment passes that read arrays from textures and draw into textures.

GraphTarget, the base, orders the passes. A texture's row is the last dimension of the array, if it is not too long.
Each component of a result has a render target; one more render target takes the poison of each value, an int that is
the number of a failed bounds check, or 0. A reduction is two passes: partial results, and the pass that combines them.
"""

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from renderer.cdollar.ir.dag import Dag, Node
from renderer.cdollar.ir.operations import kernel_argument
from renderer.cdollar.ir.passes import PASSES
from renderer.cdollar.ir.types import promoted_type
from renderer.cdollar.targets import matmul_kernels
from renderer.cdollar.targets.accumulator import Accumulator
from renderer.cdollar.targets.dialects import GlslDialect, indented
from renderer.cdollar.targets.emitter import Emitter, unrolled_loop
from renderer.cdollar.targets.expression_emitter import KernelInput, StoredRanges
from renderer.cdollar.targets.glsl.sums import SumsByKey
from renderer.cdollar.targets.graph_target import GraphTarget, PendingCheck, Representation
from renderer.cdollar.targets.kernel_plan import KernelPlan, replace_types, volume
from renderer.cdollar.targets.strict_order import adds_in_blocks, fixed_chunk
from renderer.errors import UnavailableError
from renderer.gpu.gl import GlContext, Texture
from renderer.gpu.kernel_source import GeneratedSource


class TexelType(NamedTuple):
    """GLSL types of a sampler and of a fragment output, and the NumPy type of a texel, which has 32 bits."""

    sampler: str
    output: str
    dtype: str


TEXEL_TYPES = {
    "float": TexelType("sampler2D", "float", "f4"), "half": TexelType("sampler2D", "float", "f4"),
    "int": TexelType("isampler2D", "int", "i4"), "byte": TexelType("isampler2D", "int", "i4"),
    "uint": TexelType("usampler2D", "uint", "u4"), "bool": TexelType("usampler2D", "uint", "u4"),
    "vec4": TexelType("sampler2D", "vec4", "f4"),
}  # fmt: skip
WRAPPED_ROW_TEXELS = 4096  # texels in a row of an array whose last dimension is too long for a row
MAX_RENDER_TARGETS = 8
MIN_REDUCED_PER_TEXEL = 64  # the fewest elements that a fragment of a reduction's first pass combines
Index = tuple[str, int]  # the name of an index and its extent
Uniform = tuple[str, Any]  # the uniform's GLSL type, and its value: a number or Texture


class TextureLayout(NamedTuple):
    """The layout of an array in a texture of `width` x `height` texels.

    A row of texels is the array's last dimension; if `row_wrapped`, elements follow one another across rows instead.
    """

    width: int
    height: int
    row_wrapped: bool = False


def unavailable(reason: str) -> UnavailableError:
    """The error of a program that this target cannot run."""
    return UnavailableError(f"--target glsl: {reason}")


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
        raise unavailable(f"an array of {count} elements does not fit into a texture of this driver")
    return TextureLayout(width, height, row_wrapped=True)


def fma_rounds_once(gl: GlContext) -> bool:
    """True if this driver's fma() rounds once.

    The probe draws fma(a, b, -(a * b)), the rounding error of the product, which is 0 only if fma() rounds twice.
    """
    remainder = gl.texture((1, 1), 1)
    gl.render_pass("cdollar/fma_probe.frag")(remainder, a=1.0 + 2.0**-12, b=1.0 + 2.0**-13)
    return bool(remainder.read()[0, 0, 0] != 0)


class GlslEmitter(Emitter):
    """Emits GLSL, which loads array elements from textures."""

    def __init__(self, strict: bool, stored_ranges: StoredRanges, layout: Callable[[Node], TextureLayout]) -> None:
        """`layout` gives the texture layout of an array."""
        super().__init__(GlslDialect(strict), stored_ranges)
        self.layout = layout

    def first_index(self, source: KernelInput, dimension: int) -> str:
        """The first index as a literal: in NVIDIA's driver 580, texelFetch() at `i + 1 - uniform` returns 0."""
        return str(self.stored_ranges(source.function)[dimension].low)

    def load(self, source: KernelInput, component: int, type_: str, row: str, last: str, size: str) -> str:
        """The value of an array's element; `row` is the linear index of all dimensions but the last, of size `size`."""
        layout = self.layout(source.function)
        if not layout.row_wrapped:
            return self.dialect.load(source.buffer(component), f"{last}, {row}", type_)
        linear = last if row == "0" else f"({row} * {size} + {last})"
        width = self.argument((source.name, "width"), "int", layout.width, "w")
        return self.dialect.load(source.buffer(component), texel_index(linear, width), type_)


def texel_index(linear: str, width: str) -> str:
    """The text of the column and the row of a linear index in rows of `width` texels."""
    return f"({linear}) % {width}, ({linear}) / {width}"


class GlslTarget(GraphTarget):
    """Evaluates nodes of one program by fragment passes in one GL context."""

    name = "glsl"

    def __init__(self, dag: Dag, gl: GlContext, strict: bool = False) -> None:
        """`strict`: no contraction, correctly rounded division and square root; UnavailableError before GL 4.0."""
        super().__init__(dag)
        self.gl, self.strict, self.device_name, self.time_seconds = gl, strict, gl.renderer, gl.time_seconds
        self.passes = [SumsByKey(), *PASSES]
        if strict and gl.version < 400:
            raise UnavailableError(f"--strict: GLSL of {gl.renderer} has no `precise`; it needs GL 4.0")
        self.constants = {"STRICT": 1, "SINGLE_ROUNDING_FMA": fma_rounds_once(gl)} if strict else {}

    # Kernels

    def compute(self, node: Node, outputs: Representation) -> None:
        """Compute a function or a closed reduction (see GraphTarget) whose inputs are computed."""
        product = None if self.strict else matmul_kernels.match_matrix_product(node)
        if node.op == "reduce":
            self.draw_reduction(node, outputs)
        elif product is not None and can_pack(self.emitter(), product, self.gl.max_texture_size):
            draw_product(self, product, outputs.buffers[0])
        else:
            self.draw_map(node, outputs)

    def draw_map(self, node: Node, outputs: Representation) -> None:
        """Draw a function: all components in a pass, or in several passes if there are more than render targets."""
        step = MAX_RENDER_TARGETS - 1  # one takes the poison
        for first in range(0, len(node.inputs), step):
            bodies, types = node.inputs[first : first + step], outputs.types[first : first + step]
            emitter = self.emitter()
            emitter.delinearize(node.attribute, "linear_index")
            values = [emitter.value(body) for body in bodies]
            poison = emitter.merge_poison([v.poison for v in values], emitter.prologue)
            names = [v.names[0] for v in values]
            textures = outputs.buffers[first : first + step]
            self.draw(node, emitter, names, types, textures, outputs.size, poison)

    def draw_reduction(self, node: Node, outputs: Representation) -> None:
        """Draw a reduction: a texel for each range of elements, then one texel that combines these partial results."""
        elements = volume(node.attribute[1])
        # Each pass then combines about sqrt(elements) values in a fragment.
        free_chunk = max(MIN_REDUCED_PER_TEXEL, math.isqrt(elements - 1) + 1)
        chunk = fixed_chunk(node, elements, self.strict) or free_chunk
        partials = -(-elements // chunk)
        emitter = self.emitter()
        accumulator = Accumulator(emitter, node, chunk)
        count = emitter.argument("elements", "int", elements, "n")
        per_texel = emitter.argument("chunk", "int", chunk, "n")  # "n" begins the names of sizes
        accumulator.start()
        body = emitter.element(accumulator.variables, accumulator.combine_element)
        emitter.emit(
            f"int end = min(linear_index * {per_texel} + {per_texel}, {count});",
            *unrolled_loop(
                "int", "element", f"linear_index * {per_texel}", "end", ["int linear_index = element;", *body], "first",
                accumulator.poison,
            ),
        )  # fmt: skip
        accumulator.may_poison = True  # unrolled_loop() sets its poison if the driver leaves the loop early
        textures = [self.allocate((partials,), t) for t in accumulator.partial_types]
        values, types = accumulator.partial_result(), accumulator.partial_types
        self.draw(node, emitter, values, types, textures, partials, accumulator.result_poison)
        self.combine_partials(node, textures, partials, outputs)

    def combine_partials(self, node: Node, textures: list[Texture], partials: int, outputs: Representation) -> None:
        """Draw the one texel that combines all partial results in order."""
        emitter = self.emitter()
        # Strict sums start from the neutral element, as blocks do (strict_order.py); others from partial result 0.
        in_blocks = adds_in_blocks(node.attribute[0], node.type, self.strict)
        accumulator = Accumulator(emitter, node, partials)
        count = emitter.argument("partials", "int", partials, "n")
        width = emitter.argument("width", "int", textures[0].size[0], "w")
        names, nexts = ([f"{name}{k}" for k in range(len(accumulator.partial_types))] for name in ("value", "next"))

        def loads(variables: list[str], partial_index: str) -> list[str]:
            texel = texel_index(partial_index, width)
            return [
                f"{type_} {name} = {emitter.dialect.load(f'in{k}', texel, type_)};"
                for k, (name, type_) in enumerate(zip(variables, accumulator.partial_types, strict=True))
            ]

        if in_blocks:
            accumulator.start()
            names = accumulator.state
        emitter.emit(
            *([] if in_blocks else loads(names, "0")),
            f"for (int index = {int(not in_blocks)}; index < {count}; index++) {{",
            *indented([*loads(nexts, "index"), *accumulator.combine_partials(names, nexts)]),
            "}",
        )
        inputs = {f"in{k}": (TEXEL_TYPES[t].sampler, textures[k]) for k, t in enumerate(accumulator.partial_types)}
        values = accumulator.result(names)
        self.draw(node, emitter, values, accumulator.types, outputs.buffers, inputs=inputs)

    # Textures

    def allocate(self, shape: tuple[int, ...], type_: str) -> Texture:
        """A texture for one component of an array; UnavailableError if it is too large, or of double or long."""
        layout = texture_layout(shape, self.gl.max_texture_size)
        if type_ in ("double", "long"):
            raise unavailable(f"the program uses {type_}, which textures do not hold; use opencl, cuda or numpy")
        return self.gl.texture((layout.width, layout.height), 1, TEXEL_TYPES[type_].dtype)

    def upload(self, array: np.ndarray, type_: str) -> Texture:
        """A texture with the elements of one component of an array."""
        texture = self.allocate(array.shape, type_)
        texels = np.zeros(texture.shape, texture.dtype)
        texels.reshape(-1)[: array.size] = np.asarray(array).reshape(-1)
        return texture.write(texels)

    def layout(self, function: Node) -> TextureLayout:
        """The layout of the texture that holds an array."""
        return texture_layout(tuple(r.size for r in self.stored_ranges(function)), self.gl.max_texture_size)

    def emitter(self) -> GlslEmitter:
        """Return an emitter for a new pass."""
        return GlslEmitter(self.strict, self.stored_ranges, self.layout)

    # Drawing

    def draw(
        self,
        node: Node,
        emitter: Emitter,
        values: list[str],
        types: tuple[str, ...],
        textures: list[Texture],
        count: int | None = None,
        poison: str | None = None,
        inputs: dict[str, Uniform] | None = None,
    ) -> None:
        """Draw one pass: the emitter's lines at every texel, and stores of `values`, with `types`, into the textures.

        If `count` is given, only texels whose `linear_index` is below it are computed. `poison` is stored in one more
        texture, which is checked after the run. `inputs` are further uniforms by name: GLSL type and value.
        """
        if emitter.has_doubles:
            self.allocate((1,), "double")  # raises UnavailableError: textures hold no doubles
        if poison:
            status = self.gl.texture(textures[0].size, 1, "i4")
            values, types, textures = [*values, poison], (*types, "int"), [*textures, status]
        stored = [(TEXEL_TYPES[t].output, f"out{k}", v) for k, (t, v) in enumerate(zip(types, values, strict=True))]
        uniforms = self.kernel_uniforms(emitter) | (inputs or {})
        body = [*emitter.prologue, *(f"{name} = {type_}({value});" for type_, name, value in stored)]
        if count is not None:
            zeros = " ".join(f"{name} = {type_}(0);" for type_, name, _ in stored)
            body = [
                "int linear_index = int(gl_FragCoord.y) * width_ + int(gl_FragCoord.x);",
                f"if (linear_index >= count_) {{ {zeros} return; }}",
                *body,
            ]
            uniforms |= {"count_": ("int", count), "width_": ("int", textures[0].size[0])}
        # Under --strict the text has 0.0 as a uniform: llvmpipe folds operations with a literal 0.0 (GlslDialect.zero).
        zero = emitter.dialect.zero
        if zero and any(zero in line for line in [*body, *emitter.function_text]):
            uniforms[zero] = ("float", 0.0)
        body = self.with_stacks(node, uniforms, body)
        declarations = [f"uniform {type_} {name};" for name, (type_, _) in uniforms.items()]
        declarations += [f"layout(location = {k}) out {type_} {name};" for k, (type_, name, _) in enumerate(stored)]
        if any(re.search(r"\blong\b", line) for line in (*emitter.function_text, *body)):
            raise unavailable("the program uses long; use opencl, cuda or numpy")
        head = ['#include "cdollar/builtins.h"', *declarations, *emitter.function_text]
        text = replace_types("\n".join([*head, "void main() {", *indented(body), "}"]) + "\n")
        self.check_text(text)
        plan = KernelPlan(node, "pass", text, 1, math.prod(textures[0].size), check_sites=emitter.check_sites)
        if poison:
            self.checks.append(PendingCheck(lambda: int(status.read().max()), plan))
        if self.trace is not None:
            self.trace.append(("kernel", node, plan))
        source = GeneratedSource("cdollar.frag", text)
        render_pass = self.compiled(text, lambda: self.gl.render_pass(source, **self.constants))
        values_by_name = {name: value for name, (_, value) in uniforms.items()}
        self.launch(partial(render_pass, textures[0] if len(textures) == 1 else tuple(textures), **values_by_name))

    def with_stacks(self, node: Node, uniforms: dict[str, Uniform], body: list[str]) -> list[str]:
        """The lines of a pass that reads no more textures than the driver has units; changes its `uniforms`.

        While there are too many, textures of the most frequent sampler type are copied below one another into one
        texture, the stack. Fetches in `body` from a copied texture then read the stack, `height` rows further down.
        """
        units = self.gl.max_pass_textures
        samplers: dict[str, list[str]] = {}
        for name, (type_, _) in uniforms.items():
            if type_.endswith("sampler2D"):
                samplers.setdefault(type_, []).append(name)
        while (excess := sum(map(len, samplers.values())) - units) > 0:
            sampler, names = max(samplers.items(), key=lambda item: len(item[1]))
            # A stack of excess + 1 textures is enough; the pass that copies them reads at most `units` itself.
            inputs = {name: uniforms.pop(name) for name in names[: min(units, excess + 1)]}
            type_ = next(t for t, texel in TEXEL_TYPES.items() if texel.sampler == sampler)
            emitter, stack, height = self.emitter(), f"{names[0]}_and_{len(inputs) - 1}_more", 0
            emitter.emit("int column = int(gl_FragCoord.x), row = int(gl_FragCoord.y);", f"{type_} texel;")
            for name, (_, texture) in inputs.items():
                fetch = f"texelFetch({name}, ivec2(min(column, {texture.size[0] - 1}), row - {height}), 0).x"
                emitter.emit(f"if (row >= {height} && row < {height + texture.size[1]}) texel = {fetch};")
                old, new = f"texelFetch({name}, ivec2(", f"texelFetch({stack}, ivec2(0, {height}) + ivec2("
                body, height = [line.replace(old, new) for line in body], height + texture.size[1]
            if height > self.gl.max_texture_size or len(inputs) < 2:
                raise unavailable(f"a pass reads more than {units} textures, which do not fit into one of this driver")
            size = max(texture.size[0] for _, texture in inputs.values()), height
            uniforms[stack] = sampler, self.gl.texture(size, 1, TEXEL_TYPES[type_].dtype)
            self.draw(node, emitter, ["texel"], (type_,), [uniforms[stack][1]], inputs=inputs)
            samplers[sampler] = [*names[len(inputs) :], stack]
        return body

    def kernel_uniforms(self, emitter: Emitter) -> dict[str, Uniform]:
        """The uniforms that an emitter's text needs: by name, their GLSL type and value."""
        uniforms: dict[str, Uniform] = {}
        arrays = [(source.function, source.name) for source in emitter.inputs.values()]
        for array, name in [*arrays, *emitter.scalars.items()]:
            representation = self.representation_of(array)
            for k, (type_, buffer) in enumerate(zip(representation.types, representation.buffers, strict=True)):
                uniforms[f"{name}_{k}"] = (TEXEL_TYPES[type_].sampler, buffer)
        for name, type_, number in emitter.arguments.values():
            uniforms[name] = (promoted_type(type_), kernel_argument(number, type_).item())
        return uniforms


# Matrix products (the fastest configuration of the C$ paper, Adinetz 2007): both operands are packed into textures of
# four values per texel, one fragment computes one texel of the product, and the product is unpacked into the layout of
# the function. On an H200, 1024 x 1024 runs at 196 GFLOP/s packed and at 63 with one value per texel
# (tests/fps/results/nvidia_h200_cdollar.jsonl).


def can_pack(emitter: GlslEmitter, product: matmul_kernels.MatrixProduct, max_texture_size: int) -> bool:
    """True if packing is worth it, fits into textures, and reads only indices proven in bounds.

    `emitter` is a new one: it emits the operands, to find out whether they need checks; its text is not used.
    """
    for factors, indices in matmul_kernels.operand_factors(product):
        matmul_kernels.emit_operand(emitter, factors, indices, checked=False)
    sizes, batch = product.sizes, volume(product.batch)
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    extents = -(-depth // 4), -(-columns // 4), rows * batch, depth * batch
    return not emitter.check_sites and depth >= matmul_kernels.MIN_DEPTH and max(extents) <= max_texture_size


def draw_product(target: GlslTarget, product: matmul_kernels.MatrixProduct, output: Texture) -> None:
    """Compute a matrix product that can_pack() into the texture `output`."""
    sizes, batch = product.sizes, volume(product.batch)
    rows, columns, depth = sizes["rows"], sizes["columns"], sizes["depth"]
    deep, wide = -(-depth // 4), -(-columns // 4)  # texels along k and along columns
    left, right = matmul_kernels.operand_factors(product)
    inputs = {
        "left": ("sampler2D", pack(target, product, left, ("row", rows), ("k", depth))),
        "right": ("sampler2D", pack(target, product, right, ("k", depth), ("column", columns))),
        "left_texels_": ("int", deep),
        "rows_": ("int", rows),
        "depth_": ("int", depth),
    }
    emitter = target.emitter()
    emitter.emit('#include "cdollar/packed_matmul.h"')
    packed = target.gl.texture((wide, rows * batch), 4)
    target.draw(product.node, emitter, ["sum"], ("vec4",), [packed], inputs=inputs)
    unpack(target, product, packed, output)


def pack(
    target: GlslTarget,
    product: matmul_kernels.MatrixProduct,
    operand: matmul_kernels.Operand,
    down: Index,
    across: Index,
) -> Texture:
    """A texture of an operand, four values of the index `across` per texel; `down` is the index along texel rows."""
    texture = target.gl.texture((-(-across[1] // 4), down[1] * volume(product.batch)), 4)
    emitter = target.emitter()
    height = emitter.argument("down", "int", down[1], "n")
    limit = emitter.argument("across", "int", across[1], "n")
    lines, value = matmul_kernels.emit_operand(emitter, *operand, checked=False)
    emitter.emit(
        f"int batch = int(gl_FragCoord.y) / {height}, {down[0]} = int(gl_FragCoord.y) % {height};",
        "vec4 texel = vec4(0.0);",
        "for (int component = 0; component < 4; component++) {",
        f"    int {across[0]} = int(gl_FragCoord.x) * 4 + component;",
        f"    if ({across[0]} < {limit}) {{",
        *indented(indented(lines)),
        f"        texel[component] = {value};",
        "    }",
        "}",
    )
    target.draw(product.node, emitter, ["texel"], ("vec4",), [texture])
    return texture


def unpack(target: GlslTarget, product: matmul_kernels.MatrixProduct, packed: Texture, output: Texture) -> None:
    """Copy the product from texels of (batch, row, column / 4) to the layout of the function.

    `batch`, `row` and `column` are the row-major indices of the function's variables of each group.
    """
    emitter, variables = target.emitter(), product.node.attribute
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
    target.draw(product.node, emitter, [texel], ("float",), [output], volume(variables), inputs=inputs)
