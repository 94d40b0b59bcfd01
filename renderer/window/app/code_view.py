"""A text editor beside the picture, for the active panel's C$ program, scene, flame, or GLSL passes.

Saving writes the file and reloads its panels at once; an error is marked on its line, and the last good picture stays.
"""

import re
from pathlib import Path
from typing import Any

from renderer.paths import SHADERS
from renderer.pictures import picture_class
from renderer.system.files import read_text
from renderer.system.outputs import atomic_write
from renderer.window.controls import theme
from renderer.window.controls.toolkit import imgui, imgui_color_text_edit, imgui_ctx
from renderer.window.panels.panel import Panel
from renderer.window.state import open_files
from renderer.window.state.app_state import AppState

MAX_CHARACTERS = 1 << 20  # longer files are not edited here
SUFFIXES = (".cb", ".toml", ".flame", ".flam3")
ERROR_COLOR = (0.55, 0.12, 0.10, 1.0)


def text_file(panel: Panel) -> Path | None:
    """The text file of a panel: its C$ program, or the file of its scene; None for files that are no text."""
    program = getattr(panel.scene.settings, "program", "")
    path = Path(program) if program else panel.original.path
    return path if path.suffix in SUFFIXES and path.is_file() else None


def error_line(sentence: str, name: str) -> int | None:
    """The line number, from 1, in an error about the file `name`; None if it has none."""
    match = re.search(rf"{re.escape(name)}:(\d+)|\bline (\d+)", sentence)
    return int(match[1] or match[2]) if match else None


def text_files(panel: Panel) -> list[Path]:
    """The files that are edited beside a panel: its text_file(), then the GLSL passes of picture and display."""
    first = text_file(panel)
    passes = [SHADERS / name for name in (*picture_class(panel.scene.picture).passes, "images/tonemap.frag")]
    return [path for path in (first, *passes) if path is not None]


class CodeView:
    """A Dear ImGui window with the text of one file of the active panel. Closing it discards unsaved text."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self.editor = imgui_color_text_edit.TextEditor()
        self.editor.set_show_whitespaces_enabled(False)
        self.path: Path | None = None
        self._saved = ""  # the text of the file
        self._marked = ""  # the error sentence whose line is marked

    @property
    def is_changed(self) -> bool:
        """True if the text differs from the text of the file."""
        return self.path is not None and self.editor.get_text() != self._saved

    def draw(self, width: float, height: float) -> None:
        """Draws the window, if it is open, over a window of width x height units."""
        if not self.app.overlays.code:
            return
        files = text_files(self.app.panel)
        if self.path not in files and not self.is_changed:
            self.open(files[0])
        left, top, area_width, area_height = self.app.panels.area
        imgui.set_next_window_pos((left + area_width / 2, top + area_height * 0.08), imgui.Cond_.appearing)
        imgui.set_next_window_size((area_width / 2, area_height * 0.84), imgui.Cond_.appearing)
        flags = imgui.WindowFlags_.no_collapse | imgui.WindowFlags_.no_saved_settings
        _, is_open = imgui.begin("Program###program", True, flags)
        if not is_open:
            self.app.overlays.code.is_on = False
        self._contents()
        imgui.end()

    def open(self, path: Path | None) -> None:
        """Shows the text of a file; None shows an empty text."""
        self.path, self._marked = path, ""
        text = read_text(path, MAX_CHARACTERS) if path is not None else ""
        language: Any = imgui_color_text_edit.TextEditor.Language
        if path is not None:
            languages = {".cb": language.c, ".frag": language.glsl}
            self.editor.set_language(languages.get(path.suffix, language.markdown)())
        self.editor.set_text(text)
        self._saved = self.editor.get_text()  # read back: the editor normalizes line ends

    def save(self) -> None:
        """Writes the file and reloads the panels that show it."""
        if self.path is None:
            return
        with self.app.errors_as_messages("saving the program"):
            text = self.editor.get_text()
            with atomic_write(self.path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            self._saved = text
            self.app.file_watcher.accept(self.path)
            open_files.reload(self.app, {self.path}, shaders=self.path.suffix == ".frag")

    def _contents(self) -> None:
        panel = self.app.panel
        if self.path is None:
            return
        if imgui.button("Save (Ctrl+S)") or self._chord_pressed():
            self.save()
        imgui.same_line()
        if imgui.button("Revert"):
            self.open(self.path)
        imgui.same_line()
        self._choose_file(text_files(panel))
        error = panel.update_error or panel.error
        self._mark(error)
        self._limit_paste()
        lines = imgui.calc_text_size(error, False, imgui.get_content_region_avail().x).y if error else 0.0
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            self.editor.render("##text", imgui.ImVec2(0, -lines - 8 * self.scale if error else 0))
        if error:
            with imgui_ctx.push_text_wrap_pos(0.0):
                imgui.text_colored(theme.WARNING, error)

    def _choose_file(self, files: list[Path]) -> None:
        """A list of the panel's files; a changed text must be saved or reverted before another is opened."""
        assert self.path is not None
        shown = f"{self.path.name}{' (changed)' if self.is_changed else ''}"
        imgui.set_next_item_width(-1)
        if imgui.begin_combo("##file", shown):
            for path in files:
                flags = imgui.SelectableFlags_.disabled if self.is_changed else imgui.SelectableFlags_.none
                if imgui.selectable(path.name, path == self.path, flags)[0]:
                    with self.app.errors_as_messages("opening the program"):
                        self.open(path)
            imgui.end_combo()

    def _chord_pressed(self) -> bool:
        focused = imgui.is_window_focused(imgui.FocusedFlags_.child_windows)
        return focused and imgui.get_io().key_ctrl and imgui.is_key_pressed(imgui.Key.s, False)

    def _limit_paste(self) -> None:
        """Makes the text read-only in the frame of a key that would paste more than can be edited here."""
        io = imgui.get_io()
        pasted = (
            io.key_ctrl and imgui.is_key_pressed(imgui.Key.v) or io.key_shift and imgui.is_key_pressed(imgui.Key.insert)
        )
        count = len(imgui.get_clipboard_text()) if pasted else 0
        is_too_long = count > 0 and count + len(self.editor.get_text()) > MAX_CHARACTERS
        self.editor.set_read_only_enabled(is_too_long)
        if is_too_long:
            self.app.show_message(f"paste: {count} characters; a text of at most {MAX_CHARACTERS} can be edited here")

    def _mark(self, error: str) -> None:
        """Marks the line that an error names."""
        if error == self._marked or self.path is None:
            return
        self._marked = error
        self.editor.clear_markers()
        line = error_line(error, self.path.name)
        if error and line is not None:
            color = theme.color_u32(ERROR_COLOR)
            self.editor.add_marker(min(line, self.editor.get_line_count()) - 1, color, color, error, error)
