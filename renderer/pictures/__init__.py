"""Inputs to Scenes, and Scenes to Pictures: `picture = "flame"` in a scene file is the module flame.py of this package.

A picture module defines `Settings`, a frozen dataclass, and `Picture`. A module that opens files of its own kind also
defines `open_file(path) -> Scene` and stands in OPENS. Modules are imported when a scene asks for them, so that
optional packages stay optional.
"""

import importlib
import math
import pkgutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from renderer.errors import InputError, UnavailableError
from renderer.formats.images import read_recipe
from renderer.gpu import DeviceContext
from renderer.paths import find_input
from renderer.scene.animation import read_animation, write_animation
from renderer.scene.scene import Scene, ToneMapping
from renderer.scene.schema import format_value, from_table, read_toml, to_table

OPENS = {
    ".obj": "raytrace", ".ply": "raytrace", ".stl": "raytrace", ".glb": "raytrace", ".gltf": "raytrace",
    ".flame": "flame", ".flam3": "flame", ".cb": "cdollar",
    ".zip": "lightfield", ".npz": "lightfield", ".npy": "lightfield",
}  # fmt: skip
TABLES = ("title", "picture", "size", "tone", "settings", "animation", "bench", "test")


Tile = tuple[int, int, int, int]  # left, top, width, height in pixels


class Picture(Protocol):
    """What draws one kind of scene. `tone` is the ToneMapping of scenes that do not say one."""

    tone: ToneMapping

    def __init__(self, gpu: DeviceContext): ...

    def draw(self, settings: Any, size: tuple[int, int], time: float, tile: Tile | None = None):
        """One more sample of the picture of (settings, size, time), restarted when these differ from the last call's.

        Returns a Frame: a Buffer or Texture, (height, width, 4) float32, linear Rec. 709, row 0 on top. With `tile`
        only that part of the picture of `size` is drawn, bit for bit as it stands in the whole.
        """

    def draws(self, settings: Any, size: tuple[int, int]) -> int:
        """How many calls of draw make the finished picture."""

    def animated(self, settings: Any) -> bool:
        """Whether the picture depends on time; a picture without this method does not."""

    # A picture may define layers(settings, size, tile=None) -> dict of host arrays (height, width) or (height, width,
    # 3): what .exr files hold beside the picture itself, such as albedo, normal, depth and id.

    # A picture whose draws add up defines restart(): the next draw is the first one, whatever was drawn before.

    # A picture may define hurry(): from then on no draw waits long for a compiler, as the window wants it, and share():
    # the part of the finished picture that is drawn, where its draws are not equally large.

    # A picture may define twin(): another picture that draws on its own and shares all that does not depend on the
    # tile, so that a window can draw one sample of a costly picture in bands, a band a frame.

    # A picture made of another one may define source(settings, size) -> (picture, settings, size) | None and
    # made(settings, size, frame), of which its draw is made, so that a window can draw the other one in bands.

    # A picture may define deal, draw_part, begin_merge, merge, missing and merged, by which a farm deals the samples of
    # one picture to its workers, bit for bit as one machine draws them; see flame.py and raytrace.py.

    # A picture in space may define pick(settings, size, x, y) -> distance | None of what is seen there, along the view.

    def report(self) -> dict[str, Any]:
        """What panel and records show about the last draw; may read from the device, so not for every frame."""


def refuse_tiles(kind: str, size: tuple[int, int], tile: Tile | None) -> None:
    """UnavailableError for a part of a picture that only comes whole."""
    if tile not in (None, (0, 0, *size)):
        raise UnavailableError(f"a {kind} is drawn whole, without --tile and at no more than 4096 x 4096 pixels")


def names() -> list[str]:
    """The kinds of picture there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def load(path: Path) -> Scene:
    """The Scene of an input: a scene .toml, a file that a picture opens, a folder, or a PNG with a recipe."""
    path = find_input(path)
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path}: No such file or directory")
    if suffix == ".toml":
        return scene_of_table(read_toml(path), path)
    if suffix == ".png":
        return _of_recipe(read_recipe(path), path)
    kind = "lightfield" if path.is_dir() else OPENS.get(suffix)
    if kind is None or kind not in names():
        known = ", ".join([".toml", ".png", *(s for s, k in OPENS.items() if k in names())])
        raise InputError(f"{path}: no picture opens {suffix or 'a file without suffix'}; allowed are {known}")
    return _module(kind).open_file(path)


def scene_of_table(table: dict, path: Path) -> Scene:
    """The Scene of a scene file's tables; paths in it are relative to the file's folder."""
    for key in table:
        if key not in TABLES:
            raise InputError(f"{path}: unknown key {key!r}; allowed are {', '.join(TABLES)}")
    kind = table.get("picture")
    if kind not in names():
        raise InputError(f"{path}: picture is {format_value(kind)}; allowed are {', '.join(names())}")
    module = _module(kind)
    reader = getattr(module, "read_settings", None) or partial(from_table, module.Settings)
    settings = reader(table.get("settings", {}), f"{path}: settings", path.parent)
    tone = from_table(ToneMapping, {**to_table(module.Picture.tone), **_table(table, "tone", path)}, f"{path}: tone")
    title = table.get("title", path.stem)
    if not isinstance(title, str):
        raise InputError(f"{path}: title is {format_value(title)}; it must be a text")
    bench, test = _table(table, "bench", path), _table(table, "test", path)
    animation = read_animation(table["animation"], settings, f"{path}: animation") if "animation" in table else None
    return Scene(path, title, kind, settings, tone, _size(table, path), None, 0.0, animation, bench, test)


def _table(table: dict, key: str, path: Path) -> dict:
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{path}: {key} is {format_value(value)}; it must be a table")
    return value


def _size(table: dict, path: Path) -> tuple[int, int] | None:
    size = table.get("size")
    if size is None:
        return None
    if not (isinstance(size, list) and len(size) == 2 and all(type(n) is int and 1 <= n <= 1 << 17 for n in size)):
        raise InputError(f"{path}: size is {format_value(size)}; it must be [width, height], each 1 to {1 << 17}")
    return tuple(size)


def recipe_of(scene: Scene, folder: Path, **facts) -> dict:
    """The recipe that PNGs carry: the scene with paths relative to `folder`, and facts about the rendering."""
    tables = {
        "title": scene.title,
        "picture": scene.picture,
        "settings": to_table(scene.settings, folder),
        "tone": to_table(scene.tone),
    }
    if scene.animation is not None:
        tables["animation"] = write_animation(scene.animation)
    return {"rayfold": 1, "scene": tables, **facts}


def _of_recipe(recipe: dict, path: Path) -> Scene:
    """The Scene of a recipe, at its size, with its samples and at its moment."""
    scene = recipe.get("scene")
    if recipe.get("rayfold") != 1 or not isinstance(scene, dict):
        raise InputError(
            f"{path}: its recipe is of another version: {format_value(recipe.get('rayfold'))}; this program reads 1"
        )
    size = recipe.get("size")
    samples = recipe.get("samples")
    if samples is not None and (type(samples) is not int or not 1 <= samples <= 1 << 30):
        raise InputError(f"{path}: its recipe is damaged: samples is {format_value(samples)}")
    moment = recipe.get("time", 0.0)
    if isinstance(moment, bool) or not isinstance(moment, (int, float)) or not math.isfinite(moment):
        raise InputError(f"{path}: its recipe is damaged: time is {format_value(moment)}")
    scene = scene_of_table({**scene, **({"size": size} if size else {})}, path)
    return replace(scene, samples=samples, time=float(moment))


def open_picture(scene: Scene, gpu: DeviceContext) -> Picture:
    """The Picture of a scene, its kernels compiled."""
    return _module(scene.picture).Picture(gpu)


def restart(picture: Picture) -> None:
    """Makes the next draw the first one of its picture, so that it depends on nothing drawn before."""
    if hasattr(picture, "restart"):
        picture.restart()


def is_animated(picture: Picture, settings) -> bool:
    """Whether the picture of these settings depends on time."""
    return hasattr(picture, "animated") and picture.animated(settings)


def panels_of(scene: Scene) -> list[Scene]:
    """The scenes that stand side by side in a layout; a scene of another kind is alone."""
    module = _module(scene.picture)
    return module.panels(scene) if hasattr(module, "panels") else [scene]


def _module(kind: str):
    return importlib.import_module(f"renderer.pictures.{kind}")
