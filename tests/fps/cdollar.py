"""C$ programs as cases: listing 3, a fused element-wise expression and a sum, each checked against NumPy first."""

from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.cdollar.entry import build, load_text
from renderer.cdollar.execute import DeviceTarget
from renderer.cdollar.passes_gl import GlTarget
from renderer.cdollar.report import Source
from renderer.cdollar.types import Functional

PRODUCT = (Path(__file__).parents[2] / "scenes" / "product.cb").read_text()
FUSED = "float[] main(float[] a, float[] b, float s = 0.5) => s * a + sqrt(abs(b)) - a * b;"
SUM = "float main(float[] a) => sum(a);"
PROCESSOR_ROWS = 256  # of the product on a processor of one lane, where larger ones take seconds


def program(text: str, target_of, **arrays):
    """The program's representation and a function that evaluates it again."""
    unit = load_text(Source("bench.cb", text), target_of)
    value = build(unit, arrays, {})
    node = value.node
    if node.op not in ("function", "let"):
        node = unit.dag.function((), value.nodes, Functional(value.type, ()))
    return unit.evaluator.replay(node)


def cases(gpu):
    device, rng = gpu.device, np.random.default_rng(5)

    def target(unit):
        return DeviceTarget(unit, device, "device")

    gpu_like = device.processor.lanes > 1
    found = [product_case(device, target, n, rng) for n in ((1024, 2048, 4096) if gpu_like else (PROCESSOR_ROWS,))]
    count = (1 << 26) if gpu_like else (1 << 22)
    a, b = (rng.standard_normal(count).astype("f4") for _ in range(2))
    held, again = program(FUSED, target, a=a, b=b)
    wanted = np.float32(0.5) * a + np.sqrt(np.abs(b)) - a * b
    found.append(Case("fused", "GB/s", 12 * count / 1e9, again, checker(held, wanted), device))
    held, again = program(SUM, target, a=a)
    found.append(Case("sum", "GB/s", 4 * count / 1e9, again, checker(held, a.sum(dtype="f8"), 1e-2), device))
    a, b = (rng.standard_normal((128, 128)).astype("f4") for _ in range(2))
    held, again = program(PRODUCT, lambda unit: GlTarget(unit, gpu.gl), a=a, b=b)
    flops = 2 * 128**3 / 1e9
    found.append(Case("product-glsl-128", "GFLOP/s", flops, again, gl_checker(held, a @ b), gpu.gl))
    return found


def product_case(device, target, size: int, rng) -> Case:
    a, b = (rng.standard_normal((size, size)).astype("f4") for _ in range(2))
    held, again = program(PRODUCT, target, a=a, b=b)
    return Case(f"product-{size}", "GFLOP/s", 2 * size**3 / 1e9, again, checker(held, a @ b), device)


def checker(held, wanted, tolerance: float = 1e-3):
    def check() -> None:
        found = held.buffers[0][0].read()[: np.size(wanted)].reshape(np.shape(wanted))
        assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance * 10)

    return check


def gl_checker(held, wanted):
    def check() -> None:
        found = held.buffers[0][0].read().reshape(wanted.shape)
        assert np.allclose(found, wanted, rtol=1e-3, atol=1e-3)

    return check
