"""Animated models in the ray tracer: against files whose nodes and vertices stand where the animation has them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, ball
from renderer.bvh import host_sah
from renderer.errors import InputError, UserError
from renderer.formats import gltf
from renderer.formats.gltf.rig import model_at
from renderer.pictures import load
from renderer.pictures.raytrace import Picture
from renderer.raytracing import shapes
from renderer.raytracing.instances import Instance
from renderer.raytracing.models.from_model import play_animation, timeline_of
from renderer.raytracing.models.gltf_shapes import ModelShape
from renderer.raytracing.models.motion import poses_of
from renderer.raytracing.settings import Quad, Settings
from renderer.scene.animation import Animation, apply_edit, insert_keyframe, settings_at
from renderer.scene.cameras import Camera
from renderer.scene.scene import Scene
from tests.formats.test_gltf_animation import animate

SIZE = (48, 36)
FLOOR = Quad("plain", ((-9.0, -1.2, 9.0), (9.0, -1.2, 9.0), (9.0, -1.2, -9.0), (-9.0, -1.2, -9.0)))


@pytest.fixture(scope="module")
def picture(device):
    return Picture(SimpleNamespace(device=device))


def put(tmp_path, maker, name="moved.glb"):
    path = tmp_path / name
    path.write_bytes(maker.glb())
    return path


def dancers(rng) -> Maker:
    """A ball that turns and moves and carries another, beside one that morphs; and one at rest."""
    maker = Maker()
    small = ball(maker, 6)
    child = maker.node(False, mesh=small, translation=[0.7, 0.2, 0.0], scale=[0.3, 0.4, 0.3])
    maker.node(mesh=small, children=[child], scale=[0.5] * 3, translation=[-0.7, 0.0, 0.0])
    morph = ball(maker, 6)
    primitive = maker.tree["meshes"][morph]["primitives"][0]
    count = maker.tree["accessors"][primitive["attributes"]["POSITION"]]["count"]
    delta = rng.normal(size=(count, 3)).astype("f4") * 0.2
    primitive["targets"] = [{"POSITION": maker.array(delta + np.float32([0.3, 0.6, 0.0])),
                             "NORMAL": maker.array(0.3 * rng.normal(size=(count, 3)))}]  # fmt: skip
    maker.node(mesh=morph, scale=[0.4] * 3, translation=[0.7, 0.0, 0.0])
    maker.node(mesh=small, scale=[0.2] * 3, translation=[0.0, -0.6, 0.6])
    animation = animate(maker, 1, "translation", (0.0, 1.0), [[-0.7, 0, 0], [0.2, 0.5, 0]])
    half = np.sqrt(0.5)
    animate(maker, 1, "rotation", (0.0, 1.0), [[0, 0, 0, 1], [0, 0, half, half]], animation=animation)
    animate(maker, 2, "weights", (0.0, 1.0), [0.0, 1.0], animation=animation)
    return maker


def scene_of(path, **changes) -> Settings:
    settings = Settings(
        view=Camera((0.0, 0.3, 4.0), fov_degrees=40.0), models=(ModelShape(str(path), animation="0"),), samples=4,
        horizon=(0.9, 0.95, 1.0), zenith=(0.3, 0.5, 0.9), quads=(FLOOR,), max_depth=3,
    )  # fmt: skip
    return replace(settings, **changes)


def at(settings, time) -> Settings:
    return settings_at(Scene(None, "", "raytrace", settings), time)


def render(picture, settings, samples=2, size=SIZE):
    picture.restart()
    for _ in range(samples):
        frame = picture.draw(settings, size, 0.0)
    return frame.read()


def baked(model: gltf.Model) -> Maker:
    """A file of the model as it stands: no rig, the vertices where they are."""
    maker = Maker()
    for number, matrix in model.mesh_nodes:
        (part,) = model.meshes[number]
        uv = part.texcoords[0]
        mesh = maker.mesh(part.vertices, part.faces, normals=part.normals, uv=uv)
        maker.node(mesh=mesh, matrix=list(matrix.T.ravel()))
    return maker


@pytest.mark.parametrize("own_bvh", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("instances", [pytest.param(False, marks=pytest.mark.slow), True])
def test_frames_equal_files_that_stand_so(picture, tmp_path, rng, monkeypatch, own_bvh, instances):
    """Moving meshes among the static geometry, in a separate BVH, or as instances: the same picture."""
    monkeypatch.setattr(shapes, "MIN_KEPT_PRIMITIVES", 1 if own_bvh else 1 << 30)
    monkeypatch.setattr(shapes, "MIN_MOVING_TRIANGLES", 1 if instances else 1 << 30)
    path = put(tmp_path, dancers(rng))
    scene, model = scene_of(path), gltf.load(path)
    frames = []
    for time in (0.25, 0.8):
        frames.append(render(picture, at(scene, time)))
        geometry = picture._geometry
        still = put(tmp_path, baked(model_at(model, 0, time)), f"still_{time}.glb")
        wanted = render(picture, scene_of(still, models=(ModelShape(str(still)),)))
        if not instances:  # a separate BVH compiles another kernel, in which a compiler may fuse sums differently
            assert np.abs(frames[-1] - wanted).max() <= (3e-7 if own_bvh else 0.0)
        assert (np.abs(frames[-1] - wanted).max(-1) > 1e-2).mean() < 0.005, "a transformed ray rounds differently"
    assert np.abs(frames[0] - frames[1]).max(-1).mean() > 0.02, "nothing moved"
    assert (geometry._instances is not None) == (own_bvh or instances)


@pytest.mark.slow
@pytest.mark.parametrize("shutter", [0.25, pytest.param(0.0, marks=pytest.mark.slow)])  # exact: times repeat
def test_a_frame_has_the_same_bits_in_any_order(picture, tmp_path, rng, monkeypatch, shutter):
    """The first frame's BVH is built, the others are refitted, however much they decay."""
    monkeypatch.setattr(host_sah, "MAX_GROWTH", np.inf)
    picture._geometry_key = None  # builds are counted from here
    scene = scene_of(put(tmp_path, dancers(rng)), exposure_seconds=shutter)
    times = (0.5, 0.1, 0.9, 0.1, 0.5)
    frames = [render(picture, at(scene, time)) for time in times]
    assert picture._geometry.builds == (len(times) if not shutter else 1), "what does not move is not built again"
    assert np.array_equal(frames[0], frames[4]) and np.array_equal(frames[1], frames[3])
    picture._geometry_key = None
    assert np.array_equal(frames[0], render(picture, at(scene, 0.5)))
    assert np.array_equal(frames[0], render(picture, at(scene, 2.5))), "animations repeat"


@pytest.mark.slow
@pytest.mark.parametrize("instances", [False, True])
def test_motion_blur_is_the_mean_of_stills(picture, tmp_path, rng, monkeypatch, instances):
    """Stills at many times of the shutter interval; what turns does so little that its path is nearly a line."""
    monkeypatch.setattr(shapes, "MIN_MOVING_TRIANGLES", 1 if instances else 1 << 30)
    scene = scene_of(put(tmp_path, dancers(rng)), exposure_seconds=0.25, max_depth=2)
    blurred = render(picture, at(replace(scene, samples=256), 0.3), 256)[..., :3]
    stills = []
    for k in range(32):
        seed = int(rng.integers(1 << 30))
        still = replace(scene, exposure_seconds=0.0, seed=seed)
        stills.append(render(picture, at(still, 0.3 + 0.25 * (k + rng.random()) / 32), 8)[..., :3])
    wanted, error = np.mean(stills, 0), np.std(stills, 0) / np.sqrt(32)
    sharp = render(picture, at(replace(scene, exposure_seconds=0.0), 0.3), 32)[..., :3]
    assert np.abs(sharp - wanted).mean() > 3 * np.abs(blurred - wanted).mean(), "nothing moved"
    assert blurred.mean() == pytest.approx(wanted.mean(), rel=0.005)
    apart = np.abs(blurred - wanted) / np.maximum(error, 0.02 * wanted.max())
    assert np.mean(apart) < 0.8 and np.percentile(apart, 99) < 4


def test_named_animated_models_move_in_their_instances(picture, tmp_path, rng):
    path = put(tmp_path, dancers(rng))
    shape = ModelShape(str(path), animation="0")
    for shutter in (0.0, 0.2):
        alone = render(picture, at(scene_of(path, exposure_seconds=shutter), 0.6))
        named = scene_of(path, models=(replace(shape, name="crowd"),), instances=(Instance("crowd"),),
                         exposure_seconds=shutter)  # fmt: skip
        found = render(picture, at(named, 0.6))
        assert (np.abs(found - alone).max(-1) > 1e-2).mean() < 0.01


@pytest.mark.slow
def test_emissive_nodes_in_motion_light_the_scene(picture, tmp_path):
    """A light is sampled where it stands; BSDF sampling finds one that moves while the shutter is open."""
    maker = Maker()
    lamp = maker.add("materials", {"emissiveFactor": [1, 1, 1], "extensions": {
        "KHR_materials_emissive_strength": {"emissiveStrength": 9}}})  # fmt: skip
    maker.node(mesh=ball(maker, 4, material=lamp), scale=[0.6] * 3)
    animate(maker, 0, "translation", (0.0, 1.0), [[-2, 1, 0], [2, 1, 0]])
    dark = scene_of(put(tmp_path, maker), horizon=(0.0, 0.0, 0.0), zenith=(0.0, 0.0, 0.0), samples=64)
    left, right = (render(picture, at(dark, time), 64)[..., :3] for time in (0.1, 0.9))
    assert left[24:, :12].mean() > 1.5 * left[24:, -12:].mean()
    assert right[24:, -12:].mean() > 1.5 * right[24:, :12].mean()
    found = render(picture, at(replace(dark, direct_lighting="bsdf", samples=512), 0.1), 512)[..., :3]
    assert left.mean() == pytest.approx(found.mean(), rel=0.06)
    blurred = render(picture, at(replace(dark, exposure_seconds=0.01, samples=512), 0.1), 512)[..., :3]
    assert blurred.mean() == pytest.approx(found.mean(), rel=0.06)


def filmed() -> Maker:
    """A ball, and a camera and a lamp that move."""
    maker = Maker()
    maker.node(mesh=ball(maker, 6))
    lens = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 0.7, "aspectRatio": 1.0}})
    maker.node(camera=lens, translation=[0, 0, 5])
    maker.node(extensions=maker.light(type="spot", intensity=40), translation=[0, 3, 0])
    maker.node(extensions=maker.light(type="directional"))
    animation = animate(maker, 1, "translation", (0.0, 2.0), [[0, 0, 5], [0, 0, 9]])
    animate(maker, 2, "translation", (0.0, 2.0), [[0, 3, 0], [2, 3, 0]], animation=animation)
    half = np.sqrt(0.5)
    animate(maker, 3, "rotation", (0.0, 2.0), [[0, 0, 0, 1], [0, half, 0, half]], animation=animation)
    maker.tree["animations"][0]["name"] = "dolly"
    return maker


def test_a_file_plays_with_its_camera_and_lights(tmp_path):
    scene = load(put(tmp_path, filmed()))
    (shape,) = scene.settings.models
    assert (shape.animation, shape.camera, shape.moves_lights) == ("dolly", 0, True)
    assert scene.animation.duration == 2.0 and scene.animation.loop
    shown = settings_at(scene, 1.0)
    assert shown.view.position == (0.0, 0.0, 7.0) and np.allclose(shown.point_lights[0].position, (1, 3, 0))
    assert np.allclose(shown.suns[0].direction, (np.sqrt(0.5), 0, np.sqrt(0.5)), atol=1e-6)
    assert shown.shutter == (1.0, 1.0)
    edited = apply_edit(scene, 1.0, replace(shown, max_depth=2))
    assert edited.settings == replace(scene.settings, max_depth=2), "an edit keeps what the animation moves"
    moved = replace(shown, view=replace(shown.view, position=(3.0, 3.0, 3.0)))
    free = apply_edit(scene, 1.0, moved)
    assert settings_at(free, 1.5).view == moved.view, "a view that the user moved follows no camera"
    assert np.allclose(settings_at(free, 1.5).point_lights[0].position, (1.5, 3, 0))


def test_animations_are_chosen_by_name(tmp_path):
    path = put(tmp_path, filmed())
    scene = load(path)
    assert Picture.with_animation(scene, "0").settings.models[0].animation == "dolly"
    with pytest.raises(UserError, match=r"--animation run: no model has it; .*moved.glb: allowed are dolly"):
        Picture.with_animation(scene, "run")
    with pytest.raises(InputError, match="no animation is named 'run'; allowed are dolly"):
        poses_of((ModelShape(str(path), animation="run"),), ())


def clips(tmp_path, name: str, **seconds: float):
    """A file of one ball that plays an animation of each name, as many seconds long."""
    maker = Maker()
    maker.node(mesh=ball(maker, 4))
    for clip, length in seconds.items():
        index = animate(maker, 0, "translation", (0.0, length), [[0, 0, 0], [1, 0, 0]])
        maker.tree["animations"][index]["name"] = clip
    return put(tmp_path, maker, name)


def test_the_timeline_is_as_long_as_the_longest_clip_that_plays(tmp_path):
    """The lengths equal those in the files."""
    one, two = clips(tmp_path, "one.glb", walk=2.0, run=0.75), clips(tmp_path, "two.glb", run=1.25, idle=3.5)
    scene = load(one)
    assert scene.animation == Animation(2.0, loop=True), "a file plays its first animation"
    for name, seconds in (("run", 0.75), ("1", 0.75), ("walk", 2.0), ("0", 2.0)):
        played = play_animation(scene, name)
        assert played.animation == Animation(seconds, loop=True) and len(played.settings.models) == 1
        assert played.settings.models[0].animation == {"1": "run", "0": "walk"}.get(name, name)

    def shapes(first: str, second: str) -> tuple[ModelShape, ModelShape]:
        return ModelShape(str(one), animation=first), ModelShape(str(two), animation=second)

    for first, second, longest in (("walk", "run", 2.0), ("run", "run", 1.25), ("run", "idle", 3.5), ("", "run", 1.25)):
        assert timeline_of(shapes(first, second)) == Animation(longest, loop=True)
    assert timeline_of(shapes("", "")) is None and timeline_of(()) is None

    both = replace(scene, settings=replace(scene.settings, models=shapes("walk", "idle")), animation=None)
    playing = play_animation(both, "run")
    assert [model.animation for model in playing.settings.models] == ["run", "run"]
    assert playing.animation == Animation(1.25, loop=True)
    only_one = play_animation(both, "walk")
    assert [model.animation for model in only_one.settings.models] == ["walk", "idle"]
    assert only_one.animation == Animation(2.0, loop=True)
    keyed = insert_keyframe(scene, 9.0, ["max_depth"])
    assert play_animation(keyed, "run").animation == keyed.animation, "key frames keep the scene's own timeline"


def test_a_clip_of_one_moment_has_no_timeline(tmp_path):
    maker = Maker()
    maker.node(mesh=ball(maker, 4))
    animate(maker, 0, "translation", (0.0,), [[0, 0, 0]])
    still = load(put(tmp_path, maker, "still.glb"))
    assert still.animation is None and timeline_of(still.settings.models) is None
