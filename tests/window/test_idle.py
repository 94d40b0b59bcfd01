"""Presses, small movements and idling of a headless window, by events."""

import os

import numpy as np
import pytest

from renderer.lightfields.aperture import VirtualCamera
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.pictures.lightfield import Settings
from renderer.window.app.idle import COMPUTE_WAIT, IDLE_WAIT, REPORTED_WAIT, SETTLE_SECONDS, SLOW_WAIT
from renderer.window.controls.toolkit import imgui
from renderer.window.panels.measurements import report_rows
from renderer.window.state import main_loop, panel_actions
from renderer.window.state.app_state import AppState
from renderer.window.state.file_watcher import FileWatcher
from renderer.window.state.layout import rectangles
from renderer.window.state.session import Session
from tests.window.headless import Clock, center, finish, frames, hold, point, press, view, window


def test_the_way_to_a_press_and_a_small_movement_move_no_view(screen):
    finish(screen)
    x, y = center(screen, 0)
    before = view(screen)
    io = imgui.get_io()
    point(screen, x - 80, y)
    io.add_mouse_pos_event(x, y)  # reaches Dear ImGui in the frame of the press
    hold(screen, 0, True)
    assert view(screen) == before
    point(screen, x + 2, y + 1)
    hold(screen, 0, False)
    assert view(screen) == before
    hold(screen, 0, True)
    point(screen, x + 7, y)
    point(screen, x + 22, y)
    moved = view(screen)
    hold(screen, 0, False)
    height = screen.app.panels.shown[0].image_rect[3]
    wanted = float(before.center[0]) - 20 / height * float(
        before.height
    )  # all of the way since the press, from (x + 2, y + 1)
    assert float(moved.center[0]) == pytest.approx(wanted)


def test_a_jittery_click_is_a_click(screen):
    finish(screen)
    app = screen.app
    x, y = center(screen, 0)
    app.input.picking.is_on = True
    point(screen, x, y)
    hold(screen, 0, True)
    point(screen, x + 2, y - 2)
    hold(screen, 0, False)
    assert not app.input.picking and "nothing to focus on" in app.current_message(app.now())


def test_a_click_into_a_light_field_focuses_on_what_was_clicked():
    settings = Settings("views", VirtualCamera(), disparity=2.3)
    clicked = settings.with_view(settings.view.click(0.1, 0.2))
    assert clicked.disparity == 0.0 and clicked.view.focus_point == (0.1, 0.2, 0.0, 0.0)
    dragged = clicked.with_view(clicked.view.drag(0.1, 0.0))
    assert dragged.disparity == 0.0 and dragged.view.u != 0.0
    assert settings.with_view(settings.view.drag(0.1, 0.0)).disparity == 2.3


def test_an_idle_window_needs_no_frame(screen):
    finish(screen)
    idle, app = screen.ui.idle, screen.app
    while main_loop.activity(app, app.now()) != "idle":  # a message is shown
        screen.frame()
    assert idle.needs_frame()
    app.now.seconds += SETTLE_SECONDS + 0.1
    assert not idle.needs_frame() and not idle.needs_frame()
    assert idle.needs_frame(True)
    app.now.seconds += SETTLE_SECONDS + 0.1
    assert not idle.needs_frame()
    imgui.get_io().add_mouse_pos_event(5.0, 5.0)
    assert idle.needs_frame()
    frames(screen)
    app.now.seconds += SETTLE_SECONDS + 0.1
    assert not idle.needs_frame()
    app.panel.comparison.mode = "flip"
    assert idle.needs_frame()


def test_how_long_a_window_waits_for_an_event(screen, monkeypatch):
    finish(screen)
    idle, app = screen.ui.idle, screen.app
    app.now.seconds += 6.0  # messages end
    frames(screen)
    assert idle.wait() == IDLE_WAIT, "until what is displayed has settled"
    app.now.seconds += SETTLE_SECONDS + 0.1
    assert not idle.needs_frame() and idle.wait() == IDLE_WAIT, "nobody reports edited files"
    monkeypatch.setattr(FileWatcher, "is_notified", True)
    assert idle.wait() == REPORTED_WAIT
    app.panel.comparison.mode = "flip"
    assert idle.wait() == SLOW_WAIT
    app.panel.reopen()
    assert idle.wait() == 0
    assert COMPUTE_WAIT < SLOW_WAIT < REPORTED_WAIT, "the more can happen meanwhile, the shorter"


def test_an_idle_window_sees_an_edited_file(screen, scene_files):
    finish(screen)
    idle, app = screen.ui.idle, screen.app
    app.now.seconds += 6.0  # messages end
    frames(screen)
    app.now.seconds += SETTLE_SECONDS + 0.1
    assert not idle.needs_frame()
    scene_files[0].write_text(scene_files[0].read_text().replace("= 40", "= 41"))
    os.utime(scene_files[0], (2e9, 2e9))
    app.now.seconds += 0.3
    assert idle.needs_frame() and app.panels[0].scene.settings.max_iterations == 41


def test_a_saved_program_is_drawn_again_and_its_mistake_is_shown(gl, gpu, tmp_path):
    path = tmp_path / "flat.cb"
    path.write_text("float3 main(int x, int y) { return float3(1, 0, 0); }")
    with window([load(path)], gpu, gl, (400, 300)) as screen:
        finish(screen)
        panel = screen.app.panel
        assert np.abs(panel.display.frame.read()[0, 0, :3] - (1, 0, 0)).max() < 1e-6
        for stamp, text, color, wrong in (
            (2_000_000_000, "float3 main(int x, int y) { return float3(0, 1, 0); }", (0, 1, 0), ""),
            (2_000_000_001, "float3 main(int x, int y) { return float3(0, z, 0); }", (0, 1, 0), "z"),
            (2_000_000_002, "float3 main(int x, int y) { return float3(0, 0, 1); }", (0, 0, 1), ""),
        ):
            path.write_text(text)
            os.utime(path, (stamp, stamp))
            screen.app.now.seconds += 0.6
            frames(screen)
            finish(screen)
            assert np.abs(panel.display.frame.read()[0, 0, :3] - color).max() < 1e-6
            assert bool(panel.update_error) == bool(wrong) and wrong in panel.update_error


def test_empty_values_of_a_report_are_not_listed():
    empty, shown = ([], (), {}, "", None), (0, 0.0, False, [0], "a")
    assert not any(report_rows({"name": value}) for value in empty)
    assert all(report_rows({"name": value}) for value in shown)


def test_one_key_opens_a_panel_for_each_way_of_treating_ended_rays(gl, screen):
    press(screen, "Ctrl+B")
    assert "no schedules" in screen.app.message and len(screen.app.panels) == 2
    app = AppState(Session.of((load(ROOT / "scenes" / "cornell.toml"),)), screen.app.gpu, clock=Clock())
    panel_actions.compare_schedules(app)  # draws nothing yet
    found = [(p.scene.settings.schedule, p.scene.settings.stencil) for p in app.panels[1:]]
    wavefronts = [("wavefront", stencil) for stencil in ("bits", "flags", "compact", "off")]
    assert found == [*wavefronts, ("megakernel", "bits"), ("regenerate", "bits")]
    assert all(panel.free_run for panel in app.panels[1:]) and not app.panels[0].free_run
    places = rectangles(app.panels.layout, (0, 0, 1208, 908), 4)
    assert len({places[index][2:] for index in range(1, 7)}) == 1 and len(places) == 7  # costs of one size
    app.close()
