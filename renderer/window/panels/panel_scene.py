"""The scene of a panel: its settings and scene time, the file it was opened from, and its TOML text.

PanelPicture adds the picture, Panel the actions.
"""

from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from renderer.errors import UserError
from renderer.formats.images import PICTURE_SUFFIXES
from renderer.paths import is_bundled
from renderer.scene.animation import settings_at
from renderer.scene.scene import Scene
from renderer.system.files import file_stamp
from renderer.window.document import Document, Item, scene_text
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.completion import Clock
from renderer.window.panels.frame_budget import INTERACTION_SECONDS

MAX_OWN_PIXELS = 1 << 22  # of a picture file that is drawn at its own size
INPUT = ("mouse", "keys", "toggled", "date")  # settings that a toy takes from the window
WORK = ("settings", "animation", "title", "size", "groups")  # fields of a Scene that hold more than looks
VIEWING = ("view", *INPUT)  # settings that change as the user looks around


class SceneFile:
    """The opened file: the scene that "reset" restores, and the scene file that "save" writes, if there is one.

    Undo returns to the file that was open; saving under another name is not undone.
    """

    def __init__(self, original: Scene, base: SceneText | None):
        self.original = original  # as it was opened or saved last
        self.path: Path | None = original.path if base is not None and original.path.is_file() else None
        self.saved = base  # the text in the file; None: not of a scene file
        self.stamp = file_stamp(original.path)  # time and size of the file when it was read or written
        # The scene as the file's text has it, or the code panel's text that is not saved: what differs from it was
        # changed over the picture, and is not in that text.
        self.in_text = original
        self.is_behind = False  # `original` is from a session, with edits that neither the file nor `base` holds


def _with_settings_of(before: Scene, shown: Scene, names: tuple[str, ...]) -> Scene:
    """The scene `shown` with the settings of these names as they are in `before`, if both have one kind of settings."""
    kept = {f.name: getattr(before.settings, f.name) for f in fields(before.settings) if f.name in names}
    is_same_kind = type(shown.settings) is type(before.settings)
    return replace(shown, settings=replace(shown.settings, **kept)) if kept and is_same_kind else shown


def _own_size(scene: Scene) -> tuple[int, int] | None:
    """The size of a picture file, at which a window can be compared with it; None for scenes and huge pictures."""
    size = scene.size if scene.path.suffix.lower() in PICTURE_SUFFIXES else None
    return size if size is not None and size[0] * size[1] <= MAX_OWN_PIXELS else None


def starts_paused(scene: Scene) -> bool:
    """True for a scene with a time, and for a picture file of a scene that moves: the panel shows the file's time."""
    moves = scene.settings.is_animated or bool(scene.animation and scene.animation.tracks)
    return scene.time > 0 or moves and _own_size(scene) is not None


class PanelScene:
    """A scene with its document and its time. `scene` is replaced, never changed."""

    def __init__(self, scene: Scene, now: Clock, base: SceneText | None = None):
        self.scene, self.now = scene, now
        self.interacted_at = now() - 0.5  # longer ago than INTERACTION_SECONDS: opening is no interaction
        self.file = SceneFile(scene, scene_text.opened(scene))
        self.base = base or self.file.saved  # the TOML text, whose values may be older than the scene's; see Document
        self.selection: Item | None = None
        self.several: frozenset[Item] = frozenset()  # the selected items, after a Ctrl+click; see chosen
        self.hidden: frozenset[Item] = frozenset()  # items that this panel does not draw; exports do
        self.fixed_size = _own_size(scene)  # pixels, whatever size the panel has; None: the panel's
        self.paused = starts_paused(scene)
        self.scene_time = scene.time  # seconds

    @property
    def original(self) -> Scene:
        """The scene as it was opened or saved last."""
        return self.file.original

    @property
    def document(self) -> Document:
        """The scene as a document, from which commands make changed documents for put()."""
        return Document(self.scene, self.base, self.selection)

    @property
    def chosen(self) -> frozenset[Item]:
        """The selected items: `selection`, and the items that were clicked with Ctrl beside it."""
        selected = self.document.selected
        return self.several if selected in self.several else frozenset(filter(None, [selected]))

    def select(self, item: Item | None, alone: bool = False, toggles: bool = False) -> None:
        """Selects an item with its group; None selects nothing.

        With `alone`, and for an item of several that are selected: without its group. With `toggles`, the item and its
        group are added to the selected items, or taken away if all of them are selected.
        """
        chosen, members = self.chosen, frozenset(filter(None, [item]))
        is_one_of_several = item in chosen and len(chosen) > 1
        if item is not None and not alone and (toggles or not is_one_of_several):
            members = self.document.members(item)
        if toggles:
            self.several = chosen - members if members <= chosen else chosen | members
        else:
            self.several = members
        self.selection = item if item in self.several else next(iter(self.several), None)

    @property
    def kept_scene(self) -> Scene:
        """The scene without what its file does not hold: the window's input, and for a program's file the view."""
        is_scene = self.original.path.suffix == ".toml" or self.scene.picture != "toy"
        return _with_settings_of(self.original, self.scene, INPUT if is_scene else VIEWING)

    @property
    def is_changed(self) -> bool:
        """True if there are unsaved changes."""
        base, saved = self.base, self.file.saved
        if base is None:  # no scene file
            return self.file.is_behind or _with_settings_of(self.original, self.scene, INPUT) != self.original
        if saved is None or base.text != saved.text:
            return True
        written = self.original
        with suppress(UserError, ValueError):  # a file that the text names is gone
            written = base.scene
        shown = _with_settings_of(written, self.scene, INPUT)
        return any(getattr(shown, name) != getattr(written, name) for name in ("tone", *WORK))

    @property
    def has_unsaved_work(self) -> bool:
        """True if there are unsaved changes that closing the panel would lose.

        Changes of VIEWING and of the tone alone count only if the user's own scene file can hold them.
        """
        path = self.original.path
        can_hold_looks = self.file.is_behind or path.suffix == ".toml" and not is_bundled(path)
        return self.is_changed and (can_hold_looks or self.holds_work(self.scene))

    def holds_work(self, shown: Scene) -> bool:
        """True if `shown` differs from the opened scene in more than looks."""
        before, shown = self.original, _with_settings_of(self.original, shown, VIEWING)
        return any(getattr(shown, name) != getattr(before, name) for name in WORK)

    def open(self, scene: Scene) -> None:
        """Makes `scene`, from another file, the opened scene; the caller then passes it to show()."""
        self.base = scene_text.opened(scene)
        self.file = SceneFile(scene, self.base)
        self.selection, self.fixed_size = None, _own_size(scene)

    def read_again(self, scene: Scene) -> None:
        """Makes `scene`, whose program has other settings by now, the opened scene; its text and edits stay."""
        self.file.original = self.file.in_text = scene
        if self.base is not None and self.file.saved is not None:  # copies: SceneText keeps the scene that it read
            self.base, self.file.saved = replace(self.base), replace(self.file.saved)

    def settings(self) -> Any:
        """The settings that the controls show: the scene's, or the animation's at the scene time."""
        return settings_at(self.scene, self.scene_time)

    def is_interacting(self, now: float) -> bool:
        """True within INTERACTION_SECONDS of the user's last change."""
        return now - self.interacted_at < INTERACTION_SECONDS

    @property
    def period(self) -> float | None:
        """The duration of the scene's animation; None if nothing moves in it."""
        animation = self.scene.animation
        return animation.duration if animation and (animation.tracks or self.scene.settings.is_animated) else None
