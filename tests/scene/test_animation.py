"""Key frames: values at and between keys, loops, logarithmic settings, mistakes."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.scene.animation import (
    Animation,
    Key,
    Track,
    apply_edit,
    changed_paths,
    delete_keys,
    insert_keyframe,
    key_names,
    keyframe_times,
    keys_at,
    read_animation,
    settings_at,
    value_at,
    without_tracks,
    write_animation,
)
from renderer.scene.cameras import Camera, View2D
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings, setting


@dataclass(frozen=True)
class Settings(PictureSettings):
    view: Camera = Camera()
    plane: View2D = View2D()
    depth: int = setting(1, 1, 16)
    name: str = "a"
    points: tuple[float, ...] = (1.0, 2.0)


def scene(keys, **more):
    animation = read_animation({"keyframes": keys, **more}, Settings(), "x.toml: animation", Path())
    return Scene(Path("x.toml"), "x", "x", Settings(), animation=animation)


def test_keys_are_met_and_ends_hold(rng):
    times = np.sort(rng.uniform(0, 10, 5))
    values = rng.normal(size=(5, 3))
    moving = scene([{"time": t, "set": {"view.target": list(v)}} for t, v in zip(times, values, strict=True)])
    for t, v in zip(times, values, strict=True):
        assert settings_at(moving, t).view.target == pytest.approx(tuple(v))
    assert settings_at(moving, -1).view.target == pytest.approx(tuple(values[0]))
    assert settings_at(moving, 99).view.target == pytest.approx(tuple(values[-1]))


def test_interpolations():
    keys = [
        {"time": 0, "interpolation": "smooth", "set": {"view.fov_degrees": 10}},
        {"time": 2, "set": {"view.fov_degrees": 30}},
    ]
    for interpolation, wanted in (("linear", 15.0), ("hold", 10.0), ("smooth", 10 + 20 * (3 / 16 - 2 / 64))):
        keys[0]["interpolation"] = interpolation
        assert settings_at(scene(keys), 0.5).view.fov_degrees == pytest.approx(wanted)


def test_a_straight_line_stays_straight_under_smooth():
    line = scene([{"time": t, "set": {"points[1]": 3.0 * t}} for t in range(5)])
    assert settings_at(line, 2.3).points == pytest.approx((1.0, 6.9))


def test_whole_numbers_round_texts_hold_and_zoom_is_logarithmic():
    keys = [
        {"time": 0, "interpolation": "linear", "set": {"depth": 1, "name": "a", "plane.height": 1.0}},
        {"time": 1, "set": {"depth": 4, "name": "b", "plane.height": 1e-6}},
    ]
    half = settings_at(scene(keys), 0.5)
    assert (half.depth, half.name) == (2, "a") and half.plane.height == pytest.approx(1e-3)
    assert settings_at(scene(keys), 1.0).name == "b"


def test_a_loop_leads_back():
    keys = [{"time": t, "interpolation": "linear", "set": {"view.fov_degrees": v}} for t, v in ((0, 10), (1, 20))]
    loop = scene(keys, duration=4.0, loop=True)
    assert settings_at(loop, 2.5).view.fov_degrees == pytest.approx(15)
    assert settings_at(loop, 4.5).view.fov_degrees == settings_at(loop, 0.5).view.fov_degrees


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"keyframes": [{"time": 0, "set": {"depht": 1}}]}, r"animation: keyframes\[0\]: depht: unknown key 'depht'"),
        ({"keyframes": [{"time": 0, "set": {"depth": 99}}]}, "depth is 99; it must be 1 to 16"),
        ({"keyframes": [{"time": -1, "set": {}}]}, "time is -1"),
        (
            {"keyframes": [{"time": 0, "interpolation": "bouncy", "set": {}}]},
            'interpolation is "bouncy"; allowed are smooth',
        ),
        ({"keyframes": 3}, "keyframes is 3; it must be a list"),
        ({"tempo": 3}, "unknown key 'tempo'"),
        ({"loop": True}, "a loop needs more than 0"),
        (7, "must be a table"),
    ],
)
def test_mistakes_are_reported(table, told):
    with pytest.raises(InputError, match=told):
        read_animation(table, Settings(), "x.toml: animation", Path())


def random_keys(rng) -> list[dict]:
    paths = {
        "view.position": lambda: [float(x) for x in rng.normal(size=3) + (0, 0, 9)],
        "plane.height": lambda: float(10 ** rng.uniform(-5, 1)),
        "depth": lambda: int(rng.integers(1, 17)),
        "name": lambda: str(rng.choice(["a", "b"])),
        "points[1]": lambda: float(rng.normal()),
    }
    keys = []
    for _ in range(rng.integers(1, 12)):
        chosen = rng.choice(list(paths), rng.integers(1, 4), replace=False)
        time, interpolation = float(rng.integers(0, 4)), str(rng.choice(["smooth", "linear", "hold"]))
        keys.append(
            {"time": time, "interpolation": interpolation, "set": {str(path): paths[path]() for path in chosen}}
        )
    return keys


@pytest.mark.parametrize("round_", range(10))
def test_a_written_animation_is_read_back(rng, round_):
    moving = scene(random_keys(rng), duration=5.0, loop=bool(rng.integers(2)))  # some keys share a time: jumps
    again = read_animation(write_animation(moving.animation), Settings(), "again", Path())
    assert {track.path: track for track in again.tracks} == {track.path: track for track in moving.animation.tracks}
    assert (again.duration, again.loop) == (5.0, moving.animation.loop)


class Counted(float):
    """A time that counts its comparisons."""

    count = 0

    def __eq__(self, other):
        Counted.count += 1
        return float.__eq__(self, other)

    def __le__(self, other):
        Counted.count += 1
        return float.__le__(self, other)

    def __lt__(self, other):
        Counted.count += 1
        return float.__lt__(self, other)

    __hash__ = float.__hash__


def test_the_work_for_many_key_frames_does_not_grow_with_their_square():
    """Writing the recipe of 30,000 key frames took 40 s, which no --time-limit ended, and each frame looked at all."""
    count = 2000
    track = Track("depth", tuple(Key(Counted(k), k % 7, "linear") for k in range(count)), False)
    Counted.count = 0
    assert len(write_animation(Animation(1.0, False, (track,)))["keyframes"]) == count
    assert Counted.count < 30 * count
    Counted.count = 0
    assert value_at(track, 1234.0) == 1234 % 7 and Counted.count < 30


def test_keys_are_added_moved_and_removed(rng):
    still = Scene(Path("x.toml"), "x", "x", Settings())
    first = insert_keyframe(still, 0.0, ["view.position"])
    assert first.animation.duration == 4.0 and settings_at(first, 3.0) == still.settings
    there = replace(still.settings, view=replace(still.settings.view, position=(1.0, 2.0, 3.0)), depth=5)
    second = apply_edit(first, 2.0, there)
    assert settings_at(second, 2.0) == there and second.settings.depth == 5, "what has no keys changes for all times"
    assert settings_at(second, 0.0) == replace(there, view=still.settings.view)
    assert keyframe_times(second.animation) == [0.0, 2.0]
    moved = apply_edit(second, 2.00001, replace(there, view=replace(there.view, position=(7.0, 2.0, 3.0))))
    assert len(keyframe_times(moved.animation)) == 2 and settings_at(moved, 3).view.position == (7.0, 2.0, 3.0)
    later = insert_keyframe(moved, 6.0, ["depth", "view.position"])
    shorter = delete_keys(later, keys_at(later.animation, 6.0))
    assert later.animation.duration == 6.0 and keyframe_times(shorter.animation) == keyframe_times(moved.animation)
    bare = delete_keys(moved, key_names(moved.animation))
    assert bare.animation is None and bare.settings.view.position == (7.0, 2.0, 3.0)
    assert delete_keys(still, keys_at(still.animation, 1.0)) == still


def test_a_loop_shorter_than_its_keys_shows_their_begin():
    keys = [{"time": time, "interpolation": "linear", "set": {"depth": depth}} for time, depth in ((0.0, 1), (4.0, 9))]
    looped = scene(keys, duration=2.0, loop=True)
    assert [settings_at(looped, time).depth for time in (0.0, 1.0, 1.5, 3.0)] == [1, 3, 4, 3]


def test_an_edited_key_keeps_its_easing_curve():
    curve = (0.1, 0.9, 0.2, 1.0)
    eased = {"time": 0.0, "interpolation": "curve", "curve": list(curve), "set": {"depth": 2}}
    edited = scene([eased, {"time": 1.0, "set": {"depth": 8}}])
    edited = apply_edit(edited, 0.0, replace(settings_at(edited, 0.0), depth=4))
    (track,) = edited.animation.tracks
    assert track.keys[0] == Key(0.0, 4, "curve", curve)


def test_a_value_that_is_asked_for_holds_at_all_times():
    keys = [{"time": t, "set": {"view.target": [t, 0.0, 0.0], "view.fov_degrees": 40 + t, "depth": 1}} for t in (0, 4)]
    moving = scene(keys)
    still = without_tracks(moving, "view")
    assert [track.path for track in still.animation.tracks] == ["depth"]
    assert settings_at(still, 3.0).view == Camera() and still.animation.duration == moving.animation.duration
    assert settings_at(without_tracks(moving, "view.fov_degrees"), 2.0).view.target == pytest.approx((2.0, 0, 0))
    assert without_tracks(moving, "name") is moving and without_tracks(still, "view") is still


def test_changed_paths_are_what_set_takes(rng):
    before = Settings()
    after = replace(before, view=replace(before.view, fov_degrees=20.0), points=(1.0, 3.0))
    assert changed_paths(before, after) == ["view.fov_degrees", "points"]
    assert changed_paths(before, before) == []
    moving = insert_keyframe(Scene(Path("x.toml"), "x", "x", after), 1.0, changed_paths(before, after))
    assert settings_at(moving, 0.0) == after
