"""What the main window asks of the editor of a kind of picture, with defaults."""

from typing import Any

from renderer.window.controls.theme import Rect


class PanelEditor:
    """The editor of one panel; it lives as long as the panel shows its kind of picture."""

    def wants_mouse(self) -> bool:
        """Whether the editor takes the mouse before the panel's own button."""
        return False

    def mouse(self, rect: Rect) -> bool:
        """Handles the mouse after the panel's button; whether it is used up."""
        return False

    def draw(self, rect: Rect) -> None:
        """Draws over the picture in `rect`."""

    def overlay(self) -> bool:
        """Draws over the window; whether another frame is wanted although no panel draws."""
        return False

    def controls(self) -> None:
        """Draws the editor's section of the controls."""

    def hidden_settings(self) -> list[str]:
        """The settings that the editor's section shows, so that the others need not."""
        return []

    def actions(self) -> list[Any]:
        """The editor's actions, for keys, help and palette."""
        return []
