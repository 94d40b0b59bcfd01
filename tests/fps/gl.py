"""GLSL passes: reductions of a 2048 x 2048 float32 picture by block size, exposure and tone mapping, fractals."""

from functools import cache

import numpy as np

from renderer.bench.cases import Case
from renderer.images.tone_mapping import GlToneMapper
from renderer.numerics.texture_reduction import Reduction
from renderer.scene.cameras import DeepView
from renderer.scene.scene import ToneMapping

SIDE = 2048


def cases(gpu):
    image = cache(lambda: np.random.default_rng(1).standard_normal((SIDE, SIDE, 4), "f4"))
    texture = cache(lambda: gpu.gl.texture((SIDE, SIDE)).write(image()))
    out = [reduction(gpu, texture, image, block) for block in (2, 4, 8, 16)]
    return [*out, exposure(gpu, texture), *(fractal(gpu, precision) for precision in ("single", "double"))]


def reduction(gpu, texture, image, block: int) -> Case:
    """The sum of every component, `block` squared texels a pass; bytes read once over the time."""
    summed = cache(lambda: Reduction(gpu.gl, block))

    def run():
        return summed().reduce("sum", texture())

    def check() -> bytes:
        total = run().read()[0, 0]
        assert np.allclose(total, image().astype("f8").sum((0, 1)), atol=1e-6 * np.abs(image()).sum())
        return total.tobytes()

    return Case(f"sum {block}x{block}", "GB/s", 16 * SIDE**2 / 1e9, run, check, gpu.gl)


def exposure(gpu, texture) -> Case:
    """What each frame of a panel costs after its drawing: metering and tone mapping, with nothing read back."""
    opened = cache(lambda: (GlToneMapper(gpu.gl), gpu.gl.texture((SIDE, SIDE), 4, "f1")))

    def run():
        tone, shown = opened()
        tone(texture(), ToneMapping("auto"), shown)
        return shown

    def check() -> bytes:
        pixels = run().read()
        assert pixels[..., :3].std() > 10
        return pixels.tobytes()[:4096]

    return Case("expose and tone map", "Mpixels/s", SIDE * SIDE / 1e6, run, check, gpu.gl)


def fractal(gpu, precision: str) -> Case:
    """Iterations of the Mandelbrot set a second in a square where no pixel escapes."""
    from renderer.pictures.fractal import Picture, Settings

    inside = DeepView((-0.125, 0.744), 0.02)  # in a bulb of period 3: no shortcut applies
    settings = Settings(max_iterations=1000, view=inside, precision=precision, palette="raw")
    picture = cache(lambda: Picture(gpu))

    def run():
        return picture().draw(settings, (256, 256), 0.0)

    def check() -> bytes:
        count = run().read()[..., 0]
        assert (count == -1).all(), "the square lies inside the set"
        return count.tobytes()[:4096]

    return Case(f"mandelbrot {precision}", "Giterations/s", 256 * 256 * 1000 / 1e9, run, check, gpu.gl)
