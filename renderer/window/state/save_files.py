"""Writes files: scenes, and screenshots of panels and of the window.

Scenes go to their file or to a chosen one; screenshots get unused names in the current folder.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from renderer.errors import InputError, UserError
from renderer.export.plan import DEFAULT_SIZE
from renderer.flames.settings import keyframes_for_file
from renderer.flames.xml.batch import merged
from renderer.flames.xml.read import read_library
from renderer.flames.xml.write import to_xml
from renderer.formats.images import write_png
from renderer.paths import is_bundled
from renderer.pictures import is_flame_file, make_recipe, toy
from renderer.scene.scene import Scene
from renderer.system import drafts
from renderer.system.files import file_stamp, read_text
from renderer.system.outputs import write_bytes, write_text
from renderer.toys.program import with_values
from renderer.window.document import creation
from renderer.window.panels.panel import Panel
from renderer.window.state import open_files, unsaved
from renderer.window.state.app_state import AppState


def save_scene(app: AppState, panel: Panel | None = None) -> None:
    """Writes a panel's scene (default: the active one's); asks for a file if it has none, or one of the program."""
    panel = panel or app.panel
    with app.errors_as_messages("saving the scene", ValueError):
        opened = panel.original.path
        can_hold = _holds_flame_of(opened, panel) or _shader_text(panel) is not None
        path = panel.file.path or (opened if can_hold else None)
        if path is None or is_bundled(path):
            save_scene_as(app, panel)
        elif app.code_changed == path:  # the code panel's text has what was changed over the picture too
            app.save_code(None)
        else:
            load = partial(open_files.show_file, app, panel)
            unsaved.write_over(app, path, panel.file.stamp, partial(save_to, app, panel, path), load)


def document_text(panel: Panel) -> str | None:
    """The text of a panel's own file with all that was changed over the picture; None if its file cannot hold that.

    Raises TextError for a text whose layout does not allow the edits, UserError for a flame that cannot be written.
    """
    path, scene = panel.original.path, panel.kept_scene
    if _holds_flame_of(path, panel):
        return _flame_file(panel, scene, path, appends=False)[0].decode()
    if path.suffix == ".toml":
        return replace(panel.document, scene=scene).text().text
    return _shader_text(panel)


def _shader_text(panel: Panel) -> str | None:
    """The text of the panel's own shader file, with the values of its uniforms as they are set over the picture.

    None for other files, and if something else was changed, which a shader cannot hold.
    """
    path, before, shown = panel.original.path, panel.original.settings, panel.scene.settings
    if path.suffix not in open_files.SHADER_SUFFIXES or type(before) is not type(shown):
        return None
    names: dict[str, str] = {}  # name of a uniform by the key of its setting
    with suppress(InputError):  # a text that cannot be read has no uniforms, and is saved as it is
        names = {uniform.key: uniform.name for uniform in toy.program_of(shown).uniforms}
    values = {name: getattr(shown, key) for key, name in names.items() if getattr(shown, key) != getattr(before, key)}
    without_values = replace(panel.scene, settings=replace(shown, **{key: getattr(before, key) for key in names}))
    if panel.holds_work(without_values) or without_values.tone != panel.original.tone:
        return None
    return with_values(read_text(drafts.file_of(path)), values)


def _save_shader(app: AppState, panel: Panel, path: Path) -> None:
    """Writes the panel's shader, with the values of its uniforms, to its file, or to another that it then shows."""
    file, text = panel.original.path, _shader_text(panel)
    if app.code_changed == file:  # its text has the values
        app.save_code(None if path == file else path)
    elif path == file:
        write_text(path, text or read_text(path))
        open_files.reload(app, {path}, shaders=False, is_quiet=True)
        app.file_watcher.accept(path)
    else:
        open_files.save_copy(app, [panel], file, path, text or read_text(drafts.file_of(file)))
    if panel.original.path == path and app.overlays.question is None:
        lacks = "; what is neither code nor a uniform goes into a .toml file" if text is None else ""
        app.show_message(f"saved {path.name}{lacks}")


def _holds_flame_of(path: Path, panel: Panel) -> bool:
    """True for the .flame file that the panel's flame, or its key frames, were opened from or saved to."""
    is_opened = is_flame_file(path) and panel.scene.picture == "flame" and path == panel.original.path
    return is_opened and panel.original.part != "" and path.is_file()  # `part`: which flame of the file


def save_scene_as(app: AppState, panel: Panel | None = None) -> None:
    """Asks where to write a panel's scene (default: the active one's)."""
    panel = panel or app.panel
    is_file_of_flames = panel.scene.picture == "flame" and is_flame_file(panel.original.path)
    suffixes = (".flame", ".toml") if is_file_of_flames else (".toml", ".flame")
    if (code := panel.original.path.suffix) in open_files.SHADER_SUFFIXES:
        suffixes = (".toml", code) if _shader_text(panel) is None else (code, ".toml")
        if suffixes[0] == ".toml":
            app.show_message("a shader's file holds its code and uniforms: what else changed goes into a .toml file")
    ask_name(app, panel, suffixes)


def ask_name(app: AppState, panel: Panel, suffixes: tuple[str, ...]) -> None:
    """Asks where to write a panel's scene, as a file with one of these suffixes; the first is for a name without."""
    path = panel.file.path or panel.original.path
    suffixes = suffixes if panel.scene.picture == "flame" or path.suffix in suffixes else (".toml",)
    name = "my_shader" if path == creation.UNTITLED_SHADER else path.stem
    start = open_files.scene_folder(app) / f"{name}{suffixes[0]}"
    app.ask_file("Save as", start, suffixes, partial(save_to, app, panel), saves=True)
    if app.dialog is not None and ".flame" in suffixes:
        app.dialog.note, app.dialog.append = partial(_note, panel), partial(save_to, app, panel, appends=True)


def _note(panel: Panel, path: Path) -> str:
    """A sentence on the flames of a file that exists; empty for a file of one."""
    count = 0
    with suppress(InputError):
        count = len(read_library(path)[0]) if is_flame_file(path) else 0
    is_opened = _holds_flame_of(path, panel)
    choice = "save again to replace this one" if is_opened else "Append keeps them, save again replaces all"
    return f"{path.name} holds {count} flames; {choice}" if count > 1 else ""


def save_to(app: AppState, panel: Panel, path: Path, appends: bool = False) -> None:
    """Writes a panel's scene; raises UserError if the file cannot be written, ValueError if its text cannot be made.

    A flame replaces itself in the file that it comes from, and is appended to the flames of a file with `appends`.
    """
    path = path.absolute()
    open_files.check_own(path)
    if path.suffix in open_files.SHADER_SUFFIXES:
        _save_shader(app, panel, path)
        return
    app.sync_code()  # takes what is typed into the picture, and what was changed over the picture into the text
    _save_programs(app, panel, path)
    document = panel.document
    if panel.file.path is None and document.scene.title in (creation.NEW_SCENE["title"], creation.NEW_FLAME):
        titled = replace(document.scene, title=path.stem.replace("_", " "))
        document = replace(document, scene=titled)
    if is_flame_file(path):
        data, part = _flame_file(panel, document.scene, path, appends)
        text, scene = None, replace(document.scene, path=path, part=part)
        write_bytes(path, data)
    else:
        text = document.text_for(path)
        write_text(path, text.text)
        scene = replace(document.scene, path=path, bench=text.scene.bench, test=text.scene.test)
    app.file_watcher.accept(path)
    app.record_change()  # as record_name() below asks: edits up to here are a step of undo, saving is none
    old_title = panel.scene.title
    panel.base, panel.file.saved, panel.file.is_behind = text, text, False
    panel.file.path, panel.file.original, panel.file.stamp = path if text else None, scene, file_stamp(path)
    panel.show(scene)
    app.record_name(panel, path, old_title, scene.title)
    app.recent.add(path)
    open_files.scenes_of_kind.cache_clear()
    among = f" {scene.title!r} in" if scene.picture == "flame" and text is None and _note(panel, path) else ""
    lost = ", but not `transparent`: no .flame file has it" if text is None and scene.settings.transparent else ""
    app.show_message(f"saved{among} {path.name}{lost}")


def _flame_file(panel: Panel, scene: Scene, path: Path, appends: bool) -> tuple[bytes, str]:
    """The bytes of a .flame file with the panel's flame or key frames, and the scene's `part` in it.

    `part` is the number of a flame, or "film" for key frames. The flame replaces itself in the file that it was opened
    from, is appended to the flames of the file with `appends`, or else is alone in it. Raises InputError for a flame
    that cannot be written, UserError for key frames that would join the file's other flames.
    """
    shown = panel.display.texture.size if panel.display.texture is not None else DEFAULT_SIZE
    keys = keyframes_for_file(scene.settings, scene.size or shown, scene.title)
    part = panel.original.part
    if not appends and not _holds_flame_of(path, panel):
        return to_xml(keys).encode(), "film" if len(keys) > 1 else "0"
    entries = read_library(path)[0]
    if appends:
        return merged(path, keys, ()), str(len(entries))
    if len(keys) > 1 and part != "film" and len(entries) > 1:
        raise UserError(
            f"{path.name} holds {len(entries)} flames, which key frames would join: save under another name"
        )
    numbers = [entry.index for entry in entries if entry.keyframe] if part == "film" else [int(part)]
    return merged(path, keys, numbers), "film" if len(keys) > 1 else str(numbers[0])


def _save_programs(app: AppState, panel: Panel, path: Path) -> None:
    """Saves the edited code of a panel's picture; code of the program to copies beside the scene file `path`.

    Raises UserError for code with an error: the picture is of an older text, and the scene could not be opened.
    """
    for file in sorted({panel.original.path, *panel.scene.files}):
        is_edited = file == app.code_changed
        if is_edited and (error := panel.update_error or panel.error):
            raise UserError(f"{path.name} is not saved: the code has an error: {error}")
        if file.suffix not in open_files.PROGRAM_SUFFIXES:
            if is_edited:
                app.code_changed = None  # sync_code() has taken the text into the scene, which is saved next
            continue
        copy = path.with_suffix(file.suffix)
        if copy.exists():
            copy = unused_path(path.parent, path.stem, file.suffix)
        if is_edited:
            app.save_code(copy if is_bundled(file) else None)
        elif is_bundled(file):
            open_files.save_copy(app, [panel], file, copy, read_text(file))


def screenshot(app: AppState) -> None:
    """Writes the active panel's picture with its recipe to the current folder, once it shows a whole sample."""
    if app.panel.display.texture is None:
        app.show_message("nothing is drawn yet")
        return
    app.screenshots.panel = app.panel
    write_pending_screenshot(app)


def write_pending_screenshot(app: AppState) -> None:
    """Writes the requested screenshot if its panel shows a whole sample; drops it if the panel closed or failed."""
    panel = app.screenshots.panel
    if panel is None or not panel.draw_loop.shows_full_sample and panel in app.panels and not panel.error:
        return
    app.screenshots.panel = None
    if panel.display.texture is None or not panel.draw_loop.shows_full_sample:
        return
    pixels = panel.display.texture.read()
    pixels = pixels[..., :3] if (pixels[..., 3] == 255).all() else pixels
    path, loop = unused_path(Path.cwd(), panel.original.path.stem), panel.draw_loop
    facts = {"size": list(panel.display.texture.size), "samples": loop.displayed_samples, "time": loop.drawn_time}
    facts |= {"denoise": True} if panel.denoiser.displayed else {}
    with app.errors_as_messages("writing a screenshot"):
        write_png(path, pixels, make_recipe(panel.scene, path.parent, **facts))
        app.show_message(f"wrote {path.name}")


def screenshot_window(app: AppState) -> None:
    """Writes the next frame of the window to the current folder."""
    app.screenshots.window = unused_path(Path.cwd(), "window")


def unused_path(folder: Path, stem: str, suffix: str = ".png") -> Path:
    """The first of stem-001.png, stem-002.png, ... that does not exist."""
    return next(p for n in range(1, 10**6) if not (p := folder / f"{stem}-{n:03}{suffix}").exists())
