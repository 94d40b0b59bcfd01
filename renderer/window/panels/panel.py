"""A panel of the window: one scene, drawn live, with actions to show another scene, reload, restart, close and pick.

AppState holds the panels. Panel inherits PanelPicture (the picture and its display), which inherits PanelScene (the
scene and its time); DrawLoop draws its samples. PanelEditor is the interface of its editor.
"""

from dataclasses import replace

from renderer.scene.scene import Scene
from renderer.window.controls.shortcuts import Action
from renderer.window.controls.theme import Rect
from renderer.window.document.document import Document
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.comparison import Comparison
from renderer.window.panels.display import Display
from renderer.window.panels.draw_loop import DrawLoop
from renderer.window.panels.inspection import Inspection
from renderer.window.panels.measurements import Measurements
from renderer.window.panels.panel_picture import PanelHost, PanelPicture


class Panel(PanelPicture):
    """One scene, drawn live by its `draw_loop`.

    `base` is the TOML text of the scene, if it differs from the text of its file.
    """

    def __init__(self, scene: Scene, host: PanelHost, base: SceneText | None = None):
        super().__init__(scene, host, base)
        self.draw_loop = DrawLoop(self)
        self.in_step_with: Panel | None = None  # the panel whose scene time the first tick of this duplicate takes
        self.julia_twin: Panel | None = None  # the panel whose Julia set has c under the pointer over this one

    # Show another scene

    def put(self, document: Document) -> None:
        """Shows a document that a command made from this panel's document."""
        self.base, self.selection = document.base, document.selection
        self.show(document.scene)

    def show(self, scene: Scene, moved: bool = False) -> None:
        """Shows other settings of the scene, or another scene; `moved`: by a drag or a key, so more may follow soon."""
        if scene == self.scene:
            return
        if scene.inspect != self.scene.inspect:
            self.inspection.show(scene.inspect)
        is_other_kind = (scene.picture, type(scene.settings)) != (self.scene.picture, type(self.scene.settings))
        # `hidden` and `several` (PanelScene) hold items by their list, `group`, and their number in it. Where items
        # were added, deleted or moved, these numbers are now others' numbers.
        for group in {item.group for item in self.hidden | self.several}:
            before, after = (getattr(each.settings, group, ()) for each in (self.scene, scene))
            is_reordered = before != after and {*map(id, before)} == {*map(id, after)}
            if len(before) != len(after) or is_reordered:
                self.hidden = self.several = frozenset()
        self.scene = scene
        if moved:
            self.interacted_at = self.now()
        if is_other_kind:
            self.reopen()
            self.measured = Measurements()
        elif self.error:  # other settings may draw where these failed: draw anew, and open what failed to open
            self.error, self.drawn = "", None
            self.is_open = self.tiles is not None

    def scene_of_session(self) -> Scene:
        """The scene as it is shown now: with the inspected view, and at its scene time if it is paused."""
        scene = replace(self.scene, inspect=self.inspection.inspect)
        return replace(scene, time=self.scene_time) if self.paused else scene

    # Reload and close

    def reload(self, scene: Scene, texts: dict) -> None:
        """Reloads the picture from edited files at the next draw.

        If they do not load or compile, the current picture stays. `texts` are the shader sources that it was compiled
        from.
        """
        self._stop_drawing()
        self.keep_fallback(texts)
        self.scene, self.error, self.is_open = scene, "", False

    def restart(self) -> None:
        """Starts again at scene time 0 with the first sample."""
        self.scene_time = 0.0
        self.update_error = ""
        self.reopen()

    def reopen(self) -> None:
        """Compiles the picture again at the next draw and starts with the first sample."""
        self.close()
        self.error, self.is_open = "", False

    def shelve(self) -> None:
        """Closes the panel and frees its textures; if undo shows the panel again, its next draw opens it."""
        self.reopen()
        self.display = Display(self.gpu.gl)
        self.comparison, self.inspection = Comparison(self.gpu.gl), Inspection(self.gpu.gl, self.inspection.inspect)

    def close(self) -> None:
        """Releases the picture and its shared images; the panel draws no more."""
        self._stop_drawing()
        self.release()

    def _stop_drawing(self) -> None:
        self.work.cancel()
        self.draw_loop.wait_idle()

    # Time

    def tick(self, seconds: float) -> None:
        """Advances the scene time by `seconds`, unless paused; an animation repeats.

        A picture that must draw every frame, as a game does, holds the time back: it passes the end of the frame drawn
        last (frame_times()) by `seconds` at most.
        """
        if self.is_playing:
            source, self.in_step_with = self.in_step_with, None
            latest = max(self.scene_time, self.frame_times()[1] + seconds)
            self.scene_time = source.scene_time if source else min(self.scene_time + seconds, latest)
            if self.period:
                self.scene_time %= self.period

    def toggle_pause(self) -> None:
        """Pauses at the frame that was drawn last, or resumes."""
        self.paused = not self.paused
        first, following = self.frame_times()
        if self.paused and self.scene_time >= following:
            self.scene_time = first

    def scrub(self, time: float) -> None:
        """Pauses at a time in seconds: coarse while the user drags, then with all samples."""
        self.paused, self.scene_time, self.interacted_at = True, max(round(time, 4), 0.0), self.now()

    # Points of the picture

    def pick(self, u: float, v: float) -> float | None:
        """The distance along the view at these fractions of width and height; None for the background."""
        self.draw_loop.wait_idle()
        assert self.picture is not None
        width, height = self.draw_loop.size
        return self.picture.pick(self.settings(), self.draw_loop.size, u * width, v * height)

    def scene_at(self, u: float, v: float) -> Scene | None:
        """The scene that a click at these fractions of width and height opens; None for nothing."""
        if self.picture is None or self.display.texture is None or not self.picture.can_open:
            return None
        width, height = self.draw_loop.size
        return self.picture.scene_at(self.settings(), self.draw_loop.size, u * width, v * height)

    def measure(self) -> None:
        """Measures MSE, PSNR and FLIP between the displayed picture and the reference of comparisons."""
        if self.display.texture is not None:
            self.comparison.update(self.display, self.scene.tone)
            self.comparison.measure(self.display.texture, self.host.wake)


class PanelEditor:
    """The interface between the main window and the editor of one panel, with defaults that do nothing.

    SceneEditor edits ray traced scenes, FlameEditor flames, ToyEditor gives input to toys; other kinds of picture have
    no editor. An editor lives as long as its panel shows its kind of picture.
    """

    def wants_mouse(self) -> bool:
        """True if the editor takes the mouse before the panel's button."""
        return False

    def mouse(self, rect: Rect) -> bool:
        """Handles the mouse after the panel's button; returns true if the input is used up."""
        return False

    def draw(self, rect: Rect) -> None:
        """Draws over the picture in `rect`."""

    def overlay(self) -> bool:
        """Draws over the window; returns true if another frame is needed although no panel draws."""
        return False

    def controls(self) -> None:
        """Draws the editor's section of the controls."""

    def hidden_settings(self) -> list[str]:
        """Names of the settings that the editor's section shows; the generated controls leave them out."""
        return []

    def actions(self) -> list[Action]:
        """The editor's actions, for keys, help and palette."""
        return []
