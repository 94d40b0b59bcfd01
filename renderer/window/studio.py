"""The state of the window: panels, the active one, what the actions do, undo, and which panel draws next.

Nothing here knows a picture's name, and nothing here draws controls (see interface.py) or opens a window (screen.py).
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import get_args, get_type_hints

from renderer import KernelError, MachineCannot, UserError
from renderer.animation import SAME, changed_paths, edited, key_times, keyed, unkeyed
from renderer.denoise import require as require_denoiser
from renderer.gpu import Gpu
from renderer.gpu.source import SHADERS, forget
from renderer.image import replacing, write_png
from renderer.pictures import load, panels_of, recipe_of
from renderer.scene import Scene, Tone, files_of, read_toml
from renderer.view import grid
from renderer.window.counter import Counter
from renderer.window.panel import Panel, stepped
from renderer.window.session import Session, default_path, last, restore, save, toml_of
from renderer.window.watch import Watch

DRAWING = 0.03  # seconds of a frame that panels may draw in the window's own GL; at least one panel draws
SAVING = 3.0  # seconds between two looks at whether the session changed
MESSAGE = 4.0  # seconds that a message stays
LARGEST_HISTORY = 500
LARGEST_COUNT = 16  # panels of a window
FRAMES = 24  # a second, by which the keys step
SCENES = (".toml", ".flame", ".flam3")  # files that are read as a whole when they are saved
SCENE_STEP = 0.08  # part of the panel's height that an arrow key drags


class Studio:
    def __init__(self, scenes: list[Scene], gpu: Gpu, columns: int = 0, gap: int = 4, kept: Path | None = None):
        """`kept` is the file that the session is written to as it changes; None keeps none."""
        self.gpu = gpu
        self.columns, self.gap = columns, gap
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
        self._shot: Panel | None = None  # of which a picture is wanted
        self.cells: list[tuple[int, int, int, int]] = []  # of the visible panels, in the window's units
        self.rectangles: list[tuple[int, int, int, int]] = []  # of their pictures, between a strip above and one below
        self.pending = False  # an editor has more to do although no panel draws
        self.quiet = True  # no button is held and no control is being edited: a state worth an undo step
        self._history, self._future = [self._state()], []
        self._begun = False
        self._kept, self._saved, self._saved_at = kept, None, 0.0
        self._watch = Watch()
        self._presets: tuple = ()

    def _panel(self, scene: Scene) -> Panel:
        return Panel(scene, self.gpu, self._waiter, lambda: self.wake())

    @property
    def panel(self) -> Panel:
        return self.panels[self.active]

    def visible(self) -> list[int]:
        return [self.active] if self.solo else list(range(len(self.panels)))

    def arrange(self, left: int, top: int, width: int, height: int, strip: int) -> None:
        """Puts the visible panels into this part of the window; one too small for its strips goes without."""
        columns = 0 if self.solo else self.columns
        cells = grid(len(self.visible()), (max(width, 1), max(height, 1)), columns, self.gap)
        self.cells = [(left + x, top + y, w, h) for x, y, w, h in cells]
        strips = [strip if h > 4 * strip and w > 6 * strip else 0 for _, _, w, h in cells]
        self.rectangles = [(x, y + s, w, h - 2 * s) for (x, y, w, h), s in zip(self.cells, strips, strict=True)]

    def tell(self, message: str) -> None:
        self.message, self._message_until = message, time.perf_counter() + MESSAGE

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
        self._take_screenshot()
        visible = [(self.panels[i], cell) for i, cell in zip(self.visible(), self.rectangles, strict=False)]
        visible.sort(key=lambda item: item[0].started)  # the one that has waited longest comes first
        begun = time.perf_counter()
        drawn = False
        for panel, (_, _, width, height) in visible:
            size = (max(1, int(width * pixels)), max(1, int(height * pixels)))
            if not panel.wants(size, now) or self._waits(panel, now):
                continue
            spent = time.perf_counter() - begun
            if drawn and (spent + panel.expected(size, now) > DRAWING or not panel.opened):
                continue
            panel.draw(size, now)
            drawn = True
        lost = next((panel for panel in self.panels if panel.lost), None)
        if lost:
            self.save()
            raise MachineCannot(f"{lost.device} is lost: {lost.error}. `main.py view --restore` brings the panels back")
        self._remember()
        self._look_at_files(now)
        if now - self._saved_at > SAVING:
            self._saved_at = now
            self.save()

    def _waits(self, panel: Panel, now: float) -> bool:
        """Whether another panel goes first: the one the user moves, or the one that the compute device works for."""
        others = [other for other in self.panels if other is not panel]
        moving = any(other.moving(now) for other in others) and not panel.moving(now)
        return moving and panel.cost > DRAWING / 2 or panel.computes and any(other.busy for other in others)

    # Files

    def _look_at_files(self, now: float) -> None:
        """Reads shaders, scenes and what they name anew when they are saved."""
        paths = {panel.original.path for panel in self.panels if panel.original.path.suffix in SCENES}
        for panel in self.panels:  # a program looks at its own file
            paths |= {Path(file) for file in files_of(panel.scene.settings) if not file.endswith(".cb")}
        changed = self._watch.changed(paths | set(SHADERS.rglob("*.*")), now)
        if changed:
            self.reload({path for path in changed if path in paths}, shaders=bool(changed - paths))

    def session(self, clean: bool = False) -> Session:
        scenes = tuple(replace(p.scene, moment=p.clock) if p.paused else p.scene for p in self.panels)
        return Session(scenes, self.active, self.columns, self.solo, clean)

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
        self.active, self.columns, self.solo = session.active, session.columns, session.solo
        self._panels_changed()

    def presets(self) -> list[Scene]:
        """The scene files beside the active panel's that hold the same kind of picture."""
        path = self.panel.original.path
        key = (path.parent, self.panel.scene.picture)
        if not self._presets or self._presets[0] != key:
            self._presets = (key, list(_presets(*key)) if path.suffix == ".toml" else [])
        return self._presets[1]

    # States and undo

    def _state(self) -> tuple[Scene, ...]:
        return tuple(panel.scene for panel in self.panels)

    def _remember(self) -> None:
        """Notes the state once the user has let go, so that one drag is one step."""
        state = self._state()
        if self.quiet and state != self._history[-1] and not any(p.moving(time.perf_counter()) for p in self.panels):
            self._history = (self._history + [state])[-LARGEST_HISTORY:]
            self._future = []

    def undo(self) -> None:
        state = self._state()
        if state != self._history[-1]:  # the last change is not noted yet
            self._history.append(state)
        if len(self._history) < 2:
            self.tell("nothing to undo")
            return
        self._future.append(self._history.pop())
        self._restore(self._history[-1])

    def redo(self) -> None:
        if not self._future:
            self.tell("nothing to redo")
            return
        self._history.append(self._future.pop())
        self._restore(self._history[-1])

    def _restore(self, state: tuple[Scene, ...]) -> None:
        for panel, scene in zip(self.panels, state, strict=True):
            panel.show(scene)

    def _panels_changed(self) -> None:
        """Undo does not reach over panels that came or went."""
        self._history, self._future = [self._state()], []
        self.active = min(self.active, len(self.panels) - 1)

    # What actions do

    def change(self, scene: Scene, moved: bool = False) -> None:
        self.panel.show(scene, moved)

    def edit(self, settings) -> None:
        """Takes the settings as the user left them: what has key frames gets one at this moment."""
        panel = self.panel
        try:
            scene = edited(panel.scene, panel.clock, settings)
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
        return getattr(self.panel.settings(), "view", None)

    def focus(self, across: float, down: float) -> None:
        """Puts what is seen at these parts of the panel's width and height into focus."""
        self.picking = False
        if not self.panel.can_pick:
            self.tell(f"a {self.panel.scene.picture} picture has nothing to focus on")
            return
        try:
            distance = self.panel.pick(across, down)
        except (UserError, KernelError) as error:
            self.tell(str(error))
            return
        settings = self.panel.settings()
        if distance is None:
            self.tell("nothing is there")
        elif not hasattr(settings, "focus_distance"):
            self.tell(f"{distance:.4g} away")
        else:
            sharp = "" if getattr(settings, "lens_radius", 1.0) else "; all is sharp while lens radius is 0"
            self.edit(replace(settings, focus_distance=distance))
            self.tell(f"in focus: {distance:.4g} away{sharp}")

    def pick_next(self) -> None:
        """The next click focuses; asked for a second time, what is in the middle comes into focus."""
        if self.picking:
            self.focus(0.5, 0.5)
        else:
            self.picking = True
            self.tell("click on what is to be in focus, or Ctrl+F again for what is in the middle")

    def toggle_denoise(self) -> None:
        panel = self.panel
        if not panel.can_denoise:
            self.tell(f"a {panel.scene.picture} picture has no albedo and normal to denoise it by")
            return
        try:
            require_denoiser()
        except MachineCannot as error:
            self.tell(str(error))
            return
        panel.toggle_denoise()
        self.tell("finished pictures are denoised" if panel.denoise else "pictures as they were drawn")

    # Time

    def shows_timeline(self) -> bool:
        return self.timeline or bool(key_times(self.panel.scene.animation))

    def toggle_timeline(self) -> None:
        if key_times(self.panel.scene.animation):
            self.tell("the line of time stays while there are key frames")
        self.timeline = not self.timeline

    def is_at(self, moment: float) -> bool:
        """Whether the active panel stands at this moment."""
        return abs(self.panel.clock - moment) <= SAME

    def scrub(self, moment: float) -> None:
        """Stops the active panel at a moment."""
        self.panel.paused, self.panel.clock = True, max(moment, 0.0)

    def step_frame(self, direction: int) -> None:
        self.scrub(round(self.panel.clock * FRAMES + direction) / FRAMES)
        self.timeline = True

    def step_key(self, direction: int) -> None:
        """Goes to the key frame before or after this moment."""
        times = key_times(self.panel.scene.animation)
        there = [t for t in times[::direction] if (t - self.panel.clock) * direction > SAME]
        if there:
            self.scrub(there[0])
        else:
            self.tell("no key frame there")

    def add_key(self) -> None:
        """A key frame here: of what has some already, or else of what was changed, or else of the view."""
        panel, scene = self.panel, self.panel.scene
        paths = [track.path for track in scene.animation.tracks] if scene.animation else []
        if not paths and type(panel.original.settings) is type(scene.settings):
            paths = changed_paths(panel.original.settings, scene.settings)
        if not paths and self.view() is not None:
            paths = [f"view.{f.name}" for f in fields(self.view())]
        if not paths:
            self.tell("nothing to keep: change a setting first")
            return
        self.timeline = panel.paused = True
        self.change(keyed(scene, panel.clock, paths))
        self.tell(f"key frame at {panel.clock:.2f} s: {', '.join(sorted({path.split('.')[0] for path in paths}))}")

    def delete_key(self) -> None:
        panel = self.panel
        if not any(map(self.is_at, key_times(panel.scene.animation))):
            self.tell("no key frame at this moment; Page Up and Page Down go to them")
            return
        self.change(unkeyed(panel.scene, panel.clock))

    def drag(self, dx: float, dy: float) -> None:
        if self.view() is not None:
            self.set_view(self.view().drag(dx * SCENE_STEP, dy * SCENE_STEP))

    def pan(self, dx: float, dy: float) -> None:
        if self.view() is not None:
            self.set_view(self.view().pan(dx * SCENE_STEP, dy * SCENE_STEP))

    def zoom(self, steps: float) -> None:
        if self.view() is not None:
            self.set_view(self.view().scroll(steps))

    def home(self) -> None:
        original = getattr(self.panel.original.settings, "view", None)
        if original is not None and type(original) is type(self.view()):
            self.set_view(original)

    def step_setting(self, name: str, direction: int) -> None:
        settings = stepped(self.panel.settings(), name, direction)
        self.edit(settings)
        self.tell(f"{name.replace('_', ' ')}: {getattr(settings, name)}")

    def expose(self, stops: float) -> None:
        tone = self.panel.scene.tone
        self.set_tone(
            replace(tone, ev=round(min(max(tone.ev + stops, -30.0), 30.0), 2)), f"exposure {tone.ev + stops:+.1f} EV"
        )

    def set_tone(self, tone: Tone, told: str) -> None:
        self.change(replace(self.panel.scene, tone=tone))
        self.tell(told)

    def cycle_tone(self, name: str) -> None:
        tone = self.panel.scene.tone
        choices = get_args(get_type_hints(Tone)[name])
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
        self.panel.forced_divisor = choices[(choices.index(self.panel.forced_divisor) + 1) % len(choices)]
        words = {0: "automatic", 1: "full", 2: "half", 4: "a quarter"}
        self.tell(f"resolution {words[self.panel.forced_divisor]}")

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
        for name in ("palette", "help", "picking", "inspector", "solo"):
            if getattr(self, name):
                setattr(self, name, False)
                return

    def leave(self) -> None:
        self.leaving = True

    def next_scene(self, direction: int) -> None:
        """Shows the scene file before or after this one in its folder, leaving out layouts and files that are bad."""
        here = self.panel.original.path.resolve()
        files = sorted(here.parent.glob("*.toml"))
        start = files.index(here) if here in files else -1
        for step in range(1, len(files) + 1):
            path = files[(start + direction * step) % len(files)]
            try:
                scene = load(path)
                if panels_of(scene) == [scene]:
                    self.open_here(scene)
                    return
            except UserError as error:
                self.tell(str(error))
        self.tell(f"no other scene in {here.parent}")

    def open_here(self, scene: Scene) -> None:
        self.panel.original = scene
        self.panel.show(scene)
        self.panel.clock, self.panel.paused = scene.moment, scene.moment > 0
        self.tell(scene.title)

    def drop(self, paths: list[Path]) -> None:
        """Opens files that were dropped on the window: one into the active panel, several as new panels."""
        for number, path in enumerate(paths):
            try:
                scenes = panels_of(load(path))
            except UserError as error:
                self.tell(str(error))
                continue
            if number == 0 and len(scenes) == 1 and len(paths) == 1:
                self.open_here(scenes[0])
            else:
                self.add(scenes)

    def add(self, scenes: list[Scene]) -> None:
        self.panels += [self._panel(scene) for scene in scenes][: LARGEST_COUNT - len(self.panels)]
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
        self._panels_changed()

    def reload(self, files: set[Path] | None = None, shaders: bool = True) -> None:
        """Reads shaders anew, and the scenes, meshes and the like among `files`; all of them for None.

        What was good before goes on where an edited file is not, and its panel says why.
        """
        texts = forget()
        for panel in self.panels:
            path = panel.original.path
            saved = path.suffix in SCENES and path.is_file() and (files is None or path in files)
            read = {Path(file) for file in files_of(panel.scene.settings)}
            try:
                if saved:
                    panel.original = load(path)
                    panel.reread(panel.original, texts)
                elif shaders or files is None or read & files:
                    panel.reread(panel.scene, texts)
            except UserError as error:
                panel.mistake = str(error)
        self._presets = ()
        self.tell("read anew: " + ("shaders" if shaders else ", ".join(sorted(path.name for path in files))))

    def screenshot(self) -> None:
        """Writes what the active panel shows, with its recipe, into this folder, as soon as a sample is whole."""
        panel = self.panel
        if panel.shown is None:
            self.tell("nothing is drawn yet")
            return
        self._shot = panel
        self._take_screenshot()

    def _take_screenshot(self) -> None:
        panel = self._shot
        if panel is None or not panel.whole and panel in self.panels and not panel.error:
            return
        self._shot = None
        if not panel.whole:
            return
        pixels = panel.shown.read()
        pixels = pixels[..., :3] if (pixels[..., 3] == 255).all() else pixels
        path = free_name(Path.cwd(), panel.original.path.stem)
        facts = dict(size=list(panel.shown.size), samples=panel.samples, time=panel.moment)
        facts |= {"denoise": True} if panel.denoised else {}
        try:
            write_png(path, pixels, recipe_of(panel.scene, path.parent, **facts))
            self.tell(f"wrote {path.name}")
        except UserError as error:
            self.tell(str(error))

    def save_scene(self) -> None:
        """Writes the active panel's scene, settings and key frames as they are, as a scene file into this folder."""
        path = free_name(Path.cwd(), self.panel.original.path.stem, ".toml")
        try:
            with replacing(path) as temporary:
                temporary.write_text(toml_of(recipe_of(self.panel.scene, path.parent)["scene"]), encoding="utf-8")
            self.tell(f"wrote {path.name}")
        except UserError as error:
            self.tell(str(error))

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

    def screenshot_window(self) -> None:
        self.screenshot_of_window = free_name(Path.cwd(), "window")

    def close(self, clean: bool = True) -> None:
        self.save(clean)
        for panel in self.panels:
            panel.close()
        self._waiter.shutdown()


def free_name(folder: Path, stem: str, suffix: str = ".png") -> Path:
    """The first of stem-001.png, stem-002.png, ... that is not there."""
    return next(p for n in range(1, 10**6) if not (p := folder / f"{stem}-{n:03}{suffix}").exists())


def _presets(folder: Path, kind: str):
    for path in sorted(folder.glob("*.toml")):
        try:
            if read_toml(path).get("picture") == kind:
                yield load(path)
        except UserError:
            continue  # a bad file among them is told when it is opened
