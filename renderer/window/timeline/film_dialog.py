"""The dialog that exports a film: options and output file, then the progress with a button that cancels the export.

state/film_export.py runs the export in a child process.
"""

from pathlib import Path

from renderer.export.frames import VIDEO_SUFFIXES
from renderer.window.controls import theme
from renderer.window.controls.settings import edit_settings
from renderer.window.controls.toolkit import imgui
from renderer.window.state import open_files
from renderer.window.state.app_state import AppState
from renderer.window.state.film_export import FilmExport, FilmOptions, options_for


class FilmDialog:
    """The dialog and the film that is being exported."""

    def __init__(self, app: AppState):
        self.app = app
        self.options: FilmOptions | None = None
        self.message = ""

    def draw(self, width: float, height: float, scale: float) -> None:
        """Draws over a window of width x height units, while the dialog is open or a film is exported."""
        app, film = self.app, self.app.film
        if film is not None:
            running = film.is_running
            film.poll()
            if running and not film.is_running:
                app.show_message(film.message)
                self.message = film.message
        if not app.overlays.film or app.dialog is not None:
            self.options = self.options if app.overlays.film else None
            return
        if self.options is None:
            self.options, self.message = options_for(app.panel), ""
        low, high = (min(width * 0.9, 440 * scale), 0.0), (width * 0.94, height * 0.94)
        app.overlays.film.is_on = theme.begin_dialog("Export a film", low, high, imgui.WindowFlags_.always_auto_resize)
        if film is not None and film.is_running:
            self._progress(film)
        else:
            self._form()
        imgui.end()

    def _progress(self, film: FilmExport) -> None:
        imgui.text_wrapped(str(film.output))
        done = film.frames_done()
        imgui.progress_bar(film.fraction, (-1, 0), f"frame {done} of {film.options.frames}")
        if imgui.button("Cancel the export"):
            film.cancel()
        imgui.same_line()
        if theme.button("Hide", "the export goes on; the timeline shows its progress"):
            self.app.overlays.film.is_on = False

    def _form(self) -> None:
        assert self.options is not None
        panel = self.app.panel
        imgui.text_wrapped(panel.scene.title)
        if not panel.is_animated:
            imgui.text_colored(theme.WARNING, "nothing moves in this scene: the frames will be equal")
        self.options = edit_settings(self.options, options_for(panel))
        imgui.text_disabled(f"{self.options.frames} frames")
        if imgui.button("Export..."):
            start = open_files.scene_folder(self.app) / f"{panel.original.path.stem}.mp4"
            self.app.ask_file("Export a film", start, VIDEO_SUFFIXES, self._start, saves=True)
        imgui.same_line()
        if imgui.button("Cancel"):
            self.app.overlays.film.is_on = False
        if self.message:
            imgui.text_wrapped(self.message)

    def _start(self, path: Path) -> None:
        assert self.options is not None
        self.app.film = FilmExport.start(self.app.panel, path, self.options, self.app.device)
