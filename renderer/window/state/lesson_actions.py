"""Opens and closes lessons in the window, and turns to other steps: a step's panels replace the window's panels.

Keys (app/key_bindings.py), menus and the lesson's column call these actions; lesson_reader.py holds the state.
"""

from collections.abc import Callable

from renderer.lessons.lesson import LESSONS, read_lesson
from renderer.window.state.app_state import AppState
from renderer.window.state.lesson_reader import LessonReader


def open_lesson(app: AppState, reader: LessonReader) -> None:
    """Opens a lesson, and its panels in place of the window's."""
    close_lesson(app)
    if [panel.scene for panel in app.panels] != list(reader.session().scenes):
        app.replace_panels(reader.session())
    app.lesson, app.overlays.tour_step = reader, None
    reader.adopt(app.panels)


def open_bundled(app: AppState, name: str) -> None:
    """Opens the bundled lesson of this name."""
    with app.errors_as_messages(f"opening the lesson {name}"):
        open_lesson(app, LessonReader(read_lesson(LESSONS / name), device=app.device))


def close_lesson(app: AppState) -> None:
    """Closes the lesson; its panels stay."""
    if app.lesson is not None:
        app.lesson.cancel()
        app.lesson = None


def turn(app: AppState, reader: LessonReader, number: int) -> None:
    """Shows step `number` of the open lesson, from 0: its panels, with their settings and views."""
    reader.number = min(max(number, 0), len(reader.lesson.steps) - 1)
    reader.scrolls_to_top = True
    names = reader.lesson.shown(reader.number)
    if set(names) != reader.panels.keys() or any(panel not in app.panels for panel in reader.panels.values()):
        app.replace_panels(reader.session())
        reader.adopt(app.panels)
    for name in names:
        panel, scene = reader.panels[name], reader.lesson.scene(reader.number, name)
        panel.show(scene)
        panel.inspection.show(scene.inspect)  # the user may look at another view
    app.panels.active = app.panels.index(reader.panels[names[0]])


def with_lesson(action: Callable[[AppState, LessonReader], None]) -> Callable[[AppState], None]:
    """The action on the open lesson, which without one shows how to open one."""

    def run(app: AppState) -> None:
        if app.lesson is None:
            app.show_message("no lesson is open; `rayfold lesson` lists them")
        else:
            action(app, app.lesson)

    return run


next_step = with_lesson(lambda app, reader: turn(app, reader, reader.number + 1))
previous_step = with_lesson(lambda app, reader: turn(app, reader, reader.number - 1))
measure_step = with_lesson(lambda app, reader: reader.start(app.now()))
