"""The flame editor as the main window uses it: edits and keys, with what is drawn over and beside the picture."""

from renderer.window.controls import theme
from renderer.window.controls.theme import Rect
from renderer.window.controls.toolkit import imgui, imgui_ctx
from renderer.window.flame_editor.editor import Editor
from renderer.window.flame_editor.sections import Sections, draw_triangles
from renderer.window.state.app_state import AppState


class FlameEditor(Editor):
    """An editor with its triangles and its sections of controls."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        super().__init__(app, fonts, scale)
        self.sections = Sections(self)

    def draw(self, rect: Rect) -> None:
        """Draws the triangles over the picture."""
        if self.triangles and not self.flame.is_3d:
            draw_triangles(self, self.transform(rect))

    def controls(self) -> None:
        """Draws the flame's section of the controls."""
        if imgui.collapsing_header("Flame", imgui.TreeNodeFlags_.default_open):
            with imgui_ctx.push_id("flame"):
                self.sections.draw()
