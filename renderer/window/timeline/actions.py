"""Time in the window: what the keys and the line of time do to the active panel's clock and its key frames."""

from dataclasses import fields

from renderer.scene.animation import KEYFRAME_TOLERANCE, changed_paths, delete_keyframe, insert_keyframe, keyframe_times
from renderer.window.state.app_state import AppState

FRAMES_PER_SECOND = 24  # a second, by which the keys step


def shows_timeline(app: AppState) -> bool:
    return app.timeline or bool(keyframe_times(app.panel.scene.animation))


def toggle_timeline(app: AppState) -> None:
    if keyframe_times(app.panel.scene.animation):
        app.show_message("the line of time stays while there are key frames")
    app.timeline = not app.timeline


def is_at_time(app: AppState, moment: float) -> bool:
    """Whether the active panel stands at this moment."""
    return abs(app.panel.scene_time - moment) <= KEYFRAME_TOLERANCE


def scrub(app: AppState, moment: float) -> None:
    """Stops the active panel at a moment."""
    app.panel.paused, app.panel.scene_time = True, max(moment, 0.0)


def step_frame(app: AppState, direction: int) -> None:
    scrub(app, round(app.panel.scene_time * FRAMES_PER_SECOND + direction) / FRAMES_PER_SECOND)
    app.timeline = True


def step_key(app: AppState, direction: int) -> None:
    """Goes to the key frame before or after this moment."""
    times = keyframe_times(app.panel.scene.animation)
    there = [t for t in times[::direction] if (t - app.panel.scene_time) * direction > KEYFRAME_TOLERANCE]
    if there:
        scrub(app, there[0])
    else:
        app.show_message("no key frame there")


def add_key(app: AppState) -> None:
    """A key frame here: of what has some already, or else of what was changed, or else of the view."""
    panel, scene = app.panel, app.panel.scene
    paths = [track.path for track in scene.animation.tracks] if scene.animation else []
    if not paths and type(panel.original.settings) is type(scene.settings):
        paths = changed_paths(panel.original.settings, scene.settings)
    if not paths and app.view() is not None:
        paths = [f"view.{f.name}" for f in fields(app.view())]
    if not paths:
        app.show_message("nothing to keep: change a setting first")
        return
    app.timeline = panel.paused = True
    app.change_scene(insert_keyframe(scene, panel.scene_time, paths))
    app.show_message(
        f"key frame at {panel.scene_time:.2f} s: {', '.join(sorted({path.split('.')[0] for path in paths}))}"
    )


def delete_key(app: AppState) -> None:
    panel = app.panel
    if not any(is_at_time(app, time) for time in keyframe_times(panel.scene.animation)):
        app.show_message("no key frame at this moment; Page Up and Page Down go to them")
        return
    app.change_scene(delete_keyframe(panel.scene, panel.scene_time))
