"""The ray tracer's CUDA kernels on the emulated CUDA device, against the OpenCL kernels on the CPU."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import renderer
from renderer.paths import SCENES
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing.film import RANGE_SAMPLES
from renderer.raytracing.schedules import BOUNCES, RECORDED_FROM
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene
from tests import emulated
from tests.raytracing.models.test_model_motion import dancers, put, scene_of
from tests.raytracing.test_render import mixed_scene

pytestmark = pytest.mark.slow  # g++ compiles each of them in seconds
SIZE, SAMPLES = (24, 16), 2
# Every operation is rounded as written, but for arcs of environments and of maps on spheres, cosines of thin films, and
# exponentials of absorption and sheen: each library has its own. These scenes have none of them.
EXACT = ["city", "cornell", "downlights", "menger", "mirrors"]
SCENE_NAMES = [path.stem for path in sorted(SCENES.glob("*.toml")) if load(path).picture == "raytrace"]


@pytest.fixture(scope="module")
def cuda():
    return emulated.cuda_machine(devices=1, seed=3).CudaDevice(0)


def drawn(device, settings):
    picture = Picture(SimpleNamespace(device=device))
    for _ in range(SAMPLES):
        frame = picture.draw(settings, SIZE, 0.0)
    assert picture.report()["schedule"] == "megakernel"
    return frame.read()[..., :3]


@pytest.mark.parametrize("shutter", [0.0, 0.2])
def test_cuda_draws_animated_models_as_opencl_does(device, cuda, rng, tmp_path, shutter):
    settings = scene_of(put(tmp_path, dancers(rng)), exposure_seconds=shutter, samples=SAMPLES)
    settings = settings_at(Scene(tmp_path, "", "raytrace", settings), 0.4)
    assert np.array_equal(drawn(device, settings), drawn(cuda, settings))


def test_cuda_draws_textures_of_floats_as_opencl_does(device, cuda, rng):
    """Beside one of bytes, on walls that processors shade eight at a time."""
    files = [
        {"name": "floats", "file": rng.random((8, 8, 4))},
        {"name": "bytes", "file": rng.integers(0, 256, (8, 8, 3), "u1")},
    ]
    rows = [(x, name) for x, name in enumerate(["floats", "bytes"])]
    settings = renderer.Scene(
        materials=[{"name": name, "color": (1, 1, 1), "color_texture": name} for _, name in rows], textures=files,
        quads=[{"material": name, "corners": [[x, 0, 0], [x + 1, 0, 0], [x + 1, 1, 0], [x, 1, 0]]} for x, name in rows],
        view={"position": [1, 0.5, 4], "target": [1, 0.5, 0], "fov_degrees": 20}, zenith=(1, 1, 1), samples=SAMPLES,
    ).settings  # fmt: skip
    one = drawn(device, settings)
    assert np.array_equal(one, drawn(cuda, settings)) and one.std() > 0.05


@pytest.mark.parametrize("name", SCENE_NAMES)
def test_cuda_draws_what_opencl_draws(device, cuda, rng, name):
    settings = replace(load(SCENES / f"{name}.toml").settings, samples=SAMPLES, seed=int(rng.integers(1 << 30)))
    one, other = drawn(device, settings), drawn(cuda, settings)
    picture = Picture(SimpleNamespace(device=cuda))
    for _ in range(SAMPLES):
        frame = picture.draw(replace(settings, schedule="wavefront"), SIZE, 0.0)
    assert np.array_equal(other, frame.read()[..., :3])
    assert np.isfinite(one).all() and one.max() > 0
    if name in EXACT:
        assert np.array_equal(one, other)
    else:  # a path that turns aside at a last digit is another path
        apart = np.abs(one - other) > 1e-4 * (1 + np.abs(one))
        assert apart.any(-1).mean() < 0.05


@pytest.mark.parametrize("schedule", ["wavefront", "regenerate", "megakernel"])
def test_recorded_samples_and_gathered_words_are_what_opencl_draws(device, cuda, rng, schedule):
    size, scene = (50, 37), mixed_scene(max_depth=5, seed=int(rng.integers(1 << 30)))
    settings = replace(scene, schedule=schedule)
    one, other = (Picture(SimpleNamespace(device=d)) for d in (device, cuda))
    for moved in (settings, replace(settings, view=replace(scene.view, position=(0.3, 0.9, 4.0)))):
        launches = []
        for _ in range(RANGE_SAMPLES + 3 if schedule == "regenerate" else RECORDED_FROM + 3):
            before = cuda.counters.launches
            wanted = one.draw(moved, size, 0.0)
            frame = other.draw(moved, size, 0.0)
            launches.append(cuda.counters.launches - before)
        assert type(other._schedule._graph).__name__ == "CudaGraph" and launches[1] == launches[RECORDED_FROM + 1]
        assert np.array_equal(wanted.read(), frame.read())
        words = "active rays", "empty stencil words"
        assert [one.report().get(key) for key in words] == [other.report().get(key) for key in words]
    if schedule == "wavefront":
        assert cuda.properties.has_ballot
        for picture, where in ((one, device), (other, cuda)):
            assert (BOUNCES in picture._schedule._kernels) == where.properties.has_ballot
        masks = [[stage.words for stage in p.trace_stages(scene, size).stages[:-1]] for p in (one, other)]
        assert np.array_equal(*masks)
        for x, y in rng.integers(0, size, (6, 2)).tolist():
            assert one.trace_paths(scene, size, x, y, 2) == other.trace_paths(scene, size, x, y, 2)


@pytest.mark.parametrize("schedule", ["wavefront", "regenerate", "megakernel"])
def test_light_passes_are_what_opencl_divides(device, cuda, rng, schedule):
    size, layers = (50, 37), []
    seed = int(rng.integers(1 << 30))
    settings = mixed_scene(max_depth=5, seed=seed, schedule=schedule, light_passes=True, cryptomatte=True)
    for one in (device, cuda):
        picture = Picture(SimpleNamespace(device=one))
        for _ in range(RECORDED_FROM + 3):
            picture.draw(settings, size, 0.0)
        layers.append(picture.layers(settings, size))
    assert layers[0]["diffuse_indirect"].any() and layers[0]["CryptoObject00"].any()
    assert all(np.array_equal(layers[0][name], layers[1][name]) for name in layers[0])
