"""The timeline below the panels: play, scrub, and the key frames of the active panel's scene.

MainWindow draws it while actions.shows_timeline() is true.
"""

from dataclasses import replace

from renderer.scene.animation import DEFAULT_DURATION, INTERPOLATIONS, Animation, ease_keys, keyframe_times, keys_at
from renderer.window.controls import imgui, theme
from renderer.window.controls.shortcuts import Action, action_buttons
from renderer.window.state import AppState
from renderer.window.timeline import actions
from renderer.window.timeline.tracks import KEYFRAME_SIZE, Tracks, draw_diamond

HEIGHT, WIDTH = 44, 860  # at scale 1; a narrower timeline has two lines


def height(app: AppState, tracks: Tracks, scale: float) -> float:
    """The height of the timeline."""
    lines = 1 if app.panels.area[2] > scale * WIDTH else 1.7
    return scale * HEIGHT * lines + (tracks.height(scale) if app.overlays.tracks else 0.0)


def draw(app: AppState, fonts: theme.Fonts, scale: float, tracks: Tracks, all_actions: list[Action]) -> None:
    """Draws the timeline in the current Dear ImGui window; `all_actions` are the window's."""
    panel = app.panel
    animation = panel.scene.animation or Animation(DEFAULT_DURATION)
    times = keyframe_times(panel.scene.animation)
    key_time = next((time for time in times if actions.is_at_time(app, time)), None)
    labels = {"Resume" if panel.paused else "Pause": "Space", "Key": "Ctrl+K", "Delete": "Ctrl+Shift+K"}
    if imgui.get_content_region_avail().x > 580 * scale:
        labels |= {"Tracks": "Ctrl+Shift+T", "Film...": "Ctrl+Shift+E"}
    action_buttons(app.run, all_actions, labels)
    imgui.same_line()
    wide = app.panels.area[2] > scale * WIDTH
    beside = 330 * scale if wide else 0.0  # of the controls right of the track
    left, width = imgui.get_cursor_screen_pos().x, imgui.get_content_region_avail().x - beside
    _track(app, fonts, scale, animation.duration, times, width)
    if wide:
        imgui.same_line()
    imgui.begin_disabled(key_time is None)
    _interpolation(app, animation, key_time, scale)
    imgui.end_disabled()
    _duration(app, animation, times, scale)
    if app.overlays.tracks:
        tracks.draw(left, max(width, 20.0), scale)


def _interpolation(app: AppState, animation: Animation, key_time: float | None, scale: float) -> None:
    """The easing from the key frame at `key_time`, if there is one, to the next."""
    imgui.set_next_item_width(90 * scale)
    keys = keys_at(animation, key_time) if key_time is not None else {}
    current = next((key.interpolation for key in keys.values()), INTERPOLATIONS[0])
    changed, index = imgui.combo("##interpolation", INTERPOLATIONS.index(current), list(INTERPOLATIONS))
    theme.hint("easing: how values go from the key frame at this time to the next")
    if changed and keys:
        app.panel.show(ease_keys(app.panel.scene, keys, INTERPOLATIONS[index]))


def _duration(app: AppState, animation: Animation, times: list[float], scale: float) -> None:
    """The animation's duration and whether it loops."""
    scene = app.panel.scene
    imgui.same_line()
    imgui.set_next_item_width(80 * scale)
    changed, seconds = imgui.input_double("s", animation.duration, 0.0, 0.0, "%.2f")
    theme.hint("duration: seconds after which playback repeats, and of an exported film")
    if changed:
        _set_duration(app, animation, times, seconds)
    imgui.same_line()
    changed, loop = imgui.checkbox("smooth loop", animation.loop)
    theme.hint("values go on from the last key frame to the first; without it playback repeats with a jump")
    if changed and animation.duration > 0:
        app.panel.show(replace(scene, animation=replace(animation, loop=loop)))


def _set_duration(app: AppState, animation: Animation, times: list[float], seconds: float) -> None:
    if seconds < max(times, default=0.0):
        app.show_message(f"the duration stays {animation.duration:.4g} s: the last key frame is at {max(times):.4g} s")
    elif 1e-2 <= seconds < 1e6:
        app.panel.show(replace(app.panel.scene, animation=replace(animation, duration=seconds)))


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
        app.panel.scrub(near[0] if near else min(frame, duration))
    middle = corner.y + height / 2
    low, high = (corner.x, middle - 2 * scale), (corner.x + width, middle + 2 * scale)
    draw_list.add_rect_filled(low, high, theme.color_u32(theme.COLORS["frame_bg_active"]), 2 * scale)
    for time in times:
        x = corner.x + min(time / duration, 1.0) * width
        draw_diamond(draw_list, x, middle, KEYFRAME_SIZE * scale, actions.is_at_time(app, time))
    x = corner.x + min(app.panel.scene_time / duration, 1.0) * width
    draw_list.add_line((x, corner.y), (x, corner.y + height), theme.color_u32(theme.ACCENT), 2 * scale)
    label = (x + 5 * scale if x + 60 * scale < corner.x + width else x - 40 * scale, corner.y - 2 * scale)
    size, color = theme.FONT_SIZE * scale * theme.SMALL, theme.color_u32(theme.TEXT)
    draw_list.add_text(fonts.numbers, size, label, color, f"{app.panel.scene_time:.2f}")
