"""New scenes, and new items for a scene: the entries of the window's Add menu.

A new shape stands at the view's target and takes SIZE_IN_VIEW of the view's height there.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from renderer.paths import SCENES
from renderer.pictures import load, scene_of_table
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings, field_types
from renderer.window.document import commands, items
from renderer.window.document.document import Document
from renderer.window.document.items import Item

NEW_SCENE: dict[str, Any] = {
    "title": "untitled",
    "picture": "raytrace",
    "size": [1280, 720],
    "settings": {
        "view": {"position": [3.0, 2.5, 6.0], "target": [0.0, 0.5, 0.0], "fov_degrees": 40.0},
        "horizon": [0.05, 0.05, 0.05], "zenith": [0.05, 0.05, 0.05],
    },
}  # fmt: skip
SIZE_IN_VIEW = 0.25  # size of a new shape, as a fraction of the view's height at its target
Corner = tuple[float, float, float]
Box = tuple[np.ndarray, np.ndarray]  # the least and the greatest coordinates


class Addition(NamedTuple):
    """An entry of the Add menu: its section, its name, and the command that adds the item."""

    section: str
    name: str
    run: Callable[[Document], Document]


def new_scene(folder: Path) -> Scene:
    """An empty ray traced scene without a file, titled "untitled"."""
    return scene_of_table(NEW_SCENE, folder / "untitled.toml")


def new_flame(folder: Path) -> Scene:
    """A flame of three xforms, Sierpinski's triangle, without a file, titled "untitled flame"."""
    flame = load(SCENES / "sierpinski.toml")
    return replace(flame, path=folder / "untitled_flame.toml", title="untitled flame", bench={}, test={})


def can_add(settings: PictureSettings) -> bool:
    """True if a scene of these settings is made of items."""
    return "materials" in items.groups(settings)


def additions(settings: PictureSettings) -> list[Addition]:
    """The additions to a scene of these settings that need no file."""
    if not can_add(settings):
        return []
    known = items.groups(settings)
    out = [Addition("Shape", name, command) for name, command in _SHAPES.items()]
    for group in ("procedural", "distance_fields"):
        kinds = get_args(field_types(known[group])["kind"])
        out += [
            Addition("Shape", f"{items.singular(group)}: {kind}", partial(_shape_of_kind, group=group, kind=kind))
            for kind in kinds
        ]
    out += [Addition("Light", name, command) for name, command in _LIGHTS.items()]
    kinds = get_args(field_types(known["materials"])["kind"])
    out += [Addition("Material", kind, partial(_material_of_selected, kind=kind)) for kind in kinds]
    shapes = items.names_for(settings, items.SHAPES)
    out += [Addition("Instance", f"of {items.shorten(name)}", partial(_instance, shape=name)) for name in shapes]
    return [*out, Addition("Volume", "box of fog", _volume)]


def with_material(document: Document) -> tuple[Document, str]:
    """The document with at least one material, and the name of its first material."""
    names = items.names_for(document.scene.settings, "materials")
    if names:
        return document, names[0]
    return commands.add(document, "materials", _class(document, "materials")("plain")), "plain"


def add_file(document: Document, path: Path) -> Document:
    """The document with a mesh or a model, scaled to half of the view's height at its target.

    The reader of the file raises its own errors.
    """
    from renderer.formats.mesh import load_part
    from renderer.formats.models import GLTF_SUFFIXES, load_model

    settings = document.scene.settings
    if path.suffix.lower() in GLTF_SUFFIXES:
        model = load_model(str(path), "")
        boxes = [
            _bounds(_placed(part.vertices, matrix)) for mesh, matrix in model.mesh_nodes for part in model.meshes[mesh]
        ]
        value = _class(document, "models")(file=str(path))
        return commands.add(document, "models", _fitted(value, settings, _union(boxes)))
    document, material = with_material(document)
    value = _class(document, "meshes")(material=material, file=str(path))
    return commands.add(document, "meshes", _fitted(value, settings, _bounds(load_part(path).vertices)))


def add_texture(document: Document, path: Path) -> Document:
    """The document with a picture file as a texture."""
    name = commands.unique_name(document.scene.settings, "textures", path.stem or "texture")
    return commands.add(document, "textures", _class(document, "textures")(name=name, file=str(path)))


def _placed(vertices: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    return vertices @ matrix[:3, :3].T + matrix[:3, 3]


def _bounds(points: np.ndarray) -> Box:
    return points.min(0), points.max(0)


def _union(boxes: list[Box]) -> Box:
    if not boxes:
        raise ValueError("the model has no mesh")
    return np.min([low for low, _ in boxes], 0), np.max([high for _, high in boxes], 0)


def _fitted(value: Any, settings: PictureSettings, box: Box) -> Any:
    """The shape scaled to the view, centered at the view's target."""
    (low, high), view = box, settings.view
    size = max(float(b - a) for a, b in zip(low, high, strict=True)) or 1.0
    scale = _nice(2 * _unit(settings) / size)
    middle = [scale * float(a + b) / 2 for a, b in zip(low, high, strict=True)]
    position = (view.target[0] - middle[0], view.target[1] - middle[1], view.target[2] - middle[2])
    return replace(value, scale=scale, position=tuple(_nice(x, 4) for x in position))


def _nice(number: float, digits: int = 2) -> float:
    """The number rounded to so many significant digits."""
    return float(f"{number:.{digits}g}")


def _unit(settings: PictureSettings) -> float:
    """The size of a new shape: a nice number that fits the view."""
    return _nice(SIZE_IN_VIEW * settings.view.target_plane_height(), 1)


def _target(settings: PictureSettings) -> Corner:
    x, y, z = (_nice(n, 4) for n in settings.view.target)
    return x, y, z


def _class(document: Document, group: str) -> Any:
    return items.groups(document.scene.settings)[group]


def _add(document: Document, group: str, label: str, *values: object, **named: object) -> Document:
    """The document with a new item of a group, made of field values, with the first unused label as its comment."""
    base = document.up_to_date().base
    labels = base.comments(group) if base is not None else []
    unused = label if label not in labels else commands.next_name(label, labels)
    return commands.add(document, group, _class(document, group)(*values, **named), unused)


def _with_table(document: Document, name: str, **values: object) -> Document:
    """The document with fields of a table of settings replaced."""
    return document.with_settings(**{name: replace(getattr(document.scene.settings, name), **values)})


# Shapes


def _sphere(document: Document) -> Document:
    document, material = with_material(document)
    settings = document.scene.settings
    return _add(document, "spheres", "sphere", material, _target(settings), _unit(settings) / 2)


def _quad(document: Document, facing: str = "front", label: str = "quad", material: str = "") -> Document:
    """A quad that faces the front, up (below the target, as a ground) or down (above the target, as a light)."""
    if not material:
        document, material = with_material(document)
    settings = document.scene.settings
    (x, y, z), r = _target(settings), _unit(settings)
    corners: tuple[Corner, ...]
    if facing == "up":
        y, r = y - r / 2, 4 * r
        corners = (x - r, y, z + r), (x + r, y, z + r), (x + r, y, z - r), (x - r, y, z - r)
    elif facing == "down":
        y, r = y + 2 * r, r / 2
        corners = (x - r, y, z - r), (x + r, y, z - r), (x + r, y, z + r), (x - r, y, z + r)
    else:
        r /= 2
        corners = (x - r, y - r, z), (x + r, y - r, z), (x + r, y + r, z), (x - r, y + r, z)
    rounded = tuple((_nice(a, 6), _nice(b, 6), _nice(c, 6)) for a, b, c in corners)
    return _add(document, "quads", label, material, rounded)


def _shape_of_kind(document: Document, group: str, kind: str) -> Document:
    """The document with a procedural shape or a distance field."""
    document, material = with_material(document)
    settings = document.scene.settings
    place = {"position": _target(settings), "scale": _unit(settings)}
    return _add(document, group, kind, material=material, kind=kind, **place)


def _instance(document: Document, shape: str) -> Document:
    value = _class(document, "instances")(shape, position=_target(document.scene.settings))
    return commands.add(document, "instances", value)


def add_instance(document: Document, item: Item) -> Document:
    """The document with an instance of a shape at its place; a shape without a name gets its label as its name.

    Named shapes are drawn only as instances, so that the picture stays.
    """
    settings = document.scene.settings
    value = items.item_value(settings, item)
    if not value.name:
        name = commands.unique_name(settings, item.group, document.label(item))
        document = commands.set_value(document, item, replace(value, name=name))
        value = items.item_value(document.scene.settings, item)
    return commands.add(document, "instances", _class(document, "instances")(value.name))


# Materials, lights, volumes


def _material(document: Document, kind: str) -> Document:
    name = commands.unique_name(document.scene.settings, "materials", kind.replace("_", " "))
    emission = {"emission": (10.0, 10.0, 10.0)} if kind == "emitter" else {}
    return commands.add(document, "materials", _class(document, "materials")(name, kind, **emission))


def _material_of_selected(document: Document, kind: str) -> Document:
    """The document with a new material, which the selected shape is made of; a lamp keeps its own."""
    item, made = document.selected, _material(document, kind)
    settings: Any = made.scene.settings
    if item is None or "material" not in field_types(items.groups(settings)[item.group]):
        return made
    shapes = list(getattr(settings, item.group))
    lamps = {material.name for material in settings.materials[:-1] if any(material.emission)}
    if shapes[item.index].material in lamps:
        return made
    shapes[item.index] = replace(shapes[item.index], material=settings.materials[-1].name)
    return made.with_settings(**{item.group: tuple(shapes)})


def _area_light(document: Document) -> Document:
    document = _material(document, "emitter")
    assert document.selection is not None
    material = items.item_value(document.scene.settings, document.selection).name
    return _quad(document, "down", "lamp", material)


def _point_light(document: Document, label: str, height: float, intensity: float, **cone: float) -> Document:
    """A point light `height` shape sizes above the target; its intensity is in squared shape sizes."""
    settings = document.scene.settings
    (x, y, z), r = _target(settings), _unit(settings)
    position, rgb = (x, _nice(y + height * r, 4), z), (_nice(intensity * r * r, 1),) * 3
    return _add(document, "point_lights", label, position, rgb, **cone)


def _volume(document: Document) -> Document:
    settings = document.scene.settings
    size = _unit(settings)
    density = _nice(1 / size, 1)
    return _add(document, "volumes", "fog", position=_target(settings), size=(size,) * 3, density=density)


_SHAPES: dict[str, Callable[[Document], Document]] = {
    "sphere": _sphere,
    "quad": _quad,
    "ground": partial(_quad, facing="up", label="ground"),
}
_LIGHTS: dict[str, Callable[[Document], Document]] = {
    "area light": _area_light,
    "point light": partial(_point_light, label="point light", height=2.0, intensity=20.0),
    "spot light": partial(
        _point_light, label="spot light", height=3.0, intensity=60.0, inner_degrees=20.0, outer_degrees=30.0
    ),
    "sun": partial(_add, group="suns", label="sun"),
    "sky with its sun": partial(_with_table, name="sky", strength=1.0),
    "studio": partial(_with_table, name="environment", preset="studio"),
}
