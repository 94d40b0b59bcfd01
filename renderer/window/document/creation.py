"""New scenes, and new items for a scene: the entries of the window's Add menu.

A new shape stands on the ground near the view's target and takes SIZE_IN_VIEW of the view's height there.
"""

import re
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from renderer.formats.mesh import GLTF_SUFFIXES
from renderer.paths import ASSETS
from renderer.pictures import load, scene_of_table
from renderer.raytracing.material_maps import TEXTURE_KEYS
from renderer.raytracing.settings import Material, Settings
from renderer.scene.scene import Scene
from renderer.scene.schema import PictureSettings, field_types, from_table
from renderer.system.files import read_toml
from renderer.window.document import commands, items, picking
from renderer.window.document.document import Document
from renderer.window.document.items import Item

NEW_SCENE = read_toml(ASSETS / "untitled.toml")
SIZE_IN_VIEW = 0.25  # size of a new shape, as a fraction of the view's height at its target
GAP = 1.25  # from the middle of a new shape to the next free spot, in widths of the shape
# Steps (right, front) from the target to the spots that are tried for a new shape, the nearest first.
SPOTS = sorted(product(range(-4, 5), repeat=2), key=lambda s: (s[0] ** 2 + s[1] ** 2, -s[0], -s[1]))
FLAT, LARGE = 0.2, 8.0  # a floor is this flat, in its widths, or this large, in heights of the view
Corner = tuple[float, float, float]


class Addition(NamedTuple):
    """An entry of the Add menu: its section, its name, and the command that adds the item."""

    section: str
    name: str
    run: Callable[[Document], Document]


def new_scene(folder: Path) -> Scene:
    """An empty ray traced scene without a file, titled "untitled"."""
    return scene_of_table(NEW_SCENE, folder / "untitled.toml")


UNTITLED_SHADER = ASSETS / "untitled_shader.glsl"
NEW_FLAME = "untitled flame"  # the title, until the flame is saved


def new_flame(folder: Path) -> Scene:
    """A flame of three xforms, Sierpinski's triangle, without a file."""
    return replace(load(ASSETS / "untitled.flame"), path=folder / "untitled_flame.flame", title=NEW_FLAME)


def new_shader() -> Scene:
    """A small shader of the program's, which saving copies to a file of the user's own."""
    return load(UNTITLED_SHADER)


def can_add(settings: PictureSettings) -> bool:
    """True if a scene of these settings is made of items."""
    return "materials" in items.groups(settings)


def additions(settings: PictureSettings) -> list[Addition]:
    """The additions to a scene of these settings that need no file."""
    if not can_add(settings):
        return []
    known = items.groups(settings)
    out = [Addition("Shape", name, command) for name, command in _SHAPES.items()]
    for group, before in (("solids", ""), ("procedural", "procedural: "), ("distance_fields", "distance field: ")):
        for kind in get_args(field_types(known[group])["kind"]):
            out.append(Addition("Shape", before + kind, partial(_shape_of_kind, group=group, kind=kind)))
    out += [Addition("Light", name, command) for name, command in _LIGHTS.items()]
    out += [Addition("Material", kind, partial(_material_of_selected, material=made)) for kind, made in KINDS.items()]
    presets = material_presets().items()
    out += [Addition("Preset", name, partial(_material_of_selected, material=preset)) for name, preset in presets]
    shapes = items.names_for(settings, items.SHAPES)
    out += [Addition("Instance", f"of {items.shorten(name)}", partial(_instance, shape=name)) for name in shapes]
    return [*out, Addition("Volume", "box of fog", _volume)]


def with_material(document: Document) -> tuple[Document, str]:
    """The document with at least one material without maps, and the name of the first: what is new is not patterned."""
    settings: Settings = document.scene.settings
    plain = [each.name for each in settings.materials if not any(getattr(each, key) for key in TEXTURE_KEYS)]
    if plain:
        return document, plain[0]
    name = commands.unique_name(settings, "materials", "plain")
    return commands.add(document, "materials", Material(name)), name


def add_file(document: Document, path: Path) -> Document:
    """The document with a mesh or a model, scaled to half of the view's height at its target, on the ground near it.

    The reader of the file raises its own errors.
    """
    if path.suffix.lower() in GLTF_SUFFIXES:
        group, named = "models", {"file": str(path)}
    else:
        document, material = with_material(document)
        group, named = "meshes", {"file": str(path), "material": material}
    value = _class(document, group)(**named)
    if not np.ptp(picking.shape_box(group, value), 0).any():
        raise ValueError(f"{path.name} has no triangles")
    return commands.add(document, group, _fitted(document, group, value, 2.0))


def add_texture(document: Document, path: Path) -> Document:
    """The document with a picture file as a texture: of the selected item's colors, if it has a material."""
    settings, selected = document.scene.settings, document.selected
    name = commands.unique_name(settings, "textures", path.stem or "texture")
    added = commands.add(document, "textures", _class(document, "textures")(name=name, file=str(path)))
    item = items.material_of(settings, selected)
    if selected is None or item is None or selected.group == "distance_fields":  # no texture coordinates
        return added
    value = replace(items.item_value(settings, item), color_texture=name)
    return _with_changed_material(replace(added, selection=selected), item, value, value.name)


def _fitted(document: Document, group: str, value: Any, units: float) -> Any:
    """`value`, a shape of scale 1 at the origin, scaled to `units` times the size of a new shape, on the ground."""
    low, high = picking.shape_box(group, value)
    scale = _nice(units * _unit(document.scene.settings) / float((high - low).max()))
    return _landed(document, replace(value, scale=scale), scale * low, scale * high)


def _landed(document: Document, value: Any, low: np.ndarray, high: np.ndarray) -> Any:
    """The shape with the box `low` to `high` (3,), moved to a free spot of the ground."""
    foot = np.array([low[0] + high[0], 2 * low[1], low[2] + high[2]]) / 2  # the middle of the shape's underside
    shift = _free_spot(document.scene.settings, high - low) - foot
    decimals = 4 - int(np.floor(np.log10(float((high - low).max()))))  # five digits of the longest side

    def moved(point: Corner) -> Corner:
        x, y, z = (round(float(n), decimals) + 0.0 for n in np.add(point, shift))  # + 0.0: 0 in place of -0
        return x, y, z

    names = {each.name for each in fields(value)}
    if "corners" in names:
        return replace(value, corners=tuple(map(moved, value.corners)))
    name = "center" if "center" in names else "position"
    return replace(value, **{name: moved(getattr(value, name))})


def _free_spot(settings: Settings, size: np.ndarray) -> np.ndarray:
    """The point (3,) of the ground nearest the view's target where a box of `size` (3,) touches no other object.

    Candidates are SPOTS, GAP widths of the box apart. The ground at a spot is the highest floor under the box, else the
    lowest point of all shapes. A floor lies below the target and is flat for its width, or so large that it is no
    object. A shape around the camera, such as a room, is no object either. If no spot is free, the spot at the target
    is returned.
    """
    boxes, target, eye = picking.world_boxes(settings), np.array(settings.view.target), settings.view.position
    lows, highs = boxes[:, 0], boxes[:, 1]
    widths = (highs - lows)[:, [0, 2]].max(1, initial=0.0)
    is_large = widths > LARGE * settings.view.target_plane_height()
    is_floor = (is_large | ((highs - lows)[:, 1] < FLAT * widths)) & (highs[:, 1] <= target[1])
    is_object = ~is_floor & ~is_large & ~((lows < eye) & (eye < highs)).all(1)  # the camera stands in a room
    # A flat box counts as FLAT of its width high, so that it finds no room under or in the side of an object
    spots, height = [], max(float(size[1]), FLAT * float(size.max()))
    for right, front in SPOTS:
        spot = target + GAP * max(size[0], size[2]) * np.array([right, 0, front])
        is_below = ((spot - size / 2 < highs) & (spot + size / 2 > lows))[:, [0, 2]].all(1)
        spot[1] = highs[is_floor & is_below, 1].max(initial=-np.inf)
        spot[1] = spot[1] if np.isfinite(spot[1]) else _lowest(boxes[~is_large])
        spots.append(spot)
        if not (is_object & is_below & (lows[:, 1] < spot[1] + height) & (highs[:, 1] > spot[1])).any():
            return spot
    return spots[0]


def _lowest(boxes: np.ndarray) -> float:
    """The y of the lowest of boxes (n, 2, 3); 0 of none."""
    return float(boxes[:, 0, 1].min()) if len(boxes) else 0.0


def _nice(number: float, digits: int = 2) -> float:
    """The number rounded to `digits` significant digits."""
    return float(f"{number:.{digits}g}")


def _unit(settings: PictureSettings) -> float:
    """The size of a new shape: a nice number that fits the view."""
    return _nice(SIZE_IN_VIEW * settings.view.target_plane_height(), 1)


def _target(settings: PictureSettings) -> Corner:
    x, y, z = (_nice(n, 4) for n in settings.view.target)
    return x, y, z


def _class(document: Document, group: str) -> type:
    """The class of the items of a list."""
    return items.groups(document.scene.settings)[group]


def _add(document: Document, group: str, label: str, **values: object) -> Document:
    """The document with a new item of a group, made of field values, with the first unused label as its comment."""
    return _add_item(document, group, label, _class(document, group)(**values))


def _add_landed(document: Document, group: str, label: str, **values: object) -> Document:
    """The document with a new shape of a group on the ground."""
    value = _class(document, group)(**values)
    return _add_item(document, group, label, _landed(document, value, *picking.shape_box(group, value)))


def _add_item(document: Document, group: str, label: str, value: object) -> Document:
    base = document.up_to_date().base
    labels = base.comments(group) if base is not None else []
    unused = label if label not in labels else commands.next_name(label, labels)
    return commands.add(document, group, value, unused)


def _with_table(document: Document, name: str, **values: object) -> Document:
    """The document with fields of a table of settings replaced."""
    return document.with_settings(**{name: replace(getattr(document.scene.settings, name), **values)})


# Shapes


def _sphere(document: Document) -> Document:
    document, material = with_material(document)
    return _add_landed(document, "spheres", "sphere", material=material, radius=_unit(document.scene.settings) / 2)


def _quad(document: Document, facing: str = "front", label: str = "quad", material: str = "") -> Document:
    """A quad that stands and faces the front, lies below all shapes as a ground, or faces down above the target."""
    if not material:
        document, material = with_material(document)
    settings: Settings = document.scene.settings
    (x, y, z), unit = _target(settings), _unit(settings)
    half, up = unit / 2, (0, 1, 0)  # half the side; the direction of the left and the right side, the others go along x
    if facing == "up":
        y, half, up = _lowest(picking.world_boxes(settings)), 4 * unit, (0, 0, -1)
    elif facing == "down":
        x, y, up = _free_x(settings, (x, y + 2 * unit, z), unit), y + 2 * unit, (0, 0, 1)
    square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) @ np.array([(1, 0, 0), up])
    corners = tuple((_nice(a, 6), _nice(b, 6), _nice(c, 6)) for a, b, c in (x, y, z) + half * square)
    add = _add_landed if facing == "front" else _add
    return add(document, "quads", label, material=material, corners=corners)


def _shape_of_kind(document: Document, group: str, kind: str) -> Document:
    """The document with a solid, a procedural shape or a distance field."""
    document, material = with_material(document)
    value = _class(document, group)(material=material, kind=kind)
    return _add_item(document, group, kind, _fitted(document, group, value, 1.0 if group == "solids" else 2.0))


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


# A new material of each kind, named as the kind
KINDS = {kind: Material(kind.replace("_", " "), kind) for kind in get_args(field_types(Material)["kind"])}
KINDS["emitter"] = replace(KINDS["emitter"], emission=(10.0, 10.0, 10.0))


@cache
def material_presets() -> dict[str, Material]:
    """The materials of assets/material_presets.toml by name."""
    path = ASSETS / "material_presets.toml"
    rows = {name: {"name": name} | table for name, table in read_toml(path).items()}
    return {name: from_table(Material, row, f"{path.name}: {name}", path.parent) for name, row in rows.items()}


def with_preset(document: Document, item: Item, preset: Material) -> Document:
    """The document with a preset as a material, which keeps its name if the user has given it one.

    If others than the selected item use the material, the item gets a new one with the preset's name.
    """
    settings = document.scene.settings
    name = items.item_value(settings, item).name
    made = _with_changed_material(document, item, replace(preset, name=name), preset.name)
    given = {*material_presets(), *(material.name for material in KINDS.values()), "plain"}
    is_new = items.names_for(made.scene.settings, "materials") != items.names_for(settings, "materials")
    if is_new or name == preset.name or re.sub(r" \d+$", "", name) not in given:
        return made
    return commands.rename(made, item, commands.unique_name(made.scene.settings, "materials", preset.name))


def _with_changed_material(document: Document, item: Item, changed: Material, name: str) -> Document:
    """The document with a material changed; if others than the selected item use it, a new one changed instead.

    The new material gets `name`, or the next unused one.
    """
    selected, settings = document.selected, document.scene.settings
    users = items.users(settings, "materials", items.item_value(settings, item).name)
    if selected in (None, item) or users == [selected]:
        made = commands.set_value(document, item, changed)
    else:
        made = _made_of_last(_material(document, replace(changed, name=name)), selected)
    return replace(made, selection=document.selection)


def _made_of_last(document: Document, item: Item) -> Document:
    """The document with the last material given to an item; the selection stays."""
    settings: Settings = document.scene.settings
    value = replace(items.item_value(settings, item), material=settings.materials[-1].name)
    return replace(commands.set_value(document, item, value), selection=document.selection)


def _material(document: Document, material: Material) -> Document:
    """The document with a new, selected material, whose name gets a number if it is taken."""
    name = commands.unique_name(document.scene.settings, "materials", material.name)
    return commands.add(document, "materials", replace(material, name=name))


def _material_of_selected(document: Document, material: Material) -> Document:
    """The document with a new material, given to the selected shape; a lamp keeps its material."""
    item, changed = document.selected, _material(document, material)
    settings: Settings = changed.scene.settings
    if item is None or "material" not in field_types(items.groups(settings)[item.group]):
        return changed
    lamps = {material.name for material in settings.materials[:-1] if any(material.emission)}
    return changed if items.item_value(settings, item).material in lamps else _made_of_last(changed, item)


def _free_x(settings: Settings, place: Corner, step: float) -> float:
    """The x of a place, or the first to its right in steps, at which there is no light yet."""
    taken = [np.mean(quad.corners, 0) for quad in settings.quads] + [light.position for light in settings.point_lights]
    x, y, z = place
    while any(np.abs(np.subtract((x, y, z), other)).max() < step / 2 for other in taken):
        x = _nice(x + step, 4)
    return x


def _area_light(document: Document) -> Document:
    document = _material(document, KINDS["emitter"])
    assert document.selection is not None
    material = items.item_value(document.scene.settings, document.selection).name
    return _quad(document, "down", "lamp", material)


def _point_light(document: Document, label: str, height: float, intensity: float, **cone: float) -> Document:
    """A point light `height` shape sizes above the target; its intensity is in squared shape sizes."""
    settings = document.scene.settings
    (x, y, z), r = _target(settings), _unit(settings)
    y = _nice(y + height * r, 4)
    position, rgb = (_free_x(settings, (x, y, z), r), y, z), (_nice(intensity * r * r, 1),) * 3
    return _add(document, "point_lights", label, position=position, intensity=rgb, **cone)


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
