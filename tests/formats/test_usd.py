"""USD files as models: meshes, materials, cameras and lights, beside numbers that the file states."""

import sys

import numpy as np
import pytest

from renderer.cli import main
from renderer.errors import InputError, UnavailableError
from renderer.formats.mesh import load_model

STAGE = """#usda 1.0
(
    upAxis = "Z"
)
def Mesh "Quad" (
    prepend apiSchemas = ["MaterialBindingAPI"]
)
{
    uniform token subdivisionScheme = "none"
    int[] faceVertexCounts = [4, 3]
    int[] faceVertexIndices = [0, 1, 2, 3, 0, 1, 4]
    point3f[] points = [(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, -1, 2)]
    texCoord2f[] primvars:st = [(0, 0), (1, 0), (1, 1), (0, 1), (0.5, 1)] (
        interpolation = "vertex"
    )
    rel material:binding = </Red>
    double3 xformOp:translate = (5, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
def Material "Red"
{
    token outputs:surface.connect = </Red/Shader.outputs:surface>
    def Shader "Shader"
    {
        uniform token info:id = "UsdPreviewSurface"
        color3f inputs:diffuseColor = (0.8, 0.1, 0.2)
        float inputs:roughness = 0.25
        token outputs:surface
    }
}
def Sphere "Ball"
{
}
def SphereLight "Lamp"
{
    float inputs:intensity = 100
    float inputs:radius = 0.5
}
def Camera "Camera"
{
    float focalLength = 12
    float verticalAperture = 24
}
"""


def stage(tmp_path, old="", new=""):
    (tmp_path / "a.usda").write_text(STAGE.replace(old, new))
    return tmp_path / "a.usda"


def test_a_stage_is_the_model_that_it_states(tmp_path):
    pytest.importorskip("pxr")
    model = load_model(stage(tmp_path))
    ((part,),), ((_, matrix),) = model.meshes, model.mesh_nodes
    corners = part.vertices[part.faces.ravel()] @ matrix[:3, :3].T + matrix[:3, 3]
    wanted = [
        (-1, -1, 0),
        (1, -1, 0),
        (1, 1, 0),
        (-1, -1, 0),
        (1, 1, 0),
        (-1, 1, 0),
        (-1, -1, 0),
        (1, -1, 0),
        (0, -1, 2),
    ]
    wanted = np.array([(x + 5, z, -y) for x, y, z in wanted])  # y up
    assert corners == pytest.approx(wanted)
    material = model.materials[part.material]
    assert material.color == pytest.approx(
        (0.8, 0.1, 0.2, 1.0)[: len(material.color)]
    ) and material.roughness == pytest.approx(0.25)
    (camera,), (light,) = model.cameras, model.lights
    assert camera.fov_degrees == pytest.approx(90)
    assert light.kind == "point" and light.power == pytest.approx((100 * np.pi / 4,) * 3)
    assert model.ignored == {"Sphere prims": 1}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("#usda 1.0", "nonsense", "not a USD file"),
        ("[4, 3]", "[4, 4]", "has faces of points that do not exist"),
        ("[0, 1, 2, 3, 0, 1, 4]", "[0, 1, 2, 3, 0, 1, 5]", "has faces of points that do not exist"),
        ('    upAxis = "Z"', "    subLayers = [@../b.usda@]", "a layer is .* must lie in"),
    ],
)
def test_what_is_wrong_with_a_stage_is_one_sentence(tmp_path, old, new, words):
    pytest.importorskip("pxr")
    (tmp_path / "b.usda").write_text("#usda 1.0\n")
    (tmp_path / "in").mkdir()
    with pytest.raises(InputError, match=words):
        load_model(stage(tmp_path / "in", old, new))


def test_without_the_package_its_installation_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pxr", None)
    with pytest.raises(UnavailableError, match="usd-core"):
        load_model(stage(tmp_path))
    assert main(["export", str(stage(tmp_path)), "-o", str(tmp_path / "a.png")]) == 4
    assert "need the package usd-core" in capsys.readouterr().err
