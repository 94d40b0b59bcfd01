"""Fog and volumes: transmittance and single scattering against quadrature in NumPy, furnaces, bits, bad input."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from renderer.errors import InputError
from renderer.pictures.raytrace import Picture
from renderer.raytracing.settings import Environment, Material, PointLight, Quad, Settings, Sphere, Sun
from renderer.raytracing.volumes import Fog, Volume, read_grid
from renderer.scene.cameras import Camera
from tests.raytracing.lights.test_lights import FLOOR, MATERIALS, exr, render

LAMP = Material("lamp", "emitter", emission=(1.0, 1.0, 1.0))
BACK = Quad("lamp", ((-50, -50, -3.0), (50, -50, -3.0), (50, 50, -3.0), (-50, 50, -3.0)))
NARROW = Camera((0.1, 0.2, 3.0), (0.2, 0.1, -3.0), fov_degrees=0.01)  # all pixels see nearly one ray


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def lattice(x, y, z):
    """lattice_value of volumes.h: PCG's output permutation of a hash of three integers."""
    with np.errstate(over="ignore"):
        x, y, z = (np.asarray(axis, "i4").view("u4") for axis in (x, y, z))
        u = x * np.uint32(0x8DA6B343) ^ y * np.uint32(0xD8163841) ^ z * np.uint32(0xCB1AB31F)
        u = u * np.uint32(747796405) + np.uint32(2891336453)
        u = ((u >> ((u >> np.uint32(28)) + np.uint32(4))) ^ u) * np.uint32(277803737)
        return (((u >> np.uint32(22)) ^ u) >> np.uint32(8)) * 2.0**-24


def noise(p):
    """Value noise of four octaves of points (n, 3)."""
    total, weight = np.zeros(len(p)), 8 / 15
    for _ in range(4):
        low = np.floor(p).astype("i4")
        f = p - low
        f = f * f * (3 - 2 * f)
        for corner in np.ndindex(2, 2, 2):
            share = np.prod(np.where(np.array(corner), f, 1 - f), 1)
            total += weight * share * lattice(*(np.ascontiguousarray(low[:, k] + corner[k], "i4") for k in range(3)))
        p, weight = p * 2, weight / 2
    return total


def density(volume, points, grid=None):
    """The extinction of a volume at points (n, 3)."""
    p = (points - np.array(volume.position)) * 2 / np.array(volume.size)
    inside = (p**2).sum(1) <= 1 if volume.shape == "ellipsoid" else (np.abs(p) <= 1).all(1)
    value = np.ones(len(p))
    if grid is not None:
        cells = [(p[:, 2 - k] / 2 + 0.5) * grid.shape[k] - 0.5 for k in range(3)]
        value = map_coordinates(grid.astype("f8"), cells, order=1, mode="nearest")
    elif volume.field != "constant":
        value = np.ones(len(p)) if volume.field == "noise" else np.maximum(1 - (p**2).sum(1), 0)
        if volume.field != "falloff":
            value = value * np.clip(3 * noise(p * volume.cells / 2) - 1, 0, 1)
    return volume.density * value * inside


def optical_depth(volume, start, end, grid=None, steps=4000):
    """The integral of the extinction between two points, by the midpoint rule."""
    t = (np.arange(steps) + 0.5) / steps
    points = np.array(start) + t[:, None] * np.subtract(end, start)
    return density(volume, points, grid).mean() * np.linalg.norm(np.subtract(end, start))


def volumes_of(rng, tmp_path):
    """Volumes of all fields with their grids, each crossed by the view axis."""
    grid = rng.uniform(0, 2, (4, 5, 6)).astype("f4")
    path = tmp_path / "grid.npy"
    np.save(path, grid)
    return [
        (Volume("box", (0.1, 0.0, 0.3), (1.5, 2.0, 1.0), 0.8), None),
        (Volume("ellipsoid", (0.0, 0.3, 0.0), (1.5, 2.0, 3.0), 0.5), None),
        (Volume("ellipsoid", (0.2, 0.3, 0.0), (1.5, 2.0, 3.0), 1.5, "falloff"), None),
        (Volume("box", (0.1, 0.0, 0.3), (1.5, 2.0, 3.0), 1.2, "noise"), None),
        (Volume("box", (0.1, 0.2, 0.1), (1.5, 2.0, 3.0), 4.0, "cloud", cells=5), None),
        (Volume("box", (0.1, 0.1, 0.2), (1.0, 2.0, 3.0), 0.4, file=str(path)), grid),
    ]


@pytest.mark.slow
def test_camera_rays_pass_by_the_analytic_transmittance(picture, rng, tmp_path):
    """Delta tracking of absorbing volumes in front of an emitter, alone, then all of them in fog."""
    base = Settings(view=NARROW, materials=(LAMP,), quads=(BACK,), max_depth=1, seed=int(rng.integers(1 << 30)))
    axis = np.subtract(NARROW.target, NARROW.position)
    end = np.array(NARROW.position) + axis
    volumes = volumes_of(rng, tmp_path)
    depths = [optical_depth(volume, NARROW.position, end, grid) for volume, grid in volumes]
    assert min(depths) > 0.05 and max(depths) < 3
    cases = [((volume,), Fog(), depth) for (volume, _), depth in zip(volumes, depths, strict=True)]
    fog = Fog(0.05, 0.5)
    cases.append((tuple(v for v, _ in volumes[:3]), fog, sum(depths[:3]) + 0.05 * np.linalg.norm(axis)))
    for chosen, mist, depth in cases:
        dark = tuple(replace(volume, albedo=0.0) for volume in chosen)
        values = render(picture, replace(base, volumes=dark, fog=replace(mist, albedo=0.0)), samples=32)[..., 0]
        error = np.sqrt(np.exp(-depth) * (1 - np.exp(-depth)) / (32 * values.size))
        assert abs(values.mean() - np.exp(-depth)) < 5 * error + 1e-4, (chosen, values.mean(), np.exp(-depth))


@pytest.mark.parametrize(
    "fields", [("constant", "cloud"), pytest.param((), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_shadow_rays_pass_by_the_analytic_transmittance(picture, rng, tmp_path, fields):
    """Ratio tracking between a floor and a point light: irradiance times the transmittance."""
    light, below = np.array([0.3, 2.5, 0.2]), np.zeros(3)
    view = Camera((0.0, 0.01, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), fov_degrees=1.0)
    power = 0.5 / np.pi * 7 * light[1] / np.linalg.norm(light) ** 3
    base = Settings(view=view, materials=MATERIALS, quads=(FLOOR,), max_depth=2, seed=int(rng.integers(1 << 30)),
                    point_lights=(PointLight(tuple(light), (7.0, 7.0, 7.0)),))  # fmt: skip
    for volume, grid in volumes_of(rng, tmp_path):
        if fields and volume.field not in fields:
            continue
        above = replace(volume, position=(0.15, 1.3, 0.1), albedo=0.0)
        above = replace(above, size=(1.5, 2.0, 1.8))
        passed = np.exp(-optical_depth(above, below, light, grid))
        values = render(picture, replace(base, volumes=(above,)), samples=32)[..., 0]
        error = values.std() / np.sqrt(values.size)
        assert passed < 0.97 and abs(values.mean() - power * passed) < 5 * error + 2e-3 * power * passed, above


@pytest.mark.parametrize(
    "g, near", [(0.7, 0.8), (0.7, 0.02), *(pytest.param(g, 0.8, marks=pytest.mark.slow) for g in (0.0, -0.4))]
)
def test_single_scattering_is_its_integral(picture, rng, g, near):
    """A point light beside the ray in fog: phase function, transmittance and distance integrated along the ray."""
    sigma, albedo, place = 0.3, np.array([0.9, 0.6, 0.3]), np.array([near, 0.4 * near, -1.0])
    view = Camera((0.0, 0.0, 2.0), (0.0, 0.0, -1.0), fov_degrees=0.01)
    scene = Settings(view=view, fog=Fog(sigma, 1.0, tuple(albedo), g), max_depth=2, seed=int(rng.integers(1 << 30)),
                     point_lights=(PointLight(tuple(place), (5.0, 5.0, 5.0)),),
                     materials=MATERIALS)  # none is seen: the kernels are those of scenes with these  # fmt: skip
    t = (np.arange(200_000) + 0.5) / 200_000 * 60
    to_light = place - (np.array([0.0, 0.0, 2.0]) + t[:, None] * [0.0, 0.0, -1.0])
    distance = np.linalg.norm(to_light, axis=1)
    cosine = -to_light[:, 2] / distance
    phase = (1 - g * g) / (4 * np.pi * (1 + g * g - 2 * g * cosine) ** 1.5)
    wanted = (sigma * 5 * phase * np.exp(-sigma * (t + distance)) / distance**2).mean() * 60 * albedo
    values = render(picture, scene, samples=64)
    error = values.std((0, 1)) / np.sqrt(values.shape[0] * values.shape[1])
    assert (error < 2e-3 * wanted).all()  # with free flights alone it is 0.05 of the near light's
    assert (np.abs(values.mean((0, 1)) - wanted) < 5 * error + 1e-3 * wanted).all(), (values.mean((0, 1)), wanted)


def walks(rng, count, density, albedo, g, direction):
    """Mean radiance of paths that enter a ball of radius 1 through its center: NumPy's own free flights and angles."""
    position, direction = np.tile(-direction, (count, 1)), np.tile(direction, (count, 1))
    total, weight = 0.0, 1.0
    while len(position):
        ahead = (position * direction).sum(1)
        leave = -ahead + np.sqrt(np.maximum(ahead**2 - (position**2).sum(1) + 1, 0))
        flight = rng.exponential(1 / density, len(position))
        stays = flight < leave
        total += weight * np.maximum(direction[~stays, 1], 0).sum()
        position = position[stays] + flight[stays, None] * direction[stays]
        xi, turn = rng.uniform(size=len(position)), rng.uniform(0, 2 * np.pi, len(position))
        cosine = (1 + g * g - ((1 - g * g) / (1 - g + 2 * g * xi)) ** 2) / (2 * g)
        old = direction[stays]
        side = np.cross(old, np.eye(3)[np.abs(old).argmin(1)])
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        around = np.cos(turn)[:, None] * side + np.sin(turn)[:, None] * np.cross(old, side)
        direction = cosine[:, None] * old + np.sqrt(1 - cosine**2)[:, None] * around
        weight *= albedo
    return total / count


def test_paths_of_many_scatterings_are_walks(picture, rng):
    """A furnace is blind to a direction that is not drawn anew; a sky that is bright above alone is not."""
    axis, g, density, albedo = np.array([0.0, 0.96, -0.28]), 0.6, 2.0, 0.9
    volume = Volume("ellipsoid", (0.0, 0.0, 0.0), (2.0, 2.0, 2.0), density, albedo=albedo, anisotropy=g)
    view = Camera(tuple(-3 * axis), (0.0, 0.0, 0.0), fov_degrees=0.01)
    scene = Settings(view=view, volumes=(volume,), zenith=(1.0, 1.0, 1.0), max_depth=64, rr_depth=64,
                     materials=MATERIALS, seed=int(rng.integers(1 << 30)))  # fmt: skip
    values = render(picture, scene, (40, 40), 32)[..., 0]
    error = values.std() / np.sqrt(values.size)
    wanted = walks(rng, 100_000, density, albedo, g, axis)
    assert error < 3e-3 and abs(values.mean() - wanted) < 5 * error + 3e-3, (values.mean(), wanted)


def segment_scenes(rng):
    """Scenes in which equiangular sampling meets all that it shares a ray with."""
    floor = {"materials": (*MATERIALS, Material("glass", "glass", (1.0, 1.0, 1.0), ior=1.5)), "quads": (FLOOR,)}
    ball, view = (Sphere("glass", (0.4, 0.5, 0.2), 0.5),), Camera((0.0, 0.7, 4.0), (0.0, 0.6, 0.0), fov_degrees=30.0)
    lights = (
        PointLight((-0.7, 0.9, 0.3), (1.0, 0.7, 0.4)),
        PointLight((0.9, 1.4, -0.6), (3.0, 4.0, 5.0), direction=(-0.3, -1.0, 0.1), outer_degrees=40.0),
    )
    many = tuple(PointLight(tuple(place), (0.4, 0.3, 0.2)) for place in rng.uniform((-2, 0.2, -2), (2, 2, 2), (24, 3)))
    base = Settings(view=view, max_depth=4, rr_depth=2, point_lights=lights, horizon=(0.2, 0.2, 0.3), **floor)
    box = Volume("box", (0.0, 0.8, 0.0), (2.5, 1.0, 2.0), 0.6, albedo=0.8, anisotropy=0.4)
    cloud = Volume("ellipsoid", (-0.2, 0.8, 0.3), (2.0, 1.5, 2.0), 3.0, "cloud", albedo=0.7)
    fog = Fog(0.15, 0.9, (1.0, 0.8, 0.6), 0.5, 6.0)
    yield "fog, sun and glass", replace(base, spheres=ball, fog=fog, suns=(Sun((0.3, 0.6, 0.2), angle_degrees=5.0),))
    yield "overlapping volumes", replace(base, fog=fog, volumes=(box, cloud), projection="orthographic")
    yield "next-event estimation", replace(base, volumes=(box,), direct_lighting="nee")
    yield "light tree", replace(base, fog=fog, volumes=(box,), light_sampler="tree", point_lights=lights + many[:3])
    yield "more lights than are weighed", replace(base, fog=fog, point_lights=many, light_sampler="power")


@pytest.mark.slow
def test_equiangular_sampling_keeps_the_mean(picture, rng, monkeypatch):
    """Against free flights alone, over 16 seeds: means by thirds of the picture by a z-test; less variance."""
    for name, scene in segment_scenes(rng):
        found = []
        for is_on in (True, False):
            with monkeypatch.context() as patch:
                if not is_on:
                    patch.setattr(Settings, "samples_segments", False)
                runs = [render(picture, replace(scene, seed=seed), (32, 24), 16) for seed in range(16)]
            found.append(np.array(runs).reshape(16, 3, 8 * 32 * 3).mean(-1))
        (new, old), count = found, 16
        spread = np.sqrt((new.var(0, ddof=1) + old.var(0, ddof=1)) / count)
        z = (new.mean(0) - old.mean(0)) / spread
        assert (np.abs(z) < 4).all() and (spread < 0.1 * old.mean(0)).all(), (name, z, spread / old.mean(0))
        assert new.var(0).sum() < old.var(0).sum(), name


FURNACES = {
    "fog": {"fog": Fog(0.5, 1.0, anisotropy=-0.3, radius=1.0)},
    "cloud": {
        "volumes": (Volume("box", size=(2.0, 1.0, 2.0), density=3.0, albedo=1.0, field="cloud", anisotropy=0.6),)
    },
}


@pytest.mark.parametrize("name", FURNACES)
@pytest.mark.parametrize("lights", ["mis", *(pytest.param(name, marks=pytest.mark.slow) for name in ("nee", "bsdf"))])
def test_white_furnace(picture, tmp_path, name, lights):
    """Media of albedo 1 around a white sphere are invisible in a white world: phase function and its pdf are one."""
    path = exr(tmp_path / "white.exr", np.ones((8, 16, 3)))
    scene = Settings(view=Camera((0.0, 0.5, 3.0), fov_degrees=25.0), max_depth=16, rr_depth=16, direct_lighting=lights,
                     materials=(Material("white", color=(1.0, 1.0, 1.0)),), spheres=(Sphere("white", radius=0.3),),
                     environment=Environment(str(path)), **FURNACES[name])  # fmt: skip
    values = render(picture, scene, (20, 20), 48)
    error = values.mean(-1).std() / np.sqrt(values.size / 3)
    assert abs(values.mean() - 1) < 5 * error + 1e-3, values.mean()


@pytest.mark.slow
def test_schedules_and_tiles_draw_the_same_bits(picture, rng, tmp_path):
    volumes = tuple(volume for volume, _ in volumes_of(rng, tmp_path))
    scene = Settings(view=Camera((0.0, 0.5, 3.0)), materials=MATERIALS, quads=(FLOOR,), max_depth=5, rr_depth=2,
                     spheres=(Sphere("lamp", (0.3, 1.5, 0.0), 0.2),), volumes=volumes, fog=Fog(0.1),
                     point_lights=(PointLight((0.0, 1.0, 1.0)),), seed=int(rng.integers(1 << 30)))  # fmt: skip
    wanted = render(picture, replace(scene, schedule="wavefront"), (32, 24), 2)
    assert np.isfinite(wanted).all() and wanted.any()
    for schedule in ("megakernel", "regenerate"):
        assert np.array_equal(render(picture, replace(scene, schedule=schedule), (32, 24), 2), wanted), schedule
    picture.restart()
    for _ in range(2):
        tile = picture.draw(scene, (32, 24), 0.0, (8, 4, 16, 12))
    assert np.array_equal(tile.read()[..., :3].astype("f8"), wanted[4:16, 8:24])


def test_scenes_without_media_compile_without_them(picture):
    scene = Settings(materials=(LAMP,), spheres=(Sphere("lamp"),), fog=Fog(0.0, 0.3), volumes=(Volume(density=0.0),))
    wanted = render(picture, replace(scene, fog=Fog(), volumes=()), (16, 16), 1)
    count = len(picture._kernels)
    assert np.array_equal(render(picture, scene, (16, 16), 1), wanted) and len(picture._kernels) == count


@pytest.mark.parametrize("changes, words", [
    ({"fog": Fog(0.1), "suns": (Sun(),)}, "fog.density is 0.1 and suns is set; fog without end lets no light from inf"),
    ({"fog": Fog(0.1), "integrator": "whitted"}, "integrator is whitted, which draws neither fog nor volumes"),
    ({"volumes": (Volume(),) * 65}, "65 volumes are more than the 64 allowed"),
])  # fmt: skip
def test_media_that_cannot_be_drawn_are_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        Settings(**changes)


def test_bad_volumes_are_one_sentence(tmp_path):
    with pytest.raises(ValueError, match="density times the diagonal is 1.73205e[+]06; it must be at most 10000"):
        Volume(density=1e6)
    with pytest.raises(ValueError, match="file and field 'noise' are both set"):
        Volume(file="a.npy", field="noise")
    path = tmp_path / "grid.npy"
    for array, words in (
        (np.zeros((2, 2), "f4"), "a grid of densities is float32"), (np.zeros((2, 2, 2)), "holds float64 of shape"),
        (np.full((2, 2, 2), -1, "f4"), r"value \(0, 0, 0\) is -1.0; a density is at least 0"),
        (np.full((2, 2, 2), np.nan, "f4"), r"value \(0, 0, 0\) is nan"),
    ):  # fmt: skip
        np.save(path, array)
        with pytest.raises(InputError, match=words):
            read_grid(path)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(InputError, match="truncated"):
        read_grid(path)
    with pytest.raises(InputError, match="no grid of densities; allowed is .npy"):
        read_grid(tmp_path / "grid.vdb")
