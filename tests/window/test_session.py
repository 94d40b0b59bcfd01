"""Opening and saving by the window: scenes, pictures with recipes, sessions."""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh

from renderer.errors import DiskFullError, InputError, UserError
from renderer.formats.images import read_pixels, read_recipe, write_png
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.window.app import menus
from renderer.window.command import list_sessions, open_app, requested_session, session_number
from renderer.window.document import creation
from renderer.window.state import (
    app_state,
    edit_actions,
    main_loop,
    open_files,
    panel_actions,
    save_files,
    session,
    unsaved,
)
from renderer.window.state.session import kept_sessions, restore, rotate_session, save
from tests.lightfields.synthetic_planes import layered_views
from tests.window.headless import center, context_with, drag, finish, frames, press, window
from tests.window.helpers import FRACTAL, HEIGHT, MOVING, WIDTH
from tests.window.monkey import noop_device

KOCH = ROOT / "scenes" / "koch.toml"


def test_next_and_previous_scene(screen):
    press(screen, "N")
    assert screen.app.panel.scene.title == "second"
    press(screen, "P")
    assert screen.app.panel.scene.title == "first"


def test_a_screenshot_can_be_opened_as_the_scene_it_shows(screen, tmp_path):
    press(screen, "D")
    finish(screen)
    press(screen, "F12")
    written = tmp_path / "first-001.png"
    assert np.array_equal(read_pixels(written)[..., :3], screen.app.panel.display.texture.read()[..., :3])
    scene = load(written)
    assert scene.settings == screen.app.panel.scene.settings and scene.size == screen.app.panel.display.texture.size
    assert read_recipe(written)["samples"] == 3
    open_files.open_dropped_files(screen.app, [written])
    frames(screen)
    press(screen, "D")  # discards the changes
    assert screen.app.panel.scene.settings.max_iterations == 50
    press(screen, "Shift+F12")
    assert read_pixels(tmp_path / "window-001.png").shape == (HEIGHT, WIDTH, 4)


@pytest.mark.parametrize("suffix", [".toml", ".png"])
def test_a_dropped_file_whose_name_is_not_utf8_is_refused(screen, tmp_path, suffix):
    """Its title was an internal error each frame."""
    path, before = tmp_path / os.fsdecode(b"\xff" + suffix.encode()), screen.app.panel.scene
    path.write_text('picture = "fractal"\n')
    screen.app.overlays.dropped = path if suffix == ".png" else None
    if suffix == ".png":
        edit_actions.take_dropped(screen.app, "add")
    else:
        open_files.open_dropped_files(screen.app, [path])
    assert "the name is not UTF-8" in screen.app.message and screen.app.panel.scene == before
    frames(screen)
    assert "internal error" not in screen.app.message


def test_every_input_of_export_can_be_dropped(screen, tmp_path, rng):
    """One file replaces the active panel's scene, several open new panels; an error is shown."""
    views, _ = layered_views(rng, 3, 3, 16, back=-1.0, front=1.0, bars=0.5, period=8)
    np.save(tmp_path / "views.npy", views)
    (tmp_path / "field").mkdir()
    for row, column in np.ndindex(3, 3):
        write_png(tmp_path / "field" / f"out_{row:02d}_{column:02d}_{row}_{column}_.png", views[row, column])
    trimesh.creation.box().export(tmp_path / "box.obj")
    trimesh.creation.box().export(tmp_path / "box.ply")
    trimesh.creation.box().export(tmp_path / "box.stl")
    trimesh.creation.box().export(tmp_path / "box.glb")
    press(screen, "F12")
    kinds = {"box.obj": "raytrace", "box.ply": "raytrace", "box.stl": "raytrace", "box.glb": "raytrace"}
    kinds |= {"views.npy": "lightfield", "field": "lightfield", "first-001.png": "fractal", "second.toml": "fractal"}
    paths = [tmp_path / name for name in kinds] + [ROOT / "scenes" / "anemone.flame", ROOT / "scenes" / "mandelbrot.cb"]
    app = screen.app
    for path, kind in zip(paths, [*kinds.values(), "flame", "cdollar"], strict=True):
        open_files.open_dropped_files(app, [path])
        assert app.panel.scene.picture == kind and len(app.panels) == 2, path
    open_files.open_dropped_files(app, [paths[1], paths[6], tmp_path / "none.obj"])
    assert [panel.scene.picture for panel in app.panels] == ["cdollar", "fractal", "raytrace", "fractal"]
    assert "none.obj" in app.message
    open_files.open_dropped_files(app, [ROOT / "scenes" / "demo.toml"] * 5)
    assert len(app.panels) == 16 and "16 panels" in app.message


def test_presets_are_the_scenes_of_one_kind(screen, tmp_path):
    (tmp_path / "broken.toml").write_text("picture = ")
    (tmp_path / "other.toml").write_text('picture = "layout"\nsettings = { panels = ["first.toml"] }\n')
    open_files.reload(screen.app)
    assert [scene.path.stem for scene in open_files.presets(screen.app)] == ["first", "second"]


def test_a_scene_can_be_saved_and_opened(screen, tmp_path):
    press(screen, "D")
    press(screen, "E")
    press(screen, "Ctrl+S")
    scene = load(tmp_path / "first.toml")
    assert scene.settings == screen.app.panel.scene.settings and scene.tone == screen.app.panel.scene.tone


def test_key_frames_are_kept_in_sessions_scenes_and_recipes(screen, scene_files, tmp_path):
    path = tmp_path / "moving.toml"
    path.write_text(FRACTAL.format(title="moving") + MOVING)
    open_files.open_dropped_files(screen.app, [path])
    panel = screen.app.panel
    panel.paused, panel.scene_time = True, 0.4
    finish(screen)
    wanted, opened = panel.settings(), load(path)
    assert wanted.color_offset not in (0.0, 0.5)
    press(screen, "Ctrl+S")
    press(screen, "F12")
    save(screen.app.session(), tmp_path / "session.json")
    saved, shot = load(path), load(tmp_path / "moving-001.png")
    kept = restore(tmp_path / "session.json").scenes[0]
    assert saved.animation == shot.animation == kept.animation == opened.animation
    assert saved.settings == opened.settings and (shot.time, kept.time) == (0.4, 0.4)
    command = [sys.executable, str(ROOT / "main.py"), "export", tmp_path / "moving-001.png", "-o", tmp_path / "x.png"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert np.array_equal(read_pixels(tmp_path / "x.png")[..., :3], panel.display.texture.read()[..., :3])
    screen.app.replace_panels(restore(tmp_path / "session.json"))
    assert screen.app.panel.settings() == wanted


def test_sessions_are_restored(screen, tmp_path):
    press(screen, "D")
    press(screen, "2")
    drag(screen, center(screen, 1), 30, 30)
    session = screen.app.session(clean=True)
    save(session, tmp_path / "state" / "session.json")
    assert (tmp_path / "state" / "session.json").stat().st_mode & 0o777 == 0o600  # it says what the user works on
    again = restore(tmp_path / "state" / "session.json")
    assert [s.settings for s in again.scenes] == [s.settings for s in session.scenes]
    assert (again.active, again.clean) == (1, True)
    screen.app.replace_panels(again)
    finish(screen)
    assert [panel.scene for panel in screen.app.panels] == list(again.scenes)


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "not a session"),
        ("[]", "this program reads 1"),
        ('{"rayfold_session": 2, "panels": []}', "rayfold_session is 2; this program reads 1"),
        ('{"rayfold_session": 1, "panels": []}', "1 to 16"),
        ('{"rayfold_session": 1, "panels": [{"picture": "nothing"}]}', "picture is"),
        ('{"rayfold_session": 1, "active": 5, "panels": [{"picture": "fractal"}]}', "active is 5"),
        ("[" * 100000, "not a session"),
    ],
)
def test_malformed_sessions_raise(tmp_path, text, words):
    (tmp_path / "session.json").write_text(text)
    with pytest.raises(InputError, match=words):
        restore(tmp_path / "session.json")


def test_a_change_is_saved_before_panels_draw_and_saves_take_little_time(gl, scene_files, tmp_path, monkeypatch):
    """A draw that blocks, or ends the process, costs no edit; saves of 20 ms are 0.4 s apart, longer ones 0.5 s."""
    kept, saves, cost = tmp_path / "session.json", [], 0.0
    with window([load(scene_files[0])], None, gl, (300, 300), session_path=kept) as screen:
        app = screen.app
        finish(screen)

        def blocks(*_):
            assert restore(kept).scenes[0].settings.max_iterations == 50

        def slow(session, path):
            saves.append(app.now())
            app.now.seconds += cost
            save(session, path)

        with monkeypatch.context() as patch:
            patch.setattr(main_loop, "_draw_panels", blocks)
            press(screen, "D")
        monkeypatch.setattr(app_state.session_files, "save", slow)
        for cost, least in ((0.02, 0.4), (0.3, 0.5)):
            saves.clear()
            for _ in range(100):
                panel_actions.move_view(app, lambda view: view.drag(0.01, 0.0))
                app.now.seconds += 0.05
                main_loop._save(app, app.now(), 0.0)
            apart = np.diff(saves)
            assert len(apart) > 2 and apart.min() > least and apart.max() < least + cost + 0.1, apart


def test_a_save_that_fails_is_reported_once_and_tried_again(gl, scene_files, tmp_path, monkeypatch):
    kept = tmp_path / "session.json"

    def full(*_):
        raise DiskFullError("session.json: cannot be written: No space left on device")

    with window([load(scene_files[0])], None, gl, (300, 300), session_path=kept) as screen:
        with monkeypatch.context() as patch:
            patch.setattr(app_state.session_files, "save", full)
            frames(screen, 3)
            assert screen.app.message.startswith("no session is saved: session.json: cannot be written")
            press(screen, "D")
            assert screen.app.message == "max iterations: 50" and not kept.exists()
        screen.frame()
        assert restore(kept).scenes[0].settings.max_iterations == 50


@pytest.fixture
def state(tmp_path, monkeypatch):
    """Session files in a folder of the test; no lock outlives it. The session of the first window."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(session, "_locks", [])
    return session.default_path()


def test_the_session_is_saved_while_the_window_runs(gl, scene_files, state):
    kept = session.claim_session(state)
    with window([load(scene_files[0])], None, gl, (300, 300), session_path=kept) as screen:
        frames(screen, 3)
        assert not restore(kept).edited
        press(screen, "D")
        shown = restore(kept)
        assert shown.scenes[0].settings.max_iterations == 50 and shown.edited and not shown.clean
        rotate_session(kept, kept)
        assert not kept.exists() and not kept_sessions(kept)[0].clean
        press(screen, "D")
        screen.app.restore()
        assert screen.app.panel.scene.settings.max_iterations == 50
    assert restore(kept).clean


def close_window(scene, edited=True, clean=True) -> None:
    """A window from its start to its end, as far as sessions know of it."""
    path = session.claim_session(session.default_path())
    save(session.Session.of((scene,), edited=edited, clean=clean), path)
    while session._locks:
        session._locks.pop().close()


def kept_titles(base) -> list[str]:
    return [kept.titles[0] for kept in session.kept_sessions(base)]


def test_ten_sessions_of_each_kind_are_kept(state, scene_files):
    """Windows that only look push out no edited session, and nothing but ten later crashes the copy of a crash."""
    scene = load(scene_files[0])
    close_window(replace(scene, title="crashed"), clean=False)
    for number in range(1, 13):
        close_window(replace(scene, title=f"work {number}"))
    for number in range(1, 26):
        close_window(replace(scene, title=f"look {number}"), edited=False)
    looks, works = [f"look {n}" for n in range(25, 14, -1)], [f"work {n}" for n in range(12, 2, -1)]
    assert kept_titles(state) == ["crashed", *looks, *works], "the crash, the last session and ten before it"
    assert requested_session([], 1).scenes[0].title == "crashed"
    assert requested_session([], 2).scenes[0].title == "look 25"
    assert requested_session([], 13).scenes[0].title == "work 12"
    for number in range(12):
        close_window(replace(scene, title=f"crash {number}"), clean=False)
    assert "crashed" not in kept_titles(state) and "work 12" in kept_titles(state)


def test_running_windows_have_sessions_of_their_own(state, scene_files, capsys):
    """Neither takes another's file, and none of a running window is listed."""
    scene = load(scene_files[0])
    close_window(replace(scene, title="before"))
    paths = [session.claim_session(state) for _ in range(3)]
    assert len(set(paths)) == 3 and kept_titles(state) == ["before"]
    for number, path in enumerate(paths):
        save(session.Session.of((replace(scene, title=str(number)),)), path)
    (leftover := state.with_name(".session.json.k1ll3d.json")).write_text("{")
    assert kept_titles(state) == ["before"] and list_sessions() == 0
    assert capsys.readouterr().out.split(maxsplit=3)[3] == "before  (edited)\n"
    while session._locks:
        session._locks.pop().close()
    assert sorted(kept_titles(state)) == ["0", "1", "2", "before"]
    session.claim_session(state)
    assert sorted(kept_titles(state)) == ["0", "1", "2", "before"] and not leftover.exists()


def test_damaged_sessions_are_listed_as_such_and_numbers_are_checked(state, scene_files, capsys):
    assert list_sessions() == 0 and capsys.readouterr().err.startswith("rayfold: no session is kept in ")
    close_window(load(scene_files[0]))
    state.with_name("session.20261124-110000-000000.json").write_text('{"panels": 3')
    os.utime(state.with_name("session.20261124-110000-000000.json"), (0, 0))
    assert session.kept_sessions(state)[1].describe().endswith("(damaged)")
    with pytest.raises(InputError, match="not a session"):
        requested_session([], 2)
    os.utime(state.with_name("session.20261124-110000-000000.json"), (1 << 33, 1 << 33))  # the newest
    with pytest.raises(InputError, match="not a session: .*; others are restored by `view --restore 2`$"):
        requested_session([], 1)
    with pytest.raises(InputError, match="session 3: 2 are kept in .*; `view --restore list` lists them"):
        requested_session([], 3)
    with pytest.raises(UserError, match="takes no inputs"):
        requested_session(["julia"], 1)
    for text in ("0", "-1", "julia", "2.5", "9" * 40):
        with pytest.raises(argparse.ArgumentTypeError, match="is not the number of a session or `list`"):
            session_number(text)
    assert (session_number("list"), session_number("10")) == (0, 10)


def test_a_session_whose_name_cannot_be_changed_is_not_overwritten(state, scene_files, monkeypatch):
    close_window(replace(load(scene_files[0]), title="precious"))

    def refused(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(session, "rotate_session", refused)
    assert session.claim_session(state) == state.with_stem("session-2")
    assert kept_titles(state) == ["precious"]


def test_what_was_built_is_restored_after_later_starts(state, gl, tmp_path, monkeypatch):
    """A new scene, built, closed without a question, and two starts later."""
    monkeypatch.chdir(tmp_path)
    gpu = SimpleNamespace(device=noop_device())
    with window(requested_session([], None, new=True).scenes, gpu, gl, (400, 300), 0.5,
                session_path=session.claim_session(state)) as screen:  # fmt: skip
        frames(screen, 3)
        for addition in creation.additions(screen.app.panel.scene.settings)[:6]:
            edit_actions.run_command(screen.app, addition.run)
        frames(screen, 3)
        built = screen.app.panel.scene
    while session._locks:
        session._locks.pop().close()
    for _ in range(2):
        close_window(load(KOCH), edited=False)
    number = [kept.edited for kept in session.kept_sessions(state)].index(True) + 1
    found = requested_session([], number).scenes[0]
    assert (found.title, found.settings) == (built.title, built.settings) and number == 3


def restored_window(state, gl, edit=None, clean=True):
    """A window that restores the newest session with --restore, edits it, and closes or crashes."""
    found = requested_session([], 1)
    with window(found.scenes, SimpleNamespace(device=noop_device()), gl, (400, 300), 0.5,
                session_path=session.claim_session(state)) as screen:  # fmt: skip
        app = screen.app
        app._opened_session = found
        if edit:
            app.record()
            app.panel.show(replace(app.panel.scene, title=edit))
            app.record()
        app.save(clean)
        screen.app._session_path = None
    while session._locks:
        session._locks.pop().close()


def test_a_restored_session_stays_edited_and_replaces_its_original(state, gl, tmp_path, monkeypatch, scene_files):
    monkeypatch.chdir(tmp_path)
    close_window(replace(load(scene_files[0]), title="built"), clean=False)
    (kept,) = session.kept_sessions(state)
    assert kept.edited and not kept.clean
    restored_window(state, gl)
    (kept,) = session.kept_sessions(state)
    assert kept.edited and kept.clean and kept.titles == ("built",)
    restored_window(state, gl, "built again")
    again, kept = session.kept_sessions(state)
    assert (again.titles, again.edits, kept.titles) == (("built again",), 1, ("built",))
    restored_window(state, gl, clean=False)  # a crash keeps both
    assert [each.edits for each in session.kept_sessions(state)] == [1, 1, 0]


def test_a_restored_flame_is_unsaved_until_it_is_in_its_batch_again(state, gl, tmp_path):
    """Its file is no text with which the scene is compared: it was saved work, and quitting asked nothing."""
    pack, gpu = tmp_path / "pack.flame", SimpleNamespace(device=noop_device())
    flames = (ROOT / "scenes" / "anemone.flame").read_text() * 2
    pack.write_text(f"<pack><!-- mine -->{flames}</pack>")
    scene = load(pack, flame="1")
    with window([scene], gpu, gl, (400, 300), session_path=session.claim_session(state)) as screen:
        panel = screen.app.panel
        screen.app.record()
        panel.show(replace(scene, settings=replace(scene.settings, gamma=2.5)))
        screen.app.record()
        screen.app.save()
        screen.app._session_path = None  # it is killed
    while session._locks:
        session._locks.pop().close()
    with window([], gpu, gl, (400, 300), session=requested_session([], 1)) as screen:
        app, panel = screen.app, screen.app.panel
        assert panel.has_unsaved_work and (app.session().edited, app.session().edits) == (True, 1)
        unsaved.quit(app)
        assert "has changes that are not saved" in app.overlays.question.text(app.panels.title)
        unsaved.answer(app, "save", save_files.save_scene)
        assert unsaved.poll(app) is None and app.loop.quit_requested and not panel.has_unsaved_work
    assert [load(pack, flame=n).settings.gamma for n in "01"] == [scene.settings.gamma, 2.5]
    assert "mine" in pack.read_text()


def test_a_crash_with_edits_comes_first_until_it_is_answered(state, gl, scene_files):
    scene, context = load(scene_files[0]), context_with(gl, None)
    close_window(replace(scene, title="work"), clean=False)
    close_window(replace(scene, title="newer work"), clean=False)
    for number in range(12):
        close_window(replace(scene, title=f"look {number}"), edited=False, clean=False)

    def offered(restored=None):
        found = requested_session([] if restored else [str(scene_files[0])], restored)
        app = open_app(found, context, restores=bool(restored))
        while session._locks:
            session._locks.pop().close()
        return app.overlays.recovered and app.overlays.recovered.titles[0], found.scenes[0].title

    assert kept_titles(state)[:3] == ["newer work", "work", "look 11"]
    assert [offered()[0], offered()[0]] == ["newer work"] * 2, "no answer"
    assert offered(1) == (None, "newer work") and offered()[0] == "work"
    session.answer(state, session.file_stamp(session.kept_sessions(state)[0].path))
    assert offered()[0] == "look 11" and offered(1) == (None, "look 11") and offered()[0] is None
    assert {"work", "newer work"} < set(kept_titles(state))


def test_entries_of_a_list_differ(state, scene_files):
    path = state.with_suffix(".x.json")
    save(session.Session.of((load(scene_files[0]),), edited=True, edits=3), path)
    os.utime(path, (1.8e9, 1.8e9))
    (kept,) = session.kept_sessions(state)
    stamp = datetime.fromtimestamp(1.8e9).strftime("%Y-%m-%d %H:%M:%S")
    assert kept.describe() == f"{stamp}  {kept.titles[0]}  (3 edits)"


def test_the_menu_lists_kept_sessions_and_restores_them(screen, state, scene_files):
    for title in ("old", "new"):
        close_window(replace(load(scene_files[0]), title=title))
    clicked = []

    def item(label, *more):
        clicked.append(label)
        return "old" in label

    screen.app._session_path = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(menus.imgui, "begin_menu", lambda name: name == "Sessions")
        patch.setattr(menus.imgui, "end_menu", lambda: None)
        patch.setattr(menus.imgui, "is_window_appearing", lambda: True)
        patch.setattr(menus.imgui, "menu_item_simple", item)
        patch.setattr(menus, "_action_entries", lambda *_: None)
        menus._file_entries(screen.app, [])
    assert [label.partition("##")[0].split("  ")[1:] for label in clicked] == [["new", "(edited)"], ["old", "(edited)"]]
    assert [panel.scene.title for panel in screen.app.panels] == ["old"]
