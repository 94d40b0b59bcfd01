"""The state of one window, and the actions that open, close and replace panels: class AppState.

window/command.py makes it from a session; keys, mouse and controls receive it as `app` and change it. `panels` holds
the panels, the active one and their layout; a panel holds its scene, selection and time. `overlays` holds the open
overlays and the timeline's switch, `input` the mode of the next click. main_loop.py decides which panel draws next.
Nothing here draws controls (app/main_window.py does) or opens a window (app/backends.py does).
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import starmap, zip_longest
from pathlib import Path

from renderer.gpu import DeviceContext
from renderer.gpu.cache import cache_folder
from renderer.gpu.kernel_source import clear_source_cache
from renderer.records import dataclass, field, replace
from renderer.scene.scene import Scene
from renderer.system import drafts
from renderer.system.process import unfinished_work
from renderer.window.boundary import contained
from renderer.window.controls.file_dialog import FileDialog
from renderer.window.controls.shortcuts import Action
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.completion import Clock, SuspendableWork
from renderer.window.panels.measurements import FrameRateCounter
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_picture import PanelHost
from renderer.window.state import layout
from renderer.window.state import session as session_files
from renderer.window.state.file_watcher import FileWatcher
from renderer.window.state.history import PanelsState, UndoStack, difference, renamed
from renderer.window.state.layout import LayoutNode
from renderer.window.state.lesson_reader import LessonReader
from renderer.window.state.open_panels import OpenPanels
from renderer.window.state.overlay_state import InputMode, OverlayState
from renderer.window.state.picture_export import PictureExport, StillOptions
from renderer.window.state.session import MAX_PANELS, KeptSession, RecentFiles, SavedPanel, Session, default_path

CLOSE_SECONDS = 0.5  # the longest time that close() waits for devices
MESSAGE_SECONDS = 4.0  # duration of a message


@dataclass
class Screenshots:
    """The requested screenshots, which are written as soon as their picture is complete."""

    window: Path | None = None  # the next frame of the window
    panel: Panel | None = None  # once it shows a whole sample


@dataclass
class LoopState:
    """The state of the main loop (main_loop.py) from frame to frame."""

    frame_rate: FrameRateCounter = field(default_factory=FrameRateCounter)
    needs_frame: bool = False  # an editor asks for another frame although no panel draws
    is_idle_input: bool = True  # no button is held and no control is edited: the state is worth an undo step
    quit_requested: bool = False
    lost_device: str = ""  # a sentence about the device that no longer responds; if set, the window ends
    drew_first_frame: bool = False
    next_save: float = 0.0  # seconds of the clock, before which no session is saved
    pixels: float = 1.0  # framebuffer pixels per unit of the window
    display_interval: float = 0.0  # most seconds between two displays of a picture that refines

    def quit(self) -> None:
        """Ends the main loop after this frame."""
        self.quit_requested = True


class AppState:
    """All state of the window except Dear ImGui's, made from a session.

    `session_path` is the file that the session is saved to; None saves none. `clock` returns seconds.
    """

    def __init__(
        self, session: Session, gpu: DeviceContext, session_path: Path | None = None, clock: Clock = time.perf_counter
    ):
        self.gpu, self.now, self._session_path = gpu, clock, session_path
        self.device = "auto"  # the device of exports, by its name for --device
        self.wake: Callable[[], None] = lambda: None  # ends the window's wait for events; called on another thread
        self._completion_thread = ThreadPoolExecutor(1, "device")
        self.work = SuspendableWork(lambda: self.wake())  # an action that may wait for a compiler
        panels = self._make_panels(session.panels)
        self.panels = OpenPanels(panels, session.active, session.columns, session.layout, session.solo)
        self.overlays = OverlayState()
        self.input = InputMode()
        self.loop = LoopState()
        self.lesson: LessonReader | None = None  # the open lesson
        self.export: PictureExport | None = None  # the running or last export
        self.message, self._message_until = "", 0.0
        # files
        self.screenshots = Screenshots()
        self.file_watcher = FileWatcher()
        self.recent = RecentFiles(session_path and session_path.parent / "recent.json")

        self.dialog: FileDialog | None = None  # the file dialog that is open
        self.native_dialogs = False  # the system's file dialog asks first
        self.reloaded = ""  # the message about edited files, until they are drawn
        self.code_typed_at = -1e9  # time of the last change of the code panel's text, in seconds of the clock
        self.code_changed: Path | None = None  # the file whose text in the code panel is not saved
        self.sync_code: Callable[[], None] = lambda: None  # makes the code panel's text and its picture agree
        self.save_code: Callable[[Path | None], None] = lambda copy: None  # saves the code panel's text, or a copy
        self.revert_code: Callable[[], None] = lambda: None  # shows the code's file again, and its picture
        self.kept_sessions: list[KeptSession] = []  # the sessions that the menu Open lists
        self._opened_session = session
        self._saved_session: Session | None = None
        self._save_failure = ""
        self._undo_stack = UndoStack(self._panels_state())
        self._steps_before = 0  # steps in _undo_stack when the session was opened

    def _make_panels(self, saved: Iterable[SavedPanel]) -> list[Panel]:
        """New panels for the saved panels of a session."""
        folder = cache_folder() / "pictures" if self._session_path else None
        host = PanelHost(self.gpu, self._completion_thread, lambda: self.wake(), self.now, folder)
        panels = []
        for each in saved:
            panel = Panel(each.scene, host, each.base)
            panel.paused |= each.paused
            panel.file.stamp = each.stamp or panel.file.stamp
            # Unsaved work that neither the text nor the file shows is in the session's settings alone
            panel.file.is_behind = each.unsaved and not panel.has_unsaved_work
            # An input that cannot be read counts as open, so that main_loop.py does not try to open its picture
            panel.error, panel.is_open = each.error, bool(each.error)
            panels.append(panel)
        return panels

    @property
    def panel(self) -> Panel:
        """The active panel."""
        return self.panels[self.panels.active]

    def show_ball(self, scene: Scene) -> Panel:
        """Shows a small scene beside the controls; returns its panel, which has no place in the layout."""
        if self.panels.ball is None:
            [self.panels.ball] = self._make_panels([SavedPanel(scene)])
        self.panels.ball.show(scene)
        return self.panels.ball

    # Messages and actions

    def show_message(self, message: str) -> None:
        """Shows a message over the panels for MESSAGE_SECONDS."""
        self.message, self._message_until = message, self.now() + MESSAGE_SECONDS

    def current_message(self, now: float) -> str:
        """The message that is shown at `now`, or the empty text."""
        return self.message if now < self._message_until else ""

    def errors_as_messages(self, doing: str, *refusals: type[Exception]) -> contained:
        """A context manager that shows any error of its block as a message; internal errors name `doing` and their log.

        `refusals`: exceptions that are the user's errors, such as a scene's ValueError for values that do not fit.
        """
        return contained(doing, lambda error, sentence: self.show_message(sentence), refusals)

    def ask_file(
        self, title: str, start: Path, suffixes: tuple[str, ...], choose: Callable[[Path], None], saves: bool = False
    ) -> None:
        """Opens a file dialog; choose(path) takes its answer."""
        if self.dialog is not None:
            self.dialog.cancel()
        self.dialog = FileDialog(title, start, suffixes, choose, saves)
        if self.native_dialogs:
            self.dialog.ask_system()

    def run(self, action: Action) -> None:
        """Runs the action of a key, a button or the palette."""
        with self.errors_as_messages(action.name):
            action.run(self)

    def start_export(self, panel: Panel, options: StillOptions, path: Path) -> None:
        """Starts the export of a panel's scene; raises UserError."""
        self.export = PictureExport.start(panel, path, options, self.device)

    def follow_export(self) -> None:
        """Polls the running export; a message says how it ended."""
        if self.export is not None and (ending := self.export.poll()):
            self.show_message(ending)

    # The session

    def session(self, clean: bool = False) -> Session:
        """The current session; `clean` if the user closes the window.

        It is `edited` if it has unsaved changes that were made in this window or before in the opened session. `edits`
        counts the steps of undo in both. session.py keeps sessions with edits apart from sessions without: of each kind
        the newest displace the oldest.
        """
        panels, opened = self.panels, self._opened_session
        saved = [SavedPanel(p.scene_of_session(), p.base, p.paused, p.file.stamp, p.has_unsaved_work) for p in panels]
        session = Session(tuple(saved), panels.active, panels.columns, panels.maximized.is_on, clean, panels.layout)
        edited = (opened.edited or session.scenes != opened.scenes) and any(panel.unsaved for panel in saved)
        edits = max(opened.edits + self._undo_stack.steps - self._steps_before, 0) if edited else 0
        return replace(session, edited=edited, edits=edits)

    def save(self, clean: bool = False) -> None:
        """Saves the session if it changed. A failure is reported once; the next save tries again.

        At the end of the window, if the scenes are the restored ones, the kept session that they were restored from is
        removed: the session that was just saved holds the same.
        """
        if self._session_path is None:
            return
        with contained("saving the session", self._report_unsaved):
            session = self.session(clean)
            if session != self._saved_session:
                session_files.save(session, self._session_path)
                self._saved_session, self._save_failure = session, ""
            if clean and session.scenes == self._opened_session.scenes:
                session_files.answer(self.session_base, self._opened_session.origin, removes=True)

    def _report_unsaved(self, error: Exception, text: str) -> None:
        if text != self._save_failure:
            self._save_failure = text
            self.show_message(f"no session is saved: {text}")

    @property
    def session_base(self) -> Path:
        """The session file of the first window; kept sessions lie in its folder, under names made from its name."""
        return (self._session_path or default_path()).with_name(default_path().name)

    def restore(self, path: Path | None = None) -> None:
        """Restores the panels of a kept session, of the newest if none is given."""
        with self.errors_as_messages("restoring a session"):
            session = session_files.restore(path) if path else session_files.restore_nth(self.session_base)
            self.replace_panels(session)
            self._opened_session, self._steps_before = session, self._undo_stack.steps
            session_files.answer(self.session_base, session.origin)

    def replace_panels(self, session: Session) -> None:
        """Replaces all panels by the panels of a session."""
        with self.undo_step():
            self._set_panels(self._make_panels(session.panels), session.active, session.layout)
            self.panels.columns, self.panels.maximized.is_on = session.columns, session.solo

    # Undo

    def _panels_state(self) -> PanelsState:
        """The state of the open panels, for the stack of undo."""
        panels = tuple(self.panels)
        documents, files = tuple(panel.document for panel in panels), tuple(panel.file for panel in panels)
        return PanelsState(panels, documents, files, self.panels.active, self.panels.layout)

    def record(self) -> None:
        """Records the shown scenes as a step of undo."""
        self._undo_stack.push(self._panels_state())

    def record_change(self) -> None:
        """Records the shown scenes as a step of undo, if they differ from the last step."""
        if self._undo_stack.differs(self._panels_state()):
            self.record()

    def record_name(self, panel: Panel, path: Path, old_title: str, title: str) -> None:
        """Gives the recorded states of a panel the path and title under which it was saved: saving is no step of undo.

        record_change() was called before.
        """
        self._undo_stack.rewrite(lambda state: renamed(state, panel, path, old_title, title), self._panels_state())

    @contextmanager
    def undo_step(self) -> Iterator[None]:
        """Records the changes of a block as one step of undo, separate from earlier changes."""
        self.record()
        yield
        self.record()

    def undo(self) -> None:
        """Undoes the last change of a scene or of the open panels."""
        self._restore_state(self._undo_stack.undo(self._panels_state()), "undo")

    def redo(self) -> None:
        """Redoes the change that was undone last."""
        self._restore_state(self._undo_stack.redo(), "redo")

    def replaced_by_undo(self) -> list[Panel]:
        """The panels that undo() gives another document."""
        state = self._undo_stack.previous(self._panels_state())
        shown = zip(state.panels, state.documents, strict=True) if state is not None else ()
        return [panel for panel, document in shown if panel in self.panels and document.scene.path != panel.scene.path]

    def _restore_state(self, state: PanelsState | None, what: str) -> None:
        """Shows a state again, with a message about `what` it changes."""
        if state is None:
            self.show_message(f"nothing to {what}")
            return
        self.show_message(f"{what}: {difference(self._panels_state(), state, what == 'undo')}")
        if state.panels != tuple(self.panels):
            self._set_panels(list(state.panels), state.active, state.layout)
        for panel, document, file in zip(state.panels, state.documents, state.files, strict=True):
            panel.base = document.base  # the scene's TOML text
            if file.original.path != panel.original.path:  # a panel of the same file keeps what is known of it now
                panel.file = file
            panel.show(document.scene)

    # Open and close panels

    def _set_panels(self, panels: Sequence[Panel], active: int, arranged: LayoutNode | None) -> None:
        """Opens these panels and closes the others, which undo may open again."""
        for panel in self.panels:
            if panel not in panels:
                with self.errors_as_messages("closing a panel"):
                    panel.draw_loop.keep_picture()
                    panel.shelve()
        self.panels.replace(panels, active, arranged)

    def add_panels(self, scenes: Sequence[Scene], bases: Sequence[SceneText | None] = ()) -> None:
        """Adds a panel for each scene, up to MAX_PANELS, beside the active one; `bases` are their texts, if known."""
        free = MAX_PANELS - len(self.panels)
        if len(scenes) > free:
            self.show_message(f"a window holds at most {MAX_PANELS} panels")
        with self.undo_step():
            for panel in self._make_panels(starmap(SavedPanel, zip_longest(scenes[:free], bases[:free]))):
                self.panels.insert_beside_active(panel)

    def close_panel(self) -> None:
        """Closes the active panel, unless it is the only one."""
        panels = self.panels
        if len(panels) == 1:
            self.show_message("the last panel stays open")
            return
        with self.undo_step():
            rest = [panel for panel in panels if panel is not self.panel]
            remaining = None if panels.layout is None else layout.remove(panels.layout, panels.active)
            self._set_panels(rest, panels.active, remaining)

    def toggle_keyboard_navigation(self) -> None:
        """Moves the keyboard focus to the controls, or back."""
        navigation, sidebar = self.input.keyboard_navigation, self.overlays.sidebar
        navigation.toggle()
        sidebar.is_on |= navigation.is_on
        if navigation:
            self.show_message("arrows and Enter work the controls; F6 or Escape returns to the panels")

    def escape(self) -> None:
        """Closes or cancels the topmost thing that is open."""
        overlays, modes = self.overlays, self.input
        if self.dialog or overlays.dropped:
            if self.dialog:
                self.dialog.cancel()
            self.dialog = overlays.dropped = None  # `dropped`: a dropped file, about which a dialog asks
            return
        # In the order in which Escape turns them off: the topmost layer first.
        over = overlays.palette, overlays.picture, overlays.film, overlays.reference, overlays.help, overlays.code
        rest = modes.picking, overlays.inspector, self.panels.maximized
        for switch in (modes.dragging_panel, modes.picture_keys, *over, *rest):
            if switch:
                switch.is_on = False
                return

    def close(self, clean: bool = True) -> None:
        """Saves the session and closes all panels; does not wait for a device that works for long."""
        self.save(clean)
        if self.code_changed is not None and drafts.texts.pop(self.code_changed, None) is not None:
            clear_source_cache()  # other windows of this process, which `serve` opens, read the file again
        self.file_watcher.close()
        self.work.cancel()
        if self.export is not None:
            self.export.close()
        if self.lesson is not None:
            self.lesson.cancel()
        idle = self._completion_thread.submit(int)  # done once the thread waits for no device
        if wait([idle], CLOSE_SECONDS).done:
            for panel in self.panels.with_material_ball():
                with self.errors_as_messages("closing a panel"):
                    panel.draw_loop.keep_picture()
                    panel.close()
        else:
            unfinished_work.add(idle)  # the process then ends without waiting for the device (system/process.py)
        self._completion_thread.shutdown(wait=False)
