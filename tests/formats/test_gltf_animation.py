"""Animations, morph targets and skins of glTF files: against formulas worked out here another way; bad files."""

import numpy as np
import pytest

from assets.makers.gltf_builder import Maker, square
from renderer.errors import InputError
from renderer.formats import gltf
from renderer.formats.gltf.animation import animation_keys, find_animation
from renderer.formats.gltf.rig import model_at, motion_masks

TIMES = (0.5, 0.75, 1.5, 2.5)


def put(tmp_path, maker, name="moved.glb"):
    path = tmp_path / name
    path.write_bytes(maker.glb())
    return path


def animate(maker, node, path, times, values, interpolation=None, animation=None, kind="f4", target=None):
    """A channel, in a new animation or in that of an index; returns the animation's index."""
    sampler = {"input": maker.array(times), "output": maker.array(values, kind, normalized=kind != "f4")}
    if interpolation:
        sampler["interpolation"] = interpolation
    if animation is None:
        animation = maker.add("animations", {"samplers": [], "channels": []})
    entry = maker.tree["animations"][animation]
    entry["samplers"].append(sampler)
    target = target or {"node": node, "path": path}
    entry["channels"].append({"sampler": len(entry["samplers"]) - 1, "target": target})
    return animation


def quaternion_power(q, exponent):
    """A unit quaternion (x, y, z, w) to a power: the same axis, a multiple of the angle."""
    angle, axis = np.arctan2(np.linalg.norm(q[:3]), q[3]), q[:3]
    size = np.linalg.norm(axis)
    axis = axis / size if size > 0 else axis
    return np.append(axis * np.sin(exponent * angle), np.cos(exponent * angle))


def quaternion_product(a, b):
    v = a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3])
    return np.append(v, a[3] * b[3] - a[:3] @ b[:3])


def rotation_of(q):
    """The rotation matrix of a unit quaternion, by turning the axes: q v q*."""
    conjugate = q * [-1, -1, -1, 1]
    turned = [quaternion_product(quaternion_product(q, np.append(e, 0)), conjugate)[:3] for e in np.eye(3)]
    return np.stack(turned, 1)


def expected(path, interpolation, keys, time):
    """The specification's value at a time of keys (in-tangent, value, out-tangent) at TIMES."""
    values = [np.asarray(value, "f8") for _, value, _ in keys]
    if time <= TIMES[0] or time >= TIMES[-1]:
        return values[0 if time <= TIMES[0] else -1]
    k = max(i for i, t in enumerate(TIMES) if t <= time)
    span = TIMES[k + 1] - TIMES[k]
    u = (time - TIMES[k]) / span
    if interpolation == "STEP":
        return values[k]
    if interpolation == "CUBICSPLINE":  # the cubic polynomial with these values and slopes at both ends
        slopes = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 1, 1], [0, 1, 2, 3]], "f8")
        ends = np.stack([values[k], span * np.float64(keys[k][2]), values[k + 1], span * np.float64(keys[k + 1][0])])
        return np.linalg.solve(slopes, ends).T @ u ** np.arange(4)
    if path == "rotation":
        first, second = values[k], values[k + 1]
        second = second if first @ second >= 0 else -second
        step = quaternion_product(second, first * [-1, -1, -1, 1])
        return quaternion_product(quaternion_power(step, u), first)
    return values[k] + u * (values[k + 1] - values[k])


@pytest.mark.parametrize("interpolation", ["LINEAR", "STEP", "CUBICSPLINE"])
@pytest.mark.parametrize("path", ["translation", "rotation", "scale"])
def test_nodes_move_as_the_specification_says(tmp_path, rng, path, interpolation):
    maker = Maker()
    inner = maker.node(False, mesh=square(maker), translation=[0.5, 0.25, -1.0])
    node = maker.node(children=[inner], translation=[1.0, 2.0, 3.0])
    keys = rng.normal(size=(len(TIMES), 3, 4 if path == "rotation" else 3))
    if path == "rotation":
        keys[:, 1] /= np.linalg.norm(keys[:, 1], axis=1, keepdims=True)
    keys = keys.astype("f4")
    stored = keys.reshape(-1, keys.shape[2]) if interpolation == "CUBICSPLINE" else keys[:, 1]
    animate(maker, node, path, TIMES, stored, interpolation)
    model = gltf.load(put(tmp_path, maker))
    for time in (0.0, 0.5, 0.6, 0.75, *rng.uniform(0.5, 2.5, 6)):
        value = expected(path, interpolation, keys, time)
        local = np.eye(4)
        local[:3, 3] = value if path == "translation" else [1, 2, 3]
        if path == "rotation":
            local[:3, :3] = rotation_of(value / np.linalg.norm(value))
        elif path == "scale":
            local[:3, :3] = np.diag(value)
        local = local @ np.block([[np.eye(3), np.array([[0.5], [0.25], [-1.0]])], [np.zeros((1, 3)), 1]])
        ((_, matrix),) = model_at(model, 0, float(time)).mesh_nodes
        assert np.allclose(matrix, local, atol=2e-6)
    assert np.allclose(model_at(model, 0, 2.5 + 0.75).mesh_nodes[0][1], model_at(model, 0, 0.75).mesh_nodes[0][1])


def test_normalized_integers_turn_nodes(tmp_path):
    maker = Maker()
    node = maker.node(mesh=square(maker))
    animate(maker, node, "rotation", (0.0, 1.0), [[0, 0, 0, 127], [0, 0, 127, 0]], kind="i1")
    ((_, matrix),) = model_at(gltf.load(put(tmp_path, maker)), 0, 0.5).mesh_nodes
    assert np.allclose(matrix[:3, :3], [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-6), "half of a half turn"


def morphing(rng, targets=3, **more):
    """A square with normals, tangents, texture coordinates and colors, and morph targets for all of them."""
    maker = Maker()
    widths = {"POSITION": 3, "NORMAL": 3, "TANGENT": 3, "TEXCOORD_0": 2, "COLOR_0": 4}
    deltas = [{key: rng.normal(size=(4, n)).astype("f4") for key, n in widths.items()} for _ in range(targets)]
    deltas[-1].pop("NORMAL")
    others = {
        "TANGENT": maker.array(np.tile(np.float32([1, 0, 0, -1]), (4, 1))),
        "COLOR_0": maker.array([[0.5] * 4] * 4),
    }
    mesh = square(maker, normals=np.tile([0.0, 0.0, 1.0], (4, 1)), others=others)
    primitive = maker.tree["meshes"][mesh]["primitives"][0]
    primitive["targets"] = [{key: maker.array(value) for key, value in delta.items()} for delta in deltas]
    maker.tree["meshes"][mesh] |= more
    return maker, mesh, deltas


@pytest.mark.parametrize("interpolation", ["LINEAR", "STEP", "CUBICSPLINE"])
def test_morph_targets_displace_every_attribute(tmp_path, rng, interpolation):
    maker, mesh, deltas = morphing(rng)
    maker.node(mesh=mesh)
    keys = rng.normal(size=(len(TIMES), 3, 3)).astype("f4")
    stored = keys if interpolation == "CUBICSPLINE" else keys[:, 1]
    animate(maker, 0, "weights", TIMES, stored.ravel(), interpolation)
    model = gltf.load(put(tmp_path, maker))
    (rest,) = model.rig.meshes[0]
    for time in (0.0, 0.8, 1.4, 2.4):
        weights = expected("weights", interpolation, keys, time)
        posed = model_at(model, 0, time)
        (part,) = posed.meshes[posed.mesh_nodes[0][0]]
        for found, base, key in (
            (part.vertices, rest.vertices, "POSITION"), (part.normals, rest.normals, "NORMAL"),
            (part.tangents[:, :3], rest.tangents[:, :3], "TANGENT"),
            (part.texcoords[0], rest.texcoords[0], "TEXCOORD_0"),
        ):  # fmt: skip
            wanted = base + sum(w * d[key] for w, d in zip(weights, deltas, strict=True) if key in d)
            assert np.allclose(found, wanted, atol=1e-5), key
        colors = rest.colors + sum(w * d["COLOR_0"] for w, d in zip(weights, deltas, strict=True))
        assert np.allclose(part.colors, np.clip(colors, 0, 1), atol=1e-6)
        assert np.array_equal(part.tangents[:, 3], rest.tangents[:, 3])
    assert motion_masks(model, 0)[1].tolist() == [True] and motion_masks(model, 0)[0].tolist() == [False]


def test_default_weights_are_the_nodes_else_the_meshes(tmp_path, rng):
    maker, mesh, deltas = morphing(rng, weights=[0.5, 0.0, -1.0])
    maker.node(mesh=mesh)
    maker.node(mesh=mesh, weights=[0.0, 0.25, 0.0])
    maker.node(mesh=mesh, weights=[0.0, 0.0, 0.0])
    model = gltf.load(put(tmp_path, maker))
    rest = model.rig.meshes[0][0].vertices
    wanted = [rest + 0.5 * deltas[0]["POSITION"] - deltas[2]["POSITION"], rest + 0.25 * deltas[1]["POSITION"], rest]
    for (number, _), vertices in zip(model.mesh_nodes, wanted, strict=True):
        assert np.allclose(model.meshes[number][0].vertices, vertices, atol=1e-6)


def skinned(rng, count=30):
    """A skin of two joints, of which the second hangs on the first, with morph targets too."""
    maker = Maker()
    vertices = rng.normal(size=(count, 3)).astype("f4")
    weights = rng.random((count, 4)).astype("f4")
    joints = rng.integers(0, 2, (count, 4))
    others = {"JOINTS_0": maker.array(joints, "u1"), "WEIGHTS_0": maker.array(weights)}
    normals = rng.normal(size=(count, 3)).astype("f4")
    mesh = maker.mesh(vertices, np.arange(count), normals=normals, others=others)
    delta = rng.normal(size=(count, 3)).astype("f4")
    maker.tree["meshes"][mesh]["primitives"][0]["targets"] = [{"POSITION": maker.array(delta)}]
    tip = maker.node(False, translation=[0.0, 1.0, 0.0])
    root = maker.node(children=[tip], translation=[0.5, 0.0, 0.0])
    back = np.stack([np.eye(4), np.eye(4)]).astype("f4")
    back[:, :3, :] += 0.2 * rng.normal(size=(2, 3, 4)).astype("f4")
    skin = maker.add("skins", {"joints": [root, tip], "inverseBindMatrices": maker.array(
        back.transpose(0, 2, 1).reshape(2, 16))})  # fmt: skip
    maker.node(mesh=mesh, skin=skin, translation=[100.0, 0.0, 0.0])
    return maker, (vertices, normals, delta, joints, weights, back)


def test_instances_of_a_skinned_mesh_are_ignored_and_counted(tmp_path, rng):
    maker, _ = skinned(rng)
    places = {"TRANSLATION": maker.array(rng.normal(size=(3, 3)))}
    maker.tree["nodes"][-1]["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": places}}
    model = gltf.load(put(tmp_path, maker))
    assert model.ignored == {"EXT_mesh_gpu_instancing of skinned nodes": 1}


def test_skins_follow_joints_in_motion(tmp_path, rng):
    maker, (vertices, normals, delta, joints, weights, back) = skinned(rng)
    turns = np.float32([[0, 0, 0, 1], [0.6, 0, 0, 0.8], [0, 0.6, 0.8, 0]])
    animation = animate(maker, 0, "rotation", (0.0, 1.0, 2.0), turns)
    animate(maker, 1, "scale", (0.0, 2.0), [[1, 1, 1], [2, 1, 0.5]], animation=animation)
    animate(maker, 2, "weights", (0.0, 2.0), [0.0, 1.0], animation=animation)
    model = gltf.load(put(tmp_path, maker))
    for time in (0.0, 0.4, 1.7):
        tip, root = np.eye(4), np.eye(4)
        k = int(time)
        tip[:3, :3], tip[:3, 3] = rotation_of(slerped(turns[k], turns[k + 1], time - k)), [0, 1, 0]
        root[:3, :3], root[:3, 3] = np.diag(1 + time / 2 * np.array([1, 0, -0.5])), [0.5, 0, 0]
        matrices = [root @ back[0], root @ tip @ back[1]]
        posed = model_at(model, 0, time)
        number, placed = posed.mesh_nodes[0]
        assert np.array_equal(placed, np.eye(4)), "a skinned mesh stands in the world"
        for i in range(len(vertices)):
            blend = sum(w * matrices[j] for j, w in zip(joints[i], weights[i] / weights[i].sum(), strict=True))
            wanted = (blend @ np.append(vertices[i] + time / 2 * delta[i], 1))[:3]
            assert np.allclose(posed.meshes[number][0].vertices[i], wanted, atol=1e-5)
            normal = np.linalg.det(blend[:3, :3]) * np.linalg.inv(blend[:3, :3]).T @ normals[i]
            assert np.allclose(posed.meshes[number][0].normals[i], normal, atol=1e-4)
    assert motion_masks(model, 0)[1].tolist() == [False, False, True]


def slerped(first, second, u):
    first, second = np.float64(first), np.float64(second)
    second = second if first @ second >= 0 else -second
    return quaternion_product(quaternion_power(quaternion_product(second, first * [-1, -1, -1, 1]), u), first)


def test_cameras_lights_and_hidden_nodes_move(tmp_path):
    maker = Maker()
    camera = maker.add("cameras", {"type": "perspective", "perspective": {"yfov": 1.0}})
    maker.node(camera=camera)
    maker.node(extensions=maker.light(type="point"))
    maker.node(mesh=square(maker))
    animation = animate(maker, 0, "translation", (0.0, 1.0), [[0, 0, 0], [0, 0, 4]])
    animate(maker, 1, "translation", (0.0, 1.0), [[0, 0, 0], [8, 0, 0]], animation=animation)
    animate(maker, 2, "scale", (0.0, 1.0), [[1, 1, 1], [0, 0, 0]], "STEP", animation=animation)
    animate(maker, 2, "translation", (0.0, 2.0), [[0, 0, 0], [0, 0, 0]], animation=animation)
    model = gltf.load(put(tmp_path, maker))
    posed = model_at(model, 0, 0.5)
    assert posed.cameras[0].matrix[2, 3] == 2 and posed.lights[0].matrix[0, 3] == 4
    assert posed.mesh_nodes[0][1][0, 0] == 1
    ((_, hidden),) = model_at(model, 0, 1.5).mesh_nodes
    assert 0 < hidden[0, 0] < 1e-6, "hidden nodes are too small to see, and every time has the same nodes"


def test_animations_are_found_by_name_and_number(tmp_path):
    maker = Maker()
    node = maker.node(mesh=square(maker))
    for name in ("walk", "", "walk", "1", None):
        index = animate(maker, node, "translation", (0.0, 1.0), np.zeros((2, 3)))
        if name is not None:
            maker.tree["animations"][index]["name"] = name
    found = gltf.load(put(tmp_path, maker)).animations
    assert [find_animation(found, name) for name in ("walk", "0", "1", "2", "4", "5", "run")] == [
        0,
        0,
        3,
        2,
        4,
        None,
        None,
    ]
    keys = animation_keys(found)
    assert keys == ["walk", "1", "2", "1", "4"]


def test_pointers_at_nodes_play_and_others_are_ignored_aloud(tmp_path):
    maker = Maker()
    maker.node(mesh=square(maker))

    def at(text):
        return {"path": "pointer", "extensions": {"KHR_animation_pointer": {"pointer": text}}}

    animation = animate(maker, 0, "", (0.0, 1.0), [[0, 0, 0], [2, 0, 0]], target=at("/nodes/0/translation"))
    animate(maker, 0, "", (0.0, 1.0), [0.0, 1.0], animation=animation, target=at("/materials/0/alphaCutoff"))
    animate(maker, 0, "", (0.0, 1.0), [0.0, 1.0], animation=animation, target=at("/materials/1/alphaCutoff"))
    model = gltf.load(put(tmp_path, maker))
    assert model_at(model, 0, 0.5).mesh_nodes[0][1][0, 3] == 1
    assert model.ignored["KHR_animation_pointer channels"] == 2


def moving_square(maker=None):
    maker = maker or Maker()
    animate(maker, maker.node(mesh=square(maker)), "translation", (0.0, 1.0), [[0, 0, 0], [1, 0, 0]])
    return maker


def spoil_times(maker, times):
    maker.tree["animations"][0]["samplers"][0]["input"] = maker.array(np.float32(times))


def spoil_sampler(maker, **changes):
    maker.tree["animations"][0]["samplers"][0].update(changes)


def spoil_target(maker, **changes):
    maker.tree["animations"][0]["channels"][0]["target"].update(changes)


EMPTY = {"componentType": 5126, "type": "SCALAR", "count": 0}
BAD = {
    "times that are no numbers": (lambda m: spoil_times(m, [0, np.nan]), "numbers must be finite"),
    "decreasing times": (lambda m: spoil_times(m, [1, 0]), r"samplers\[0\] has key frame 1 at 0 s, before key frame 0"),
    "endless times": (lambda m: spoil_times(m, [0, 1e9]), r"has a key frame at 1e\+09 s; 1e\+06 s are allowed"),
    "no times": (lambda m: spoil_sampler(m, input=m.add("accessors", EMPTY)), "has no key frames"),
    "too few outputs": (
        lambda m: spoil_sampler(m, output=m.array(np.zeros((3, 3)))),
        "3 output values for 2 key frames",
    ),
    "outputs of a spline": (lambda m: spoil_sampler(m, interpolation="CUBICSPLINE"), "it must have 6"),
    "outputs of another type": (lambda m: spoil_sampler(m, output=m.array(np.zeros((2, 4)))), "needs VEC3; accessors"),
    "whole numbers": (lambda m: spoil_sampler(m, output=m.array(np.zeros((2, 3)), "u1")), "are not normalized"),
    "another interpolation": (lambda m: spoil_sampler(m, interpolation="BEZIER"), '"BEZIER"; allowed are LINEAR, STEP'),
    "no sampler": (lambda m: m.tree["animations"][0]["channels"][0].update(sampler=7), r"names samplers\[7\]"),
    "no node": (lambda m: spoil_target(m, node=9), r"channels\[0\] names nodes\[9\]; there are 1"),
    "another path": (lambda m: spoil_target(m, path="color"), 'has the path "color"; allowed are translation'),
    "no targets": (lambda m: spoil_target(m, path="weights"), "needs SCALAR"),
    "a matrix": (lambda m: m.tree["nodes"][0].update(matrix=list(np.eye(4).ravel())), "which has a matrix"),
    "no channel": (lambda m: m.tree["animations"][0].update(channels=[3]), r"channels\[0\] is 3; it must be an object"),
    "too many": (lambda m: m.tree["animations"].extend([{}] * (1 << 14)), "has 16385 animations; 16384 are allowed"),
    "no animation": (lambda m: m.tree.update(animations=[None]), r"animations\[0\] is null"),
    "too far": (lambda m: spoil_sampler(m, output=m.array([[0, 0, 0], [1e30, 0, 0]])), "has a position beyond 1e18"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_animations_are_told_in_one_sentence(tmp_path, name):
    spoil, words = BAD[name]
    maker = moving_square()
    spoil(maker)
    path = put(tmp_path, maker)
    with pytest.raises(InputError, match=words) as error:
        model_at(gltf.load(path), 0, 0.5)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_bad_rotations_and_morph_targets_are_told(tmp_path, rng):
    maker = Maker()
    animate(maker, maker.node(mesh=square(maker)), "rotation", (0.0, 1.0), np.zeros((2, 4)))
    with pytest.raises(InputError, match="has a rotation of length zero"):
        gltf.load(put(tmp_path, maker))
    for spoil, words in (
        (
            lambda p, m: p["targets"][1].update(POSITION=m.array(np.zeros((3, 3)))),
            r"targets\[1\] has 3 items of POSITION",
        ),
        (lambda p, m: p["targets"][1].update(POSITION=m.array(np.zeros((4, 2)))), "needs VEC3"),
        (lambda p, m: p["targets"].append(4), r"targets\[3\] is 4; it must be an object"),
        (lambda p, m: p.update(targets={}), "targets that are"),
        (lambda p, m: m.tree["meshes"][0].update(weights=[1.0]), "it must be 3 numbers"),
        (lambda p, m: m.tree["meshes"][0]["primitives"].append({**p, "targets": []}), "0 and 3 morph targets"),
    ):
        maker, mesh, _ = morphing(rng)
        maker.node(mesh=mesh)
        spoil(maker.tree["meshes"][0]["primitives"][0], maker)
        with pytest.raises(InputError, match=words):
            gltf.load(put(tmp_path, maker))


def test_many_channels_and_targets_are_bounded(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("renderer.formats.gltf.animation.MAX_CHANNELS", 3)
    maker = moving_square()
    maker.tree["animations"] *= 4
    with pytest.raises(InputError, match="raises the channels of the whole file above the 3 allowed"):
        gltf.load(put(tmp_path, maker))
    monkeypatch.setattr("renderer.formats.gltf.skins.MAX_TARGET_VERTICES", 50)
    maker, mesh, _ = morphing(rng)
    maker.node(mesh=mesh)
    with pytest.raises(InputError, match="raises the target vertices of the whole file above the 50 allowed"):
        gltf.load(put(tmp_path, maker, "more.glb"))
