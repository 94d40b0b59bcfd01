"""The items of a scene: what its settings hold in lists, with the names that people know them by."""

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_args, get_origin

from renderer.scene.schema import hints_of
from renderer.window.document.scene_text import SceneText

SHAPES = "shapes"  # what a field refers to that takes the name of an item of any list of shapes
MAX_LABEL = 60  # characters


@dataclass(frozen=True)
class Item:
    """An item of a list of settings: the list's name, and the index in it."""

    group: str
    index: int


def groups(settings: Any) -> Mapping[str, type]:
    """The lists of tables among the settings, in order, with the class of their items."""
    settings_class: Any = type(settings)
    return _groups_of(settings_class)


@cache
def _groups_of(settings_class: Any) -> Mapping[str, type]:
    found: dict[str, Any] = {}
    for f in fields(settings_class):
        kind = hints_of(settings_class)[f.name]
        inner = get_args(kind)
        if get_origin(kind) is tuple and len(inner) == 2 and inner[1] is Ellipsis and is_dataclass(inner[0]):
            found[f.name] = inner[0]
    return MappingProxyType(found)


def value_of(settings: Any, item: Item) -> Any:
    """The item's table of settings."""
    return getattr(settings, item.group)[item.index]


def exists(settings: Any, item: Item | None) -> bool:
    """Whether there is such an item."""
    return item is not None and 0 <= item.index < len(getattr(settings, item.group, ()))


def all_items(settings: Any) -> Iterator[Item]:
    """All items, in order."""
    for group in groups(settings):
        for index in range(len(getattr(settings, group))):
            yield Item(group, index)


def singular(group: str) -> str:
    """What one item of a group is called: mesh of meshes."""
    words = group.replace("_", " ")
    return words.removesuffix("es") if words.endswith("shes") else words.removesuffix("s")


def label(settings: Any, item: Item, text: SceneText | None = None) -> str:
    """What the item is called: its name, else the comment beside its header, else its kind, number and material."""
    value = value_of(settings, item)
    if name := getattr(value, "name", ""):
        return shorten(name)
    comments = text.comments(item.group) if text is not None else []
    if len(comments) == len(getattr(settings, item.group)) and comments[item.index]:
        return shorten(comments[item.index])
    what = str(getattr(value, "kind", "")) or singular(item.group)
    of = getattr(value, "shape", "") if "shape" in reference_fields(type(value)) else ""
    of = of or getattr(value, "file", "").replace("\\", "/").rpartition("/")[2] or getattr(value, "material", "")
    return shorten(f"{what} {item.index + 1}" + (f" ({of})" if of else ""))


def shorten(text: str) -> str:
    """A label that fits a line."""
    text = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 3] + "..."


def reference_fields(kind: Any) -> Mapping[str, str]:
    """The fields of a class that name other items, with the list that they name: materials, textures, shapes."""
    return _references_of(kind)


@cache
def _references_of(kind: Any) -> Mapping[str, str]:
    return MappingProxyType({f.name: f.metadata["refers_to"] for f in fields(kind) if f.metadata.get("refers_to")})


def shape_groups(settings: Any) -> list[str]:
    """The lists whose items instances can name: those with a name, but not those that other keys name directly."""
    named = {"materials", "textures"}
    return [g for g, kind in groups(settings).items() if g not in named and "name" in {f.name for f in fields(kind)}]


def names_for(settings: Any, refers_to: str) -> list[str]:
    """The names that a field may take that refers to a list of settings."""
    lists = shape_groups(settings) if refers_to == SHAPES else [refers_to]
    found = dict.fromkeys(item.name for group in lists for item in getattr(settings, group) if item.name)
    return list(found)


def is_referred_to(settings: Any, group: str) -> str:
    """What fields say that refer to the items of a group: its own name, "shapes", or nothing."""
    if group in shape_groups(settings):
        return SHAPES
    kinds = groups(settings).values()
    return group if any(group in reference_fields(kind).values() for kind in kinds) else ""


def users(settings: Any, group: str, name: str) -> list[Item]:
    """The items that name this item of a group."""
    what = is_referred_to(settings, group)
    found = []
    for item in all_items(settings) if what and name else ():
        value = value_of(settings, item)
        for field, refers_to in reference_fields(type(value)).items():
            named = getattr(value, field)
            if refers_to == what and (named == name or isinstance(named, tuple) and name in named):
                found.append(item)
                break
    return found


def required_fields(kind: type) -> list[str]:
    """The fields of a class without a default."""
    return [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
