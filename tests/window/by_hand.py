"""A person at a real window: from an empty scene to a lit, textured, animated one and its film, by X events alone.

    python -m tests.window.by_hand FOLDER [--size WxH] [--scale S]

Needs DISPLAY and xdotool. Controls are found by the rectangles that Dear ImGui drew them in; the pointer, the buttons
and the keys are those of the X server. Writes made.toml and film.webm to FOLDER, and a picture of the screen of each
step. The exit code is 0 if all is as it should be.
"""

import argparse
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import numpy as np
from PIL import ImageGrab

from renderer.formats.images import write_png
from renderer.gpu import open_context
from renderer.gpu.compilation import CompilePool
from renderer.pictures import load
from renderer.window.app.backends import UiContext, Window
from renderer.window.controls import settings as controls
from renderer.window.controls.toolkit import glfw, imgui
from renderer.window.document import creation, items
from renderer.window.state.app_state import AppState
from renderer.window.state.session import Session

LABELED = ("button", "menu_item_simple", "begin_menu", "selectable", "invisible_button")
LIMIT = 240.0  # seconds for each wait
QUICK_UNITS = 1_500_000  # of the area of panels; a larger picture is drawn at a quarter of the resolution


class Person:
    """The window, and hands."""

    def __init__(self, folder: Path, size: tuple[int, int], scale: float):
        self.folder, self.shots = folder, 0
        self.window = Window(size, "Rayfold")
        self.places: dict[str, tuple[float, float, float, float]] = {}  # of controls in this frame
        self._note_places()
        gpu = open_context("cpu", gl=self.window.gl)
        self.pool = CompilePool()
        gpu.compile_in_children(self.pool)
        self.app = AppState(Session.of((creation.new_scene(folder),)), gpu)
        self.app.device, self.app.overlays.tour_step = "cpu", 0
        self.app.wake = glfw.post_empty_event
        self.ui = UiContext(self.app, self.window.gl, scale)

    def _note_places(self) -> None:
        def noted(draw):
            def drawn(label, *more):
                out = draw(label, *more)
                low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
                self.places[label.partition("##")[0]] = low.x, low.y, high.x, high.y
                return out

            return drawn

        for name in LABELED:
            setattr(imgui, name, noted(getattr(imgui, name)))

        def named(draw):
            def drawn(f, *more):
                out = draw(f, *more)
                low, high = imgui.get_item_rect_min(), imgui.get_item_rect_max()
                self.places[f.name] = low.x, low.y, high.x, high.y
                return out

            return drawn

        for name in ("_control", "_leave_room"):  # in view, and out of it
            setattr(controls, name, named(getattr(controls, name)))

    def frames(self, count: int = 4) -> None:
        for _ in range(count):
            self.places.clear()
            self.window.frame(self.app, self.ui)

    def until(self, condition, what: str) -> None:
        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, f"timeout: {what}; {self.app.message}; {self.app.panel.error}"
            self.frames(1)

    def x(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], check=True, timeout=30)
        time.sleep(0.03)
        self.frames()

    def move(self, x: float, y: float) -> None:
        left, top = glfw.get_window_pos(self.window.handle)
        self.x("mousemove", str(round(left + x)), str(round(top + y)))

    def click(self, name: str, button: str = "1") -> None:
        """Clicks a control, which is scrolled into view if need be."""
        self.until(lambda: name in self.places, f"no control {name!r}")
        width, height = glfw.get_window_size(self.window.handle)
        for _ in range(120):
            left, top, right, bottom = self.places[name]
            if top > 45 * self.ui.scale and bottom < height - 4:
                break
            self.move(width - 20 * self.ui.scale, height - 30)
            self.x("click", "5" if bottom >= height - 4 else "4")
        self.move(left + min(20 * self.ui.scale, (right - left) / 2), (top + bottom) / 2)
        self.x("click", button)

    def type(self, text: str) -> None:
        self.x("type", "--delay", "15", text)
        self.frames(len(text))  # Dear ImGui takes a character a frame
        self.x("key", "Return")

    def add(self, *menus: str) -> None:
        self.x("key", "shift+a")
        for name in menus[:-1]:
            self.until(lambda name=name: name in self.places, name)
            left, top, right, bottom = self.places[name]
            self.move(left + 10, (top + bottom) / 2)
            self.frames(8)
        self.click(menus[-1])
        self.settle()

    def settle(self) -> None:
        """Lets the change become a step of undo."""
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            self.frames(1)

    def number(self, name: str, value: float) -> None:
        """Types a number into a slider or a field."""
        self.until(lambda: name in self.places, name)
        left, top, right, bottom = self.places[name]
        self.move((left + right) / 2, (top + bottom) / 2)
        self.x("keydown", "Control_L", "click", "1", "keyup", "Control_L")
        self.x("key", "ctrl+a")
        self.type(f"{value:g}")

    def shot(self, name: str) -> None:
        self.frames(3)
        self.shots += 1
        picture = ImageGrab.grab(xdisplay=os.environ["DISPLAY"])
        picture.save(self.folder / f"{self.shots:02}-{name}.png")

    def drag(self, start: tuple[float, float], dx: float, dy: float) -> None:
        self.move(*start)
        self.x("mousedown", "1")
        for part in (0.3, 0.6, 1.0):
            self.move(start[0] + dx * part, start[1] + dy * part)
        self.x("mouseup", "1")

    def timeline_click(self, fraction: float) -> None:
        """Clicks the timeline's track at a fraction of its duration."""
        self.until(lambda: "time" in self.places, "the timeline")
        left, top, right, bottom = self.places["time"]
        self.move(left + (right - left) * fraction, (top + bottom) / 2)
        self.x("click", "1")

    def close(self) -> None:
        self.app.close()
        self.pool.close()
        self.window.close()


def perform(person: Person) -> None:
    """The whole way."""
    app, folder = person.app, person.folder
    person.frames(2)
    if app.panels.area[2] * app.panels.area[3] > QUICK_UNITS:
        app.panel.budget.fixed_divisor = 4  # as Z chooses: what is tried is the window, on a processor
    person.frames(10)
    person.shot("tour")
    for _ in range(4):
        person.click("Next")
    person.click("Done")
    assert app.overlays.tour_step is None
    empty = app.panel.scene
    for menus in (("Shape", "sphere"), ("Shape", "ground"), ("Light", "area light"), ("Light", "sky with its sun")):
        person.add(*menus)
    person.shot("add")
    # a texture by the file dialog, and a material that has it
    rows, columns = np.indices((64, 64)) // 8
    write_png(
        folder / "tiles.png", np.where(((rows + columns) % 2)[..., None], (220, 190, 150), (90, 40, 30)).astype("u1")
    )
    person.x("key", "shift+a")
    person.click("Texture...")
    person.until(lambda: app.dialog is not None, "the dialog")
    person.shot("dialog")
    person.type(str(folder / "tiles.png"))
    assert app.dialog is None and app.panel.scene.settings.textures[0].name == "tiles", app.message
    person.settle()
    person.add("Material", "diffuse")
    person.x("key", "F2")
    person.x("key", "ctrl+a")
    person.type("tiled floor")
    person.settle()
    person.click("color_texture")
    person.click("tiles")
    person.settle()
    settings = app.panel.scene.settings
    assert [m.color_texture for m in settings.materials if m.name == "tiled floor"] == ["tiles"], app.message
    person.click("ground")
    person.click("material")
    person.click("tiled floor")
    person.settle()
    assert [q.material for q in app.panel.scene.settings.quads][0] == "tiled floor", app.message
    # the sphere is picked in the picture and moved by the gizmo
    left, top, width, height = app.panels.shown[0].image_rect
    middle = left + width / 2, top + height / 2
    person.move(*middle)
    person.x("click", "1")
    person.until(lambda: app.panel.selection == items.Item("spheres", 0), "the sphere is selected")
    person.settle()
    before = app.panel.scene.settings.spheres[0].center
    person.drag(middle, 40 * person.ui.scale, -20 * person.ui.scale)
    person.settle()
    assert app.panel.scene.settings.spheres[0].center != before and app.panel.scene.settings.view == settings.view
    person.shot("gizmo")
    # the camera is animated
    person.x("key", "ctrl+k")
    person.settle()
    person.x("key", "ctrl+shift+t")
    person.timeline_click(0.95)
    assert app.panel.scene_time > 3, app.panel.scene_time
    person.drag((left + width * 0.2, top + height * 0.25), 60 * person.ui.scale, 0)
    person.settle()
    tracks = {track.path: len(track.keys) for track in app.panel.scene.animation.tracks}
    assert tracks["view.position"] == 2, tracks
    person.timeline_click(0.5)
    person.until(lambda: app.panel.measured.samples >= 4, "the moment is refined")
    person.shot("timeline")
    # saved, and exported
    person.x("key", "ctrl+s")
    person.x("key", "ctrl+a")
    person.type("made")
    person.until((folder / "made.toml").exists, "saved")
    saved = load(folder / "made.toml")
    assert saved.settings == app.panel.scene.settings and saved.animation == app.panel.scene.animation
    person.x("key", "ctrl+shift+e")
    for name, value in (("width", 96), ("height", 64), ("fps", 4), ("samples", 2), ("seconds", 1)):
        person.number(name, value)
    person.shot("film")
    person.click("Export...")
    person.until(lambda: app.dialog is not None, "the dialog of the film")
    person.x("key", "ctrl+a")
    person.type("film.webm")
    person.until(lambda: app.export is not None and not app.export.is_running, "the film")
    assert "wrote film.webm: 4 frames" in app.export.message, app.export.message
    person.shot("done")
    person.x("key", "Escape")
    # every step is undone
    for _ in range(80):
        person.x("key", "ctrl+z")
        if app.message == "nothing to undo":
            break
    assert app.panel.scene.settings == empty.settings and app.panel.scene.animation is None, app.message
    text = (folder / "made.toml").read_text()
    assert tomllib.loads(text)["settings"]["textures"] == [{"name": "tiles", "file": "tiles.png"}]
    print(text)


def main() -> int:
    """Runs the way at one size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="1024x600")
    parser.add_argument("--scale", type=float, default=1.0)
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    os.chdir(args.folder)
    person = Person(args.folder, (width, height), args.scale)
    try:
        perform(person)
    except BaseException:
        person.shot("failed")
        raise
    finally:
        person.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
