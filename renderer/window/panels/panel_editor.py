"""The interface between the main window and the editor of a panel, with defaults that do nothing.

SceneEditor edits ray traced scenes, FlameEditor flames; other kinds of picture have no editor.
"""

from typing import Any

from renderer.window.controls.theme import Rect


class PanelEditor:
    """The editor of one panel; it lives as long as the panel shows its kind of picture."""

    def wants_mouse(self) -> bool:
        """True if the editor takes the mouse before the panel's button."""
        return False

    def mouse(self, rect: Rect) -> bool:
        """Handles the mouse after the panel's button; returns true if the input is used up."""
        return False

    def draw(self, rect: Rect) -> None:
        """Draws over the picture in `rect`."""

    def overlay(self) -> bool:
        """Draws over the window; returns true if another frame is needed although no panel draws."""
        return False

    def controls(self) -> None:
        """Draws the editor's section of the controls."""

    def hidden_settings(self) -> list[str]:
        """Names of the settings that the editor's section shows; the generated controls leave them out."""
        return []

    def actions(self) -> list[Any]:
        """The editor's actions, for keys, help and palette."""
        return []
