"""Errors while the window runs: in pictures, devices and edited files."""

import gc
import shutil
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import UnavailableError
from renderer.gpu import kernel_source
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.window.command import requested_session
from renderer.window.state import open_files, panel_actions
from renderer.window.state.session import restore
from tests.window.headless import draw_full_sample, draw_samples, finish, press, seconds, until, window
from tests.window.helpers import FRACTAL, HEIGHT, WIDTH


def test_an_error_of_one_picture_stays_in_its_panel(screen, monkeypatch):
    finish(screen)
    first, second = screen.app.panels

    def broken(*arguments):
        raise UnavailableError("the device went away")

    monkeypatch.setattr(first.picture, "draw", broken)
    press(screen, "D")
    finish(screen)
    assert first.error == "the device went away" and not second.error and second.draw_loop.is_finished
    before = screen.pixels()
    press(screen, "R")
    finish(screen)
    assert not first.error and first.draw_loop.is_finished
    assert not np.array_equal(screen.pixels(), before)


def test_a_lost_device_saves_the_session_and_raises(gl, gpu, tmp_path, monkeypatch, capsys):
    kept = tmp_path / "session.json"
    with window([load(ROOT / "scenes" / "mirrors.toml")], gpu, gl, (200, 160), session_path=kept) as screen:
        draw_samples(screen, 1)

        def gone(*arguments):
            raise RuntimeError("the driver does not answer")

        monkeypatch.setattr(screen.app.panel.picture, "draw", gone)
        monkeypatch.setattr(type(gpu.device), "finish", gone)
        with pytest.raises(UnavailableError, match="is lost: .*the driver does not answer.*--restore"):
            panel_actions.step_setting(screen.app, "max_depth", 1)
            for _ in range(200):
                screen.frame()
        assert restore(kept).scenes[0].settings.max_depth == 7
        monkeypatch.undo()


@pytest.fixture
def room(gpu, monkeypatch):
    """Limits device memory: `limit` is the bytes that buffers may use, `allocated` the bytes of those alive."""
    counts, buffer = SimpleNamespace(limit=1 << 40, allocated=0), type(gpu.device).buffer

    def give_back(count: int) -> None:
        counts.allocated -= count

    def limited(device, shape, dtype="f4"):
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if counts.allocated + count > counts.limit:
            raise UnavailableError(f"{device.name}: no room for {count / 2**20:.0f} MiB")
        made = buffer(device, shape, dtype)
        counts.allocated += count
        weakref.finalize(made, give_back, count)
        return made

    monkeypatch.setattr(type(gpu.device), "buffer", limited)
    return counts


def test_a_panel_that_runs_out_of_device_memory_frees_its_own(gl, gpu, room):
    """It shows the error and frees its buffers; other panels continue, and it draws once there is memory."""
    scene = load(ROOT / "scenes" / "mirrors.toml")
    with window([scene, replace(scene, title="large")], gpu, gl, (500, 300)) as screen:
        app = screen.app
        finish(screen)
        gc.collect()
        both = room.allocated
        room.limit = both - 50_000  # when the second restarts, its BVH fits, and its last buffer does not
        press(screen, "2")
        press(screen, "R")
        finish(screen)
        first, second = app.panels
        assert "no room for" in second.error and gpu.device.name in second.error
        x, y, width, _ = app.panels.shown[1].image_rect
        assert screen.pixels()[y + 40, x + width // 2].astype(int) @ (1, -1, 0) > 5, "the panel is tinted red"
        gc.collect()
        assert (
            room.allocated < 0.6 * both and second.picture is None and not first.error and first.draw_loop.is_finished
        )
        room.limit = 1 << 40
        press(screen, "1")
        press(screen, "Shift+D")
        finish(screen)
        assert not first.error and first.draw_loop.is_finished
        press(screen, "2")
        press(screen, "Shift+D")  # a change tries again
        finish(screen)
        assert (
            not second.error
            and second.draw_loop.is_finished
            and second.scene.settings.max_depth == first.scene.settings.max_depth
        )


def test_an_edited_scene_is_reloaded_and_an_error_is_shown(screen, scene_files):
    finish(screen)
    first, second = screen.app.panels
    scene_files[0].write_text(FRACTAL.format(title="first").replace("40", "77"))
    until(screen, lambda: first.scene.settings.max_iterations == 77)
    finish(screen)
    good = first.display.texture.read()
    scene_files[0].write_text("picture = nonsense")
    until(screen, lambda: first.update_error)
    assert "not a TOML file" in first.update_error and not first.error and not second.update_error
    press(screen, "D")  # what was good goes on, and can be worked on
    finish(screen)
    assert first.draw_loop.is_finished and not np.array_equal(first.display.texture.read(), good) and first.update_error
    scene_files[0].write_text(FRACTAL.format(title="first"))
    until(screen, lambda: not first.update_error)
    finish(screen)
    assert first.scene.settings.max_iterations > 77  # the edit is kept, until it is given up
    open_files.revert(screen.app)
    finish(screen)
    assert not first.error and first.draw_loop.is_finished and first.scene.settings.max_iterations == 40


def test_an_input_with_an_error_leaves_the_others_open(gl, scene_files, tmp_path, capsys):
    """`view a b` opened nothing if one of them was bad. Its panel says so, and draws once the file is mended."""
    bad = tmp_path / "bad.toml"
    bad.write_text("picture = nonsense\n")
    session = requested_session([str(scene_files[0]), str(bad)])
    assert [bool(panel.error) for panel in session.panels] == [False, True] and str(bad) in capsys.readouterr().err
    with window([], None, gl, (WIDTH, HEIGHT), session=session) as screen:
        finish(screen)
        good, broken = screen.app.panels
        assert good.draw_loop.is_finished and not good.error and not broken.has_unsaved_work
        assert "bad.toml: not a TOML file" in broken.short_error and broken.tiles is None
        bad.write_text(FRACTAL.format(title="mended"))
        until(screen, lambda: not broken.error)
        finish(screen)
        assert broken.scene.title == "mended" and broken.draw_loop.is_finished and broken.file.path == bad


def test_an_edited_shader_with_an_error_keeps_the_last_good_picture(screen, tmp_path, monkeypatch):
    """Files of shaders/ are edited in a copy; the error names its line, and the next good save is used."""
    shaders = tmp_path / "shaders"
    shutil.copytree(kernel_source.SHADERS, shaders)
    for module in (kernel_source, open_files):
        monkeypatch.setattr(module, "SHADERS", shaders)
    open_files.reload(screen.app)
    finish(screen)
    good, text = screen.app.panel.display.texture.read(), (shaders / "images/fractal.frag").read_text()
    seconds(screen, 0.6)  # it looks at the files a few times a second
    (shaders / "images/fractal.frag").write_text(text.replace("void main() {", "void main() {\n    nonsense = 1;"))
    until(screen, lambda: any(p.update_error for p in screen.app.panels))  # the others go on with the good one too
    panel = next(p for p in screen.app.panels if p.update_error)
    line = text[: text.index("void main() {")].count("\n") + 2
    assert f"images/fractal.frag:{line}" in panel.update_error and not panel.error
    press(screen, "D")
    press(screen, "Shift+D")
    finish(screen)
    assert np.array_equal(panel.display.texture.read(), good) and panel.update_error
    before = screen.pixels()
    (shaders / "images/fractal.frag").write_text(
        text.replace("void main() {", "void main() {\n    pixel = vec4(1); return;")
    )
    until(screen, lambda: not any(p.update_error for p in screen.app.panels))
    finish(screen)
    assert (panel.display.texture.read() == 255).all() and not np.array_equal(screen.pixels(), before)
    (shaders / "images/fractal.frag").write_text(text)
    until(screen, lambda: not panel.is_open)
    finish(screen)
    assert np.array_equal(panel.display.texture.read(), good)


def test_an_edited_mesh_is_reloaded(gl, gpu, tmp_path):
    mesh = tmp_path / "shape.obj"
    mesh.write_text("v -1 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (tmp_path / "one.toml").write_text(
        'picture = "raytrace"\n[settings]\nsamples = 1\nhorizon = [1, 1, 1]\nzenith = [1, 1, 1]\n'
        'meshes = [{ material = "plain", file = "shape.obj" }]\n'
    )
    with window([load(tmp_path / "one.toml")], gpu, gl, (320, 240)) as screen:
        panel = screen.app.panel
        draw_full_sample(screen)
        triangle = panel.display.texture.read()
        assert panel.measured.report["primitives"] == 1
        mesh.write_text("v nonsense\nf 1 2 3\n")
        until(screen, lambda: panel.update_error)
        assert "shape.obj" in panel.update_error and not panel.error
        mesh.write_text("v -1 0 0\nv 1 0 0\nv 0 1 0\nv 0 -1 0\nf 1 2 3\nf 1 2 4\n")
        until(screen, lambda: not panel.update_error)
        draw_full_sample(screen)
        assert panel.measured.report["primitives"] == 2 and not np.array_equal(panel.display.texture.read(), triangle)
