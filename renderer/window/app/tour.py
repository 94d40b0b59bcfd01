"""The tour: five steps on a card in the lower right corner, shown at the first start and by Ctrl+F1.

Overlays draws the card, which takes no keys. A file in the state folder notes that the user dismissed the tour.
"""

from contextlib import suppress

from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui
from renderer.window.state.app_state import AppState

STEPS = (
    ("Panels", "Each panel is a live picture. Drag in it to orbit or pan, turn the wheel to zoom; the controls on the "
     "right belong to the active panel. N and P show the next and the previous scene of the folder."),
    ("Scenes", "Ctrl+N makes an empty scene; Add (Shift+A) puts shapes, lights, materials, meshes and textures into "
     "it. A file that is dropped on a panel can be added too. Ctrl+S saves readable TOML."),
    ("Items", "A click selects what is under it: arrows move it, Alt+R and Alt+S rotate and scale. Its settings are "
     "below the list; F2 renames it and all that uses it. Ctrl+Z undoes every step."),
    ("Time", "Ctrl+T shows the timeline. A right click on the name of a setting gives it a key frame; Tracks has a "
     "row for each, whose keys are dragged, copied and eased. Film... exports a video."),
    ("Help", "F1 lists all keys, Ctrl+P finds a command, Shift+F1 explains every setting and C$. The pointer on a "
     "name says what it is for."),
)  # fmt: skip


def draw(app: AppState, fonts: theme.Fonts, right: float, bottom: float, scale: float) -> None:
    """Draws the current step in the lower right corner of the panels, which end at `right` and `bottom`."""
    step = app.overlays.tour_step
    if step is None:
        return
    title, text = STEPS[step]
    margin, is_last = theme.CARD_MARGIN * scale, step == len(STEPS) - 1
    heading = f"{title}   {step + 1} of {len(STEPS)}"
    theme.begin_card("Tour", heading, fonts, (right - margin, bottom - margin), 1.0, scale)
    imgui.text_wrapped(text)
    imgui.spacing()
    if theme.button("Back", is_enabled=step > 0):
        app.overlays.tour_step = step - 1
    imgui.same_line()
    if imgui.button("Done" if is_last else "Next"):
        if is_last:
            dismiss(app)
        else:
            app.overlays.tour_step = step + 1
    imgui.same_line()
    if not is_last and imgui.button("Skip the tour"):
        dismiss(app)
    imgui.end()


def dismiss(app: AppState) -> None:
    """Ends the tour for good."""
    app.overlays.tour_step = None
    if app.overlays.tour_marker is not None:
        with suppress(OSError):  # if the file cannot be written, the tour returns at the next start
            app.overlays.tour_marker.parent.mkdir(parents=True, exist_ok=True)
            app.overlays.tour_marker.touch()


def start(app: AppState) -> None:
    """Shows the tour from its first step."""
    app.overlays.tour_step = 0
