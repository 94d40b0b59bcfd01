"""clamp_indirect: off, on, and the same bits in all schedules."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import Material, Quad, Settings
from renderer.scene.cameras import Camera
from renderer.scene.schema import to_table
from tests.raytracing.test_render import mixed_scene, render, room


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def glowing_box(**changes):
    wall = Material("wall", color=(0.6,) * 3, emission=(0.4,) * 3)
    return Settings(view=Camera((0.1, 0.2, 0.3)), materials=(wall,), quads=room("wall"), max_depth=12, rr_depth=16,
                    direct_lighting="bsdf", **changes)  # fmt: skip


def test_contributions_beyond_the_first_surface_are_clamped_each(picture):
    """In a closed gray box every ray finds the emission e, times the albedo's power: a sum in which terms are cut."""
    terms = 0.4 * 0.6 ** np.arange(12)
    for limit in (0.0, 0.05, 0.1, 0.3):
        wanted = terms[:2].sum() + (np.minimum(terms[2:], limit) if limit else terms[2:]).sum()
        assert np.allclose(render(picture, glowing_box(clamp_indirect=limit), (8, 8), 2)[..., :3], wanted, rtol=1e-5), (
            limit
        )


@pytest.mark.slow
def test_direct_light_and_a_high_limit_change_no_bit(picture, rng):
    scene = mixed_scene(max_depth=6, seed=int(rng.integers(1 << 30)))
    wanted = render(picture, scene, (40, 30), 2)
    assert np.array_equal(render(picture, replace(scene, clamp_indirect=1e8), (40, 30), 2), wanted)
    one = render(picture, replace(scene, max_depth=2), (40, 30), 2)
    assert np.array_equal(render(picture, replace(scene, max_depth=2, clamp_indirect=1e-3), (40, 30), 2), one)
    clamped = render(picture, replace(scene, clamp_indirect=0.02), (40, 30), 2)
    assert (clamped <= wanted).all() and clamped.mean() < wanted.mean()


@pytest.mark.slow
def test_schedules_clamp_alike(picture, rng):
    """Lambertian triangles too, which devices without warps shade eight at a time."""
    lamp = Quad("lamp", ((-0.3, 1.9, -0.3), (0.3, 1.9, -0.3), (0.3, 1.9, 0.3), (-0.3, 1.9, 0.3)))
    materials = (Material("white", color=(0.8, 0.7, 0.6)), Material("lamp", "emitter", emission=(30.0, 20.0, 10.0)))
    seed = int(rng.integers(1 << 30))
    scene = Settings(view=Camera((0.1, 0.2, 1.9), fov_degrees=75.0), materials=materials, max_depth=5,
                     quads=(*room("white", 2.0), lamp), clamp_indirect=0.05, seed=seed)  # fmt: skip
    wanted = render(picture, replace(scene, schedule="wavefront"), (40, 30), 2)
    for schedule in ("megakernel", "regenerate"):
        assert np.array_equal(render(picture, replace(scene, schedule=schedule), (40, 30), 2), wanted), schedule
    free = render(picture, replace(scene, clamp_indirect=0.0), (40, 30), 2)
    assert free.mean() > wanted.mean() + 1e-3


def test_the_recipe_says_the_limit_and_is_silent_without_one():
    assert "clamp_indirect" not in to_table(Settings())
    assert json.loads(json.dumps(to_table(Settings(clamp_indirect=2.5)))) == {"clamp_indirect": 2.5}
