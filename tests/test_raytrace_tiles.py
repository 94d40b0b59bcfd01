"""The ray tracer's schedule for processors without warps: the bits of the stencil's stages, and their counts."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from test_raytrace import mixed_scene, render

from renderer.pictures.raytrace import Picture


@pytest.fixture(scope="module")
def picture(device):
    if device.processor.lanes > 1:
        pytest.skip(f"{device.name} has warps")
    return Picture(SimpleNamespace(device=device))


@pytest.mark.parametrize("paths, lights", [("full", "sampled"), ("whitted", "hit")])
def test_tiles_draw_and_count_as_the_stages_do(picture, rng, paths, lights):
    size = tuple(int(n) for n in rng.integers(1, 100, 2))
    seed, depth = int(rng.integers(0, 2**31 - 1)), int(rng.integers(2, 9))
    scene = mixed_scene(schedule="grid", paths=paths, lights=lights, depth=depth, seed=seed, lens_radius=0.05)
    scene = replace(scene, roulette=int(rng.integers(1, 3)))
    wanted, told = render(picture, scene, size, 3), picture.report()
    assert np.isfinite(wanted).all()
    assert np.array_equal(wanted, render(picture, replace(scene, schedule="fused"), size, 3))
    found = picture.report()
    assert found["live rays"] == told["live rays"]
    assert found["skipped words"] == told["skipped words"]


def test_a_part_of_the_picture_has_the_bits_of_the_whole(picture, rng):
    scene = mixed_scene(depth=5, schedule="fused")
    whole = render(picture, scene, (61, 47))
    left, top = (int(n) for n in rng.integers(0, 30, 2))
    picture._drawn = None
    part = picture.draw(scene, (61, 47), 0.0, (left, top, 29, 15)).read()
    assert np.array_equal(part, whole[top : top + 15, left : left + 29])


def test_the_schedule_of_a_processor_without_warps(picture):
    render(picture, mixed_scene(schedule="auto"))
    assert picture.report()["schedule"] == "fused"
    render(picture, mixed_scene(schedule="auto", stencil="flags"))
    assert picture.report()["schedule"] == "grid"
