"""Records of primitives: joining, bounds by material, freeing; what builders hold of the host's memory meanwhile."""

import tracemalloc

import numpy as np
import pytest

from renderer.bvh.build import build_bvh
from renderer.bvh.primitives import (
    CHUNK,
    PRIMITIVE,
    HostPrimitives,
    bounds_by_material,
    joined,
    spheres,
    triangles,
    with_primitive_ids,
)
from tests.bvh.test_traversal import soup


def mixed(rng, count: int, materials: int) -> np.ndarray:
    """Triangles and spheres in random order."""
    corners = rng.standard_normal((3 * count, 3))
    flat = triangles(corners, np.arange(3 * count).reshape(-1, 3), rng.integers(materials, size=count))
    round_ = spheres(rng.standard_normal((count, 3)), rng.random(count) + 0.01, rng.integers(materials, size=count))
    return rng.permutation(np.concatenate([flat, round_]))


def test_bounds_of_each_material_enclose_its_primitives_and_touch_them(rng):
    """Against each primitive's own corners, one by one."""
    primitives = mixed(rng, 300, 4)
    found = bounds_by_material(primitives)
    assert sorted(found) == [0, 1, 2, 3]
    for material, (low, high) in found.items():
        points = []
        for p in primitives[primitives["edge1"].view("i4")[:, 3] == material]:
            corner, radius = p["v0"][:3].astype("f8"), float(p["edge2"][3])
            edges = [p["edge1"][:3].astype("f8"), p["edge2"][:3].astype("f8")]
            points += [corner - radius, corner + radius] if radius > 0 else [corner, *(corner + e for e in edges)]
        assert (low == np.min(points, 0)).all() and (high == np.max(points, 0)).all()
    assert bounds_by_material(primitives[:0]) == {}


def test_bounds_go_through_all_chunks(rng):
    primitives = spheres(rng.standard_normal((CHUNK + 5, 3)), np.full(CHUNK + 5, 0.5))
    primitives["v0"][-1, :3] = 100
    assert (bounds_by_material(primitives)[0][1] == 100.5).all()


@pytest.mark.parametrize("sizes", [[5], [5, 0, 3], [0, 0], [1, 2, 3, 4], [2, CHUNK, 1], [CHUNK, 3]])
def test_joined_primitives_are_those_of_the_list_in_order(rng, sizes):
    arrays = [mixed(rng, size, 2) for size in sizes]
    wanted, given = np.concatenate(arrays), list(arrays)
    found = joined(given)
    assert found.dtype == PRIMITIVE and found.tobytes() == wanted.tobytes()
    assert given == []  # each is freed when it was copied


def test_a_view_with_steps_is_joined_too(rng):
    primitives = mixed(rng, 10, 2)
    assert (
        joined([primitives[::2], primitives[1::2]]).tobytes()
        == np.concatenate([primitives[::2], primitives[1::2]]).tobytes()
    )


def test_a_builder_frees_what_it_was_given_to_free(device, rng):
    rows = with_primitive_ids(soup(rng, 300, 0.1))
    host = HostPrimitives(rows)
    bvh = build_bvh(device, host)
    assert host.count == 300 and len(host.rows) == 0
    assert np.array_equal(np.sort(bvh.primitives.read().view("i4")[: bvh.count, 3]), np.arange(300))


def test_a_build_on_the_device_holds_no_copy_of_the_primitives(device, rng, monkeypatch):
    """By tracemalloc, which counts NumPy's arrays but not the device's buffers."""
    from renderer.bvh import build

    monkeypatch.setattr(build.presplit, "max_refs", lambda properties: 0)  # nobody asks for the rows again
    monkeypatch.setattr(build, "MIN_DEVICE_PRIMS", 2)
    monkeypatch.setattr(build, "MIN_DEVICE_PRIMS_CPU", 2)
    rows = with_primitive_ids(soup(rng, 40_000, 0.1))
    size, host = rows.nbytes, HostPrimitives(rows)
    build_bvh(device, HostPrimitives(rows.copy()))  # compiles
    del rows
    tracemalloc.start()
    try:
        build_bvh(device, host)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.5 * size, f"{peak} bytes of copies beside primitives of {size}"
