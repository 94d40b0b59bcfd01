"""The state of the window and its actions: panels, the active one, messages, undo, and which panel draws next.

Nothing here draws controls (app/main_window.py does) or opens a window (app/backends.py does).
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from renderer.gpu import DeviceContext
from renderer.images.denoise import check_installed as check_denoiser
from renderer.process import unfinished_work
from renderer.scene.animation import apply_edit
from renderer.scene.scene import Scene
from renderer.scene.schema import check_numbers
from renderer.window.boundary import Containment, contained
from renderer.window.controls.shortcuts import Action
from renderer.window.controls.step import step_setting
from renderer.window.controls.theme import Rect
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.completion import SuspendableWork
from renderer.window.panels.frame_rate import FrameRateCounter
from renderer.window.panels.panel import Panel
from renderer.window.state import layout
from renderer.window.state.file_dialog import FileDialog
from renderer.window.state.file_watcher import FileWatcher
from renderer.window.state.film_export import FilmExport
from renderer.window.state.history import PanelsState, panels_state, show_again
from renderer.window.state.layout import LayoutNode
from renderer.window.state.lesson_reader import LessonReader
from renderer.window.state.recent import RecentFiles
from renderer.window.state.session import MAX_PANELS, Session, default_path, previous_path, restore, save
from renderer.window.state.undo import UndoStack

DRAW_SECONDS = 0.03  # of a frame that panels may draw in the window's GL; at least one panel draws
CLOSE_SECONDS = 0.5  # that close() waits for devices
SAVE_INTERVAL = 3.0  # seconds between two saves of the session
MESSAGE_SECONDS = 4.0  # a message is shown
GAP = 4  # window units between panels


class AppState:
    """All state of the window that is not Dear ImGui's, from a session.

    `session_path` is the file that the session is saved to; None saves none. `clock` returns seconds.
    """

    def __init__(
        self,
        session: Session,
        gpu: DeviceContext,
        session_path: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self.gpu, self.now = gpu, clock
        self.wake: Callable[[], None] = lambda: None  # ends the window's wait for events; called on another thread
        self._completion_thread = ThreadPoolExecutor(1, "device")
        self.work = SuspendableWork(lambda: self.wake())  # of actions that may need a compiler
        self.panels = self._make_panels(session.scenes, session.bases)
        self.active = session.active
        # layout
        self.columns = session.columns
        self.layout = session.layout  # None is a grid of `columns`
        self.layout_root: LayoutNode = 0  # of the visible panels
        self.area: Rect = (0, 0, 1, 1)  # of the window, for the panels
        self.placed: list[Panel] = []  # that this frame shows, even if an action closes some
        self.panel_rects: list[Rect] = []  # of these panels, in window units
        self.image_rects: list[Rect] = []  # of their pictures, between the title bar and the status bar
        # what is open
        self.solo = session.solo
        self.fullscreen = False
        self.sidebar = True
        self.help = self.palette = self.inspector = self.timeline = self.tracks = self.reference = self.code = False
        self.tour: int | None = None  # the step that is shown
        self.lesson: LessonReader | None = None  # that is read beside the panels
        self.tour_marker: Path | None = None  # a file that is made when the tour is dismissed
        self.picking = False  # the next click picks the focus
        self.adding = False  # the Add menu opens in the next frame
        self.dragging_panel = False
        self.keyboard_navigation = False  # the keyboard works the controls
        self.message, self._message_until = "", 0.0
        # the main loop
        self.frame_rate = FrameRateCounter()
        self.needs_frame = False  # an editor has more to do although no panel draws
        self.is_idle_input = True  # no button is held and no control is edited: the state is worth an undo step
        self.quit_requested = False
        self.lost_device = ""  # a sentence about the device that no longer responds, which ends the window
        self._drew_first_frame = False
        # files
        self.pending_window_screenshot: Path | None = None
        self.pending_screenshot: Panel | None = None  # written once it shows a whole sample
        self.file_watcher = FileWatcher()
        self.recent = RecentFiles(session_path and session_path.parent / "recent.json")
        self.dialog: FileDialog | None = None  # the file dialog that is open
        self.native_dialogs = False  # whether the system's file dialog asks first
        self.device = "auto"  # as --device names it, for exports
        self.film: FilmExport | None = None  # that is exported, or was last
        self.film_dialog = False
        self.dropped: Path | None = None  # a file that was dropped, until the user says what to do with it
        self.presets_cache: tuple[tuple[Path, str], list[Scene]] | None = None  # folder and kind, and their scenes
        self._session_path, self._saved_at = session_path, 0.0
        self._saved_session: Session | None = None
        self._undo_stack = UndoStack(self._panels_state())

    def _make_panels(self, scenes: Sequence[Scene], bases: Sequence[SceneText | None] = ()) -> list[Panel]:
        pairs = zip(scenes, bases or [None] * len(scenes), strict=True)
        more = self._completion_thread, lambda: self.wake(), self.now
        return [Panel(scene, self.gpu, *more, base) for scene, base in pairs]

    @property
    def panel(self) -> Panel:
        """The active panel."""
        return self.panels[self.active]

    def visible(self) -> list[int]:
        """The panels that are displayed: all of them, or the maximized one."""
        return [self.active] if self.solo else list(range(len(self.panels)))

    def place_panels(self, left: int, top: int, width: int, height: int, bar_height: int) -> None:
        """Places the visible panels in this area of the window; small panels have no bars."""
        self.area = left, top, max(width, 1), max(height, 1)
        self.layout_root = self.active if self.solo else self.current_layout()
        rects = layout.rectangles(self.layout_root, self.area, GAP)
        self.placed = [self.panels[index] for index in self.visible()]
        self.panel_rects = [rects[index] for index in self.visible()]
        bars = [bar_height if h > 4 * bar_height and w > 6 * bar_height else 0 for _, _, w, h in self.panel_rects]
        self.image_rects = [(x, y + b, w, h - 2 * b) for (x, y, w, h), b in zip(self.panel_rects, bars, strict=True)]

    def _visible_panels(self) -> list[tuple[Panel, Rect]]:
        """The placed panels that are open, with the rectangles of their pictures."""
        placed = zip(self.placed, self.image_rects, strict=True)
        return [(panel, rect) for panel, rect in placed if panel in self.panels]

    def image_size(self, panel: Panel) -> tuple[int, int]:
        """The size of a panel's picture in window units; that of the area if the panel is not placed."""
        return next((rect[2:] for other, rect in self._visible_panels() if other is panel), self.area[2:])

    def current_layout(self) -> LayoutNode:
        """The layout of all panels: the user's, or a grid."""
        if self.layout is not None:
            return self.layout
        return layout.grid_layout(len(self.panels), self.area[2:], self.columns)

    def show_message(self, message: str) -> None:
        """Shows a message over the panels for MESSAGE_SECONDS."""
        self.message, self._message_until = message, self.now() + MESSAGE_SECONDS

    def current_message(self, now: float) -> str:
        """The message that is shown at `now`, or the empty text."""
        return self.message if now < self._message_until else ""

    def errors_as_messages(self, doing: str, *refusals: type[Exception]) -> Containment:
        """Ends a block at any error and shows it as a message; an error of ours names its log and what was `doing`.

        `refusals` are what a scene raises for values that do not fit together: a user's error.
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

    # Drawing

    def activity(self, now: float) -> str:
        """The state of the main loop: "drawing", "waiting" (a compute device works), "compiling", "flipping" or "idle".

        "flipping" means that comparisons show their two pictures in turn, or that views are made anew soon.
        """
        works = [self.work, *(panel.work for panel in self.panels)]
        if any(work.is_ready for work in works):
            return "drawing"
        for panel, (_, _, width, height) in self._visible_panels():
            with panel.errors_stay():
                is_due = panel.needs_draw((width, height), now) and not self._must_wait(panel, now)
                if is_due and not (self.lesson is not None and self.lesson.is_measuring):
                    return "drawing"
        if self.needs_frame:
            return "drawing"
        if self.film is not None and self.film.is_running or self.lesson is not None and self.lesson.is_measuring:
            return "waiting"
        waiting = any(panel.busy or panel.is_animated() and not panel.paused for panel in self.panels)
        if waiting or self.current_message(now):
            return "waiting"
        if any(work.is_waiting for work in works):
            return "compiling"
        changes = any(p.comparison.mode == "flip" or p.inspection.is_due(p) for p in self.panels)
        asks = self.dialog is not None and self.dialog.native is not None
        return "flipping" if changes or asks else "idle"

    def advance(self, now: float, seconds: float, pixels: float = 1.0) -> None:
        """Advances scene times and draws the panels that fit in a frame; `pixels` is framebuffer pixels per unit.

        The first frame draws no panel, so that the window shows what it prepares before kernels are compiled.
        """
        if not self._drew_first_frame:
            self._drew_first_frame = True
            return
        with self.errors_as_messages("an action that has waited for a compiler"):
            self.work.poll()
        for panel in self.panels:
            with panel.errors_stay():
                panel.poll()
                panel.tick(seconds)
                panel.update_tone_mapping()
        self._draw_panels(now, pixels)
        lost = next((panel for panel in self.panels if panel.device_lost), None)
        if lost:
            self.save()
            self.lost_device = f"{lost.device} is lost: {lost.error}. `rayfold view --restore` restores the panels"
            return
        self._push_undo_step(now)
        if now - self._saved_at > SAVE_INTERVAL:
            self._saved_at = now
            self.save()

    def _draw_panels(self, now: float, pixels: float) -> None:
        """Draws panels until DRAW_SECONDS are spent, the one that has waited longest first."""
        start, drawn = self.now(), False
        if self.lesson is not None:
            with self.errors_as_messages("measuring"):
                self.lesson.poll(now)
            if self.lesson.is_measuring:
                return  # panels would take the time that is measured
        for panel, (_, _, width, height) in sorted(self._visible_panels(), key=lambda item: item[0].started):
            size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
            with panel.errors_stay():
                if not panel.needs_draw(size, now) or self._must_wait(panel, now):
                    continue
                spent = self.now() - start
                if drawn and (spent + panel.expected_seconds(size, now) > DRAW_SECONDS or not panel.is_open):
                    continue
                drawn = True
                panel.draw(size, now)

    def _must_wait(self, panel: Panel, now: float) -> bool:
        """Whether another panel goes first: the one the user moves, or the one that uses the compute device."""
        others = [other for other in self.panels if other is not panel]
        if panel.uses_compute_device and any(other.busy for other in others):
            return True
        other_moves = any(other.is_interacting(now) for other in others) and not panel.is_interacting(now)
        return other_moves and panel.sample_seconds > DRAW_SECONDS / 2

    # The session

    def session(self, clean: bool = False) -> Session:
        """The current session; `clean` if the user closes the window."""
        scenes = tuple(panel.scene_of_session() for panel in self.panels)
        bases = tuple(panel.base for panel in self.panels)
        return Session(scenes, self.active, self.columns, self.solo, clean, self.layout, bases)

    def save(self, clean: bool = False) -> None:
        """Saves the session if it changed."""
        session = self.session(clean)
        if self._session_path is not None and session != self._saved_session:
            self._saved_session = session
            path, self._session_path = self._session_path, None  # a failure is reported once
            with contained("saving the session", lambda error, text: self.show_message(f"no session is saved: {text}")):
                save(session, path)
                self._session_path = path

    def restore(self) -> None:
        """Restores the panels of the session before this one."""
        with self.errors_as_messages("restoring the last session"):
            self.replace_panels(restore(previous_path(self._session_path or default_path())))

    def replace_panels(self, session: Session) -> None:
        """Replaces all panels by those of a session."""
        self.record()
        self._set_panels(self._make_panels(session.scenes, session.bases), session.active, session.layout)
        self.columns, self.solo = session.columns, session.solo
        self.record()

    # Undo

    def _panels_state(self) -> PanelsState:
        return panels_state(self.panels, self.active, self.layout)

    def record(self) -> None:
        """Makes what is shown a step of undo."""
        self._undo_stack.push(self._panels_state())

    def _push_undo_step(self, now: float) -> None:
        """Records the state when the user has released all input, so that one drag is one step."""
        state = self._panels_state()
        if self.is_idle_input and self._undo_stack.differs(state):
            if not any(panel.is_interacting(now) for panel in self.panels):
                self._undo_stack.push(state)

    def undo(self) -> None:
        """Undoes the last change of a scene, or of which panels are open."""
        self._restore_state(self._undo_stack.undo(self._panels_state()), "nothing to undo")

    def redo(self) -> None:
        """Redoes the change that was undone last."""
        self._restore_state(self._undo_stack.redo(), "nothing to redo")

    def _restore_state(self, state: PanelsState | None, message: str) -> None:
        if state is None:
            self.show_message(message)
            return
        if state.panels != tuple(self.panels):
            self._set_panels(list(state.panels), state.active, state.layout)
        show_again(state)

    def _set_panels(self, panels: list[Panel], active: int, layout: LayoutNode | None) -> None:
        """Opens these panels and closes the others, which undo may open again."""
        for panel in self.panels:
            if panel not in panels:
                with self.errors_as_messages("closing a panel"):
                    panel.shelve()
        self.panels, self.layout = panels, layout
        self.active = min(active, len(panels) - 1)

    # Actions on the active panel

    def edit_settings(self, settings: Any) -> None:
        """Sets the settings; those that have key frames get one at the current time."""
        panel = self.panel
        with self.errors_as_messages("editing settings", ValueError):
            check_numbers(settings, panel.scene.picture)
            scene = apply_edit(panel.scene, panel.scene_time, settings)
            if scene.animation != panel.scene.animation:
                panel.paused = True  # the time of the key frame stays in view
            panel.show(scene, moved=True)

    def set_view(self, view: Any) -> None:
        """Sets the view; a view that the settings refuse shows a message."""
        with self.errors_as_messages("moving the view", ValueError):
            self.edit_settings(self.panel.settings().with_view(view.rounded()))

    def toggle_denoise(self) -> None:
        """Turns denoising on or off."""
        panel = self.panel
        if not panel.can_denoise:
            self.show_message(f"a {panel.scene.picture} picture has no albedo and normal, which denoising needs")
            return
        with self.errors_as_messages("denoising"):
            check_denoiser()
            panel.toggle_denoise()
            self.show_message("denoising finished pictures" if panel.denoiser.enabled else "denoising off")

    def step_setting(self, name: str, direction: int) -> None:
        """Steps a setting forwards (1) or backwards (-1)."""
        with self.errors_as_messages("stepping a setting", ValueError):
            settings = step_setting(self.panel.settings(), name, direction)
            self.edit_settings(settings)
            self.show_message(f"{name.replace('_', ' ')}: {getattr(settings, name)}")

    def reset_scene(self) -> None:
        """Resets all settings to the scene file's."""
        self.panel.show(self.panel.original)
        self.show_message("all settings reset")

    def toggle_pause(self) -> None:
        """Pauses or resumes."""
        self.panel.paused = not self.panel.paused
        self.show_message("paused" if self.panel.paused else "resumed")

    # Actions on the window

    def select_panel(self, index: int) -> None:
        """Makes a panel the active one, if it exists."""
        if index < len(self.panels):
            self.active = index

    def next_panel(self, direction: int) -> None:
        """Makes the next (1) or the previous (-1) panel the active one."""
        self.active = (self.active + direction) % len(self.panels)

    def toggle(self, name: str) -> None:
        """Inverts one of the flags, such as "sidebar"."""
        setattr(self, name, not getattr(self, name))

    def toggle_keyboard_navigation(self) -> None:
        """Moves the keyboard focus to the controls, or back."""
        self.keyboard_navigation = not self.keyboard_navigation
        self.sidebar = self.sidebar or self.keyboard_navigation
        if self.keyboard_navigation:
            self.show_message("arrows and Enter work the controls; F6 or Escape returns to the panels")

    def escape(self) -> None:
        """Closes or cancels the topmost thing that is open."""
        if self.dialog or self.dropped:
            if self.dialog:
                self.dialog.cancel()
            self.dialog = self.dropped = None
            return
        names = "dragging_panel palette film_dialog reference code help picking inspector solo"
        for name in names.split():
            if getattr(self, name):
                setattr(self, name, False)
                return

    def add_panels(self, scenes: list[Scene]) -> None:
        """Adds a panel for each scene, up to MAX_PANELS, beside the active one."""
        free = MAX_PANELS - len(self.panels)
        if len(scenes) > free:
            self.show_message(f"a window holds at most {MAX_PANELS} panels")
        self.record()
        for panel in self._make_panels(scenes[:free]):
            self.panels.append(panel)
            if self.layout is not None:
                _, _, width, height = layout.rectangles(self.layout, self.area, GAP)[self.active]
                side = "right" if width > height else "below"
                self.layout = layout.insert(self.layout, len(self.panels) - 1, self.active, side)
            self.active = len(self.panels) - 1
        self.record()

    def close_panel(self) -> None:
        """Closes the active panel, unless it is the only one."""
        if len(self.panels) == 1:
            self.show_message("the last panel stays open")
            return
        self.record()
        rest = [panel for panel in self.panels if panel is not self.panel]
        self._set_panels(rest, self.active, None if self.layout is None else layout.remove(self.layout, self.active))
        self.record()

    def close(self, clean: bool = True) -> None:
        """Saves the session and closes all panels; does not wait for a device that works for long."""
        self.save(clean)
        self.file_watcher.close()
        self.work.cancel()
        if self.film is not None:
            self.film.close()
        if self.lesson is not None:
            self.lesson.cancel()
        idle = self._completion_thread.submit(int)
        if wait([idle], CLOSE_SECONDS).done:
            for panel in self.panels:
                with self.errors_as_messages("closing a panel"):
                    panel.close()
        else:
            unfinished_work.add(idle)
        self._completion_thread.shutdown(wait=False)
