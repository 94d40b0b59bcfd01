"""Paths a second of whole pictures at 1920 x 1080 by each schedule, and by the one that "auto" finds by measurement.

`mesh` is the default picture of a mesh, which gets a studio and a ground. All schedules draw the same bits, which the
check compares. GPUs only: a processor has one schedule.
"""

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from renderer.bench.cases import Case
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing import procedural
from tests.fps.rays import icospheres

SIZE = 1920, 1080
NAMES = "mesh", "cornell", "mirrors", "veach", "menger", "glassware", "clockwork", "terrace", "still_life"
SCHEDULES = "auto", "wavefront", "megakernel", "regenerate"
SAMPLES = 16  # of a timed run
PLANNED_SAMPLES = 1 << 16  # of the picture, so that "auto" has enough left to draw to try both schedules
MAX_TRIAL_SAMPLES = 20_000  # within which "auto" must have decided


def cases(gpu) -> list[Case]:
    """Four schedules of nine pictures."""
    if gpu.device.properties.scalar_threads:
        return []
    return [case(gpu, name, schedule) for name in NAMES for schedule in SCHEDULES]


@cache
def settings_of(name: str):
    """The settings of a scene that comes along, or of the picture `mesh`."""
    if name != "mesh":
        return load(SCENES / f"{name}.toml").settings
    triangles = icospheres(procedural.sphereflake(2), 2)
    corners = np.stack([triangles["v0"], triangles["v0"] + triangles["edge1"], triangles["v0"] + triangles["edge2"]], 1)
    path = Path(folder().name) / "mesh.obj"
    rows = [f"v {x} {y} {z}" for x, y, z in corners[..., :3].reshape(-1, 3).tolist()]
    rows += [f"f {i} {i + 1} {i + 2}" for i in range(1, 3 * len(triangles), 3)]
    path.write_text("\n".join(rows) + "\n")
    return load(path).settings


@cache
def folder() -> tempfile.TemporaryDirectory:
    """The folder of the mesh's file, until the process ends."""
    return tempfile.TemporaryDirectory()


def case(gpu, name: str, schedule: str) -> Case:
    """One picture by one schedule."""
    picture = cache(lambda: Picture(gpu))
    settings = cache(lambda: replace(settings_of(name), schedule=schedule, samples=PLANNED_SAMPLES))

    def draw(samples: int = SAMPLES):
        for _ in range(samples):
            frame = picture().draw(settings(), SIZE, 0.0)
        return frame

    def check() -> None:
        """The bits of two samples are those of another schedule; then "auto" decides."""
        other = "wavefront" if schedule == "megakernel" else "megakernel"
        reference = Picture(gpu)
        for _ in range(2):
            expected = reference.draw(replace(settings(), schedule=other), SIZE, 0.0)
        assert np.array_equal(draw(2).read(), expected.read())
        drawn = 2
        while picture()._trial and drawn < MAX_TRIAL_SAMPLES:
            draw()
            gpu.device.finish()
            drawn += SAMPLES
        assert picture()._trial is None

    work = SIZE[0] * SIZE[1] * SAMPLES / 1e6
    return Case(f"{name}/{schedule}", "Mpaths/s", work, draw, check, gpu.device)
