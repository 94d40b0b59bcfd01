"""The picture `laplacian`: its kernels and its fragment pass, edges of scenes and images, mistakes reported."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError, UserError
from renderer.formats.images import write_png
from renderer.gpu import DeviceContext
from renderer.numerics.laplacian import BORDERS
from renderer.paths import SCENES
from renderer.pictures import load, open_picture
from renderer.pictures.laplacian import Picture, Settings, fitted
from tests.numerics.laplacian_reference import laplacian_reference


@pytest.fixture
def file(tmp_path, rng):
    pixels = rng.integers(0, 256, (24, 40, 4), "u1")
    pixels[..., 3] = 255
    write_png(tmp_path / "image.png", pixels)
    return str(tmp_path / "image.png")


def test_samples_are_those_of_the_source_unless_set_and_an_image_has_one(shared_gl, file):
    picture = Picture(DeviceContext(gl=shared_gl))
    scene, image = load(SCENES / "laplacian.toml").settings, Settings(source=file, samples=5)
    own = load(Path(scene.source)).settings.samples
    counts = [picture.sample_count(replace(scene, samples=samples), (64, 48)) for samples in (0, 5)]
    assert counts == [own, 5] and picture.sample_count(image, (64, 48)) == 1


QUICK = ("clamp", "wrap")


@pytest.mark.parametrize("border", [pytest.param(b, marks=() if b in QUICK else pytest.mark.slow) for b in BORDERS])
def test_pass_and_kernels_show_the_same_edges(shared_gl, file, border):
    gpu = DeviceContext(gl=shared_gl)
    picture = Picture(gpu)
    settings = Settings(source=file, neighbors=8, border=border, gain=0.5)
    size = (40, 24)
    wanted = picture.draw(replace(settings, method="naive"), size, 0.0).read()
    picture.open_source(file)
    source = fitted(picture._pixels, size)
    by_hand = np.abs(0.5 * laplacian_reference(source, 8, border)[..., :3])
    assert np.allclose(wanted[..., :3], by_hand, atol=1e-5) and (wanted[..., 3] == 1).all()
    for method in ("auto", "shared_tiles", "register_rows", "gl"):
        assert np.allclose(picture.draw(replace(settings, method=method), size, 0.0).read(), wanted, atol=2e-5), method


def test_scenes_show_edges_of_other_pictures(shared_gl):
    for name in ("laplacian.toml", "laplacian_rays.toml"):
        scene = load(SCENES / name)
        gpu = DeviceContext(gl=shared_gl)
        picture = open_picture(scene, gpu)
        frame = picture.draw(scene.settings, (64, 48), 0.0).read()
        other = load(Path(scene.settings.source))
        source = open_picture(other, gpu).draw(other.settings, (64, 48), 0.0).read()
        edges = (
            scene.settings.gain * laplacian_reference(source, scene.settings.neighbors, scene.settings.border)[..., :3]
        )
        wanted = edges / 2 + 0.2140411 if scene.settings.show_sign else np.abs(edges)
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
    with pytest.raises(InputError, match="another kind"):
        picture.draw(Settings(source=str(SCENES / "laplacian.toml")), (8, 8), 0.0)
    with pytest.raises(InputError, match="missing.png"):
        picture.draw(Settings(source=str(tmp_path / "missing.png")), (8, 8), 0.0)
    with pytest.raises(UserError, match="drawn whole, without --tile"):
        picture.check_tiles(load(SCENES / "laplacian.toml"), (8, 8))
