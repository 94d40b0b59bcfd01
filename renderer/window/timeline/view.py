"""The line of time under the panels: play, scrub, and key frames of the active panel's scene."""

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

HEIGHT = 44  # at scale 1
KEYFRAME_SIZE = 5.0  # half the width of a key's mark, at scale 1


def draw(app: AppState, fonts: theme.Fonts, scale: float) -> None:
    """The contents of the window that is begun: buttons, the line with its keys, length and loop."""
    panel = app.panel
    animation = panel.scene.animation or Animation(DEFAULT_DURATION)
    imgui.align_text_to_frame_padding()
    _button("Go on" if panel.paused else "Pause", "Space", lambda: app.toggle_pause())
    _button(
        "Key",
        "Ctrl+K: a key frame of what has keys, or of what was changed, or of the view",
        lambda: actions.add_key(app),
    )
    times = keyframe_times(panel.scene.animation)
    here = next((time for time in times if actions.is_at_time(app, time)), None)
    imgui.begin_disabled(here is None)
    _button("Delete", "Ctrl+Shift+K: the key frame at this moment", lambda: actions.delete_key(app))
    wide = imgui.get_content_region_avail().x > 560 * scale
    if wide:
        _ease(app, animation, here, scale)
    imgui.end_disabled()
    _track(app, fonts, scale, animation.duration, times, imgui.get_content_region_avail().x - wide * 210 * scale)
    if wide:
        _length(app, animation, times, scale)


def _ease(app: AppState, animation: Animation, here: float | None, scale: float) -> None:
    imgui.set_next_item_width(90 * scale)
    interpolation = interpolation_at(animation, here) if here is not None else INTERPOLATIONS[0]
    changed, index = imgui.combo("##interpolation", INTERPOLATIONS.index(interpolation), list(INTERPOLATIONS))
    imgui.set_item_tooltip("how values move from this key to the next")
    if changed and here is not None:
        app.change_scene(replace(app.panel.scene, animation=with_interpolation(animation, here, INTERPOLATIONS[index])))
    imgui.same_line()


def _length(app: AppState, animation: Animation, times: list[float], scale: float) -> None:
    panel = app.panel
    imgui.same_line()
    imgui.set_next_item_width(80 * scale)
    changed, seconds = imgui.input_double("s", animation.duration, 0.0, 0.0, "%.2f")
    imgui.set_item_tooltip("the film's length")
    if changed and seconds == seconds and max([1e-2, *times]) <= seconds < 1e6:
        app.change_scene(replace(panel.scene, animation=replace(animation, duration=seconds)))
    imgui.same_line()
    changed, loop = imgui.checkbox("loop", animation.loop)
    if changed and animation.duration > 0:
        app.change_scene(replace(panel.scene, animation=replace(animation, loop=loop)))


def _button(label: str, tooltip: str, run) -> None:
    if imgui.button(label):
        run()
    imgui.set_item_tooltip(tooltip)
    imgui.same_line()


def _track(app: AppState, fonts, scale: float, seconds: float, times: list[float], width: float) -> None:
    """The line itself: a press or drag scrubs, keys are marks, the moment stands above the pointer's place."""
    width, height = max(width, 20.0), imgui.get_frame_height()
    corner, paint = imgui.get_cursor_screen_pos(), imgui.get_window_draw_list()
    seconds = max(seconds, 1e-2)
    imgui.invisible_button("time", imgui.ImVec2(width, height))
    if imgui.is_item_active():
        part = (imgui.get_io().mouse_pos.x - corner.x) / width
        moment = min(max(part, 0.0), 1.0) * seconds
        near = [time for time in times if abs(time - moment) * width / seconds < KEYFRAME_SIZE * scale]
        actions.scrub(app, near[0] if near else moment)
    middle = corner.y + height / 2
    left, right = imgui.ImVec2(corner.x, middle - 2 * scale), imgui.ImVec2(corner.x + width, middle + 2 * scale)
    paint.add_rect_filled(left, right, theme.color_u32(theme.COLORS["frame_bg_active"]), 2 * scale)
    for time in times:
        x, mark = corner.x + min(time / seconds, 1.0) * width, KEYFRAME_SIZE * scale
        colour = theme.ACCENT if actions.is_at_time(app, time) else theme.TEXT
        points = [imgui.ImVec2(x, middle - mark), imgui.ImVec2(x + mark, middle)]
        points += [imgui.ImVec2(x, middle + mark), imgui.ImVec2(x - mark, middle)]
        paint.add_quad_filled(*points, theme.color_u32(colour))
    x = corner.x + min(app.panel.scene_time / seconds, 1.0) * width
    paint.add_line(
        imgui.ImVec2(x, corner.y), imgui.ImVec2(x, corner.y + height), theme.color_u32(theme.ACCENT), 2 * scale
    )
    text = f"{app.panel.scene_time:.2f}"
    size = theme.FONT_SIZE * scale * 0.87
    at = x + 5 * scale if x + 60 * scale < corner.x + width else x - 40 * scale
    paint.add_text(fonts.numbers, size, imgui.ImVec2(at, corner.y - 2 * scale), theme.color_u32(theme.TEXT), text)
