"""Deep paths: what max_depth cuts in a white furnace of rough glass, and what a picture says of it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import MAX_DEPTH, Material, Settings, Sphere
from renderer.scene.cameras import Camera
from tests.raytracing.test_render import render


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def furnace(**changes):
    """A white ball of rough glass, which fills the picture, under an even light: all of it comes back."""
    glass = Material("glass", "glass", color=(1.0, 1.0, 1.0), ior=1.5, roughness=0.5)
    scene = Settings(
        view=Camera((0.0, 0.0, 6.0), (0.0, 0.0, 0.0), fov_degrees=13.0), materials=(glass,),
        spheres=(Sphere("glass", radius=1.0),), horizon=(1.0,) * 3, zenith=(1.0,) * 3, rr_depth=16,
    )  # fmt: skip
    return replace(scene, **changes)


def test_a_furnace_of_rough_glass_loses_what_its_depth_cuts_and_says_so(picture):
    size, samples, lost = (24, 24), 96, {}
    for depth in (8, 16, MAX_DEPTH):
        values = render(picture, furnace(max_depth=depth), size, samples)[..., :3].mean(-1)
        lost[depth], error = 1 - values.mean(), values.std() / values.size**0.5
        said = [hint for hint in picture.hints() if "max_depth" in hint]
        assert bool(said) == (depth == 8)
        if said:
            figure = float(said[0].split("about ")[1].split(" %")[0]) / 100
            assert figure == pytest.approx(lost[depth], abs=0.02)
    assert 0.015 < lost[8] < 0.08 and lost[16] < 0.01
    assert abs(lost[MAX_DEPTH]) < max(0.003, 4 * error)  # what the table of the guide states for this lobe


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["wavefront", "regenerate"])
def test_schedules_agree_beyond_the_counted_depths(picture, schedule):
    scene = furnace(max_depth=40, schedule="megakernel", rr_depth=32)
    wanted = render(picture, scene, (16, 8), 4)
    assert np.array_equal(render(picture, replace(scene, schedule=schedule), (16, 8), 4), wanted)
