"""Panels in a headless window: drawing, views, tiles and budgets."""

import gc
import subprocess
import sys
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from renderer.formats.images import read_pixels
from renderer.gpu import DeviceContext
from renderer.gpu.device import Timer
from renderer.gpu.gl import Texture
from renderer.images.metrics import psnr
from renderer.paths import ROOT
from renderer.pictures import load, open_picture
from renderer.scene.cameras import DeepView
from renderer.window.app.backends import OffscreenWindow
from renderer.window.controls.toolkit import imgui
from renderer.window.panels import frame_budget, row_tiles
from renderer.window.state import open_files, panel_actions
from tests.lightfields.synthetic_planes import layered_views
from tests.window.headless import (
    center,
    drag,
    draw_full_sample,
    draw_samples,
    finish,
    frames,
    press,
    seconds,
    until,
    view,
    window,
)
from tests.window.helpers import FRACTAL, HEIGHT, MOVING, WIDTH


def test_finished_panels_draw_no_more(screen):
    finish(screen)
    for panel in screen.app.panels:
        assert (
            panel.draw_loop.is_finished
            and panel.measured.samples == 3
            and panel.budget.divisor == 1
            and not panel.error
        )
        assert panel.display.texture.size == tuple(
            screen.app.panels.shown[screen.app.panels.index(panel)].image_rect[2:]
        )
    begun = [panel.draw_loop.started for panel in screen.app.panels]
    frames(screen, 5)
    assert [panel.draw_loop.started for panel in screen.app.panels] == begun, "a finished panel draws nothing"


def test_a_picture_of_one_sample_is_drawn_at_full_resolution(screen, scene_files, tmp_path):
    path = tmp_path / "one.toml"
    path.write_text(FRACTAL.format(title="one").replace("samples = 3", "samples = 1"))
    screen.resize((1400, 800))  # large enough for a coarse picture to come first
    open_files.open_dropped_files(screen.app, [path])
    screen.app.panels.maximized.is_on = True
    screen.app.panel.restart()
    finish(screen)
    panel = screen.app.panel
    assert (
        panel.budget.divisor == 1
        and panel.measured.samples == 1
        and panel.display.texture.size == tuple(screen.app.panels.shown[0].image_rect[2:])
    )


def test_the_window_shows_what_export_writes(screen, scene_files, tmp_path):
    finish(screen)
    panel = screen.app.panels[0]
    width, height = panel.display.texture.size
    out = tmp_path / "exported.png"
    command = [sys.executable, "main.py", "export", str(scene_files[0]), "-o", str(out), "--size", f"{width}x{height}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    exported = read_pixels(out)[..., :3]
    assert np.array_equal(exported, panel.display.texture.read()[..., :3])
    x, y, width, height = screen.app.panels.shown[0].image_rect
    assert psnr(screen.pixels()[y + 8 : y + height - 8, x + 8 : x + width - 8], exported[8:-8, 8:-8]) > 45


def test_a_drag_pans_by_the_pointer_s_movement(screen):
    before, height = view(screen), screen.app.panels.shown[0].image_rect[3]
    drag(screen, center(screen, 0), 60, -30)
    moved = before.drag(60 / height, -30 / height)
    assert view(screen).center == pytest.approx(moved.center, abs=Decimal("1e-6"))
    assert view(screen, 1) == before, "the other panel stays"


def test_the_wheel_zooms_about_the_pointer(screen):
    before, (x, y, width, height) = view(screen, 1), screen.app.panels.shown[1].image_rect
    io, px, py = imgui.get_io(), x + width * 3 // 4, y + height // 4
    io.add_mouse_pos_event(px, py)
    frames(screen)
    io.add_mouse_wheel_event(0, 2)
    frames(screen)
    assert view(screen, 1) == before.scroll(2, (px - x - width / 2) / height, (py - y - height / 2) / height)
    assert screen.app.panels.active == 1


def test_views_deeper_than_float64_move(screen):
    """The picture drawn by kernels after a zoom is the one that a new window would draw."""
    deep = DeepView(("-0.74327022292338376633948080255073902", "0.13135713611148320404377035067607657"), "1e-22")
    panel_actions.set_view(screen.app, deep)
    frames(screen)
    drag(screen, center(screen, 0), 60, -30)
    imgui.get_io().add_mouse_wheel_event(0, 2)
    frames(screen)
    moved = view(screen)
    assert moved.height == deep.scroll(2).height and moved.center != deep.center
    assert all(abs(a - b) < deep.height for a, b in zip(moved.center, deep.center, strict=True))
    finish(screen)
    panel = screen.app.panels[0]
    assert not panel.error and panel.picture.report()["arithmetic"] == "perturbation, float64"


def test_a_double_click_maximizes_a_panel(screen):
    io = imgui.get_io()
    io.add_mouse_pos_event(*center(screen, 1))
    frames(screen)
    for _ in range(2):
        io.add_mouse_button_event(0, True)
        screen.frame()
        io.add_mouse_button_event(0, False)
        screen.frame()
    assert screen.app.panels.maximized and screen.app.panels.active == 1 and len(screen.app.panels.shown) == 1
    press(screen, "Escape")
    assert not screen.app.panels.maximized and len(screen.app.panels.shown) == 2


def test_windows_of_every_size_draw(screen):
    for size in ((1, 1), (37, 900), (1600, 40), (300, 200)):
        screen.resize(size)
        frames(screen, 3)
        assert all(w >= 1 and h >= 1 for _, _, (_, _, w, h) in screen.app.panels.shown)
        assert not any(panel.error for panel in screen.app.panels)


def test_at_most_16_panels_and_at_least_one(screen):
    while len(screen.app.panels) < 16:
        press(screen, "Ctrl+D")
    press(screen, "Ctrl+D")
    assert len(screen.app.panels) == 16 and "16" in screen.app.message
    for _ in range(20):
        press(screen, "Ctrl+W")
    assert len(screen.app.panels) == 1 and not screen.app.panel.error


@pytest.mark.slow
def test_thousands_of_frames_leak_nothing(screen):
    """Neither memory (where software GL keeps its textures) nor the number of objects grows over settings and sizes."""

    def resources() -> tuple[float, int, int]:
        """MiB resident, textures alive or waiting to be freed, Python's objects."""
        gc.collect()
        objects = gc.get_objects()
        textures = sum(isinstance(thing, Texture) for thing in objects) + len(screen.gl.ctx.objects)
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024, textures, len(objects)

    for count in range(5_000):
        if count % 50 == 0:
            panel_actions.step_setting(screen.app, "color_offset", 1)
        if count % 400 == 0:
            screen.app.panel.restart()
            screen.resize((WIDTH, HEIGHT) if count % 800 else (300, 200))
        if count == 1500:
            before = resources()
        screen.frame()
    after = resources()
    assert after[0] - before[0] < 40 and after[1] - before[1] < 12 and after[2] - before[2] < 5000, (before, after)


def test_a_compute_picture_does_not_block_the_window(gl, gpu, monkeypatch):
    """Frames are drawn and keys handled while a device is still busy."""
    with window([load(ROOT / "scenes" / "mirrors.toml")], gpu, gl, (640, 400)) as screen:
        panel = screen.app.panel
        draw_samples(screen, 3)
        assert not panel.error and panel.measured.transfer and panel.measured.report["active rays"]
        assert panel.measured.device == gpu.device.name
        works, seconds = threading.Event(), Timer.seconds

        def slow(timer):
            assert works.wait(60)
            return seconds(timer)

        with monkeypatch.context() as slowed:
            slowed.setattr(Timer, "seconds", slow)
            slowed.setattr(Timer, "is_done", property(lambda timer: works.is_set()))
            panel_actions.step_setting(screen.app, "max_depth", -1)
            for _ in range(5):  # frames that do not wait for the device
                screen.app.now.seconds += 0.1
                OffscreenWindow.frame(screen)
            assert panel.draw_loop.busy
            imgui.get_io().add_key_event(imgui.Key.f1, True)
            for _ in range(2):
                OffscreenWindow.frame(screen)
            assert screen.app.overlays.help and panel.draw_loop.busy
            works.set()
            panel.draw_loop.wait_idle()
        draw_samples(screen, 1)
        assert not panel.error


def test_the_right_button_flies(gl, gpu):
    """W A S D Q E move the camera along its axes, the mouse turns it in place, and letters run no action."""
    with window([load(ROOT / "scenes" / "mirrors.toml")], gpu, gl, (300, 220)) as screen:
        frames(screen)
        panel, io = screen.app.panel, imgui.get_io()
        for key, axis, sign in (("w", 2, 1), ("a", 0, -1), ("e", 1, 1)):
            start = panel.settings().view
            io.add_mouse_pos_event(*center(screen, 0))
            frames(screen)
            io.add_mouse_button_event(1, True)
            io.add_key_event(getattr(imgui.Key, key), True)
            seconds(screen, 0.3)
            io.add_key_event(getattr(imgui.Key, key), False)
            io.add_mouse_button_event(1, False)
            frames(screen)
            way = np.subtract(panel.settings().view.position, start.position) @ start.axes().T
            assert sign * way[axis] > 0.1 and np.abs(np.delete(way, axis)).max() < 1e-6
            assert np.allclose(np.subtract(panel.settings().view.target, start.target) @ start.axes().T, way)
        start = panel.settings().view
        drag(screen, center(screen, 0), 40, 0, button=1)
        turned = panel.settings().view
        assert turned.position == start.position and turned.axes()[2] @ start.axes()[0] > 0.01, "to the right"
        assert (
            panel.scene.tone == panel.original.tone
            and panel.scene.settings.max_depth == panel.original.settings.max_depth
        )


@pytest.fixture
def in_tiles(monkeypatch):
    """Makes the budget of a tile so short that each picture that can be tiled is."""
    for name in ("GPU_TILE_SECONDS", "SOFTWARE_GL_TILE_SECONDS", "CPU_TILE_SECONDS"):
        monkeypatch.setattr(frame_budget, name, 1e-8)
    monkeypatch.setattr(row_tiles, "MAX_TILES", 9)


@pytest.mark.parametrize("name", ["mirrors", "mandelbrot", "cornell"])
def test_tiles_give_the_bits_of_the_whole_picture(gl, gpu, in_tiles, name):
    scene = load(ROOT / "scenes" / f"{name}.toml")
    scene = replace(scene, settings=replace(scene.settings, samples=3))
    with window([scene], gpu, gl, (330, 260)) as screen:
        app = screen.app
        until(screen, lambda: app.panel.error or app.panel.budget.divisor == 1 and app.panel.draw_loop.is_finished)
        assert not app.panel.error
        assert app.panel.tiles.count > 3
        size, whole = app.panel.display.texture.size, open_picture(scene, app.gpu)
        for _ in range(3):
            frame = whole.draw(scene.settings, size, 0.0)
        assert np.array_equal(app.panel.display.frame.read(), frame.read())
        if name != "mandelbrot":
            assert app.panel.measured.report["active rays"] == whole.report()["active rays"]


MADE = {"laplacian": {"gain": 5.0}, "reduction": {"operation": "max"}}


@pytest.mark.parametrize("name", MADE)
def test_a_postprocessed_picture_draws_its_source_in_tiles(gl, gpu, in_tiles, name):
    """The frame equals the whole picture's; a partly drawn sample is not displayed."""
    scene = load(ROOT / "scenes" / f"{name}.toml")
    with window([scene], gpu, gl, (330, 260)) as screen:
        panel = screen.app.panel
        until(screen, lambda: panel.error or panel.measured.samples >= 1 and panel.tiles.count > 1)
        assert not panel.error
        panel.paused = True
        until(screen, lambda: panel.tiles.done == 0)
        (settings, time, size), whole = panel.drawn, open_picture(scene, screen.app.gpu)
        for _ in range(panel.measured.samples):
            frame = whole.draw(settings, size, time)
        assert np.array_equal(panel.display.frame.read(), frame.read())
        shown = panel.display.texture.read()
        screen.app.panel.show(replace(panel.scene, settings=replace(settings, **MADE[name])))
        frames(screen, 2)
        assert 0 < panel.tiles.done < panel.tiles.count and np.array_equal(panel.display.texture.read(), shown)


def test_a_change_interrupts_a_picture_between_two_tiles(screen, in_tiles):
    press(screen, "Ctrl+W")
    panel = screen.app.panel
    finish(screen)
    screen.app.panel.show(replace(panel.scene, settings=replace(panel.scene.settings, color_offset=0.3)))
    for _ in range(100):
        screen.frame()
        if panel.tiles.done > 1:
            break
    assert panel.tiles.count > 3 and panel.tiles.done > 1
    old = panel.display.frame.read()
    screen.app.panel.show(replace(panel.scene, settings=replace(panel.scene.settings, color_offset=0.7)))
    screen.frame()
    assert panel.drawn[0].color_offset == 0.7 and panel.tiles.done == 1 and panel.measured.samples == 0
    assert np.array_equal(panel.display.frame.read()[-20:], old[-20:]), (
        "the previous picture stays until its tile is drawn"
    )
    finish(screen)
    assert panel.measured.samples == 3 and not np.array_equal(panel.display.frame.read()[-20:], old[-20:])


def test_a_frame_of_an_animation_is_finished_before_the_next_begins(screen, scene_files, in_tiles, tmp_path):
    """All tiles of a frame have its scene time."""
    path = tmp_path / "moving.toml"
    path.write_text(FRACTAL.format(title="moving").replace("samples = 3", "samples = 1") + MOVING)
    press(screen, "Ctrl+W")
    open_files.open_dropped_files(screen.app, [path])
    panel, seen = screen.app.panel, 0

    def looked() -> bool:
        nonlocal seen
        assert not panel.error
        if panel.tiles is not None and panel.tiles.count > 1 and panel.measured.samples == 1 and panel.tiles.done == 0:
            settings, time, size = panel.drawn
            whole = open_picture(panel.scene, DeviceContext(gl=screen.gl)).draw(settings, size, time)
            assert np.array_equal(panel.display.frame.read(), whole.read())
            seen += 1
        return seen == 3

    until(screen, looked)


def test_a_click_focuses_a_light_field_and_a_drag_does_not(gl, gpu, tmp_path, rng):
    views, _ = layered_views(rng, 5, 5, 64, back=-1.0, front=1.0, bars=0.5, period=40)
    np.save(tmp_path / "bars.npy", views)
    with window([load(tmp_path / "bars.npy")], gpu, gl, (640, 400)) as screen:
        app = screen.app
        draw_samples(screen, 1)
        x, y, width, height = app.panels.shown[0].image_rect
        for column, disparity in ((10, 1.0), (30, -1.0)):  # on a bar, and between bars
            side = min(width, height)
            across = x + width / 2 + ((column + 0.5) / 64 - 0.5) * side
            drag(screen, (across, y + height / 2), 0, 0)
            assert view(screen).focus_point == pytest.approx(((across - x - width / 2) / height, 0, 0, 0), abs=0.01)
            frames(screen, 4)
            draw_samples(screen, 1)
            assert app.panel.picture.report()["focus_disparity"] == pytest.approx(disparity, abs=0.15)
        focused = view(screen)
        drag(screen, center(screen, 0), height * 0.2, height * -0.1)
        moved = view(screen)
        assert moved.focus_point == focused.focus_point
        assert (moved.u, moved.v) == pytest.approx((-0.4, 0.2), abs=0.02)
        imgui.get_io().add_mouse_wheel_event(0, -3)
        frames(screen, 3)
        assert view(screen).aperture < moved.aperture


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["megakernel", "regenerate"])
def test_active_rays_by_depth_are_reported(gl, gpu, schedule):
    scene = load(ROOT / "scenes" / "mirrors.toml")
    scene = replace(scene, settings=replace(scene.settings, schedule=schedule, samples=1, max_depth=4))
    with window([scene], gpu, gl, (640, 400)) as screen:
        draw_full_sample(screen)
        live, (_, _, width, height) = (
            screen.app.panel.measured.report["active rays"],
            screen.app.panels.shown[0].image_rect,
        )
        assert len(live) == 4 and live[0] == width * height and live == sorted(live, reverse=True) and live[3] > 0
