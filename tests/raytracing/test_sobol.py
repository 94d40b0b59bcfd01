"""The sampler: nets in base 2, a NumPy reference bit for bit, less error than with independent numbers."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from renderer.gpu.kernel_source import GeneratedSource
from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import Material, Quad, Settings, Sphere
from renderer.scene.cameras import Camera

PROBE = """
#include "raytracing/sampler.h"
KERNEL draw_numbers(uint seed, uint pixel, uint first, uint dimension, uint count, GLOBAL uint *bits) {
    uint i = thread_index();
    if (i < count) bits[i] = sample_bits(make_sampler(seed, pixel, first + i), dimension);
}
"""


@cache
def probe(device, sampler):
    return device.kernel(GeneratedSource("sampler", PROBE), "draw_numbers", group_size=64, SAMPLER=sampler)


def draw(device, seed, pixel, dimension, count, first=0, sampler=1):
    kernel = probe(device, sampler)
    bits = device.buffer(count, "u4")
    kernel(count, *(np.uint32(x) for x in (seed, pixel, first, dimension, count)), bits)
    return bits.read()


def word(x):
    return np.asarray(x, "u8").astype("u4")


def mix(x):
    """PCG's output permutation of words."""
    with np.errstate(over="ignore"):
        x = word(x) * np.uint32(747796405) + np.uint32(2891336453)
        x = ((x >> ((x >> np.uint32(28)) + np.uint32(4))) ^ x) * np.uint32(277803737)
    return (x >> np.uint32(22)) ^ x


def reverse(x):
    return np.array([int(f"{int(v):032b}"[::-1], 2) for v in np.atleast_1d(x)], "u4")


def scramble(x, seed):
    with np.errstate(over="ignore"):
        x = x ^ (x * np.uint32(0x3D20ADEA))
        x = x + seed
        x = x * ((seed >> np.uint32(16)) | np.uint32(1))
        x = x ^ (x * np.uint32(0x05526C56))
        return x ^ (x * np.uint32(0x53A22864))


def sobol(number, dimension):
    """The 32 digits of unscrambled Sobol points; direction numbers by the recurrence of the polynomial x + 1."""
    direction, digits = np.uint32(1 << 31), np.zeros(len(number), "u4")
    for bit in range(32):
        digits ^= np.where(number >> np.uint32(bit) & np.uint32(1), direction, np.uint32(0))
        direction = direction ^ (direction >> np.uint32(1)) if dimension else direction >> np.uint32(1)
    return digits


def twin(seed, pixel, dimension, samples):
    """The values of the kernel, from the definition."""
    with np.errstate(over="ignore"):
        own = mix(mix(seed) ^ word(pixel))
        pair = mix(own + np.uint32(dimension >> 1) * np.uint32(0x9E3779B9))
    digits = sobol(reverse(scramble(reverse(samples), pair)), dimension & 1)
    return reverse(scramble(reverse(digits), mix(pair ^ np.uint32(0x68BC21EB + (dimension & 1)))))


def test_the_reference_is_scipys_sobol():
    order = np.arange(256) ^ (np.arange(256) >> 1)  # SciPy counts in Gray code
    points = qmc.Sobol(2, scramble=False, bits=32).random(256)
    for dimension in (0, 1):
        assert np.array_equal(sobol(word(order), dimension) / 2**32, points[:, dimension])


def test_numbers_are_scrambled_sobol_points(device, rng):
    seed, pixel, dimension = (int(n) for n in rng.integers(0, [2**31, 2**31, 200]))
    first = int(rng.integers(0, 1 << 10))
    found = draw(device, seed, pixel, dimension, 64, first)
    assert np.array_equal(found, twin(seed, pixel, dimension, np.arange(first, first + 64)))


@pytest.mark.parametrize("m", [1, 4, 6, 9])
def test_every_elementary_interval_holds_one_point(device, rng, m):
    """A (0, m, 2)-net: of 2^m points each of the boxes 2^-a by 2^-(m - a) has exactly one, in any aligned run."""
    seed, pixel = (int(n) for n in rng.integers(0, 2**31, 2))
    pair, run = int(rng.integers(0, 100)), int(rng.integers(0, 16))
    x, y = (draw(device, seed, pixel, 2 * pair + axis, 1 << m, run << m).astype("u8") for axis in (0, 1))
    for a in range(m + 1):
        boxes = (x >> (32 - a)) << (m - a) | (y >> (32 - (m - a)))
        assert len(np.unique(boxes)) == 1 << m, a


def test_values_are_uniform_and_pairs_uncorrelated(device, rng):
    """Over pixels each value is uniform; two pairs, two pixels and two seeds have no correlation."""
    seed = int(rng.integers(0, 2**31))
    first = np.array([draw(device, seed, pixel, 0, 4) for pixel in range(512)]) / 2**32
    assert stats.kstest(first.ravel(), "uniform").pvalue > 1e-5
    assert stats.kstest(first[:, 3], "uniform").pvalue > 1e-5
    n = 4096
    base = draw(device, seed, 7, 0, n) / 2**32
    for other in (draw(device, seed, 7, 2, n), draw(device, seed, 8, 0, n), draw(device, seed + 1, 7, 0, n)):
        assert abs(np.corrcoef(base, other / 2**32)[0, 1]) < 5 / np.sqrt(n)


@pytest.mark.slow
def test_pictures_have_less_error_than_with_independent_numbers(device):
    """An area light over a floor: direct light from 16 samples of each sampler against 1,024, both of the same mean."""
    floor = Quad("floor", ((-9.0, 0.0, 9.0), (9.0, 0.0, 9.0), (9.0, 0.0, -9.0), (-9.0, 0.0, -9.0)))
    lamp = Quad("lamp", ((-1.0, 2.0, -1.0), (1.0, 2.0, -1.0), (1.0, 2.0, 1.0), (-1.0, 2.0, 1.0)))
    scene = Settings(
        view=Camera((0.0, 1.0, 4.0), (0.0, 0.2, 0.0)), max_depth=2, quads=(floor, lamp),
        spheres=(Sphere("floor", (0.0, 0.4, 0.0), 0.4),),
        materials=(Material("floor", color=(0.5,) * 3), Material("lamp", "emitter", emission=(5.0,) * 3)),
    )  # fmt: skip
    picture = Picture(SimpleNamespace(device=device))

    def render(samples, **changes):
        for _ in range(samples):
            frame = picture.draw(replace(scene, **changes), (32, 24), 0.0)
        return frame.read()[..., 0].astype("f8")

    truth = (render(1024, seed=5) + render(1024, seed=6)) / 2
    error = {}
    for sampler in ("sobol", "random"):
        pictures = [render(16, sampler=sampler, seed=seed) for seed in (1, 2, 3)]
        error[sampler] = np.mean([(p - truth) ** 2 for p in pictures])
        assert np.mean(pictures) == pytest.approx(truth.mean(), rel=0.02)
    assert error["sobol"] < 0.5 * error["random"], error
