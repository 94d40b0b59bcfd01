"""Layouts: the grid covers what it should, and each rectangle shows what its scene alone would."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.gpu import DeviceContext
from renderer.images.tone_mapping import tonemap
from renderer.pictures import expand_layout, load, open_picture
from renderer.scene.panel_grid import grid
from renderer.scene.scene import ToneMapping

SCENE = """picture = "fractal"
settings = {{ max_iterations = 30, samples = {samples}, palette = "{palette}" }}
tone = {{ ev = {ev} }}
"""


@pytest.fixture
def layout(tmp_path):
    (tmp_path / "a.toml").write_text(SCENE.format(samples=1, palette="sea", ev=0))
    (tmp_path / "b.toml").write_text(SCENE.format(samples=3, palette="ember", ev=1))
    path = tmp_path / "both.toml"
    path.write_text('picture = "layout"\nsettings = { panels = ["a.toml", "b.toml"], columns = 2, gap = 4 }\n')
    return path


def test_grid_fills_the_size_without_overlap(rng):
    for count in range(1, 17):
        size = tuple(int(n) for n in rng.integers(100, 900, 2))
        columns, gap = int(rng.integers(0, 6)), int(rng.integers(0, 9))
        covered = np.zeros(size[::-1], int)
        for x, y, width, height in grid(count, size, columns, gap):
            assert width > 0 and height > 0
            covered[y : y + height, x : x + width] += 1
        assert covered.max() == 1
        assert covered[0, 0] and covered[-1, -1] and (gap or covered.min() == 1)


def test_grid_of_a_tiny_window_still_has_pixels():
    assert all(w >= 1 and h >= 1 for _, _, w, h in grid(9, (1, 1), 0, 6))


def test_each_rectangle_shows_its_scene(gl, layout):
    scene, gpu = load(layout), DeviceContext(gl=gl)
    picture = open_picture(scene, gpu)
    size = (100, 40)
    assert picture.sample_count(scene.settings, size) == 3
    for _ in range(3):
        frame = picture.draw(scene.settings, size, 0.0)
    shown = tonemap(frame, ToneMapping("manual"))
    members = expand_layout(scene)
    assert [member.path.name for member in members] == ["a.toml", "b.toml"]
    for member, (x, y, width, height) in zip(members, grid(2, size, 2, 4), strict=True):
        alone = open_picture(member, gpu)
        for _ in range(member.settings.samples):
            frame = alone.draw(member.settings, (width, height), 0.0)
        assert np.array_equal(shown[y : y + height, x : x + width], tonemap(frame, member.tone)), member.path.name


def test_a_scene_of_another_kind_is_its_own_panel(layout):
    scene = load(layout.parent / "a.toml")
    assert expand_layout(scene) == [scene]


@pytest.mark.parametrize(
    "settings, words",
    [
        ("{}", "the key 'panels' is missing"),
        ("{ panels = [] }", "1 to 16"),
        ('{ panels = ["absent.toml"] }', "there is no"),
        ('{ panels = "a.toml" }', "must be a list"),
        ('{ panels = ["self.toml"] }', "is a layout too"),
        ('{ panels = ["a.toml"], columns = 99 }', "0 to 16"),
    ],
)
def test_mistakes_are_told(layout, settings, words):
    path = layout.parent / "self.toml"
    path.write_text(f'picture = "layout"\nsettings = {settings}\n')
    with pytest.raises(InputError, match=words):
        expand_layout(load(path))
