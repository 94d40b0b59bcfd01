"""The Laplacian filter: every method, type, border and stencil against a NumPy reference."""

import numpy as np
import pytest

from renderer.errors import UserError
from renderer.numerics.laplacian import BORDERS, bind_laplacian
from tests.numerics.laplacian_reference import laplacian_reference

# Rows of multiples of 16 bytes and others; images of a few pixels, which register_rows leaves to naive.
FLOATS = [(37, 53), (16, 64), (19, 22, 3), (9, 16, 4), (1, 1), (7, 1), (2, 2, 3), (11, 20, 3), (10, 18, 2), (3, 8, 5)]
BYTES = [(33, 64), (21, 37, 3), (20, 32, 4), (1, 5, 3), (40, 1), (13, 48, 3), (14, 24, 2), (6, 32, 6)]
CASES = [("f4", shape) for shape in FLOATS] + [("u1", shape) for shape in BYTES]


def laplacian(*arguments, **options):
    bind_laplacian(*arguments, **options)()


def filtered(device, image, *words) -> np.ndarray:
    out = device.buffer(image.shape, image.dtype).fill(0xFF)
    laplacian(device, device.buffer(image.shape, image.dtype).write(image), out, *words)
    return out.read()


def some_image(rng, dtype, shape) -> np.ndarray:
    return rng.standard_normal(shape).astype("f4") if dtype == "f4" else rng.integers(0, 256, shape, "u1")


@pytest.mark.parametrize("method", ["naive", "shared_tiles", "register_rows", "cpu_rows"])
@pytest.mark.parametrize(
    ("dtype", "step"), [("f4", 3), *(pytest.param(dtype, 1, marks=pytest.mark.slow) for dtype in ("f4", "u1"))]
)
def test_every_way_equals_the_laplacian_reference(device, rng, method, dtype, step):
    """Each case is a program; every third case has every border and both stencils."""
    fresh = (dtype, tuple(int(n) for n in rng.integers(1, 70, 2)))
    for number, (kind, shape) in enumerate([*CASES, fresh]):
        if kind != dtype or number % step:
            continue
        image = some_image(rng, dtype, shape)
        border = list(BORDERS)[number % 4]
        neighbors = (4, 8)[number // 2 % 2]
        found, wanted = (
            filtered(device, image, neighbors, border, method),
            laplacian_reference(image, neighbors, border),
        )
        same = np.array_equal(found, wanted) if dtype == "u1" else np.allclose(found, wanted, rtol=0, atol=2e-5)
        assert same, (shape, neighbors, border)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_rows_of_every_width(device, rng, dtype):
    """Whatever remainder a row's length leaves modulo 16 bytes."""
    for width in range(1, 71):
        border, neighbors = list(BORDERS)[width % 4], (4, 8)[width // 4 % 2]
        image = some_image(rng, dtype, (int(rng.integers(1, 24)), width, (1, 3, 2, 1, 5)[width % 5]))
        found, wanted = (
            filtered(device, image, neighbors, border, "register_rows"),
            laplacian_reference(image, neighbors, border),
        )
        same = np.array_equal(found, wanted) if dtype == "u1" else np.allclose(found, wanted, rtol=0, atol=2e-5)
        assert same, (image.shape, neighbors, border)


# The quick tests take each border and each number of channels once.
@pytest.mark.parametrize(
    ("channels", "border"),
    [
        pytest.param(channels, border, marks=[] if list(BORDERS)[channels - 1] == border else pytest.mark.slow)
        for channels in (1, 2, 3, 4)
        for border in BORDERS
    ],
)
def test_every_border_and_stencil(device, rng, border, channels):
    """Black and white alone, so that every sum of bytes takes its lowest and highest values."""
    image = 255 * rng.integers(0, 2, (18, 48, channels), "u1")
    image[4:8, 20:30] = rng.integers(0, 256)
    is_quick = list(BORDERS)[channels - 1] == border  # one stencil by each method, the other one with more channels
    for neighbors in (4, 8):
        wanted = laplacian_reference(image, neighbors, border)
        for method in ("auto", "register_rows"):
            if is_quick and ((neighbors == 8) == (method == "auto")) != bool(channels // 2 % 2):
                continue
            assert np.array_equal(filtered(device, image, neighbors, border, method), wanted), method


def test_a_plane_has_no_edges_and_a_point_shows_the_weights(device):
    y, x = np.mgrid[:16, :32].astype("f4")
    assert not filtered(device, 3 * x + 5 * y, 8, "clamp")[1:-1, 1:-1].any()
    point = np.zeros((16, 32), "f4")
    point[7, 9] = 1
    assert filtered(device, point, 8, "zero")[6:9, 8:11].tolist() == [[1, 1, 1], [1, -8, 1], [1, 1, 1]]
    assert filtered(device, point, 4, "zero")[6:9, 8:11].tolist() == [[0, 1, 0], [1, -4, 1], [0, 1, 0]]


def test_launch_repeats(device, rng):
    image = some_image(rng, "f4", (64, 64))
    out = device.buffer(image.shape)
    launch = bind_laplacian(device, device.buffer(image.shape).write(image), out)
    launch()
    first = out.read()
    launch()
    assert np.array_equal(out.read(), first)


def test_mistakes_are_sentences(device):
    image = device.buffer((4, 5))
    for words, message in (
        ((4, "clamp", "fast"), "method is 'fast'"),
        ((6, "clamp"), "allowed are 4, 8"),
        ((4, "none"), "border"),
    ):
        with pytest.raises(UserError, match=message):
            laplacian(device, image, device.buffer((4, 5)), *words)
    with pytest.raises(UserError, match="of one dtype"):
        laplacian(device, image, device.buffer((5, 4)))
    with pytest.raises(UserError, match="float32 and uint8"):
        laplacian(device, device.buffer((4, 5), "f8"), device.buffer((4, 5), "f8"))
