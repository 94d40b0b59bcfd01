"""What the window opens: scenes beside the one at hand, files that are dropped, and files that were saved anew."""

from pathlib import Path

from renderer.errors import UserError
from renderer.gpu.kernel_source import clear_source_cache
from renderer.paths import SHADERS
from renderer.pictures import load, panels_of
from renderer.scene.scene import Scene
from renderer.scene.schema import read_toml, referenced_files
from renderer.window.app.state import Studio

SCENES = (".toml", ".flame", ".flam3")  # files that are read as a whole when they are saved


def look_at_files(studio: Studio, now: float) -> None:
    """Reads shaders, scenes and what they name anew when they are saved."""
    paths = {panel.original.path for panel in studio.panels if panel.original.path.suffix in SCENES}
    for panel in studio.panels:  # a program looks at its own file
        paths |= {Path(file) for file in referenced_files(panel.scene.settings) if not file.endswith(".cb")}
    changed = studio.watch.changed(paths | set(SHADERS.rglob("*.*")), now)
    if changed:
        reload(studio, {path for path in changed if path in paths}, shaders=bool(changed - paths))


def presets(studio: Studio) -> list[Scene]:
    """The scene files beside the active panel's that hold the same kind of picture."""
    path = studio.panel.original.path
    key = (path.parent, studio.panel.scene.picture)
    if not studio.found_presets or studio.found_presets[0] != key:
        studio.found_presets = (key, list(_of_kind(*key)) if path.suffix == ".toml" else [])
    return studio.found_presets[1]


def next_scene(studio: Studio, direction: int) -> None:
    """Shows the scene file before or after this one in its folder, leaving out layouts and files that are bad."""
    here = studio.panel.original.path.resolve()
    files = sorted(here.parent.glob("*.toml"))
    start = files.index(here) if here in files else -1
    for step in range(1, len(files) + 1):
        path = files[(start + direction * step) % len(files)]
        try:
            scene = load(path)
            if panels_of(scene) == [scene]:
                open_here(studio, scene)
                return
        except UserError as error:
            studio.tell(str(error))
    studio.tell(f"no other scene in {here.parent}")


def open_here(studio: Studio, scene: Scene) -> None:
    studio.panel.original = scene
    studio.panel.show(scene)
    studio.panel.clock, studio.panel.paused = scene.time, scene.time > 0
    studio.tell(scene.title)


def drop(studio: Studio, paths: list[Path]) -> None:
    """Opens files that were dropped on the window: one into the active panel, several as new panels."""
    for number, path in enumerate(paths):
        try:
            scenes = panels_of(load(path))
        except UserError as error:
            studio.tell(str(error))
            continue
        if number == 0 and len(scenes) == 1 and len(paths) == 1:
            open_here(studio, scenes[0])
        else:
            studio.add(scenes)


def reload(studio: Studio, files: set[Path] | None = None, shaders: bool = True) -> None:
    """Reads shaders anew, and the scenes, meshes and the like among `files`; all of them for None.

    What was good before goes on where an edited file is not, and its panel says why.
    """
    texts = clear_source_cache()
    for panel in studio.panels:
        path = panel.original.path
        saved = path.suffix in SCENES and path.is_file() and (files is None or path in files)
        read = {Path(file) for file in referenced_files(panel.scene.settings)}
        try:
            if saved:
                panel.original = load(path)
                panel.reread(panel.original, texts)
            elif shaders or files is None or read & files:
                panel.reread(panel.scene, texts)
        except UserError as error:
            panel.mistake = str(error)
    studio.found_presets = ()
    studio.tell("read anew: " + ("shaders" if shaders else ", ".join(sorted(path.name for path in files))))


def _of_kind(folder: Path, kind: str):
    for path in sorted(folder.glob("*.toml")):
        try:
            if read_toml(path).get("picture") == kind:
                yield load(path)
        except UserError:
            continue  # a bad file among them is told when it is opened
