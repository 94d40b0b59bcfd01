"""Toys with feedback in a window: no coarse frame stays in a buffer, edits keep frame and buffers, pause is at once."""

from dataclasses import replace

import numpy as np
import pytest

import renderer
from renderer.errors import InputError
from renderer.pictures import load, toy
from renderer.system import drafts
from renderer.system.progress import Progress
from renderer.toys import passes
from renderer.toys.program import with_buffer, with_values
from renderer.window.panels import frame_budget
from renderer.window.state import open_files
from renderer.window.state.picture_export import options_for
from tests.window.headless import finish, frames, press, seconds, window

# Red counts frames, green remembers the narrowest picture drawn, blue the greatest value of the slider.
COUNT = """// Buffer A
// iChannel0: Buffer A
uniform float size = 0.25;  // 0 to 1
void mainImage(out vec4 c, in vec2 p) {
    vec4 old = texelFetch(iChannel0, ivec2(p), 0);
    c = vec4(old.x + 1.0, max(old.y, 16.0 / iResolution.x), max(old.z, size), 1);
}
// Image
// iChannel0: Buffer A
void mainImage(out vec4 c, in vec2 p) { c = texelFetch(iChannel0, ivec2(p), 0) / vec4(256, 1, 1, 1); }
"""


@pytest.fixture
def screen(gl, tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "_try_program", lambda settings: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "count.glsl").write_text(COUNT)
    with window([load(tmp_path / "count.glsl")], None, gl, (420, 260)) as screen:
        yield screen
    drafts.texts.clear()


def buffer(panel) -> np.ndarray:
    """The first texel of Buffer A."""
    view = panel.picture.algorithm("passes", panel.scene.settings, panel.draw_loop.size)
    return view.step(0).values[0, 0]


def test_no_coarse_frame_stays_while_a_slider_moves(screen, monkeypatch):
    panel = screen.app.panel
    seconds(screen, 0.4)
    width, before = panel.draw_loop.size[0], buffer(panel)
    assert before[1] == np.float32(16 / width), "the coarse first frames are gone"
    monkeypatch.setattr(frame_budget, "INTERACTIVE_SECONDS", 1e-9)  # every other picture is drawn coarse then
    for value in (0.5, 0.75):
        settings = replace(panel.scene.settings, size=value)
        panel.show(replace(panel.scene, settings=settings), moved=True)
        frames(screen, 5)
        assert panel.draw_loop.size[0] == width
    red, narrowest, size = buffer(panel)
    assert red > before[0] and narrowest == before[1] and size == 0.75


def test_an_edit_goes_on_with_frame_and_buffers(screen, tmp_path):
    panel = screen.app.panel
    seconds(screen, 0.4)
    before, frame = buffer(panel), panel.picture.report()["frame"]
    for text in (COUNT.replace("// Image", "\n// Image"), COUNT.replace("Buffer A", "Buffer B")):
        drafts.texts[panel.original.path] = text
        open_files.reload(screen.app, {panel.original.path}, shaders=False)
        frames(screen, 4)
        now, frame = panel.picture.report()["frame"], frame
        assert frame < now < frame + 12 and not panel.update_error
        if "Buffer B" not in text:
            assert before[0] < buffer(panel)[0] == now + 1 and buffer(panel)[1] == before[1]
    assert buffer(panel)[0] < 6, "another buffer begins at zero"
    drafts.texts[panel.original.path] = COUNT.replace("old.x", "nothing.x")
    open_files.reload(screen.app, {panel.original.path}, shaders=False)
    frames(screen, 4)
    assert panel.update_error and panel.picture.report()["frame"] > now, "the last good picture goes on"


def test_time_waits_for_slow_frames_and_pause_stops_at_once(screen, monkeypatch):
    panel = screen.app.panel
    seconds(screen, 0.4)
    monkeypatch.setattr(passes, "WINDOW_FRAMES", 1)
    for _ in range(20):  # 4 turns of the main loop a second
        screen.app.now.seconds += 0.25
        frames(screen, 1)
    frame, time = panel.picture.report()["frame"], panel.scene_time
    assert 40 <= frame <= 70 and time < frame / 60 + 0.3
    press(screen, "Space")
    frames(screen, 3)
    frame = panel.picture.report()["frame"]
    seconds(screen, 0.4)
    assert panel.paused and panel.picture.report()["frame"] == frame == int(panel.scene_time * 60 + 1e-6)


def test_an_export_is_the_frame_that_is_shown(screen, tmp_path):
    panel = screen.app.panel
    seconds(screen, 0.2)
    press(screen, "Space")
    finish(screen)
    options = options_for(panel, is_film=False)
    assert (options.width, options.height) == panel.draw_loop.size
    shown = panel.display.texture.read()[..., :3]
    done: list[float] = []
    again = renderer.render(panel.document.scene, size=panel.draw_loop.size, time=panel.scene_time)
    assert np.array_equal(again.displayed()[..., :3], shown)
    progress = Progress(1, "count")
    progress.advance = lambda steps=1: done.append(steps)
    panel.picture.progress = progress
    panel.picture._is_live = False
    panel.picture.draw(replace(panel.scene.settings, size=0.5), (8, 8), 10 / 60)
    assert progress.parts == 11 and len(done) == 10, "an export says how many frames it has drawn"


def test_the_sliders_of_a_shader_are_saved_into_its_file(screen, tmp_path):
    app, panel, path = screen.app, screen.app.panel, tmp_path / "count.glsl"
    frames(screen, 4)
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, size=0.5)))
    frames(screen)
    assert panel.has_unsaved_work
    press(screen, "Ctrl+S")
    assert app.dialog is None and path.read_text() == COUNT.replace("size = 0.25", "size = 0.5")
    frames(screen, 4)
    assert not panel.has_unsaved_work and panel.scene.settings.size == 0.5 == load(path).settings.size
    panel.show(replace(panel.scene, settings=replace(panel.scene.settings, rate=30.0)))
    press(screen, "Ctrl+S")
    assert app.dialog.name == "count.toml" and "a shader's file holds its code" in app.message


def test_values_are_written_where_uniforms_are_declared():
    text = "uniform float a;  // 0 to 1\n"
    text += "uniform vec3 tint = vec3(1.0);  // color\nuniform bool on;\nuniform int n = 2, m;\n"
    written = with_values(text, {"a": 0.25, "tint": (1.0, 0.5, 0.25), "on": True})
    assert written.splitlines()[:3] == [
        "uniform float a = 0.25;  // 0 to 1", "uniform vec3 tint = vec3(1.0, 0.5, 0.25);  // color",
        "uniform bool on = true;",
    ]  # fmt: skip
    assert with_values(text, {"n": 3}) is None and with_values(text, {"gone": 1.0}) is None


def test_a_button_adds_buffers(screen, tmp_path):
    image = "void mainImage(out vec4 c, in vec2 p) { c = vec4(1); }\n"
    text, path = image, tmp_path / "grown.glsl"
    for count, name in enumerate("ABCD", 1):
        text = with_buffer(text)
        path.write_text(text)
        program = toy.program_of(load(path).settings)
        assert program.buffers == [f"Buffer {each}" for each in "ABCD"[:count]] and program.has_feedback
        assert program.channels[f"Buffer {name}"][0].source == f"Buffer {name}"
        assert program.channels["Image"][0].source == "Buffer A" and text.endswith(image)
    with pytest.raises(InputError, match="at most the buffers A, B, C and D"):
        with_buffer(text)
    assert with_buffer(image + "// Buffer A\n" + image).count("mainImage") == 3
