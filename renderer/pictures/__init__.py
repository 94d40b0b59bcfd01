"""The kinds of pictures, one module each. This module loads input files as Scenes and opens Scenes as Pictures.

`picture = "flame"` in a scene file names the module flame.py; picture.py is the interface of these modules. A module
that opens a file format also defines `open_file(path) -> Scene` and is listed in PICTURE_OF_SUFFIX. A module is
imported when a scene needs it, so that its optional packages stay optional.
"""

import importlib
import os
import pkgutil
from dataclasses import is_dataclass, replace
from pathlib import Path
from types import ModuleType

from renderer.errors import InputError, UserError
from renderer.formats.images import PICTURE_SUFFIXES, holds_recipe, read_recipe
from renderer.gpu import DeviceContext
from renderer.paths import ASSETS, find_input, missing_input
from renderer.pictures.picture import AnyPicture
from renderer.plain import Json, format_value, is_finite_number
from renderer.scene.animation import read_animation, write_animation
from renderer.scene.scene import Inspect, Scene, ToneMapping
from renderer.scene.schema import PictureSettings, from_table, to_table
from renderer.system.arguments import MAX_SECONDS
from renderer.system.files import check_is_text, read_toml
from renderer.system.profile import stage

PICTURE_OF_SUFFIX = {
    ".obj": "raytrace", ".ply": "raytrace", ".stl": "raytrace", ".off": "raytrace",
    ".glb": "raytrace", ".gltf": "raytrace", ".vrm": "raytrace",
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), "raytrace"),
    ".flame": "flame", ".flam3": "flame", ".cb": "cdollar", ".glsl": "toy", ".frag": "toy", ".kfr": "fractal",
    ".zip": "lightfield", ".npz": "lightfield", ".npy": "lightfield",
}  # fmt: skip
# By suffixes that no picture opens, separated by blanks: the advice how to convert such a file.
CONVERTERS: dict[str, str] = read_toml(ASSETS / "tables" / "converters.toml")
SCENE_SUFFIXES = (".toml", ".png", *PICTURE_OF_SUFFIX, "")  # suffixes of the files that load() opens; "" is a folder
RECIPE_VERSION = 2  # written into PNGs; versions from 1 on can be read
SCENE_KEYS = ("title", "picture", "size", "tone", "inspect", "settings", "groups", "animation", "bench", "test")


def picture_kinds() -> list[str]:
    """The values that `picture` may have in a scene file: the modules of this package but picture.py and source.py."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in ("picture", "source"))


def load(path: Path, flame: str = "", film: bool = False, sheet: bool = False) -> Scene:
    """Loads the Scene of an input: a scene .toml, a file that a picture opens, a folder, or a PNG with a recipe.

    For a file of flames, at most one option: `flame` selects one by number or name, `film` makes all flames key frames,
    `sheet` makes a contact sheet. InputError for a file that cannot be opened.
    """
    path = find_input(path)
    suffix = path.suffix.lower()
    if not os.path.exists(path):  # Path.exists() raises for a name that is too long
        raise InputError(missing_input(path))
    if flame or film or sheet:
        return _load_flames(path, flame, film, sheet)
    if suffix == ".toml":
        return scene_of_table(read_toml(path), path)
    if suffix == ".png":
        return _of_recipe(read_recipe(path), path)
    kind = PICTURE_OF_SUFFIX.get(suffix)
    if path.is_dir():
        kind = "flame_sheet" if _module("flame_sheet").holds_flames(path) else "lightfield"
    if kind is None or kind not in picture_kinds():
        known = ", ".join([".toml", ".png", *(s for s, k in PICTURE_OF_SUFFIX.items() if k in picture_kinds())])
        advice = next((f"; {text}" for names, text in CONVERTERS.items() if suffix in names.split()), "")
        raise InputError(f"{path}: no picture opens {suffix or 'a file without suffix'}; allowed are {known}{advice}")
    return _open(kind, path)


def load_for_window(path: Path) -> Scene:
    """Loads the Scene that the window shows for an input: for a file of several flames, its contact sheet.

    A picture file is shown as it is, unless it is a PNG that Rayfold has drawn, which is its scene.
    """
    path = find_input(path)
    check_is_text(path)
    if is_flame_file(path) and os.path.exists(path):
        return _open("flame_sheet", path) if _module("flame").flame_count(path) > 1 else load(path)
    if path.suffix.lower() in PICTURE_SUFFIXES and os.path.exists(path) and not holds_recipe(path):
        picture: Scene = _module("toy").open_image(path)
        return picture
    scene = load(path)
    if scene.samples and "samples" in scene.settings.__dataclass_fields__:  # a picture's recipe says how many it has
        scene = replace(scene, settings=replace(scene.settings, samples=scene.samples))
    shown: Scene = _module("toy").with_date(scene) if scene.picture == "toy" else scene
    return shown


def load_again(scene: Scene) -> Scene:
    """Loads the file of a scene again, and from a file of flames the same flame."""
    if scene.picture == "flame_sheet" and is_flame_file(scene.path):
        return load(scene.path, sheet=True)
    is_film = scene.part == "film"
    return load(scene.path, flame="" if is_film else scene.part, film=is_film)


def is_flame_file(path: Path) -> bool:
    """True if the path has the suffix of a file of flames."""
    return PICTURE_OF_SUFFIX.get(Path(path).suffix.lower()) == "flame"


def _load_flames(path: Path, flame: str, film: bool, sheet: bool) -> Scene:
    """Loads a file of flames by exactly one of the options; UserError for several."""
    options = [name for name, value in (("--flame", flame), ("--film", film), ("--sheet", sheet)) if value]
    if len(options) > 1:
        raise UserError(f"{options[0]}: not together with {options[1]}")
    if not is_flame_file(path):
        raise UserError(f"{options[0]}: {path} is no file of flames; allowed are .flame, .flam3")
    return _open("flame_sheet", path) if sheet else _open("flame", path, flame, film)


def scene_of_table(table: Json, path: Path, any_file: bool = False) -> Scene:
    """Makes the Scene of a scene file's tables; paths in them are relative to the file's folder. Raises InputError.

    `any_file`: the tables come from a user's script, not from a file of strangers, and may name files outside of the
    folder.
    """
    folder = None if any_file else path.parent
    for key in table:
        if key not in SCENE_KEYS:
            raise InputError(f"{path}: unknown key {key!r}; allowed are {', '.join(SCENE_KEYS)}")
    kind = table.get("picture")
    if kind not in picture_kinds():
        raise InputError(f"{path}: picture is {format_value(kind)}; allowed are {', '.join(picture_kinds())}")
    picture = picture_class(kind)
    settings = picture.read_settings(table.get("settings", {}), f"{path}: settings", folder)
    tone = from_table(ToneMapping, {**to_table(picture.tone), **_table(table, "tone", path)}, f"{path}: tone", folder)
    inspect = from_table(Inspect, _table(table, "inspect", path), f"{path}: inspect", folder)
    if inspect.view not in picture.view_names():
        allowed = ", ".join(picture.view_names())
        raise InputError(f"{path}: inspect: view is {format_value(inspect.view)}; allowed are {allowed}")
    title = table.get("title", path.stem)
    if not isinstance(title, str):
        raise InputError(f"{path}: title is {format_value(title)}; it must be a text")
    bench, test = _table(table, "bench", path), _table(table, "test", path)
    animation, size = None, _size(table, path)
    if "animation" in table:
        animation = read_animation(table["animation"], settings, f"{path}: animation", folder)
    scene = Scene(path, title, kind, settings, tone, size, animation=animation, bench=bench, test=test, inspect=inspect)
    return replace(scene, notes=picture.notes(settings, table), groups=_groups(table, settings, path))


def _groups(table: Json, settings: PictureSettings, path: Path) -> dict[str, tuple[str, ...]]:
    """The paths of the items of each group; InputError for a path of no item, or one that is in a group before."""
    groups = _table(table, "groups", path)
    lists = [(key, items) for key, items in vars(settings).items() if groups and isinstance(items, tuple)]
    free = {f"{key}[{k}]" for key, items in lists for k, item in enumerate(items) if is_dataclass(item)}
    for name, members in groups.items():
        is_list = isinstance(members, list) and bool(members)
        for member in members if is_list else [members]:
            if not is_list or not isinstance(member, str) or member not in free:
                allowed = 'it must be a list of items, such as "spheres[0]", each in one group'
                raise InputError(f"{path}: groups: {name} has {format_value(member)}; {allowed}")
            free.remove(member)
    return {name: tuple(members) for name, members in groups.items()}


def _table(table: Json, key: str, path: Path) -> Json:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} is {format_value(value)}; it must be a table")
    return value


def _size(table: Json, path: Path) -> tuple[int, int] | None:
    size = table.get("size")
    if size is None:
        return None
    if not (isinstance(size, list) and len(size) == 2 and all(type(n) is int and 1 <= n <= 1 << 17 for n in size)):
        raise InputError(f"{path}: size is {format_value(size)}; it must be [width, height], each 1 to {1 << 17}")
    return tuple(size)


def make_recipe(scene: Scene, folder: Path, **facts: object) -> Json:
    """Returns the recipe for an exported PNG: the scene with paths relative to `folder`, and `facts` of the drawing."""
    tables = {
        "title": scene.title,
        "picture": scene.picture,
        "settings": to_table(scene.settings, folder),
        "tone": tone_table(scene, folder),
    }
    if inspect := to_table(scene.inspect, folder):
        tables["inspect"] = inspect
    if scene.animation is not None:
        tables["animation"] = write_animation(scene.animation)
    if scene.groups:
        tables["groups"] = {name: list(members) for name, members in scene.groups.items()}
    return {"rayfold": RECIPE_VERSION, "scene": tables, **facts}


def tone_table(scene: Scene, folder: Path | None = None) -> Json:
    """Returns the tone settings that differ from the picture's defaults; paths are relative to `folder`."""
    return to_table(scene.tone, folder, picture_class(scene.picture).tone)


def _of_recipe(recipe: Json, path: Path) -> Scene:
    """Makes the Scene of a recipe, with its size, samples and time. InputError for a damaged or unknown recipe."""
    scene, version = recipe.get("scene"), recipe.get("rayfold")
    if not isinstance(scene, dict):
        raise InputError(f"{path}: its recipe is damaged: scene is {format_value(scene)}")
    if version not in range(1, RECIPE_VERSION + 1) or isinstance(version, bool):
        known = f"this program reads 1 to {RECIPE_VERSION}"
        raise InputError(f"{path}: its recipe is of another version: {format_value(version)}; {known}")
    if version == 1:  # version 1 wrote tone settings that differ from one default of all kinds of pictures
        scene = scene | {"tone": {"exposure": "auto", "curve": "none"} | _table(scene, "tone", path)}
    size, samples = recipe.get("size"), recipe.get("samples")
    if samples is not None and (type(samples) is not int or not 1 <= samples <= 1 << 30):
        raise InputError(f"{path}: its recipe is damaged: samples is {format_value(samples)}")
    time = recipe.get("time", 0.0)
    if not is_finite_number(time) or abs(time) > MAX_SECONDS:
        raise InputError(f"{path}: its recipe is damaged: time is {format_value(time)}")
    scene = scene_of_table(scene | ({"size": size} if size else {}), path)
    pq_note = "the PNG's pixels are PQ, which --transfer pq --bit-depth 16 writes again"
    notes = (*scene.notes, pq_note) if recipe.get("transfer") == "pq" else scene.notes
    return replace(scene, samples=samples, time=float(time), notes=notes)


def open_picture(scene: Scene, gpu: DeviceContext) -> AnyPicture:
    """Creates the Picture that draws a scene, and compiles the kernels that do not depend on settings."""
    return picture_class(scene.picture)(gpu)


def expand_layout(scene: Scene) -> list[Scene]:
    """Returns the scenes of a layout; [scene] for any other kind of picture."""
    return picture_class(scene.picture).panels(scene)


def picture_class(kind: str) -> type[AnyPicture]:
    """Imports the module of a kind of picture and returns its class."""
    found: type[AnyPicture] = _module(kind).Picture
    return found


def _open(kind: str, *arguments: Path | str | bool) -> Scene:
    scene: Scene = _module(kind).open_file(*arguments)
    return scene


def _module(kind: str) -> ModuleType:
    with stage("importing"):
        return importlib.import_module(f"renderer.pictures.{kind}")
