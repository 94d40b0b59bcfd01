"""The Laplacian filter: every way, type, border and neighbourhood against a NumPy twin; the picture; mistakes told."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError, UserError
from renderer.formats.images import write_png
from renderer.gpu import DeviceContext
from renderer.paths import SCENES
from renderer.pictures import load, open_picture
from renderer.pictures.laplacian import BORDERS, Picture, Settings, filtering, fitted, laplacian

PADS = {"clamp": "edge", "mirror": "symmetric", "wrap": "wrap", "zero": "constant"}
# Rows that are multiples of 16 bytes take the path by words in "rows"; the others that of drifting words, or "plain" in
# images of a few pixels.
FLOATS = [(37, 53), (16, 64), (19, 22, 3), (9, 16, 4), (1, 1), (7, 1), (2, 2, 3), (11, 20, 3), (10, 18, 2), (3, 8, 5)]
BYTES = [(33, 64), (21, 37, 3), (20, 32, 4), (1, 5, 3), (40, 1), (13, 48, 3), (14, 24, 2), (6, 32, 6)]
CASES = [("f4", shape) for shape in FLOATS] + [("u1", shape) for shape in BYTES]


def twin(image: np.ndarray, neighbours: int, border: str) -> np.ndarray:
    """The sum of the neighbours minus their number times the pixel, in float64 or int."""
    wide = image.astype("f8" if image.dtype == np.float32 else "i4")
    padded = np.pad(wide, [(1, 1), (1, 1)] + [(0, 0)] * (image.ndim - 2), PADS[border])
    height, width = image.shape[:2]
    out = -neighbours * wide
    for dy in (-1, 0, 1):
        for dx in (-1, 0, 1):
            if (dy or dx) and (neighbours == 8 or dy == 0 or dx == 0):
                out = out + padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width]
    return out if image.dtype == np.float32 else np.clip(out, 0, 255).astype("u1")


def filtered(device, image, *words) -> np.ndarray:
    out = device.buffer(image.shape, image.dtype).fill(0xFF)
    laplacian(device, device.buffer(image.shape, image.dtype).write(image), out, *words)
    return out.read()


def some_image(rng, dtype, shape) -> np.ndarray:
    return rng.standard_normal(shape).astype("f4") if dtype == "f4" else rng.integers(0, 256, shape, "u1")


@pytest.mark.parametrize("way", ["plain", "tiles", "rows", "strips"])
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_every_way_equals_the_twin(device, rng, way, dtype):
    fresh = (dtype, tuple(int(n) for n in rng.integers(1, 70, 2)))
    for number, (kind, shape) in enumerate([*CASES, fresh]):
        if kind != dtype:
            continue
        image = some_image(rng, dtype, shape)
        border = list(BORDERS)[number % 4]
        neighbours = (4, 8)[number // 2 % 2]
        found, wanted = filtered(device, image, neighbours, border, way), twin(image, neighbours, border)
        same = np.array_equal(found, wanted) if dtype == "u1" else np.allclose(found, wanted, rtol=0, atol=2e-5)
        assert same, (shape, neighbours, border)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f4", "u1"])
def test_rows_of_every_width(device, rng, dtype):
    """Whatever a row's length is to 16 bytes."""
    for width in range(1, 71):
        border, neighbours = list(BORDERS)[width % 4], (4, 8)[width // 4 % 2]
        image = some_image(rng, dtype, (int(rng.integers(1, 24)), width, (1, 3, 2, 1, 5)[width % 5]))
        found, wanted = filtered(device, image, neighbours, border, "rows"), twin(image, neighbours, border)
        same = np.array_equal(found, wanted) if dtype == "u1" else np.allclose(found, wanted, rtol=0, atol=2e-5)
        assert same, (image.shape, neighbours, border)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_every_border_and_neighbourhood(device, rng, border, channels):
    """Black and white alone, so that every sum of bytes takes its lowest and highest values."""
    image = 255 * rng.integers(0, 2, (18, 48, channels), "u1")
    image[4:8, 20:30] = rng.integers(0, 256)
    for neighbours in (4, 8):
        wanted = twin(image, neighbours, border)
        for way in ("best", "rows"):
            assert np.array_equal(filtered(device, image, neighbours, border, way), wanted), way


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
    launch = filtering(device, device.buffer(image.shape).write(image), out)
    launch()
    first = out.read()
    launch()
    assert np.array_equal(out.read(), first)


def test_mistakes_are_sentences(device):
    image = device.buffer((4, 5))
    for words, told in (
        ((4, "clamp", "fast"), "way is 'fast'"),
        ((6, "clamp"), "allowed are 4, 8"),
        ((4, "none"), "border"),
    ):
        with pytest.raises(UserError, match=told):
            laplacian(device, image, device.buffer((4, 5)), *words)
    with pytest.raises(UserError, match="of one dtype"):
        laplacian(device, image, device.buffer((5, 4)))
    with pytest.raises(UserError, match="float32 and uint8"):
        laplacian(device, device.buffer((4, 5), "f8"), device.buffer((4, 5), "f8"))


# --------------------------------------------------------------------------------------------------------- the picture
@pytest.fixture
def file(tmp_path, rng):
    pixels = rng.integers(0, 256, (24, 40, 4), "u1")
    pixels[..., 3] = 255
    write_png(tmp_path / "image.png", pixels)
    return str(tmp_path / "image.png")


@pytest.mark.parametrize("border", BORDERS)
def test_pass_and_kernels_show_the_same_edges(shared_gl, file, border):
    gpu = DeviceContext(gl=shared_gl)
    picture = Picture(gpu)
    settings = Settings(of=file, neighbours=8, border=border, gain=0.5)
    size = (40, 24)
    wanted = picture.draw(replace(settings, way="plain"), size, 0.0).read()
    source = fitted(picture._open(file)[1], size)
    by_hand = np.abs(0.5 * twin(source, 8, border)[..., :3])
    assert np.allclose(wanted[..., :3], by_hand, atol=1e-5) and (wanted[..., 3] == 1).all()
    for way in ("best", "tiles", "rows", "pass"):
        assert np.allclose(picture.draw(replace(settings, way=way), size, 0.0).read(), wanted, atol=2e-5), way


def test_scenes_show_edges_of_other_pictures(shared_gl):
    for name in ("laplacian.toml", "laplacian_rays.toml"):
        scene = load(SCENES / name)
        gpu = DeviceContext(gl=shared_gl)
        picture = open_picture(scene, gpu)
        frame = picture.draw(scene.settings, (64, 48), 0.0).read()
        other = load(Path(scene.settings.of))
        source = open_picture(other, gpu).draw(other.settings, (64, 48), 0.0).read()
        edges = scene.settings.gain * twin(source, scene.settings.neighbours, scene.settings.border)[..., :3]
        wanted = edges / 2 + 0.2140411 if scene.settings.is_signed else np.abs(edges)
        assert np.allclose(frame[..., :3], wanted, atol=1e-4), name
        assert wanted.std() > 0.01 and picture.sample_count(scene.settings, (64, 48)) >= 1
        assert not np.array_equal(picture.draw(scene.settings, (64, 48), 0.0).read(), frame), "one more sample"
        picture.restart()
        assert np.array_equal(picture.draw(scene.settings, (64, 48), 0.0).read(), frame)


def test_images_are_fitted_without_distortion():
    pixels = np.ones((10, 20, 4), "f4")
    out = fitted(pixels, (100, 100))
    assert out[25:75, :, 0].all() and not out[:25, :, 0].any() and not out[75:, :, 0].any()


def test_sources_that_cannot_be_filtered_are_told(shared_gl, file, tmp_path):
    picture = Picture(DeviceContext(gl=shared_gl))
    with pytest.raises(InputError, match="of"):
        picture.draw(Settings(), (8, 8), 0.0)
    with pytest.raises(InputError, match="another kind"):
        picture.draw(Settings(of=str(SCENES / "laplacian.toml")), (8, 8), 0.0)
    with pytest.raises(InputError, match="missing.png"):
        picture.draw(Settings(of=str(tmp_path / "missing.png")), (8, 8), 0.0)
    with pytest.raises(UserError, match="tiles"):
        picture.draw(Settings(of=file), (8, 8), 0.0, tile=(0, 0, 4, 4))
