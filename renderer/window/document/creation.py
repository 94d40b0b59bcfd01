"""New scenes, and new items for a scene: the entries of the window's Add menu.

A new shape stands at the view's target and takes SIZE_IN_VIEW of the view's height there.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from renderer.formats.mesh import GLTF_SUFFIXES
from renderer.paths import SCENES
from renderer.pictures import load, scene_of_table
from renderer.raytracing.settings import SHAPE_GROUPS
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings, field_types
from renderer.window.document import commands, items, picking
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
    """The document with a mesh or a model, scaled to half of the view's height at its target, on the ground below it.

    The reader of the file raises its own errors.
    """
    if path.suffix.lower() in GLTF_SUFFIXES:
        group, named = "models", {"file": str(path)}
    else:
        document, material = with_material(document)
        group, named = "meshes", {"file": str(path), "material": material}
    value = _class(document, group)(**named)
    low, high = picking.shape_box(group, value)
    if not (high > low).any():
        raise ValueError(f"{path.name} has no triangles")
    return commands.add(document, group, _fitted(value, document.scene.settings, low, high))


def add_texture(document: Document, path: Path) -> Document:
    """The document with a picture file as a texture."""
    name = commands.unique_name(document.scene.settings, "textures", path.stem or "texture")
    return commands.add(document, "textures", _class(document, "textures")(name=name, file=str(path)))


def _fitted(value: Any, settings: Any, low: np.ndarray, high: np.ndarray) -> Any:
    """The shape with the box `low` to `high` (3,), scaled to the view; it stands on the ground below the view's target.

    The ground is the lowest point of the shapes that are there, y = 0 in an empty scene.
    """
    scale = _nice(2 * _unit(settings) / float((high - low).max()))
    boxes = [
        picking.bounds(settings, item) for item in items.all_items(settings) if item.group in (*SHAPE_GROUPS, "models")
    ]
    ground = min((float(box[0][1]) for box in boxes if box is not None), default=0.0)
    foot = np.array([low[0] + high[0], 2 * low[1], low[2] + high[2]]) / 2  # of the shape: the middle of its underside
    x, y, z = np.array([settings.view.target[0], ground, settings.view.target[2]]) - scale * foot
    return replace(value, scale=scale, position=(_nice(x, 4), _nice(y, 6), _nice(z, 4)))


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
