"""Instances, motion blur and distance fields of the ray tracer, against copies, stills, meshes and spheres."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.mesh import load_mesh
from renderer.pictures.raytrace import Picture
from renderer.raytracing.distance_fields import KINDS, DistanceField
from renderer.raytracing.instances import Instance, Scattered, instance_matrix, scatter
from renderer.raytracing.settings import Material, MeshShape, Procedural, Quad, Settings, Sphere
from renderer.scene.animation import read_animation, settings_at
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene
from renderer.scene.schema import from_table

MATTE = Material("matte", color=(0.7, 0.5, 0.3))
LAMP = Material("lamp", "emitter", emission=(9.0, 8.0, 6.0))
GLASS = Material("glass", "glass")
FLOOR = Quad("matte", ((-4.0, -1.0, 4.0), (4.0, -1.0, 4.0), (4.0, -1.0, -4.0), (-4.0, -1.0, -4.0)))
ROOF = Quad("lamp", ((-1.0, 3.0, -1.0), (1.0, 3.0, -1.0), (1.0, 3.0, 1.0), (-1.0, 3.0, 1.0)))


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def render(picture, settings, size=(48, 32), samples=1):
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()


def studio(**changes):
    settings = Settings(
        view=Camera((0.6, 0.9, 5.0)),
        horizon=(0.3, 0.4, 0.5),
        materials=(MATTE, LAMP, GLASS),
        quads=(FLOOR, ROOF),
        max_depth=4,
    )
    return replace(settings, **changes)


def crowded(rng, **changes):
    """Instances of two shapes, some moving, scattered instances, and a distance field of each kind."""
    named = (
        Sphere("matte", (0.2, 0.0, 0.0), 0.4, name="pair"),
        Sphere("glass", (-0.3, 0.3, 0.1), 0.3, name="pair"),
    )
    instances = tuple(
        Instance(shape, "", tuple(rng.uniform(-1.5, 1.5, 3)), tuple(rng.uniform(0, 360, 3)), float(rng.uniform(0.3, 1)))
        for shape in ("pair", "sponge", "pair")
    )
    closing = tuple(replace(i, position=tuple(np.add(i.position, rng.uniform(-0.5, 0.5, 3)))) for i in instances)
    fields = tuple(
        DistanceField("matte", kind, tuple(rng.uniform(-1, 1, 3)), tuple(rng.uniform(0, 90, 3)), 0.5, iterations=4)
        for kind in KINDS
    )
    grove = Scattered(("sponge", "pair"), 3, 2, (-2.0, -2.0), (2.0, 0.0), scale=(0.2, 0.4), height_scale=(0.5, 2.0))
    parts = dict(
        spheres=named, procedural=(Procedural("matte", "menger", 1, name="sponge"),), instances=instances,
        shutter_close=closing, distance_fields=fields, scattered=(grove,),
    )  # fmt: skip
    return studio(**(parts | changes))


@pytest.mark.slow
def test_no_schedule_or_bvh_changes_a_bit_of_instances_and_fields(picture, rng):
    scene, size = crowded(rng, schedule="wavefront", seed=int(rng.integers(0, 2**31 - 1))), (57, 34)
    wanted = render(picture, scene, size, 2)
    assert np.isfinite(wanted).all() and wanted[..., :3].mean() > 0.05
    changes = [{"schedule": name} for name in ("regenerate", "megakernel")] + [{"bvh": "bvh2", "stencil": "off"}]
    change = changes[rng.integers(len(changes))]  # another in every run: they compile slowly
    assert np.array_equal(wanted, render(picture, replace(scene, **change), size, 2)), change


def placed_file(tmp_path: Path, source: Path, matrix: np.ndarray) -> str:
    """Writes the mesh of a file transformed by a matrix (3, 4)."""
    vertices, faces = load_mesh(source)
    vertices = vertices @ matrix[:, :3].T + matrix[:, 3]
    if np.linalg.det(matrix[:, :3]) < 0:
        faces = faces[:, ::-1]
    lines = [f"v {x:.9g} {y:.9g} {z:.9g}" for x, y, z in vertices] + [f"f {a} {b} {c}" for a, b, c in faces + 1]
    path = tmp_path / f"placed{len(list(tmp_path.iterdir()))}.obj"
    path.write_text("\n".join(lines))
    return str(path)


CUBE = """v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1
f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8
"""


@pytest.mark.slow
def test_instances_look_as_their_copies_would(picture, rng, tmp_path):
    """Also reflected, scaled and sheared: depth, normal and radiance of every pixel."""
    (tmp_path / "cube.obj").write_text(CUBE)
    instances, copies = [], []
    for index in range(6):
        matrix = np.zeros((3, 4))
        matrix[:, :3] = rng.normal(size=(3, 3)) * 0.5 + np.eye(3) * (-1 if index % 2 else 1)
        matrix[:, 3] = rng.uniform(-1.5, 1.0, 3)
        instance = Instance("cube", "", tuple(rng.uniform(-0.3, 0.3, 3)), tuple(rng.uniform(0, 360, 3)), 0.6,
                            matrix=tuple(matrix.ravel()))  # fmt: skip
        instances.append(instance)
        copies.append(MeshShape("matte", placed_file(tmp_path, tmp_path / "cube.obj", instance_matrix(instance))))
    shape = MeshShape("matte", str(tmp_path / "cube.obj"), name="cube")
    placed = studio(meshes=(shape,), instances=tuple(instances), samples=64)
    copied = studio(meshes=tuple(copies), samples=64)
    seen, wanted = (picture.layers(s, (96, 64)) for s in (placed, copied))
    close = np.isclose(seen["depth"], wanted["depth"], rtol=1e-4)
    assert close.mean() > 0.995
    inner = close & (np.abs(seen["normal"] - wanted["normal"]).max(2) < 1e-3)
    assert inner.mean() > 0.97  # but for edges, where samples fall to either side
    light, true_light = (render(picture, s, (96, 64), 32)[..., :3] for s in (placed, copied))
    assert light.mean() == pytest.approx(true_light.mean(), rel=0.02)
    assert np.abs(light - true_light).mean() < 0.05 * true_light.mean()


@pytest.mark.slow
def test_a_stretched_sphere_is_an_ellipsoid(picture, rng):
    axes = rng.uniform(0.4, 1.6, 3)
    ball = Instance("ball", scale_xyz=tuple(axes))
    settings = studio(quads=(), spheres=(Sphere("matte", name="ball"),), instances=(ball,), samples=1)
    found = picture.layers(settings, (64, 48))
    camera = settings.view
    right, up, forward = camera.axes()
    x, y = np.meshgrid((np.arange(64) + 0.5) / 64 * 2 - 1, 1 - (np.arange(48) + 0.5) / 48 * 2)
    reach = np.tan(np.radians(camera.fov_degrees) / 2)
    way = forward + x[..., None] * reach * 64 / 48 * right + y[..., None] * reach * up
    way /= np.linalg.norm(way, axis=2, keepdims=True)
    d, e = way / axes, np.array(camera.position) / axes
    a, b, c = (d * d).sum(2), (d * e).sum(2), e @ e - 1
    with np.errstate(invalid="ignore"):
        t = (-b - np.sqrt(b * b - a * c)) / a
    hit = np.isfinite(found["depth"])
    assert (hit == ~np.isnan(t)).mean() > 0.995 and hit.sum() > 50
    both = hit & ~np.isnan(t)
    assert np.allclose(found["depth"][both], t[both], rtol=1e-4)


@pytest.mark.slow
def test_an_instance_may_override_the_material(picture):
    red = Material("red", color=(1.0, 0.0, 0.0))
    settings = studio(
        quads=(), materials=(MATTE, red), spheres=(Sphere("matte", name="ball"),),
        instances=tuple(Instance("ball", name, (x, 0.0, 0.0), scale=0.7) for name, x in (("", -1.0), ("red", 1.0))),
    )  # fmt: skip
    albedo = picture.layers(settings, (64, 32))["albedo"].reshape(-1, 3)
    for color in (MATTE.color, red.color):
        assert (np.abs(albedo - color).max(1) < 1e-6).sum() > 20


@pytest.mark.slow
def test_motion_blur_is_the_mean_of_stills(picture, rng):
    """Stills at random times of the shutter interval."""
    opening = Instance("ball", "", (-0.6, 0.2, 0.0), (0.0, 0.0, 0.0), 0.5)
    closing = replace(opening, position=(0.5, 0.0, 0.4), scale=0.8)
    size, scene = (40, 28), studio(spheres=(Sphere("lamp", name="ball"),), instances=(opening,), max_depth=3)
    blurred = render(picture, replace(scene, shutter_close=(closing,), samples=1024), size, 512)[..., :3]
    first, last = instance_matrix(opening), instance_matrix(closing)
    stills = []
    for moment in (np.arange(64) + rng.random(64)) / 64:
        matrix = tuple((first + (last - first) * moment).ravel())
        still = replace(scene, instances=(Instance("ball", matrix=matrix),), seed=int(rng.integers(1 << 30)))
        stills.append(render(picture, still, size, 8)[..., :3])
    wanted, error = np.mean(stills, 0), np.std(stills, 0) / 8
    assert blurred.mean() == pytest.approx(wanted.mean(), rel=0.02)
    sharp = render(picture, scene, size, 32)[..., :3]
    assert np.abs(sharp - wanted).mean() > 0.1 * wanted.mean(), "nothing moved"
    apart = np.abs(blurred - wanted) / np.maximum(error, 0.02 * wanted.max())
    assert np.mean(apart) < 1.2 and np.percentile(apart, 99) < 5


def test_key_frames_of_instances_blur_while_the_shutter_is_open():
    ball = Sphere("matte", name="ball")
    scene = studio(spheres=(ball,), instances=(Instance("ball"), Instance("ball", position=(0.0, 1.0, 0.0))))
    keys = [
        {"time": t, "interpolation": "linear", "set": {"instances.0.position": [4.0 * t, 0.0, 0.0]}} for t in (0.0, 1.0)
    ]
    for shutter in (0.0, 0.25):
        settings = replace(scene, exposure_seconds=shutter)
        film = Scene(
            Path("film.toml"),
            "film",
            "raytrace",
            settings,
            animation=read_animation({"keyframes": keys}, settings, "f", Path()),
        )
        shown = settings_at(film, 0.5)
        assert shown.instances[0].position == (2.0, 0.0, 0.0)
        if shutter:
            assert [i.position for i in shown.shutter_close] == [(3.0, 0.0, 0.0), (0.0, 1.0, 0.0)]
        else:
            assert shown.shutter_close == ()


@pytest.mark.slow
def test_moving_instances_rebuilds_only_the_tlas(picture, rng):
    scene = crowded(rng, shutter_close=())
    render(picture, scene)
    geometry = picture._geometry
    moved = tuple(replace(i, position=tuple(rng.uniform(-1, 1, 3))) for i in scene.instances)
    after = render(picture, replace(scene, instances=moved))
    assert picture._geometry is geometry
    picture._geometry_key = None
    assert np.array_equal(after, render(picture, replace(scene, instances=moved)))


def test_scattered_instances_stay_in_their_cells(rng):
    field = Scattered(("a", "b", "c"), 7, 5, (-3.0, 2.0), (4.0, 12.0), 1.5, scale=(0.5, 2.0), height_scale=(1.0, 3.0))
    which, matrices = scatter(replace(field, seed=int(rng.integers(1 << 30))))
    x, y, z = matrices[:, :, 3].T
    assert set(which) <= {0, 1, 2} and len(set(which)) == 3 and (y == 1.5).all()
    assert (np.floor((x + 3) / 1) == np.arange(35) % 7).all() and (np.floor((z - 2) / 2) == np.arange(35) // 7).all()
    sizes = np.linalg.norm(matrices[:, :, :3], axis=1)
    assert np.allclose(sizes[:, 0], sizes[:, 2]) and ((sizes[:, 0] >= 0.5) & (sizes[:, 0] <= 2)).all()
    assert ((sizes[:, 1] / sizes[:, 0] >= 1 - 1e-9) & (sizes[:, 1] / sizes[:, 0] <= 3)).all()
    assert (np.linalg.det(matrices[:, :, :3]) > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", [1, 3])
def test_the_sponge_of_distances_is_the_sponge_of_triangles(picture, rng, level):
    view = Camera(tuple(rng.uniform(1.0, 2.0, 3)), (0.0, 0.0, 0.0))
    plain = Settings(view=view, materials=(MATTE,), horizon=(1.0, 1.0, 1.0), zenith=(1.0, 1.0, 1.0), samples=1)
    mesh = replace(plain, procedural=(Procedural("matte", "menger", level),))
    field = replace(plain, distance_fields=(DistanceField("matte", "menger", iterations=level, detail=1e-5),))
    seen, wanted = (picture.layers(s, (80, 60)) for s in (field, mesh))
    hit = np.isfinite(wanted["depth"])
    assert hit.sum() > 300 and (np.isfinite(seen["depth"]) == hit).mean() > 0.995
    both = hit & np.isfinite(seen["depth"])
    assert (np.abs(seen["depth"][both] - wanted["depth"][both]) < 1e-3).mean() > 0.99
    light, true_light = (render(picture, s, (80, 60), 16)[..., :3].mean() for s in (field, mesh))
    assert light == pytest.approx(true_light, rel=0.01)


@pytest.mark.slow
def test_the_julia_set_of_nothing_is_a_sphere(picture):
    """In depth, reflected light and shadow."""
    field = DistanceField(
        "matte", "julia", (0.0, 0.1, 0.0), iterations=20, c=(0.0, 0.0, 0.0, 0.0), scale=0.9, detail=2e-5
    )
    julia = studio(distance_fields=(field,), samples=1)
    ball = studio(spheres=(Sphere("matte", (0.0, 0.1, 0.0), 0.9),), samples=1)
    seen, wanted = (picture.layers(s, (80, 60)) for s in (julia, ball))
    assert np.isclose(seen["depth"], wanted["depth"], rtol=0, atol=2e-3).mean() > 0.99
    light, true_light = (render(picture, s, (40, 30), 64)[..., :3] for s in (julia, ball))
    assert light.mean() == pytest.approx(true_light.mean(), rel=0.01)
    assert np.abs(light - true_light).mean() < 0.06 * true_light.mean()


def bulb_escapes(p, power, iterations):
    """Mask of the points (n, 3) that leave the sphere of radius 4, by angles in double precision."""
    z, out = p.astype("f8"), np.zeros(len(p), bool)
    for _ in range(iterations):
        r = np.linalg.norm(z, axis=1)
        out |= r > 4
        theta, phi = np.arccos(np.clip(z[:, 2] / np.maximum(r, 1e-30), -1, 1)), np.arctan2(z[:, 1], z[:, 0])
        r = np.minimum(r, 10.0) ** power
        turned = [np.sin(power * theta) * np.cos(power * phi), np.sin(power * theta) * np.sin(power * phi),
                  np.cos(power * theta)]  # fmt: skip
        z = np.where(out[:, None], 100.0, r[:, None] * np.stack(turned, 1) + p)
    return out | (np.linalg.norm(z, axis=1) > 4)


@pytest.mark.parametrize(
    ("power", "iterations"),
    [pytest.param(power, count, marks=pytest.mark.slow) for power, count in ((2, 14), (5, 8), (8, 7))],
)
def test_rays_reach_the_bulb_and_stop_before_it(picture, power, iterations):
    """Rays stop just before points that do not escape, and pass only points that escape."""
    view = Camera((0.3, 0.4, 4.0), fov_degrees=50.0)
    field = DistanceField("matte", "mandelbulb", power=power, iterations=iterations, detail=1e-3)
    depth = picture.layers(Settings(view=view, materials=(MATTE,), distance_fields=(field,), samples=1), (40, 40))[
        "depth"
    ]
    right, up, forward = view.axes()
    grid = (np.arange(40) + 0.5) / 20 - 1
    reach = np.tan(np.radians(25))
    way = forward + grid[None, :, None] * reach * right - grid[:, None, None] * reach * up
    way /= np.linalg.norm(way, axis=2, keepdims=True)
    hit = np.isfinite(depth)
    assert hit.sum() > 100
    steps = np.linspace(2.0, 6.0, 4000)
    passed = ends = wrong = 0
    for direction, t in zip(way[hit][::7], depth[hit][::7], strict=True):
        escapes = bulb_escapes(view.position + steps[:, None] * direction, power, iterations)
        wrong += (~escapes & (steps < t - 2e-3)).any()
        ends += (~escapes & (np.abs(steps - t) < 0.05)).any()
        passed += 1
    assert wrong <= 0.02 * passed and ends > 0.8 * passed


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"instances": [{"shape": "tree"}]}, "instances[0]: shape is 'tree'; allowed are none: no shape has a name"),
        ({"spheres": [{"material": "plain", "name": "a"}], "instances": [{"shape": "a", "material": "b"}]},
         "instances[0]: material is 'b'; allowed are plain"),
        ({"instances": [{"shape": "a", "matrix": [1, 2]}]}, "matrix has 2 numbers; it must have 12"),
        ({"instances": [{"shape": "a", "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 0]}]}, "matrix is singular"),
        ({"instances": [{"shape": "a", "scale": 0}]}, "scale is 0.0; it must be 1e-09 to 1000000000.0"),
        ({"scattered": [{"shapes": []}]}, "shapes is empty"),
        ({"scattered": [{"shapes": ["a"], "columns": 4096, "rows": 4096}]}, "more than the 1048576 allowed"),
        ({"scattered": [{"shapes": ["a"]}]}, "scattered[0]: shape is 'a'"),
        ({"distance_fields": [{"material": "plain", "kind": "cube"}]}, "allowed are julia, mandelbulb, menger"),
        ({"distance_fields": [{"material": "x", "kind": "julia"}]}, "distance_fields[0]: material is 'x'"),
        ({"distance_fields": [{"material": "plain", "kind": "julia"}] * 65}, "65 distance_fields are more than the 64"),
        ({"spheres": [{"material": "plain", "name": "a"}], "shutter_close": [{"shape": "a"}]},
         "shutter_close has other shapes"),
    ],
)  # fmt: skip
def test_invalid_scenes_are_reported_in_one_sentence(table, told):
    with pytest.raises(InputError) as error:
        from_table(Settings, table, "scene.toml: settings", None)
    assert told in str(error.value) and "scene.toml: settings" in str(error.value)
