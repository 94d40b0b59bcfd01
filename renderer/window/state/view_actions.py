"""What keys and clicks do to the active panel's view: it is moved, and put into focus."""

from dataclasses import replace

from renderer.errors import KernelError, UserError
from renderer.window.state.app_state import AppState

STEP = 0.08  # part of the panel's height that an arrow key drags


def focus(app: AppState, across: float, down: float) -> None:
    """Puts what is seen at these parts of the panel's width and height into focus."""
    app.picking = False
    if not app.panel.can_pick:
        app.show_message(f"a {app.panel.scene.picture} picture has nothing to focus on")
        return
    try:
        distance = app.panel.pick(across, down)
    except (UserError, KernelError) as error:
        app.show_message(str(error))
        return
    settings = app.panel.settings()
    if distance is None:
        app.show_message("nothing is there")
    elif settings.focus_distance is None:
        app.show_message(f"{distance:.4g} away")
    else:
        sharp = "" if settings.lens_radius != 0 else "; all is sharp while lens radius is 0"
        app.edit_settings(replace(settings, focus_distance=distance))
        app.show_message(f"in focus: {distance:.4g} away{sharp}")


def pick_focus(app: AppState) -> None:
    """The next click focuses; asked for a second time, what is in the middle comes into focus."""
    if app.picking:
        focus(app, 0.5, 0.5)
    else:
        app.picking = True
        app.show_message("click on what is to be in focus, or Ctrl+F again for what is in the middle")


def drag(app: AppState, dx: float, dy: float) -> None:
    if app.view() is not None:
        app.set_view(app.view().drag(dx * STEP, dy * STEP))


def pan(app: AppState, dx: float, dy: float) -> None:
    if app.view() is not None:
        app.set_view(app.view().pan(dx * STEP, dy * STEP))


def zoom(app: AppState, steps: float) -> None:
    if app.view() is not None:
        app.set_view(app.view().scroll(steps))


def home(app: AppState) -> None:
    original = app.panel.original.settings.view
    if original is not None and type(original) is type(app.view()):
        app.set_view(original)
