"""A document: one scene as it is shown, and the text that it is saved as. Commands make new documents of it.

A document is a frozen value, so that undo is a stack of documents, and restores texts byte by byte.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path

from renderer.scene.scene import Scene
from renderer.window.document import scene_text
from renderer.window.document.items import Item, exists, label
from renderer.window.document.scene_text import SceneText


@dataclass(frozen=True)
class Document:
    """`scene` is what is shown. `base` is its text, which may be behind in values, but never in the items of lists.

    `base` is None for a scene that comes from no scene file and has not been edited.
    """

    scene: Scene
    base: SceneText | None = None
    selection: Item | None = field(default=None, compare=False)

    @classmethod
    def of_file(cls, scene: Scene) -> "Document":
        """The document of a scene that was loaded."""
        return cls(scene, scene_text.opened(scene))

    def text(self) -> SceneText:
        """The text of the scene as it is now; raises TextError where it cannot be brought up to date."""
        if self.base is None:
            return scene_text.written(self.scene)
        return scene_text.with_scene(self.base, self.scene)

    def up_to_date(self) -> "Document":
        """The document whose base says its scene."""
        return replace(self, base=self.text())

    def text_for(self, path: Path) -> SceneText:
        """The text for a scene file at `path`."""
        return scene_text.moved_to(self.text(), self.scene, path)

    def label(self, item: Item) -> str:
        """What an item is called."""
        return label(self.scene.settings, item, self.base)

    @property
    def selected(self) -> Item | None:
        """The selected item, if it is still there."""
        return self.selection if exists(self.scene.settings, self.selection) else None
