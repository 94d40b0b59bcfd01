"""Denoised pictures are nearer to the converged picture than noisy ones; errors where none can be made."""

import sys

import numpy as np
import pytest

from renderer import cli
from renderer.errors import UnavailableError
from renderer.formats.images import read_exr
from renderer.images import denoise

SCENE = """
picture = "raytrace"
size = [96, 64]
[settings]
max_depth = 3
horizon = [0.6, 0.7, 0.8]
view = { position = [0.0, 1.0, 4.0], target = [0.0, 0.3, 0.0] }
[[settings.materials]]
name = "red"
color = [0.8, 0.2, 0.1]
[[settings.materials]]
name = "floor"
kind = "checker"
[[settings.spheres]]
material = "red"
center = [0.0, 0.5, 0.0]
radius = 0.5
[[settings.quads]]
material = "floor"
corners = [[-4.0, 0.0, 4.0], [4.0, 0.0, 4.0], [4.0, 0.0, -4.0], [-4.0, 0.0, -4.0]]
"""


def export(tmp_path, *more, name="out.exr"):
    (tmp_path / "scene.toml").write_text(SCENE)
    arguments = ["export", str(tmp_path / "scene.toml"), "-o", str(tmp_path / name), "--device", "cpu", *more]
    return cli.main(arguments)


@pytest.mark.slow
def test_denoised_pictures_are_nearer_to_the_truth(tmp_path):
    pytest.importorskip("pyoidn")
    pictures = []
    for number, more in enumerate((["--samples", "256"], ["--samples", "2"], ["--samples", "2", "--denoise"])):
        assert export(tmp_path, *more, name=f"{number}.exr") == 0
        pictures.append(read_exr(tmp_path / f"{number}.exr"))
    truth, noisy, clean = (picture[..., :3].astype("f8") for picture in pictures)
    assert ((clean - truth) ** 2).mean() < 0.4 * ((noisy - truth) ** 2).mean()
    assert clean.mean() == pytest.approx(truth.mean(), rel=0.02)


def test_high_dynamic_range_and_alpha_are_kept(rng):
    pytest.importorskip("pyoidn")
    linear = np.full((32, 48, 4), 100.0, "f4")
    linear[..., 3] = rng.random((32, 48))
    guide = np.full((32, 48, 3), 0.5, "f4")
    clean = denoise.denoise(linear, albedo=guide, normal=guide)
    assert np.array_equal(clean[..., 3], linear[..., 3]) and abs(clean[..., :3].mean() - 100) < 2


def test_a_picture_without_guides_is_denoised_by_color_alone(rng, monkeypatch):
    """`focus` has no layers; the filter must not be told that guides are clean where there are none."""
    seen = {}
    monkeypatch.setattr(denoise, "_denoised", lambda color, **options: seen.update(options) or color * 2)
    linear = rng.random((4, 6, 4), "f4")
    assert np.array_equal(denoise.denoise(linear), linear * (2, 2, 2, 1)) and seen == {"hdr": True, "clean_aux": False}


def test_guides_lose_their_own_noise_before_they_guide(rng):
    """An even gray picture with a guide of noise: through a clean guide no grain of it comes back."""
    pytest.importorskip("pyoidn")
    noise = rng.random((64, 64, 3), "f4")
    assert denoise._prefiltered("albedo", noise).std() < 0.25 * noise.std()
    assert np.abs(denoise._prefiltered("normal", np.full((64, 64, 3), 0.5, "f4")) - 0.5).max() < 0.05


def test_a_missing_denoiser_names_its_package(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyoidn", None)
    with pytest.raises(UnavailableError, match="install pyoidn"):
        denoise.check_installed()
    assert export(tmp_path, "--denoise") == 4 and "install pyoidn" in capsys.readouterr().err


def test_pictures_without_albedo_are_refused(tmp_path, capsys):
    pytest.importorskip("pyoidn")
    assert export(tmp_path, "--denoise", "--size", "8192x4096") == 2
    assert "8192 x 4096 pixels are more than" in capsys.readouterr().err
    assert export(tmp_path, "--denoise", "--farm", "local:1") == 2
    assert "not together with --farm" in capsys.readouterr().err
