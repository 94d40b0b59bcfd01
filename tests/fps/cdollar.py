"""C$ programs as cases: listing 3, a fused element-wise expression and a sum, each checked against NumPy first.

Peers, where they are installed and see the same GPU: cuBLAS through torch (no TF32), torch's copy, cupy.sum.
"""

import importlib
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.cdollar.entry import build, load_text
from renderer.cdollar.execute import DeviceTarget
from renderer.cdollar.passes_gl import GlTarget
from renderer.cdollar.report import Source
from renderer.cdollar.schedule import Schedule
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
    count = (1 << 28) if gpu_like else (1 << 22)
    a, b = (rng.standard_normal(count).astype("f4") for _ in range(2))
    held, again = program(FUSED, target, a=a, b=b)
    wanted = np.float32(0.5) * a + np.sqrt(np.abs(b)) - a * b
    case = Case("fused", "GB/s", 12 * count / 1e9, again, checker(held, wanted), device)
    found.append(with_peer(case, device, "torch", lambda torch: copy_peer(torch, count)))
    held, again = program(SUM, target, a=a)
    case = Case("sum", "GB/s", 4 * count / 1e9, again, checker(held, a.sum(dtype="f8"), 1e-2), device)
    found.append(with_peer(case, device, "cupy", lambda cupy, a=a: sum_peer(cupy, a)))
    a, b = (rng.standard_normal((128, 128)).astype("f4") for _ in range(2))
    for packed in (False, True):
        for pipelined in (False, True):
            found += [
                table_case(gpu.gl, n, packed, pipelined, rng) for n in ((128, 256, 512, 1024) if gpu_like else (128,))
            ]
    return found


def table_case(gl, size: int, packed: bool, pipelined: bool, rng) -> Case:
    """One entry of paper 1's table: a product by fragment passes, float or float4, simple or pipelined."""
    schedules = {"products": Schedule(packed=packed, pipelined=pipelined)}
    a, b = (rng.standard_normal((size, size)).astype("f4") for _ in range(2))
    held, again = program(PRODUCT, lambda unit: GlTarget(unit, gl, schedules), a=a, b=b)
    name = f"passes-{'float4' if packed else 'float'}-{'pipelined' if pipelined else 'simple'}-{size}"
    return Case(name, "GFLOP/s", 2 * size**3 / 1e9, again, gl_checker(held, a @ b), gl)


def product_case(device, target, size: int, rng) -> Case:
    a, b = (rng.standard_normal((size, size)).astype("f4") for _ in range(2))
    held, again = program(PRODUCT, target, a=a, b=b)
    case = Case(f"product-{size}", "GFLOP/s", 2 * size**3 / 1e9, again, checker(held, a @ b), device)
    return with_peer(case, device, "torch", lambda torch: matrix_peer(torch, a, b))


def with_peer(case: Case, device, module: str, peer_of) -> Case:
    """The case with a peer, if the device is a CUDA one and the module is there."""
    if "cuda" in device.name:
        try:
            case.peer = peer_of(importlib.import_module(module))
            case.peer_name = module
        except ImportError:
            pass
    return case


def torch_seconds(torch, work) -> float:
    """The least time of a few runs, by CUDA events."""
    work()
    found = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end) * 1e-3)
    return min(found)


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
    held = cupy.asarray(a)

    def seconds() -> float:
        cupy.sum(held)
        found = []
        for _ in range(5):
            start, end = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            cupy.sum(held)
            end.record()
            end.synchronize()
            found.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
        return min(found)

    return seconds


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
