"""The demo picture: its panels tile the picture, name scenes that come along, and say how fast they were drawn."""

import json

import numpy as np
import pytest

from renderer import cli
from renderer.export import demo
from renderer.formats.images import draw_text, read_pixels
from renderer.paths import find_input
from renderer.pictures import load, picture_class


def test_panels_cover_the_picture_without_overlap():
    covered = np.zeros(demo.SIZE[::-1], int)
    for panel in demo.PANELS:
        x, y, width, height = panel.rectangle
        covered[y : y + height, x : x + width] += 1
        assert find_input(panel.scene).exists()
        assert panel.view in picture_class(load(find_input(panel.scene)).picture).view_names()
    assert covered.max() == 1 and covered.mean() > 0.97


def test_the_picture_and_its_rates(tmp_path, monkeypatch, capsys):
    small = [
        demo.DemoPanel("mandelbrot", "A pass", (0, 0, 40, 56)),
        demo.DemoPanel("mirrors", "Stencil", (44, 0, 30, 56), 1, "stencil", 1),
    ]
    monkeypatch.setattr(demo, "PANELS", small)
    monkeypatch.setattr(demo, "SIZE", (80, 60))
    assert cli.main(["demo", "-o", str(tmp_path / "demo.png"), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [row["scene"] for row in answer["panels"]] == ["mandelbrot", "mirrors"]
    assert all(row["draws_per_second"] > 0 and row["device"] for row in answer["panels"])
    pixels = read_pixels(tmp_path / "demo.png")
    assert pixels.shape == (60, 80, 4) and pixels[:30, :40, :3].std() > 10 and pixels[:30, 44:74, :3].std() > 10
    assert cli.main(["demo", "-o", str(tmp_path / "demo.png")]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == str(tmp_path / "demo.png") and shown.err.count("draws a second on") == 2


@pytest.mark.parametrize("text", ["Rays", "0.843 draws a second"])
def test_text_is_drawn_where_it_should_be(text):
    pixels = np.zeros((30, 200, 3), "u1")
    draw_text(pixels, (10, 5), text, (255, 128, 0), 15)
    rows, columns = np.nonzero(pixels.any(axis=2))
    assert 5 <= rows.min() and rows.max() < 25 and 9 <= columns.min() < 14 and len(rows) > 20
    assert pixels[..., 2].max() == 0 and pixels[..., 0].max() > 200
