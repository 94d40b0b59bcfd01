"""Time in the window: what the keys and the line of time do to the active panel's clock and its key frames."""

from dataclasses import fields

from renderer.scene.animation import KEYFRAME_TOLERANCE, changed_paths, delete_keyframe, insert_keyframe, keyframe_times
from renderer.window.app.state import Studio

FRAMES = 24  # a second, by which the keys step


def shows_timeline(studio: Studio) -> bool:
    return studio.timeline or bool(keyframe_times(studio.panel.scene.animation))


def toggle_timeline(studio: Studio) -> None:
    if keyframe_times(studio.panel.scene.animation):
        studio.tell("the line of time stays while there are key frames")
    studio.timeline = not studio.timeline


def is_at(studio: Studio, moment: float) -> bool:
    """Whether the active panel stands at this moment."""
    return abs(studio.panel.clock - moment) <= KEYFRAME_TOLERANCE


def scrub(studio: Studio, moment: float) -> None:
    """Stops the active panel at a moment."""
    studio.panel.paused, studio.panel.clock = True, max(moment, 0.0)


def step_frame(studio: Studio, direction: int) -> None:
    scrub(studio, round(studio.panel.clock * FRAMES + direction) / FRAMES)
    studio.timeline = True


def step_key(studio: Studio, direction: int) -> None:
    """Goes to the key frame before or after this moment."""
    times = keyframe_times(studio.panel.scene.animation)
    there = [t for t in times[::direction] if (t - studio.panel.clock) * direction > KEYFRAME_TOLERANCE]
    if there:
        scrub(studio, there[0])
    else:
        studio.tell("no key frame there")


def add_key(studio: Studio) -> None:
    """A key frame here: of what has some already, or else of what was changed, or else of the view."""
    panel, scene = studio.panel, studio.panel.scene
    paths = [track.path for track in scene.animation.tracks] if scene.animation else []
    if not paths and type(panel.original.settings) is type(scene.settings):
        paths = changed_paths(panel.original.settings, scene.settings)
    if not paths and studio.view() is not None:
        paths = [f"view.{f.name}" for f in fields(studio.view())]
    if not paths:
        studio.tell("nothing to keep: change a setting first")
        return
    studio.timeline = panel.paused = True
    studio.change(insert_keyframe(scene, panel.clock, paths))
    studio.tell(f"key frame at {panel.clock:.2f} s: {', '.join(sorted({path.split('.')[0] for path in paths}))}")


def delete_key(studio: Studio) -> None:
    panel = studio.panel
    if not any(is_at(studio, time) for time in keyframe_times(panel.scene.animation)):
        studio.tell("no key frame at this moment; Page Up and Page Down go to them")
        return
    studio.change(delete_keyframe(panel.scene, panel.clock))
