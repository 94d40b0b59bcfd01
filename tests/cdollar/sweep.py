"""Random programs over all targets, as many as there is time for: bits of the interpreter, devices and GLSL.

    python -m tests.cdollar.sweep --seconds 600 --seed 7 --targets opencl glsl

Prints how many programs ran on each target, and how many differ; those are written to --failures. Programs and their
comparison are those of test_fuzz.py, --strict, overflow and reductions included.
"""

import argparse
import sys
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st

from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl_target import GlslTarget
from renderer.gpu import list_devices, open_device
from renderer.gpu.gl import GlContext
from tests.cdollar.evaluate import value_of
from tests.cdollar.test_fuzz import STRICT, arguments, assert_same_bits, programs

BATCH = 50  # programs that one draw of Hypothesis makes


def open_targets(names):
    """The makers of the targets with these names; "cuda", "opencl" (each of its devices) or "glsl"."""
    targets = {}
    for info in list_devices()[0]:
        if info.backend in names:
            device = open_device(info.device_id)
            targets[info.device_id] = lambda dag, device=device: DeviceTarget(dag, device, "device", strict=True)
    if "glsl" in names:
        gl = GlContext.headless()
        targets["glsl"] = lambda dag: GlslTarget(dag, gl, strict=True)
    return targets


def sweep(targets, seed, seconds, most, failures):
    """The number of programs that ran, and of those that differ, by target."""
    started, counts, differing = time.monotonic(), dict.fromkeys(targets, 0), dict.fromkeys(targets, 0)

    def check(text, number):
        arrays, numbers = arguments(number)
        expected = value_of(text, STRICT, numbers, **arrays)
        for name, target in targets.items():
            if name == "glsl" and any(word in text for word in ("scan(", "sort(", "long")):
                continue
            try:
                assert_same_bits(value_of(text, target, numbers, **arrays), expected, text)
            except Exception as error:
                differing[name] += 1
                path = failures / f"{seed}_{name.replace(':', '_')}_{counts[name]}.cb"
                path.write_text(f"// arguments({number}): {type(error).__name__}\n{text}")
            counts[name] += 1

    batch = 0
    while time.monotonic() - started < seconds and max(counts.values()) < most:
        run = settings(
            max_examples=BATCH, database=None, deadline=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )(given(programs(), st.integers(0, 10_000))(check))  # fmt: skip
        hypothesis_seed(1000 * seed + batch)(run)()
        batch += 1
    return counts, differing


def main():
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--most", type=int, default=10**9, help="programs")
    parser.add_argument("--targets", nargs="+", default=["opencl", "cuda", "glsl"])
    parser.add_argument("--failures", type=Path, default=Path("fuzz_failures"))
    options = parser.parse_args()
    options.failures.mkdir(exist_ok=True, parents=True)
    targets = open_targets(options.targets)
    counts, differing = sweep(targets, options.seed, options.seconds, options.most, options.failures)
    print("; ".join(f"{name}: {counts[name]} programs, {differing[name]} differ" for name in targets))
    return 1 if any(differing.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
