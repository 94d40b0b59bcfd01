"""Deep zooms of the Mandelbrot set: escape-time iterations a second, with bilinear approximation and without.

The reference orbit and the table of steps are made before the timing. GPUs draw 1920 x 1080 pixels, CPUs 96 x 54. An
iteration that a step skips counts as one that was made.
"""

from functools import cache

import numpy as np

from renderer.bench.cases import Case, LazyDevice
from renderer.fractals.deep_zoom import KernelPass
from renderer.fractals.settings import Settings
from renderer.scene.cameras import DeepView

PLACES = {
    "1e-28": ("-0.7432702229233837663394808025507390218020093422939085445",
              "0.1313571361114832040437703506765760683636616951712903396"),
    "3e-66": ("-0.74327022292338376633948080006100441662821019504969995373234193552905950689398993087384797758",
              "0.13135713611148320404377035532762801146675362323886326978049856412993337548638803152514867112"),
    "1e-160": ("-2", "1e-170"),
}  # fmt: skip
ITERATIONS = 20_000


def cases(gpu) -> list[Case]:
    """Each place plain and with steps."""
    return [zoom(gpu, height, skips) for height in PLACES for skips in (False, True)]


def zoom(gpu, height: str, skips: bool) -> Case:
    """One sample of the place: its counts are those of the other variant, but for one pixel of a thousand."""
    settings = Settings(max_iterations=ITERATIONS, palette="raw", view=DeepView(PLACES[height], height))
    size = cache(lambda: (96, 54) if gpu.device.properties.scalar_threads else (1920, 1080))

    @cache
    def opened(with_steps: bool) -> KernelPass:
        kernels = KernelPass(gpu.device, with_steps)
        kernels.begin(settings, size(), (0, 0, *size()), (0.0, 0.0))
        return kernels

    def run(with_steps: bool = skips):
        return opened(with_steps).add_sample(size(), (0, 0, *size()), 0, (0.0, 0.0))

    def counts(with_steps: bool) -> np.ndarray:
        pixels = run(with_steps).read()
        return np.where(pixels[..., 0] < 0, ITERATIONS, pixels[..., 2])

    case = Case(
        f"{height} {'steps' if skips else 'plain'}",
        "Giterations/s",
        1.0,
        run,
        lambda: None,
        LazyDevice(lambda: gpu.device),
    )

    def check() -> None:
        mine = counts(skips)
        assert (mine == counts(not skips)).mean() > 0.995
        case.work = float(mine.sum()) / 1e9

    case.check = check
    return case
