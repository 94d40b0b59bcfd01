"""What undo restores, as frozen values: the open panels, their scenes and texts, and where they are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from renderer.scene.scene import Scene
from renderer.window.document.scene_text import SceneText
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_scene import SceneFile
from renderer.window.state.layout import LayoutNode


@dataclass(frozen=True)
class ShownScene:
    """The document of one panel."""

    scene: Scene
    base: SceneText | None
    file: SceneFile = field(compare=False)


@dataclass(frozen=True)
class PanelsState:
    """The open panels and their documents, and where they are if other panels were open."""

    panels: tuple[Panel, ...]
    shown: tuple[ShownScene, ...]
    active: int = field(compare=False)
    layout: LayoutNode | None = field(compare=False)


def panels_state(panels: Sequence[Panel], active: int, layout: LayoutNode | None) -> PanelsState:
    """The state of these panels."""
    shown = tuple(ShownScene(panel.scene, panel.base, panel.file) for panel in panels)
    return PanelsState(tuple(panels), shown, active, layout)


def show_again(state: PanelsState) -> None:
    """Shows the documents of a state in its panels."""
    for panel, shown in zip(state.panels, state.shown, strict=True):
        panel.base, panel.file = shown.base, shown.file
        panel.show(shown.scene)
