"""The code panel: a text editor docked beside the picture, for its shader, C$ program, scene, flame, or GLSL passes.

A panel's own file has one state, which text and picture show: the picture is compiled from the text 0.3 s after the
last key, and what is changed over the picture is taken into the text once the mouse rests. So a save from either side
writes both. An error is marked on its line, and the last good picture stays; what is changed over it is taken into the
text once that is right again. Where both changed the same setting meanwhile, the text's value stands. Bundled files are
never written: saving one asks where to put a copy. Hiding the panel keeps an unsaved text.

Two tables of system/drafts.py lead the readers of files here: `drafts.texts` has unsaved texts, which are read instead
of their files, and `drafts.copies` has bundled files with the user's copies that are read in their stead.
"""

import re
from pathlib import Path

from renderer.paths import SHADERS, is_bundled
from renderer.pictures import picture_class
from renderer.plain import printable
from renderer.scene.scene import Scene
from renderer.system import drafts
from renderer.system.files import file_stamp, read_text
from renderer.system.outputs import write_text
from renderer.toys.program import with_buffer
from renderer.window.controls import imgui, imgui_color_text_edit, imgui_ctx, theme
from renderer.window.controls.choices import choose_index
from renderer.window.document import creation
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.panel import Panel
from renderer.window.state import AppState, main_loop, open_files, save_files, unsaved

MAX_CHARACTERS = 1 << 20  # longer files are not edited here
SUFFIXES = (".cb", ".toml", ".flame", ".flam3", *open_files.SHADER_SUFFIXES)
MIN_CHOICE = 140  # the least width of the list of files beside the buttons, at scale 1
COMPILE_SECONDS = main_loop.TYPING_SECONDS  # after the last key
# The editor asks for its chords up to the first that is pressed, and Dear ImGui routes a chord to who asked for it one
# frame before: of two keys in successive frames, the second had no effect. So all are asked for in each frame.
EDITING_KEYS = [*range(imgui.Key.tab, imgui.Key.enter + 1), imgui.Key.keypad_enter]  # arrows and Backspace among them
SHIFT, CTRL = imgui.Key.mod_shift, imgui.Key.mod_ctrl
ROUTED_CHORDS = [modifiers | key for modifiers in (0, SHIFT, CTRL, CTRL | SHIFT) for key in EDITING_KEYS]
ERROR_COLOR = (0.55, 0.12, 0.10, 1.0)


def text_file(panel: Panel) -> Path | None:
    """The text file of a panel: its C$ program, or the file of its scene; None for files that are no text."""
    program = getattr(panel.scene.settings, "program", "")
    path = Path(program) if program else panel.original.path
    return path if path.suffix in SUFFIXES and path.is_file() else None


def error_line(sentence: str, name: str) -> int | None:
    """The line number, from 1, in an error about the file `name`; None if it has none."""
    match = re.search(rf"{re.escape(name)}:(\d{{1,9}})|\bline (\d{{1,9}})", sentence)
    return max(int(match[1] or match[2]), 1) if match else None  # a parser may count from 0


def text_files(panel: Panel) -> list[Path]:
    """The files that are edited beside a panel: its text_file(), its shaders, the GLSL passes behind it.

    The shaders of a scene file come before it.
    """
    first = text_file(panel)
    shaders = [path for path in sorted(panel.scene.files) if path.suffix in open_files.SHADER_SUFFIXES]
    own = [*shaders, first] if first is None or first.suffix == ".toml" else [first, *shaders]
    passes = [SHADERS / name for name in (*picture_class(panel.scene.picture).passes, "images/tonemap.frag")]
    found: dict[Path, Path] = {}  # each file once, under the name by which the panel knows it
    for path in filter(None, [*own, *passes]):
        found.setdefault(path.absolute(), path)
    return list(found.values())


class CodeView:
    """The text of one file of the active panel, in a region beside the panels."""

    def __init__(self, app: AppState, fonts: theme.Fonts, scale: float):
        self.app, self.fonts, self.scale = app, fonts, scale
        self.editor = imgui_color_text_edit.TextEditor()
        self.editor.set_show_whitespaces_enabled(False)
        self.editor.set_complete_paired_glyphs(False)  # the editor would add the bracket that the user types to its own
        self.path: Path | None = None
        self.is_focused = False
        self._saved = ""  # the text of the file
        self._stamp: tuple[int, int] | None = None  # file_stamp() of the file when it was read or written
        self._typed, self._typed_at = "", 0.0  # the text of the last frame, and when it changed
        self._compiled = ""  # the text that the picture is made of
        self._is_typed = False  # the user has typed since the text was read or written; see is_changed
        # Of the panel that shows the file: the scene and its TOML text (`base`) that _follow() took in last
        self._followed: tuple[Scene | None, SceneText | None] = None, None
        app.sync_code, app.save_code, app.revert_code = self.sync, self.save, self.revert  # called by window/state
        self._marked = ""  # the error sentence whose line is marked

    @property
    def is_changed(self) -> bool:
        """True if typing has made the text differ from the text of the file."""
        return self._is_typed and self.path is not None and self.editor.get_text() != self._saved

    def update(self) -> None:
        """Opens the active panel's file, and compiles a text that was typed; called in each frame."""
        if self.app.overlays.code:
            files = text_files(self.app.panel)
            # A new scene has no text yet; the first of its files is then a GLSL pass of the program
            is_saved = self.app.panel.original.path.is_file() or not files[0].is_relative_to(SHADERS)
            first = files[0] if is_saved else None
            if self.path not in (*files, first) and not self.is_changed:
                self.open(first)
        if self.path is None:
            return
        # save_files.py clears `code_changed` as it saves the text with its scene.
        self._is_typed &= self.app.code_changed is not None
        if not self._is_typed and file_stamp(drafts.file_of(self.path)) not in (self._stamp, None):
            self.open(self.path)  # another program or save_scene() has written the file
        text = self.editor.get_text()
        if text != self._typed:
            if len(text) == len(self._typed) + 1:  # one character was typed
                self._indent_brace()
                text = self.editor.get_text()
            self._typed, self._typed_at, self._is_typed = text, self.app.now(), True
            self.app.code_typed_at = self._typed_at
        if text != self._compiled and self.app.now() - self._typed_at >= COMPILE_SECONDS:
            self._compile(text)
        if self.app.overlays.code or self._is_typed:
            self._follow(at_rest=True)
        self.app.code_changed = self.path if self.is_changed else None

    @property
    def _own_panel(self) -> Panel | None:
        """The panel whose own file is edited, the active one of several."""
        panels = [self.app.panel, *self.app.panels]
        return next((panel for panel in panels if panel.original.path == self.path), None)

    def _follow(self, at_rest: bool = False) -> None:
        """Takes what was changed over the picture into its text, if the text draws without an error.

        `at_rest`: not while the user drags something.
        """
        panel, text = self._own_panel, self.editor.get_text()
        if panel is None or at_rest and panel.is_interacting(self.app.now()):
            return
        # `base` is the TOML text of a scene file; `kept_scene` is the scene without what its file does not hold, and
        # `file.in_text` the scene that the text describes already.
        is_followed = panel.scene is self._followed[0] and panel.base is self._followed[1]
        if is_followed or text != self._compiled or panel.short_error:
            return
        is_in_text = panel.kept_scene == panel.file.in_text and (panel.base is None or panel.base.text == text)
        if is_in_text or text == self._saved and not panel.has_unsaved_work:
            return
        self._followed = panel.scene, panel.base
        with self.app.errors_as_messages("showing the changes of the picture in its text", ValueError):
            new = save_files.document_text(panel)
            if new is None:
                return
            panel.file.in_text = panel.kept_scene
            if new != text:
                at, position, lines = self.editor.get_main_cursor_position(), self.editor.DocPos, text.split("\n")
                last = position(len(lines) - 1, len(lines[-1]))
                self.editor.replace_section_text(position(0, 0), last, new)  # as one step of the editor's undo
                self.editor.set_cursor(at)
                self._typed = self._compiled = self.editor.get_text()
                if self.path in drafts.texts:
                    drafts.texts[self.path] = self._typed

    def sync(self) -> None:
        """Compiles a typed text at once, and takes what was changed over the picture into it."""
        text = self.editor.get_text()
        if self.path is not None and text != self._compiled:
            self._typed, self._is_typed = text, True
            self._compile(text)
        self._follow()

    def revert(self) -> None:
        """Shows the file again: its text, and its picture without what was changed there."""
        panel = self._own_panel
        self.open(self.path)
        if panel is not None and panel.is_changed:
            open_files.show_file(self.app, panel)

    def _indent_brace(self) -> None:
        """Gives a brace that was typed first in its line the indentation of the line that opens it."""
        at, lines = self.editor.get_main_cursor_position(), self.editor.get_text().split("\n")
        before, position = lines[at.line][: at.index], imgui_color_text_edit.TextEditor.DocPos
        depth = 1  # braces that are closed below a line and not opened in or below it
        for line in reversed(lines[: at.line] if before.lstrip() == "}" else []):
            code = line.partition("//")[0]
            depth += code.count("}") - code.count("{")
            if depth <= 0:
                brace = f"{code[: len(code) - len(code.lstrip())]}}}"
                if brace != before:
                    self.editor.replace_section_text(position(at.line, 0), position(at.line, at.index), brace)
                    self.editor.set_cursor(position(at.line, len(brace)))
                return

    @property
    def waits_for_keys(self) -> bool:
        """True if a typed text will be compiled: the window must draw a frame then."""
        return self.path is not None and self._typed != self._compiled

    def open(self, path: Path | None) -> None:
        """Shows the text of a file; None shows an empty text, and so does a file that cannot be read (InputError)."""
        self._drop_draft()
        self.path, self._marked, self._is_typed, self._followed = path, "", False, (None, None)
        self._stamp = file_stamp(drafts.file_of(path)) if path is not None else None
        self._set_text("")  # what was shown is the text of another file
        if path is not None:
            language = imgui_color_text_edit.TextEditor.Language
            languages = {".cb": language.c, ".frag": language.glsl, ".glsl": language.glsl}
            self.editor.set_language(languages.get(path.suffix, language.markdown)())
            self._set_text(read_text(drafts.file_of(path), MAX_CHARACTERS))

    def _set_text(self, text: str) -> None:
        self.editor.set_text(text)
        self._saved = self._typed = self._compiled = self.editor.get_text()  # read back: it normalizes line ends

    def _drop_draft(self) -> None:
        """Lets readers of the file see the saved text again."""
        if self.path is not None and drafts.texts.pop(self.path, None) is not None:
            open_files.reload(self.app, {self.path}, shaders=self._is_pass, is_quiet=True)

    @property
    def _is_pass(self) -> bool:
        """True if the file is a GLSL pass of the program, which all panels then compile anew."""
        return self.path is not None and self.path.is_relative_to(SHADERS)

    def _compile(self, text: str) -> None:
        """Makes the pictures of the edited text, which is not saved."""
        assert self.path is not None
        self._compiled = text
        drafts.texts[self.path] = text
        open_files.reload(self.app, {self.path}, shaders=self._is_pass, is_quiet=True)

    def save(self, copy: Path | None = None) -> None:
        """Writes the file and reloads the panels that show it; a file of the program to a copy, or asks for one."""
        if self.path is None:
            return
        with self.app.errors_as_messages("saving the program"):
            self.sync()
            file, panel = drafts.file_of(self.path), self._own_panel
            if copy is not None:
                self._save_copy(copy)
            elif not is_bundled(file):
                stamp = panel.file.stamp if panel is not None else self._stamp
                unsaved.write_over(self.app, file, stamp, lambda: self._write(file), self.revert)
            elif self.path == creation.UNTITLED_SHADER == self.app.panel.original.path:
                save_files.save_scene_as(self.app)
            else:
                start = Path.cwd() / self.path.name
                self.app.show_message(f"{self.path.name} comes with the program, which stays as it is: choose a copy")
                self.app.ask_file("Save a copy of your own", start, (self.path.suffix,), self._save_copy, saves=True)

    def _save_copy(self, copy: Path) -> None:
        """Writes the text to the user's copy, which the panels show from now on."""
        assert self.path is not None
        open_files.check_own(copy)
        if self._is_pass:  # pictures know it by its original path
            drafts.copies[self.path] = copy
            self._write(copy)
            return
        open_files.save_copy(self.app, self.app.panels, self.path, copy, self.editor.get_text())
        self.open(copy)
        self.app.show_message(f"saved {copy.name}, which the panel now shows")

    def _write(self, path: Path) -> None:
        assert self.path is not None
        text = self.editor.get_text()
        write_text(path, text)
        self._saved, self._stamp, self._is_typed = text, file_stamp(path), False
        drafts.texts.pop(self.path, None)
        self.app.file_watcher.accept(path)
        open_files.reload(self.app, {self.path}, shaders=self._is_pass, is_quiet=True)
        for panel in self.app.panels:
            panel.file.stamp = self._stamp if panel.original.path == path else panel.file.stamp
        self.app.reloaded = f"saved {path.name}"
        open_files.report_reload(self.app)

    def draw(self) -> None:
        """Draws into the current window."""
        panel = self.app.panel
        self.is_focused = imgui.is_window_focused(imgui.FocusedFlags_.child_windows)
        if self.path is None:
            imgui.text_wrapped("no text yet: once Ctrl+S over the picture has saved this scene, it is edited here")
            return
        is_save_pressed = imgui.is_key_chord_pressed(imgui.Key.mod_ctrl | imgui.Key.s)
        if imgui.button("Save (Ctrl+S)") or self.is_focused and is_save_pressed:
            self.save()
        imgui.same_line()
        if theme.button("Revert", "text and picture as they were saved last"):
            self.revert()
        imgui.same_line()
        if imgui.button("Hide (Ctrl+J)"):
            self.app.overlays.code.is_on = False
        imgui.same_line()
        is_shader = self.path.suffix in open_files.SHADER_SUFFIXES and not self._is_pass
        if is_shader and theme.button("Add buffer", "a pass before the image that reads its own last frame"):
            with self.app.errors_as_messages("adding a buffer"):
                self.editor.set_text(with_buffer(self.editor.get_text()))
        imgui.same_line()
        if imgui.get_content_region_avail().x < MIN_CHOICE * self.scale:
            imgui.new_line()
        self._choose_file(text_files(panel))
        self._mark(panel.short_error)
        if panel.short_error and (line := error_line(panel.short_error, self.path.name)):
            with imgui_ctx.push_style_color(imgui.Col_.text, theme.WARNING):
                imgui.text_wrapped(f"line {line}: {panel.short_error.partition(f':{line}: ')[2] or panel.short_error}")
        self._limit_paste()
        with imgui_ctx.push_font(self.fonts.numbers, theme.FONT_SIZE):
            with imgui_ctx.begin_child("##text"):
                for chord in ROUTED_CHORDS:
                    imgui.shortcut(chord)
            self.editor.render("##text", imgui.ImVec2(0, 0))

    def _choose_file(self, files: list[Path]) -> None:
        """A list of the panel's files; a changed text must be saved or reverted before another is opened."""
        assert self.path is not None
        shown = f"{printable(self.path.name)}{' (not saved)' if self.editor.get_text() != self._saved else ''}"
        current = files.index(self.path) if self.path in files else -1
        imgui.set_next_item_width(-1)
        imgui.begin_disabled(self.is_changed)
        names = [printable(f"{path.name}{' (of the program)' if is_bundled(path) else ''}") for path in files]
        chosen = choose_index("##file", shown, names, current)
        imgui.end_disabled()
        if chosen is not None:
            with self.app.errors_as_messages("opening the program"):
                self.open(files[chosen])

    def _limit_paste(self) -> None:
        """Makes the text read-only in the frame of a key that would paste more than can be edited here."""
        io, is_pressed = imgui.get_io(), imgui.is_key_pressed
        pasted = io.key_ctrl and is_pressed(imgui.Key.v) or io.key_shift and is_pressed(imgui.Key.insert)
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
        self.editor.set_show_matching_brackets(line is None)  # an unmatched bracket is red, as the marked line is
        if error and line is not None:
            color = theme.color_u32(ERROR_COLOR)
            self.editor.add_marker(min(line, self.editor.get_line_count()) - 1, color, color, error, error)
