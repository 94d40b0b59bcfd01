"""What a panel shows: a scene at a time, the file that it comes from, and the text that it is saved as."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from renderer.gpu.gl import Texture
from renderer.pictures.picture import Picture, Size
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene
from renderer.window.document import scene_text
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.completion import Clock
from renderer.window.panels.frame_budget import INTERACTION_SECONDS


class SceneFile:
    """What was opened: the scene that "reset" restores, and the scene file that "save" writes, once there is one.

    Undo returns to the file that was open; saving under another name is not undone.
    """

    def __init__(self, original: Scene, base: SceneText | None):
        self.original = original
        self.path: Path | None = original.path if base is not None and original.path.is_file() else None
        self.saved = base


class PanelScene:
    """A scene with its document and its time. `scene` is replaced, never changed."""

    def __init__(self, scene: Scene, now: Clock, base: SceneText | None = None):
        self.scene, self.now = scene, now
        self._interacted_at = now() - 0.5
        self.file = SceneFile(scene, scene_text.opened(scene))
        self.base = base or self.file.saved  # the text, behind in values; see Document
        self.selection: Item | None = None
        self.paused = scene.time > 0  # a scene with a time starts paused there
        self.scene_time = scene.time  # seconds
        self.display_texture: Texture | None = None  # 8 bits per channel, tone mapped
        self._size: Size = (1, 1)  # in pixels, of the picture

    def pick(self, u: float, v: float) -> float | None:
        """The distance along the view at these fractions of width and height; None if nothing is there."""
        self.wait_idle()
        assert self.picture is not None
        width, height = self._size
        return self.picture.pick(self.settings(), self._size, u * width, v * height)

    def scene_at(self, u: float, v: float) -> Scene | None:
        """The scene that a click at these fractions of width and height opens; None for nothing."""
        if self.picture is None or self.display_texture is None or not self.picture.can_open:
            return None
        width, height = self._size
        return self.picture.scene_at(self.settings(), self._size, u * width, v * height)

    @property
    def can_pick(self) -> bool:
        """Whether the picture has depth to focus on."""
        return self.picture is not None and self.display_texture is not None and self.picture.can_pick

    def wait_idle(self) -> None:
        """Waits for what draws the picture."""

    @property
    def picture(self) -> Picture | None:
        """The picture that draws the scene, if there is one."""
        return None

    @property
    def original(self) -> Scene:
        """The scene as it was opened or saved last."""
        return self.file.original

    @property
    def document(self) -> Document:
        """The scene as a document; commands make others of it, which put() shows."""
        return Document(self.scene, self.base, self.selection)

    @property
    def is_changed(self) -> bool:
        """Whether there is something to save."""
        if self.base is None or self.file.saved is None or self.base.text != self.file.saved.text:
            return self.base is not None or self.scene != self.original
        shown, said = self.scene, self.base.scene
        return any(getattr(shown, k) != getattr(said, k) for k in ("settings", "tone", "animation", "title", "size"))

    @property
    def can_denoise(self) -> bool:
        """Whether the picture has albedo and normal layers."""
        return self.picture is not None and {"albedo", "normal"} <= set(self.picture.layer_names)

    def _requested_state(self) -> tuple:
        """What is to be drawn; tone mapping is no part of it."""
        return self.scene.picture, self.scene.settings

    def open(self, scene: Scene) -> None:
        """Takes another file's scene, which is shown next, for what was opened."""
        self.base = scene_text.opened(scene)
        self.file = SceneFile(scene, self.base)
        self.selection = None

    def settings(self) -> Any:
        """The settings that the controls show: the scene's, or the animation's at the scene time."""
        return settings_at(self.scene, self.scene_time)

    def is_animated(self) -> bool:
        """Whether the picture changes by itself: by key frames, animated models, or because it depends on time."""
        by_itself = self.scene.settings.is_animated
        return self._period is not None or by_itself or self._depends_on_time(self.scene.settings)

    @property
    def is_playing(self) -> bool:
        """Whether the picture changes by itself now."""
        return not self.paused and self.is_animated()

    def is_interacting(self, now: float) -> bool:
        """Whether the user has just changed something."""
        return now - self._interacted_at < INTERACTION_SECONDS

    def readable_samples(self, now: float) -> int:
        """The samples that each picture of an animation should have; 1 at rest, and while the user interacts."""
        if self.picture is None or not self.is_playing or self.is_interacting(now):
            return 1
        return self.picture.readable_samples(self.scene.settings)

    @property
    def _period(self) -> float | None:
        """The duration of the scene's animation; None if nothing moves in it."""
        animation = self.scene.animation
        return animation.duration if animation and (animation.tracks or self.scene.settings.is_animated) else None

    def _depends_on_time(self, settings: Any) -> bool:
        with suppress(Exception):  # the draw, which asks for the same, reports it
            return self.picture is not None and self.picture.depends_on_time(settings)
        return False

    def _work(self, settings: Any) -> float:
        with suppress(Exception):  # the draw, which works with the same, reports it
            return max(self.picture.work(settings), 1.0) if self.picture is not None else 1.0
        return 1.0

    def tick(self, seconds: float) -> None:
        """Advances the scene time, unless paused; an animation repeats."""
        if self.is_playing:
            self.scene_time += seconds
            if self._period:
                self.scene_time %= self._period
