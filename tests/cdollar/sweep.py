"""Random programs over all targets, as many as there is time for: bits of the interpreter, devices and GLSL.

    python -m tests.cdollar.sweep --seconds 600 --seed 7 --targets opencl glsl --processes 1

Prints how many programs ran on each target, and how many differ; their texts are written to --failures. Programs are
those of random_programs.py, several a text, --strict. The kernels of a batch of texts are compiled as one: a first run
on the device, in which nothing is launched, gathers them.
"""

import argparse
import multiprocessing
import re
import sys
import time
from functools import partial
from pathlib import Path
from random import Random

import numpy as np

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.errors import UnavailableError
from renderer.gpu import list_devices, open_device
from renderer.gpu.gl import GlContext
from renderer.gpu.kernel_source import GeneratedSource
from tests.cdollar.evaluate import value_of
from tests.cdollar.random_programs import MAX_PARTS, RandomPrograms, arguments, differences

STRICT = partial(NumpyTarget, strict=True)
CASES = 24  # kernels that become one on PoCL
# Memory of groups of one thread, which is declared inside of branches.
PRIVATE = (
    "#undef LOCAL_ARRAY\n#undef BARRIER\n#define LOCAL_ARRAY(type, name, count) type name[count]\n#define BARRIER()\n"
)
FILLERS = {"int": np.int32, "uint": np.uint32, "float": np.float32, "double": np.float64, "int64": np.int64}
INCLUDE = '#include "cdollar/builtins.h"\n'


class Unit:
    """Kernels of many programs that a device compiles as one text for each group size.

    PoCL takes longest for each kernel, so that there CASES of them become one with a number that chooses.
    """

    def __init__(self, device) -> None:
        self.device, self.is_merged = device, device.properties.scalar_threads
        self.plans: dict[tuple, KernelPlan] = {}
        self.kernels: dict[tuple, object] = {}

    def takes(self, plan: KernelPlan) -> bool:
        """True if a kernel is compiled here; kernels that combine partial results are few, and programs share them."""
        return plan.group_size == 1 or not self.is_merged or "LOCAL_ARRAY" not in plan.text

    def compile(self) -> None:
        """Compile all plans."""
        kinds: dict[tuple, list[tuple]] = {}
        for key, plan in self.plans.items():
            kinds.setdefault((key[1], plan.has_doubles), []).append(key)
        for (size, has_doubles), keys in kinds.items():
            constants = {"STRICT": 1} | ({"DOUBLES": 1} if has_doubles else {})
            parts = [renamed(key[0], number) for number, key in enumerate(keys)]
            if self.is_merged:
                self.kernels |= merged_kernels(self.device, keys, parts, size, constants)
                continue
            texts = [
                f"{functions}KERNEL compute{n}({head}) {{\n{body}" for n, (functions, head, body) in enumerate(parts)
            ]
            source = GeneratedSource("unit.cu", INCLUDE + "".join(texts))
            for number, key in enumerate(keys):
                self.kernels[key] = self.device.kernel(source, f"compute{number}", group_size=size, **constants)


def renamed(text: str, number: int) -> tuple[str, str, str]:
    """The functions of a kernel's text, renamed for `number`, the kernel's parameters, and the kernel's body."""
    text = text.removeprefix(INCLUDE)
    for name in set(re.findall(r"\b(u\d+_\w+)\(", text)):  # device functions, and the structs they return
        text = re.sub(rf"\b(R?){name}\b", rf"\g<1>k{number}_{name}", text)
    functions, kernel = text.split("KERNEL compute(")
    head, body = kernel.split(") {\n", 1)
    return functions, head, body


def merged_kernels(device, keys: list[tuple], parts: list[tuple[str, str, str]], size: int, constants: dict) -> dict:
    """Kernels of one group size, CASES of them in one that takes arguments of all."""
    texts, calls = [INCLUDE, PRIVATE if size == 1 else ""], {}
    for first in range(0, len(keys), CASES):
        slots: dict[str, int] = {}  # the most arguments of each type that a case has
        cases = []
        for number in range(first, min(first + CASES, len(keys))):
            functions, head, body = parts[number]
            texts.append(functions)
            used: dict[str, int] = {}
            lines = []
            for parameter in head.split(", "):
                type_, name = parameter.rsplit(" ", 1)
                pointer = "*" in parameter
                kind = "pointer" if pointer else type_
                slot = used[kind] = used.get(kind, -1) + 1
                value = (
                    f"({type_.replace('*RESTRICT', '*')}{' *' if '*' not in type_ else ''})pointer{slot}"
                    if pointer
                    else f"{kind}{slot}"
                )
                lines.append(f"    {parameter} = {value};")
            slots |= {kind: max(slots.get(kind, 0), count + 1) for kind, count in used.items()}
            cases.append(f"if (which == {number}) {{\n" + "\n".join(lines) + f"\n{body}")
            calls[keys[number]] = first, number, [kind_of(parameter) for parameter in head.split(", ")], slots
        words = [
            f"{'GLOBAL uchar *' if kind == 'pointer' else kind + ' '}{kind}{slot}"
            for kind in slots
            for slot in range(slots[kind])
        ]
        texts.append(f"KERNEL unit{first}(int which, {', '.join(words)}) {{\n" + " else ".join(cases) + "}\n")
    source = GeneratedSource("unit.cu", "".join(texts))
    kernels = {}
    for key, (first, number, kinds, slots) in calls.items():
        kernel = device.kernel(source, f"unit{first}", group_size=size, **constants)
        kernels[key] = partial(launch_case, kernel, number, kinds, slots)
    return kernels


def kind_of(parameter: str) -> str:
    """The type of a parameter; "pointer" for all pointers."""
    return "pointer" if "*" in parameter else parameter.rsplit(" ", 1)[0]


def launch_case(kernel, number: int, kinds: list[str], slots: dict[str, int], threads: int, *arguments) -> None:
    """Launch one of merged kernels, with something for the arguments of the others."""
    given = {kind: [a for k, a in zip(kinds, arguments, strict=True) if k == kind] for kind in slots}
    status = given["pointer"][0]
    fill = {kind: status if kind == "pointer" else FILLERS[kind](0) for kind in slots}
    kernel(threads, np.int32(number), *(a for kind, n in slots.items() for a in [*given[kind], *[fill[kind]] * n][:n]))


class UnitTarget(DeviceTarget):
    """Gathers kernels in a unit, which computes nothing, until it is compiled; then runs them."""

    unit: Unit

    def kernel(self, plan):
        """The kernel of a plan."""
        key = plan.text, plan.group_size
        if not self.unit.takes(plan):
            kernel = super().kernel(plan)
            return kernel if self.unit.kernels else lambda *arguments: None
        if key in self.unit.kernels:
            return self.unit.kernels[key]
        if self.unit.kernels:
            return super().kernel(plan)
        self.unit.plans[key] = plan
        return lambda *arguments: None

    def launch_recorded(self, kernel, threads, arguments, scalars=None):
        """Launch a kernel, once the unit is compiled."""
        if self.unit.kernels:
            super().launch_recorded(kernel, threads, arguments, scalars)


def check_on_device(device, texts: list[tuple]) -> list[list[str] | Exception]:
    """The differences from the expected results, for each text."""
    unit = Unit(device)

    def target(dag):
        made = UnitTarget(dag, device, "device", strict=True)
        made.unit = unit
        return made

    for text, arrays, numbers, _ in texts:
        try:
            value_of(text, target, numbers, **arrays)
        except ProgramError:
            pass  # of an array that was not computed
    unit.compile()
    return [check(target, *text) for text in texts]


def check(target, text, arrays, numbers, expected) -> list[str] | Exception:
    """The differences of a result from the expected one, or the error of the program."""
    try:
        return differences(value_of(text, target, numbers, **arrays), expected)
    except Exception as error:  # noqa: BLE001  # every error is a finding
        return error


def checkers(names: list[str]) -> dict:
    """For each target with one of these names ("cuda", "opencl:0:0", "glsl") the function that checks texts."""
    found = {}
    for info in list_devices()[0]:
        if info.backend in names or info.device_id in names:
            found[info.device_id] = partial(check_on_device, open_device(info.device_id))
    if "glsl" in names:
        gl = GlContext.headless()
        found["glsl"] = lambda texts: [check(lambda dag: GlslTarget(dag, gl, strict=True), *text) for text in texts]
    return found


def sweep(seed: int, options: argparse.Namespace) -> tuple[dict[str, int], dict[str, int]]:
    """The number of programs that ran, and the number of programs that differ, by target."""
    targets, started, batch = checkers(options.targets), time.monotonic(), 0
    counts, differing = dict.fromkeys(targets, 0), dict.fromkeys(targets, 0)
    while time.monotonic() - started < options.seconds and max(counts.values(), default=options.most) < options.most:
        texts = []
        for number in range(options.batch):
            random = Random(f"{seed} {batch} {number}")
            text = RandomPrograms(random, for_glsl="glsl" in targets).text(options.parts)
            arrays, numbers = arguments(random.randrange(10_000))
            texts.append((text, arrays, numbers, value_of(text, STRICT, numbers, **arrays)))
        for name, check_texts in targets.items():
            for number, outcome in enumerate(check_texts(texts)):
                if isinstance(outcome, UnavailableError):  # a pass of GLSL would read too many textures
                    continue
                counts[name] += options.parts
                if outcome:
                    differing[name] += 1 if isinstance(outcome, Exception) else len(outcome)
                    path = options.failures / f"{seed}_{batch}_{number}_{name.replace(':', '_')}.cb"
                    path.write_text(f"// {seed} {batch} {number}: {outcome!r}\n{texts[number][0]}")
        batch += 1
    return counts, differing


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--most", type=int, default=10**9, help="programs of a process")
    parser.add_argument("--parts", type=int, default=MAX_PARTS, help="programs of a text")
    parser.add_argument("--batch", type=int, default=8, help="texts whose kernels are compiled together")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--targets", nargs="+", default=["opencl", "cuda", "glsl"])
    parser.add_argument("--failures", type=Path, default=Path("fuzz_failures"))
    options = parser.parse_args()
    options.failures.mkdir(exist_ok=True, parents=True)
    seeds = [options.seed + number for number in range(options.processes)]
    if len(seeds) == 1:
        results = [sweep(seeds[0], options)]
    else:
        with multiprocessing.get_context("spawn").Pool(len(seeds)) as pool:
            results = pool.map(partial(sweep, options=options), seeds, chunksize=1)
    failed = 0
    for name in results[0][0]:
        ran, differ = (sum(result[k][name] for result in results) for k in (0, 1))
        failed += differ
        print(f"{name}: {ran} programs (seeds {seeds[0]} to {seeds[-1]}), {differ} differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
