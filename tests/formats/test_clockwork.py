"""The wheels of scenes/clockwork.toml: as their script makes them, with teeth that mesh in every position."""

from dataclasses import replace

import numpy as np
import pytest

from assets.makers import clockwork as make_clockwork
from renderer.formats.gltf import load as load_gltf
from renderer.paths import ASSETS

MESHES = [
    ("barrel", "center pinion"),
    ("center", "third pinion"),
    ("third", "fourth pinion"),
    ("fourth", "escape pinion"),
]


def inside(points, polygon):
    """Which points lie in a polygon, by the parity of the edges to their right."""
    (x, y), a = points.T[..., None], polygon
    b = np.roll(a, -1, 0)
    crosses = (a[:, 1] > y) != (b[:, 1] > y)
    rise = np.where(a[:, 1] == b[:, 1], 1.0, b[:, 1] - a[:, 1])
    return (crosses & (x < a[:, 0] + (y - a[:, 1]) / rise * (b[:, 0] - a[:, 0]))).sum(1) % 2 == 1


def overlap(one, other):
    """Whether points of one wheel's outline lie in the other's; ten on each edge, near the pitch point."""
    outlines = [make_clockwork.outline(wheel) + wheel.place for wheel in (one, other)]
    way = (other.place - one.place) / np.linalg.norm(other.place - one.place)
    touch = one.place + one.radius * way
    for a, b in (outlines, outlines[::-1]):
        dense = np.concatenate([a + t * (np.roll(a, -1, 0) - a) for t in np.arange(10) / 10])
        near = dense[np.linalg.norm(dense - touch, axis=1) < 5 * one.module]
        if inside(near, b).any():
            return True
    return False


@pytest.mark.parametrize("names", MESHES, ids=lambda names: names[1])
def test_wheels_mesh_in_every_position_with_little_play(names):
    """Turned by their ratio, flanks never cut each other; turned by twice the backlash against each other, they do."""
    one, other = (make_clockwork.train()[name] for name in names)
    gap = np.linalg.norm(other.place - one.place)
    assert abs(gap - one.radius - other.radius) < 1e-12 and one.module == other.module
    for part in np.arange(6) / 6:
        first = replace(one, turn=one.turn + part * 2 * np.pi / one.teeth)
        second = replace(other, turn=other.turn - part * 2 * np.pi / other.teeth)
        assert not overlap(first, second)
        play = 2 * 2 * make_clockwork.BACKLASH * one.module / other.radius
        assert all(overlap(first, replace(second, turn=second.turn + side * play)) for side in (-1, 1))


def test_the_movement_is_what_its_script_makes(tmp_path):
    """Up to the rounding of other processors."""
    path = tmp_path / "made.glb"
    path.write_bytes(make_clockwork.clockwork().glb())
    made, kept = load_gltf(path), load_gltf(ASSETS / "clockwork.glb")
    assert made.materials == kept.materials and len(made.meshes) == len(kept.meshes)
    for ours, theirs in zip(made.meshes, kept.meshes, strict=True):
        assert np.array_equal(ours[0].faces, theirs[0].faces)
        np.testing.assert_allclose(ours[0].vertices, theirs[0].vertices, atol=1e-5)
