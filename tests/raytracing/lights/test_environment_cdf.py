"""The guided search of an environment's CDF against numpy.searchsorted."""

import numpy as np
import pytest

from renderer.gpu.kernel_source import GeneratedSource
from renderer.raytracing.lights.environment import cdf_guide, cdf_u32, environment_cdf, sun_direction
from renderer.raytracing.lights.photons import _sample_map
from renderer.raytracing.settings import Sky


@pytest.mark.parametrize("count", [1, 2, 3, 8, 100, 255, 512, 1024])
def test_a_search_guided_by_the_table_finds_what_searchsorted_finds(rng, count):
    spike, edges = np.zeros((2, count))
    spike[count // 3] = 1
    edges[[0, -1]] = 1e-12, 1
    lone = np.where(rng.random(count) < 0.1, rng.random(count), 0)
    rows = np.stack([np.zeros(count), np.ones(count), spike, spike[::-1], edges, edges[::-1], lone,
                     np.exp(9 * rng.normal(size=count)), np.geomspace(1, 1e-30, count), rng.random(count)])  # fmt: skip
    cdfs = cdf_u32(rows)
    for cdf, guide in zip(cdfs, cdf_guide(cdfs), strict=True):
        assert (guide == cdf_guide(cdf)).all() and count < len(guide) <= 2 * count
        values = cdf.astype("i8")[:, None] + [-1, 0, 1]
        buckets = (np.arange(len(guide)) << 32) // len(guide)
        numbers = np.concatenate([values.ravel(), buckets, buckets - 1, rng.integers(1 << 32, size=1000)])
        numbers = np.clip(numbers, 0, (1 << 32) - 1)
        bucket = numbers * len(guide) >> 32
        low, high = np.where(bucket > 0, guide[bucket - 1], 0), guide[bucket].astype("i8")
        wanted = np.searchsorted(cdf[:-1], numbers.astype("u4"), side="right") - 1
        assert ((low <= wanted) & (wanted <= high)).all()
        ends = ((np.arange(len(guide)) + 1) << 32) // len(guide)
        assert (guide == np.searchsorted(cdf[:-1].astype("i8"), ends) - 1).all()


SEARCH = """
#include "raytracing/lights/cdf.h"
KERNEL search(GLOBAL const uint *words, int guide, int count, GLOBAL const uint *numbers, GLOBAL int *found,
              GLOBAL uint *widths) {
    uint i = thread_index();
    float remapped;
    uint width;
    found[i] = sample_cdf(words, 0, guide, count, numbers[i], &remapped, &width);
    widths[i] = width;
}
"""


def test_devices_search_the_cdf_as_searchsorted_does(device, rng):
    kernel = device.kernel(GeneratedSource("search_cdf", SEARCH), "search", group_size=64)
    weights = np.zeros((4, 100))
    weights[0, 70] = weights[1, [0, 1, 99]] = 1
    weights[2] = np.exp(6 * rng.normal(size=100))
    for cdf in cdf_u32(weights):
        numbers = np.concatenate([np.clip(cdf.astype("i8")[:, None] + [-1, 0, 1], 0, (1 << 32) - 1).ravel(),
                                  rng.integers(1 << 32, size=4096 - 303)]).astype("u4")  # fmt: skip
        guide = cdf_guide(cdf)
        words = np.concatenate([cdf, np.frombuffer(guide.tobytes().ljust(-(-len(guide) // 2) * 4, b"\0"), "u4")])
        given = [device.buffer(len(a), a.dtype).write(a) for a in (words, numbers)]
        found, widths = device.buffer(len(numbers), "i4"), device.buffer(len(numbers), "u4")
        kernel(len(numbers), given[0], 2 * len(cdf), 100, given[1], found, widths)
        wanted = np.searchsorted(cdf[:-1], numbers, side="right") - 1
        assert (found.read() == wanted).all() and (widths.read() == np.diff(cdf)[wanted]).all()


@pytest.mark.parametrize("elevation, azimuth", [(40.0, 45.0), (10.0, -130.0), (75.0, 200.0), (0.0, 90.0)])
def test_the_sun_stands_at_its_elevation_and_azimuth(elevation, azimuth):
    """Against the angles of the direction: above the plane of x and z, and about y from -z to +x."""
    x, y, z = direction = sun_direction(Sky(elevation_degrees=elevation, azimuth_degrees=azimuth))
    assert np.linalg.norm(direction) == pytest.approx(1)
    assert np.degrees(np.arcsin(y)) == pytest.approx(elevation)
    turned = np.degrees(np.arctan2(x, -z)) - azimuth
    assert turned == pytest.approx(360 * np.rint(turned / 360))


def test_photons_of_a_map_carry_its_flux(rng):
    radiance = rng.random((16, 32, 3)).astype("f4")
    radiance[3, 5] = 100
    direction, weight = _sample_map(environment_cdf(radiance), radiance, 0.25, rng.random((200_000, 2)))
    solid_angle = np.sin((np.arange(16) + 0.5) * np.pi / 16) * (np.pi / 16) * (2 * np.pi / 32)
    assert np.allclose(weight.mean(0), np.tensordot(solid_angle, radiance.sum(1), 1), rtol=0.02)
    assert np.allclose(np.linalg.norm(direction, axis=1), 1)
