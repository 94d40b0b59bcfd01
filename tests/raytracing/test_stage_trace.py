"""The stages of a sample: the stencil against a NumPy trace of mirror spheres, its words against brute force."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.images.inspection import VIRIDIS, stencil_picture
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import launch_params
from renderer.raytracing.path_trace import project
from renderer.raytracing.settings import Material, Settings, Sphere
from renderer.raytracing.stage_trace import Stage, StageTrace, unpack
from renderer.scene.cameras import Camera
from tests.raytracing.test_render import render

SPHERES = (((-0.9, 0.0, 0.0), 0.8), ((0.9, 0.1, 0.0), 0.8), ((0.0, -1.3, -0.6), 0.6))


def scene(depth):
    spheres = tuple(Sphere("mirror", center, radius) for center, radius in SPHERES)
    view = Camera((0.0, 0.2, 4.0), (0.0, -0.2, 0.0), fov_degrees=50.0)
    materials = (Material("mirror", "mirror"),)
    return Settings(view=view, materials=materials, spheres=spheres, max_depth=depth, rr_depth=16, horizon=(1, 1, 1))


def bounces(x, y, size, depth):
    """The number of reflections, at most `depth`, of the ray through (x, y) pixels by the mirrors."""
    eye, target = np.array([0.0, 0.2, 4.0]), np.array([0.0, -0.2, 0.0])
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, (0.0, 1.0, 0.0))
    right /= np.linalg.norm(right)
    up, half = np.cross(right, forward), np.tan(np.radians(25.0))
    sx, sy = (2 * x / size[0] - 1) * half * size[0] / size[1], (1 - 2 * y / size[1]) * half
    d = forward + sx[..., None] * right + sy[..., None] * up
    d /= np.linalg.norm(d, axis=-1, keepdims=True)
    o, count, alive = np.broadcast_to(eye, d.shape).copy(), np.zeros(x.shape, int), np.ones(x.shape, bool)
    for _ in range(depth):
        nearest, normal = np.full(x.shape, np.inf), np.zeros(d.shape)
        for center, radius in SPHERES:
            from_center = o - np.array(center)
            b = (from_center * d).sum(-1)
            root = b * b - (from_center**2).sum(-1) + radius**2
            t = -b - np.sqrt(np.maximum(root, 0))
            hit = (root > 0) & (t > 1e-6) & (t < nearest)
            nearest = np.where(hit, t, nearest)
            normal = np.where(hit[..., None], (from_center + t[..., None] * d) / radius, normal)
        alive &= np.isfinite(nearest)
        count += alive
        o = np.where(alive[..., None], o + np.where(alive, nearest, 0)[..., None] * d, o)
        d = np.where(alive[..., None], d - 2 * (d * normal).sum(-1, keepdims=True) * normal, d)
    return count


def test_the_stencil_is_that_of_a_trace_in_numpy(device):
    size, depth = (61, 45), 4
    picture = Picture(SimpleNamespace(device=device))
    settings = scene(depth)
    trace = picture.trace_stages(settings, size)
    assert trace.depths == depth and [s.name for s in trace.stages[:3]] == ["generate", "trace", "shade"]
    offsets = np.linspace(0.0, 1.0, 7)
    row, column = np.mgrid[: size[1], : size[0]]
    counts = np.stack([bounces(column + dx, row + dy, size, depth) for dx in offsets for dy in offsets])
    for bounce in range(depth):
        live = counts >= bounce
        agree = live.all(0) | ~live.any(0)  # wherever in the pixel the sample lies
        assert agree.mean() > 0.85
        assert np.array_equal(trace.live_rays(bounce)[agree], live[0][agree])
    rows = trace.rows()
    assert [row["live rays"] for row in rows] == [int(trace.live_rays(bounce).sum()) for bounce in range(depth)]
    drawn = render(picture, settings, size, 1)
    assert picture.report()["active rays"] == [row["live rays"] for row in rows]
    assert np.array_equal(drawn, render(picture, replace(settings, schedule="wavefront"), size, 1))


def test_words_are_blocks_of_8_by_4_pixels(rng):
    width, height = 19, 9
    live = rng.random((12, 24)) < 0.4
    live[height:], live[:, width:] = False, False
    live[4:8, 8:16] = False
    words = np.zeros((3, 3), "u4")
    for y in range(12):
        for x in range(24):
            words[y // 4, x // 8] |= np.uint32(int(live[y, x]) << (y % 4 * 8 + x % 8))
    assert np.array_equal(unpack(words), live)
    trace = StageTrace((width, height), (Stage("generate", 0, words, 0.1), Stage("trace", 0, words, 0.2)))
    assert np.array_equal(trace.live_rays(0), live[:height, :width])
    occupancy = trace.occupancy(0)
    picture = stencil_picture(trace.live_rays(0), occupancy)
    for y in range(height):
        for x in range(width):
            share = live[y // 4 * 4 : y // 4 * 4 + 4, x // 8 * 8 : x // 8 * 8 + 8].mean()
            assert occupancy[y // 4, x // 8] == pytest.approx(share)
            color = [np.interp(share * (len(VIRIDIS) - 1), range(len(VIRIDIS)), VIRIDIS[:, k]) for k in range(3)]
            bright = 1.0 if live[y, x] else 1 / 3 if share else 0.0
            assert np.abs(picture[y, x, :3] - bright * np.array(color)).max() <= 1
    assert trace.rows()[0]["words"] == (words > 0).sum()


def test_the_rays_of_a_pixel_are_reflected_by_the_mirrors_and_seen_where_they_are(device):
    size, settings = (61, 45), scene(4)
    picture = Picture(SimpleNamespace(device=device))
    params = launch_params(settings, size, (0, 0, *size))
    lengths = set()
    for x, y in ((18, 20), (40, 22), (30, 36), (28, 21), (1, 1)):
        rays = picture.trace_paths(settings, size, x, y, 2)
        for ray in rays:
            if ray.depth == 0:
                seen, before = project(params, np.array([ray.end]))
                assert before.all() and (np.floor(seen * size) == (x, y)).all()
        for ray, following in zip(rays, rays[1:], strict=False):
            if following.depth == 0:
                continue
            start, hit, end = np.array(ray.start), np.array(ray.end), np.array(following.end)
            center, radius = min(SPHERES, key=lambda ball: abs(np.linalg.norm(hit - ball[0]) - ball[1]))
            assert abs(np.linalg.norm(hit - center) - radius) < 1e-4
            assert np.linalg.norm(np.array(following.start) - hit) < 1e-3
            normal = (hit - center) / radius
            way_in, way_out = (hit - start) / np.linalg.norm(hit - start), (end - hit) / np.linalg.norm(end - hit)
            assert np.abs(way_in - 2 * (way_in @ normal) * normal - way_out).max() < 2e-3
        lengths.add(len(rays))
    assert len(lengths) > 1
    trace = picture.trace_stages(settings, size)
    rays = picture.trace_paths(settings, size, 28, 21, 1)
    assert len(rays) == sum(trace.live_rays(bounce)[21, 28] for bounce in range(4))
