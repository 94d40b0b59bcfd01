"""Actions on time: the active panel's scene time and its scene's key frames. Keys and the timeline call them."""

from dataclasses import fields

from renderer.scene import animation
from renderer.scene.animation import KEYFRAME_TOLERANCE, keyframe_times
from renderer.window.document.document import Document
from renderer.window.document.items import groups, item_value
from renderer.window.state.app_state import AppState

CAMERA_FIELDS = ("position", "target", "fov_degrees")
# Fields of items that add_keyframe() animates
TRANSFORM_FIELDS = ("center", "position", "corners", "direction", "rotation_degrees", "scale", "radius")
FRAMES_PER_SECOND = 24  # step_frame() steps by 1 / 24 s


def shows_timeline(app: AppState) -> bool:
    """True if the timeline is displayed: on request, and while there are key frames or a model plays an animation."""
    return app.overlays.timeline.is_on or _is_animated(app)


def _is_animated(app: AppState) -> bool:
    scene = app.panel.scene
    return bool(keyframe_times(scene.animation)) or scene.settings.is_animated


def toggle_timeline(app: AppState) -> None:
    """Shows or hides the timeline."""
    if _is_animated(app):
        app.show_message("the timeline stays while there are key frames or a model plays an animation")
    app.overlays.timeline.toggle()


def toggle_tracks(app: AppState) -> None:
    """Shows or hides the rows of the timeline, and the timeline with them."""
    app.overlays.tracks.toggle()
    app.overlays.timeline.is_on |= app.overlays.tracks.is_on


def is_at_time(app: AppState, time: float) -> bool:
    """True if `time`, in seconds, is the active panel's scene time."""
    return abs(app.panel.scene_time - time) <= KEYFRAME_TOLERANCE


def step_frame(app: AppState, direction: int) -> None:
    """Goes to the next (1) or the previous (-1) frame."""
    app.panel.scrub(round(app.panel.scene_time * FRAMES_PER_SECOND + direction) / FRAMES_PER_SECOND)
    app.overlays.timeline.is_on = True


def step_keyframe(app: AppState, direction: int) -> None:
    """Goes to the next (1) or the previous (-1) key frame."""
    times = keyframe_times(app.panel.scene.animation)
    ahead = [t for t in times[::direction] if (t - app.panel.scene_time) * direction > KEYFRAME_TOLERANCE]
    if ahead:
        app.panel.scrub(ahead[0])
    else:
        app.show_message("no key frame there")


def add_keyframe(app: AppState) -> None:
    """Inserts a key frame for the settings that have key frames, else for the changed settings, else for the view.

    In a scene with lists of items, the changed settings are the camera's and the selected item's transform only.
    """
    panel, scene = app.panel, app.panel.scene
    paths = [track.path for track in scene.animation.tracks] if scene.animation else []
    if not paths and groups(scene.settings):
        paths = _transform_paths(panel.document)
    elif not paths and type(panel.original.settings) is type(scene.settings):
        paths = animation.changed_paths(panel.original.settings, scene.settings)
    view = panel.settings().view
    if not paths and view is not None:
        paths = [f"view.{f.name}" for f in fields(view) if not isinstance(getattr(view, f.name), str)]
    if not paths:
        app.show_message("no key frame: change a setting first")
        return
    app.overlays.timeline.is_on = panel.paused = True
    with app.errors_as_messages("inserting a key frame", ValueError):
        panel.show(animation.insert_keyframe(scene, panel.scene_time, paths))
        names = sorted({path.split(".")[0] for path in paths})
        app.show_message(f"key frame at {panel.scene_time:.2f} s: {', '.join(names)}")


def _transform_paths(document: Document) -> list[str]:
    """The paths of the settings that move the camera and the selected item."""
    settings, item = document.scene.settings, document.selected
    paths = [f"view.{f.name}" for f in fields(settings.view) if f.name in CAMERA_FIELDS]
    if item is not None:
        value = item_value(settings, item)
        paths += [f"{item.group}[{item.index}].{f.name}" for f in fields(value) if f.name in TRANSFORM_FIELDS]
    return paths


def delete_keyframe_here(app: AppState) -> None:
    """Deletes the key frame at the scene time."""
    panel = app.panel
    if not any(is_at_time(app, time) for time in keyframe_times(panel.scene.animation)):
        app.show_message("no key frame at this time; Page Up and Page Down go to them")
        return
    keys = animation.keys_at(panel.scene.animation, panel.scene_time)
    panel.show(animation.delete_keys(panel.scene, keys))
