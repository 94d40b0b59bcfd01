"""Scene files: what is read is what was written, and every mistake is one sentence with file, key and value."""

import copy
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.errors import InputError, UserError
from renderer.pictures import load
from renderer.raytracing.settings import Material
from renderer.scene.cameras import Camera, View2D
from renderer.scene.scene import Scene
from renderer.scene.schema import MAX_NUMBER, PictureSettings, from_table, set_from_text, setting, to_table
from renderer.system.files import read_toml


@dataclass(frozen=True)
class Ball:
    center: tuple[float, float, float]
    radius: float = setting(1.0, 0.0)


@dataclass(frozen=True)
class Settings(PictureSettings):
    view: Camera = Camera()
    depth: int = setting(4, 1, 16)
    shine: float = 0.5
    mode: Literal["on", "off"] = "on"
    loud: bool = False
    balls: tuple[Ball, ...] = ()
    named: dict[str, Ball] = setting(MappingProxyType({}))
    mesh: str = setting("", file=(".obj",))


ball = st.builds(Ball, st.tuples(*[st.floats(-1e6, 1e6)] * 3), st.floats(0, 1e6))
settings = st.builds(
    Settings, depth=st.integers(1, 16), shine=st.floats(-MAX_NUMBER, MAX_NUMBER),
    mode=st.sampled_from(["on", "off"]), loud=st.booleans(), balls=st.lists(ball, max_size=3).map(tuple),
    named=st.dictionaries(st.text("abc", min_size=1), ball, max_size=2).map(MappingProxyType))  # fmt: skip


@given(settings)
def test_write_then_read_is_the_same(value):
    assert from_table(Settings, to_table(value), "x.toml", None) == value


def test_defaults_are_not_written():
    assert to_table(Settings()) == {}
    assert to_table(Settings(depth=5)) == {"depth": 5}


def test_plain_keys_come_first_among_those_allowed():
    with pytest.raises(InputError, match="did you mean color.*allowed are alpha, name, kind, color") as refusal:
        from_table(Material, {"colr": 1}, "x.toml", None)
    assert all(f" {key}," in str(refusal.value) for key in ("roughness", "transmission", "emission", "metallic", "ior"))


def test_a_scene_shows_itself_in_a_line_and_knows_its_attributes():
    scene = Scene(Path("a.toml"), "A", "raytrace", Settings(), size=(4, 3))
    assert repr(scene) == "<Scene 'a.toml': picture='raytrace', title='A', size=(4, 3)>"
    for name, expected in (("titel", "mean title"), ("depth", "mean settings.depth"), ("zzz", "there are path")):
        with pytest.raises(AttributeError, match=expected):
            getattr(scene, name)
    moved = Scene(Path("a.toml"), "A", "x", Ball((0.0, 0.0, 0.0)))
    assert copy.copy(scene) == scene and pickle.loads(pickle.dumps(moved)) == moved


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"depht": 3}, "x.toml: unknown key 'depht' \\(did you mean depth\\?\\); allowed are view, depth"),
        ({"depth": 0}, "x.toml: depth is 0; it must be 1 to 16"),
        ({"depth": "3"}, 'x.toml: depth is "3"; it must be a whole number'),
        ({"depth": True}, "x.toml: depth is true; it must be a whole number"),
        ({"shine": math.nan}, "x.toml: shine is nan; it must be finite"),
        ({"mode": "perhaps"}, 'x.toml: mode is "perhaps"; allowed are on, off'),
        ({"balls": [{"radius": 1.0}]}, r"x.toml: balls\[0\]: the key 'center' is missing"),
        ({"balls": [{"center": [1, 2]}]}, r"balls\[0\]: center is \[1, 2\]; it must have 3 values"),
        ({"balls": [{"center": [1, 2, 3], "radius": -1}]}, "radius is -1.0; it must be at least 0"),
        ({"named": {"a": 3}}, "x.toml: named.a is 3; it must be a table"),
        ({"balls": 3}, "x.toml: balls is 3; it must be a list"),
        (
            {"view": {"position": [0, 1, 0], "target": [0, 0, 0]}},
            "x.toml: view: position, target and up lie on one line",
        ),
        ({"mesh": "nowhere.obj"}, 'x.toml: mesh is "nowhere.obj"; there is no '),
    ],
)
def test_mistakes_are_told(table, expected):
    with pytest.raises(InputError, match=expected):
        from_table(Settings, table, "x.toml", None)


def test_paths_are_relative_to_the_scene_file(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.obj").touch()
    value = from_table(Settings, {"mesh": "a/b.obj"}, "x.toml", tmp_path)
    assert value.mesh == str((tmp_path / "a" / "b.obj").resolve())
    assert to_table(value, tmp_path / "c") == {"mesh": "../a/b.obj"}


def test_assign_reaches_inwards():
    value = Settings(balls=(Ball((1.0, 2.0, 3.0)),))
    assert set_from_text(value, "depth", "7").depth == 7
    assert set_from_text(value, "mode", "off").mode == "off"
    assert set_from_text(value, "view.fov_degrees", "30").view.fov_degrees == 30
    assert set_from_text(value, "view.position", "1,2,3").view.position == (1.0, 2.0, 3.0)
    assert set_from_text(value, "balls[0].radius", "2.5").balls[0].radius == 2.5


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("dept", "3", "--set dept: unknown key 'dept' \\(did you mean depth"),
        ("depth", "99", "--set depth is 99; it must be 1 to 16"),
        ("balls[2].radius", "1", "no item '2'"),
        ("depth.x", "1", "plain value"),
        ("view.position", "0,1,0", "one line"),
    ],
)
def test_assign_mistakes_are_usage_errors(key, text, expected):
    with pytest.raises(UserError, match=expected) as error:
        set_from_text(Settings(balls=(Ball((1.0, 2.0, 3.0)),)), key, text)
    assert error.value.exit_code == 2


def test_files_that_are_no_toml(tmp_path):
    for content, expected in (
        (b"a = 3\n b\n", "line 2"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a = " + b"[" * 5000, "not a TOML"),
    ):
        path = tmp_path / "x.toml"
        path.write_bytes(content)
        with pytest.raises(InputError, match=expected):
            read_toml(path)
    with pytest.raises(InputError, match="No such file"):
        read_toml(tmp_path / "none.toml")


def test_camera_axes_are_orthonormal_and_orbit_keeps_the_distance(rng):
    camera = Camera(tuple(rng.normal(size=3) + 3), tuple(rng.normal(size=3)))
    for _ in range(20):
        camera = camera.drag(*rng.normal(size=2))
        frame = camera.axes()
        assert np.allclose(frame @ frame.T, np.eye(3)) and np.isclose(np.linalg.det(frame), -1)
    assert np.isclose(
        math.dist(camera.position, camera.target), math.dist(camera.scroll(3).scroll(-3).position, camera.target)
    )
    assert np.allclose(camera.pan(0.1, 0.2).pan(-0.1, -0.2).position, camera.position)


@pytest.mark.parametrize("steps", [40, -40, 1000, -1000])
def test_a_camera_dollies_to_bounds_at_which_it_can_still_move(rng, steps):
    camera = Camera(tuple(rng.normal(size=3) + 3), tuple(rng.normal(size=3) * 1000))
    for _ in range(30):
        camera = camera.scroll(steps)
        frame = camera.drag(*rng.normal(size=2)).pan(0.1, -0.2).look_around(0.1, 0.1).fly(0.1, 0.2, -0.1).axes()
        assert np.allclose(frame @ frame.T, np.eye(3))
    assert 0 < math.dist(camera.position, camera.target) <= 1.001e12
    tiny = Camera((1e-9, 0.0, 0.0))  # closer than the wheel goes, as a scene may ask
    assert tiny.scroll(1) == tiny and math.dist(tiny.scroll(-1).position, (0, 0, 0)) > 1e-9


def test_plane_zoom_keeps_the_point_under_the_pointer(rng):
    plane = View2D((1.0, 2.0), 3.0, 30.0)
    x, y = rng.uniform(-0.5, 0.5, 2)

    def under(p):
        c, s = math.cos(math.radians(p.rotation_degrees)), math.sin(math.radians(p.rotation_degrees))
        return np.add(p.center, p.height * np.array([c * x + s * y, s * x - c * y]))

    assert np.allclose(under(plane.scroll(5, x, y)), under(plane))
    assert plane.drag(0.1, 0.2).drag(-0.1, -0.2).center == pytest.approx(plane.center)


@pytest.mark.parametrize("kind", ["focus", "laplacian", "reduction", "lightfield", "flame_sheet"])
def test_a_file_that_a_picture_cannot_do_without_is_asked_for_when_the_scene_is_read(tmp_path, kind):
    key = {"lightfield": "light_field", "flame_sheet": "file"}.get(kind, "source")
    path = tmp_path / "a.toml"
    for table, message in (
        ("", f"the key '{key}' is missing"),
        (f"{key} = ''", f"{key} is empty; it must name a file"),
    ):
        path.write_text(f"picture = '{kind}'\n[settings]\n{table}\n")
        with pytest.raises(InputError, match=f"a.toml: settings: {message}"):
            load(path)


def test_messages_stay_short_whatever_is_allowed_and_found(tmp_path):
    """The ray tracer alone has 50 keys; a name of a key or a file may have thousands of characters."""
    path = tmp_path / "a.toml"
    for text, message in (
        ("settings = 3", "must be a table with the keys view, projection, .* and [0-9]+ more"),
        ("[settings]\nxyz = 3", "unknown key 'xyz'; allowed are view, projection, .* and [0-9]+ more"),
        (f"[settings]\n{'x' * 3000} = 3", "unknown key 'xxx"),
        (f"[settings.environment]\nfile = '{'x' * 3000}'", "there is no "),
    ):
        path.write_text(f"picture = 'raytrace'\n{text}\n")
        with pytest.raises(InputError, match=message) as error:
            load(path)
        assert len(str(error.value).replace(str(tmp_path), "")) < 400
