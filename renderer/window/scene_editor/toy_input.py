"""Mouse and keyboard of a panel that shows a toy: what its shader reads as iMouse and as the keyboard's channel.

Both are settings of the toy, so that a screenshot repeats them. A click into a picture that reads the keyboard gives it
the keys without Ctrl and Alt; Escape takes them back.
"""

from dataclasses import replace

from renderer.pictures import toy
from renderer.window.controls import imgui, theme
from renderer.window.panels.panel import Panel, PanelEditor
from renderer.window.state.app_state import AppState

# Dear ImGui's key -> JavaScript's keyCode
KEY_CODES: dict[imgui.Key, int] = {
    **{imgui.Key(int(imgui.Key.a) + k): 65 + k for k in range(26)},
    **{imgui.Key(int(imgui.Key._0) + k): 48 + k for k in range(10)},
    imgui.Key.left_arrow: 37, imgui.Key.up_arrow: 38, imgui.Key.right_arrow: 39, imgui.Key.down_arrow: 40,
    imgui.Key.space: 32, imgui.Key.enter: 13, imgui.Key.tab: 9, imgui.Key.backspace: 8, imgui.Key.left_shift: 16,
}  # fmt: skip
# Settings that have no controls: the files of the passes and channels, and the input from the window.
HIDDEN = ("common", "buffer_a", "buffer_b", "buffer_c", "buffer_d", "channels", "mouse", "keys", "toggled", "date")


class ToyEditor(PanelEditor):
    """Gives the mouse and the keys to the toy of one panel."""

    def __init__(self, app: AppState, panel: Panel, fonts: theme.Fonts, scale: float):
        self.app, self.panel = app, panel

    def _reads(self, name: str) -> bool:
        picture = self.panel.picture
        return isinstance(picture, toy.Picture) and picture.reads(name)

    def mouse(self, rect: theme.Rect) -> bool:
        """A drag with the left button is iMouse; positions are in fractions of the picture, from the bottom left."""
        if imgui.is_item_activated() and self._reads("keyboard"):
            self.app.input.picture_keys.is_on = True
            self.app.show_message("keys go to the picture; Escape returns them")
        io = imgui.get_io()
        is_held = imgui.is_item_active() and imgui.is_mouse_down(0) and not (io.key_ctrl or io.key_alt)
        x, y, click_x, click_y = self.panel.scene.settings.mouse
        if not self._reads("iMouse") or not is_held and click_x <= 0:
            return False
        if is_held:
            pointer = (io.mouse_pos.x - rect[0]) / rect[2], (io.mouse_pos.y - rect[1]) / rect[3]
            u, v = self.panel.zoom.picture_point(*pointer)
            x, y = min(max(u, 0.0), 1.0), min(max(1.0 - v, 0.0), 1.0)
        if imgui.is_item_activated():
            self._set(mouse=(x, y, x, y))
        else:  # as on shadertoy.com: z is positive while the button is held, w in the frame of the click alone
            self._set(mouse=(x, y, abs(click_x) if is_held else -abs(click_x), -abs(click_y)))
        return is_held and self.panel.is_animated

    def draw(self, rect: theme.Rect) -> None:
        """Reads the keys that are held."""
        if not self.app.input.picture_keys or self.panel is not self.app.panel or not self._reads("keyboard"):
            return
        settings = self.panel.scene.settings
        held = tuple(sorted(code for key, code in KEY_CODES.items() if imgui.is_key_down(key)))
        if held != settings.keys:
            toggled = set(settings.toggled) ^ (set(held) - set(settings.keys))
            self._set(keys=held, toggled=tuple(sorted(toggled)))

    def _set(self, **values: object) -> None:
        scene = self.panel.scene
        if any(getattr(scene.settings, name) != value for name, value in values.items()):
            self.panel.show(replace(scene, settings=replace(scene.settings, **values)))

    def hidden_settings(self) -> list[str]:
        """Values that files and the mouse set; of a shader's own file also its name."""
        return [*HIDDEN, *(() if self.panel.original.path.suffix == ".toml" else ("image",))]
