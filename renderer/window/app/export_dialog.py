"""The dialogs that export a picture or a film: options and output file, then the progress with a button that cancels.

state/picture_export.py runs the export in a child process.
"""

from functools import partial
from importlib.util import find_spec

from renderer.window.controls import imgui, theme
from renderer.window.controls.settings import ControlContext, edit_settings
from renderer.window.panels.panel import Panel
from renderer.window.state import AppState, open_files
from renderer.window.state.overlay_state import Switch
from renderer.window.state.picture_export import FILM_SUFFIXES, STILL_SUFFIXES, PictureExport, StillOptions, options_for


class ExportDialog:
    """The dialog of pictures, or of films; `switch` opens it."""

    def __init__(self, app: AppState, switch: Switch, is_film: bool):
        self.app, self.switch, self.is_film = app, switch, is_film
        self.title = "Export a film" if is_film else "Export a picture"
        self.options: StillOptions | None = None
        self._panel: Panel | None = None  # the panel that the options are for
        self._before: PictureExport | None = None  # an earlier export, whose message is old

    def draw(self, width: float, height: float, scale: float) -> None:
        """Draws over a window of width x height units, while the dialog is open."""
        if not self.switch or self.app.dialog is not None:
            self.options = self.options if self.switch else None  # kept while the file dialog is open over this one
            return
        if self.options is None or self._panel is not self.app.panel:
            self._panel, self.options = self.app.panel, options_for(self.app.panel, self.is_film)
            self._before = self.app.export
        low, high = (min(width * 0.9, 440 * scale), 0.0), (width * 0.94, height * 0.94)
        self.switch.is_on = theme.begin_dialog(self.title, low, high, imgui.WindowFlags_.always_auto_resize)
        export = self.app.export
        if export is not None and export.is_running:
            self._progress(export)
        else:
            self._form(self.app.panel, self.options)
        imgui.end()

    def _progress(self, export: PictureExport) -> None:
        imgui.text_wrapped(str(export.output))
        imgui.progress_bar(export.fraction, (-1, 0), export.status)
        if imgui.button("Cancel the export"):
            export.cancel()
        theme.hint("closing this dialog does not: the toolbar shows the progress")

    def _form(self, panel: Panel, options: StillOptions) -> None:
        """The options, the button that asks for a file and starts the export, and the state of an export."""
        time = "" if self.is_film or not panel.is_animated else f", at {panel.scene_time:.2f} s"
        imgui.text_wrapped(panel.scene.title + time)
        if self.is_film and not panel.is_animated:
            imgui.text_colored(theme.WARNING, "nothing moves in this scene: the frames will be equal")
        if panel.keeps_pixels:  # each frame is made of the frame before
            imgui.text_disabled("drawn anew from frame 0, with the present values")
        context = ControlContext(hidden=() if panel.can_denoise else ("denoise",))
        self.options = options = edit_settings(options, options_for(panel, self.is_film), context)
        if self.is_film:
            imgui.text_disabled(f"{options.frames} frames; NAME_####.png writes a picture of each")
            if find_spec("av") is None:
                imgui.text_colored(theme.WARNING, "videos need the package av, which is not installed")
        if imgui.button("Export..."):
            suffixes = FILM_SUFFIXES if self.is_film else STILL_SUFFIXES
            suffixes = suffixes[::-1] if self.is_film and find_spec("av") is None else suffixes
            start = open_files.scene_folder(self.app) / f"{panel.original.path.stem}{suffixes[0]}"
            self.app.ask_file(self.title, start, suffixes, partial(self.app.start_export, panel, options), saves=True)
        imgui.same_line()
        if imgui.button("Close"):
            self.switch.is_on = False
        if self.app.export is not None and self.app.export is not self._before:
            imgui.text_wrapped(self.app.export.message)
