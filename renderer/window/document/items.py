"""The items of a scene: the tables in the lists of its settings, such as spheres and materials, and their labels.

Items refer to each other by name: a field declared with `refers_to` holds the name of an item of that list.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_origin

from renderer.records import dataclass, fields, is_dataclass, replace
from renderer.scene.schema import PictureSettings, field_types
from renderer.window.document.scene_text import SceneText

SHAPES = "shapes"  # a field with refers_to="shapes" names an item of any list of shapes
MAX_LABEL = 60  # characters


@dataclass(frozen=True)
class Item:
    """An item of a list of settings: the list's name, and the index in it."""

    group: str
    index: int

    @property
    def path(self) -> str:
        """The item in the notation of --set: spheres[2]."""
        return f"{self.group}[{self.index}]"


def groups(settings: PictureSettings) -> Mapping[str, type]:
    """The lists of tables among the settings, in order, with the class of their items."""
    settings_class: type = type(settings)  # mypy takes the class of a dataclass for unhashable
    return _class_groups(settings_class)


@cache
def _class_groups(settings_class: type) -> Mapping[str, type]:
    found: dict[str, Any] = {}
    for f in fields(settings_class):
        kind = field_types(settings_class)[f.name]
        inner = get_args(kind)
        if get_origin(kind) is tuple and len(inner) == 2 and inner[1] is Ellipsis and is_dataclass(inner[0]):
            found[f.name] = inner[0]
    return MappingProxyType(found)


def item_value(settings: PictureSettings, item: Item) -> Any:
    """The item's table of settings."""
    return getattr(settings, item.group)[item.index]


def item_at(path: str) -> Item:
    """The item of a path."""
    group, index = path.removesuffix("]").split("[")
    return Item(group, int(index))


def exists(settings: PictureSettings, item: Item | None) -> bool:
    """True if the settings have this item."""
    return item is not None and 0 <= item.index < len(getattr(settings, item.group, ()))


def all_items(settings: PictureSettings) -> Iterator[Item]:
    """All items, in order."""
    for group in groups(settings):
        for index in range(len(getattr(settings, group))):
            yield Item(group, index)


def without(settings: Any, hidden: frozenset[Item]) -> Any:
    """The settings without these items."""
    kept = {
        group: tuple(v for k, v in enumerate(getattr(settings, group)) if Item(group, k) not in hidden)
        for group in {item.group for item in hidden}
    }
    return replace(settings, **kept) if kept else settings


def singular(group: str) -> str:
    """The name of one item of a group: mesh of meshes."""
    words = group.replace("_", " ")
    return words.removesuffix("es") if words.endswith("shes") else words.removesuffix("s")


def label(settings: PictureSettings, item: Item, text: SceneText | None = None) -> str:
    """The label of an item: its name, else the comment beside its header, else its kind, number and a detail.

    The detail is the shape that the item refers to, its file name or its material.
    """
    value = item_value(settings, item)
    if name := getattr(value, "name", ""):
        return shorten(name)
    comments = text.comments(item.group) if text is not None else []
    if len(comments) == len(getattr(settings, item.group)) and comments[item.index]:
        return shorten(comments[item.index])
    kind = str(getattr(value, "kind", "")) or singular(item.group)
    shape = getattr(value, "shape", "") if "shape" in reference_fields(value.__class__) else ""
    file_name = getattr(value, "file", "").replace("\\", "/").rpartition("/")[2]
    detail = shape or file_name or getattr(value, "material", "")
    return shorten(f"{kind} {item.index + 1}" + (f" ({detail})" if detail else ""))


def shorten(text: str) -> str:
    """A label that fits a line."""
    text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 3] + "..."


@cache
def reference_fields(kind: type) -> Mapping[str, str]:
    """The fields of a class that name other items, with the list that they name: materials, textures, shapes."""
    return MappingProxyType({f.name: f.metadata["refers_to"] for f in fields(kind) if f.metadata.get("refers_to")})


def shape_groups(settings: PictureSettings) -> list[str]:
    """The lists whose items an instance can name: all lists with a `name` field except materials and textures."""
    named = {"materials", "textures"}
    return [g for g, kind in groups(settings).items() if g not in named and "name" in {f.name for f in fields(kind)}]


def names_for(settings: PictureSettings, refers_to: str) -> list[str]:
    """The names that a field with this `refers_to` may take."""
    lists = shape_groups(settings) if refers_to == SHAPES else [refers_to]
    return list(dict.fromkeys(item.name for group in lists for item in getattr(settings, group) if item.name))


def reference_list(settings: PictureSettings, group: str) -> str:
    """The list that fields name to refer to items of the group: the group itself, "shapes", or the empty text."""
    if group in shape_groups(settings):
        return SHAPES
    kinds = groups(settings).values()
    return group if any(group in reference_fields(kind).values() for kind in kinds) else ""


def material_of(settings: PictureSettings, item: Item | None) -> Item | None:
    """The material of an item: the item itself if it is one; None for an item without material."""
    if item is None or item.group == "materials":
        return item
    name = getattr(item_value(settings, item), "material", "")
    names = [material.name for material in getattr(settings, "materials", ())]
    return Item("materials", names.index(name)) if name in names else None


def users(settings: PictureSettings, group: str, name: str) -> list[Item]:
    """The items that refer to the item `name` of a group."""
    target = reference_list(settings, group)
    found = []
    for item in all_items(settings) if target and name else ():
        value = item_value(settings, item)
        for field, refers_to in reference_fields(value.__class__).items():
            named = getattr(value, field)
            if refers_to == target and (named == name or isinstance(named, tuple) and name in named):
                found.append(item)
                break
    return found
