"""The last picture of each file is the preview of its next start: small, bounded, private, and never a failure."""

import os
import stat
from concurrent.futures import Future
from dataclasses import replace

import numpy as np
import pytest

from renderer.formats.images import read_pixels
from renderer.gpu import compilation
from renderer.pictures import load
from renderer.window.panels import last_pictures, panel_view
from tests.window.headless import finish, frames, window
from tests.window.helpers import FRACTAL


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RAYFOLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pictures"


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "first.toml"
    path.write_text(FRACTAL.format(title="first"))
    return load(path)


def test_a_closed_windows_picture_is_the_next_ones_preview(gl, folder, scene, tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(panel_view.theme, "caption", lambda draw, font, size, x, y, text, wrap: said.append(text))

    def open_window(action=lambda screen: None):
        with window([scene], None, gl, (700, 320), session_path=tmp_path / "session.json") as screen:
            preview = screen.app.panel.preview
            frames(screen, 1)
            finish(screen)
            action(screen)
            drawn = screen.app.panel.display.texture.read()
        screen.app._completion_thread.shutdown(wait=True)
        return preview, drawn

    preview, drawn = open_window()
    assert preview is None
    [file] = folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and max(read_pixels(file).shape) <= last_pictures.MAX_SIDE
    (texture, name), _ = open_window()
    assert name == said[-1] == "last picture, until it is drawn"
    assert np.abs(texture.read()[..., :3].astype(int) - drawn[..., :3]).mean() < 4, "the picture itself, but for JPEG"
    os.utime(scene.path, ns=(file.stat().st_mtime_ns + 10**9,) * 2)
    (_, name), _ = open_window(lambda screen: screen.app.panel.show(replace(scene, title="unsaved")))
    assert name.startswith("last picture from 20") and name.endswith("before its file was changed")
    file.write_bytes(b"damaged")
    assert open_window(lambda screen: screen.app.panel.show(replace(scene, title="unsaved")))[0] is None
    assert file.read_bytes() == b"damaged", "a picture of unsaved work is not the file's"


def test_kept_pictures_are_bounded_and_never_fail(folder, scene, tmp_path, monkeypatch):
    monkeypatch.setattr(last_pictures, "MAX_PICTURES", 3)
    pixels = np.zeros((4, 2000, 4), "u1")
    for number in range(5):
        last_pictures.keep(folder, replace(scene, part=str(number)), pixels)
    assert len(list(folder.iterdir())) == 3
    assert last_pictures.find(folder, replace(scene, part="4"))[0].shape == (2, 667, 4)
    assert last_pictures.find(folder, scene) is None
    monkeypatch.setattr(last_pictures, "MAX_BYTES", 1)
    last_pictures.keep(folder, scene, pixels)
    assert not list(folder.iterdir())
    last_pictures.keep(scene.path / "below a file", scene, pixels)


def test_a_picture_that_is_drawn_for_seconds_is_kept_before_the_window_closes(gl, folder, scene, tmp_path):
    scene.path.write_text(scene.path.read_text().replace("samples = 3", "samples = 2000"))
    scene = load(scene.path)
    with window([scene], None, gl, (300, 200), session_path=tmp_path / "session.json") as screen:
        frames(screen, 30)
        assert not folder.exists()
        screen.app.now.seconds += last_pictures.MAX_SIDE
        frames(screen, 30)
        screen.app._completion_thread.submit(int).result()
        assert len(list(folder.iterdir())) == 1


def test_the_preview_stays_over_one_coarse_sample_while_the_rest_compiles(gl, folder, scene, tmp_path, monkeypatch):
    said, compiled = [], Future()
    monkeypatch.setattr(panel_view.theme, "caption", lambda draw, font, size, x, y, text, wrap: said.append(text))
    monkeypatch.setattr("tests.window.headless.settle", lambda app: None)
    last_pictures.keep(folder, scene, np.full((50, 50, 4), 255, "u1"))
    with window([scene], None, gl, (300, 200), session_path=tmp_path / "session.json") as screen:
        panel = screen.app.panel
        finish(screen)
        said.clear()
        panel.measured.samples, panel.budget.divisor = 1, 2
        panel.work.start(lambda: compilation.result(compiled, "a kernel"))
        frames(screen, 1)
        assert said == ["last picture, until it is drawn"]
        compiled.set_result(())
        panel.measured.samples = 2
        frames(screen, 2)
        assert len(said) == 1
