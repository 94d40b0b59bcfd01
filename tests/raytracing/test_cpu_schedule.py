"""The megakernel on devices without warps: the bits of the wavefront, and its counts of active rays."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.formats import gltf
from renderer.formats.images import write_png
from renderer.pictures.raytrace import Picture
from renderer.raytracing.material_maps import TextureFile
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.settings import Environment, Material, PointLight, Procedural, Quad, Settings, Sphere, Sun
from renderer.scene.cameras import Camera
from tests.raytracing.test_render import mixed_scene, render, room


@pytest.fixture(scope="module")
def picture(device):
    if not device.properties.scalar_threads:
        pytest.skip(f"{device.name} has warps")
    return Picture(SimpleNamespace(device=device))


@pytest.mark.slow
@pytest.mark.parametrize("paths, lights", [("path", "mis"), ("whitted", "bsdf")])
def test_scalar_megakernel_draws_and_counts_as_the_wavefront(picture, rng, paths, lights):
    size = tuple(int(n) for n in rng.integers(1, 100, 2))
    seed, depth = int(rng.integers(0, 2**31 - 1)), int(rng.integers(2, 9))
    scene = mixed_scene(
        schedule="wavefront", integrator=paths, direct_lighting=lights, max_depth=depth, seed=seed, lens_radius=0.05
    )
    scene = replace(scene, rr_depth=int(rng.integers(1, 3)))
    wanted, told = render(picture, scene, size, 3), picture.report()
    assert np.isfinite(wanted).all()
    assert np.array_equal(wanted, render(picture, replace(scene, schedule="megakernel"), size, 3))
    found = picture.report()
    assert found["active rays"] == told["active rays"]
    assert found["empty stencil words"] == told["empty stencil words"]


def open_room(rng):
    """A room without a wall, of materials that eight lanes shade and of others, lit by triangles and a sphere."""
    materials = (Material("white", color=(0.8, 0.7, 0.6)), Material("red", color=(0.9, 0.1, 0.05)),
                 Material("lamp", "emitter", emission=(9.0, 8.0, 6.0)), Material("warm", emission=(0.5, 0.3, 0.1)),
                 Material("metal", "conductor", roughness=0.4), Material("silver", "mirror"),
                 Material("brass", "metallic", color=(0.9, 0.7, 0.3), roughness=0.3, metallic=0.6),
                 Material("ground", "shadow_catcher"))  # fmt: skip
    walls = [replace(quad, material=str(rng.choice(["white", "red", "brass"]))) for quad in room("white", 2.0)]
    lamp = Quad("lamp", ((-0.5, 1.9, -0.5), (0.5, 1.9, -0.5), (0.5, 1.9, 0.5), (-0.5, 1.9, 0.5)))
    balls = (Sphere("lamp", (1.4, -1.5, -1.0), 0.2), Sphere("red", (0.0, -1.6, -0.5), 0.4),
             Sphere("silver", (-1.3, -1.5, -1.0), 0.5))  # fmt: skip
    boxes = (
        Procedural("warm", "menger", 1, 0.5, (-1.0, 0.8, 0.0)),
        Procedural("metal", "menger", 0, 0.5, (1.2, 0, 0)),
        Procedural("brass", "menger", 0, 0.6, (0.4, -0.4, -0.8)),
    )
    shade = Quad("ground", ((-1.5, -1.0, 1.0), (1.5, -1.0, 1.0), (1.5, -1.0, -1.0), (-1.5, -1.0, -1.0)))
    return Settings(view=Camera((0.1, 0.2, 1.9), fov_degrees=75.0), materials=materials, spheres=balls,
                    quads=(*walls[:-1], lamp, shade), procedural=boxes, horizon=(0.1, 0.2, 0.3))  # fmt: skip


LAMPS = {"point_lights": (PointLight((0.0, 1.0, 0.0)),), "suns": (Sun((0.0, 0.3, 1.0)),)}
STUDIO = {"environment": Environment(preset="studio", strength=2.0, rotation_degrees=77.0)}


@pytest.mark.slow
@pytest.mark.parametrize("lamps", [STUDIO, {}, LAMPS, LAMPS | STUDIO, {"clamp_indirect": 0.1}])
def test_simd8_shading_has_the_bits_of_scalar_shading(picture, rng, lamps):
    size, seed = tuple(int(n) for n in rng.integers(20, 90, 2)), int(rng.integers(0, 2**31 - 1))
    scene = replace(
        open_room(rng), max_depth=int(rng.integers(2, 7)), rr_depth=int(rng.integers(1, 4)), seed=seed, **lamps
    )
    wanted, told = render(picture, replace(scene, schedule="wavefront"), size, 3), picture.report()
    assert np.isfinite(wanted).all() and wanted.mean() > 0.01
    assert np.array_equal(wanted, render(picture, replace(scene, schedule="megakernel"), size, 3))
    assert picture.report()["active rays"] == told["active rays"]


@pytest.mark.parametrize("lamps", [STUDIO, pytest.param(LAMPS | STUDIO, marks=pytest.mark.slow)])
def test_simd8_shading_alone_has_the_bits_of_scalar_shading(picture, rng, lamps):
    """A scene whose materials all have eight-lane shading compiles only that; the ground is seen from both sides."""
    size, seed = tuple(int(n) for n in rng.integers(20, 90, 2)), int(rng.integers(0, 2**31 - 1))
    scene = open_room(rng)
    names = {"white", "red", "brass", "ground"}
    scene = replace(
        scene, materials=tuple(m for m in scene.materials if m.name in names), spheres=(), seed=seed, max_depth=5,
        quads=tuple(q for q in scene.quads if q.material in names),
        procedural=tuple(p for p in scene.procedural if p.material in names), **lamps,
    )  # fmt: skip
    for y in (0.2, -1.5):
        seen = replace(scene, view=Camera((0.1, y, 1.9), fov_degrees=75.0))
        wanted, told = render(picture, replace(seen, schedule="wavefront"), size, 3), picture.report()
        assert np.isfinite(wanted).all() and wanted.mean() > 0.01
        assert np.array_equal(wanted, render(picture, replace(seen, schedule="megakernel"), size, 3))
        assert picture.report()["active rays"] == told["active rays"]


def colored_model(rng):
    """Triangles with normals, some of them none, vertex colors, and two sets of coordinates of which one is turned."""
    vertices, faces = rng.uniform(-0.9, 0.9, (60, 3)).astype("f4"), np.arange(60, dtype="i4").reshape(-1, 3)
    normals, colors = rng.normal(size=(60, 3)).astype("f4"), rng.uniform(0.2, 1.0, (60, 4)).astype("f4")
    normals[:12] = 0.0
    uv = tuple(rng.uniform(-2.0, 3.0, (60, 2)).astype("f4") for _ in range(2))
    textures = [
        gltf.Texture(rng.integers(60, 256, (5, 7, 4), dtype="u1"), wrap, linear)
        for wrap, linear in ((("repeat", "mirror"), True), (("clamp", "repeat"), False))
    ]
    slots = {"base_color": gltf.TextureSlot(0, 1, (0.0, 2.0, 0.1, -2.0, 0.0, 0.2)),
             "metallic_roughness": gltf.TextureSlot(1, 0)}  # fmt: skip
    parts = [
        gltf.MeshPrimitive(vertices[s], faces[:10], normals[s], tuple(u[s] for u in uv), i, colors=colors[s])
        for i, s in enumerate((slice(0, 30), slice(30, 60)))
    ]
    materials = [gltf.Material("mapped", textures=slots), gltf.Material("bare", metallic=0.3, roughness=0.6)]
    return gltf.Model([parts], [(0, np.eye(4))], materials, textures)


@pytest.mark.slow  # of two kernels with textures
@pytest.mark.parametrize("lamps", [STUDIO, LAMPS | STUDIO])
def test_simd8_shading_of_textures_has_the_bits_of_scalar_shading(picture, rng, lamps, tmp_path, monkeypatch):
    model = colored_model(rng)
    monkeypatch.setattr(ModelShape, "load", lambda self: model)
    maps = []
    for name, filtering in (("tiles", "linear"), ("dots", "nearest")):
        write_png(tmp_path / f"{name}.png", rng.integers(90, 256, (6, 5, 3), dtype="u1"))
        maps.append(
            TextureFile(name, str(tmp_path / f"{name}.png"), filter=filtering, wrap="mirror", repeat=(2.0, 3.0))
        )
    keys = {
        "white": {"color_texture": "tiles"},
        "brass": {"roughness_texture": "dots", "metallic_texture": "tiles"},
        "red": {"color_texture": "dots", "normal_texture": "tiles"},
        "warm": {"emission_texture": "dots"},
    }
    scene = open_room(rng)
    materials = tuple(replace(m, **keys.get(m.name, {})) for m in scene.materials)
    scene = replace(scene, materials=materials, textures=tuple(maps), models=(ModelShape("colored"),), **lamps)
    scene = replace(scene, max_depth=int(rng.integers(3, 7)), seed=int(rng.integers(0, 2**31 - 1)))
    wanted, told = render(picture, replace(scene, schedule="wavefront"), (90, 70), 3), picture.report()
    assert np.isfinite(wanted).all() and wanted.mean() > 0.01
    assert np.array_equal(wanted, render(picture, replace(scene, schedule="megakernel"), (90, 70), 3))
    assert picture.report()["active rays"] == told["active rays"]


def test_a_tile_has_the_bits_of_the_whole_picture(picture, rng):
    scene = mixed_scene(max_depth=5, schedule="megakernel")
    whole = render(picture, scene, (61, 47))
    left, top = (int(n) for n in rng.integers(0, 30, 2))
    picture._drawn = None
    part = picture.draw(scene, (61, 47), 0.0, (left, top, 29, 15)).read()
    assert np.array_equal(part, whole[top : top + 15, left : left + 29])


def test_auto_schedule_without_warps(picture):
    render(picture, mixed_scene(schedule="auto"))
    assert picture.report()["schedule"] == "megakernel"
    render(picture, mixed_scene(schedule="auto", stencil="flags"))
    assert picture.report()["schedule"] == "wavefront"
