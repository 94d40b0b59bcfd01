"""C$ programs as cases: listing 3, a fused element-wise expression and a sum, each checked against NumPy first.

Peers, where they are installed and see the same GPU: cuBLAS through torch (no TF32), torch's copy, cupy.sum.
"""

import importlib
import importlib.util
from functools import cache

import numpy as np

from renderer.bench.cases import Case
from renderer.cdollar.frontend.diagnostics import SourceFile
from renderer.cdollar.ir.types import FunctionType
from renderer.cdollar.runtime.evaluate import build_main, load_text
from renderer.cdollar.targets.device_target import DeviceTarget
from renderer.cdollar.targets.glsl.target import GlslTarget
from renderer.paths import SCENES

PRODUCT = (SCENES / "product.cb").read_text()
FUSED = "float[] main(float[] a, float[] b, float s = 0.5) => s * a + sqrt(abs(b)) - a * b;"
SUM = "float main(float[] a) => sum(a);"
CPU_ROWS = 256  # of the product on a CPU, where larger ones take seconds


def program(text: str, make_target, **arrays):
    """The program's representation and a function that launches its kernels again."""
    compilation = load_text(SourceFile("bench.cb", text), make_target)
    value = build_main(compilation, arrays, {})
    node = value.node
    if not isinstance(value.type, FunctionType):
        node = compilation.dag.function((), value.nodes, FunctionType(value.type, ()))
    return compilation.target.capture(node)


def cases(gpu):
    device = gpu.device

    def target(dag):
        return DeviceTarget(dag, device, "device")

    is_cpu = device.properties.scalar_threads
    all_cases = [product_case(device, target, n) for n in ((CPU_ROWS,) if is_cpu else (1024, 2048, 4096))]
    count = (1 << 22) if is_cpu else (1 << 28)
    all_cases += [fused_case(device, target, count), sum_case(device, target, count)]
    all_cases += [passes_case(gpu, n) for n in ((128,) if is_cpu else (128, 256, 512, 1024))]
    return all_cases


def case_of(name: str, unit: str, work: float, device, prepare, tolerance: float = 1e-3) -> Case:
    """A case that is prepared at its first run: prepare() -> (representation, function that relaunches, expected)."""
    prepared = cache(prepare)

    def check() -> None:
        representation, _, expected = prepared()
        result = representation.buffers[0].read().ravel()[: np.size(expected)].reshape(np.shape(expected))
        assert np.allclose(result, expected, rtol=tolerance, atol=tolerance * 10)

    return Case(name, unit, work, lambda: prepared()[1](), check, device)


def numbers(*shapes):
    rng = np.random.default_rng(5)
    return [rng.standard_normal(shape).astype("f4") for shape in shapes]


def fused_case(device, target, count: int) -> Case:
    def prepare():
        a, b = numbers(count, count)
        return *program(FUSED, target, a=a, b=b), np.float32(0.5) * a + np.sqrt(np.abs(b)) - a * b

    case = case_of("fused", "GB/s", 12 * count / 1e9, device, prepare)
    return with_peer(case, device, "torch", lambda torch: copy_peer(torch, count))


def sum_case(device, target, count: int) -> Case:
    def prepare():
        (a,) = numbers(count)
        return *program(SUM, target, a=a), a.sum(dtype="f8")

    case = case_of("sum", "GB/s", 4 * count / 1e9, device, prepare, 1e-2)
    return with_peer(case, device, "cupy", lambda cupy: sum_peer(cupy, numbers(count)[0]))


def passes_case(gpu, size: int) -> Case:
    """A product by fragment passes: four values per texel (float4) without prefetching (simple), as paper 1 has it."""

    def prepare():
        a, b = numbers((size, size), (size, size))
        return *program(PRODUCT, lambda dag: GlslTarget(dag, gpu.gl), a=a, b=b), a @ b

    return case_of(f"passes-float4-simple-{size}", "GFLOP/s", 2 * size**3 / 1e9, gpu.gl, prepare)


def product_case(device, target, size: int) -> Case:
    def prepare():
        a, b = numbers((size, size), (size, size))
        return *program(PRODUCT, target, a=a, b=b), a @ b

    case = case_of(f"product-{size}", "GFLOP/s", 2 * size**3 / 1e9, device, prepare)
    return with_peer(case, device, "torch", lambda torch: matrix_peer(torch, *numbers((size, size), (size, size))))


def with_peer(case: Case, device, module: str, peer_of) -> Case:
    """The case with a peer, if the device is a CUDA one and the module is there."""
    if "cuda" in device.name and importlib.util.find_spec(module):
        opened = cache(lambda: peer_of(importlib.import_module(module)))
        case.peer, case.peer_name = lambda: opened()(), module
    return case


def torch_seconds(torch, work) -> float:
    """The least time of a few runs, by CUDA events."""
    work()
    seconds = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) * 1e-3)
    return min(seconds)


def matrix_peer(torch, a, b):
    torch.backends.cuda.matmul.allow_tf32 = False
    left, right = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    return lambda: torch_seconds(torch, lambda: torch.matmul(left, right))


def copy_peer(torch, count: int):
    """A copy that moves as many bytes as the fused case: 1.5 times its elements, read and written."""
    source = torch.zeros(count * 3 // 2, device="cuda")
    target = torch.empty_like(source)
    return lambda: torch_seconds(torch, lambda: target.copy_(source))


def sum_peer(cupy, a):
    array = cupy.asarray(a)

    def fastest() -> float:
        cupy.sum(array)
        seconds = []
        for _ in range(5):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            cupy.sum(array)
            end.record()
            end.synchronize()
            seconds.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
        return min(seconds)

    return fastest
