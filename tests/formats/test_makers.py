"""Files of bundled scenes are what their makers make, up to the rounding of other processors."""

import numpy as np
import pytest
from PIL import Image

from assets.makers import orrery as make_orrery
from assets.makers import still_life as make_still_life
from assets.makers.turning import quaternion, turned
from renderer.formats.gltf import load as load_gltf
from renderer.formats.mesh import load_mesh
from renderer.paths import ASSETS


def same_file(path, made, kept):
    """The Model of the file `kept`, when the maker `made` has its materials, meshes and (but for JPEG) pictures."""
    path.write_bytes(made.glb())
    ours, theirs = load_gltf(path), load_gltf(kept)
    assert ours.materials == theirs.materials and len(ours.mesh_nodes) == len(theirs.mesh_nodes)
    for parts, others in zip(ours.meshes, theirs.meshes, strict=True):
        assert np.array_equal(parts[0].faces, others[0].faces)
        np.testing.assert_allclose(parts[0].vertices, others[0].vertices, atol=1e-5)
        np.testing.assert_allclose(parts[0].normals, others[0].normals, atol=0.02)
    for one, other in zip(ours.textures, theirs.textures, strict=True):
        assert np.abs(one.pixels.astype("f4") - other.pixels).mean() < 1
    return theirs


def test_the_still_life_is_what_its_script_makes_and_has_what_it_says(tmp_path):
    model = same_file(tmp_path / "made.glb", make_still_life.still_life(), ASSETS / "still_life.glb")
    words = {word for material in model.materials for word in material.textures}
    assert {"base_color", "metallic_roughness", "normal", "emissive"} <= words
    assert {material.alpha for material in model.materials} == {"OPAQUE", "MASK", "BLEND"}
    assert model.variants == ("porcelain", "celadon", "oxblood")
    assert (ASSETS / "still_life.glb").stat().st_size < 720_000


def test_the_orrery_is_what_its_script_makes(tmp_path):
    same_file(tmp_path / "made.glb", make_orrery.stand(), ASSETS / "orrery" / "stand.glb")
    (tmp_path / "bar.obj").write_text(make_orrery.obj(make_orrery.bar()))
    (tmp_path / "ring.obj").write_text(make_orrery.obj(make_orrery.rings()))
    for name in ("bar.obj", "ring.obj"):
        made, kept = load_mesh(tmp_path / name), load_mesh(ASSETS / "orrery" / name)
        np.testing.assert_allclose(made[0], kept[0], atol=1e-4)
        assert np.array_equal(made[1], kept[1])


@pytest.mark.slow
def test_the_planets_are_what_their_script_paints():
    for name, pixels in make_orrery.planets().items():
        kept = np.asarray(Image.open(ASSETS / "orrery" / f"{name}.jpg"))
        assert np.abs(kept.astype("f4") - pixels).mean() < 6, name


def test_quaternions_turn_as_their_matrices_do(rng):
    for angles in (*rng.uniform(-180, 180, (20, 3)), (180, 0, 0), (0, 180, 0), (0, 0, 180), (0, 0, 0)):
        x, y, z, w = quaternion(turned(*angles))
        cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        np.testing.assert_allclose(np.eye(3) + 2 * w * cross + 2 * cross @ cross, turned(*angles), atol=1e-5)
