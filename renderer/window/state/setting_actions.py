"""What the controls of settings ask for: names to choose from, files, key frames, other names."""

from dataclasses import Field, replace
from pathlib import Path
from typing import Any

from renderer.scene.animation import insert_keyframe, remove_track
from renderer.scene.schema import replace_path, split_path
from renderer.window.controls.context import ControlContext
from renderer.window.document import commands, items
from renderer.window.document.items import Item
from renderer.window.panels.panel import Panel
from renderer.window.state import documents
from renderer.window.state.app_state import AppState

SUFFIXES = {  # of the files that settings name, by the class and the field
    "MeshShape.file": (".obj", ".ply", ".stl", ".off"), "ModelShape.file": (".glb", ".gltf"),
    "Environment.file": (".exr", ".hdr"), "PointLight.file": (".ies",), "Volume.file": (".npy",),
    "TextureFile.file": documents.IMAGE_SUFFIXES, "ToneMapping.lut": (".cube",),
}  # fmt: skip
ANY_SUFFIX = (
    ".png", ".jpg", ".exr", ".hdr", ".npy", ".npz", ".zip", ".obj", ".ply", ".stl", ".glb", ".gltf", ".cb", ".flame",
    ".toml", ".cube", ".ies",
)  # fmt: skip


def control_context(app: AppState, panel: Panel, hidden: list[str] | None = None) -> ControlContext:
    """What the controls of a panel's settings ask the window."""
    settings, animation = panel.scene.settings, panel.scene.animation

    def item_label(path: str, index: int) -> str | None:
        known = path in items.groups(settings) and index < len(getattr(settings, path))
        return panel.document.label(Item(path, index)) if known else None

    return ControlContext(
        refuse=app.show_message,
        names=lambda refers_to: items.names_for(settings, refers_to) if items.groups(settings) else [],
        item_label=item_label,
        browse=lambda path, f, value: browse(app, panel, path, f, value),
        rename=lambda path, name: rename(app, panel, path, name),
        add_key=lambda path: add_key(app, panel, path),
        remove_track=lambda path: delete_track(app, panel, path),
        tracks={track.path for track in animation.tracks} if animation else (),
        hidden=hidden or (),
    )


def rename(app: AppState, panel: Panel, path: str, name: str) -> None:
    """Renames the item at a path and its uses."""
    group, index = path.removesuffix("]").split("[")
    documents.run_command(app, lambda document: commands.rename(document, Item(group, int(index)), name), panel)


def browse(app: AppState, panel: Panel, path: str, f: Field, value: str) -> None:
    """Asks for the file of a setting."""
    owner: Any = panel.scene.settings
    for name in split_path(path)[:-1]:
        owner = owner[int(name)] if isinstance(owner, tuple) else getattr(owner, name, owner)
    suffixes = SUFFIXES.get(f"{type(owner).__name__}.{f.name}", ANY_SUFFIX)
    what = f.name.replace("_", " ")
    documents.browse(app, f"Choose the {what}", value, suffixes, lambda file: set_file(app, panel, path, file))


def set_file(app: AppState, panel: Panel, path: str, file: Path) -> None:
    """Sets the file of a setting; raises UserError or ValueError for one that the settings do not take."""
    app.record()
    scene = panel.scene
    settings = replace_path(scene.settings, split_path(path), str(file.resolve()), path)
    panel.show(replace(scene, settings=settings))
    app.record()


def add_key(app: AppState, panel: Panel, path: str) -> None:
    """Inserts a key frame of one setting at the scene time."""
    with app.errors_as_messages("inserting a key frame", ValueError):
        app.record()
        panel.show(insert_keyframe(panel.scene, panel.scene_time, [path]))
        app.timeline = panel.paused = True
        app.record()
        app.show_message(f"key frame at {panel.scene_time:.2f} s: {path}")


def delete_track(app: AppState, panel: Panel, path: str) -> None:
    """Deletes all key frames of a setting, which keeps the value of its last."""
    with app.errors_as_messages("deleting key frames", ValueError):
        app.record()
        panel.show(remove_track(panel.scene, path))
        app.record()
        app.show_message(f"no key frames of {path}")
