"""A document: a scene with its TOML text and its selected item. Commands (commands.py) return new documents.

A document is a frozen value, so that undo is a stack of documents and restores texts byte by byte.
"""

from collections.abc import Callable
from pathlib import Path

from renderer.records import dataclass, field, replace
from renderer.scene.scene import Scene
from renderer.window.document import scene_text
from renderer.window.document.items import Item, exists, item_at, label
from renderer.window.document.scene_text import SceneText


@dataclass(frozen=True)
class Document:
    """A shown scene and its text `base`, whose values may be outdated, but never the items of its lists.

    `base` is None for a scene that comes from no scene file and has not been edited.
    """

    scene: Scene
    base: SceneText | None = None
    selection: Item | None = field(default=None, compare=False)

    def text(self) -> SceneText:
        """The text of the current scene; raises TextError if the layout of the text does not allow its edits."""
        if self.base is None:
            return scene_text.written(self.scene)
        return scene_text.with_scene(self.base, self.scene)

    def with_settings(self, **changes: object) -> "Document":
        """The document with fields of its scene's settings replaced."""
        return replace(self, scene=replace(self.scene, settings=replace(self.scene.settings, **changes)))

    def up_to_date(self) -> "Document":
        """The document with a `base` that describes the current scene."""
        return replace(self, base=self.text())

    def with_text(self, edit: Callable[[str], str]) -> "Document":
        """The up-to-date document with an edited text."""
        base = self.text()
        return replace(self, base=SceneText(edit(base.text), base.path))

    def text_for(self, path: Path) -> SceneText:
        """The text for a scene file at `path`."""
        return scene_text.moved_to(self.text(), self.scene, path)

    def label(self, item: Item) -> str:
        """The label of an item."""
        return label(self.scene.settings, item, self.base)

    @property
    def groups(self) -> dict[str, frozenset[Item]]:
        """The items of each group; an item is in one at most."""
        return {name: frozenset(map(item_at, members)) for name, members in self.scene.groups.items()}

    def members(self, item: Item) -> frozenset[Item]:
        """The items of the item's group; the item alone if it is in none."""
        return next((members for members in self.groups.values() if item in members), frozenset([item]))

    @property
    def selected(self) -> Item | None:
        """The selected item, if it still exists."""
        return self.selection if exists(self.scene.settings, self.selection) else None
