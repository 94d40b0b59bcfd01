"""The open overlays over and beside the panels, and the mode of the next input. AppState holds both.

Keys toggle the switches (app/key_bindings.py); app/overlays.py and the main window draw what they show.
"""

from pathlib import Path
from typing import Any

from renderer.records import dataclass


@dataclass
class Switch:
    """Something that is on or off."""

    is_on: bool = False

    def __bool__(self) -> bool:
        return self.is_on

    def toggle(self) -> None:
        """Switches between on and off."""
        self.is_on = not self.is_on


class OverlayState:
    """The overlays over and beside the panels."""

    def __init__(self) -> None:
        self.help = Switch()
        self.palette = Switch()
        self.reference = Switch()
        self.page = ""  # the title of the reference's tab that is shown next
        self.code = Switch()  # the program beside the picture
        self.picture = Switch()  # the dialog that exports a picture
        self.film = Switch()  # the dialog that exports a film
        self.inspector = Switch()  # the magnified pixels at the pointer
        self.timeline = Switch()
        self.tracks = Switch()  # the timeline's row for each setting
        self.sidebar = Switch(True)
        self.fullscreen = Switch()
        self.dropped: Path | None = None  # a dropped file that a dialog asks about
        self.question: Any = None  # an unsaved.Question
        self.recovered: Any = None  # the KeptSession of a crash, until the user answers its card
        self.tour_step: int | None = None  # the step of the tour that is shown
        self.tour_marker: Path | None = None  # the file that notes that the tour was dismissed


class InputMode:
    """The mode of the next input."""

    def __init__(self) -> None:
        self.picking = Switch()  # the next click picks the focus
        self.dragging_panel = Switch()
        self.keyboard_navigation = Switch()  # the keyboard works the controls
        self.picture_keys = Switch()  # the active panel's picture reads the keyboard
        self.add_menu = Switch()  # the menu "Add" opens in the next frame
