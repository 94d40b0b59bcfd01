"""The host memory that opening a large mesh takes, by tracemalloc; and that its shortcuts change no number."""

import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from renderer.bvh.primitives import CHUNK, PRIMITIVE, triangles, with_primitive_ids
from renderer.export.warm import write_sphere
from renderer.formats import mesh
from renderer.raytracing.models.framing import bounds_of, frame, three_quarter
from renderer.raytracing.models.from_model import open_file
from renderer.raytracing.shapes import SceneShapes

ROWS = 200  # 160,000 triangles


@pytest.fixture(scope="module")
def sphere(tmp_path_factory):
    path = tmp_path_factory.mktemp("opening") / "sphere.ply"
    write_sphere(path, ROWS)
    return path


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """The result of work(), and the most bytes that NumPy and Python held meanwhile."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_reading_a_mesh_holds_few_times_its_file(sphere):
    """The file and its arrays, and in float64 the corners of triangles (72 bytes) and the vertices of the framing."""
    open_file(sphere)  # imports
    os.utime(sphere)  # another stamp: the mesh is read anew
    scene, peak = peak_of(lambda: open_file(sphere))
    size = sphere.stat().st_size
    assert peak < 8 * size, f"{peak / size:.1f} times the file"
    assert scene.settings.meshes and scene.settings.quads


def test_the_primitives_of_a_mesh_with_a_ground_are_there_once(sphere):
    settings = open_file(sphere).settings
    shapes, peak = peak_of(lambda: SceneShapes(settings, []))
    primitives = shapes.in_poses([], keep=False).primitives[""]
    assert len(primitives) == 4 * ROWS**2 + 2
    chunks, keys = 100 * CHUNK, 16 * len(primitives)  # float64 copies of a chunk; what duplicates are found by
    assert peak < 1.05 * primitives.nbytes + chunks + keys, f"{peak} bytes for primitives of {primitives.nbytes}"


def test_the_ground_before_the_mesh_and_ids_through_both(sphere):
    settings = open_file(sphere).settings
    primitives = SceneShapes(settings, []).in_poses([]).primitives[""]
    vertices, faces = mesh.load_mesh(sphere)
    ground = triangles(np.array(settings.quads[0].corners), np.array([[0, 1, 2], [0, 2, 3]]), 1)
    world = vertices @ np.eye(3) + np.zeros(3)  # -0 becomes 0
    wanted = with_primitive_ids(np.concatenate([ground, triangles(world, faces)]))
    assert primitives.dtype == PRIMITIVE and np.array_equal(primitives.view("u4"), wanted.view("u4"))


@pytest.mark.parametrize("change", [dict(scale=2.0), dict(position=(1.0, 0.0, 0.0)), dict(rotation_degrees=30.0)])
def test_a_mesh_that_is_placed_takes_no_shortcut(sphere, change):
    settings = open_file(sphere).settings
    placed = replace(settings, meshes=(replace(settings.meshes[0], **change),), quads=())
    primitives = SceneShapes(placed, []).in_poses([]).primitives[""]
    vertices = mesh.load_mesh(sphere)[0].astype("f8")
    angle = np.radians(change.get("rotation_degrees", 0.0))
    x, y, z = vertices.T
    turned = np.stack([x * np.cos(angle) + z * np.sin(angle), y, z * np.cos(angle) - x * np.sin(angle)], 1)
    wanted = turned * change.get("scale", 1.0) + change.get("position", (0, 0, 0))
    first = mesh.load_mesh(sphere)[1][:, 0]
    assert np.allclose(primitives["v0"][:, :3], wanted[first], atol=1e-6)


def test_bounds_and_the_camera_of_float32_points_are_those_of_float64(rng):
    points = rng.standard_normal((5000, 3)).astype("f4")
    low, high = bounds_of(points)
    assert (low == points.min(0)).all() and (high == points.max(0)).all() and low.dtype == np.float64
    towards, center = three_quarter(high - low), (low + high) / 2
    assert frame(points, towards, center) == frame(points.astype("f8"), towards)
