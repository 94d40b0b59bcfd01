"""What an export says beside its picture: a noisy still names the denoiser; a mistake names key, file and remedy."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer import cdollar
from renderer.cli import main
from renderer.errors import UserError
from renderer.export.options import ExportOptions
from renderer.export.run import print_denoise_hint
from renderer.formats.images import write_png
from renderer.images.metrics import noise_level
from renderer.images.tone_mapping import ExposureMeter
from renderer.pictures import load, make_recipe
from renderer.scene.scene import ToneMapping


@pytest.mark.parametrize("sigma", [0.005, 0.02, 0.1])
def test_the_noise_of_slopes_edges_and_stripes_is_estimated(rng, sigma):
    y, x = np.mgrid[:200, :300] / 300
    clean = 0.2 + 0.5 * x + 0.3 * y + 0.4 * (x > 0.4) * (y > 0.2) + 0.2 * (np.abs(y - 0.3) < 0.03)
    assert noise_level(clean) < 1e-9
    assert noise_level(clean + rng.normal(0, sigma, clean.shape)) == pytest.approx(sigma, rel=0.06)
    assert noise_level(np.zeros((2, 50))) == 0


@pytest.mark.parametrize("noise, option, told", [(0.1, {}, True), (0.005, {}, False), (0.1, {"denoise": True}, False)])
def test_a_noisy_still_names_the_denoiser(rng, capsys, noise, option, told):
    linear = np.ones((90, 120, 4), "f4")
    linear[..., :3] = np.clip(0.6 + rng.normal(0, noise, (90, 120, 1)), 0, 1) ** 2
    scene = replace(load("cornell"), tone=ToneMapping("manual"))
    options = ExportOptions(Path("cornell"), Path("a.png"), **option)
    plan = SimpleNamespace(scene=scene, options=options, size=(120, 90), output=Path("a.png"))
    print_denoise_hint(plan, SimpleNamespace(linear=linear, meter=ExposureMeter()))
    err = capsys.readouterr().err
    assert (" % of white: --denoise filters it" in err) == told and bool(err) == told


def told(capsys, *words):
    assert main(list(map(str, words))) == 2
    return capsys.readouterr().err


def test_mistakes_name_what_is_wrong(tmp_path, capsys):
    assert ".exr holds linear radiance" in told(capsys, "export", "julia", "-o", tmp_path / "q.exr", "--transfer", "pq")
    wrong = told(capsys, "export", "julia", "-o", tmp_path / "q.png", "--set", "tone.temperature=300")
    assert "--set tone.temperature is 300.0; it must be 1000.0 to 15000.0" in wrong
    (tmp_path / "file").write_text("")
    assert f"-o {tmp_path / 'file'}: is a file; it must be a folder" in told(capsys, "gallery", "-o", tmp_path / "file")
    with pytest.raises(UserError, match='target is "metal"; allowed are numpy, glsl, cuda, opencl'):
        cdollar.function("float main(float x) { return x + 1; }", target="metal")(3.0)


def test_a_recipe_of_a_pq_picture_says_how_to_get_pq_again(tmp_path):
    for name, facts in (("a", {"transfer": "pq"}), ("b", {})):
        write_png(tmp_path / f"{name}.png", np.zeros((2, 2, 3), "u1"), make_recipe(load("julia"), tmp_path, **facts))
    assert "--transfer pq --bit-depth 16" in load(tmp_path / "a.png").notes[0] and not load(tmp_path / "b.png").notes
