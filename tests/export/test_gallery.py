"""`rayfold gallery`: what it draws has recipes that draw the same again, and what is done is not drawn again."""

import json
import sys

import numpy as np

from renderer.cli import main
from renderer.export import gallery as command
from renderer.export.gallery import PRINT_SIDE, SCENES, WEB_SIDE
from renderer.export.plan import Drawn
from renderer.formats.images import read_recipe, read_samples, write_png
from renderer.images import denoise
from renderer.pictures import load, make_recipe


def gallery(capsys, *words, code=0):
    assert main(["gallery", *map(str, words)]) == code
    printed = capsys.readouterr()
    return json.loads(printed.out)["pictures"] if "--json" in words else printed


def test_pictures_are_drawn_once_and_verified(tmp_path, capsys):
    words = ("mandelbrot", "julia", "-o", tmp_path / "g", "--samples", 1, "--device", "cpu", "--json")
    first = gallery(capsys, *words)
    assert [row["scene"] for row in first] == ["mandelbrot", "julia"] and all(row["seconds"] > 0 for row in first)
    samples = read_samples(tmp_path / "g" / "julia.png")
    assert max(samples.shape[:2]) == WEB_SIDE and read_recipe(tmp_path / "g" / "julia.png")["samples"] == 1
    again = gallery(capsys, *words)
    assert [row["device"] for row in again] == ["none: it was done"] * 2
    assert [row["digest"] for row in again] == [row["digest"] for row in first]
    (tmp_path / "g" / "julia.png").write_bytes(b"")
    assert [row["seconds"] > 0 for row in gallery(capsys, *words)] == [False, True]
    assert main(["verify", str(tmp_path / "g" / "julia.png"), "--device", "cpu"]) == 0


def test_what_has_guides_is_denoised_and_drawn_anew_where_it_was_not(tmp_path, monkeypatch, capsys):
    drawn = []

    def write(plan, *_, **__):
        """Writes a picture of the plan's recipe as render.write() does, of one pixel."""
        recipe = make_recipe(plan.scene, plan.output.parent, size=plan.size, samples=7, time=plan.time)
        recipe |= {"denoise": True} if plan.job().denoise else {}
        write_png(plan.output, np.zeros((1, 1, 3), "u1"), recipe)
        assert max(plan.size) == PRINT_SIDE
        drawn.append((plan.scene.path.stem, plan.job().denoise))
        return Drawn(7, "none", True, {})

    monkeypatch.setattr(command, "carry_out", write)
    monkeypatch.setattr(denoise, "check_installed", lambda: None)
    options = ["cornell", "mandelbrot", "-o", tmp_path, "--print"]
    for more, found in (
        (["--denoise"], [("cornell", True), ("mandelbrot", False)]),
        (["--denoise"], []),
        ([], [("cornell", False)]),
    ):
        drawn.clear()
        told = gallery(capsys, *options, *more).err
        assert drawn == found and ("a fractal picture is not denoised" in told) == bool(more)
    gallery(capsys, "focus", *options[2:], "--denoise")
    assert drawn[-1] == ("focus", True)


def test_without_the_denoiser_its_package_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyoidn", None)
    assert "install pyoidn" in gallery(capsys, "cornell", "-o", tmp_path, "--denoise", code=4).err


def test_every_scene_of_it_is_bundled_and_has_a_shape():
    assert len(SCENES) == len(set(SCENES)) == 20
    for name in SCENES:
        width, height = load(name).size or (16, 9)
        assert 0.5 <= width / height <= 2.5, name


def test_a_scene_that_is_not_in_it_is_named(capsys):
    assert "no scene 'nothing' in it; allowed are jewels" in gallery(capsys, "nothing", code=2).err


def test_a_folder_that_cannot_be_made_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert "cannot be made" in gallery(capsys, "julia", "-o", tmp_path / "file" / "g", code=2).err
