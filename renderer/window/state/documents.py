"""Actions on documents: new, open, save, save as, and the commands on the items of the active panel's scene."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from renderer.errors import UserError
from renderer.formats.images import atomic_write
from renderer.paths import SCENES
from renderer.pictures import PICTURE_OF_SUFFIX, expand_layout, load_for_window
from renderer.window.document import commands, creation
from renderer.window.document.document import Document
from renderer.window.document.items import Item, groups
from renderer.window.panels.panel import Panel
from renderer.window.state import open_files
from renderer.window.state.app_state import AppState
from renderer.window.state.session import MAX_PANELS

SHAPE_SUFFIXES = (".obj", ".ply", ".stl", ".off", ".glb", ".gltf")
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
SCENE_SUFFIXES = (".toml", ".png", *PICTURE_OF_SUFFIX)
Command = Callable[[Document], Document]


def run_command(app: AppState, command: Command, panel: Panel | None = None) -> bool:
    """Shows what a command makes of the document of a panel, the active one, as one step of undo.

    A command that the scene does not allow costs a message.
    """
    with app.errors_as_messages("editing the scene", ValueError):
        put_document(app, panel or app.panel, command)
        return True
    return False


def put_document(app: AppState, panel: Panel, command: Command) -> None:
    """run_command() without a message: raises what the command raises."""
    app.record()
    document = panel.document
    changed = command(document)
    if changed != document or changed.selection != document.selection:
        panel.put(changed)
        app.record()


def new_document(app: AppState) -> None:
    """Opens an empty scene: in a new panel, or in the active one if the window is full."""
    with app.errors_as_messages("making a new scene"):
        scene = creation.new_scene(Path.cwd())
        if len(app.panels) < MAX_PANELS:
            app.add_panels([scene])
        else:
            open_files.open_in_active_panel(app, scene)
        app.show_message("an empty scene: Shift+A adds shapes, lights and materials")


def open_path(app: AppState, path: Path) -> None:
    """Opens a file in the active panel, a layout in new ones; raises what its reader raises."""
    app.record()
    scenes = expand_layout(load_for_window(path))
    if len(scenes) == 1:
        open_files.open_in_active_panel(app, scenes[0])
    else:
        app.add_panels(scenes)
    app.record()
    app.recent.add(path)


def open_dialog(app: AppState) -> None:
    """Asks for a file to open in the active panel."""
    app.ask_file("Open", folder_of(app), SCENE_SUFFIXES, partial(open_path, app))


def add_file_dialog(app: AppState) -> None:
    """Asks for a mesh or a model to add to the active panel's scene."""
    app.ask_file("Add a mesh or a model", folder_of(app), SHAPE_SUFFIXES, partial(add_file, app))


def texture_dialog(app: AppState) -> None:
    """Asks for a picture to add as a texture of the active panel's scene."""
    app.ask_file("Add a texture", folder_of(app), IMAGE_SUFFIXES, partial(_add_texture, app))


def browse(app: AppState, title: str, value: str, suffixes: tuple[str, ...], take: Callable[[Path], None]) -> None:
    """Asks for the file of a setting, whose value is a path or empty."""
    start = Path(value).parent if value else folder_of(app)
    app.ask_file(title, start, suffixes, take)


def add_file(app: AppState, path: Path) -> None:
    """Adds a mesh or a model to the active panel's scene; raises what its reader raises."""
    _check_takes(app, "meshes", "models")
    put_document(app, app.panel, lambda document: creation.add_file(document, path))


def _check_takes(app: AppState, *names: str) -> None:
    """Raises UserError if the active panel's scene has not these lists."""
    if not groups(app.panel.scene.settings).keys() >= set(names):
        raise UserError(f"a {app.panel.scene.picture} picture has no {names[0]}; make a new scene first (Ctrl+N)")


def _add_texture(app: AppState, path: Path) -> None:
    _check_takes(app, "textures")
    put_document(app, app.panel, lambda document: creation.add_texture(document, path))


def folder_of(app: AppState) -> Path:
    """Where a dialog begins: the folder of the active panel's scene."""
    path = app.panel.file.path or app.panel.original.path
    return path.parent if path.parent.is_dir() and not _is_bundled(path) else Path.cwd()


def _is_bundled(path: Path) -> bool:
    return path.resolve().is_relative_to(SCENES.resolve())


def save(app: AppState) -> None:
    """Writes the active panel's scene to its file; asks for one if there is none, or if it comes with the program."""
    panel = app.panel
    if panel.file.path is None or _is_bundled(panel.file.path):
        save_as_dialog(app)
        return
    with app.errors_as_messages("saving the scene", ValueError):
        save_to(app, panel, panel.file.path)


def save_as_dialog(app: AppState) -> None:
    """Asks where to write the active panel's scene."""
    panel = app.panel
    start = folder_of(app) / (panel.file.path or panel.original.path).with_suffix(".toml").name
    app.ask_file("Save as", start, (".toml",), partial(save_to, app, panel), saves=True)


def save_to(app: AppState, panel: Panel, path: Path) -> None:
    """Writes a panel's scene; raises UserError if the file cannot be written, ValueError if its text cannot be made."""
    path = path.absolute()
    document = panel.document
    if panel.file.path is None and document.scene.title == creation.NEW_SCENE["title"]:
        document = commands.set_title(document, path.stem.replace("_", " "))
    text = document.text_for(path)
    with atomic_write(path) as temporary:
        temporary.write_text(text.text, encoding="utf-8")
    app.file_watcher.accept(path)
    scene = replace(document.scene, path=path, bench=text.scene.bench, test=text.scene.test)
    panel.base = panel.file.saved = text
    panel.file.path, panel.file.original = path, scene
    panel.show(scene)
    app.record()
    app.recent.add(path)
    app.presets_cache = None
    app.show_message(f"saved {path.name}")


def select(app: AppState, item: Item | None) -> None:
    """Selects an item of the active panel's scene."""
    app.panel.selection = item


def _on_selected(app: AppState, command: Callable[[Document, Item], Document]) -> None:
    item = app.panel.document.selected
    if item is None:
        app.show_message("nothing is selected: click an item of the list, or Alt+click it in the picture")
    else:
        run_command(app, lambda document: command(document, item))


def delete_selected(app: AppState) -> None:
    """Deletes the selected item."""
    _on_selected(app, commands.delete)


def duplicate_selected(app: AppState) -> None:
    """Duplicates the selected item."""
    _on_selected(app, commands.duplicate)


def drop(app: AppState, paths: list[Path]) -> None:
    """Takes dropped files: asks what to do with one that the active panel's scene can hold, and opens others."""
    suffix = paths[0].suffix.lower() if len(paths) == 1 else ""
    takes_shapes = groups(app.panel.scene.settings).keys() >= {"meshes", "models", "textures"}
    if takes_shapes and (suffix in SHAPE_SUFFIXES or suffix in IMAGE_SUFFIXES and suffix != ".png"):
        app.dropped = paths[0]
    else:
        open_files.open_dropped_files(app, paths)


def take_dropped(app: AppState, choice: str) -> None:
    """Does with the dropped file what was chosen: "add" it to the scene, "open" it here, or "panel": in a new panel."""
    path, app.dropped = app.dropped, None
    if path is None:
        return
    with app.errors_as_messages(f"taking {path.name}", ValueError):
        if choice == "add" and path.suffix.lower() in SHAPE_SUFFIXES:
            add_file(app, path)
        elif choice == "add":
            _add_texture(app, path)
        elif choice == "open":
            open_path(app, path)
        else:
            app.add_panels(expand_layout(load_for_window(path)))
