"""Key frames: values at and between keys, loops, logarithmic settings, mistakes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from renderer import BadInput
from renderer.animation import read_animation, settings_at
from renderer.scene import Scene, setting
from renderer.view import Camera, Plane


@dataclass(frozen=True)
class Settings:
    view: Camera = Camera()
    plane: Plane = Plane()
    depth: int = setting(1, 1, 16)
    name: str = "a"
    points: tuple[float, ...] = (1.0, 2.0)


def scene(keys, **more):
    animation = read_animation({"keys": keys, **more}, Settings(), "x.toml: animation")
    return Scene(Path("x.toml"), "x", "x", Settings(), animation=animation)


def test_keys_are_met_and_ends_hold(rng):
    times = np.sort(rng.uniform(0, 10, 5))
    values = rng.normal(size=(5, 3))
    moving = scene([{"time": t, "set": {"view.target": list(v)}} for t, v in zip(times, values, strict=True)])
    for t, v in zip(times, values, strict=True):
        assert settings_at(moving, t).view.target == pytest.approx(tuple(v))
    assert settings_at(moving, -1).view.target == pytest.approx(tuple(values[0]))
    assert settings_at(moving, 99).view.target == pytest.approx(tuple(values[-1]))


def test_eases():
    keys = [{"time": 0, "ease": "EASE", "set": {"view.fov_degrees": 10}}, {"time": 2, "set": {"view.fov_degrees": 30}}]
    for ease, wanted in (("linear", 15.0), ("hold", 10.0), ("smooth", 10 + 20 * (3 / 16 - 2 / 64))):
        keys[0]["ease"] = ease
        assert settings_at(scene(keys), 0.5).view.fov_degrees == pytest.approx(wanted)


def test_a_straight_line_stays_straight_under_smooth():
    line = scene([{"time": t, "set": {"points[1]": 3.0 * t}} for t in range(5)])
    assert settings_at(line, 2.3).points == pytest.approx((1.0, 6.9))


def test_whole_numbers_round_texts_hold_and_zoom_is_logarithmic():
    keys = [
        {"time": 0, "ease": "linear", "set": {"depth": 1, "name": "a", "plane.height": 1.0}},
        {"time": 1, "set": {"depth": 4, "name": "b", "plane.height": 1e-6}},
    ]
    half = settings_at(scene(keys), 0.5)
    assert (half.depth, half.name) == (2, "a") and half.plane.height == pytest.approx(1e-3)
    assert settings_at(scene(keys), 1.0).name == "b"


def test_a_loop_leads_back():
    keys = [{"time": t, "ease": "linear", "set": {"view.fov_degrees": v}} for t, v in ((0, 10), (1, 20))]
    loop = scene(keys, seconds=4.0, loop=True)
    assert settings_at(loop, 2.5).view.fov_degrees == pytest.approx(15)
    assert settings_at(loop, 4.5).view.fov_degrees == settings_at(loop, 0.5).view.fov_degrees


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"keys": [{"time": 0, "set": {"depht": 1}}]}, r"animation: keys\[0\]: depht: unknown key 'depht'"),
        ({"keys": [{"time": 0, "set": {"depth": 99}}]}, "depth is 99; it must be 1 to 16"),
        ({"keys": [{"time": -1, "set": {}}]}, "time is -1"),
        ({"keys": [{"time": 0, "ease": "bouncy", "set": {}}]}, 'ease is "bouncy"; allowed are smooth'),
        ({"keys": 3}, "keys must be a list"),
        ({"tempo": 3}, "unknown key 'tempo'"),
        ({"loop": True}, "a loop needs more than 0"),
        (7, "must be a table"),
    ],
)
def test_mistakes_are_told(table, told):
    with pytest.raises(BadInput, match=told):
        read_animation(table, Settings(), "x.toml: animation")
