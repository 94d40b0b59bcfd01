"""Lights against algebra: irradiance, furnaces, pdfs; three estimators of one picture; invalid files."""

import re
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer.bvh.primitives import triangles
from renderer.errors import InputError
from renderer.formats.images import write_exr
from renderer.gpu.kernel_source import GeneratedSource
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing.instances import Instance, rotation_matrix
from renderer.raytracing.kernels import NO_SCHEDULE, compile_constants, kernel_source, launch_params
from renderer.raytracing.lights import light_buffer
from renderer.raytracing.lights.environment import environment_cdf, read_hdr, sky_map, sun_direction, sun_radiance
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.materials import material_rows
from renderer.raytracing.settings import (
    Environment,
    Material,
    MeshShape,
    PointLight,
    Quad,
    Settings,
    Sky,
    Sphere,
    Sun,
)
from renderer.scene.cameras import Camera
from renderer.scene.schema import from_table

WHITE = (1.0, 1.0, 1.0)
FLOOR = Quad("floor", ((-9.0, 0.0, 9.0), (9.0, 0.0, 9.0), (9.0, 0.0, -9.0), (-9.0, 0.0, -9.0)))
SMALL = Quad("floor", ((-2.0, 0.0, 2.0), (2.0, 0.0, 2.0), (2.0, 0.0, -2.0), (-2.0, 0.0, -2.0)))
MATERIALS = (Material("floor", color=(0.5,) * 3), Material("lamp", "emitter", emission=(10.0,) * 3))
DOWN = Camera((0.01, 0.2, 0.01), (0.0, 0.0, 0.0), fov_degrees=5.0)

HIT = pytest.param("bsdf", marks=pytest.mark.slow)
AIMED = pytest.param("nee", marks=pytest.mark.slow)


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def render(picture, settings, size=(32, 32), samples=16):
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()[..., :3].astype("f8")


def floor_scene(**changes):
    return replace(Settings(view=DOWN, materials=MATERIALS, quads=(FLOOR,), max_depth=2), **changes)


def hdr(path, pixels):
    """A flat Radiance file of (height, width, 3) powers of two times bytes."""
    high = np.maximum(pixels.max(-1, keepdims=True), 1e-30)
    exponent = np.floor(np.log2(high)).astype(int) + 1
    mantissa = np.clip(np.floor(pixels / 2.0**exponent * 256), 0, 255)
    data = np.concatenate([mantissa, np.where(pixels.max(-1, keepdims=True) > 0, exponent + 128, 0)], -1).astype("u1")
    height, width = pixels.shape[:2]
    path.write_bytes(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y %d +X %d\n" % (height, width) + data.tobytes())
    return path


def exr(path, pixels):
    write_exr(path, {"RGB": pixels.astype("f4")})
    return path


def test_irradiance_of_a_point_light_is_intensity_cosine_over_distance_squared(picture, rng):
    x, height, power = rng.uniform(-2, 2), rng.uniform(1, 3), rng.uniform(1, 20)
    scene = floor_scene(point_lights=(PointLight((x, height, 0.0), (power,) * 3),))
    wanted = 0.5 / np.pi * power * height / (x**2 + height**2) ** 1.5
    assert np.allclose(render(picture, scene, samples=1), wanted, rtol=0.03)
    hidden = replace(scene, spheres=(Sphere("floor", (x / 2, height / 2, 0.0), 0.1),))
    assert (render(picture, hidden, samples=1) == 0).all()


@pytest.mark.parametrize("angle", [0.0, 0.533, 30.0])
@pytest.mark.parametrize("lights", ["mis", AIMED])
def test_a_sun_has_its_irradiance(picture, rng, angle, lights):
    direction = rng.normal(size=3) + [0, 3, 0]
    direction[1] = abs(direction[1]) + 2
    power = rng.uniform(0.5, 5, 3)
    scene = floor_scene(suns=(Sun(tuple(direction), tuple(power), angle),), direct_lighting=lights)
    wanted = 0.5 / np.pi * power * direction[1] / np.linalg.norm(direction)
    values = render(picture, scene, samples=64).mean((0, 1))
    assert np.allclose(values, wanted, rtol=0.01 if angle > 1 else 1e-4)


def test_a_sun_is_seen_as_a_disc(picture):
    sun = Sun((0.0, 0.0, -1.0), (1.0, 2.0, 3.0), 10.0)
    frame = render(picture, Settings(view=Camera((0.0, 0.0, 1.0), fov_degrees=40.0), suns=(sun,)), (64, 64), 1)
    radiance = np.array([1, 2, 3]) / (np.pi * np.sin(np.radians(5)) ** 2)
    on = frame[..., 0] > 0
    assert np.allclose(frame[on], radiance, rtol=1e-5)
    assert on.mean() == pytest.approx(np.pi * (np.tan(np.radians(5)) / np.tan(np.radians(20))) ** 2 / 4, rel=0.05)


def rectangle_factor(a, b, height) -> float:
    """Irradiance under the middle of a rectangle of radiance 1, 2 a by 2 b."""
    corners = ((-a, height, -b), (a, height, -b), (a, height, b), (-a, height, b))
    unit = [np.array(c) / np.linalg.norm(c) for c in corners]
    total = 0.0
    for first, second in zip(unit, unit[1:] + unit[:1], strict=True):
        across = np.cross(first, second)
        total += np.arccos(first @ second) * across[1] / np.linalg.norm(across)
    return abs(total) / 2


@pytest.mark.parametrize("lights", ["mis", "nee", "bsdf"])
def test_irradiance_of_a_rectangle_is_lamberts_formula(picture, rng, lights):
    """Irradiance of a polygon: half the sum of the angles of its edges times the tilts of the planes (Lambert)."""
    a, b, height = rng.uniform(0.3, 1.5, 3)
    corners = ((-a, height, -b), (a, height, -b), (a, height, b), (-a, height, b))
    wanted = 0.5 / np.pi * 10 * rectangle_factor(a, b, height)
    scene = floor_scene(quads=(FLOOR, Quad("lamp", corners)), direct_lighting=lights)
    values = render(picture, scene, samples=64).mean(-1)
    error = values.std() / np.sqrt(values.size)
    assert abs(values.mean() - wanted) < 4.5 * error + 3e-3 * wanted


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("lights", ["mis", AIMED, HIT])
def test_emissive_instances_are_sampled_by_next_event_estimation(picture, rng, lights, mirrored):
    """They light as the same rectangle in world space; the material of the shape itself emits nothing."""
    (a, b), height = rng.uniform(0.3, 1.5, 2), float(rng.uniform(0.5, 1.5))
    scene = floor_scene(
        direct_lighting=lights, quads=(FLOOR, Quad("floor", ((-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)), "plate")),
        instances=(Instance("plate", "lamp", matrix=(
            -a if mirrored else a, 0, 0, 0, 0, 1, 0, height, 0, 0, b, 0)),),
    )  # fmt: skip
    values = render(picture, scene, samples=64).mean(-1)
    error = values.std() / np.sqrt(values.size)
    wanted = 0.5 / np.pi * 10 * rectangle_factor(a, b, height)
    assert abs(values.mean() - wanted) < 4.5 * error + 3e-3 * wanted
    if lights != "bsdf":
        assert values.std() < 0.4 * wanted  # by chance it would be 0.5 to 3 times that


@pytest.mark.slow
def test_moving_emissive_instances_are_found_by_bsdf_sampling(picture):
    plate = Quad("floor", ((-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)), "plate")
    here, there = (Instance("plate", "lamp", position=(x, 1.0, 0.0)) for x in (0.0, 0.5))
    scene = floor_scene(quads=(FLOOR, plate), instances=(here,), shutter_close=(there,), exposure_seconds=1.0)
    means = [render(picture, replace(scene, direct_lighting=lights), samples=256).mean() for lights in ("mis", "bsdf")]
    assert means[0] == pytest.approx(means[1], rel=0.02) and means[0] > 0


@pytest.mark.parametrize("lights", ["mis", AIMED, pytest.param("bsdf", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["constant.exr", "half.hdr", "dot.exr"])
def test_irradiance_of_an_environment_map_is_its_integral(picture, tmp_path, rng, lights, name):
    """A floor under an environment map: albedo / pi times the sum of radiance, cosine and solid angle."""
    height, width = 32, 64
    pixels = np.ones((height, width, 3)) * [1.0, 0.5, 0.25]
    if name == "half.hdr":
        pixels[:, width // 2 :] *= 8
    if name == "dot.exr":
        pixels = pixels * 0.05
        pixels[8:10, 20:22] = 90
    path = hdr(tmp_path / name, pixels) if name.endswith("hdr") else exr(tmp_path / name, pixels)
    scene = floor_scene(environment=Environment(str(path), 2.0, float(rng.uniform(-180, 180))), direct_lighting=lights)
    pixels = read_hdr(path).astype("f8") if name.endswith("hdr") else pixels
    fine = 16
    theta = (np.arange(height * fine) + 0.5) / (height * fine) * np.pi
    rows = np.clip(theta / np.pi * height - 0.5, 0, height - 1)  # the picture is smooth between its rows
    low = np.minimum(rows.astype(int), height - 2)
    smooth = pixels[low] * (1 - (rows - low))[:, None, None] + pixels[low + 1] * (rows - low)[:, None, None]
    ring = smooth.mean(1) * (np.maximum(np.cos(theta), 0) * np.sin(theta))[:, None]
    wanted = 0.5 / np.pi * 2 * ring.sum(0) * 2 * np.pi * np.pi / (height * fine)
    values = render(picture, scene, samples=256 if lights == "bsdf" else 64)
    error = values.std((0, 1)) / np.sqrt(values.shape[0] * values.shape[1])
    assert (np.abs(values.mean((0, 1)) - wanted) < 4.5 * error + 6e-3 * wanted).all(), (values.mean((0, 1)), wanted)


def test_a_sun_of_one_texel_lights_and_shades_as_a_bright_disc(picture, tmp_path):
    """The convention: texel (i, j) of a map is centered at ((j + 1/2) / width, (i + 1/2) / height) of the sphere.

    Bilinear filtering leaves its light, radiance times solid angle. Below a square of area 1 the floor loses irradiance
    times 1 around the point behind its center. Mitsuba 3 stretches rows from pole to pole, (i / (height - 1)): such a
    sun is up to half a row elsewhere and 1 to 2 % brighter.
    """
    height, width, row, column = 64, 128, 16, 40
    theta, phi = (row + 0.5) / height * np.pi, ((column + 0.5) / width - 0.5) * 2 * np.pi
    toward = np.array([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)])
    irradiance = 3000 * np.sin(theta) * (np.pi / height) * (2 * np.pi / width)  # on a surface that faces the texel
    pixels = np.zeros((height, width, 3))
    pixels[row, column] = 3000
    x, y, z = 3 * toward / toward[1]
    corners = tuple((x + a, y, z + b) for a, b in ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)))
    view = Camera((0.0, 2.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, -1.0), fov_degrees=70.0)
    scene = floor_scene(quads=(FLOOR, Quad("floor", corners)), view=view)
    texel = replace(scene, environment=Environment(str(exr(tmp_path / "sun.exr", pixels))))
    disc = replace(scene, suns=(Sun(tuple(toward), (irradiance,) * 3, 2.8),))
    size, side = 48, 4 * np.tan(np.radians(35)) / 48
    across = (np.arange(size) + 0.5 - size / 2) * side
    for name, lit in (("texel", texel), ("disc", disc)):
        level = 0.5 / np.pi * irradiance * toward[1]
        shadow = level - render(picture, lit, (size, size), 64)[..., 0]
        assert shadow[:4].mean() == pytest.approx(0, abs=0.005 * level), name
        assert shadow.sum() * side**2 == pytest.approx(level, rel=0.015), name
        assert (shadow.sum(0) @ across) / shadow.sum() == pytest.approx(0, abs=0.01), name
        assert (shadow.sum(1) @ across) / shadow.sum() == pytest.approx(0, abs=0.01), name


def test_orientation_of_the_environment_map(picture, tmp_path):
    """-z in the middle, +x right of it, the zenith on top; rotation turns it about y."""
    height, width = 64, 128
    u, v = np.meshgrid((np.arange(width) + 0.5) / width, (np.arange(height) + 0.5) / height)
    theta, phi = v * np.pi, (u - 0.5) * 2 * np.pi
    pixels = np.stack([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)], -1) + 1
    path = exr(tmp_path / "directions.exr", pixels)
    for target in np.concatenate([np.eye(3), -np.eye(3)])[[0, 2, 3, 5]]:
        view = Camera((0.0, 0.0, 0.0), tuple(target), fov_degrees=1.0)
        scene = Settings(view=view, environment=Environment(str(path)))
        assert np.allclose(render(picture, scene, (4, 4), 1).mean((0, 1)), target + 1, atol=0.02), target
    turned = Settings(view=Camera((0, 0, 0), (0, 0, -1.0), fov_degrees=1.0), environment=Environment(str(path), 1, 90))
    wanted = rotation_claim(Environment)
    assert np.allclose(render(picture, turned, (4, 4), 1).mean((0, 1)), np.array(wanted) + 1, atol=0.02)


def rotation_claim(settings):
    """The direction that the help text says a rotation by 90 degrees brings to -z."""
    (field,) = [f for f in fields(settings) if f.name == "rotation_degrees"]
    sign, axis = re.search(r"90 brings to -z what was at ([+-])([xyz])$", field.metadata["help"]).groups()
    return tuple((1.0 if sign == "+" else -1.0) * (axis == name) for name in "xyz")


def test_meshes_rotate_as_their_help_text_says(picture, tmp_path):
    """A triangle at the place that the text names is at -z after 90 degrees; instances and models rotate alike."""
    x, y, z = rotation_claim(MeshShape)
    corners = [(x + dx, y + dy, z + dz) for dx, dy, dz in ((-0.1, -0.1, 0.1), (0.1, -0.1, -0.1), (0.0, 0.2, 0.0))]
    path = tmp_path / "flag.obj"
    path.write_text("".join(f"v {a} {b} {c}\n" for a, b, c in corners) + "f 1 2 3\n")
    scene = Settings(view=Camera((0.0, 0.0, 1.0), (0.0, 0.0, -1.0)), meshes=(MeshShape("plain", str(path), 1.0, 90.0),))
    assert picture.pick(scene, (32, 32), 16, 16) == pytest.approx(2, abs=0.15)
    assert picture.pick(replace(scene, meshes=(MeshShape("plain", str(path)),)), (32, 32), 16, 16) is None
    assert np.allclose(rotation_matrix((0.0, 90.0, 0.0)) @ (x, y, z), (0, 0, -1))


@pytest.mark.parametrize(
    "name",
    [
        "rough glass",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("metallic", "mirror", "diffuse", "conductor", "glass", "checker")
        ),
    ],
)
def test_white_furnace_by_an_environment(picture, tmp_path, name):
    """A white sphere in an environment of radiance 1 is invisible with every strategy of direct lighting."""
    path = exr(tmp_path / "white.exr", np.ones((8, 16, 3)))
    kind = name.split()[-1]
    rough = 0.0 if name == "glass" else 0.5
    ball = Material("m", kind, color=WHITE, color2=WHITE, roughness=rough, metallic=0.4)
    scene = Settings(
        view=Camera((0.0, 0.0, 3.0), fov_degrees=20.0), materials=(ball,), spheres=(Sphere("m"),),
        environment=Environment(str(path)), max_depth=16, rr_depth=16,
    )  # fmt: skip
    assert render(picture, scene, (24, 24), 64).mean() == pytest.approx(1, abs=0.012 if "glass" in name else 0.006)


@pytest.mark.parametrize("roughness", [0.3, 0.7])
def test_white_furnace_inside_of_rough_glass(picture, tmp_path, rng, roughness):
    """Seen from inside a closed sphere, whose wall stops every shadow ray but those from the wall itself.

    From near its center: from elsewhere total reflection keeps up to 2 % of the light for more than 16 reflections.
    """
    path = exr(tmp_path / "white.exr", np.ones((8, 16, 3)))
    ball = Material("m", "glass", color=WHITE, roughness=roughness)
    scene = Settings(
        view=Camera(tuple(rng.uniform(-0.15, 0.15, 3)), (1.0, 0.3, 0.1), fov_degrees=80.0), materials=(ball,),
        spheres=(Sphere("m"),), environment=Environment(str(path)), max_depth=16, rr_depth=16,
    )  # fmt: skip
    inside = ball.ior**2  # radiance is larger where the index is, by its square
    assert render(picture, scene, (24, 24), 64)[..., :3].mean() == pytest.approx(inside, rel=0.012)


def test_russian_roulette_keeps_the_mean_of_a_closed_gray_box(picture):
    from tests.raytracing.test_render import room

    wall = Material("wall", color=(0.6,) * 3, emission=(0.4,) * 3)
    base = Settings(view=Camera((0.1, 0.2, 0.3)), materials=(wall,), quads=room("wall"), max_depth=12)
    wanted = 0.4 * (1 - 0.6**12) / (1 - 0.6)
    for lights in ("bsdf", "mis", "nee"):
        for roulette in (1, 3):
            values = render(picture, replace(base, direct_lighting=lights, rr_depth=roulette), (32, 32), 64)
            error = values.std() / np.sqrt(values.size / 3)
            assert abs(values.mean() - wanted) < 4.5 * error + 1e-4, (lights, roulette)


def many_lights(path, **changes):
    """A glossy and a diffuse sphere and rough glass over a floor, lit by every kind of light."""
    materials = (
        *MATERIALS,
        Material("metal", "conductor", (0.9, 0.7, 0.4), roughness=0.7),
        Material("glass", "glass", (0.9, 0.95, 1.0), roughness=0.8),
        Material("bulb", "emitter", emission=(6.0, 2.0, 1.0)),
    )
    return replace(
        Settings(
            view=Camera((0.0, 1.5, 5.0), (0.0, 0.4, 0.0), fov_degrees=35.0), max_depth=4, materials=materials,
            quads=(SMALL, Quad("lamp", ((-0.4, 2.5, -0.4), (0.4, 2.5, -0.4), (0.4, 2.5, 0.4), (-0.4, 2.5, 0.4))),
                   Quad("glass", ((0.5, 0.9, -0.6), (1.6, 0.9, -0.6), (1.6, 0.9, 0.6), (0.5, 0.9, 0.6)))),
            spheres=(Sphere("metal", (-1.1, 0.6, 0.0), 0.6), Sphere("floor", (0.1, 0.4, 0.6), 0.4),
                     Sphere("bulb", (1.2, 0.35, 0.2), 0.2)),
            suns=(Sun((1.0, 2.0, 1.0), (0.2, 0.2, 0.15), 40.0),),
            environment=Environment(str(path), 0.05, 30.0),
        ), **changes)  # fmt: skip


def inside_rough_glass(path):
    """A closed sphere of rough glass around a diffuse one: the lights are behind one surface or two."""
    full = many_lights(path, max_depth=6)
    return replace(full, quads=full.quads[:2], spheres=(
        Sphere("glass", (0.0, 0.75, 0.0), 0.75), Sphere("floor", (0.0, 0.75, 0.0), 0.35),
        Sphere("bulb", (1.3, 0.35, 0.2), 0.2)))  # fmt: skip


def lamp_in_rough_glass(path):
    """A lamp inside a ball of rough glass, so near to its surface that offsets of rays matter."""
    full = many_lights(path, max_depth=5)
    return replace(full, quads=full.quads[:1], suns=(), spheres=(
        Sphere("glass", (0.0, 1.0, 0.0), 0.4), Sphere("bulb", (0.0, 1.0, 0.0), 0.15)))  # fmt: skip


def veach(path):
    """Veach's scene, its smallest lights as large as the third and its plates no smoother than the third, since the
    means of a few rare bright paths obey no z-test."""
    scene = load(SCENES / "veach.toml").settings
    lights = {s.material: s.radius for s in scene.spheres}
    materials = []
    for m in scene.materials:
        weaker = min(1.0, (lights.get(m.name, 1.0) / 0.3) ** 2)
        rougher = max(m.roughness, 0.3) if m.kind == "conductor" else m.roughness
        materials.append(replace(m, emission=tuple(weaker * e for e in m.emission), roughness=rougher))
    larger = tuple(replace(s, radius=max(s.radius, 0.3)) for s in scene.spheres)
    return replace(scene, max_depth=4, spheres=larger, materials=tuple(materials))


@pytest.mark.parametrize(
    "scene_of",
    [
        pytest.param(scene, marks=pytest.mark.slow)
        for scene in (inside_rough_glass, lamp_in_rough_glass, many_lights, veach)
    ],
)
def test_nee_bsdf_and_mis_have_one_mean(picture, tmp_path, rng, scene_of):
    """nee, bsdf and mis: z-tests of 4 x 3 tiles' means over seeds, of every kind of light."""
    pixels = np.exp(rng.normal(size=(16, 32, 3)))
    path = exr(tmp_path / "noise.exr", pixels)
    means, errors = {}, {}
    for lights in ("nee", "bsdf", "mis"):
        scene = replace(scene_of(path), direct_lighting=lights)
        first = int(rng.integers(1 << 30))
        frames = [render(picture, replace(scene, seed=first + k), (48, 36), 32) for k in range(16)]
        seeds = [frame.reshape(3, 12, 4, 12, 3).mean((1, 3)) for frame in frames]
        means[lights], error = np.mean(seeds, 0), np.std(seeds, 0, ddof=1) / np.sqrt(len(seeds))
        # rare bright paths that one tile has missed, and tells no error of, are in other tiles
        errors[lights] = np.maximum(error, means[lights] * np.sqrt(np.mean((error / means[lights]) ** 2)))
    for one, other in (("nee", "bsdf"), ("nee", "mis"), ("bsdf", "mis")):
        t = (means[one] - means[other]) / np.hypot(errors[one], errors[other])
        assert np.abs(t).max() < stats.t.isf(1e-6, 15), (one, other, t)
        assert (t**2).mean() < 5, (one, other)  # 1.2 and a scatter of 0.5 by Student's law, were all tiles independent
    assert errors["mis"].mean() < errors["bsdf"].mean()


PROBE = """
KERNEL aim(const LaunchParams params, float x, float y, float z, uint seed, GLOBAL float4 *found,
           GLOBAL float4 *arrivals, SCENE_PARAMS) {
    uint i = thread_index();
    LightSample light;
    bool any = sample_light(params, make_float3(x, y, z), SCENE_ARGS, make_sampler(seed, i, 0), 4, &light);
    found[i] = any ? with_w(light.direction, light.pdf) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    arrivals[i] = with_w(light.radiance, light.distance);
}
"""


def light_samples(device, settings, point, count, seed):
    """Directions and pdfs (count, 4) of light samples from one point, and radiances with distances."""
    picture = Picture(SimpleNamespace(device=device))
    settings = replace(settings, schedule="wavefront")
    picture._update_geometry(settings)
    geometry, materials = picture._geometry, material_rows(settings)
    lights = LightSampler(device, settings, geometry.primitives, materials)
    constants = compile_constants(settings, geometry.has_spheres) | NO_SCHEDULE  # no kernel but the probe
    source = GeneratedSource("materials", kernel_source().text + PROBE)
    kernel = device.kernel(source, "aim", group_size=64, **constants)
    found, arrivals = device.buffer((count, 4)), device.buffer((count, 4))
    rows = device.buffer(len(materials), materials.dtype).write(materials)
    view = launch_params(settings, (8, 8), (0, 0, 8, 8), lights.fields)
    scene = geometry.bvh.nodes, geometry.bvh.primitives, rows, lights.buffer
    kernel(count, view[()], *map(np.float32, point), np.uint32(seed), found, arrivals, *scene)
    return found.read(), arrivals.read()


@pytest.mark.parametrize("name", ["ball", "square", "sun", "environment", "all"])
def test_light_samples_follow_their_pdf(device, rng, tmp_path, name):
    """The sum of 1 / pdf over the samples of a region of directions estimates its solid angle, cell by cell."""
    pixels = np.exp(rng.normal(size=(8, 16, 3))) * 0.2
    path = exr(tmp_path / "noise.exr", pixels)
    full = many_lights(path)
    empty = replace(full, suns=(), environment=Environment(), quads=(SMALL,), spheres=full.spheres[:2])
    settings = {
        "ball": replace(empty, spheres=full.spheres),
        "square": replace(empty, quads=full.quads),
        "sun": replace(empty, suns=full.suns),
        "environment": replace(empty, environment=full.environment),
        "all": full,
    }[name]
    point, count = np.array([0.3, 0.1, 0.9]), 1 << 17
    found, arrivals = light_samples(device, settings, point, count, rng.integers(1 << 31))
    kept = found[:, 3] > 0
    direction, density = found[kept, :3].astype("f8"), found[kept, 3].astype("f8")
    assert np.allclose(np.linalg.norm(direction, axis=1), 1, atol=1e-5)
    solid = {
        "ball": 2 * np.pi * (1 - np.sqrt(1 - 0.2**2 / ((point - [1.2, 0.35, 0.2]) ** 2).sum())),
        "sun": 2 * np.pi * (1 - np.cos(np.radians(20))),
        "environment": 4 * np.pi,
    }
    if name in solid:
        estimate = np.where(kept, 1 / np.maximum(found[:, 3], 1e-30), 0)
        error = estimate.std() / np.sqrt(count)
        assert abs(estimate.mean() - solid[name]) < 4.5 * error + 1e-4
    if name == "environment":  # cell by cell
        column = ((np.arctan2(direction[:, 0], -direction[:, 2]) / (2 * np.pi) + 0.5) % 1 * 12).astype(int)
        row = np.clip(((1 - direction[:, 1]) / 2 * 6).astype(int), 0, 5)  # bands of equal solid angle
        cell = row * 12 + column
        sums = np.bincount(cell, 1 / density, 72) / count
        squares = np.bincount(cell, 1 / density**2, 72) / count
        z = (sums - 4 * np.pi / 72) / np.sqrt((squares - sums**2) / count)
        assert np.abs(z).max() < 4.8
    power = arrivals[kept, :3].astype("f8").mean(1) / density
    assert np.isfinite(power).all() and (power > 0).all()


def test_spheres_are_sampled_on_their_visible_side(device, rng):
    """Samples lie on the near side of the sphere, uniformly over its solid angle."""
    settings = replace(floor_scene(), spheres=(Sphere("lamp", (2.0, 3.0, 1.0), 0.7),))
    point = np.array([0.1, 0.0, -0.2])
    found, arrivals = light_samples(device, settings, point, 4096, rng.integers(1 << 31))
    ends = point + found[:, :3].astype("f8") * arrivals[:, 3:]
    assert np.allclose(np.linalg.norm(ends - [2, 3, 1], axis=1), 0.7, atol=1e-4)
    assert (((ends - [2, 3, 1]) * found[:, :3]).sum(1) < 0).all()
    towards = (np.array([2, 3, 1]) - point) / np.linalg.norm(np.array([2, 3, 1]) - point)
    cone = 1 - np.sqrt(1 - 0.49 / ((np.array([2, 3, 1]) - point) ** 2).sum())
    assert stats.kstest((1 - found[:, :3] @ towards) / cone, "uniform").pvalue > 1e-5


def test_daylight_is_preethams(rng):
    """Luminance at the zenith by its formula; blue away from the sun, brightest beside it; the sun reddens at dusk."""
    sky = Sky(1.0, 3.0, 35.0, 80.0)
    picture = sky_map(sky)
    chi = (4 / 9 - 3 / 120) * (np.pi - 2 * np.radians(55))
    zenith = (4.0453 * 3 - 4.9710) * np.tan(chi) - 0.2155 * 3 + 2.4192
    assert picture[0].mean(0) @ [0.2126, 0.7152, 0.0722] == pytest.approx(zenith, rel=0.02)
    assert picture[20, :, 2].mean() > 1.5 * picture[20, :, 0].mean()
    row, column = np.unravel_index(picture[:126].sum(-1).argmax(), (126, 512))
    theta, phi = (row + 0.5) / 256 * np.pi, ((column + 0.5) / 512 - 0.5) * 2 * np.pi
    found = np.array([np.sin(theta) * np.sin(phi), np.cos(theta), -np.sin(theta) * np.cos(phi)])
    assert found @ sun_direction(sky) > np.cos(np.radians(4))
    noon, dusk = sun_radiance(replace(sky, elevation_degrees=80.0)), sun_radiance(replace(sky, elevation_degrees=4.0))
    assert dusk[0] / dusk[2] > 3 * noon[0] / noon[2]
    for _ in range(5):
        any_sky = Sky(1.0, float(rng.uniform(2, 10)), float(rng.uniform(0, 90)), float(rng.uniform(-180, 180)))
        assert np.isfinite(sky_map(any_sky)).all() and (sky_map(any_sky) >= 0).all()


def test_the_sun_of_a_sky_is_a_light():
    """Its disc has the sky's radiance; a sky without a disc, or without strength, has no sun."""
    sky = Sky(2.0, 3.0, 35.0, 80.0)
    (sun,) = light_buffer._non_area_lights(Settings(sky=sky), 1.0, None)
    assert np.allclose(sun.emitted, sun_radiance(sky)) and np.allclose(sun.position, sun_direction(sky))
    assert sun.kind == pytest.approx(1 - np.cos(np.radians(0.533 / 2)), rel=0.02), "the sun's diameter in degrees"
    for none in (replace(sky, strength=0.0), replace(sky, sun_scale=0.0)):
        assert not light_buffer._non_area_lights(Settings(sky=none), 1.0, None)


def test_environment_cdf_covers_all_emissive_pixels(rng):
    pixels = np.zeros((64, 128, 3), "f4")
    pixels[10, 100] = 5
    rows, cells, _, total = environment_cdf(pixels)
    assert total == pytest.approx(5 * np.sin(10.5 / 64 * np.pi) * (np.pi / 64) * (2 * np.pi / 128))
    share = np.diff(rows.astype("f8"))[:, None] * np.diff(cells.astype("f8"), axis=1) / 2.0**64
    assert share[9:12, 99:102].sum() == pytest.approx(1, abs=1e-6) and share[10, 100] > 0.1


def test_environment_cdf_of_level_surfaces_is_that_of_all_times_the_cosine(rng):
    pixels = rng.uniform(0.1, 1, (64, 128, 3)).astype("f4")
    cdf = environment_cdf(pixels)
    rows, level = (np.diff(words.astype("f8")) / 2.0**32 for words in (cdf.marginal, cdf.level))
    cosines = np.cos(np.arange(32) / 64 * np.pi)  # of the upper edge of a row
    assert level[:32] == pytest.approx(rows[:32] * cosines / (rows[:32] * cosines).sum(), rel=1e-5)
    assert not level[32:].any()


def test_run_length_encoded_radiance_files_are_read(tmp_path, rng):
    width, height = 130, 3
    pixels = rng.integers(1, 255, (height, width, 4)).astype("u1")
    pixels[0, :70] = 7
    pixels[..., 3] = 130
    data = b"#?RADIANCE\n# a comment\nFORMAT=32-bit_rle_rgbe\n\n-Y 3 +X 130\n"
    for line in pixels:
        data += bytes([2, 2, width >> 8, width & 255])
        for channel in line.T:
            place = 0
            while place < width:
                run = 1
                while place + run < width and run < 127 and channel[place + run] == channel[place]:
                    run += 1
                if run > 3:
                    data += bytes([128 + run, channel[place]])
                else:
                    run = min(100, width - place)
                    data += bytes([run]) + channel[place : place + run].tobytes()
                place += run
    path = tmp_path / "coded.hdr"
    path.write_bytes(data)
    assert np.allclose(read_hdr(path), (pixels[..., :3] + 0.5) * 2.0 ** (130 - 136))
    for cut in (len(data) - 1, len(data) // 2, 70):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match="coded.hdr"):
            read_hdr(path)


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda p: p.__setitem__((2, 3, 1), np.nan), r"pixel \(3, 2\) is nan"),
        (lambda p: p.__setitem__((1, 0, 0), np.inf), r"pixel \(0, 1\) is inf"),
        (lambda p: p.__setitem__((0, 5, 2), -1), r"pixel \(5, 0\) is -1"),
        (lambda p: p.__imul__(0), "all pixels are black"),
    ],
)
def test_invalid_radiance_is_reported(picture, tmp_path, spoil, words):
    pixels = np.ones((4, 8, 3), "f4")
    spoil(pixels)
    path = exr(tmp_path / "bad.exr", pixels)
    with pytest.raises(InputError, match=f"bad.exr: {words}"):
        render(picture, Settings(environment=Environment(str(path))))


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "does not begin"),
        (b"#?RADIANCE\n", "has no size"),
        (b"#?RADIANCE\n\n-Y 999999 +X 999999\n", "allowed are 1 to"),
        (b"#?RADIANCE\n\n-Y 4096 +X 8192\n\2\2\x20\x00", "ends early"),
        (b"#?RADIANCE\n\n-Y 0 +X 8\n", "allowed are 1 to"),
        (b"#?RADIANCE\n\n+Y 4 +X 8\n" + bytes(128), "only -Y"),
        (b"#?RADIANCE\n\n-Y 1 +X 8\n\2\2\0\x09" + bytes(200), "scan line 0"),
        (b"#?RADIANCE\n\n-Y 1 +X 8\n\2\2\0\x08" + b"\xff\1" * 90, "damaged"),
        (b"#?RADIANCE\nFORMAT=32-bit_rle_xyze\n\n-Y 1 +X 8\n" + bytes(32), "XYZ"),
    ],
)
def test_invalid_radiance_files_are_reported(tmp_path, data, words):
    path = tmp_path / "hostile.hdr"
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"hostile.hdr.*{words}"):
        read_hdr(path)


def test_invalid_exr_files_are_reported(tmp_path, rng):
    path = exr(tmp_path / "sky.exr", np.ones((8, 16, 3)))
    good, no_primitives = path.read_bytes(), triangles(np.zeros((0, 3)), np.zeros((0, 3), int))
    place = good.index(b"dataWindow")
    lying = good[: place + 23] + np.array([0, 0, 100_000, 100_000], "<i4").tobytes() + good[place + 39 :]
    for data in (b"", good[:100], good[:-40], lying, rng.bytes(1000)):
        path.write_bytes(data)
        with pytest.raises(InputError, match="sky.exr"):
            LightSampler(None, Settings(environment=Environment(str(path))), no_primitives, material_rows(Settings()))


@pytest.mark.parametrize(
    "table, words",
    [
        ({"materials": [{"name": "m", "ior": 0.0}]}, r"materials\[0\]: ior is 0.0; it must be 0.1 to 10"),
        ({"materials": [{"name": "m", "roughness": -1}]}, r"materials\[0\]: roughness is -1.0; it must be 0.0 to 1.0"),
        ({"spheres": [{"material": "plain", "radius": 0.0}]}, r"spheres\[0\]: radius is 0.0"),
        ({"suns": [{"direction": [0, 0, 0]}]}, r"suns\[0\]: direction is \[0.0, 0.0, 0.0\]"),
        ({"point_lights": [{"intensity": [-1, 0, 0]}]}, r"point_lights\[0\]: intensity"),
        ({"sky": {"turbidity": 1}}, "sky: turbidity is 1.0; it must be 2.0 to 10.0"),
        (
            {"materials": [{"name": "l", "kind": "emitter", "emission": [1, 1, 1]}],
             "quads": [{"material": "l", "corners": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]]}]},
            r"quads\[0\]: a light of zero area",
        ),
    ],
)  # fmt: skip
def test_invalid_lights_and_materials_are_reported(table, words):
    with pytest.raises(InputError, match=f"scene.toml: settings.*{words}"):
        from_table(Settings, table, "scene.toml: settings", None)
