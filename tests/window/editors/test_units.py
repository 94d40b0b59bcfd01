"""Unit tests of the window: frame rates, keys, steps of settings, file watching, the command."""

import sys
import threading
import tomllib
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import pytest

from renderer.errors import InputError, UnavailableError, UserError
from renderer.pictures import picture_kinds
from renderer.scene.schema import setting
from renderer.scene.toml_text import table_lines
from renderer.window.app.backends import Window
from renderer.window.app.key_bindings import ACTIONS
from renderer.window.command import load_panels
from renderer.window.controls.shortcuts import PICTURE_GROUP, active_actions, chord, step_setting
from renderer.window.controls.toolkit import glfw
from renderer.window.panels.frame_budget import FrameBudget
from renderer.window.panels.measurements import FrameRateCounter
from renderer.window.state import panel_actions
from renderer.window.state.file_watcher import FileWatcher
from tests.window.helpers import FRACTAL


def test_frame_rate_is_the_median_of_the_last_second(rng):
    frame_rate = FrameRateCounter()
    time, intervals = 100.0, rng.uniform(0.005, 0.05, 400)
    for interval in intervals:
        time += interval
        frame_rate.add(time)
    timestamps = 100.0 + np.cumsum(intervals)
    last = timestamps[timestamps >= timestamps[-1] - 1]
    assert frame_rate.rate(timestamps[-1]) == pytest.approx(1 / np.median(np.diff(last)), rel=1e-6)
    assert frame_rate.rate(timestamps[-1] + 60) == 0


def test_a_budget_expects_a_thousand_times_the_iterations_to_cost_a_thousand_times():
    """A million iterations typed into a settled panel froze the window for the length of the draw."""
    budget = FrameBudget(0, guess=1e-9)
    budget.work = 1000.0
    assert budget.expected(100 * 100) == pytest.approx(0.01) and budget.divisor_for(100 * 100, 1.0) == 1
    budget.work = 1e8
    assert budget.divisor_for(1000 * 1000, 1.0) == 8, "it is never drawn whole at first"
    budget.work = 1000.0
    for _ in range(2):  # the first compiles
        budget.record(0.02, 100 * 100)
    assert budget.seconds(100 * 100) == budget.expected(100 * 100) == pytest.approx(0.02)
    budget.work = 1e6
    assert budget.expected(100 * 100) == pytest.approx(20.0) and budget.divisor_for(100 * 100, 0.03) == 8
    budget.record(0.04, 100 * 100)  # nearly every pixel escapes
    assert budget.divisor_for(100 * 100, 0.05) == 1


def test_one_slow_frame_does_not_move_the_rate():
    frame_rate = FrameRateCounter()
    for time in [*np.arange(0, 0.5, 0.01), *np.arange(0.8, 1.0, 0.01)]:
        frame_rate.add(float(time))
    assert frame_rate.rate(1.0) == pytest.approx(100, rel=1e-3)


def test_slow_pictures_have_a_frame_rate():
    frame_rate = FrameRateCounter()
    frame_rate.add(0.0)
    assert frame_rate.rate(0.1) == 0
    frame_rate.add(4.0)
    assert frame_rate.rate(4.1) == pytest.approx(0.25)


@dataclass(frozen=True)
class Numbers:
    depth: int = setting(6, 1, 16, key="d")
    count: int = setting(100, 1, 1 << 20, logarithmic=True)
    kind: Literal["a", "b", "c"] = setting("a", key="k")
    on: bool = True
    part: float = setting(0.5, 0.0, 1.0)


def step(settings, name, direction):
    return getattr(step_setting(settings, name, direction), name)


def test_keys_step_settings_within_their_range_and_wrap():
    assert step(Numbers(), "depth", 1) == 7 and step(Numbers(depth=16), "depth", 1) == 1
    assert step(Numbers(depth=1), "depth", -1) == 16
    assert step(Numbers(), "kind", -1) == "c" and step(Numbers(kind="c"), "kind", 1) == "a"
    assert step(Numbers(), "on", 1) is False
    assert step(Numbers(), "count", 1) == 125 and step(Numbers(count=1), "count", 1) == 2
    assert step(Numbers(part=0.97), "part", 1) == 1.0 and step(Numbers(), "part", -1) == pytest.approx(0.45)
    value = Numbers()
    for _ in range(40):
        value = replace(
            value, depth=step(value, "depth", 1), count=step(value, "count", -1), part=step(value, "part", 1)
        )
        assert 1 <= value.depth <= 16 and 1 <= value.count <= 1 << 20 and 0 <= value.part <= 1


def test_no_two_actions_share_keys():
    chords = [chord(action.keys) for action in ACTIONS]
    assert len(set(chords)) == len(chords)
    assert all(action.name and action.group for action in ACTIONS)
    for wrong in ("Hyper+A", "Ctrl+Nonsense", "", "AB"):
        with pytest.raises(ValueError):
            chord(wrong)


@pytest.mark.parametrize("kind", picture_kinds())
def test_no_picture_uses_a_key_of_the_window(kind):
    import importlib

    module = importlib.import_module(f"renderer.pictures.{kind}")
    own = [f.metadata["key"].upper() for f in fields(module.Settings) if f.metadata.get("key")]
    window = {action.keys for action in ACTIONS}
    assert len(set(own)) == len(own)
    assert not set(own) & window and not {f"Shift+{key}" for key in own} & window
    assert all(chord(key) for key in own)


def test_the_picture_s_keys_become_actions():
    live = active_actions(ACTIONS, Numbers(), panel_actions.step_setting)
    assert [a.keys for a in live if a.group == PICTURE_GROUP] == ["D", "Shift+D", "K", "Shift+K"]
    assert len(live) == len(ACTIONS) + 4


def test_inputs_become_panels(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.toml").write_text(FRACTAL.format(title=name))
    (tmp_path / "both.toml").write_text(
        'picture = "layout"\nsettings = { panels = ["a.toml", "b.toml"], columns = 1 }\n'
    )
    scenes, columns, _ = load_panels([tmp_path / "both.toml"])
    assert [scene.title for scene in scenes] == ["a", "b"] and columns == 1
    scenes, columns, _ = load_panels([tmp_path / "b.toml", tmp_path / "both.toml"])
    assert [scene.title for scene in scenes] == ["b", "a", "b"] and columns == 0
    with pytest.raises(UserError, match="at most 16"):
        load_panels([tmp_path / "a.toml"] * 17)
    for absent in (1, 2):
        with pytest.raises(InputError, match="No such file"):
            load_panels([tmp_path / "absent.toml"] * absent)


def test_no_display_raises(monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(UnavailableError, match="no display.*rayfold export"):
        Window((100, 100), "no")


def test_file_watcher_reports_saved_files_only(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("1")
    b.write_text("1")
    watch = FileWatcher()
    assert watch.poll({a, b}, 1.0) == set()
    a.write_text("22")
    assert watch.poll({a, b}, 1.1) == set(), "within POLL_SECONDS"
    assert watch.poll({a, b}, 2.0) == {a}
    b.unlink()
    assert watch.poll({a, b}, 3.0) == set()
    b.write_text("3")
    assert watch.poll({a, b}, 4.0) == {b}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")
def test_the_system_reports_an_edited_file(tmp_path):
    scene, woken = tmp_path / "a.toml", threading.Event()
    scene.write_text("1")
    watch = FileWatcher()
    assert not watch.is_notified and watch.is_due(1.0) and watch.poll({scene}, 1.0) == set()
    watch.listen(woken.set)
    assert not watch.is_notified and watch.is_due(2.0) and watch.poll({scene}, 2.0) == set()
    assert watch.is_notified and not watch.is_due(3.0) and not watch.is_due(16.9), "nothing was reported"
    assert watch.is_due(17.1), "a folder of another machine reports nothing"
    assert watch.is_due(3.0, "another scene") and not watch.is_due(3.0, "another scene")
    scene.write_text("22")
    assert woken.wait(20) and not watch.is_notified and watch.is_due(4.0, "another scene")
    assert watch.poll({scene}, 4.0) == {scene} and watch.is_notified
    watch.poll({tmp_path / "none" / "b.toml"}, 5.0)
    assert not watch.is_notified, "a folder that is not there cannot be watched"
    watch.close()
    assert not watch.is_notified and watch.is_due(6.0)


def test_tables_as_toml_round_trip(rng):
    table = {"title": 'a "quoted" \\ line\nand é 🌿', "list": [1, 2.5, -1e-30, True], "size": [3, 4]}
    table["settings"] = {"view": {"center": [float(rng.standard_normal()), 0.0]}, "maps": [{"a b": 1}, {"c": "x"}]}
    assert tomllib.loads("\n".join(table_lines("all", table))) == {"all": table}


def test_glfw_is_the_one_that_was_imported_first():
    assert tuple(glfw.get_version()) >= (3, 4)
