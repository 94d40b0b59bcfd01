"""A monkey at the window: seeded random keys, clicks, drags, typing, edits of open files and drops, over all scenes.

    python -m tests.window.monkey [--events N] [--seconds T] [--seed S] [--size WxH] [--device DEVICE] [--real]

It also pastes what other programs copied, minimizes, changes monitors and suspends the machine. The window is headless
(tests/window/headless.py), or with --real a GLFW window on DISPLAY, whose clipboard belongs to a program of its own
(tests/window/desktop). It has copies of the scenes in its folder. Without --device kernels do nothing
(tests/window/noop_device.py); GL passes run. Prints a JSON line each tenth of the events: internal
errors, MiB resident, the slowest frame since the last line. The exit code is 1 if there was an internal error or the
memory grew.
"""

import argparse
import faulthandler
import gc
import json
import os
import random
import re
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from renderer.bvh import build, device_sah, instances
from renderer.bvh.primitives import HostPrimitives
from renderer.errors import UnavailableError, UserError
from renderer.gpu import DeviceContext, DeviceProperties, open_context
from renderer.gpu.gl import GlContext
from renderer.host import trim_memory
from renderer.paths import ROOT
from renderer.pictures import load
from renderer.raytracing import geometry
from renderer.scene import animation as keyframes
from renderer.scene.animation import INTERPOLATIONS
from renderer.system.arguments import size
from renderer.window import boundary
from renderer.window.app import backends
from renderer.window.app.backends import MAX_FAILED_FRAMES
from renderer.window.controls.shortcuts import KEY_NAMES, chord
from renderer.window.controls.toolkit import imgui
from renderer.window.document import commands, creation, items
from renderer.window.remote import events, server
from renderer.window.state import edit_actions, open_files, picture_export, save_files
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session, restore
from tests.window.desktop.clipboard import CONTENTS
from tests.window.desktop.real_window import real_window
from tests.window.headless import Clock, SteppedWindow
from tests.window.noop_device import NoopDevice

SIZES = ((400, 260), (480, 220), (300, 260), (90, 40), (600, 120))  # pixels of the window
SCALE = 0.5  # at which these have room for the controls
REPORT_EVENTS = 10_000  # at most, between two lines
FIRST_REST = 2  # lines before the memory at rest is noted
MAX_GROWTH = 60  # MiB at rest from then to the end
HOST_PRIMITIVES = 2_000  # over which a BVH is built, at most
STALL_SECONDS = 8  # after which an event's stacks are printed
MAX_OPEN = 4  # panels; drops and duplicates beyond them are followed by closing some
ON_DEVICE = ("gallery.toml", "gasket.toml")  # their geometry comes from kernels, without which there is none
CHEAP = [  # what keeps a sample short: a pattern of the scene file and what replaces it
    (r"samples = 60", "grid = 16\nsamples = 2"),  # of ink, which factors a matrix on the host
    (r"samples = \d+", "samples = 2"),
    (r"quality = [\d.]+", "quality = 1.0"),
    (r'quality="[\d.]+"', 'quality="1"'),
    (r"max_iterations = \d+", "max_iterations = 30"),
    (r"plane_count = \d+", "plane_count = 4"),
]
KEYS = [name for name, key in KEY_NAMES.items() if key in events.KEYS.values()]
TEXTS = ["7", "-1", "1e308", "nan", "inf", "-0", "99999999999", "0.5", "", "next", "é∂🙂", "\x00", "1 2", "a" * 300]
MODIFIERS = ("", "", "", "Ctrl+", "Shift+", "Ctrl+Shift+", "Alt+", "Alt+Shift+")


class Monkey:
    """Sends random events to one window; `folder` holds its scenes."""

    def __init__(self, screen: SteppedWindow, folder: Path, seed: int, size: tuple[int, int] = SIZES[0]):
        self.screen, self.app, self.folder, self.size = screen, screen.app, folder, size
        self.random = random.Random(seed)
        self.originals = {path: path.read_bytes() for path in sorted((folder / "scenes").iterdir())}
        self.damaged = self._damaged_files()
        self.counts: Counter[str] = Counter()
        self.slowest, self.recent = 0.0, []
        kinds = {
            "key": 30,
            "click": 16,
            "drag": 12,
            "wheel": 8,
            "type": 6,
            "wait": 12,
            "edit": 5,
            "drop": 3,
            "remote": 4,
            "item": 8,
            "dialog": 4,
            "clipboard": 3,
            "resize": 3,
            "monitor": 2,
            "suspend": 2,
        }
        self.kinds, self.weights = list(kinds), [*kinds.values()]

    def event(self) -> None:
        """Sends one event and draws its frames."""
        kind = self.random.choices(self.kinds, self.weights)[0]
        self.counts[kind] += 1
        getattr(self, f"_{kind}")()
        self.app.loop.quit_requested = False  # Ctrl+Q is pressed too
        if sum(self.counts.values()) % 500 == 0:
            for path in self.folder.glob("*-[0-9]*"):  # screenshots and saved scenes
                path.unlink()
        while len(self.app.panels) > MAX_OPEN:
            self.app.close_panel()

    def _frame(self, count: int = 1) -> None:
        for _ in range(count):
            start = time.perf_counter()
            self.screen.frame()
            self.slowest = max(self.slowest, time.perf_counter() - start)

    def _note(self, *what) -> None:
        self.recent = [*self.recent[-30:], what]

    # Events

    def _key(self) -> None:
        keys = self.random.choice(MODIFIERS) + self.random.choice(KEYS)
        if self.random.random() < 0.7:
            keys = self.random.choice(self.screen.ui.main_window._actions()).keys
        self._note("key", keys)
        wanted = chord(keys)
        names = (imgui.Key.mod_ctrl, imgui.Key.mod_shift, imgui.Key.mod_alt)
        held = [name for name, down in zip(names, wanted.modifiers, strict=True) if down]
        for down in (True, False):
            for key in [*held, wanted.key]:
                imgui.get_io().add_key_event(key, down)
        self._frame()  # Dear ImGui takes a press and its release in two frames, the next event's if need be

    def _place(self) -> tuple[float, float]:
        width, height = imgui.get_io().display_size
        spread = 1.0 if self.random.random() < 0.97 else 1e7
        return self.random.uniform(-0.02, 1.02) * width * spread, self.random.uniform(-0.02, 1.02) * height * spread

    def _click(self) -> None:
        io, (x, y) = imgui.get_io(), self._place()
        button, count, ctrl = (
            self.random.choice((0, 0, 0, 0, 1, 2)),
            self.random.choice((1, 1, 2)),
            self.random.random() < 0.2,
        )
        self._note("click", x, y, button, count, ctrl)
        io.add_mouse_pos_event(x, y)
        io.add_key_event(imgui.Key.mod_ctrl, ctrl)
        io.add_key_event(imgui.Key.mod_alt, self.random.random() < 0.2)  # shows a pixel's paths
        for _ in range(count):
            for down in (True, False):
                io.add_mouse_button_event(button, down)
        self._frame(count)
        io.add_key_event(imgui.Key.mod_ctrl, False)
        io.add_key_event(imgui.Key.mod_alt, False)

    def _drag(self) -> None:
        io, button, shift = imgui.get_io(), self.random.choice((0, 0, 0, 1, 2)), self.random.random() < 0.2
        x, y = self._place()
        self._note("drag", x, y, button, shift)
        io.add_mouse_pos_event(x, y)
        io.add_key_event(imgui.Key.mod_shift, shift)
        if self.random.random() < 0.2:
            io.add_key_event(imgui.Key.w, True)
        io.add_mouse_button_event(button, True)
        for _ in range(self.random.randint(1, 3)):
            self._frame()
            io.add_mouse_pos_event(*self._place())
        io.add_mouse_button_event(button, False)
        io.add_key_event(imgui.Key.mod_shift, False)
        io.add_key_event(imgui.Key.w, False)
        self._frame()

    def _wheel(self) -> None:
        turn = self.random.choice((1, -1, 3, -3, 0.1, 40, -40, 1e6, -1e6))
        ctrl = self.random.random() < 0.3  # magnifies pixels
        self._note("wheel", turn, ctrl)
        imgui.get_io().add_mouse_pos_event(*self._place())
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, ctrl)
        imgui.get_io().add_mouse_wheel_event(0, turn)
        self._frame()
        imgui.get_io().add_key_event(imgui.Key.mod_ctrl, False)

    def _type(self) -> None:
        text = self.random.choice(TEXTS)
        self._note("type", text)
        imgui.get_io().add_input_characters_utf8(text)
        self._frame()
        if self.random.random() < 0.7:
            for down in (True, False):
                imgui.get_io().add_key_event(imgui.Key.enter, down)
            self._frame()

    def _remote(self) -> None:
        """An event as a browser sends it, or as only an attacker does: most are answered 400."""
        wild = [
            0,
            1,
            -1,
            0.5,
            300,
            True,
            False,
            "KeyD",
            "Enter",
            1e308,
            -1e308,
            float("nan"),
            float("inf"),
            10**400,
            True,
            None,
            "x",
            "\ud800",
            [],
            {},
        ]
        names = ("x", "y", "button", "down", "code", "text", "ctrl", "focused", "width", "height")
        event = {name: self.random.choice(wild) for name in names if self.random.random() < 0.7}
        event["kind"] = self.random.choice((*events.FIELDS, "none", None))
        self._note("remote", event)
        event = {
            name: value
            for name, value in event.items()
            if name in events.FIELDS.get(event["kind"], ["kind"]) or name == "kind"
        }
        try:
            checked = events.read_events(json.dumps([event]).encode())
        except ValueError:
            return
        with self.app.errors_as_messages("an event of the browser"):
            server.inject(self.screen, checked[0])
        imgui.get_io().add_focus_event(True)
        self._frame()

    def _item(self) -> None:
        """A command on an item of the active panel's scene, or on the key frames of its tracks."""
        app, chance = self.app, self.random
        settings = app.panel.scene.settings
        present = list(items.all_items(settings))[:200]
        what = chance.choice(("add", "duplicate", "delete", "rename", "instance", "select", "key", "track", "ease"))
        self._note("item", what)
        item = chance.choice(present) if present else None
        if what == "add" and (offered := creation.additions(settings)) and len(present) < 60:
            edit_actions.run_command(app, chance.choice(offered).run)
        elif what == "track":
            getattr(self.screen.ui.main_window.tracks, chance.choice(("copy", "paste", "delete")))()
        elif what == "ease":
            tracks = self.screen.ui.main_window.tracks
            tracks.chosen = frozenset(keyframes.key_names(app.panel.scene.animation))
            tracks.ease(chance.choice(INTERPOLATIONS))
        elif item is not None:
            self._item_command(what, item, settings)
        self._frame()

    def _item_command(self, what: str, item: items.Item, settings) -> None:
        app, text = self.app, self.random.choice(TEXTS)
        app.panel.selection = item
        if what == "rename":
            edit_actions.run_command(app, lambda d: commands.rename(d, item, text))
        elif what == "instance" and item.group in items.shape_groups(settings):
            edit_actions.run_command(app, lambda d: creation.add_instance(d, item))
        elif what in ("duplicate", "delete"):
            edit_actions.run_command(app, lambda d: getattr(commands, what)(d, item))
        elif what == "key":
            names = [f.name for f in fields(items.item_value(settings, item))]
            path = f"{item.group}[{item.index}].{self.random.choice(names)}"
            edit_actions.add_key(app, app.panel, path)

    def _dialog(self) -> None:
        """Opens a file dialog, or answers the open dialog."""
        app, chance = self.app, self.random
        opening = (
            open_files.open_dialog,
            save_files.save_scene_as,
            edit_actions.add_file_dialog,
            edit_actions.texture_dialog,
        )
        if app.dialog is None:
            chance.choice(opening)(app)
        else:
            path = chance.choice([*self.originals, *self.damaged])
            app.dialog.name = chance.choice((str(path), path.name, chance.choice(TEXTS), ".."))
            self._note("dialog", app.dialog.title, app.dialog.name)
            chance.choice(
                (
                    app.dialog.accept,
                    app.dialog.accept,
                    lambda: app.dialog.enter(app.dialog.folder.parent),
                    app.dialog.cancel,
                )
            )()
        if app.overlays.dropped is None and chance.random() < 0.3:
            app.overlays.dropped = chance.choice(self.damaged)
        elif app.overlays.dropped is not None:
            edit_actions.take_dropped(app, chance.choice(("add", "open", "panel")))
        self._frame()

    def _wait(self) -> None:
        if self.random.random() < 0.1:
            self.screen.resize(self.random.choice((self.size, self.size, *SIZES)))
        self._clock(self.random.choice((0.0, 0.3, 0.3, 4.0)))
        self._frame(self.random.randint(1, 3))

    # What the desktop does

    def _clipboard(self) -> None:
        """Another program copies something, and the user copies from or pastes into what has the focus."""
        kind = self.random.choice(list(CONTENTS))
        self._note("clipboard", kind)
        self.screen.copy(kind)
        if self.random.random() < 0.5:
            self.app.overlays.palette.is_on = True  # whose text field has the focus
            self._frame(2)
        for keys in self.random.choice((("V",), ("A", "C", "V"), ("A", "X"), ("V", "V", "A", "V"))):
            for key in (imgui.Key.mod_ctrl, getattr(imgui.Key, keys.lower())):
                imgui.get_io().add_key_event(key, True)
            self._frame()
            for key in (imgui.Key.mod_ctrl, getattr(imgui.Key, keys.lower())):
                imgui.get_io().add_key_event(key, False)
            self._frame()

    def _resize(self) -> None:
        """Minimized, as Windows says it; tiny, or on a monitor with other pixels."""
        size, ratio = (
            self.random.choice(((0, 0), (0, 300), (1, 1), (37, 600), self.size)),
            self.random.choice((0.5, 1, 2)),
        )
        self._note("resize", size, ratio)
        self.screen.resize(size, ratio)
        self._frame(self.random.randint(1, 3))
        self.screen.resize(self.size)
        self._frame()

    def _monitor(self) -> None:
        """Full screen on and off, while monitors come and go."""
        gone = self.random.choice(("", "primary", "window"))
        self._note("monitor", gone)
        with self.screen.monitors(gone):
            self.app.overlays.fullscreen.toggle()
            self._frame(2)
        if self.random.random() < 0.8:
            self.app.overlays.fullscreen.is_on = False
        self._frame(2)

    def _suspend(self) -> None:
        """The machine sleeps; after that GL has no memory for up to two frames, or draws nothing."""
        name, count = self.random.choice(("texture", "render", "")), self.random.randint(1, MAX_FAILED_FRAMES - 1)
        self._note("suspend", name, count)
        self._clock(self.random.choice((60.0, 1e4, 1e6)))

        def suspended(*_):
            raise UnavailableError("GL is suspended")

        with pytest.MonkeyPatch.context() as patch:
            if name:
                patch.setattr(*{"texture": (GlContext, "texture"), "render": (backends, "render")}[name], suspended)
            self._frame(count)
        self._frame()

    def _clock(self, seconds: float) -> None:
        self.app.now.seconds += seconds

    # Files

    def _edit(self) -> None:
        """Saves an open file: as it was, as another one, damaged, or not at all; or deletes it."""
        paths = [panel.original.path for panel in self.app.panels if panel.original.path in self.originals]
        path = self.random.choice(paths or list(self.originals))
        what = self.random.choice(("back", "back", "other", "damage", "damage", "delete", "parameter"))
        self._note("edit", path.name, what)
        if what == "delete":
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(self._text_of(path, what))
            stamp = self.random.randrange(10**9, 2 * 10**9)  # a file watcher sees that it changed
            os.utime(path, (stamp, stamp))
        for _ in range(2):
            self._clock(0.3)
            self._frame()

    def mend_files(self) -> None:
        """Writes all scenes back, so that a session can be restored: it refuses a program that is damaged or gone."""
        for path, data in self.originals.items():
            path.write_bytes(data)

    def resting_mib(self) -> float:
        """The resident memory when one small panel is left: what was open before is gone, so only leaks grow."""
        self.mend_files()
        while len(self.app.panels) > 1:
            self.app.close_panel()
        self.screen.resize(SIZES[0])
        for _ in range(2):
            self.app.panel.show(load(self.folder / "scenes" / "koch.toml"))
            self._frame(20)
            gc.collect()
        trim_memory()
        self.screen.resize(self.size)
        return resident_mib()

    def _text_of(self, path: Path, what: str) -> bytes:
        data = self.originals[path]
        if what == "other":
            same = [other for other in self.originals if other.suffix == path.suffix]
            return self.originals[self.random.choice(same)]
        if what == "parameter" and path.suffix == ".cb":
            return re.sub(rb"main\(([^)]*)\)", rb"main(\1, float extra = 0.5)", data, count=1)
        return self._damage(data) if what == "damage" else data

    def _damage(self, data: bytes) -> bytes:
        """Cut, with bytes changed, or with a number replaced by a wild one."""
        way, chance = self.random.randrange(4), self.random
        if way == 0:
            return data[: chance.randrange(len(data) + 1)]
        if way == 1:
            at = chance.randrange(len(data))
            return data[:at] + chance.randbytes(chance.randint(1, 8)) + data[at + 1 :]
        if way == 2:
            numbers = list(re.finditer(rb"\d+(\.\d+)?", data))
            if not numbers:
                return b""
            found = chance.choice(numbers)
            wild = chance.choice((b"0", b"-1", b"1e308", b"nan", b"9" * 40, b"99999", b"1e-30", b"true"))
            return data[: found.start()] + wild + data[found.end() :]
        lines = data.splitlines(keepends=True)
        del lines[chance.randrange(len(lines))]
        return b"".join(lines)

    def _damaged_files(self) -> list[Path]:
        """Files of every kind that can be dropped: good ones, damaged ones, and what is no file."""
        folder, files = self.folder / "dropped", []
        folder.mkdir()
        sources = [
            *self.originals,
            ROOT / "assets" / "still_life.glb",
            ROOT / "assets" / "lightfields" / "tabletop_9x9.jpg",
        ]
        for number, source in enumerate(sources):
            for copy in range(2):
                path = folder / f"{number}-{copy}{source.suffix}"
                path.write_bytes(self._damage(source.read_bytes()))
                files.append(path)
        (folder / "shape.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
        (folder / "bad.obj").write_text("v 0 0\nf 1 2 9\n")
        (folder / "views.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', ")
        (folder / "noise.png").write_bytes(b"\x89PNG\r\n\x1a\n" + self.random.randbytes(200))
        (folder / "empty.toml").write_bytes(b"")
        (folder / "a folder").mkdir()
        (folder / "loop.toml").symlink_to("loop.toml")
        os.mkfifo(folder / "pipe.toml")
        for name in (
            "line\nbreak.toml",
            "##%s%n.toml",
            "\u202egnp.toml",
            "x" * 240 + ".flame",
            os.fsdecode(b"\xff.toml"),
        ):
            (folder / name).write_text("picture = ")
        strange = [folder / "none.toml", Path("/dev/null"), Path(""), Path("nul\0.toml"), Path("n" * 5000 + ".obj")]
        return [*files, *sorted(folder.iterdir()), folder, *strange]

    def _drop(self) -> None:
        good = self.random.random() < 0.6
        choices = [path for path in self.originals if path.exists()] if good else self.damaged
        paths = self.random.choices(choices, k=self.random.choice((1, 1, 1, 2)))
        self._note("drop", *(path.name for path in paths))
        open_files.open_dropped_files(self.app, paths)
        self._frame(2)


class ErrorCount:
    """The internal errors that reached the boundary, or a thread's end."""

    def __init__(self):
        self.total, self.places = 0, {}

    def add(self, error: BaseException, doing: str) -> None:
        """Counts an error, and keeps the first traceback of each place."""
        self.total += 1
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{type(error).__name__} at {frames[-1].filename}:{frames[-1].lineno}" if frames else repr(error)
        if place not in self.places:
            self.places[place] = doing + "\n" + "".join(traceback.format_exception(error))


@contextmanager
def counted_errors():
    """An ErrorCount while the block runs."""
    count, report, hook = ErrorCount(), boundary.report, threading.excepthook

    def counting(error: Exception, doing: str) -> str:
        count.add(error, doing)
        return f"internal error in {doing}: {type(error).__name__}"

    boundary.report = counting
    threading.excepthook = lambda args: count.add(args.exc_value, "a thread")
    try:
        yield count
    finally:
        boundary.report, threading.excepthook = report, hook


def copy_scenes(folder: Path, real: bool) -> list[Path]:
    """Copies the scenes with cheap settings into `folder`; `real` if kernels run. Returns the files."""
    (folder / "scenes").mkdir(parents=True)
    os.symlink(ROOT / "assets", folder / "assets")
    paths = []
    for source in sorted(path for path in (ROOT / "scenes").iterdir() if real or path.name not in ON_DEVICE):
        text = source.read_text(encoding="utf-8")
        for pattern, cheap in CHEAP if source.suffix != ".cb" else []:
            text = re.sub(pattern, cheap, text)
        (folder / "scenes" / source.name).write_text(text, encoding="utf-8")
        paths.append(folder / "scenes" / source.name)
    return paths


class HeadlessDesktop(SteppedWindow):
    """A headless window with a clipboard of its own, and no monitor."""

    def copy(self, kind: str) -> None:
        """Fills the clipboard; a picture leaves it without a text, and Dear ImGui gets none."""
        imgui.set_clipboard_text("" if kind == "image" else CONTENTS[kind][1].decode("utf-8", "replace"))

    def monitors(self, gone: str):
        """Monitors that are gone in the block: none is there."""
        return nullcontext()


class RealClock:
    """The real clock where tests have a simulated one: it cannot be set."""

    seconds = property(lambda self: time.perf_counter(), lambda self, seconds: None)

    def __call__(self) -> float:
        return time.perf_counter()


@contextmanager
def monkey(gl: GlContext, folder: Path, seed: int, device=None, clock=None, screen_of=HeadlessDesktop, size=SIZES[0]):
    """A Monkey before a window of two scenes, with a session file in `folder`.

    `screen_of(app, gl, size, scale)` opens the window, a headless one by default.
    """
    paths = copy_scenes(folder, device is not None)
    gpu = DeviceContext(gl=gl)
    gpu.devices = [device or noop_device()]
    scenes = [load(path) for path in paths if path.stem in ("koch", "mandelbrot")]
    before, home = Path.cwd(), os.environ.get("HOME")
    os.chdir(folder)  # where screenshots go
    os.environ["HOME"] = str(folder)
    save_to, start = save_files.save_to, picture_export.PictureExport.start

    def save_inside(app, panel, path):
        if not Path(path).resolve().is_relative_to(folder.resolve()):
            raise UserError("a monkey writes to its own folder only")
        save_to(app, panel, path)

    def no_film(*_):
        raise UserError("a monkey makes no films")

    save_files.save_to, picture_export.PictureExport.start = save_inside, no_film
    app = AppState(Session.of(tuple(scenes)), gpu, folder / "session.json", clock or Clock())
    screen = screen_of(app, gl, size, SCALE)
    try:
        yield Monkey(screen, folder, seed, size)
    finally:
        screen.close()
        os.chdir(before)
        os.environ.pop("HOME") if home is None else os.environ.update(HOME=home)
        save_files.save_to, picture_export.PictureExport.start = save_to, start
        geometry.build_bvh, instances.build_for_host = build.build_bvh, device_sah.build_for_host


def noop_device() -> NoopDevice:
    """The device without kernels; scenes' BVHs, whose sizes kernels count, are built by the host over a part.

    Nothing traverses them, and the host takes a minute where a device takes milliseconds.
    """
    built = {}

    def build_bvh(device, primitives, *builder):
        if not isinstance(device, NoopDevice):  # other tests of this process have devices too
            return build.build_bvh(device, primitives, *builder)
        rows = getattr(primitives, "rows", primitives)[:HOST_PRIMITIVES].copy()
        if isinstance(primitives, HostPrimitives):
            primitives.free()
        key = rows.tobytes()
        if key not in built:
            built.clear()
            built[key] = build.build_bvh(device, rows, "host_sah")
        return built[key]

    geometry.build_bvh = build_bvh
    instances.build_for_host = lambda *_: None  # the host builds every BLAS
    return NoopDevice(DeviceProperties(2, 1, 4 << 30, 1 << 30, True))


def resident_mib() -> float:
    """The resident memory of this process."""
    return round(int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024, 1)


def main() -> int:
    """The long run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--events", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so many, however many events are left")
    parser.add_argument("--size", type=size, default=SIZES[0], help="of the window, WxH")
    parser.add_argument("--device", help="runs kernels on this device instead of none")
    parser.add_argument("--real", action="store_true", help="a GLFW window on DISPLAY")
    args = parser.parse_args()
    np.seterr(all="raise", under="ignore")  # as in all tests
    folder = Path(tempfile.mkdtemp(prefix="rayfold-monkey-"))
    device = open_context(args.device).device if args.device else None
    began, rows = time.perf_counter(), []
    gl, screen_of = real_window(args.size) if args.real else (GlContext.headless(), HeadlessDesktop)
    opened = monkey(gl, folder, args.seed, device, None, screen_of, args.size)
    with counted_errors() as errors, opened as user:
        for number in range(1, args.events + 1):
            known = len(errors.places)
            faulthandler.dump_traceback_later(STALL_SECONDS)
            user.event()
            faulthandler.cancel_dump_traceback_later()
            if len(errors.places) > known:
                print(list(errors.places.values())[-1], user.recent[-6:], file=sys.stderr, flush=True)
            late = time.perf_counter() - began > args.seconds
            if late or number % min(max(args.events // 10, 1), REPORT_EVENTS) == 0:
                row = {"events": number, "seconds": round(time.perf_counter() - began, 1), "mib": resident_mib()}
                row |= {"internal_errors": errors.total, "slowest_frame_ms": round(1000 * user.slowest)}
                user.slowest = 0.0
                if len(rows) == FIRST_REST:
                    row["resting_mib"] = user.resting_mib()
                rows.append(row)
                print(json.dumps(row), flush=True)
            if late:
                break
        end = user.resting_mib()
        session = user.app.session()
    kept = len(restore(folder / "session.json").scenes) == len(session.scenes)
    shutil.rmtree(folder)
    grown = end - next((row["resting_mib"] for row in rows if "resting_mib" in row), end)
    print(json.dumps({"seed": args.seed, "grown_mib": round(grown, 1), "session_kept": kept, **user.counts}))
    return int(errors.total > 0 or grown > MAX_GROWTH or not kept)


if __name__ == "__main__":
    sys.exit(main())
