"""What the window opens: scenes beside the one at hand, files that are dropped, and files that were saved anew."""

from pathlib import Path

from renderer.errors import UserError
from renderer.gpu.kernel_source import clear_source_cache
from renderer.paths import SHADERS
from renderer.pictures import expand_layout, load
from renderer.scene.scene import Scene
from renderer.scene.schema import read_toml, referenced_files
from renderer.window.state.app_state import AppState

SCENE_SUFFIXES = (".toml", ".flame", ".flam3")  # files that are read as a whole when they are saved


def reload_changed_files(app: AppState, now: float) -> None:
    """Reads shaders, scenes and what they name anew when they are saved."""
    paths = {panel.original.path for panel in app.panels if panel.original.path.suffix in SCENE_SUFFIXES}
    for panel in app.panels:  # a program looks at its own file
        paths |= {Path(file) for file in referenced_files(panel.scene.settings) if not file.endswith(".cb")}
    changed = app.file_watcher.poll(paths | set(SHADERS.rglob("*.*")), now)
    if changed:
        reload(app, {path for path in changed if path in paths}, shaders=bool(changed - paths))


def presets(app: AppState) -> list[Scene]:
    """The scene files beside the active panel's that hold the same kind of picture."""
    path = app.panel.original.path
    key = (path.parent, app.panel.scene.picture)
    if not app.presets_cache or app.presets_cache[0] != key:
        app.presets_cache = (key, list(_of_kind(*key)) if path.suffix == ".toml" else [])
    return app.presets_cache[1]


def next_scene(app: AppState, direction: int) -> None:
    """Shows the scene file before or after this one in its folder, leaving out layouts and files that are bad."""
    here = app.panel.original.path.resolve()
    files = sorted(here.parent.glob("*.toml"))
    start = files.index(here) if here in files else -1
    for step in range(1, len(files) + 1):
        path = files[(start + direction * step) % len(files)]
        try:
            scene = load(path)
            if expand_layout(scene) == [scene]:
                open_in_active_panel(app, scene)
                return
        except UserError as error:
            app.show_message(str(error))
    app.show_message(f"no other scene in {here.parent}")


def open_in_active_panel(app: AppState, scene: Scene) -> None:
    app.panel.original = scene
    app.panel.show(scene)
    app.panel.scene_time, app.panel.paused = scene.time, scene.time > 0
    app.show_message(scene.title)


def drop(app: AppState, paths: list[Path]) -> None:
    """Opens files that were dropped on the window: one into the active panel, several as new panels."""
    for number, path in enumerate(paths):
        try:
            scenes = expand_layout(load(path))
        except UserError as error:
            app.show_message(str(error))
            continue
        if number == 0 and len(scenes) == 1 and len(paths) == 1:
            open_in_active_panel(app, scenes[0])
        else:
            app.add_panels(scenes)


def reload(app: AppState, files: set[Path] | None = None, shaders: bool = True) -> None:
    """Reads shaders anew, and the scenes, meshes and the like among `files`; all of them for None.

    What was good before goes on where an edited file is not, and its panel says why.
    """
    texts = clear_source_cache()
    for panel in app.panels:
        path = panel.original.path
        saved = path.suffix in SCENE_SUFFIXES and path.is_file() and (files is None or path in files)
        read = {Path(file) for file in referenced_files(panel.scene.settings)}
        try:
            if saved:
                panel.original = load(path)
                panel.reload(panel.original, texts)
            elif shaders or files is None or read & files:
                panel.reload(panel.scene, texts)
        except UserError as error:
            panel.update_error = str(error)
    app.presets_cache = ()
    app.show_message("read anew: " + ("shaders" if shaders else ", ".join(sorted(path.name for path in files))))


def _of_kind(folder: Path, kind: str):
    for path in sorted(folder.glob("*.toml")):
        try:
            if read_toml(path).get("picture") == kind:
                yield load(path)
        except UserError:
            continue  # a bad file among them is told when it is opened
