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

from renderer.cdollar.frontend.diagnostics import ProgramError
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl_target import GlslTarget
from renderer.cdollar.targets.kernel_plan import KernelPlan
from renderer.cdollar.targets.numpy_target import NumpyTarget
from renderer.errors import UnavailableError
from renderer.gpu import list_devices, open_device
from renderer.gpu.gl import GlContext
from renderer.gpu.kernel_source import GeneratedSource
from tests.cdollar.evaluate import value_of
from tests.cdollar.random_programs import MAX_PARTS, RandomPrograms, arguments, differences

STRICT = partial(NumpyTarget, strict=True)
INCLUDE = '#include "cdollar/builtins.h"\n'


class Unit:
    """Kernels of many programs that a device compiles as one text for each group size."""

    def __init__(self, device) -> None:
        self.device = device
        self.plans: dict[tuple, KernelPlan] = {}
        self.kernels: dict[tuple, object] = {}

    def compile(self) -> None:
        """Compile all plans, under names of their own."""
        texts: dict[tuple, list[str]] = {}
        for number, ((text, size), plan) in enumerate(self.plans.items()):
            body = text.removeprefix(INCLUDE)
            for name in set(re.findall(r"\b(u\d+_\w+)\(", body)):  # device functions, and the structs they return
                body = re.sub(rf"\b(R?){name}\b", rf"\g<1>k{number}_{name}", body)
            body = body.replace("KERNEL compute(", f"KERNEL compute{number}(")
            texts.setdefault((size, plan.has_doubles), []).append(body)
        numbers = {key: number for number, key in enumerate(self.plans)}
        for key, plan in self.plans.items():
            text = INCLUDE + "".join(texts[key[1], plan.has_doubles])
            constants = {"STRICT": 1} | ({"DOUBLES": 1} if plan.has_doubles else {})
            source = GeneratedSource("unit.cu", text)
            entry = f"compute{numbers[key]}"
            self.kernels[key] = self.device.kernel(source, entry, group_size=key[1], **constants)


class UnitTarget(DeviceTarget):
    """Gathers kernels in a unit, which computes nothing, until it is compiled; then runs them."""

    unit: Unit

    def kernel(self, plan):
        """The kernel of a plan."""
        key = plan.text, plan.group_size
        if key in self.unit.kernels:
            return self.unit.kernels[key]
        if self.unit.kernels:
            return super().kernel(plan)
        self.unit.plans[key] = plan
        return lambda *arguments: None

    def launch_primitive(self, kernel, threads, arguments):
        """Launch a kernel of a primitive."""
        if self.unit.kernels:
            super().launch_primitive(kernel, threads, arguments)


def check_on_device(device, texts: list[tuple]) -> list[list[str] | Exception]:
    """What differs from the expected results, for each text."""
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
    """What of the result differs, or the error in its place."""
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
    """The number of programs that ran, and of those that differ, by target."""
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
    parser.add_argument(
        "--parts", type=int, default=MAX_PARTS, help="programs of a text; 3 for GLSL, whose passes read 16 textures"
    )
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
