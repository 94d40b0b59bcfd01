"""Two small cases by which the harness tests itself: a fragment pass and a compute kernel."""

import numpy as np

from renderer.bench.cases import Case, LazyDevice
from renderer.gpu.kernel_source import GeneratedSource

SPIN = """KERNEL spin(GLOBAL float *values) {
    float x = (float)thread_index();
    for (int i = 0; i < 2000; i++) x = x * 0.999f + 0.5f;
    values[thread_index()] = x;
}
"""
THREADS = 4096


def cases(gpu) -> list[Case]:
    """A pass and a kernel."""
    return [pass_case(gpu), kernel_case(gpu)]


def pass_case(gpu) -> Case:
    """320 x 240 texels of a small Julia set."""
    opened = []

    def run():
        if not opened:
            from renderer.pictures.fractal import Picture, Settings

            opened.extend([Picture(gpu), Settings(kind="julia", max_iterations=60)])
        return opened[0].draw(opened[1], (320, 240), 0.0)

    def check():
        values = run().read()
        assert np.isfinite(values).all() and values.std() > 0.01
        return values

    return Case("pass", "frames/s", 1.0, run, check, LazyDevice(lambda: gpu.gl))


def kernel_case(gpu) -> Case:
    """A chain of multiply-adds whose limit is known: x = 0.999 x + 0.5 tends to 500."""
    opened = []

    def run():
        spin, values = opened
        spin(THREADS, values)

    def check() -> bytes:
        device = gpu.device
        opened.extend([device.kernel(GeneratedSource("spin.cu", SPIN), "spin"), device.buffer(THREADS)])
        run()
        answer = opened[1].read()
        expected = 500 + (np.arange(THREADS) - 500) * 0.999**2000
        assert np.allclose(answer, expected, rtol=1e-4), answer[:4]
        return answer.tobytes()

    return Case("kernel", "Gsteps/s", THREADS * 2000 / 1e9, run, check, LazyDevice(lambda: gpu.device))
