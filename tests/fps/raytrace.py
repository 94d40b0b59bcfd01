"""Frames a second of `mirrors` by depth, for every schedule and stencil; and of a closed and an open scene.

`bench report` draws the time, the active rays and the empty stencil words of each depth.
"""

from dataclasses import replace
from functools import cache

import numpy as np

from renderer.bench.cases import Case
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture

VARIANTS = {
    "wavefront": {"schedule": "wavefront"},
    "wavefront-flags": {"schedule": "wavefront", "stencil": "flags"},
    "wavefront-compact": {"schedule": "wavefront", "stencil": "compact"},
    "wavefront-off": {"schedule": "wavefront", "stencil": "off"},
    "regenerate": {"schedule": "regenerate"},
    "megakernel": {"schedule": "megakernel"},
}
BY_DEPTH = "wavefront", "megakernel"  # timed by depth in cornell and sphereflake, too


def cases(gpu) -> list[Case]:
    size = (480, 270) if gpu.device.properties.scalar_threads else (1920, 1080)
    picture = cache(lambda: Picture(gpu))
    found = []
    for variant, settings in VARIANTS.items():
        for depth in range(1, 7):
            found.append(
                frame_case(gpu, picture, "mirrors", variant, {**settings, "max_depth": depth}, size, f"/depth={depth}")
            )
        for scene in ("cornell", "sphereflake"):
            found.append(frame_case(gpu, picture, scene, variant, settings, size, ""))
            for depth in range(1, 7) if variant in BY_DEPTH else ():
                found.append(
                    frame_case(gpu, picture, scene, variant, {**settings, "max_depth": depth}, size, f"/depth={depth}")
                )
    return found


def frame_case(gpu, picture, scene: str, variant: str, changes: dict, size, suffix: str) -> Case:
    """One sample of every pixel; the check: all variants give pictures bit-identical to the bit stencil's."""
    settings = cache(lambda: replace(load(SCENES / f"{scene}.toml").settings, **changes))

    def run():
        return picture().draw(settings(), size, 0.0)

    def check() -> bytes:
        frames = []
        for chosen in (replace(settings(), schedule="wavefront", stencil="bits"), settings()):
            picture().draw(replace(chosen, seed=3), (9, 9), 0.0)  # so that the next draw starts over
            frames.append(picture().draw(chosen, size, 0.0).read())
        assert np.isfinite(frames[0]).all() and np.array_equal(*frames)
        case.facts |= {key: value for key, value in picture().report().items() if key != "samples"}
        return frames[1].tobytes()

    case = Case(f"{scene}/{variant}{suffix}", "frames/s", 1.0, run, check, gpu.device, facts={"size": list(size)})
    return case
