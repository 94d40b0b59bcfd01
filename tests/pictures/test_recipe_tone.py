"""Recipes hold the tone settings that differ from the defaults of their kind of picture."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.images import write_png
from renderer.pictures import load, make_recipe, picture_class, scene_of_table

TONES = [
    {}, {"exposure": "auto"}, {"exposure": "manual"}, {"curve": "none"}, {"curve": "agx", "ev": 0.5},
    {"exposure": "auto", "curve": "none", "contrast": 1.2},
]  # fmt: skip


def written(path, recipe):
    write_png(path, np.zeros((2, 2, 3), "u1"), recipe)
    return load(path)


@pytest.mark.parametrize("kind", ["raytrace", "fractal"])
@pytest.mark.parametrize("tone", TONES)
def test_a_recipe_gives_the_tone_mapping_again(tmp_path, kind, tone):
    scene = scene_of_table({"picture": kind, "tone": tone}, tmp_path / "a.toml")
    assert written(tmp_path / "a.png", make_recipe(scene, tmp_path)).tone == scene.tone
    assert all(getattr(scene.tone, key) == value for key, value in tone.items())


def test_ray_traced_scenes_are_shown_by_agx(tmp_path):
    assert picture_class("raytrace").tone.curve == "agx" and picture_class("focus").tone.curve == "agx"
    assert {name: load(name).tone.curve for name in ("cornell", "mirrors")} == {"cornell": "none", "mirrors": "none"}


def test_recipes_of_version_1_keep_their_curve(tmp_path):
    """They said what differs from an automatic exposure without a curve, whatever the kind of picture."""
    scene = {"title": "a", "picture": "raytrace", "settings": {}}
    for tone, curve, exposure in (({}, "none", "auto"), ({"curve": "aces", "exposure": "manual"}, "aces", "manual")):
        found = written(tmp_path / "a.png", {"rayfold": 1, "scene": scene | {"tone": tone}}).tone
        assert (found.curve, found.exposure) == (curve, exposure)
    for version in (0, 3, True, "1", None, [1]):
        with pytest.raises(InputError, match="of another version"):
            written(tmp_path / "a.png", {"rayfold": version, "scene": scene})
    with pytest.raises(InputError, match="tone is 4; it must be a table"):
        written(tmp_path / "a.png", {"rayfold": 1, "scene": scene | {"tone": 4}})
