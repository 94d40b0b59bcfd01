"""The timeline below the panels: play, scrub, and the key frames of the active panel's scene."""

from collections.abc import Callable
from dataclasses import replace

from renderer.scene.animation import (
    DEFAULT_DURATION,
    INTERPOLATIONS,
    Animation,
    interpolation_at,
    keyframe_times,
    with_interpolation,
)
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.state.app_state import AppState
from renderer.window.timeline import actions
from renderer.window.timeline.tracks import Tracks

HEIGHT = 44  # at scale 1
KEYFRAME_SIZE = 5.0  # half the width of a key frame's diamond, at scale 1


def height(app: AppState, tracks: Tracks, scale: float) -> float:
    """The height of the timeline."""
    return scale * HEIGHT + (tracks.height(scale) if app.tracks else 0.0)


def draw(app: AppState, fonts: theme.Fonts, scale: float, tracks: Tracks) -> None:
    """Draws the timeline in the current Dear ImGui window."""
    panel = app.panel
    animation = panel.scene.animation or Animation(DEFAULT_DURATION)
    imgui.align_text_to_frame_padding()
    _button("Resume" if panel.paused else "Pause", "Space", app.toggle_pause)
    tooltip = "Ctrl+K: a key frame of the settings that have some, or were changed, or of the view"
    _button("Key", tooltip, lambda: actions.add_keyframe(app))
    times = keyframe_times(panel.scene.animation)
    here = next((time for time in times if actions.is_at_time(app, time)), None)
    imgui.begin_disabled(here is None)
    _button("Delete", "Ctrl+Shift+K: delete this key frame", lambda: actions.delete_keyframe_here(app))
    imgui.end_disabled()
    if imgui.get_content_region_avail().x > 400 * scale:
        _button("Tracks", "Ctrl+Shift+T: a row for each setting with key frames", lambda: app.toggle("tracks"))
        film = app.film
        label = f"Film {film.fraction:.0%}" if film is not None and film.is_running else "Film..."
        _button(f"{label}###film", "Ctrl+Shift+E: export a film", lambda: app.toggle("film_dialog"))
    imgui.begin_disabled(here is None)
    wide = imgui.get_content_region_avail().x > 560 * scale
    if wide:
        _interpolation(app, animation, here, scale)
    imgui.end_disabled()
    _track(app, fonts, scale, animation.duration, times, imgui.get_content_region_avail().x - wide * 210 * scale)
    if wide:
        _duration(app, animation, times, scale)
    if app.tracks:
        tracks.draw(scale)


def _interpolation(app: AppState, animation: Animation, here: float | None, scale: float) -> None:
    imgui.set_next_item_width(90 * scale)
    current = interpolation_at(animation, here) if here is not None else INTERPOLATIONS[0]
    changed, index = imgui.combo("##interpolation", INTERPOLATIONS.index(current), list(INTERPOLATIONS))
    imgui.set_item_tooltip("interpolation from this key frame to the next")
    if changed and here is not None:
        animation = with_interpolation(animation, here, INTERPOLATIONS[index])
        app.panel.show(replace(app.panel.scene, animation=animation))
    imgui.same_line()


def _duration(app: AppState, animation: Animation, times: list[float], scale: float) -> None:
    scene = app.panel.scene
    imgui.same_line()
    imgui.set_next_item_width(80 * scale)
    changed, seconds = imgui.input_double("s", animation.duration, 0.0, 0.0, "%.2f")
    imgui.set_item_tooltip("duration of the animation")
    if changed and seconds == seconds and max([1e-2, *times]) <= seconds < 1e6:
        app.panel.show(replace(scene, animation=replace(animation, duration=seconds)))
    imgui.same_line()
    changed, loop = imgui.checkbox("loop", animation.loop)
    if changed and animation.duration > 0:
        app.panel.show(replace(scene, animation=replace(animation, loop=loop)))


def _button(label: str, tooltip: str, run: Callable[[], None]) -> None:
    if imgui.button(label):
        run()
    imgui.set_item_tooltip(tooltip)
    imgui.same_line()


def _track(app: AppState, fonts: theme.Fonts, scale: float, duration: float, times: list[float], width: float) -> None:
    """The track: a press or drag scrubs, diamonds mark key frames, a line with its label marks the scene time."""
    width, height = max(width, 20.0), imgui.get_frame_height()
    corner, draw_list = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()
    duration = max(duration, 1e-2)
    imgui.invisible_button("time", (width, height))
    if imgui.is_item_active():
        time = min(max((imgui.get_io().mouse_pos.x - corner.x) / width, 0.0), 1.0) * duration
        near = [key for key in times if abs(key - time) * width / duration < KEYFRAME_SIZE * scale]
        frame = time if imgui.get_io().key_alt else round(time * actions.FRAMES_PER_SECOND) / actions.FRAMES_PER_SECOND
        actions.scrub(app, near[0] if near else min(frame, duration))
    middle = corner.y + height / 2
    low, high = (corner.x, middle - 2 * scale), (corner.x + width, middle + 2 * scale)
    draw_list.add_rect_filled(low, high, theme.color_u32(theme.COLORS["frame_bg_active"]), 2 * scale)
    for time in times:
        x, size = corner.x + min(time / duration, 1.0) * width, KEYFRAME_SIZE * scale
        color = theme.ACCENT if actions.is_at_time(app, time) else theme.TEXT
        top, bottom = (x, middle - size), (x, middle + size)
        left, right = (x - size, middle), (x + size, middle)
        draw_list.add_quad_filled(top, right, bottom, left, theme.color_u32(color))
    x = corner.x + min(app.panel.scene_time / duration, 1.0) * width
    line = (x, corner.y), (x, corner.y + height)
    draw_list.add_line(line[0], line[1], theme.color_u32(theme.ACCENT), 2 * scale)
    label = (x + 5 * scale if x + 60 * scale < corner.x + width else x - 40 * scale, corner.y - 2 * scale)
    size, color_u32 = theme.FONT_SIZE * scale * 0.87, theme.color_u32(theme.TEXT)
    draw_list.add_text(fonts.numbers, size, label, color_u32, f"{app.panel.scene_time:.2f}")
