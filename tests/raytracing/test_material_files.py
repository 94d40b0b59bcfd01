"""A material is its file: one file more is drawn, guided and denoised right; an incomplete one does not compile."""

import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.paths import ROOT, SHADERS
from renderer.raytracing.material_files import MATERIAL_FILES, MaterialFile, material_constants
from renderer.raytracing.materials import material_rows
from renderer.raytracing.settings import Material, Settings
from tests.raytracing.witnesses.foreign_material import FUNCTIONS, NAME, TEXT


@cache
def run_checks(device_id: str, folder: Path, *only: str) -> dict:
    """The results of foreign_material.py, which checks the material's samples itself."""
    shaders = folder / "_".join([device_id.replace(":", "_"), *only]) / "shaders"
    shutil.copytree(SHADERS, shaders)
    (shaders / "raytracing" / "materials" / f"{NAME}.h").write_text(TEXT)
    command = [sys.executable, "-m", "tests.raytracing.witnesses.foreign_material", str(shaders), device_id, *only]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("foreign")


@pytest.fixture
def results(request, device, folder):
    return run_checks(request.node.callspec.params["device"], folder)


def expected_albedo() -> np.ndarray:
    """The stripes (16, 48, 3) that the orthographic camera of the scene sees: 6 units of x across 48 pixels."""
    x = (np.arange(48) + 0.5) / 8 - 3
    is_odd = np.floor(x).astype(int) % 2 == 1
    row = np.where(is_odd[:, None], (0.1, 0.3, 0.9), (0.8, 0.4, 0.2))
    return np.broadcast_to(row, (16, 48, 3))


def test_the_albedo_layer_and_the_denoiser_take_the_material_of_one_file(results):
    assert np.asarray(results["albedo"]) == pytest.approx(expected_albedo(), abs=1e-5)
    assert np.asarray(results["normal"]) == pytest.approx(np.broadcast_to((0.0, 0.0, 1.0), (16, 48, 3)), abs=1e-5)


def test_a_picture_of_it_is_its_albedo_under_a_white_sky(results):
    """Radiance 1 from everywhere; 64 samples of the weight 2 cos(theta) have a standard error of 0.07 at random."""
    picture = np.asarray(results["picture"])[..., :3]
    assert picture == pytest.approx(expected_albedo(), abs=0.06)
    assert picture.mean((0, 1)) == pytest.approx(expected_albedo().mean((0, 1)), abs=0.003)


def test_it_conserves_energy(results):
    assert results["white"] == pytest.approx([1, 1, 1], abs=0.005)
    assert all(0 < value <= 1 for value in results["colored"])


@pytest.mark.slow
def test_path_guiding_draws_the_same_picture_of_it(request, device, folder):
    results = run_checks(request.node.callspec.params["device"], folder, "guided")
    assert results["guided"] == pytest.approx(results["plain"], rel=0.02)


def test_a_file_without_a_function_of_the_interface_does_not_compile(results):
    for log in results["logs"]:
        missing = [name for name in FUNCTIONS if f"{NAME}_{name}" in log]
        assert missing == list(FUNCTIONS)[:1] if "ptxas fatal" in log else missing == list(FUNCTIONS), log


def test_an_unknown_declaration_names_the_file_and_those_allowed():
    with pytest.raises(InputError, match=r"materials/felt\.h: @simd is no declaration; allowed are @optional"):
        MaterialFile("felt").declare("simd", "diffuse")


def test_conditions_are_disjunctions_of_conjunctions():
    felt = MaterialFile("felt")
    felt.declare("constant", "FUZZ where sheen_color and roughness or ior")
    plain = Material("m", ior=1.0)
    materials = (
        plain, Material("a", sheen_color=(0.0, 0.1, 0.0), ior=1.0), Material("b", roughness=0.5, ior=1.0),
        Material("c", sheen_color=(0.0, 0.1, 0.0), roughness=0.5, ior=1.0), Material("d", ior=1.4),
    )  # fmt: skip
    holds = felt.constants["FUZZ"].holds(material_rows(Settings(materials=materials)))
    assert holds.tolist() == [False, False, False, True, True]


def test_constants_are_those_of_the_materials_that_a_scene_uses():
    used = {name for name, value in material_constants(material_rows(Settings())).items() if value}
    glass = material_rows(Settings(materials=(Material("m", "glass", roughness=0.2),)))
    assert not used
    assert {name for name, value in material_constants(glass).items() if value} == {
        "GLASS", "GLASS_TABLE", "REFRACTION", "SHADOW_RAYS_CROSS"
    }  # fmt: skip
    assert {name for name, file in MATERIAL_FILES.items() if file.shadow_catcher} == {"shadow_catcher"}
