"""The state of the window: panels, the active one, what the actions do, undo, and which panel draws next.

Nothing here knows a picture's name, and nothing here draws controls (see interface.py) or opens a window (screen.py).
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import get_args, get_type_hints

from renderer.errors import UnavailableError, UserError
from renderer.gpu import DeviceContext
from renderer.images.denoise import check_installed as check_denoiser
from renderer.scene.animation import apply_edit
from renderer.scene.scene import Scene, ToneMapping
from renderer.window.controls.step import step_setting
from renderer.window.panels.frame_rate import FrameRateCounter
from renderer.window.panels.panel import Panel
from renderer.window.state import layout
from renderer.window.state.file_watcher import FileWatcher
from renderer.window.state.session import Session, default_path, previous_path, restore, save
from renderer.window.state.undo import UndoStack

DRAW_SECONDS = 0.03  # seconds of a frame that panels may draw in the window's own GL; at least one panel draws
SAVE_INTERVAL = 3.0  # seconds between two looks at whether the session changed
MESSAGE_SECONDS = 4.0  # seconds that a message stays
MAX_PANELS = 16  # panels of a window


class AppState:
    def __init__(
        self,
        scenes: list[Scene],
        gpu: DeviceContext,
        columns: int = 0,
        gap: int = 4,
        session_path: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """`session_path` is the file that the session is saved to; None saves none. `clock` returns seconds."""
        self.gpu, self.now = gpu, clock
        self.columns, self.gap = columns, gap
        self.layout: layout.LayoutNode | None = None  # where the user put the panels; None is a grid of `columns`
        self.layout_root: layout.LayoutNode = 0  # of the visible panels, and the part of the window that they have
        self.area = (0, 0, 1, 1)
        self.dragging_panel = False  # a panel is dragged to another place
        self._completion_thread = ThreadPoolExecutor(1, "device")
        self.wake: Callable[[], None] = lambda: None  # ends the window's wait for events; called on another thread
        self.panels = [self._panel(scene) for scene in scenes]
        self.active = 0
        self.solo = self.fullscreen = False
        self.sidebar = True
        self.help = self.palette = self.inspector = False
        self.timeline = self.picking = False
        self.keyboard_navigation = False  # the keyboard works the controls
        self.quit_requested = False
        self.frame_rate = FrameRateCounter()
        self.message, self._message_until = "", 0.0
        self.pending_window_screenshot: Path | None = None
        self.pending_screenshot: Panel | None = None  # of which a picture is to be written
        self.panel_rects: list[tuple[int, int, int, int]] = []  # of the visible panels, in the window's units
        self.image_rects: list[tuple[int, int, int, int]] = []  # of their pictures, between a strip above and one below
        self.needs_frame = False  # an editor has more to do although no panel draws
        self.is_idle_input = True  # no button is held and no control is being edited: a state worth an undo step
        self._undo_stack = UndoStack(self._state())
        self._begun = False
        self._session_path, self._saved, self._saved_at = session_path, None, 0.0
        self.file_watcher = FileWatcher()
        self.presets_cache: tuple = ()  # folder and kind of picture, and the scenes that are there

    def _panel(self, scene: Scene) -> Panel:
        return Panel(scene, self.gpu, self._completion_thread, lambda: self.wake(), self.now)

    @property
    def panel(self) -> Panel:
        return self.panels[self.active]

    def visible(self) -> list[int]:
        return [self.active] if self.solo else list(range(len(self.panels)))

    def place_panels(self, left: int, top: int, width: int, height: int, strip: int) -> None:
        """Puts the visible panels into this part of the window; one too small for its strips goes without."""
        self.area = left, top, max(width, 1), max(height, 1)
        self.layout_root = self.active if self.solo else self.current_layout()
        cells = layout.rectangles(self.layout_root, self.area, self.gap)
        self.panel_rects = [cells[index] for index in self.visible()]
        strips = [strip if h > 4 * strip and w > 6 * strip else 0 for _, _, w, h in self.panel_rects]
        self.image_rects = [(x, y + s, w, h - 2 * s) for (x, y, w, h), s in zip(self.panel_rects, strips, strict=True)]

    def current_layout(self) -> layout.LayoutNode:
        """Where all panels stand: as the user put them, or in a grid."""
        if self.layout is not None:
            return self.layout
        return layout.grid_layout(len(self.panels), self.area[2:], self.columns)

    def show_message(self, message: str) -> None:
        self.message, self._message_until = message, self.now() + MESSAGE_SECONDS

    def current_message(self, now: float) -> str:
        return self.message if now < self._message_until else ""

    # Drawing

    def activity(self, now: float) -> str:
        """ "drawing" when the window should go on at once, "waiting" when only a compute device works, or "idle"."""
        sizes = dict(zip(self.visible(), self.image_rects, strict=False))
        for i, panel in enumerate(self.panels):
            if i in sizes and panel.needs_draw(sizes[i][2:], now) and not self._waits(panel, now):
                return "drawing"
        if self.needs_frame:
            return "drawing"
        waiting = any(panel.busy or panel.is_animated() and not panel.paused for panel in self.panels)
        return "waiting" if waiting or self.current_message(now) else "idle"

    def advance(self, now: float, seconds: float, pixels: float = 1.0) -> None:
        """Draws what fits into a frame, each panel in its turn; `pixels` is framebuffer pixels a unit of the window.

        The first frame draws nothing, so that the window says what it does before kernels are compiled.
        """
        if not self._begun:
            self._begun = True
            return
        for panel in self.panels:
            panel.poll()
            panel.tick(seconds)
            panel.update_tone_mapping()
        visible = [(self.panels[i], cell) for i, cell in zip(self.visible(), self.image_rects, strict=False)]
        visible.sort(key=lambda item: item[0].started)  # the one that has waited longest comes first
        begun = self.now()
        drawn = False
        for panel, (_, _, width, height) in visible:
            size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
            if not panel.needs_draw(size, now) or self._waits(panel, now):
                continue
            spent = self.now() - begun
            if drawn and (spent + panel.expected_seconds(size, now) > DRAW_SECONDS or not panel.is_open):
                continue
            panel.draw(size, now)
            drawn = True
        lost = next((panel for panel in self.panels if panel.device_lost), None)
        if lost:
            self.save()
            raise UnavailableError(
                f"{lost.device} is lost: {lost.error}. `rayfold view --restore` brings the panels back"
            )
        self._remember()
        if now - self._saved_at > SAVE_INTERVAL:
            self._saved_at = now
            self.save()

    def _waits(self, panel: Panel, now: float) -> bool:
        """Whether another panel goes first: the one the user moves, or the one that the compute device works for."""
        others = [other for other in self.panels if other is not panel]
        moving = any(other.is_interacting(now) for other in others) and not panel.is_interacting(now)
        return (
            moving
            and panel.sample_seconds > DRAW_SECONDS / 2
            or panel.uses_compute_device
            and any(other.busy for other in others)
        )

    # Files

    def session(self, clean: bool = False) -> Session:
        scenes = tuple(replace(p.scene, time=p.scene_time) if p.paused else p.scene for p in self.panels)
        return Session(scenes, self.active, self.columns, self.solo, clean, self.layout)

    def save(self, clean: bool = False) -> None:
        """Writes the session where it changed."""
        session = self.session(clean)
        if self._session_path is not None and session != self._saved:
            self._saved = session
            try:
                save(session, self._session_path)
            except UserError as error:
                self._session_path = None  # told once; a full disk must not stop the window
                self.show_message(f"the session is not session_path: {error}")

    def restore(self) -> None:
        """Brings back the panels of the last session that was not this one."""
        path = self._session_path or default_path()
        try:
            self.replace_panels(restore(previous_path(path)))
        except UserError as error:
            self.show_message(str(error))

    def replace_panels(self, session: Session) -> None:
        """Shows the panels of a session in place of those that are there."""
        for panel in self.panels:
            panel.close()
        self.panels = [self._panel(scene) for scene in session.scenes]
        self.apply_layout(session)
        self._panels_changed()

    def apply_layout(self, session: Session) -> None:
        """Takes over how the panels of a session stand."""
        self.active, self.columns, self.solo = session.active, session.columns, session.solo
        self.layout = session.layout

    # States and undo

    def _state(self) -> tuple[Scene, ...]:
        return tuple(panel.scene for panel in self.panels)

    def _remember(self) -> None:
        """Notes the state once the user has let go, so that one drag is one step."""
        now = self.now()
        if (
            self.is_idle_input
            and self._undo_stack.differs(self._state())
            and not any(p.is_interacting(now) for p in self.panels)
        ):
            self._undo_stack.push(self._state())

    def undo(self) -> None:
        self._restore(self._undo_stack.undo(self._state()), "nothing to undo")

    def redo(self) -> None:
        self._restore(self._undo_stack.redo(), "nothing to redo")

    def _restore(self, state: tuple[Scene, ...] | None, otherwise: str) -> None:
        if state is None:
            self.show_message(otherwise)
            return
        for panel, scene in zip(self.panels, state, strict=True):
            panel.show(scene)

    def _panels_changed(self) -> None:
        """Undo does not reach over panels that came or went."""
        self._undo_stack = UndoStack(self._state())
        self.active = min(self.active, len(self.panels) - 1)

    # What actions do

    def change_scene(self, scene: Scene, moved: bool = False) -> None:
        self.panel.show(scene, moved)

    def edit_settings(self, settings) -> None:
        """Takes the settings as the user left them: what has key frames gets one at this moment."""
        panel = self.panel
        try:
            scene = apply_edit(panel.scene, panel.scene_time, settings)
        except UserError as error:
            self.show_message(str(error))
            return
        if scene.animation != panel.scene.animation:
            panel.paused = True  # a moment that runs on cannot be edited
        self.change_scene(scene, moved=True)

    def set_view(self, view) -> None:
        try:
            self.edit_settings(replace(self.panel.settings(), view=view))
        except ValueError as error:
            self.show_message(str(error))

    def view(self):
        return self.panel.settings().view

    def toggle_denoise(self) -> None:
        panel = self.panel
        if not panel.can_denoise:
            self.show_message(f"a {panel.scene.picture} picture has no albedo and normal to denoise it by")
            return
        try:
            check_denoiser()
        except UnavailableError as error:
            self.show_message(str(error))
            return
        panel.toggle_denoise()
        self.show_message("finished pictures are denoised" if panel.denoise else "pictures as they were drawn")

    def step_setting(self, name: str, direction: int) -> None:
        settings = step_setting(self.panel.settings(), name, direction)
        self.edit_settings(settings)
        self.show_message(f"{name.replace('_', ' ')}: {getattr(settings, name)}")

    def adjust_exposure(self, stops: float) -> None:
        tone = self.panel.scene.tone
        ev = round(min(max(tone.ev + stops, -30.0), 30.0), 2)
        self.set_tone(replace(tone, ev=ev), f"exposure {ev:+.1f} EV")

    def set_tone(self, tone: ToneMapping, told: str) -> None:
        self.change_scene(replace(self.panel.scene, tone=tone))
        self.show_message(told)

    def cycle_tone(self, name: str) -> None:
        tone = self.panel.scene.tone
        choices = get_args(get_type_hints(ToneMapping)[name])
        new = choices[(choices.index(getattr(tone, name)) + 1) % len(choices)]
        self.set_tone(replace(tone, **{name: new}), f"{name} {new}")

    def reset_scene(self) -> None:
        self.change_scene(self.panel.original)
        self.show_message("all settings as in the scene")

    def toggle_pause(self) -> None:
        self.panel.paused = not self.panel.paused
        self.show_message("paused" if self.panel.paused else "goes on")

    def toggle_free_run(self) -> None:
        self.panel.free_run = not self.panel.free_run
        self.show_message("draws without end" if self.panel.free_run else "stops when finished")

    def cycle_resolution(self) -> None:
        choices = (0, 1, 2, 4)
        self.panel.budget.fixed_divisor = choices[(choices.index(self.panel.budget.fixed_divisor) + 1) % len(choices)]
        words = {0: "automatic", 1: "full", 2: "half", 4: "a quarter"}
        self.show_message(f"resolution {words[self.panel.budget.fixed_divisor]}")

    def restart(self) -> None:
        self.panel.restart()

    def select_panel(self, index: int) -> None:
        if index < len(self.panels):
            self.active = index

    def next_panel(self, direction: int) -> None:
        self.active = (self.active + direction) % len(self.panels)

    def toggle(self, name: str) -> None:
        setattr(self, name, not getattr(self, name))

    def toggle_keyboard_navigation(self) -> None:
        self.keyboard_navigation = not self.keyboard_navigation
        self.sidebar = self.sidebar or self.keyboard_navigation
        if self.keyboard_navigation:
            self.show_message("arrows and Enter work the controls; F6 or Escape goes back")

    def escape(self) -> None:
        """Closes the topmost thing that is open."""
        for name in ("dragging_panel", "palette", "help", "picking", "inspector", "solo"):
            if getattr(self, name):
                setattr(self, name, False)
                return

    def quit(self) -> None:
        self.quit_requested = True

    def add_panels(self, scenes: list[Scene]) -> None:
        room = MAX_PANELS - len(self.panels)
        if len(scenes) > room:
            self.show_message(f"a window holds at most {MAX_PANELS} panels")
        for scene in scenes[:room]:
            self.panels.append(self._panel(scene))
            if self.layout is not None:
                _, _, width, height = layout.rectangles(self.layout, self.area, self.gap)[self.active]
                side = "right" if width > height else "below"
                self.layout = layout.insert(self.layout, len(self.panels) - 1, self.active, side)
            self.active = len(self.panels) - 1
        self._panels_changed()

    def duplicate(self) -> None:
        if len(self.panels) >= MAX_PANELS:
            self.show_message(f"there are {MAX_PANELS} panels already")
            return
        self.add_panels([self.panel.scene])

    def close_panel(self) -> None:
        if len(self.panels) == 1:
            self.show_message("the last panel stays")
            return
        self.panel.close()
        del self.panels[self.active]
        if self.layout is not None:
            self.layout = layout.remove(self.layout, self.active)
        self._panels_changed()

    def set_reference(self) -> None:
        if self.panel.display_texture is not None:
            self.panel.comparison.set_reference(self.panel.display_texture)
            self.show_message("session_path; W compares")

    def compare_with_next(self) -> None:
        if len(self.panels) > 1:
            other = self.panels[(self.active + 1) % len(self.panels)]
            self.panel.comparison.set_reference_panel(other)
            self.show_message(f"compared with {other.scene.title}; W changes how")

    def compare(self) -> None:
        """The next way of comparing; where nothing is session_path yet, the next panel is the reference."""
        if self.panel.comparison.reference() is None:
            self.compare_with_next()
        if self.panel.comparison.reference() is None:
            self.show_message("nothing to compare with: S keeps what is shown")
            return
        self.show_message(f"compare: {self.panel.comparison.cycle()}")

    def close(self, clean: bool = True) -> None:
        self.save(clean)
        for panel in self.panels:
            panel.close()
        self._completion_thread.shutdown()
