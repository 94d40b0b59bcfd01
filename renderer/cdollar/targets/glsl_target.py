"""Programs as GLSL fragment passes: arrays are textures, computing is drawing, a reduction is a few passes.

A texture's row is the last dimension of the array (or a fold of the whole array, where that is too long for a row).
TupleNode render targets take the components of a result; one more says whether a value is bad.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

from renderer.cdollar.ir.dag import Node
from renderer.cdollar.ir.types import DTYPES
from renderer.cdollar.targets.device_target import DeviceTarget, Representation
from renderer.cdollar.targets.dialects import Glsl
from renderer.cdollar.targets.emitter import Emitter, Input, LoopReduction
from renderer.cdollar.targets.kernel_plan import KernelPlan, decode, output_parts, volume
from renderer.cdollar.targets.matmul_kernels import MatrixProduct, Operand, match_matrix_product
from renderer.cdollar.targets.memory import check_memory
from renderer.cdollar.targets.reduction_kernels import ReductionEmitter
from renderer.cdollar.targets.schedule import DEFAULT, Schedule
from renderer.errors import UnavailableError
from renderer.gpu.kernel_source import DeviceProperties, GeneratedSource

SAMPLERS = {"float": "sampler2D", "int": "isampler2D", "uint": "usampler2D", "bool": "usampler2D"}
OUTPUTS = {"float": "float", "int": "int", "uint": "uint", "bool": "uint"}
TEXELS = {"float": "f4", "int": "i4", "uint": "u4", "bool": "u4"}
MAX_RENDER_TARGETS = 8
MAX_SAMPLERS = 16
WRAPPED_ROW_TEXELS = 4096  # texels in a row of an array that is folded


@dataclass(frozen=True)
class TextureLayout:
    """How an array lies in a texture: rows of `width` texels; `folded` if a row is not its last dimension."""

    width: int
    height: int
    folded: bool


FUSED_PROBE = """uniform float a;
uniform float b;
layout(location = 0) out float rest;
void main() {
    precise float product = a * b;
    precise float exact = fma(a, b, -product);
    rest = exact;
}
"""


def fma_rounds_once(gl) -> bool:
    """Whether this driver's fma() rounds once: then it gives the rest of a rounded product, which is not 0 here."""
    rest = gl.texture((1, 1), 1)
    gl.render_pass(GeneratedSource("fused.frag", FUSED_PROBE))(rest, a=1.0 + 2.0**-12, b=1.0 + 2.0**-13)
    return bool(rest.read()[0, 0, 0] != 0)


def texture_layout(sizes: tuple[int, ...], largest: int) -> TextureLayout:
    count = int(np.prod(sizes, dtype=np.int64))
    width = sizes[-1] if sizes else 1
    height = count // width if width else 0
    if 0 < width <= largest and height <= largest:
        return TextureLayout(width, max(1, height), False)
    width = min(WRAPPED_ROW_TEXELS, max(1, count))
    height = max(1, -(-count // width))
    if height > largest:
        raise UnavailableError(
            f"--target glsl: an array of {count} elements does not fit into a texture of this driver"
        )
    return TextureLayout(width, height, True)


class GlslEmitter(Emitter):
    """Loads from textures; `folded` says of an array whether its sheet is folded."""

    def __init__(self, strict: bool, ranges_of, sheet_of_function):
        super().__init__(Glsl(strict), ranges_of)
        self.sheet_of_function = sheet_of_function

    def load(self, source: Input, component: int, part: str, row: str, last: str, size: str) -> str:
        sheet = self.sheet_of_function(source.function)
        if not sheet.folded:
            return self.dialect.load(source.buffer(component), f"{last}, {row}", part)
        linear = last if row == "0" else f"({row} * {size} + {last})"
        width = self.argument((source.name, "width"), "int", sheet.width, "w")
        return self.dialect.load(source.buffer(component), f"{linear} % {width}, {linear} / {width}", part)

    def closed(self, node: Node) -> None:
        super().closed(node)
        lines = self.blocks[0].lines
        for k in range(len(lines)):
            lines[k] = lines[k].replace("ivec2(0), 0)", "ivec2(0, 0), 0)")


class GlslTarget(DeviceTarget):
    """Evaluates nodes of one program by fragment passes on one GL context."""

    def __init__(self, compilation, gl, schedules=None, strict: bool = False):
        self.gl = gl
        memory = DeviceProperties(
            compute_units=1,
            warp_size=1,
            memory_bytes=1 << 62,
            max_buffer_bytes=1 << 62,
            has_fp64=False,
            has_int64_atomics=False,
        )
        super().__init__(compilation, Drawing(gl, memory), "glsl", schedules, strict)
        if strict and gl.version < 400:
            raise UnavailableError(f"--strict: GLSL of {gl.renderer} has no `precise`; it needs GL 4.0")
        self.constants = {"STRICT": 1, "FUSED": fma_rounds_once(gl)} if strict else {}

    # Textures

    def sheet(self, ranges: tuple) -> TextureLayout:
        return texture_layout(tuple(r.size for r in ranges), self.gl.max_texture_size)

    def texture(self, sheet: TextureLayout, part: str):
        if part == "double":
            raise UnavailableError(
                "--target glsl: the program uses double, which textures do not hold; use opencl, cuda or numpy"
            )
        return self.gl.texture((sheet.width, sheet.height), 1, TEXELS[part])

    def upload(self, array: np.ndarray, part: str) -> tuple:
        sheet = texture_layout(array.shape, self.gl.max_texture_size)
        flat = np.zeros(sheet.width * sheet.height, TEXELS.get(part, "f4"))
        texture = self.texture(sheet, part)
        flat[: array.size] = np.asarray(array).reshape(-1)
        return texture.write(flat.reshape(sheet.height, sheet.width, 1)), part

    def read_back(self, held: Representation) -> list[np.ndarray]:
        shape = tuple(r.size for r in held.ranges)
        count = int(np.prod(shape, dtype=np.int64))
        return [t.read().reshape(-1)[:count].astype(DTYPES[p]).reshape(shape) for t, p in held.buffers]

    # Parts

    def run_kernel(self, node: Node, checks: list) -> Representation:
        ranges = () if node.op == "reduce" else tuple(v.range for v in node.attribute)
        check_memory(tuple(r.size for r in ranges), output_parts(node), "an array")
        self.reject_empty_reductions(node)
        sheet = self.sheet(ranges)
        outputs = [(self.texture(sheet, p), p) for p in output_parts(node)]
        if 0 not in [r.size for r in ranges]:
            product = match_matrix_product(node) if node.op == "function" and not self.strict else None
            schedule = self.schedules.get("products", DEFAULT)
            if node.op == "reduce":
                self.draw_reduction(node, outputs, checks)
            elif product is not None and not schedule.plain and self.is_safe(product):
                draw_product(self, product, schedule, outputs[0][0])
            else:
                self.draw_map(node, sheet, outputs, checks)
        return Representation(ranges, outputs)

    def is_safe(self, product: MatrixProduct) -> bool:
        """Whether packing a product's sides reads only indices that are proven to be good, and is worth it."""
        writer = self.writer()
        for factors, across in ((product.left, product.rows), (product.right, product.columns)):
            Operand(
                writer, factors, [(product.batch, "batch"), (across, "across"), (product.inner, "deep")], checked=False
            )
        return not writer.sites and volume(product.inner) >= 4

    def writer(self) -> GlslEmitter:
        return GlslEmitter(self.strict, self.ranges_of, lambda function: self.sheet(self.ranges_of(function)))

    def draw_map(self, node: Node, sheet: TextureLayout, outputs: list, checks: list) -> None:
        """Every component at every texel; more components than render targets take several passes."""
        for first in range(0, len(outputs), MAX_RENDER_TARGETS - 1):
            bodies = node.inputs[first : first + MAX_RENDER_TARGETS - 1]
            writer = self.writer()
            decode(writer, node.attribute, "place")
            values = [writer.value(body) for body in bodies]
            bad = writer.one_bad([v.bad for v in values if v.bad], writer.blocks[0])
            stores = [
                store(f"out{k}", v.names[0], body.type) for k, (v, body) in enumerate(zip(values, bodies, strict=True))
            ]
            count = int(np.prod([v.range.size for v in node.attribute], dtype=np.int64))
            targets = outputs[first : first + MAX_RENDER_TARGETS - 1]
            self.draw(node, writer, stores, bad, count, sheet, targets, checks)

    def draw_reduction(self, node: Node, outputs: list, checks: list) -> None:
        """A texel for each run of elements, then one for all of them."""
        reduction, variables = node.attribute
        volume = int(np.prod([v.range.size for v in variables], dtype=np.int64))
        length = volume if reduction.ordered else max(64, math.isqrt(volume - 1) + 1)
        pieces = -(-volume // length)
        writer = self.writer()
        work = ReductionEmitter(writer, node, False, True, None)
        size, run = writer.argument("volume", "int", volume, "n"), writer.argument("length", "int", length, "n")
        loop = LoopReduction(writer, node)
        loop.start()
        held = writer.blocks
        writer.blocks = [*held, type(held[0])(frozenset())]
        decode(writer, variables, "element")
        loop.join()
        inner = writer.blocks[-1].lines
        writer.blocks = held
        for line in (
            f"for (int element = place * {run}; element < min(place * {run} + {run}, {size}); element++) {{",
            *("    " + text for text in inner),
            "}",
        ):
            writer.line(line)
        flag = [f"({loop.first} ? 0 : 1)"] if work.flagged else []
        state = [*loop.state, *([loop.best] if work.best else []), *flag]
        stores = [store(f"out{k}", s, p) for k, (s, p) in enumerate(zip(state, work.carried, strict=True))]
        sheet = texture_layout((pieces,), self.gl.max_texture_size)
        partials = [(self.texture(sheet, p), p) for p in work.carried]
        self.draw(node, writer, stores, loop.finish().bad, pieces, sheet, partials, checks)
        self.finish_reduction(node, work, partials, sheet, pieces, outputs)

    def finish_reduction(
        self, node: Node, work: ReductionEmitter, partials: list, sheet: TextureLayout, pieces: int, outputs: list
    ) -> None:
        writer = self.writer()
        work = ReductionEmitter(writer, node, False, True, None)
        count, width = writer.argument("pieces", "int", pieces, "n"), writer.argument("width", "int", sheet.width, "w")
        names = [f"value{k}" for k in range(len(work.carried))]

        def loaded(k: int, part: str, at: str) -> str:
            return writer.dialect.load(f"in{k}", f"({at}) % {width}, ({at}) / {width}", part)

        for k, part in enumerate(work.carried):
            writer.line(f"{part} {names[k]} = {loaded(k, part, '0')};")
        writer.line(f"for (int piece = 1; piece < {count}; piece++) {{")
        for k, part in enumerate(work.carried):
            writer.line(f"    {part} next{k} = {loaded(k, part, 'piece')};")
        text = [line.replace("[mine + step]", "@next").replace("[mine]", "") for line in work.joined(names)]
        for k, name in enumerate(names):
            text = [line.replace(f"{name}@next", f"next{k}") for line in text]
        for line in text:
            writer.line("    " + line)
        writer.line("}")
        stores = [store(f"out{k}", names[k], p) for k, p in enumerate(work.parts)]
        extra = {f"in{k}": t for k, (t, _) in enumerate(partials)}
        samplers = [f"uniform {SAMPLERS[p]} in{k};" for k, p in enumerate(work.carried)]
        self.draw(node, writer, stores, None, 1, TextureLayout(1, 1, False), outputs, [], extra, samplers)

    def draw(
        self,
        node: Node,
        writer: Emitter,
        stores: list[str],
        bad,
        count: int,
        sheet: TextureLayout,
        outputs: list,
        checks: list,
        extra: dict | None = None,
        samplers: list[str] | None = None,
    ) -> None:
        """One pass: the writer's lines at every texel below `count`."""
        if writer.doubles:
            self.texture(sheet, "double")
        text, inputs = self.pass_text(writer, stores, bad, [p for _, p in outputs], samplers or [])
        inputs |= {"count_": count, "width_": sheet.width, **(extra or {})}
        targets = [t for t, _ in outputs]
        part = KernelPlan(node, "pass", text, 1, sheet.width * sheet.height, sites=writer.sites)
        if bad:
            status = self.gl.texture((sheet.width, sheet.height), 1, "i4")
            targets.append(status)
            checks.append((Status(status), part))
        if self.explained is not None:
            self.explained.append(("part", node, part))
        self.shade(text, targets[0] if len(targets) == 1 else tuple(targets), inputs)

    def pass_text(
        self, writer: Emitter, stores: list[str], bad, parts: list[str], samplers: list[str]
    ) -> tuple[str, dict]:
        lines = ['#include "cdollar/builtins.h"', "uniform int count_;", "uniform int width_;", *samplers]
        inputs: dict = {}
        self.declare(writer, lines, inputs)
        lines += [f"layout(location = {k}) out {OUTPUTS[p]} out{k};" for k, p in enumerate(parts)]
        if bad:
            lines.append(f"layout(location = {len(parts)}) out int status;")
        body = [*writer.blocks[0].lines, *stores, *([f"status = {bad};"] if bad else [])]
        lines += writer.function_text
        zeros = [f"out{k} = {OUTPUTS[p]}(0);" for k, p in enumerate(parts)] + (["status = 0;"] if bad else [])
        lines += [
            "void main() {",
            "    int place = int(gl_FragCoord.y) * width_ + int(gl_FragCoord.x);",
            f"    if (place >= count_) {{ {' '.join(zeros)} return; }}",
            *("    " + line for line in body),
            "}",
        ]
        return "\n".join(lines) + "\n", inputs

    def declare(self, writer: Emitter, lines: list[str], inputs: dict) -> None:
        """The uniforms that a writer's text needs, and what fills them."""
        for source in writer.inputs.values():
            held = self.held[source.function] if source.function in self.held else self.upload_source(source.function)
            for component, part in enumerate(source.parts):
                lines.append(f"uniform {SAMPLERS.get(part, 'sampler2D')} {source.buffer(component)};")
                inputs[source.buffer(component)] = held.buffers[component][0]
        for node, name in writer.scalars.items():
            for component, (texture, part) in enumerate(self.held[node].buffers):
                lines.append(f"uniform {SAMPLERS[part]} {name}_{component};")
                inputs[f"{name}_{component}"] = texture
        if len(inputs) > MAX_SAMPLERS:
            raise UnavailableError(
                f"--target glsl: a pass reads {len(inputs)} textures, more than {MAX_SAMPLERS}; use `let` to split it"
            )
        for name, type_, number in writer.arguments:
            lines.append(f"uniform {type_} {name};")
            inputs[name] = python_number(number, type_)

    def shade(self, text: str, target, inputs: dict) -> None:
        shader = self.shader(text)
        shader(target, **inputs)
        self.counters.launches += 1
        if self.recorded is not None:
            self.recorded.append(partial(shader, target, **inputs))

    def shader(self, text: str):
        if text in self.kernels:
            self.counters.found += 1
            return self.kernels[text]
        self.kernels[text] = self.device.timed(
            self.counters, lambda: self.gl.render_pass(GeneratedSource("cdollar.frag", text), **self.constants)
        )
        return self.kernels[text]


def draw_product(target: GlslTarget, product: MatrixProduct, schedule: Schedule, output) -> None:
    """A matrix product of texels: both sides packed four values to a texel, one texel of results a fragment, unpacked.

    The paper's configuration: `packed` (float4 or float) and `pipelined` (the next texels are read before these are
    multiplied).
    """
    lanes = 4 if schedule.packed else 1
    rows, columns, depth = (volume(v) for v in (product.rows, product.columns, product.inner))
    batch = volume(product.batch)
    deep, wide = -(-depth // lanes), -(-columns // lanes)
    for width, height in ((deep, rows * batch), (wide, depth * batch), (wide, rows * batch)):
        if max(width, height) > target.gl.max_texture_size:
            raise UnavailableError(f"--target glsl: a matrix of {width} x {height} texels does not fit into a texture")
    sides = ((product.left, product.rows, rows, "row", deep), (product.right, product.columns, depth, "deep", wide))
    textures = []
    for number, (factors, variables, height, along, width) in enumerate(sides):
        texture = target.gl.texture((width, height * batch), lanes)
        writer = target.writer()
        across = ("deep", depth) if number == 0 else ("column", columns)
        groups = [(product.batch, "batch"), (variables, "row" if number == 0 else "column"), (product.inner, "deep")]
        lines = ["int batch = int(gl_FragCoord.y) / height_;", f"int {along} = int(gl_FragCoord.y) % height_;"]
        limit = writer.argument("across", "int", across[1], "n")
        for lane in range(lanes):
            held = len(writer.blocks[0].lines)
            side = Operand(writer, factors, groups, checked=False)
            lines += writer.blocks[0].lines[held:]
            del writer.blocks[0].lines[held:]
            lines += [f"float lane{lane} = 0.0;", "{", f"    int {across[0]} = int(gl_FragCoord.x) * {lanes} + {lane};"]
            lines += [f"    if ({across[0]} < {limit}) {{", *("        " + x for x in side.lines)]
            lines += [f"        lane{lane} = {side.name};", "    }", "}"]
        values = ", ".join(f"lane{k}" for k in range(lanes))
        lines.append(f"out0 = vec4({values});" if lanes == 4 else "out0 = lane0;")
        draw_lines(target, writer, lines, lanes, texture, {"height_": height})
        textures.append(texture)
    packed = target.gl.texture((wide, rows * batch), lanes)
    text = product_lines(lanes, schedule.pipelined)
    inputs = {"left": textures[0], "right": textures[1], "deep_": deep, "rows_": rows, "depth_": depth}
    draw_lines(target, target.writer(), text, lanes, packed, inputs)
    unpack(target, product, packed, lanes, output)


def product_lines(lanes: int, pipelined: bool) -> list[str]:
    kind, swizzle = ("vec4", "") if lanes == 4 else ("float", ".x")
    rights = [
        f"texelFetch(right, ivec2(column, batch * depth_ + min({lanes} * DEEP + {c}, depth_ - 1)), 0){swizzle}"
        for c in range(lanes)
    ]
    left = f"texelFetch(left, ivec2(DEEP, int(gl_FragCoord.y)), 0){swizzle}"
    factors = [f"a.{c}" for c in "xyzw"] if lanes == 4 else ["a"]
    terms = [f"sum += {f} * b{c};" for c, f in enumerate(factors)]
    lines = [
        "int column = int(gl_FragCoord.x), batch = int(gl_FragCoord.y) / rows_;",
        f"{kind} sum = {kind}(0.0);",
    ]
    if not pipelined:
        loads = [f"{kind} a = {left};", *(f"{kind} b{c} = {r};" for c, r in enumerate(rights))]
        body = [line.replace("DEEP", "k") for line in loads] + terms
        return [*lines, "for (int k = 0; k < deep_; k++) {", *("    " + x for x in body), "}", "out0 = sum;"]
    first = [f"{kind} a = {left};", *(f"{kind} b{c} = {r};" for c, r in enumerate(rights))]
    nexts = [f"{kind} next_a = {left};", *(f"{kind} next_b{c} = {r};" for c, r in enumerate(rights))]
    moves = ["a = next_a;", *(f"b{c} = next_b{c};" for c in range(lanes))]
    lines += [line.replace("DEEP", "0") for line in first]
    lines += ["for (int k = 1; k < deep_; k++) {"]
    lines += ["    " + x for x in [*(line.replace("DEEP", "k") for line in nexts), *terms, *moves]]
    return [*lines, "}", *terms, "out0 = sum;"]


def unpack(target: GlslTarget, product: MatrixProduct, packed, lanes: int, output) -> None:
    """Results from texels of (batch, row, column / lanes) to the sheet of the function's own order."""
    writer = target.writer()
    sheet = target.sheet(tuple(v.range for v in product.node.attribute))
    width = writer.argument("sheet", "int", sheet.width, "w")
    writer.line(f"int place = int(gl_FragCoord.y) * {width} + int(gl_FragCoord.x);")
    decode(writer, product.node.attribute, "place")
    places = []
    for variables in (product.batch, product.rows, product.columns):
        linear = "0"
        for variable in variables:
            size = writer.argument((variable.unique_id, "extent"), "int", variable.range.size, "n")
            low = writer.argument((variable.unique_id, "lowest"), "int", variable.range.low, "l")
            linear = f"({linear} * {size} + int({writer.bound_names[variable]}) - {low})"
        places.append(linear)
    batch, row, column = places
    rows = writer.argument("rows", "int", volume(product.rows), "n")
    at = f"ivec2({column} / {lanes}, {batch} * {rows} + {row})"
    lane = f"[{column} % 4]" if lanes == 4 else ".x"
    writer.line(f"int all_ = {writer.argument('all', 'int', volume(product.node.attribute), 'n')};")
    lines = [f"out0 = place < all_ ? texelFetch(texels, {at}, 0){lane} : 0.0;"]
    draw_lines(target, writer, lines, 1, output, {"texels": packed})


def draw_lines(target: GlslTarget, writer: Emitter, lines: list[str], lanes: int, texture, extra: dict) -> None:
    """A pass of these lines over a texture of one or four lanes."""
    text = ['#include "cdollar/builtins.h"']
    inputs = dict(extra)
    text += [f"uniform {'int' if isinstance(v, int) else 'sampler2D'} {n};" for n, v in extra.items()]
    target.declare(writer, text, inputs)
    text += [f"layout(location = 0) out {'vec4' if lanes == 4 else 'float'} out0;", *writer.function_text]
    text += ["void main() {", *("    " + x for x in [*writer.blocks[0].lines, *lines]), "}"]
    target.shade("\n".join(text) + "\n", texture, inputs)


class Drawing:
    """What DeviceTarget asks of a device, for GL."""

    def __init__(self, gl, properties: DeviceProperties):
        self.name, self.gl, self.properties = gl.renderer, gl, properties

    def buffer(self, shape, dtype):
        return self

    def fill(self, byte: int):
        return self

    def timed(self, counters, work):
        started = time.perf_counter()
        found = work()
        counters.built += 1
        counters.seconds += time.perf_counter() - started
        return found


class Status:
    """The render target that says which values are bad, read like a kernel's status word."""

    def __init__(self, texture):
        self.texture = texture

    def read(self) -> np.ndarray:
        return np.array([self.texture.read().max()])


def store(name: str, value: str, part: str) -> str:
    return f"{name} = {value} ? 1u : 0u;" if part == "bool" else f"{name} = {value};"


def python_number(number, type_: str):
    if type_ == "bool":
        return bool(number)
    if type_ == "int":
        return int(number) - 2**32 if number >= 2**31 else int(number)
    return int(number) if type_ == "uint" else float(number)
