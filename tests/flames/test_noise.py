"""Pictures that end when their noise is low: the estimate against the deviation over seeds, exports, refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from renderer.cli import main
from renderer.formats.images import linear_to_srgb, read_pixels
from renderer.paths import SCENES
from renderer.pictures import flame as flame_picture
from renderer.pictures import load
from renderer.scene.cameras import View2D

SIZE = (96, 72)


@pytest.mark.parametrize("radius", [0, 6])
def test_the_estimate_is_the_deviation_over_seeds(gpu, radius):
    settings, picture = load(SCENES / "anemone.flame").settings, flame_picture.Picture(gpu)
    settings = replace(settings, quality=800.0, estimator_radius=float(radius))

    def shown(frame):
        return linear_to_srgb(frame.read()[..., :3]) / 255.0

    kept = []
    most = 1.8 if radius else 1.35  # parts of unlike counts are also blurred unlike by density estimation
    for seed in range(3):
        picture.restart()
        for k in range(5):
            frame = picture.draw(replace(settings, seed=seed), SIZE, 0.0)
            estimate = picture.noise()
            if estimate is not None:
                kept.append((k, estimate, shown(frame)))
    draws = sorted({k for k, _, _ in kept})
    assert len(draws) >= 2 and kept[0][1] > kept[len(draws) - 1][1]
    for draw in draws:
        images = np.array([image for k, _, image in kept if k == draw])
        error = float(np.sqrt(np.mean(images.var(0, ddof=1))))
        estimates = [estimate for k, estimate, _ in kept if k == draw]
        assert len(estimates) == 3 and all(0.75 < each / error < most for each in estimates), (estimates, error)


def test_exports_end_when_the_noise_is_reached(gpu, tmp_path, capsys):
    out, drawn = tmp_path / "a.png", {}
    common = ["export", str(SCENES / "anemone.flame"), "-o", str(out), "--size", "96x72", "--device", "cpu"]
    for noise in ("5%", "0.5%"):
        assert main([*common, "--noise", noise, "--json"]) == 0
        told, err = capsys.readouterr()
        drawn[noise] = json.loads(told)["samples"]
        assert "estimated noise" in err
    assert drawn["5%"] < drawn["0.5%"]
    assert main(["verify", str(out), "--device", "cpu"]) == 0
    capsys.readouterr()
    assert main([*common, "--noise", "0.01%", "--samples", "3"]) == 3  # not reached with so few samples


@pytest.mark.parametrize(
    ("scene", "more", "told"),
    [
        ("mandelbrot.toml", (), "a fractal picture is not estimated; allowed are flame, flame3d, raytrace"),
        ("anemone.flame", ("--set", "passes=2"), "has 2 passes"),
        ("anemone.flame", ("--tile", "64"), "not together with --tile"),
        ("anemone.flame", ("--farm", "local:1"), "not together with --farm"),
    ],
)
def test_what_has_no_estimate_is_refused(tmp_path, capsys, scene, more, told):
    arguments = ["export", str(SCENES / scene), "-o", str(tmp_path / "a.png"), "--noise", "1%", *more]
    assert main(arguments) == 2 and told in capsys.readouterr().err


def test_a_moved_view_starts_the_estimate_again(gpu):
    settings, picture = load(SCENES / "anemone.flame").settings, flame_picture.Picture(gpu)
    settings = replace(settings, quality=400.0, estimator_radius=0.0)
    picture.draw(settings, (48, 36), 0.0)
    assert picture.noise() is None
    picture.draw(replace(settings, view=replace(settings.view, height=View2D().height)), (48, 36), 0.0)
    assert picture.noise() is None


def test_a_denoised_flame_is_nearer_to_the_long_picture(gpu, tmp_path):
    """With the optional package only: the export of few samples, as it is and denoised, against many samples."""
    pytest.importorskip("pyoidn")
    common = ["export", str(SCENES / "anemone.flame"), "--size", "120x90", "--device", "cpu", "--set", "seed=3"]
    pictures = {}
    for name, more in {"few": ("quality=50",), "clean": ("quality=50", "--denoise"), "many": ("quality=3000",)}.items():
        out = tmp_path / f"{name}.png"
        assert main([*common, "-o", str(out), "--set", *more]) == 0
        pictures[name] = read_pixels(out)[..., :3].astype("f8")
    errors = {name: np.mean((pictures[name] - pictures["many"]) ** 2) for name in ("few", "clean")}
    assert errors["clean"] < 0.6 * errors["few"], errors
    assert main(["verify", str(tmp_path / "clean.png"), "--device", "cpu"]) == 0
