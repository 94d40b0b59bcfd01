"""Caustics of balls: sampled chains against plain path tracing, whose paths find the same light by chance."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import GeneratedSource, preprocess
from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import compile_constants, kernel_source
from renderer.raytracing.lights import caustic_shapes
from renderer.raytracing.lights.caustic_shapes import ball_rows, caustics_hint, mesh_rows
from renderer.raytracing.lights.light_buffer import LightSampler
from renderer.raytracing.settings import Fog, Material, MeshShape, PointLight, Quad, Settings, Sphere, Sun
from renderer.raytracing.solids import Solid
from renderer.scene.cameras import Camera

SIZE = (24, 16)
FLOOR = Quad("white", ((-3.0, 0.0, -3.0), (-3.0, 0.0, 3.0), (3.0, 0.0, 3.0), (3.0, 0.0, -3.0)))


def scene(**changes):
    """A lamp, a ball of glass and one that mirrors, over a floor, which alone is seen."""
    materials = (
        Material("white", color=(0.7, 0.7, 0.7)),
        Material("lamp", "emitter", emission=(260.0, 217.0, 174.0)),
        Material("glass", "glass", color=(0.9, 1.0, 0.9), ior=1.5),
        Material("silver", "mirror", color=(0.9, 0.8, 0.7)),
    )
    spheres = (Sphere("lamp", (-0.6, 2.2, 0.0), 0.12), Sphere("glass", (0.1, 0.8, 0.2), 0.35),
               Sphere("silver", (1.0, 0.8, -0.5), 0.3))  # fmt: skip
    view = Camera((0.5, 0.6, 0.8), (0.5, 0.0, 0.1), fov_degrees=70.0)
    return replace(Settings(view=view, max_depth=8, materials=materials, spheres=spheres, quads=(FLOOR,)), **changes)


def batches(device, settings, count, samples):
    """The means (count, 3) of pictures of different seeds, and the last picture's drawer."""
    picture, means = Picture(SimpleNamespace(device=device)), []
    for seed in range(count):
        for _ in range(samples):
            frame = picture.draw(replace(settings, seed=seed + 1, samples=samples), SIZE, 0.0)
        means.append(frame.read()[..., :3].mean((0, 1), "f8"))
    return np.array(means), picture


def check_same_light(ours, plain):
    error = np.sqrt(ours.var(0, ddof=1) / len(ours) + plain.var(0, ddof=1) / len(plain))
    difference = ours.mean(0) - plain.mean(0)
    assert (np.abs(difference) < 4.5 * error).all() and (error < 0.02 * plain.mean(0)).all(), (difference, error)


@pytest.mark.slow
@pytest.mark.parametrize("floor", [{}, {"kind": "conductor", "roughness": 0.5}])
def test_chains_add_the_light_that_paths_find_by_chance(device, floor):
    """On a rough metal the MIS weights of chains follow a BSDF whose pdf spans many powers of two."""
    materials = (replace(scene().materials[0], **floor), *scene().materials[1:])
    ours, _ = batches(device, scene(caustics=True, materials=materials), 12, 128)
    plain, _ = batches(device, scene(materials=materials), 12, 512)
    check_same_light(ours, plain)


TORUS = {"kind": "torus", "scale": 0.7, "position": (0.1, 0.8, 0.2), "rotation_degrees": (60.0, 20.0, 0.0)}
GLASS_TORUS = (Solid("glass", **TORUS),)


@pytest.mark.slow
@pytest.mark.parametrize("material", ["glass", "silver"])
def test_chains_of_meshes_add_the_light_that_paths_find_by_chance(device, material, monkeypatch):
    """A torus has up to a dozen solutions, of probabilities that are not known."""
    monkeypatch.setitem(caustic_shapes.LARGE, f"{dict(glass='glass', silver='mirror')[material]} mesh", 9.0)
    lamp = replace(scene().spheres[0], radius=0.3)
    solids = scene(spheres=(lamp,), solids=(Solid(material, **TORUS),))
    ours, _ = batches(device, replace(solids, caustics=True), 12, 128)
    plain, _ = batches(device, solids, 12, 512)
    check_same_light(ours, plain)


@pytest.mark.slow
def test_a_mesh_of_a_ball_has_the_chains_of_a_ball(device, tmp_path):
    """By a point light, which paths never find: Newton's solutions beside those that are all known on a sphere."""
    write_ball(tmp_path / "ball.obj", 48, 96)
    light, glass = PointLight((-0.6, 2.2, 0.0), (3.0, 2.5, 2.0)), scene().spheres[1]
    ball = scene(caustics=True, spheres=(glass,), point_lights=(light,))
    mesh = MeshShape("glass", str(tmp_path / "ball.obj"), scale=glass.radius, position=glass.center)
    check_same_light(batches(device, replace(ball, spheres=(), meshes=(mesh,)), 8, 128)[0],
                     batches(device, ball, 8, 128)[0])  # fmt: skip


def write_ball(path, rows, columns):
    """Writes a unit sphere of triangles with normals."""
    theta = np.linspace(0, np.pi, rows + 1)[:, None]
    phi = np.linspace(0, 2 * np.pi, columns, endpoint=False)
    points = np.stack(np.broadcast_arrays(np.sin(theta) * np.cos(phi), np.cos(theta), -np.sin(theta) * np.sin(phi)), -1)
    lines = [f"{kind} {x:.7f} {y:.7f} {z:.7f}" for kind in ("v", "vn") for x, y, z in points.reshape(-1, 3)]
    for i in range(rows):
        for j in range(columns):
            a, b = i * columns + j + 1, i * columns + (j + 1) % columns + 1
            corners = [a, a + columns, b + columns, b]
            lines.append("f " + " ".join(f"{n}//{n}" for n in dict.fromkeys(corners)))
    path.write_text("\n".join(lines))


PROBE = """
KERNEL probe(GLOBAL const float4 *chains, GLOBAL float4 *out) {
    uint i = thread_index();
    Chain k = {chains[i].x, chains[i].y, chains[i].z};
    Swept at = sweep(k, quarter_circle(chains[i].w));
    float turn = turning_angle(k), t = chains[i].w;
    Pair target = {at.cosine, at.sine};
    bool rises = t > turn;
    float low = rises ? turn : 0.0f, high = rises ? 0.5f * PI : turn;
    float found = solve_chain(k, target, rises, low, high, 0.5f * (low + high));
    out[i] = make_float4(found, turn, chain_spread(k, t), angle_of(at.sine, at.cosine));
}
"""


@pytest.mark.slow
def test_chains_are_those_of_snell_in_the_plane(device, rng):
    """Angles, turning points and spreads by rays that NumPy refracts or reflects at a circle, and by differences."""
    count = 4096
    n = np.where(np.arange(count) % 3, rng.uniform(1.1, 2.5, count), np.inf)  # infinite: a reflection
    x, y, t = rng.uniform(1.02, 6, count), rng.uniform(1.5, 9, count), rng.uniform(0.02, 1.5, count)

    def swept(t):
        """The angle from the point at distance x to the point at distance y about the center of the unit circle."""
        sine = np.sin(t)
        inside = np.where(np.isinf(n), 0.0, np.pi - 2 * np.arcsin(sine / n))  # Snell's law, an isosceles triangle
        to_x, to_y = (t - np.arcsin(sine / distance) for distance in (x, y))  # the triangle's angle at the center
        return to_x + inside + to_y

    constants = compile_constants(scene(caustics=True, schedule="megakernel"), True) | LightSampler.usual_constants
    source = GeneratedSource("raytrace", kernel_source().text + PROBE)
    kernel, out = device.kernel(source, "probe", group_size=64, **constants), device.buffer((count, 4))
    kernel(count, device.buffer((count, 4)).write(np.stack([1 / x, 1 / y, 1 / n, t], 1).astype("f4")), out)
    found, turn, spread, angle = out.read().astype("f8").T
    beyond = np.where(np.isinf(n), 0.0, np.pi)
    assert np.abs(np.angle(np.exp(1j * (swept(t) - beyond - angle)))).max() < 1e-5
    grid = np.linspace(0, np.pi / 2, 4001)[1:-1, None]
    assert np.abs(grid[swept(grid).argmin(0), 0] - turn).max() < 1e-3
    clear = np.abs(t - turn) > 0.02  # beside a fold the angle is a square root of what float32 resolves
    assert np.abs(found - t)[clear].max() < 1e-4
    step = 1e-5
    rate = (swept(t + step) - swept(t - step)) / (2 * step)
    alpha = np.arcsin(np.sin(t) / x)  # at x, between the ray and the center
    alpha_rate = np.cos(t) / np.sqrt(x**2 - np.sin(t) ** 2)
    # The lengths of the chord at x and y drop out: solid angles sin(a) da, the other end seen along its own ray.
    wanted = np.sin(alpha) * alpha_rate / np.abs(np.sin(swept(t)) * rate) / np.cos(np.arcsin(np.sin(t) / y))
    assert np.abs(spread / wanted - 1)[clear].max() < 0.01


@pytest.mark.slow
def test_a_mirror_has_a_tenth_of_the_variance_and_the_same_light(device):
    mirrors = scene(
        spheres=(Sphere("lamp", (-0.6, 2.2, 0.0), 0.12), Sphere("silver", (0.1, 0.6, 0.2), 0.4)), max_depth=3
    )
    ours = batches(device, replace(mirrors, caustics=True), 8, 64)[0]
    plain = batches(device, mirrors, 8, 256)[0]
    check_same_light(ours, plain)
    assert ours.var(0, ddof=1).mean() < plain.var(0, ddof=1).mean() * 4 / 10


@pytest.mark.slow
def test_a_point_light_is_the_limit_of_small_lamps(device):
    """A point light of intensity pi r^2 L, and a small lamp, through glass and off silver."""
    bright = scene(caustics=True)
    radius, lamp = 0.01, bright.spheres[0]
    small = replace(bright, spheres=(replace(lamp, radius=radius), *bright.spheres[1:]))
    small = replace(small, materials=(small.materials[0], Material("lamp", "emitter", emission=(4e4,) * 3),
                                      *small.materials[2:]))  # fmt: skip
    light = PointLight(lamp.center, (np.pi * radius**2 * 4e4,) * 3)
    point = replace(bright, spheres=bright.spheres[1:], point_lights=(light,))
    check_same_light(batches(device, point, 8, 128)[0], batches(device, small, 8, 128)[0])


@pytest.mark.slow
def test_schedules_agree(device):
    first = None
    for schedule in ("megakernel", "wavefront", "regenerate"):
        suns = (Sun(angle_degrees=0.0),)
        settings = scene(caustics=True, schedule=schedule, suns=suns, solids=GLASS_TORUS, samples=4)
        picture = Picture(SimpleNamespace(device=device))
        for _ in range(4):
            frame = picture.draw(settings, SIZE, 0.0)
        colors = frame.read()[..., :3]
        first = colors if first is None else first
        assert np.array_equal(colors, first)


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.why_missing()), reason="the CUDA compiler (NVRTC) is not installed")
@pytest.mark.parametrize("part", [3, 4])
def test_chains_compile_for_cuda(part):
    settings = scene(caustics=True, schedule="wavefront", solids=GLASS_TORUS, point_lights=(PointLight(),))
    constants = compile_constants(settings, True) | LightSampler.usual_constants | {"PART": part, "GROUP_SIZE": 128}
    assert nvrtc.compile_cubin(preprocess(kernel_source(), **constants), "sm_90", strict=True)


def test_balls_are_smooth_glass_and_mirrors():
    assert not len(ball_rows(scene()))
    rows = ball_rows(scene(caustics=True))
    assert rows == pytest.approx(np.array([(0.1, 0.8, 0.2, 0.35), (0.9, 1.0, 0.9, 1.5), (1.0, 0.8, -0.5, 0.3),
                                           (0.9, 0.8, 0.7, 0.0)], "f4"))  # fmt: skip
    rough = (*scene().materials[:2], Material("glass", "glass", roughness=0.1), scene().materials[3])
    assert len(ball_rows(scene(caustics=True, materials=rough))) == 2
    assert compile_constants(scene(schedule="wavefront"), True)["CAUSTICS"] == 0


def test_meshes_and_solids_of_smooth_glass_and_mirrors_are_sampled_by_material():
    box, bounds = Solid("glass", **TORUS), (np.array([-1.0, 0.0, 2.0]), np.array([1.0, 4.0, 5.0]))
    assert not len(mesh_rows(scene(solids=(box,)), {2: bounds}))
    with_point = scene(caustics=True, spheres=(), solids=(box, box, replace(box, material="white")),
                       meshes=(MeshShape("silver", "vase.obj"),), point_lights=(PointLight(),))  # fmt: skip
    rows = mesh_rows(with_point, {2: bounds, 3: bounds})
    sphere = (0.0, 2.0, 3.5, np.sqrt(1 + 4 + 2.25))
    assert rows[::2] == pytest.approx(np.array([sphere, sphere], "f4"))
    assert rows[1::2, 1:] == pytest.approx(np.array([(1.0, 2.0, -1.5), (1.0, 2.0, -0.5)], "f4"))
    assert rows[1::2, 0].view("i4").tolist() == [2, 3]
    constants = compile_constants(replace(with_point, schedule="wavefront"), True)
    assert constants["CAUSTICS"] == constants["CAUSTIC_MESHES"] == 1 and not caustics_hint(with_point)
    large = replace(with_point, point_lights=(), spheres=(replace(scene().spheres[0], radius=0.5),))
    assert not len(mesh_rows(large, {})) and "the caustics of 3 other shapes" in caustics_hint(large)


@pytest.mark.parametrize(("material", "small", "large"), [("glass", 0.07, 0.09), ("silver", 0.2, 0.3)])
def test_paths_alone_find_the_caustics_of_large_lamps(material, small, large):
    """At a distance of 1 such lamps fill 0.015, 0.025, 0.13 and 0.28 steradians, as do squares of that area."""
    ball, square = Sphere(material, (0.0, 0.0, 0.0), 0.2), np.array([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)])
    for radius, is_sampled in ((small, True), (large, False)):
        side = np.sqrt(np.pi) / 2 * radius
        quad = Quad("lamp", tuple(map(tuple, (square * side + (0, 1, 0)).tolist())))
        by_sphere = scene(caustics=True, spheres=(ball, Sphere("lamp", (0.0, 1.0, 0.0), radius)))
        by_quad = scene(caustics=True, spheres=(ball,), quads=(FLOOR, quad))
        assert [len(ball_rows(settings)) for settings in (by_sphere, by_quad)] == [2 * is_sampled] * 2
        assert compile_constants(replace(by_quad, schedule="wavefront"), True)["CAUSTICS"] == is_sampled
        assert ("paths find the caustics of 1 other shapes" in caustics_hint(by_quad)) != is_sampled
    for changes, is_sampled in (
        ({"point_lights": (PointLight(),)}, True),
        ({"suns": (Sun(angle_degrees=0.0),)}, True),
        ({"suns": (Sun(),)}, False),  # paths find its disc
        ({"solids": (Solid("white", "box"),)}, False),
        ({"solids": (Solid("lamp", "box"),)}, True),
    ):
        assert len(ball_rows(replace(by_quad, **changes))) == 2 * is_sampled


def test_shapes_whose_caustics_are_not_sampled_are_told_of():
    """Spheres alone have chains: of a mesh, a solid and rough glass, and of these alone, the user hears."""
    assert not caustics_hint(scene(caustics=True)) and not caustics_hint(scene(solids=(Solid("glass", "box"),)))
    more = (Material("frosted", "glass", roughness=0.3), Material("pane", "principled", transmission=1.0))
    full = scene(caustics=True, materials=(*scene().materials, *more), solids=(Solid("pane", "box"),))
    full = replace(full, spheres=(*full.spheres, Sphere("frosted", (0.0, 0.5, -1.0), 0.2)),
                   meshes=(MeshShape("glass", "vase.obj"),))  # fmt: skip
    assert "the caustics of 3 other shapes of glass or mirrors by chance: --set guiding_photons" in caustics_hint(full)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"integrator": "whitted"}, "takes no caustics"),
        ({"direct_lighting": "bsdf"}, "caustics is true, which needs a direct_lighting of mis or nee"),
        ({"fog": Fog(density=0.1)}, "caustics is true, which needs no fog or volumes"),
        ({"light_passes": True}, "caustics is true, which needs no light_passes"),
        ({"spheres": (), "solids": (Solid("glass", "box", name="ring"),)}, "caustics is true with 0 balls"),
        ({"spheres": ()}, "caustics is true with 0 balls and materials of meshes; it needs 1 to 64"),
        ({"spheres": (Sphere("silver"),) * 65}, "caustics is true with 65 balls"),
    ],
)
def test_caustics_that_cannot_be_sampled_are_one_sentence(changes, words):
    with pytest.raises(ValueError, match=words):
        scene(caustics=True, **changes)
