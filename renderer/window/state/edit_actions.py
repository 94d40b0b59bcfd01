"""Edits of a panel's scene: commands on items, added and dropped files, and the callbacks of settings controls.

Each edit is one step of undo; a refused edit shows its reason as a message.
"""

from collections.abc import Callable
from dataclasses import Field, replace
from functools import partial
from pathlib import Path

from renderer.errors import UserError
from renderer.formats.images import IMAGE_SUFFIXES
from renderer.formats.mesh import SUFFIXES
from renderer.scene.animation import insert_keyframe, remove_track
from renderer.scene.schema import replace_path, split_path
from renderer.system.files import check_is_text, resolve
from renderer.window.controls.settings import ControlContext
from renderer.window.document import Document, Item, commands, creation, items
from renderer.window.panels.panel import Panel
from renderer.window.state import open_files
from renderer.window.state.app_state import AppState
from renderer.window.state.open_files import scene_folder

SHAPE_SUFFIXES = (*SUFFIXES, ".gltf")
HIDDEN_GROUPS = ("instances", "point_lights", "suns", "volumes")  # that can be hidden, beside shapes
Command = Callable[[Document], Document]


def run_command(app: AppState, command: Command, panel: Panel | None = None) -> bool:
    """Applies a command to the document of a panel (default: the active one) as one step of undo.

    Returns false, after a message, for a command that the scene does not allow.
    """
    with app.errors_as_messages("editing the scene", ValueError):
        put_document(app, panel or app.panel, command)
        return True
    return False


def put_document(app: AppState, panel: Panel, command: Command) -> None:
    """As run_command(), but raises what the command raises."""
    with app.undo_step():
        panel.put(command(panel.document))


# Items


def _on_selected(app: AppState, command: Callable[[Document, frozenset[Item]], Document]) -> bool:
    """Applies a command to the selected items; returns false, after a message, if it does not."""
    if chosen := app.panel.chosen:
        return run_command(app, lambda document: command(document, chosen))
    app.show_message("nothing is selected: click an item in the list or in the picture")
    return False


def delete_selected(app: AppState) -> None:
    """Deletes the selected items."""
    _on_selected(app, partial(commands.for_each, command=commands.delete))


def duplicate_selected(app: AppState) -> None:
    """Duplicates the selected items; the copies of a group are selected."""
    if _on_selected(app, commands.duplicate_all):
        app.panel.select(app.panel.selection)


def group_selected(app: AppState) -> None:
    """Makes a group of the selected items, which a click on one of them selects."""
    name = commands.next_name("group 0", list(app.panel.scene.groups))
    _on_selected(app, partial(commands.group, name=name))


def ungroup_selected(app: AppState) -> None:
    """Takes the selected items out of their groups."""
    _on_selected(app, commands.group)


def hide_selected(app: AppState) -> None:
    """Draws the selected items no more in the active panel, or again."""
    panel, settings = app.panel, app.panel.scene.settings
    groups = (*items.shape_groups(settings), *HIDDEN_GROUPS)
    hiding = {i for i in panel.chosen if i.group in groups and not getattr(items.item_value(settings, i), "name", "")}
    panel.hidden ^= hiding
    shown = "hidden here; exports have it" if hiding & panel.hidden else "shown again"
    app.show_message(shown if hiding else "select what hides: a shape without a name, an instance or a light")


def show_hidden(app: AppState) -> None:
    """Draws all items of the active panel again."""
    app.panel.hidden = frozenset()


# Files


def add_file_dialog(app: AppState) -> None:
    """Asks for a mesh or a model to add to the active panel's scene."""
    app.ask_file("Add a mesh or a model", scene_folder(app), SHAPE_SUFFIXES, partial(add_file, app))


def texture_dialog(app: AppState) -> None:
    """Asks for a picture to add as a texture of the active panel's scene."""
    app.ask_file("Add a texture", scene_folder(app), IMAGE_SUFFIXES, partial(_add_texture, app))


def add_file(app: AppState, path: Path) -> None:
    """Adds a mesh or a model to the active panel's scene; raises what its reader raises."""
    _check_takes(app, "meshes", "models")
    put_document(app, app.panel, lambda document: creation.add_file(document, path))


def _add_texture(app: AppState, path: Path) -> None:
    _check_takes(app, "textures")
    put_document(app, app.panel, lambda document: creation.add_texture(document, path))
    item = items.material_of(app.panel.scene.settings, app.panel.document.selected)
    use = "choose it in a material" if item is None else f"colors of {app.panel.document.label(item)}"
    app.show_message(f"texture {path.name}: {use}")


def _check_takes(app: AppState, *names: str) -> None:
    """Raises UserError unless the active panel's scene has these lists."""
    if not items.groups(app.panel.scene.settings).keys() >= set(names):
        raise UserError(f"a {app.panel.scene.picture} picture has no {names[0]}; make a new scene first (Ctrl+N)")


def drop(app: AppState, paths: list[Path]) -> None:
    """Takes dropped files: a single file that the active scene can hold opens a question, other files are opened."""
    suffix = paths[0].suffix.lower() if len(paths) == 1 else ""
    takes_shapes = items.groups(app.panel.scene.settings).keys() >= {"meshes", "models", "textures"}
    if takes_shapes and (suffix in SHAPE_SUFFIXES or suffix in IMAGE_SUFFIXES and suffix != ".png"):
        app.overlays.dropped = paths[0]
    else:
        open_files.open_dropped_files(app, paths)


def take_dropped(app: AppState, choice: str) -> None:
    """Applies the choice for the dropped file: "add" to the scene, "open" in this panel, or "panel" for a new one."""
    path, app.overlays.dropped = app.overlays.dropped, None
    if path is None:
        return
    with app.errors_as_messages(f"taking {path.name}", ValueError):
        check_is_text(path)
        if choice != "add":
            open_files.open_path(app, path, in_new_panels=choice == "panel")
        elif path.suffix.lower() in SHAPE_SUFFIXES:
            add_file(app, path)
        else:
            _add_texture(app, path)


# Settings


def control_context(app: AppState, panel: Panel, hidden: list[str] | None = None) -> ControlContext:
    """The answers to the controls of a panel's settings."""
    settings, animation = panel.scene.settings, panel.scene.animation

    def item_label(path: str, index: int) -> str | None:
        known = path in items.groups(settings) and index < len(getattr(settings, path))
        return panel.document.label(Item(path, index)) if known else None

    return ControlContext(
        refuse=app.show_message,
        names=lambda refers_to: items.names_for(settings, refers_to) if items.groups(settings) else [],
        item_label=item_label,
        browse=partial(browse, app, panel),
        rename=partial(rename, app, panel),
        add_key=partial(add_key, app, panel),
        remove_track=partial(delete_track, app, panel),
        tracks={track.path for track in animation.tracks} if animation else (),
        hidden=hidden or (),
    )


def rename(app: AppState, panel: Panel, path: str, name: str) -> None:
    """Renames the item at a path and its uses."""
    run_command(app, lambda document: commands.rename(document, items.item_at(path), name), panel)


def browse(app: AppState, panel: Panel, path: str, f: Field, value: str) -> None:
    """Asks for the file of a setting."""
    suffixes = tuple(suffix for suffix in f.metadata["file"] if suffix)
    what = f.name.replace("_", " ")
    start = Path(value).parent if value else scene_folder(app)
    app.ask_file(f"Choose the {what}", start, suffixes, partial(set_file, app, panel, path))


def set_file(app: AppState, panel: Panel, path: str, file: Path) -> None:
    """Sets the file of a setting; raises UserError or ValueError for a file that the settings do not take."""
    scene = panel.scene
    settings = replace_path(scene.settings, split_path(path), str(resolve(file)), path)
    with app.undo_step():
        panel.show(replace(scene, settings=settings))


def add_key(app: AppState, panel: Panel, path: str) -> None:
    """Inserts a key frame of one setting at the scene time."""
    with app.errors_as_messages("inserting a key frame", ValueError):
        with app.undo_step():
            panel.show(insert_keyframe(panel.scene, panel.scene_time, [path]))
        app.overlays.timeline.is_on = panel.paused = True
        app.show_message(f"key frame at {panel.scene_time:.2f} s: {path}")


def delete_track(app: AppState, panel: Panel, path: str) -> None:
    """Deletes all key frames of a setting, which keeps the value of its last."""
    with app.errors_as_messages("deleting key frames", ValueError):
        with app.undo_step():
            panel.show(remove_track(panel.scene, path))
        app.show_message(f"no key frames of {path}")
