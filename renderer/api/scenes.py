"""Scenes from Python: tables as TOML has them, arrays, meshes in memory, and keywords that replace settings.

as_scene() turns all that renderer.render() takes into one Scene, checked as a scene file is. Arrays and meshes go into
temporary files, named by their content, so that the readers of scenes need to know files only.
"""

import hashlib
import operator
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar, Union

import numpy as np

from renderer import pictures
from renderer.errors import InputError, UserError
from renderer.formats.images import write_exr, write_png
from renderer.formats.mesh import check_mesh
from renderer.formats.meshes.ply import ply_bytes
from renderer.gpu.dlpack import has_dlpack
from renderer.paths import private_folder
from renderer.plain import format_value, is_finite_number, python_values
from renderer.scene import scene as scenes
from renderer.scene.animation import without_tracks
from renderer.scene.schema import PictureSettings, replace_all, to_table
from renderer.system.arguments import MAX_SECONDS, MAX_WHOLE
from renderer.system.outputs import write_bytes

if TYPE_CHECKING:
    from renderer.flames.interpolation import KeyFrame

__all__ = ["Mesh", "Scene", "Source", "as_scene", "instances", "load", "with_settings"]
Content = TypeVar("Content", bytes, np.ndarray)  # of a temporary file
CAMERA = re.compile(r"^camera(?=\.|$)")  # another name of the setting `view`
# Names that other renderers give to settings, for the hint after a misspelled one.
MEANT = {"spp": "samples", "fov": "camera.fov_degrees", "resolution": "size", "width": "size", "height": "size"}


class Mesh:
    """Triangles in memory, as a shape (`meshes=[{"material": "gold", "file": mesh}]`) or as the whole input.

    `vertices` are (n, 3) numbers and `faces` (m, 3) indices of vertices, counter-clockwise seen from outside. Optional
    arrays by vertex: `normals` (n, 3), `uv` (n, 2) with v upwards as in .obj files, `colors` (n, 3 or 4) linear from 0
    to 1, or the whole range of uint8 or uint16. Each is an array of NumPy, a list, or an object with `__dlpack__` in
    the host's memory.

    Renders read it from `path`, a .ply file in this user's temporary folder that is named by its content and removed
    after a week without use.

    Raises:
        UserError: an array of another shape; InputError: an index out of range or a number that is not finite.
    """

    def __init__(
        self, vertices: object, faces: object, *, normals: object = None, uv: object = None, colors: object = None
    ) -> None:
        points = _rows("vertices", vertices, (3,))
        triangles = _array("faces", faces)
        if triangles.ndim != 2 or triangles.shape[1] != 3 or triangles.dtype.kind not in "iu":
            raise UserError(f"faces are {triangles.shape} {triangles.dtype}; they must be (m, 3) whole numbers")
        check_mesh(points, triangles, "Mesh")
        columns = {name: points[:, k] for k, name in enumerate("xyz")}
        for name, value, names in (
            ("normals", normals, ("nx", "ny", "nz")),
            ("uv", uv, ("s", "t")),
            ("colors", colors, ("red", "green", "blue", "alpha")),
        ):
            if value is not None:
                rows = _rows(name, value, (3, 4) if name == "colors" else (len(names),), len(points))
                columns |= {column: rows[:, k] for k, column in zip(range(rows.shape[1]), names, strict=False)}
        self.path = _stored(ply_bytes(columns, triangles), ".ply", write_bytes)

    @classmethod
    def of(cls, value: Any) -> "Mesh":
        """The mesh of an object that has one: trimesh's `vertices` and `faces`, or PyVista's `points` and faces."""
        if hasattr(value, "regular_faces"):
            surface = getattr(value, "triangulate", lambda: value)()
            return cls(surface.points, surface.regular_faces)
        visual: Any = getattr(value, "visual", None)
        colors = visual.vertex_colors if getattr(visual, "kind", None) == "vertex" else None
        points = getattr(value, "vertices", getattr(value, "points", None))
        return cls(points, value.faces, uv=getattr(visual, "uv", None), colors=colors)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Mesh({self.path.name})"


def has_faces(value: object) -> bool:
    """True for a mesh of another library, which Mesh.of() takes: trimesh's or PyVista's."""
    return hasattr(value, "faces")


def _array(name: str, value: object) -> np.ndarray:
    """The value as an array in host memory; UserError for one that cannot be read there."""
    try:
        return np.from_dlpack(value) if has_dlpack(value) and not isinstance(value, np.ndarray) else np.asarray(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UserError(f"{name}: not an array that can be read in the host's memory: {error}") from error


def _rows(name: str, value: object, widths: tuple[int, ...], count: int | None = None) -> np.ndarray:
    """The value as rows (n, k) float32 with k among the widths; UserError for others.

    Colors are from 0 to 1, or uint8 or uint16 whose largest number is 1.
    """
    rows = _array(name, value)
    if rows.ndim != 2 or rows.shape[1] not in widths or rows.dtype.kind not in "fiu" or count not in (None, len(rows)):
        wanted = f"({count or 'n'}, {' or '.join(map(str, widths))}) numbers"
        raise UserError(f"{name} are {rows.shape} {rows.dtype}; they must be {wanted}")
    is_color = name == "colors"
    largest = np.iinfo(rows.dtype).max if is_color and rows.dtype in (np.uint8, np.uint16) else 1
    with np.errstate(over="ignore"):
        rows = (rows / np.float32(largest)).astype("f4", copy=False)
    is_right = (np.isfinite(rows) & (not is_color or (rows >= 0) & (rows <= 1))).all(1)
    if not is_right.all():
        row = int(np.argmin(is_right))
        wanted = "numbers from 0 to 1, or uint8 or uint16" if is_color else "finite numbers"
        raise InputError(f"{name}: row {row} is {rows[row].tolist()}; it must hold {wanted}")
    return rows


def _stored(content: Content, suffix: str, write: Callable[[Path, Content], object]) -> Path:
    """The path of a temporary file of bytes or of an array, named by the content; written unless it is there."""
    digest = hashlib.sha256(content if isinstance(content, bytes) else np.ascontiguousarray(content).data)
    digest.update(str(getattr(content, "shape", "")).encode())
    folder = private_folder() / "arrays"
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{digest.hexdigest()[:32]}{suffix}"
    if path.exists():
        os.utime(path)  # private_folder() removes what was not used for a week
    else:
        write(path, content)
    return path


def _stored_pixels(array: np.ndarray, key: str) -> str:
    """The path of a picture (height, width[, 3 or 4]): .png for uint8, which is sRGB, else .exr of linear floats.

    As Mitsuba's bitmaps; uint16 is divided by 65535, and an `environment` is the radiance in floats. `key` is the
    setting's dotted name: "environment.file", "textures.0.file".
    """
    pixels = np.repeat(array[..., None], 3, axis=2) if array.ndim == 2 else array
    is_environment = "environment" in key
    largest = {"u1": 255, "u2": 65535}.get(pixels.dtype.str[1:], 1 if pixels.dtype.kind in "fiub" else 0)
    is_mesh = key.startswith("meshes")
    if is_mesh or pixels.ndim != 3 or pixels.shape[2] not in (3, 4) or not pixels.size or not largest:
        wanted = "(height, width) or (height, width, 3 or 4) pixels: floats, uint8 or uint16"
        wanted = "a renderer.Mesh or a path" if is_mesh else wanted
        raise UserError(f"{key} is an array {array.shape} {array.dtype}; it must be {wanted}")
    if is_environment and pixels.shape[1] != 2 * pixels.shape[0]:
        size = f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
        warnings.warn(f"{key} has {size}; a map twice as wide as high is not distorted", stacklevel=2)
    if pixels.dtype == np.uint8 and not is_environment:
        return str(_stored(pixels, ".png", write_png))
    with np.errstate(over="ignore"):
        linear = (pixels / np.float32(1 if is_environment else largest)).astype("f4")
    is_right = ((linear >= 0) & (linear <= (np.finfo("f4").max if is_environment else 1))).all(2)
    if not is_right.all():
        row, column = np.argwhere(~is_right)[0]
        wanted = "finite and not negative" if is_environment else "floats from 0 to 1, or else uint8 or uint16"
        raise InputError(f"{key}: pixel ({column}, {row}) is {pixels[row, column].tolist()}; it must be {wanted}")
    return str(_stored(linear, ".exr", lambda path, rgb: write_exr(path, {"RGBA"[: rgb.shape[2]]: rgb})))


def plain(value: Any, key: str = "") -> Any:
    """A Python value as TOML has it; `key` is its dotted name, for messages.

    Dataclasses become tables, arrays lists or, under the key `file`, pictures or meshes; paths become texts.
    """
    name = key.rpartition(".")[2]
    if is_dataclass(value) and not isinstance(value, type):
        return to_table(value)
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{key}.{k}" if key else str(k)) for k, v in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if name == "file" and has_faces(value):
        return os.fspath(Mesh.of(value))
    is_pixels = name == "file" and isinstance(value, (list, tuple))
    if is_pixels or isinstance(value, (np.ndarray, np.generic)) or has_dlpack(value):
        array = _array(key, value)
        if name == "file":
            return _stored_pixels(array, key)
        if name == "matrix" and array.shape in ((3, 4), (4, 4)):
            array = array[:3].ravel()
        return array.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{key}.{k}") for k, item in enumerate(value)]
    return value


def instances(shape: str, matrices: object, material: str = "") -> list[dict[str, object]]:
    """The setting `instances` for copies of a named shape by `matrices` (n, 4, 4) or (n, 3, 4), shape to world."""
    array = _array("matrices", matrices)
    if array.ndim != 3 or array.shape[1:] not in ((4, 4), (3, 4)) or array.dtype.kind not in "fiu":
        raise UserError(f"matrices are {array.shape} {array.dtype}; they must be (n, 4, 4) or (n, 3, 4) numbers")
    rows = array[:, :3].reshape(len(array), 12).astype("f8").tolist()
    return [{"shape": shape, "material": material, "matrix": row} for row in rows]


class Scene(scenes.Scene):
    """One picture to draw, from tables as a scene file has them; `load` reads one from a file.

        renderer.Scene(materials=[{"name": "red", "color": [1, 0, 0]}], spheres=[{"material": "red"}])
        renderer.Scene(picture="fractal", size=(640, 480))
        renderer.Scene(tomllib.loads(text))

    `picture` is the kind (default "raytrace"); `title`, `size`, `tone`, `animation` and `settings` are a scene file's
    keys, and other keywords are settings; `camera` is another name of `view`. Paths are relative to the current folder.
    Immutable; `dataclasses.replace` changes a copy, whose settings are checked when it is drawn.

    Raises:
        InputError: an unknown key, or a value that is not allowed.
    """

    @python_values()
    def __init__(self, table: Mapping[str, object] | None = None, /, **keys: Any) -> None:
        """Reads the table, or the keywords, or both together."""
        # From dataclasses.replace(), which passes the settings object itself.
        if table is None and isinstance(keys.get("settings"), PictureSettings):
            super().__init__(**keys)
            return
        if not isinstance(table or {}, Mapping):
            raise UserError(f"Scene takes a table, not {format_value(table)}; renderer.load reads a file or a name")
        given = {str(key): plain(value, str(key)) for key, value in {**(table or {}), **keys}.items()}
        spelled = _spelled(key for key in given if key not in pictures.SCENE_KEYS)
        settings = {key: given.pop(name) for key, name in spelled.items()}
        if settings and isinstance(given.setdefault("settings", {}), dict):  # scene_of_table() refuses others
            given["settings"] |= settings
        given.setdefault("picture", "raytrace")
        made = pictures.scene_of_table(given, Path("Scene"), any_file=True)
        for note in made.notes:
            warnings.warn(f"Scene: {note}", stacklevel=3)  # python_values() is between
        vars(made.settings)["is_checked"] = True  # see as_scene()
        super().__init__(**vars(made))


# The arguments that render() accepts as a scene.
Source = Union[str, os.PathLike[str], scenes.Scene, "KeyFrame", Mapping[str, Any], Mesh]


def load(source: str | os.PathLike[str]) -> Scene:
    """The scene of a file that `rayfold export` takes, or of the bundled scene of this name; it is not drawn.

    Raises:
        InputError: there is no such file, or it is bad.
    """
    made = pictures.load(checked_path("load takes a path or the name of a scene", source))
    return Scene(**vars(replace(made, title="Mesh") if isinstance(source, Mesh) else made))


def as_scene(source: object) -> Scene:
    """The scene of anything that render() takes; UserError or InputError for others."""
    if isinstance(source, Scene):
        if not vars(source.settings).get("is_checked"):  # they come from dataclasses.replace(), which checks nothing
            pictures.picture_class(source.picture).read_settings(plain(to_table(source.settings)), "settings", None)
            vars(source.settings)["is_checked"] = True
        return source
    interpolation = sys.modules.get("renderer.flames.interpolation")  # slow to import
    if interpolation is not None and isinstance(source, interpolation.KeyFrame):
        from renderer.pictures.flame import scene_of_keyframe

        return Scene(**vars(scene_of_keyframe(source)))
    if isinstance(source, scenes.Scene):
        return Scene(**vars(source))
    if isinstance(source, Mapping):
        return Scene(source)
    if isinstance(source, (str, os.PathLike)):
        return load(source)
    if has_faces(source):
        return load(Mesh.of(source))
    raise UserError(
        f"render takes the name of a scene, a path, a Scene, a table, a Mesh or a flame, not {type(source).__name__}"
    )


def _spelled(keys: Iterable[str]) -> dict[str, str]:
    """The keywords as the caller spells them, by the names of the settings: {"view.position": "camera.position"}.

    UserError for `camera` beside `view`.
    """
    names = list(keys)
    if {"camera", "view"} <= {name.partition(".")[0] for name in names}:
        raise UserError("camera and view are two names of one setting; allowed is one of them")
    return {CAMERA.sub("view", name): name for name in names}


@python_values()
def with_settings(scene: Scene, changes: Mapping[str, object], tone: object = None) -> Scene:
    """The scene with settings replaced, by names or dotted names (`materials.0.color`), checked together.

    `camera` is another name of the setting `view`; a table of either changes only its keys. Names that begin with
    `tone.` change the tone mapping, as `tone` does: a table, a ToneMapping, or the name of a curve. Raises UserError or
    InputError, which name the key.
    """
    spelled = _spelled(changes)
    named = {key: changes[name] for key, name in spelled.items()}
    for key in MEANT.keys() & named.keys() - vars(scene.settings).keys():
        raise UserError(f"settings: unknown key {key!r} (did you mean {MEANT[key]}?)")
    toned = {key[5:]: plain(named.pop(key), key) for key in list(named) if key.startswith("tone.")}
    if isinstance(tone, str):
        toned["curve"] = tone
    elif tone is not None:
        table = plain(tone, "tone")
        if not isinstance(table, dict):
            raise UserError(f"tone is {format_value(tone)}; it must be a table or the name of a curve")
        toned = table | toned
    values = {key: plain(value, key) for key, value in named.items()}
    unkeyed: scenes.Scene = scene  # without the key frames of the settings that are replaced
    for key, value in named.items():
        paths = [key]
        if key == "view" and isinstance(value, Mapping) and scene.settings.view is not None:
            values[key] = to_table(scene.settings.view) | values[key]  # a table changes only its keys
            paths = [f"{key}.{name}" for name in value]
        for path in paths:
            unkeyed = without_tracks(unkeyed, path)
    settings = replace_all(scene.settings, values, spelled=spelled)
    return replace(scene, animation=unkeyed.animation, settings=settings, tone=replace_all(scene.tone, toned, "tone."))


def checked_path(wanted: str, value: object) -> Path:
    """The value as a path; UserError, which begins with what is `wanted`, for others."""
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise UserError(f"{wanted}, not {value!r}")
    return Path(value)


def checked_size(size: object) -> tuple[int, int]:
    """The size (width, height) as integers; UserError for others."""
    with suppress(TypeError, ValueError):
        width, height = map(operator.index, size if isinstance(size, Sequence | np.ndarray) else ())
        if 1 <= width <= 1 << 17 and 1 <= height <= 1 << 17:
            return width, height
    raise UserError(f"size is {size!r}; it must be (width, height), whole numbers from 1 to {1 << 17}")


def checked_count(name: str, value: object) -> int:
    """The value as an integer of at least 1; UserError, which names it, for others."""
    count = 0
    with suppress(TypeError):  # of arrays that are no scalars
        count = operator.index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else 0
    if not 1 <= count <= MAX_WHOLE:
        raise UserError(f"{name} is {value!r}; it must be a whole number of at least 1")
    return count


def checked_time(value: object) -> float:
    """The value as a number of seconds; UserError for others."""
    seconds = value.item() if isinstance(value, np.generic) else value
    if not (is_finite_number(seconds) and abs(seconds) <= MAX_SECONDS):
        raise UserError(f"time is {value!r}; it must be a number of seconds, at most {MAX_SECONDS:g}")
    return seconds
