"""Paths a second through the Cornell box: 64 samples, depth 8, beside Mitsuba's path tracer where it is installed.

Mitsuba draws its own Cornell box (cornell_box()) of the same size, samples and depth, by OptiX; its first picture,
which compiles, is not timed.
"""

import time
from dataclasses import replace
from functools import cache, partial

import numpy as np

from renderer.bench.cases import Case
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture

SAMPLES, DEPTH = 64, 8


def cases(gpu) -> list[Case]:
    side = 256 if gpu.device.properties.scalar_threads else 1024
    picture = cache(lambda: Picture(gpu))
    base = cache(lambda: replace(load(SCENES / "cornell.toml").settings, max_depth=DEPTH, samples=SAMPLES))

    def draw(samples: int, **changes):
        picture().restart()
        for _ in range(samples):
            frame = picture().draw(replace(base(), **changes), (side, side), 0.0)
        return frame

    def check() -> None:
        """The mean of 8 samples is the same for both samplers, and with and without Russian roulette."""
        means = [draw(8, **c).read()[..., :3].mean((0, 1)) for c in ({}, {"sampler": "random"}, {"rr_depth": 16})]
        assert np.isfinite(means).all() and np.allclose(means, means[0], rtol=0.01), means

    peer = mitsuba_seconds(partial(mitsuba_box, side), SAMPLES) if has_mitsuba(gpu) else None
    work = side * side * SAMPLES / 1e6
    facts = {"samples": SAMPLES, "depth": DEPTH, "side": side}
    name = "Mitsuba 3, cuda_ad_rgb" if peer else ""
    case = Case("cornell", "Mpaths/s", work, lambda: draw(SAMPLES), check, gpu.device, peer, name, facts)
    return [case]


def has_mitsuba(gpu) -> bool:
    """Whether Mitsuba is installed, with OptiX; its LLVM cannot share a process with PoCL's."""
    try:
        import mitsuba
    except ImportError:
        return False
    return not gpu.device.properties.scalar_threads and "cuda_ad_rgb" in mitsuba.variants()


def mitsuba_box(side: int) -> dict[str, object]:
    """Mitsuba's Cornell box."""
    import mitsuba

    box = mitsuba.cornell_box()
    box["sensor"]["film"] |= {"width": side, "height": side, "rfilter": {"type": "box"}}
    box["integrator"] = {"type": "path", "max_depth": DEPTH}
    return box


def mitsuba_seconds(make, samples: int):
    """A function that draws the scene of the dict make() by Mitsuba and returns the seconds."""

    @cache
    def scene():
        import mitsuba

        mitsuba.set_variant("cuda_ad_rgb")
        return mitsuba.load_dict(make())

    def seconds() -> float:
        import drjit
        import mitsuba

        times = []
        for seed in range(6):
            start = time.perf_counter()
            drjit.eval(mitsuba.render(scene(), spp=samples, seed=seed))
            drjit.sync_thread()
            times.append(time.perf_counter() - start)
        return float(np.median(times[1:]))

    return seconds
