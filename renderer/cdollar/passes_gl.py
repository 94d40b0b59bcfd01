"""Programs as GLSL fragment passes: arrays are textures, computing is drawing, a reduction is a few passes.

A texture's row is the last dimension of the array (or a fold of the whole array, where that is too long for a row).
Several render targets take the components of a result; one more says whether a value is bad.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from renderer import MachineCannot
from renderer.cdollar.dag import Node
from renderer.cdollar.emit import Glsl, Input, Reducing, Writer
from renderer.cdollar.execute import DeviceTarget, Held
from renderer.cdollar.kernels import GroupText, Part, decode, output_parts
from renderer.cdollar.memory import check_memory
from renderer.cdollar.types import DTYPES
from renderer.gpu.source import Generated, Processor

SAMPLERS = {"float": "sampler2D", "int": "isampler2D", "uint": "usampler2D", "bool": "usampler2D"}
OUTPUTS = {"float": "float", "int": "int", "uint": "uint", "bool": "uint"}
TEXELS = {"float": "f4", "int": "i4", "uint": "u4", "bool": "u4"}
MOST_TARGETS = 8
MOST_SAMPLERS = 16
FOLD = 4096  # texels in a row of an array that is folded


@dataclass(frozen=True)
class Sheet:
    """How an array lies in a texture: rows of `width` texels; `folded` if a row is not its last dimension."""

    width: int
    height: int
    folded: bool


def sheet_of(sizes: tuple[int, ...], largest: int) -> Sheet:
    count = int(np.prod(sizes, dtype=np.int64))
    width = sizes[-1] if sizes else 1
    height = count // width if width else 0
    if 0 < width <= largest and height <= largest:
        return Sheet(width, max(1, height), False)
    width = min(FOLD, max(1, count))
    height = max(1, -(-count // width))
    if height > largest:
        raise MachineCannot(f"--target glsl: an array of {count} elements does not fit into a texture of this driver")
    return Sheet(width, height, True)


class GlWriter(Writer):
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


class GlTarget(DeviceTarget):
    """Evaluates nodes of one program by fragment passes on one GL context."""

    def __init__(self, unit, gl, schedules=None, strict: bool = False):
        self.gl = gl
        memory = Processor(units=1, lanes=1, memory=1 << 62, largest_buffer=1 << 62, doubles=False, long_atomics=False)
        super().__init__(unit, Drawing(gl, memory), "glsl", schedules, strict)
        if strict and gl.version < 400:
            raise MachineCannot(f"--strict: GLSL of {gl.renderer} has no `precise`; it needs GL 4.0")

    # Textures

    def sheet(self, ranges: tuple) -> Sheet:
        return sheet_of(tuple(r.size for r in ranges), self.gl.largest)

    def texture(self, sheet: Sheet, part: str):
        if part == "double":
            raise MachineCannot(
                "--target glsl: the program uses double, which textures do not hold; use opencl, cuda or numpy"
            )
        return self.gl.texture((sheet.width, sheet.height), 1, TEXELS[part])

    def upload(self, array: np.ndarray, part: str) -> tuple:
        sheet = sheet_of(array.shape, self.gl.largest)
        flat = np.zeros(sheet.width * sheet.height, TEXELS.get(part, "f4"))
        texture = self.texture(sheet, part)
        flat[: array.size] = np.asarray(array).reshape(-1)
        return texture.write(flat.reshape(sheet.height, sheet.width, 1)), part

    def read_held(self, held: Held) -> list[np.ndarray]:
        shape = tuple(r.size for r in held.ranges)
        count = int(np.prod(shape, dtype=np.int64))
        return [t.read().reshape(-1)[:count].astype(DTYPES[p]).reshape(shape) for t, p in held.buffers]

    # Parts

    def run_part(self, node: Node, checks: list, partial: bool = False) -> Held:
        ranges = () if node.op == "reduce" else tuple(v.range for v in node.value)
        check_memory(tuple(r.size for r in ranges), output_parts(node), "an array")
        self.must_have_values(node)
        sheet = self.sheet(ranges)
        outputs = [(self.texture(sheet, p), p) for p in output_parts(node)]
        if 0 not in [r.size for r in ranges]:
            if node.op == "reduce":
                self.draw_reduction(node, outputs, checks)
            else:
                self.draw_map(node, sheet, outputs, checks)
        return Held(ranges, outputs)

    def writer(self) -> GlWriter:
        return GlWriter(self.strict, self.ranges_of, lambda function: self.sheet(self.ranges_of(function)))

    def draw_map(self, node: Node, sheet: Sheet, outputs: list, checks: list) -> None:
        """Every component at every texel; more components than render targets take several passes."""
        for first in range(0, len(outputs), MOST_TARGETS - 1):
            bodies = node.inputs[first : first + MOST_TARGETS - 1]
            writer = self.writer()
            decode(writer, node.value, "place")
            values = [writer.value(body) for body in bodies]
            bad = writer.one_bad([v.bad for v in values if v.bad], writer.blocks[0])
            stores = [
                store(f"out{k}", v.names[0], body.type) for k, (v, body) in enumerate(zip(values, bodies, strict=True))
            ]
            count = int(np.prod([v.range.size for v in node.value], dtype=np.int64))
            targets = outputs[first : first + MOST_TARGETS - 1]
            self.draw(node, writer, stores, bad, count, sheet, targets, checks)

    def draw_reduction(self, node: Node, outputs: list, checks: list) -> None:
        """A texel for each run of elements, then one for all of them."""
        reduction, variables = node.value
        volume = int(np.prod([v.range.size for v in variables], dtype=np.int64))
        length = volume if reduction.ordered else max(64, math.isqrt(volume - 1) + 1)
        pieces = -(-volume // length)
        writer = self.writer()
        work = GroupText(writer, node, False, True, None)
        size, run = writer.argument("volume", "int", volume, "n"), writer.argument("length", "int", length, "n")
        loop = Reducing(writer, node)
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
        sheet = sheet_of((pieces,), self.gl.largest)
        partials = [(self.texture(sheet, p), p) for p in work.carried]
        self.draw(node, writer, stores, loop.finish().bad, pieces, sheet, partials, checks)
        self.finish_reduction(node, work, partials, sheet, pieces, outputs)

    def finish_reduction(
        self, node: Node, work: GroupText, partials: list, sheet: Sheet, pieces: int, outputs: list
    ) -> None:
        writer = self.writer()
        work = GroupText(writer, node, False, True, None)
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
        self.draw(node, writer, stores, None, 1, Sheet(1, 1, False), outputs, [], extra, samplers)

    def draw(
        self, node: Node, writer: Writer, stores: list[str], bad, count: int, sheet: Sheet, outputs: list, checks: list,
        extra: dict | None = None, samplers: list[str] | None = None,
    ) -> None:  # fmt: skip
        """One pass: the writer's lines at every texel below `count`."""
        if writer.doubles:
            self.texture(sheet, "double")
        text, inputs = self.pass_text(writer, stores, bad, [p for _, p in outputs], samplers or [])
        inputs |= {"count_": count, "width_": sheet.width, **(extra or {})}
        targets = [t for t, _ in outputs]
        part = Part(node, "pass", text, 1, sheet.width * sheet.height, sites=writer.sites)
        if bad:
            status = self.gl.texture((sheet.width, sheet.height), 1, "i4")
            targets.append(status)
            checks.append((Status(status), part))
        if self.explained is not None:
            self.explained.append(("part", node, part))
        self.shader(text)(targets[0] if len(targets) == 1 else tuple(targets), **inputs)
        self.counters.launches += 1

    def pass_text(
        self, writer: Writer, stores: list[str], bad, parts: list[str], samplers: list[str]
    ) -> tuple[str, dict]:
        lines = ['#include "cdollar.h"', "uniform int count_;", "uniform int width_;", *samplers]
        inputs: dict = {}
        for source in writer.inputs.values():
            held = self.held[source.function] if source.function in self.held else self.held_source(source.function)
            for component, part in enumerate(source.parts):
                lines.append(f"uniform {SAMPLERS.get(part, 'sampler2D')} {source.buffer(component)};")
                inputs[source.buffer(component)] = held.buffers[component][0]
        for node, name in writer.scalars.items():
            for component, (texture, part) in enumerate(self.held[node].buffers):
                lines.append(f"uniform {SAMPLERS[part]} {name}_{component};")
                inputs[f"{name}_{component}"] = texture
        if len(inputs) > MOST_SAMPLERS:
            raise MachineCannot(
                f"--target glsl: a pass reads {len(inputs)} textures, more than {MOST_SAMPLERS}; use `let` to split it"
            )
        for name, type_, number in writer.arguments:
            lines.append(f"uniform {type_} {name};")
            inputs[name] = python_number(number, type_)
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

    def shader(self, text: str):
        if text in self.kernels:
            self.counters.found += 1
            return self.kernels[text]
        self.kernels[text] = self.device.timed(self.counters, lambda: self.gl.shader(Generated("cdollar.frag", text)))
        return self.kernels[text]


class Drawing:
    """What DeviceTarget asks of a device, for GL."""

    def __init__(self, gl, processor: Processor):
        self.name, self.gl, self.processor = gl.renderer, gl, processor

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
