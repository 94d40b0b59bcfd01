"""Opens scenes: new scenes, chosen and dropped files, the next file of the folder, presets, and edited files again.

Errors of files are shown as messages, or in the panel whose file was edited.
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from functools import lru_cache, partial
from pathlib import Path

from renderer.errors import UserError
from renderer.formats.images import PICTURE_SUFFIXES
from renderer.formats.linked import linked_files
from renderer.gpu.kernel_source import clear_source_cache
from renderer.paths import SHADERS, is_bundled
from renderer.pictures import PICTURE_OF_SUFFIX, expand_layout, load_again, load_for_window, picture_class
from renderer.plain import format_ignored
from renderer.scene.scene import Scene
from renderer.scene.schema import kept_values
from renderer.system import drafts
from renderer.system.files import file_stamp, read_toml, resolve
from renderer.system.outputs import write_text
from renderer.toys.program import with_absolute_images
from renderer.window.boundary import contained
from renderer.window.document import creation, scene_text
from renderer.window.panels.display import Display
from renderer.window.panels.measurements import Measurements
from renderer.window.panels.panel import Panel
from renderer.window.panels.panel_scene import starts_paused
from renderer.window.state import unsaved
from renderer.window.state.app_state import AppState

OPEN_SUFFIXES = (".toml", *PICTURE_SUFFIXES, *PICTURE_OF_SUFFIX)
SHADER_SUFFIXES = (".glsl", ".frag")
PROGRAM_SUFFIXES = (".cb", *SHADER_SUFFIXES)  # programs that scenes name, whose settings come from their text
RELOAD_SUFFIXES = (".toml", ".flame", ".flam3", *PROGRAM_SUFFIXES)  # files that are loaded again after an edit


def reload_changed_files(app: AppState, now: float) -> None:
    """Reloads shaders, scenes and the files that they name, after each edit."""
    if not app.file_watcher.is_due(now, tuple(id(panel.scene) for panel in app.panels)):  # scenes say what is watched
        return
    paths = {panel.original.path for panel in app.panels if panel.original.path.suffix in RELOAD_SUFFIXES}
    for panel in app.panels:
        paths |= _named_files(panel.scene)
    # drafts.copies: the user's copies that are read in place of bundled shaders
    shader_files = app.file_watcher.files_below(SHADERS, now).union(drafts.copies.values())
    changed = app.file_watcher.poll(paths | shader_files, now)
    if changed:
        reload(app, changed & paths, shaders=bool(changed - paths))


def _named_files(scene: Scene) -> set[Path]:
    """The files that a scene names, and the files that its models name in turn."""
    named = scene.files
    return named.union(*map(linked_files, named))


def presets(app: AppState) -> list[Scene]:
    """The scenes of the active panel's kind of picture in its folder."""
    path = app.panel.original.path
    return scenes_of_kind(path.parent, app.panel.scene.picture) if path.suffix == ".toml" else []


@lru_cache(maxsize=1)  # cleared where files were read again or saved
def scenes_of_kind(folder: Path, kind: str) -> list[Scene]:
    """The scenes in a folder with pictures of a kind, without damaged files."""
    scenes: list[Scene] = []
    for path in sorted(folder.glob("*.toml")):
        with contained(f"reading {path.name}", lambda error, sentence: None):  # reported when it is opened
            if _picture_kind(path, file_stamp(path)) == kind:
                scenes.append(load_for_window(path))
    return scenes


def picture_kind(path: Path) -> object:
    """The kind of picture that a file holds, by its suffix or, for a scene file, its key `picture`."""
    if path.suffix == ".toml":
        return _picture_kind(path, file_stamp(path))
    return PICTURE_OF_SUFFIX.get(path.suffix, "picture")


@lru_cache(maxsize=1000)
def _picture_kind(path: Path, stamp: tuple[int, int] | None) -> object:
    """The kind of picture that a scene file names, read anew for each file_stamp() of the file."""
    return read_toml(path).get("picture")


def next_scene(app: AppState, direction: int) -> None:
    """Opens the next (1) or the previous (-1) scene file of the folder, except layouts and damaged files."""
    here = resolve(app.panel.original.path)
    files = sorted(here.parent.glob("*.toml"))
    start = files.index(here) if here in files else -1
    for step in range(1, len(files) + 1):
        with app.errors_as_messages("opening a scene"):
            scene = load_for_window(files[(start + direction * step) % len(files)])
            if expand_layout(scene) == [scene]:
                open_in_active_panel(app, scene)
                return
    app.show_message(f"no other scene in {here.parent}")


def open_in_active_panel(app: AppState, scene: Scene, message: str = "") -> None:
    """Shows a scene in the active panel, after the question about unsaved work in it."""
    unsaved.ask(app, [app.panel], partial(_open_in_panel, app, app.panel, scene, message), f"Open {scene.title}")


def _open_in_panel(app: AppState, panel: Panel, scene: Scene, message: str = "") -> None:
    """Shows a scene in a panel, which stays paused; a scene with a time starts paused there."""
    with app.undo_step():
        panel.draw_loop.keep_picture()
        panel.open(scene)
        panel.inspection.show(scene.inspect)
        if scene.path != panel.scene.path:
            panel.display = Display(panel.gpu.gl)  # the last scene's picture is not this one's
            panel.display.reset()
            panel.comparison.stop()
            panel.measured = Measurements()
        panel.show(scene)
        panel.scene_time = scene.time
        panel.paused = panel.paused or starts_paused(scene)
    ignored = format_ignored(picture_class(scene.picture).ignored(scene.settings))
    not_drawn = [f"not drawn: {', '.join(ignored[:4])}"] if ignored else []
    app.show_message(message or "; ".join([scene.title, *scene.notes, *not_drawn]))


def revert(app: AppState) -> None:
    """Shows the active panel's file as it was saved last, as one step of undo."""
    panel = app.panel
    if app.code_changed is not None and app.code_changed == panel.original.path:
        app.revert_code()
    elif not panel.is_changed:
        app.show_message("nothing to revert: the scene is as it was saved")
    elif panel.original.path.is_file():
        show_file(app, panel)
    else:
        app.show_message("nothing to revert to: the scene was never saved")


def show_file(app: AppState, panel: Panel) -> None:
    """Shows what a panel's file holds now."""
    _open_in_panel(app, panel, load_again(panel.original))


def new_document(app: AppState) -> None:
    """Opens an empty scene in the active panel."""
    message = "an empty scene: Shift+A adds shapes, lights and materials"
    open_in_active_panel(app, creation.new_scene(Path.cwd()), message)


def new_flame(app: AppState) -> None:
    """Opens a flame of three xforms in the active panel."""
    message = "a new flame: drag its triangles; Ctrl+S saves it"
    open_in_active_panel(app, creation.new_flame(Path.cwd()), message)


def new_shader(app: AppState) -> None:
    """Opens a small shader in the active panel, and its code beside it."""
    app.overlays.code.is_on = True
    message = "a new shader: type, and the picture follows; Ctrl+S in the code saves it"
    open_in_active_panel(app, creation.new_shader(), message)


def open_path(app: AppState, path: Path, in_new_panels: bool = False) -> None:
    """Opens a file in the active panel, or in new panels, as layouts always are; raises what its reader raises."""
    scenes = expand_layout(load_for_window(path))
    with app.undo_step():
        if len(scenes) == 1 and not in_new_panels:
            open_in_active_panel(app, scenes[0])
        else:
            app.add_panels(scenes)
    app.recent.add(path)


def open_dialog(app: AppState) -> None:
    """Asks for a file to open in the active panel."""
    app.ask_file("Open in the active panel", scene_folder(app), OPEN_SUFFIXES, partial(open_path, app))


def open_beside(app: AppState) -> None:
    """Asks for a file to open in a new panel, beside the active one."""
    app.ask_file("Open in a new panel", scene_folder(app), OPEN_SUFFIXES, partial(open_path, app, in_new_panels=True))


def open_dropped_files(app: AppState, paths: list[Path]) -> None:
    """Opens files that were dropped on the window: one in the active panel, several in new panels."""
    for path in paths:
        with app.errors_as_messages("opening a dropped file"):
            open_path(app, path, in_new_panels=len(paths) > 1)


def scene_folder(app: AppState) -> Path:
    """The folder of the active panel's scene, where dialogs begin; for a scene of the program the current folder."""
    path = app.panel.file.path or app.panel.original.path
    return path.parent if path.parent.is_dir() and not is_bundled(path) else Path.cwd()


def moved_text(text: str, path: Path, copy: Path) -> str:
    """The text of a file for a copy of it in another folder, where the files that it names are still found."""
    if path.suffix == ".toml":
        base = scene_text.SceneText(text, path)
        return scene_text.moved_to(base, base.scene, copy).text
    if path.suffix in SHADER_SUFFIXES and resolve(path.parent) != resolve(copy.parent):
        return with_absolute_images(text, path.parent)
    return text


def check_own(path: Path) -> None:
    """Raises UserError for a path in a folder of the program, which is never written."""
    if is_bundled(path):
        raise UserError(f"{path.parent} belongs to the program: choose another folder")


def save_copy(app: AppState, panels: Iterable[Panel], file: Path, copy: Path, text: str) -> None:
    """Writes the text of a bundled file to a copy of the user's own, which the panels then show instead.

    Values that the user has changed over the picture stay. `file` is a panel's opened file or a program that its scene
    names.
    """
    write_text(copy, moved_text(text, file, copy))
    app.recent.add(copy)
    for panel in panels:
        scene, is_opened_file = panel.scene, panel.original.path == file
        if file in scene.files:
            named = [f.name for f in fields(scene.settings) if getattr(scene.settings, f.name) == str(file)]
            scene = replace(scene, settings=replace(scene.settings, **dict.fromkeys(named, str(copy))))
        if is_opened_file:
            before, loaded = panel.original, load_for_window(copy)
            panel.open(loaded)
            settings = _with_edits(loaded, before, scene).settings
            scene = replace(scene, path=loaded.path, title=loaded.title, settings=settings)
        panel.show(scene)


def open_scene_at(app: AppState, index: int, u: float, v: float) -> bool:
    """Opens the scene at these fractions of a panel, such as a flame of a sheet; returns false if there is none."""
    with app.errors_as_messages("opening a flame"):
        scene = app.panels[index].scene_at(u, v)
        if scene is not None:
            app.panels.active = index
            open_in_active_panel(app, scene)
            return True
    return False


def _with_edits(loaded: Scene, before: Scene, shown: Scene, text_wins: bool = False) -> Scene:
    """The scene `loaded` of an edited file, with what the user had changed over the picture (three-way merge).

    `before` is the scene of the file before its edit, `shown` the scene with the user's changes. A setting that both
    have changed is as in `shown`; with `text_wins` as in `loaded`.
    """
    if before.picture != loaded.picture or type(shown.settings) is not type(before.settings):
        return loaded

    def keeps(name: str, old: object, mine: object, new: object) -> bool:
        return mine != getattr(old, name) and not (text_wins and getattr(new, name) != getattr(old, name))

    values = kept_values(shown.settings, type(loaded.settings))
    changed = {k: value for k, value in values.items() if keeps(k, before.settings, value, loaded.settings)}
    names = [k for k in ("title", "tone", "animation", "size") if keeps(k, before, getattr(shown, k), loaded)]
    scene = replace(loaded, **{name: getattr(shown, name) for name in names})
    return replace(scene, settings=replace(loaded.settings, **changed))


def _show_update_error(panel: Panel, error: Exception, sentence: str) -> None:
    panel.update_error = sentence


def reload(app: AppState, files: set[Path] | None = None, shaders: bool = True, is_quiet: bool = False) -> None:
    """Reloads the scenes, meshes and other inputs that are in `files`, or all (None); and with `shaders` all shaders.

    If an edited file fails to load, its panel keeps the last good picture and shows the error. A panel with unsaved
    edits keeps them, and is not read from its file. `is_quiet` is for texts of the code panel: they are read although
    the panel has edits, which are then made in the new text; there is no message once the edited files are drawn.
    """
    texts = clear_source_cache()  # the shader sources that the present pictures were compiled from
    unread = set[str]()  # names of files that changed on the disk, but whose panels keep unsaved edits
    for panel in app.panels:
        path = panel.original.path
        is_edited = path.suffix in RELOAD_SUFFIXES and path.is_file() and (files is None or path in files)
        named, is_program = _named_files(panel.scene), path.suffix in PROGRAM_SUFFIXES
        # Edits that the file lacks: a text typed in the code panel, or what was changed over the picture of a scene.
        keeps_edits = not is_quiet and (path in drafts.texts or not is_program and panel.has_unsaved_work)
        is_unread = keeps_edits and file_stamp(path) not in (panel.file.stamp, None)  # changed, and not deleted
        has_new_program = any(file.suffix in PROGRAM_SUFFIXES for file in named & (files or set()))
        with contained(f"reloading {path.name}", partial(_show_update_error, panel)):
            if is_edited and not keeps_edits or has_new_program and not is_unread:
                loaded, stamp, is_typed = load_again(panel.original), panel.file.stamp, is_quiet and is_edited
                before = panel.file.in_text if is_typed else panel.original
                # A scene file without unsaved edits is shown as it is read: nothing of the old scene is kept
                shown = panel.scene if is_program or keeps_edits or is_quiet else before
                if is_edited:
                    panel.open(loaded)
                    if path in drafts.texts:  # typed, not saved: the file is as it was
                        panel.file.stamp = stamp
                else:  # a program that the scene names: the scene's own text stays, with its edits
                    panel.read_again(loaded)
                panel.reload(_with_edits(loaded, before, shown, text_wins=is_typed), texts)
            elif shaders or files is None or named & files:  # the picture alone is made anew
                panel.reload(panel.scene, texts)
            if is_unread and is_edited:
                unread.add(path.name)
                load_again(panel.original)  # raises the file's error, which is shown although the file is not used
                panel.update_error = ""
    scenes_of_kind.cache_clear()
    names = "shaders" if shaders or files is None else ", ".join(sorted({path.name for path in files}))
    app.reloaded = "" if is_quiet else f"reloaded: {names}"
    if unread:
        app.reloaded = f"{', '.join(sorted(unread))} changed on the disk: your edits are kept; Ctrl+S asks"
    report_reload(app)


def report_reload(app: AppState) -> None:
    """Shows the message about reloaded files once all panels draw what is in them; none if one of them fails."""
    if not app.reloaded or any(panel.is_reloading for panel in app.panels if not panel.error):
        return
    if not any(panel.update_error or panel.error for panel in app.panels):
        app.show_message(app.reloaded)
    app.reloaded = ""
