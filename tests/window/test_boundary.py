"""Errors stay in their region of the frame: panels, regions, the editor, actions, files, frames."""

import multiprocessing
from contextlib import closing
from dataclasses import make_dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError, UnavailableError
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.scene.cameras import View, View2D
from renderer.scene.schema import check_numbers, setting
from renderer.window import boundary
from renderer.window.app import backends, docking, main_window, mouse, overlays
from renderer.window.command import open_app, requested_session
from renderer.window.controls.settings import edit_settings
from renderer.window.controls.toolkit import imgui
from renderer.window.flame_editor.view import FlameEditor
from renderer.window.panels.panel_view import PanelView
from renderer.window.state import app_state, open_files, panel_actions, save_files
from renderer.window.state.session import (
    Session,
    claim_session,
    default_path,
    kept_sessions,
    restore,
    save,
)
from renderer.window.timeline import view
from tests.window.headless import center, drag, draw_full_sample, finish, frames, point, press, seconds, until, window
from tests.window.helpers import FRACTAL
from tests.window.monkey import counted_errors, monkey, noop_device

SCENES = sorted([*(ROOT / "scenes").glob("*.toml"), *(ROOT / "scenes").glob("*.flame")])
KOCH = ROOT / "scenes" / "koch.toml"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """The folder of the logs of internal errors, empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(boundary, "_logged", {})
    return tmp_path / "cache" / "rayfold" / "logs"


@pytest.fixture
def flame(gl, tmp_path, monkeypatch, scene_files):
    """A window with a flame and a fractal, on a device without kernels."""
    monkeypatch.chdir(tmp_path)
    device = SimpleNamespace(device=noop_device())
    koch = load(KOCH)
    scenes = [replace(koch, settings=replace(koch.settings, quality=1.0)), load(scene_files[0])]
    with window(scenes, device, gl, (500, 260), 0.5) as screen:
        finish(screen)
        yield screen


def pass_time(screen) -> None:
    """Advances the clock until messages are gone."""
    screen.app.now.seconds += app_state.MESSAGE_SECONDS + 1
    frames(screen)


def broken(*arguments, **named):
    """Fails, and within a frame with windows, tables and styles of Dear ImGui open."""
    if not imgui.get_current_context().within_frame_scope:
        raise KeyError("no such thing")
    imgui.begin("left open")
    imgui.push_id("left")
    imgui.push_style_color(imgui.Col_.text, (1, 0, 0, 1))
    imgui.begin_group()
    imgui.begin_disabled(True)
    if imgui.begin_table("left", 3):
        imgui.table_next_column()
    imgui.tree_push("left")
    raise KeyError("no such thing")


def message(screen) -> str:
    """All that the window says of errors."""
    return " ".join([screen.app.message, *(panel.error + panel.update_error for panel in screen.app.panels)])


@pytest.mark.parametrize(
    "owner, name, keys",
    [
        (PanelView, "_bars", ""),
        (mouse, "handle_mouse", ""),
        (docking.Docking, "drag_panel", ""),
        (main_window, "edit_settings", ""),
        (main_window, "action_buttons", ""),
        (main_window.sections, "draw_statistics", ""),
        (view, "draw", "Ctrl+T"),
        (overlays.Overlays, "_help", "F1"),
        (FlameEditor, "draw", ""),
        (FlameEditor, "controls", ""),
        (FlameEditor, "mouse", ""),
        (FlameEditor, "overlay", ""),
        (FlameEditor, "actions", ""),
    ],
)
def test_an_error_in_a_part_of_the_frame_is_a_message(flame, logs, monkeypatch, capfd, owner, name, keys):
    """The other parts are drawn, and once the part works again the window looks as it did before."""
    if keys:
        press(flame, keys)
    pass_time(flame)
    before = flame.pixels()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, broken)
        frames(flame, 5)
        assert "internal error in " in message(flame) and "KeyError: 'no such thing'" in message(flame)
    written = list(logs.iterdir())
    assert len(written) <= len(flame.app.panels), "an error that repeats has one log"
    assert any(str(log) in message(flame) and "in broken" in log.read_text() for log in written)
    assert "IM_ASSERT" not in "".join(capfd.readouterr())
    for panel in flame.app.panels:
        panel.restart()
    finish(flame)
    pass_time(flame)
    assert not any(panel.error for panel in flame.app.panels)
    if name not in ("_bars", "handle_mouse"):  # whose panels lost their frame rates
        assert np.abs(flame.pixels().astype(int) - before).mean() < 1.0


@pytest.mark.parametrize("keys, owner, name", [("Ctrl+S", save_files, "save_to"), ("N", open_files, "load_for_window")])
def test_an_error_in_an_action_is_a_message(screen, logs, monkeypatch, keys, owner, name):
    monkeypatch.setattr(owner, name, broken)
    press(screen, keys)
    assert ("internal error in " in screen.app.message) or keys == "N"  # which tries the other scenes and finds none
    assert len(list(logs.iterdir())) == 1
    press(screen, "D")
    assert screen.app.panel.scene.settings.max_iterations == 50, "the next action works"


def test_an_error_at_a_drop_a_reload_a_screenshot_and_a_search_for_edits_is_a_message(screen, logs, monkeypatch):
    finish(screen)
    with monkeypatch.context() as patch:
        for name in ("load_for_window", "load_again"):
            patch.setattr(open_files, name, broken)
        open_files.open_dropped_files(screen.app, [Path("a.toml"), Path("b.npy")])
        assert "KeyError" in screen.app.message and len(screen.app.panels) == 2
        press(screen, "F5")
        assert all("KeyError" in panel.update_error for panel in screen.app.panels)
    for owner, name, keys in ((save_files, "write_png", "F12"), (backends, "write_png", "Shift+F12")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            press(screen, keys)
            assert "KeyError" in screen.app.message
        screen.app.show_message("")
    monkeypatch.setattr(screen.app.file_watcher, "poll", broken)
    seconds(screen, 0.5)
    assert "looking for edited files" in screen.app.message


def test_a_frame_that_fails_is_dropped_and_three_in_a_row_end_the_window(gl, scene_files, tmp_path, logs, monkeypatch):
    """The session is saved as one that broke off."""
    kept = tmp_path / "session.json"
    with pytest.raises(KeyError), window([load(scene_files[0])], None, gl, (300, 200), session_path=kept) as screen:
        frames(screen, 3)
        before = screen.app.loop.frame_rate
        render = backends.render
        for _ in range(3):
            monkeypatch.setattr(backends, "render", broken)
            frames(screen, backends.MAX_FAILED_FRAMES - 1)
            assert "a frame of the window" in screen.app.message and screen.app.loop.frame_rate is before
            monkeypatch.setattr(backends, "render", render)
            screen.frame()
        monkeypatch.setattr(backends, "render", broken)
        screen.app.panel.show(replace(screen.app.panel.scene, title="kept"))
        frames(screen, backends.MAX_FAILED_FRAMES)
    session = restore(kept)
    assert session.scenes[0].title == "kept" and not session.clean


def test_controls_of_settings_with_any_bounds_are_drawn(screen, rng):
    """Dear ImGui asserts that bounds of sliders are within half the range of their type."""
    ends = [0, 1, -1, 1 << 29, (1 << 30) - 1, 1 << 30, (1 << 31) - 1, 1 << 31, 1 << 40, 1 << 63, 10**40]
    classes = []
    for number in range(300):
        kind = (int, float)[number % 2]
        low, high = sorted(kind(int(rng.choice([-1, 1])) * ends[k]) for k in rng.integers(0, len(ends), 2))
        value = [low, high, kind(0), kind(1 << 62)][number // 2 % 4]
        bounds = [(low, high), (None, None), (low, None), (None, high)][number // 8 % 4]
        declared = setting(value, *bounds, logarithmic=bool(number % 3 == 0))
        classes.append(
            make_dataclass("Odd", [("a", kind, declared), ("b", tuple[kind, kind], setting((value, low)))])()
        )
    drawn = []

    def edit(settings, original, *context):
        drawn.extend(edit_settings(odd, odd) == odd for odd in classes)
        return settings

    with counted_errors() as errors, pytest.MonkeyPatch.context() as patch:
        patch.setattr(main_window, "edit_settings", edit)
        frames(screen, 2)
    assert not errors.total, errors.places
    assert len(drawn) >= len(classes) and all(drawn), "nothing is changed by drawing it"


@pytest.mark.parametrize("path", SCENES, ids=lambda path: path.name)
def test_every_setting_of_every_scene_has_a_control(screen, path):
    settings, app = load(path).settings, screen.app
    check_numbers(settings, path.name)
    with counted_errors() as errors:
        app.panel.show(replace(app.panel.scene, settings=settings))  # drawn by the sidebar, whatever the picture
        app.panel.is_open, app.panel.error = True, "not drawn"
        frames(screen, 2)
    assert not [place for place in errors.places if "imgui" in errors.places[place]], errors.places
    view = settings.view
    assert view is None or isinstance(view, View), "what the mouse moves has all that a view has"


def test_an_editor_belongs_to_its_panel(flame):
    """Variants of a flame are open while the keyboard selects a panel of another kind, and the flame's is changed."""
    app, editors = flame.app, flame.ui.main_window
    with counted_errors() as errors:
        press(flame, "V")
        editor = editors.panel_editor(app.panel)
        assert editor.variants.is_open
        press(flame, "Tab")
        frames(flame, 12)
        assert app.panel.scene.picture == "fractal" and editors.panel_editor(app.panel) is None
        press(flame, "Tab")
        frames(flame, 12)
        assert editors.panel_editor(app.panel) is editor and editor.variants.is_open
        press(flame, "N")
        frames(flame, 3)
    assert not errors.total, errors.places
    app.close_panel()
    frames(flame)
    assert editor not in editors.editors.values(), "it ends with its panel"


def test_another_kind_of_picture_saved_over_an_open_scene(gl, scene_files, tmp_path):
    """Also in a panel that is not drawn meanwhile, because another is maximized."""
    scenes = [load(path) for path in scene_files]
    with counted_errors() as errors, window(scenes, SimpleNamespace(device=noop_device()), gl, (700, 400)) as screen:
        finish(screen)
        press(screen, "Enter")
        seconds(screen, 0.6)
        for path, text in zip(scene_files, ("mirrors.toml", "koch.toml"), strict=True):
            path.write_text((ROOT / "scenes" / text).read_text())
        seconds(screen, 1.0)
        press(screen, "Tab")
        point(screen, *center(screen, 0))
        press(screen, "Enter")
        seconds(screen, 1.0)
        assert [panel.scene.picture for panel in screen.app.panels] == ["raytrace", "flame"]
        for path in scene_files:
            path.write_text(FRACTAL.format(title=path.stem))
        until(screen, lambda: all(panel.scene.picture == "fractal" for panel in screen.app.panels))
        finish(screen)
        assert not any(panel.error or panel.update_error for panel in screen.app.panels)
    assert not errors.total, errors.places


def test_a_program_is_edited_while_it_is_open(gl, gpu, tmp_path):
    """A new parameter of main becomes a setting, the user's values stay, and a mistake keeps the last good picture."""
    path = tmp_path / "p.cb"
    path.write_text("float main(int x, int y, float a = 0.25) => a;")
    with counted_errors() as errors, window([load(path)], gpu, gl, (200, 160)) as screen:
        panel = screen.app.panel

        def value() -> int:
            return int(panel.display.texture.read()[0, 0, 0])

        draw_full_sample(screen)
        panel_actions.edit_settings(screen.app, replace(panel.scene.settings, a=0.5))
        draw_full_sample(screen)
        half = value()
        path.write_text("float main(int x, int y, float a = 0.25, float b = 0.125) => a + b;")
        until(screen, lambda: hasattr(panel.scene.settings, "b"))
        draw_full_sample(screen)
        assert panel.scene.settings.a == 0.5 and panel.original.settings.a == 0.25 and value() > half
        more = value()
        path.write_text("float main(int x, int y, float a = 0.25, float b = ) => a + b;")
        until(screen, lambda: panel.update_error)
        assert "p.cb" in panel.update_error and not panel.error
        panel_actions.edit_settings(screen.app, replace(panel.scene.settings, b=0.25))
        draw_full_sample(screen)
        assert value() > more, "the last good program takes new settings"
        path.write_text("float main(int x, int y) => 0.125;")
        until(screen, lambda: not panel.update_error and not hasattr(panel.scene.settings, "a"))
        draw_full_sample(screen)
        assert value() < half and not panel.error
    assert not errors.total, errors.places


def test_views_that_are_no_numbers_are_refused(screen):
    finish(screen)
    panel = screen.app.panel
    before = panel.scene
    for center_x, height in ((float("nan"), 1.0), (float("inf"), 1.0), (1e200, 1.0), (0.0, 0.0), (0.0, 1e300)):
        panel_actions.set_view(screen.app, View2D((center_x, 0.0), height))
        assert panel.scene == before and "view" in screen.app.message and "internal" not in screen.app.message
    for text in (float("nan"), -1e31):
        with pytest.raises(InputError):
            check_numbers(Numbers(text), "x.toml")
    io = imgui.get_io()
    with counted_errors() as errors:
        point(screen, *center(screen, 0))
        for turn in (1e6, -1e6, 1e30):
            io.add_mouse_wheel_event(0, turn)
            frames(screen)
        drag(screen, center(screen, 0), 1e30, -1e30)
        drag(screen, center(screen, 0), -1e9, 1e9, button=1)
    assert not errors.total, errors.places
    check_numbers(panel.scene.settings, "what is left can be saved")


Numbers = make_dataclass("Numbers", [("a", float, setting(0.0))])


def test_closing_a_panel_can_be_undone(screen, tmp_path):
    app = screen.app
    press(screen, "D")
    finish(screen)
    press(screen, "Ctrl+Shift+Right")  # docked: the layout is no longer a grid
    first, second = app.panels
    scenes, arranged = [panel.scene for panel in app.panels], app.panels.layout
    pixels = first.display.texture.read()
    press(screen, "Ctrl+W")
    press(screen, "D")  # discards the changes
    finish(screen)
    assert list(app.panels) == [second] and first.display.texture is None and first.tiles is None, "its memory is free"
    press(screen, "Ctrl+Z")
    finish(screen)
    assert list(app.panels) == [first, second] and [panel.scene for panel in app.panels] == scenes
    assert app.panels.layout == arranged and app.panel is first and np.array_equal(first.display.texture.read(), pixels)
    press(screen, "Ctrl+Z")
    assert first.scene.settings.max_iterations == 40, "the steps before are still there"
    press(screen, "Ctrl+Y")
    press(screen, "Ctrl+Y")
    assert list(app.panels) == [second]
    press(screen, "Ctrl+Z")
    press(screen, "Ctrl+D")
    save(app.session(), tmp_path / "one.json")
    app.replace_panels(restore(tmp_path / "one.json"))
    assert len(app.panels) == 3 and first not in app.panels
    for count in (3, 2):
        press(screen, "Ctrl+Z")
        assert len(app.panels) == count and app.panels[0] is first
    finish(screen)
    assert not any(panel.error for panel in app.panels)


def _other_window(state: str, ready, end) -> None:
    """Another process with a window: it claims a session file, saves, and is killed."""
    path = claim_session(Path(state))
    save(Session.of((load(KOCH),), clean=False), path)
    ready.put(str(path))
    end.get()


def test_each_window_has_a_session_file_and_only_one_that_broke_off_is_said_to(gl, scene_files, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("renderer.window.state.session._locks", [])
    spawned = multiprocessing.get_context("spawn")
    ready, end = spawned.Queue(), spawned.Queue()
    other = spawned.Process(target=_other_window, args=(str(default_path()), ready, end))
    other.start()
    assert Path(ready.get(timeout=60)) == default_path() and not kept_sessions(default_path())
    context = SimpleNamespace(gl=gl)
    with closing(open_app(Session.of((load(scene_files[0]),)), context)) as app:
        assert app.message == "" and app.overlays.recovered is None, "the other window runs"
        app.save()
    own = last_session_after_this_process(monkeypatch)
    assert own == default_path().with_stem("session-2") and restore(own).clean
    other.kill()
    other.join()
    save(Session.of((load(KOCH),), clean=False), default_path())  # as the other did at last
    assert requested_session([], True).scenes[0].picture == "flame", "the newest is restored"
    with closing(open_app(requested_session([], True), context, restores=True)) as app:
        assert app.overlays.recovered is None, "it is restored already"
    last_session_after_this_process(monkeypatch)  # the window's lock ends with its process
    save(Session.of((load(KOCH),), clean=False), default_path())
    with closing(open_app(Session.of((load(scene_files[0]),)), context)) as app:
        assert app.overlays.recovered.titles and not app.overlays.recovered.clean
        app.restore(app.overlays.recovered.path)
        assert app.panel.scene.picture == "flame"


def last_session_after_this_process(monkeypatch) -> Path:
    """The newest session file once this process holds none, as after its end."""
    from renderer.window.state import session

    while session._locks:
        session._locks.pop().close()
    return kept_sessions(default_path())[0].path


def test_no_session_is_kept_where_its_folder_cannot_be_written(gl, scene_files, tmp_path, monkeypatch):
    (tmp_path / "rayfold").write_text("a file")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with closing(open_app(Session.of((load(scene_files[0]),)), SimpleNamespace(gl=gl))) as app:
        assert "no session is saved" in app.message


def test_a_lost_device_ends_the_window_at_once(screen):
    screen.app.loop.lost_device = "a device is lost"
    with pytest.raises(UnavailableError, match="a device is lost"):
        screen.frame()
    screen.app.loop.lost_device = ""


@pytest.mark.parametrize(
    ("seed", "events"), [(17, 100), *(pytest.param(*run, marks=pytest.mark.slow) for run in ((17, 1500), (18, 5000)))]
)
def test_monkey(gl, tmp_path, seed, events):
    """Seeded events over all scenes: no exit, no internal error, and the session can be restored."""
    with counted_errors() as errors, monkey(gl, tmp_path, seed) as user:
        for _ in range(events):
            user.event()
            assert not errors.total, (errors.places, user.recent[-6:])
        user.mend_files()
        titles = [panel.scene.title for panel in user.app.panels]
    assert [scene.title for scene in restore(tmp_path / "session.json").scenes] == titles
    assert all(user.counts[kind] > events / 250 for kind in user.kinds), user.counts
