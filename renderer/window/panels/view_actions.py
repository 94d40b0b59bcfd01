"""What keys and clicks do to the active panel's view: it is moved, and put into focus."""

from dataclasses import replace

from renderer.errors import KernelError, UserError
from renderer.window.app.state import Studio

STEP = 0.08  # part of the panel's height that an arrow key drags


def focus(studio: Studio, across: float, down: float) -> None:
    """Puts what is seen at these parts of the panel's width and height into focus."""
    studio.picking = False
    if not studio.panel.can_pick:
        studio.tell(f"a {studio.panel.scene.picture} picture has nothing to focus on")
        return
    try:
        distance = studio.panel.pick(across, down)
    except (UserError, KernelError) as error:
        studio.tell(str(error))
        return
    settings = studio.panel.settings()
    if distance is None:
        studio.tell("nothing is there")
    elif settings.focus_distance is None:
        studio.tell(f"{distance:.4g} away")
    else:
        sharp = "" if settings.lens_radius != 0 else "; all is sharp while lens radius is 0"
        studio.edit(replace(settings, focus_distance=distance))
        studio.tell(f"in focus: {distance:.4g} away{sharp}")


def pick_next(studio: Studio) -> None:
    """The next click focuses; asked for a second time, what is in the middle comes into focus."""
    if studio.picking:
        focus(studio, 0.5, 0.5)
    else:
        studio.picking = True
        studio.tell("click on what is to be in focus, or Ctrl+F again for what is in the middle")


def drag(studio: Studio, dx: float, dy: float) -> None:
    if studio.view() is not None:
        studio.set_view(studio.view().drag(dx * STEP, dy * STEP))


def pan(studio: Studio, dx: float, dy: float) -> None:
    if studio.view() is not None:
        studio.set_view(studio.view().pan(dx * STEP, dy * STEP))


def zoom(studio: Studio, steps: float) -> None:
    if studio.view() is not None:
        studio.set_view(studio.view().scroll(steps))


def home(studio: Studio) -> None:
    original = studio.panel.original.settings.view
    if original is not None and type(original) is type(studio.view()):
        studio.set_view(original)
