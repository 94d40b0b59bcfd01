"""The same scenes by Mitsuba 3, built from our settings: means, tiles, chi-square and single pixels, both ways.

Skipped where Mitsuba is not installed (pip install mitsuba). Both draw batches of independent seeds; the tests
are those of batch means, after W. Jakob's z-tests, with power against a wrong mean added (see the docstrings).
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing.materials import attenuation, single_scattering_albedo
from renderer.raytracing.settings import Camera, Material, Settings, Sphere

mi = pytest.importorskip("mitsuba", reason="Mitsuba 3 is not installed: pip install mitsuba")
BATCHES, SAMPLES = 16, 64


@pytest.fixture(scope="module")
def variant():
    try:  # its LLVM variants would bring a second LLVM into the process, beside PoCL's
        mi.set_variant("scalar_rgb")
    except Exception as error:  # Dr.Jit raises what it likes
        pytest.skip(f"Mitsuba's scalar_rgb does not run here: {error}")


def rgb(color):
    return {"type": "rgb", "value": list(map(float, color))}


def bsdf_of(material: Material):
    if material.kind == "diffuse":
        return {"type": "twosided", "bsdf": {"type": "diffuse", "reflectance": rgb(material.color)}}
    if material.kind == "mirror":
        return {"type": "twosided", "bsdf": {"type": "conductor", "material": "none",
                                             "specular_reflectance": rgb(material.color)}}  # fmt: skip
    if material.kind == "glass" and material.roughness == 0:
        return {"type": "dielectric", "int_ior": material.ior, "ext_ior": 1.0,
                "specular_transmittance": rgb(material.color), "specular_reflectance": rgb(material.color)}  # fmt: skip
    if material.multiscatter_color != (0.0, 0.0, 0.0):
        assert material.diffuse_transmission == 0 and material.roughness == 0 and material.transmission == 1
        return (
            {"type": "null"} if material.ior == 1 else {"type": "dielectric", "int_ior": material.ior, "ext_ior": 1.0}
        )
    assert material.kind == "emitter", material.kind
    return {"type": "diffuse", "reflectance": rgb((0.0, 0.0, 0.0))}


def mitsuba_scene(settings, size):
    """Our spheres, quads, suns and points as Mitsuba takes them."""
    camera, materials = settings.view, {m.name: m for m in settings.materials}
    look = mi.ScalarTransform4f().look_at(list(camera.position), list(camera.target), [0, 1, 0])
    scene = {
        "type": "scene",
        "integrator": {"type": "path", "max_depth": settings.max_depth, "rr_depth": 100},
        "sensor": {
            "type": "perspective", "fov": camera.fov_degrees, "fov_axis": "y", "to_world": look,
            "sampler": {"type": "independent"},
            "film": {"type": "hdrfilm", "width": size[0], "height": size[1], "rfilter": {"type": "box"},
                     "pixel_format": "rgb"},
        },
    }  # fmt: skip

    def add(name, shape, material):
        shape |= {"bsdf": bsdf_of(material)}
        if any(material.multiscatter_color):
            single = single_scattering_albedo(material.multiscatter_color, material.scatter_anisotropy)
            extinction = attenuation(material.attenuation_color, material.attenuation_distance)
            scene["integrator"] |= {"type": "volpathmis", "max_depth": 1000}
            shape["interior"] = {"type": "homogeneous", "albedo": rgb(single), "sigma_t": rgb(extinction / 10),
                                 "scale": 10.0, "phase": {"type": "hg", "g": material.scatter_anisotropy}}  # fmt: skip
        if any(material.emission):
            shape["emitter"] = {"type": "area", "radiance": rgb(material.emission)}
        scene[name] = shape

    for index, s in enumerate(settings.spheres):
        sphere = {"type": "sphere", "center": list(s.center), "radius": s.radius}
        add(f"sphere{index}", sphere, materials[s.material])
    for index, quad in enumerate(settings.quads):
        mesh = mi.Mesh(f"quad{index}", 4, 2)
        parameters = mi.traverse(mesh)
        parameters["vertex_positions"] = np.ravel(quad.corners).astype("f4")
        parameters["faces"] = np.array([0, 1, 2, 0, 2, 3], "u4")
        parameters.update()
        add(f"quad{index}", {"type": "ply", "filename": _ply(mesh, index)}, materials[quad.material])
    for index, point in enumerate(settings.point_lights):
        scene[f"point{index}"] = {"type": "point", "position": list(point.position), "intensity": rgb(point.intensity)}
    for index, sun in enumerate(settings.suns):
        assert sun.angle_degrees == 0
        scene[f"sun{index}"] = {"type": "directional", "direction": [-x for x in sun.direction],
                                "irradiance": rgb(sun.irradiance)}  # fmt: skip
    if settings.environment.file:
        turn = mi.ScalarTransform4f().rotate([0, 1, 0], 180)  # Mitsuba's pictures begin with -z
        scene["environment"] = {"type": "envmap", "filename": settings.environment.file, "to_world": turn,
                                "scale": settings.environment.strength}  # fmt: skip
    return mi.load_dict(scene)


FOLDER: list[Path] = []


def _ply(mesh, index: int) -> str:
    path = FOLDER[-1] / f"quad{index}.ply"
    mesh.write_ply(str(path))
    return str(path)


def batches_of_ours(device, settings, size):
    picture = Picture(SimpleNamespace(device=device))
    frames = []
    for seed in range(BATCHES):
        for _ in range(SAMPLES):
            frame = picture.draw(replace(settings, seed=seed + 1, samples=SAMPLES), size, 0.0)
        frames.append(frame.read()[..., :3].astype("f8"))
    return np.array(frames)


def batches_of_mitsuba(settings, size):
    scene = mitsuba_scene(settings, size)
    return np.array([np.array(mi.render(scene, spp=SAMPLES, seed=n + 100), "f8")[..., :3] for n in range(BATCHES)])


def assert_same(ours: np.ndarray, theirs: np.ndarray, known: float = 1e-5) -> None:
    """The four tests on batches (n, height, width, 3) of two renderers, each at 1 in 10,000 of false alarms.

    `known` is the relative difference that rounding explains, by default in float32.
    """
    n = len(ours)

    def t_of(a, b):
        """Welch's t of batch means."""
        error = np.sqrt(a.var(0, ddof=1) / n + b.var(0, ddof=1) / n + (known * b.mean(0)) ** 2 + 1e-16)
        return (a.mean(0) - b.mean(0)) / error

    def limit(many):
        return stats.t.isf(1e-4 / many / 2, n - 1)

    whole = t_of(ours.mean((1, 2)), theirs.mean((1, 2)))
    assert np.abs(whole).max() < limit(3), f"means differ: t = {whole}"
    height, width = ours.shape[1] // 8 * 8, ours.shape[2] // 8 * 8
    tiles = [x[:, :height, :width].reshape(n, height // 8, 8, width // 8, 8, 3).mean((2, 4)) for x in (ours, theirs)]
    tile = t_of(*tiles)
    assert np.abs(tile).max() < limit(tile.size), f"a tile differs: t = {np.abs(tile).max()}"
    pixel = t_of(ours, theirs)
    lit = (ours.var(0) > 0) & (theirs.var(0) > 0)
    wanted = (n - 1) / (n - 3)  # of t squared, at least; at most twice the degrees of freedom for equal noise
    spread = (pixel[lit] ** 2).mean()
    least = 0.9 * (2 * n - 2) / (2 * n - 4) if known < 1e-4 else 0.0
    assert least < spread < 1.1 * wanted, f"wrong noise: mean t^2 = {spread}"
    assert (np.abs(pixel) > limit(pixel.size)).mean() < 2.5e-3, "single pixels differ"


def mixed(tmp_path):
    from renderer.raytracing.settings import Environment, PointLight, Quad, Settings, Sphere, Sun
    from renderer.scene.cameras import Camera
    from tests.raytracing.lights.test_lights import exr

    floor = Quad("gray", ((-2.0, 0.0, 2.0), (2.0, 0.0, 2.0), (2.0, 0.0, -2.0), (-2.0, 0.0, -2.0)))
    u, v = np.meshgrid(np.linspace(0, 6, 2048), np.linspace(0, 3, 1024))
    sky = np.stack([1.2 + np.sin(u), 1.1 + np.cos(u + v), 1.5 + np.sin(3 * v)], -1) * 0.4
    return Settings(
        view=Camera((0.0, 1.2, 5.0), (0.0, 0.5, 0.0), fov_degrees=35.0), max_depth=5, rr_depth=16,
        materials=(Material("gray", color=(0.6, 0.5, 0.4)), Material("silver", "mirror", color=(0.9, 0.8, 0.7)),
                   Material("glass", "glass", color=(1.0, 1.0, 1.0))),
        quads=(floor,), spheres=(Sphere("silver", (-0.8, 0.5, 0.0), 0.5), Sphere("gray", (0.5, 0.4, 0.4), 0.4)),
        point_lights=(PointLight((1.0, 2.0, 1.0), (2.0, 1.5, 1.0)),),
        suns=(Sun((1.0, 2.0, 0.5), (0.7, 0.8, 0.9), 0.0),),
        environment=Environment(str(exr(tmp_path / "sky.exr", sky)), 0.7),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["cornell", "veach", "mixed"])
def test_mitsuba_draws_the_same_picture(device, variant, tmp_path, name):
    FOLDER.append(tmp_path)
    size = (40, 40) if name == "cornell" else (48, 32)
    if name == "mixed":
        settings = mixed(tmp_path)
    else:
        settings = replace(load(SCENES / f"{name}.toml").settings, max_depth=5, rr_depth=3)
    if name == "veach":  # Mitsuba's rough metals lose what is scattered twice: mirrors and diffuse plates instead
        kinds = {"smooth": "mirror", "shiny": "diffuse", "glossy": "mirror", "rough": "diffuse"}
        materials = tuple(replace(m, kind=kinds.get(m.name, m.kind), roughness=0.0) for m in settings.materials)
        settings = replace(settings, materials=materials)
    known = 2e-3 if name == "mixed" else 1e-5  # the rows of Mitsuba's environments lie half a row elsewhere
    assert_same(batches_of_ours(device, settings, size), batches_of_mitsuba(settings, size), known)


@pytest.mark.parametrize("ior", [1.0, 1.4])
def test_mitsuba_walks_through_the_same_medium(device, variant, ior):
    """A ball of a colored medium that scatters forwards, behind an index-matched or a refracting surface."""
    ball = Material("ball", "principled", color=(1.0, 1.0, 1.0), transmission=1.0, thickness=1.0, ior=ior,
                    attenuation_color=(0.5, 0.2, 0.05), attenuation_distance=0.4, multiscatter_color=(0.8, 0.5, 0.3),
                    scatter_anisotropy=0.5)  # fmt: skip
    settings = Settings(
        materials=(ball, Material("lamp", "emitter", emission=(4.0, 5.0, 6.0)),
                   Material("wall", color=(0.7, 0.6, 0.5))),
        spheres=(Sphere("ball"), Sphere("lamp", (-4.0, 3.0, 1.0), 3.0), Sphere("wall", (0.0, -101.0, 0.0), 100.0)),
        view=Camera((0.0, 0.5, 4.0), (0.0, 0.0, 0.0), fov_degrees=40.0), max_depth=64, rr_depth=64,
    )  # fmt: skip
    assert_same(batches_of_ours(device, settings, (32, 32)), batches_of_mitsuba(settings, (32, 32)), 1e-4)


def test_the_tests_see_two_percent(rng):
    """Two per cent more light, or a dark tile, is an alarm; equal pictures are none."""

    def batches(scale=1.0):
        return rng.normal(1, 0.2, (BATCHES, 32, 32, 3)) * scale

    assert_same(batches(), batches())
    with pytest.raises(AssertionError, match="means differ"):
        assert_same(batches(1.02), batches())
    dark = batches()
    dark[:, 8:16, 8:16] *= 0.9
    with pytest.raises(AssertionError, match="differ"):
        assert_same(dark, batches())
