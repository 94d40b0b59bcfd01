"""New scenes, and new items of a scene: what the window's Add menu offers, placed in the middle of the view."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from renderer.pictures import scene_of_table
from renderer.scene.scene import Scene
from renderer.scene.schema import hints_of
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
SIZE_IN_VIEW = 0.25  # of a new shape, as a fraction of the view's height at its target
Corner = tuple[float, float, float]


class Addition(NamedTuple):
    """An entry of the Add menu: where it stands, what it is called, and the command."""

    section: str
    name: str
    run: Callable[[Document], Document]


def new_scene(folder: Path) -> Scene:
    """An empty ray traced scene without a file; its title says so."""
    return scene_of_table(NEW_SCENE, folder / "untitled.toml")


def can_add(settings: Any) -> bool:
    """Whether a scene of these settings is made of items."""
    return "materials" in items.groups(settings)


def additions(settings: Any) -> list[Addition]:
    """What can be added to a scene of these settings without a file."""
    if not can_add(settings):
        return []
    known = items.groups(settings)
    out = [Addition("Shape", name, command) for name, command in _SHAPES.items()]
    for group in ("procedural", "distance_fields"):
        kinds = get_args(hints_of(known[group])["kind"])
        out += [Addition("Shape", f"{items.singular(group)}: {kind}", _of_kind(group, kind)) for kind in kinds]
    out += [Addition("Light", name, command) for name, command in _LIGHTS.items()]
    kinds = get_args(hints_of(known["materials"])["kind"])
    out += [Addition("Material", kind, _material(kind)) for kind in kinds]
    shapes = items.names_for(settings, items.SHAPES)
    out += [Addition("Instance", f"of {items.shorten(name)}", _instance(name)) for name in shapes]
    return [*out, Addition("Volume", "box of fog", _volume)]


def with_material(document: Document) -> tuple[Document, str]:
    """The document with a material that shapes can have, and the name of its first."""
    names = items.names_for(document.scene.settings, "materials")
    if names:
        return document, names[0]
    return commands.add(document, "materials", _class(document, "materials")("plain")), "plain"


def add_file(document: Document, path: Path) -> Document:
    """The document with a mesh or a model in it, as large as what is seen at the view's target.

    The reader of the file raises its own errors.
    """
    from renderer.formats.mesh import load_part
    from renderer.formats.models import load_model

    settings = document.scene.settings
    if path.suffix.lower() in (".glb", ".gltf"):
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


def _placed(vertices: Any, matrix: Any) -> Any:
    return vertices @ matrix[:3, :3].T + matrix[:3, 3]


def _bounds(points: Any) -> tuple[Any, Any]:
    return points.min(0), points.max(0)


def _union(boxes: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    if not boxes:
        raise ValueError("the model has no mesh")
    return np.min([low for low, _ in boxes], 0), np.max([high for _, high in boxes], 0)


def _fitted(value: Any, settings: Any, box: tuple[Any, Any]) -> Any:
    """The shape scaled to the view, standing where the view looks at."""
    (low, high), view = box, settings.view
    size = max(float(b - a) for a, b in zip(low, high, strict=True)) or 1.0
    scale = _nice(2 * _unit(settings) / size)
    middle = [scale * float(a + b) / 2 for a, b in zip(low, high, strict=True)]
    position = (view.target[0] - middle[0], view.target[1] - middle[1], view.target[2] - middle[2])
    return replace(value, scale=scale, position=tuple(_nice(x, 4) for x in position))


def _nice(number: float, digits: int = 2) -> float:
    """The number with so many digits that count."""
    return float(f"{number:.{digits}g}")


def _unit(settings: Any) -> float:
    """The size of a new shape: a nice number that fits the view."""
    return _nice(SIZE_IN_VIEW * settings.view.target_plane_height(), 1)


def _target(settings: Any) -> Corner:
    x, y, z = (_nice(n, 4) for n in settings.view.target)
    return x, y, z


def _class(document: Document, group: str) -> Any:
    return items.groups(document.scene.settings)[group]


def _sphere(document: Document) -> Document:
    document, material = with_material(document)
    settings = document.scene.settings
    value = _class(document, "spheres")(material, _target(settings), _unit(settings) / 2)
    return commands.add(document, "spheres", value, _unique_label(document, "spheres", "sphere"))


def _quad(document: Document, facing: str = "front", name: str = "quad", material: str = "") -> Document:
    """A quad that faces the front, up (below the target, as a ground) or down (above it, as a lamp)."""
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
    rounded: Any = tuple((_nice(a, 6), _nice(b, 6), _nice(c, 6)) for a, b, c in corners)
    value = _class(document, "quads")(material, rounded)
    return commands.add(document, "quads", value, _unique_label(document, "quads", name))


def _unique_label(document: Document, group: str, name: str) -> str:
    base = document.up_to_date().base
    taken = base.comments(group) if base is not None else []
    return name if name not in taken else commands.next_name(name, taken)


def _of_kind(group: str, kind: str) -> Callable[[Document], Document]:
    def run(document: Document) -> Document:
        document, material = with_material(document)
        settings = document.scene.settings
        value = _class(document, group)(material=material, kind=kind)
        value = replace(value, position=_target(settings), scale=_unit(settings))
        return commands.add(document, group, value, _unique_label(document, group, kind))

    return run


def _material(kind: str) -> Callable[[Document], Document]:
    def run(document: Document) -> Document:
        name = commands.unique_name(document.scene.settings, "materials", kind.replace("_", " "))
        more = {"emission": (10.0, 10.0, 10.0)} if kind == "emitter" else {}
        return commands.add(document, "materials", _class(document, "materials")(name, kind, **more))

    return run


def _area_light(document: Document) -> Document:
    document = _material("emitter")(document)
    assert document.selection is not None
    material = items.value_of(document.scene.settings, document.selection).name
    return _quad(document, "down", "lamp", material)


def _point_light(document: Document) -> Document:
    settings = document.scene.settings
    (x, y, z), r = _target(settings), _unit(settings)
    value = _class(document, "point_lights")((x, _nice(y + 2 * r, 4), z), (_nice(20 * r * r, 1),) * 3)
    return commands.add(document, "point_lights", value, _unique_label(document, "point_lights", "point light"))


def _spot_light(document: Document) -> Document:
    settings = document.scene.settings
    (x, y, z), r = _target(settings), _unit(settings)
    value = _class(document, "point_lights")(
        (x, _nice(y + 3 * r, 4), z), (_nice(60 * r * r, 1),) * 3, inner_degrees=20.0, outer_degrees=30.0
    )
    return commands.add(document, "point_lights", value, _unique_label(document, "point_lights", "spot light"))


def _sun(document: Document) -> Document:
    return commands.add(document, "suns", _class(document, "suns")(), _unique_label(document, "suns", "sun"))


def _sky(document: Document) -> Document:
    scene = document.scene
    settings = replace(scene.settings, sky=replace(scene.settings.sky, strength=1.0))
    return replace(document, scene=replace(scene, settings=settings))


def _environment(document: Document) -> Document:
    scene = document.scene
    settings = replace(scene.settings, environment=replace(scene.settings.environment, preset="studio"))
    return replace(document, scene=replace(scene, settings=settings))


def _instance(shape: str) -> Callable[[Document], Document]:
    def run(document: Document) -> Document:
        value = _class(document, "instances")(shape, position=_target(document.scene.settings))
        return commands.add(document, "instances", value)

    return run


def instance_of(document: Document, item: Item) -> Document:
    """The document with an instance of a shape where it is; a shape without a name gets its label for one.

    Named shapes are drawn only as instances, so that the picture stays.
    """
    settings = document.scene.settings
    value = items.value_of(settings, item)
    if not value.name:
        name = commands.unique_name(settings, item.group, document.label(item))
        document = commands.set_value(document, item, replace(value, name=name))
        value = items.value_of(document.scene.settings, item)
    return commands.add(document, "instances", _class(document, "instances")(value.name))


def _volume(document: Document) -> Document:
    settings = document.scene.settings
    size = _unit(settings)
    value = replace(_class(document, "volumes")(), position=_target(settings), size=(size,) * 3)
    value = replace(value, density=_nice(1 / size, 1))
    return commands.add(document, "volumes", value, _unique_label(document, "volumes", "fog"))


_SHAPES: dict[str, Callable[[Document], Document]] = {
    "sphere": _sphere,
    "quad": _quad,
    "ground": lambda document: _quad(document, "up", "ground"),
}
_LIGHTS: dict[str, Callable[[Document], Document]] = {
    "area light": _area_light, "point light": _point_light, "spot light": _spot_light, "sun": _sun,
    "sky with its sun": _sky, "studio": _environment,
}  # fmt: skip
