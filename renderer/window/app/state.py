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
from renderer.window.app.file_watcher import Watch
from renderer.window.app.session import Session, default_path, last, restore, save
from renderer.window.app.undo import History
from renderer.window.controls.step import stepped
from renderer.window.panels import layout
from renderer.window.panels.frame_rate import Counter
from renderer.window.panels.panel import Panel

DRAWING = 0.03  # seconds of a frame that panels may draw in the window's own GL; at least one panel draws
SAVING = 3.0  # seconds between two looks at whether the session changed
MESSAGE = 4.0  # seconds that a message stays
LARGEST_COUNT = 16  # panels of a window


class Studio:
    def __init__(
        self,
        scenes: list[Scene],
        gpu: DeviceContext,
        columns: int = 0,
        gap: int = 4,
        kept: Path | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        """`kept` is the file that the session is written to as it changes; None keeps none. `clock` tells seconds."""
        self.gpu, self.clock = gpu, clock
        self.columns, self.gap = columns, gap
        self.layout: layout.Place | None = None  # where the user put the panels; None is a grid of `columns`
        self.place: layout.Place = 0  # of the visible panels, and the part of the window that they have
        self.area = (0, 0, 1, 1)
        self.carrying = False  # a panel is dragged to another place
        self._waiter = ThreadPoolExecutor(1, "device")
        self.wake: Callable[[], None] = lambda: None  # ends the window's wait for events; called on another thread
        self.panels = [self._panel(scene) for scene in scenes]
        self.active = 0
        self.solo = self.fullscreen = False
        self.sidebar = True
        self.help = self.palette = self.inspector = False
        self.timeline = self.picking = False
        self.typing = False  # the keyboard works the controls
        self.leaving = False
        self.counter = Counter()
        self.message, self._message_until = "", 0.0
        self.screenshot_of_window: Path | None = None
        self.wanted_shot: Panel | None = None  # of which a picture is to be written
        self.cells: list[tuple[int, int, int, int]] = []  # of the visible panels, in the window's units
        self.rectangles: list[tuple[int, int, int, int]] = []  # of their pictures, between a strip above and one below
        self.pending = False  # an editor has more to do although no panel draws
        self.quiet = True  # no button is held and no control is being edited: a state worth an undo step
        self._history = History(self._state())
        self._begun = False
        self._kept, self._saved, self._saved_at = kept, None, 0.0
        self.watch = Watch()
        self.found_presets: tuple = ()  # folder and kind of picture, and the scenes that are there

    def _panel(self, scene: Scene) -> Panel:
        return Panel(scene, self.gpu, self._waiter, lambda: self.wake(), self.clock)

    @property
    def panel(self) -> Panel:
        return self.panels[self.active]

    def visible(self) -> list[int]:
        return [self.active] if self.solo else list(range(len(self.panels)))

    def arrange(self, left: int, top: int, width: int, height: int, strip: int) -> None:
        """Puts the visible panels into this part of the window; one too small for its strips goes without."""
        self.area = left, top, max(width, 1), max(height, 1)
        self.place = self.active if self.solo else self.layout_at_hand()
        cells = layout.rectangles(self.place, self.area, self.gap)
        self.cells = [cells[index] for index in self.visible()]
        strips = [strip if h > 4 * strip and w > 6 * strip else 0 for _, _, w, h in self.cells]
        self.rectangles = [(x, y + s, w, h - 2 * s) for (x, y, w, h), s in zip(self.cells, strips, strict=True)]

    def layout_at_hand(self) -> layout.Place:
        """Where all panels stand: as the user put them, or in a grid."""
        if self.layout is not None:
            return self.layout
        return layout.in_grid(len(self.panels), self.area[2:], self.columns)

    def tell(self, message: str) -> None:
        self.message, self._message_until = message, self.clock() + MESSAGE

    def told(self, now: float) -> str:
        return self.message if now < self._message_until else ""

    # Drawing

    def activity(self, now: float) -> str:
        """ "drawing" when the window should go on at once, "waiting" when only a compute device works, or "idle"."""
        sizes = dict(zip(self.visible(), self.rectangles, strict=False))
        for i, panel in enumerate(self.panels):
            if i in sizes and panel.wants(sizes[i][2:], now) and not self._waits(panel, now):
                return "drawing"
        if self.pending:
            return "drawing"
        waiting = any(panel.busy or panel.alive() and not panel.paused for panel in self.panels)
        return "waiting" if waiting or self.told(now) else "idle"

    def advance(self, now: float, seconds: float, pixels: float = 1.0) -> None:
        """Draws what fits into a frame, each panel in its turn; `pixels` is framebuffer pixels a unit of the window.

        The first frame draws nothing, so that the window says what it does before kernels are compiled.
        """
        if not self._begun:
            self._begun = True
            return
        for panel in self.panels:
            panel.collect()
            panel.tick(seconds)
            panel.retone()
        visible = [(self.panels[i], cell) for i, cell in zip(self.visible(), self.rectangles, strict=False)]
        visible.sort(key=lambda item: item[0].started)  # the one that has waited longest comes first
        begun = self.clock()
        drawn = False
        for panel, (_, _, width, height) in visible:
            size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
            if not panel.wants(size, now) or self._waits(panel, now):
                continue
            spent = self.clock() - begun
            if drawn and (spent + panel.expected(size, now) > DRAWING or not panel.opened):
                continue
            panel.draw(size, now)
            drawn = True
        lost = next((panel for panel in self.panels if panel.lost), None)
        if lost:
            self.save()
            raise UnavailableError(
                f"{lost.device} is lost: {lost.error}. `rayfold view --restore` brings the panels back"
            )
        self._remember()
        if now - self._saved_at > SAVING:
            self._saved_at = now
            self.save()

    def _waits(self, panel: Panel, now: float) -> bool:
        """Whether another panel goes first: the one the user moves, or the one that the compute device works for."""
        others = [other for other in self.panels if other is not panel]
        moving = any(other.moving(now) for other in others) and not panel.moving(now)
        return moving and panel.cost > DRAWING / 2 or panel.computes and any(other.busy for other in others)

    # Files

    def session(self, clean: bool = False) -> Session:
        scenes = tuple(replace(p.scene, time=p.clock) if p.paused else p.scene for p in self.panels)
        return Session(scenes, self.active, self.columns, self.solo, clean, self.layout)

    def save(self, clean: bool = False) -> None:
        """Writes the session where it changed."""
        session = self.session(clean)
        if self._kept is not None and session != self._saved:
            self._saved = session
            try:
                save(session, self._kept)
            except UserError as error:
                self._kept = None  # told once; a full disk must not stop the window
                self.tell(f"the session is not kept: {error}")

    def restore(self) -> None:
        """Brings back the panels of the last session that was not this one."""
        path = self._kept or default_path()
        try:
            self.take(restore(last(path)))
        except UserError as error:
            self.tell(str(error))

    def take(self, session: Session) -> None:
        """Shows the panels of a session in place of those that are there."""
        for panel in self.panels:
            panel.close()
        self.panels = [self._panel(scene) for scene in session.scenes]
        self.stand_as(session)
        self._panels_changed()

    def stand_as(self, session: Session) -> None:
        """Takes over how the panels of a session stand."""
        self.active, self.columns, self.solo = session.active, session.columns, session.solo
        self.layout = session.layout

    # States and undo

    def _state(self) -> tuple[Scene, ...]:
        return tuple(panel.scene for panel in self.panels)

    def _remember(self) -> None:
        """Notes the state once the user has let go, so that one drag is one step."""
        now = self.clock()
        if self.quiet and self._history.differs(self._state()) and not any(p.moving(now) for p in self.panels):
            self._history.note(self._state())

    def undo(self) -> None:
        self._restore(self._history.back(self._state()), "nothing to undo")

    def redo(self) -> None:
        self._restore(self._history.forward(), "nothing to redo")

    def _restore(self, state: tuple[Scene, ...] | None, otherwise: str) -> None:
        if state is None:
            self.tell(otherwise)
            return
        for panel, scene in zip(self.panels, state, strict=True):
            panel.show(scene)

    def _panels_changed(self) -> None:
        """Undo does not reach over panels that came or went."""
        self._history = History(self._state())
        self.active = min(self.active, len(self.panels) - 1)

    # What actions do

    def change(self, scene: Scene, moved: bool = False) -> None:
        self.panel.show(scene, moved)

    def edit(self, settings) -> None:
        """Takes the settings as the user left them: what has key frames gets one at this moment."""
        panel = self.panel
        try:
            scene = apply_edit(panel.scene, panel.clock, settings)
        except UserError as error:
            self.tell(str(error))
            return
        if scene.animation != panel.scene.animation:
            panel.paused = True  # a moment that runs on cannot be edited
        self.change(scene, moved=True)

    def set_view(self, view) -> None:
        try:
            self.edit(replace(self.panel.settings(), view=view))
        except ValueError as error:
            self.tell(str(error))

    def view(self):
        return self.panel.settings().view

    def toggle_denoise(self) -> None:
        panel = self.panel
        if not panel.can_denoise:
            self.tell(f"a {panel.scene.picture} picture has no albedo and normal to denoise it by")
            return
        try:
            check_denoiser()
        except UnavailableError as error:
            self.tell(str(error))
            return
        panel.toggle_denoise()
        self.tell("finished pictures are denoised" if panel.denoise else "pictures as they were drawn")

    def step_setting(self, name: str, direction: int) -> None:
        settings = stepped(self.panel.settings(), name, direction)
        self.edit(settings)
        self.tell(f"{name.replace('_', ' ')}: {getattr(settings, name)}")

    def expose(self, stops: float) -> None:
        tone = self.panel.scene.tone
        ev = round(min(max(tone.ev + stops, -30.0), 30.0), 2)
        self.set_tone(replace(tone, ev=ev), f"exposure {ev:+.1f} EV")

    def set_tone(self, tone: ToneMapping, told: str) -> None:
        self.change(replace(self.panel.scene, tone=tone))
        self.tell(told)

    def cycle_tone(self, name: str) -> None:
        tone = self.panel.scene.tone
        choices = get_args(get_type_hints(ToneMapping)[name])
        new = choices[(choices.index(getattr(tone, name)) + 1) % len(choices)]
        self.set_tone(replace(tone, **{name: new}), f"{name} {new}")

    def reset(self) -> None:
        self.change(self.panel.original)
        self.tell("all settings as in the scene")

    def toggle_pause(self) -> None:
        self.panel.paused = not self.panel.paused
        self.tell("paused" if self.panel.paused else "goes on")

    def toggle_free_run(self) -> None:
        self.panel.free_run = not self.panel.free_run
        self.tell("draws without end" if self.panel.free_run else "stops when finished")

    def cycle_resolution(self) -> None:
        choices = (0, 1, 2, 4)
        self.panel.pace.forced = choices[(choices.index(self.panel.pace.forced) + 1) % len(choices)]
        words = {0: "automatic", 1: "full", 2: "half", 4: "a quarter"}
        self.tell(f"resolution {words[self.panel.pace.forced]}")

    def restart(self) -> None:
        self.panel.restart()

    def choose(self, index: int) -> None:
        if index < len(self.panels):
            self.active = index

    def next_panel(self, direction: int) -> None:
        self.active = (self.active + direction) % len(self.panels)

    def toggle(self, name: str) -> None:
        setattr(self, name, not getattr(self, name))

    def toggle_typing(self) -> None:
        self.typing = not self.typing
        self.sidebar = self.sidebar or self.typing
        if self.typing:
            self.tell("arrows and Enter work the controls; F6 or Escape goes back")

    def escape(self) -> None:
        """Closes the topmost thing that is open."""
        for name in ("carrying", "palette", "help", "picking", "inspector", "solo"):
            if getattr(self, name):
                setattr(self, name, False)
                return

    def leave(self) -> None:
        self.leaving = True

    def add(self, scenes: list[Scene]) -> None:
        room = LARGEST_COUNT - len(self.panels)
        if len(scenes) > room:
            self.tell(f"a window holds at most {LARGEST_COUNT} panels")
        for scene in scenes[:room]:
            self.panels.append(self._panel(scene))
            if self.layout is not None:
                _, _, width, height = layout.rectangles(self.layout, self.area, self.gap)[self.active]
                side = "right" if width > height else "below"
                self.layout = layout.put(self.layout, len(self.panels) - 1, self.active, side)
            self.active = len(self.panels) - 1
        self._panels_changed()

    def duplicate(self) -> None:
        if len(self.panels) >= LARGEST_COUNT:
            self.tell(f"there are {LARGEST_COUNT} panels already")
            return
        self.add([self.panel.scene])

    def close_panel(self) -> None:
        if len(self.panels) == 1:
            self.tell("the last panel stays")
            return
        self.panel.close()
        del self.panels[self.active]
        if self.layout is not None:
            self.layout = layout.closed(self.layout, self.active)
        self._panels_changed()

    def keep_reference(self) -> None:
        if self.panel.shown is not None:
            self.panel.comparison.keep(self.panel.shown)
            self.tell("kept; W compares")

    def follow_next(self) -> None:
        if len(self.panels) > 1:
            other = self.panels[(self.active + 1) % len(self.panels)]
            self.panel.comparison.follow(other)
            self.tell(f"compared with {other.scene.title}; W changes how")

    def compare(self) -> None:
        """The next way of comparing; where nothing is kept yet, the next panel is the reference."""
        if self.panel.comparison.reference() is None:
            self.follow_next()
        if self.panel.comparison.reference() is None:
            self.tell("nothing to compare with: S keeps what is shown")
            return
        self.tell(f"compare: {self.panel.comparison.cycle()}")

    def close(self, clean: bool = True) -> None:
        self.save(clean)
        for panel in self.panels:
            panel.close()
        self._waiter.shutdown()
