"""Loops and sequences against flam3-genome; the artist's API and the ten lines of its guide."""

import os
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

import renderer
from renderer import flames
from renderer.errors import UserError
from renderer.flames import edit, evolve
from renderer.formats.images import read_pixels
from renderer.paths import ROOT
from tests.flames.games import parse_flames

TWO = """<flames><flame name="a" time="0" size="40 30" scale="12" quality="3">
<xform weight="1" color="0" linear="1" coefs=".5 .2 -.2 .5 .4 .2"/>
<xform weight="1" color="1" animate="0" swirl="1" coefs=".5 0 0 .5 -.5 .3"/>
<palette count="2" format="RGB">FFFFFF80FF20</palette></flame>
<flame name="b" time="1" size="40 30" scale="20" quality="3">
<xform weight="1" color="0" linear="1" coefs=".6 -.3 .3 .6 .1 .5"/>
<xform weight="2" color="1" julia="1" coefs=".7 0 0 .7 -.5 .3"/>
<xform weight="0.5" color="1" bubble="1" coefs=".2 0 0 .7 .1 .3"/>
<palette count="2" format="RGB">FF00FF80FF20</palette></flame></flames>"""


@pytest.mark.skipif(shutil.which("flam3-genome") is None, reason="flam3 is not installed here")
@pytest.mark.parametrize(("kind", "stagger"), [("log", 0.0), ("log", 0.6), ("linear", 0.3), ("old", 0.0)])
def test_a_sequence_is_that_of_flam3_genome(tmp_path, kind, stagger):
    path = tmp_path / "two.flame"
    path.write_text(TWO.replace(" size=", f' interpolation_type="{kind}" size='))
    env = os.environ | {"sequence": str(path), "nframes": "5", "seed": "1", "stagger": str(stagger)}
    wanted, _ = parse_flames(
        subprocess.run(["flam3-genome"], env=env, capture_output=True, check=True, text=True).stdout
    )
    found = flames.sequence(flames.read(path), 5, stagger=stagger)
    assert len(found) == len(wanted) == 16 and [key.time for key in found] == list(range(16))
    for ours, theirs in zip(found, wanted, strict=True):
        assert np.isclose(ours.scale, theirs.scale, rtol=1e-4) and ours.time == theirs.time
        for k, x in enumerate(theirs.flame.xforms):
            if k >= len(ours.flame.xforms):
                assert x.weight == 0  # flam3-genome pads the loops too
                continue
            mine = ours.flame.xforms[k]
            assert np.allclose(mine.affine, x.affine, atol=2e-5), (ours.time, k, mine.affine, x.affine)
            assert np.isclose(mine.weight, x.weight, atol=1e-5)


def test_a_loop_closes_and_leaves_out_what_does_not_animate():
    one, _ = parse_flames(TWO)[0]
    frames = flames.loop(one, 8)
    assert np.allclose(flames.rotated(frames[7], 45.0).flame.xforms[0].affine, one.flame.xforms[0].affine)
    assert all(key.flame.xforms[1] == one.flame.xforms[1] for key in frames)
    with pytest.raises(UserError, match="frames is 0"):
        flames.loop(one, 0)
    with pytest.raises(UserError, match="frames is"):
        flames.sequence([one] * 10, 20_000)


def test_children_and_mutants_are_of_their_parents_and_seed(tmp_path):
    one, two = parse_flames(TWO)[0]
    children = [flames.breed(one, two, seed) for seed in range(12)]
    parents = {(x.affine, tuple(x.variations)) for key in (one, two) for x in key.flame.xforms}
    assert all((x.affine, tuple(x.variations)) in parents for key in children for x in key.flame.xforms)
    assert flames.breed(one, two, 3) == children[3] and len({len(key.flame.xforms) for key in children}) > 1
    assert flames.mutate(one, 5, "weights").flame.xforms != one.flame.xforms
    with pytest.raises(UserError, match="kind is 'magic'"):
        flames.mutate(one, 5, "magic")
    star = flames.apply(one, evolve.add_symmetry, 5)
    assert len(star.flame.xforms) == len(one.flame.xforms) + 4
    flames.write(tmp_path / "star.flame", [star])
    (again,) = flames.read(tmp_path / "star.flame")
    assert again == star


def test_a_child_without_weight_is_its_first_parent():
    """A flame needs a positive sum of weights; one xform may have none, and small weights are weights."""
    one, two = parse_flames(TWO)[0]
    for weight, bred in ((0.0, False), (0.25, True)):
        parents = [
            replace(key, flame=replace(key.flame, xforms=tuple(replace(x, weight=weight) for x in key.flame.xforms)))
            for key in (one, two)
        ]
        children = [flames.breed(*parents, seed) for seed in range(4)]
        assert [child is parents[0] for child in children] == [not bred] * 4


def test_a_flame_is_drawn_without_a_file(gpu):
    one, _ = parse_flames(TWO)[0]
    small = flames.apply(one, edit.with_variation, 0, "swirl", 0.2)
    image = renderer.render(small, size=(40, 30), device="cpu", quality=4.0)
    assert image.shape == (30, 40, 4) and image[..., :3].max() > 0.1
    assert np.array_equal(image, renderer.render(replace(small, time=3.0), size=(40, 30), device="cpu", quality=4.0))


def test_the_ten_lines_of_the_guide_run(gpu, tmp_path, monkeypatch):
    guide = (ROOT / "assets" / "guides" / "flames.md").read_text(encoding="utf-8")
    (block,) = [text for text in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "flames.read" in text]
    assert len([line for line in block.splitlines() if line.strip()]) <= 12
    (tmp_path / "pack.flame").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "flames.md", "exec"), {})
    assert read_pixels(tmp_path / "child.png").shape[:2] == (240, 320)
    assert len(list(tmp_path.glob("loop_*.png"))) == 4
    assert len(flames.read(tmp_path / "film.flame")) == 61


def test_bundled_flames_and_scenes_are_key_frames(tmp_path):
    (key,) = flames.read("anemone")
    scene = renderer.load("anemone")
    assert key.size == scene.size and key.view == scene.settings.view
    flames.write(tmp_path / "one.flame", key)
    flames.write(tmp_path / "two.flame", [scene, key])
    assert flames.read(tmp_path / "one.flame") == [key]
    first, second = flames.read(tmp_path / "two.flame")
    assert second == key and first.flame == key.flame and first.view == key.view and first.size == key.size
    with pytest.raises(renderer.UserError, match="takes key frames and scenes of flames, not a raytrace scene"):
        flames.write(tmp_path / "x.flame", renderer.load("cornell"))
    with pytest.raises(renderer.UserError, match="takes key frames and scenes of flames, not Settings"):
        flames.write(tmp_path / "x.flame", scene.settings)
    with pytest.raises(renderer.InputError, match="^cornell: No such file"):
        flames.read("cornell")
    with pytest.raises(renderer.UserError, match="^unknown variation 'nope'; the nearest known is"):
        flames.Xform(variations={"nope": 1.0})
