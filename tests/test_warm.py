"""`rayfold warm`: what it draws, what it says, and what later commands find in the cache."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from renderer.cli import main
from renderer.export import render, warm
from renderer.formats.mesh import load_mesh, read_mesh
from renderer.pictures import load
from renderer.system.trial import Trial


@pytest.fixture
def drawn(monkeypatch):
    """The inputs that children would draw; the one named `bad` fails."""
    inputs = []

    def run(function, path, device, seconds):
        assert function == "renderer.export.warm:draw_once"
        inputs.append(path)
        return Trial(None, "it cannot" if "mandelbrot" in path else "")

    monkeypatch.setattr(warm, "run_trial", run)
    return inputs


def test_all_bundled_scenes_and_two_meshes_are_drawn(drawn, capsys):
    assert main(["warm", "--json"]) == 3  # one of them cannot be drawn
    answer = json.loads(capsys.readouterr().out)
    assert len(drawn) == len(answer["inputs"]) == len(warm.bundled_inputs()) + len(warm.MESHES)
    assert {"cornell.toml", "fern.toml", "lantern.flame"} <= {row["input"] for row in answer["inputs"]}
    failed = {row["input"] for row in answer["inputs"] if row["reason"]}
    assert failed == {name for name in warm.bundled_inputs() if "mandelbrot" in name}


def test_a_table_for_people_and_the_inputs_that_are_asked_for(drawn, capsys):
    assert main(["warm", "cornell", "--jobs", "1"]) == 0
    out, err = capsys.readouterr()
    assert drawn == ["cornell"] and "1 of 1 inputs drawn" in out and "cornell" in err


@pytest.mark.parametrize("words, sentence", [
    (["no_such_scene"], "rayfold: no_such_scene: No such file or directory\n"),
    (["cornell", "--jobs", "0"], "rayfold: argument --jobs: "),
])  # fmt: skip
def test_mistakes_are_told_before_anything_is_drawn(drawn, capsys, words, sentence):
    try:
        code = main(["warm", *words])
    except SystemExit as end:
        code = end.code
    assert code == 2 and capsys.readouterr().err.startswith(sentence) and not drawn


def test_the_spheres_are_closed_and_round(tmp_path):
    for rows in (3, 23):
        warm.write_sphere(tmp_path / "a.ply", rows)
        vertices, faces = load_mesh(tmp_path / "a.ply")
        assert b"float nz" not in (tmp_path / "a.ply").read_bytes()
        (tmp_path / "a.ply").unlink()
        assert len(faces) == 4 * rows**2
        assert np.allclose(np.linalg.norm(vertices, axis=1), 1, atol=1e-6)
        corners = vertices[faces].astype("f8")
        volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
        missing = 1 - abs(volume) / (4 / 3 * np.pi)  # the polyhedron lies inside of the sphere
        assert 0 < missing < np.pi**2 / 2 / rows**2
    warm.write_sphere(tmp_path / "a.ply", 3, has_normals=True)
    part = read_mesh(tmp_path / "a.ply").part
    np.testing.assert_array_equal(part.normals, part.vertices)  # of the unit sphere


def test_the_sizes_need_both_of_pocls_functions():
    small, large = (width * height for width, height in warm.SIZES[:2])
    assert small < 65534 < large


def test_a_child_draws_its_input_once_at_each_size(monkeypatch, tmp_path):
    """One sample of each size, tone mapped as the scene says."""
    scene_file, drawn = tmp_path / "small.toml", []
    scene_file.write_text('title = "small"\npicture = "fractal"\n[settings]\nsamples = 3\nmax_iterations = 20\n')
    monkeypatch.setattr(warm, "SIZES", ((6, 4), (12, 8)))

    def developed(rendered, scene):
        drawn.append((rendered.linear.shape, rendered.samples, scene.title))
        yield

    monkeypatch.setattr(render, "tonemapped_blocks", developed)
    warm.draw_once(str(scene_file), "auto")
    assert drawn == [((4, 6, 4), 1, "small"), ((8, 12, 4), 1, "small")]


@pytest.mark.slow
def test_what_was_warmed_compiles_nothing_again(tmp_path):
    """By the files of PoCL's cache, in an own cache folder."""
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    words = [sys.executable, "-m", "renderer"]

    def run(*more):
        inherited = {
            name: value for name, value in os.environ.items() if name not in ("POCL_CACHE_DIR", "RAYFOLD_CACHE")
        }
        done = subprocess.run([*words, *more], env=inherited | environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return {path for path in tmp_path.rglob("*.so")}

    warmed = run("warm", "cornell", "--device", "cpu")
    assert warmed
    output = str(tmp_path / "a.png")
    assert run("export", "cornell", "-o", output, "--size", "512x300", "--samples", "2", "--device", "cpu") == warmed
    assert load(tmp_path / "a.png").picture == "raytrace"
