"""The commands on a document's items: add, duplicate, delete, group, rename, set a value. Each returns a new document.

Every command but set_value raises ValueError, one sentence, for what the scene does not allow; set_value raises
InputError. The old document is unchanged.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import reduce
from operator import attrgetter
from typing import Any

from renderer.scene import toml_text
from renderer.scene.animation import Track
from renderer.scene.schema import PictureSettings, check_numbers, to_table
from renderer.window.document import items
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.document.scene_text import item_count

MAX_NAME = 200  # characters


def add(document: Document, group: str, value: object, label: str = "") -> Document:
    """The document with a new, selected item at the end of a list."""
    return _insert(document, Item(group, len(getattr(document.scene.settings, group))), value, label)


def duplicate(document: Document, item: Item) -> Document:
    """The document with a copy of an item behind it; the copy of a named item gets a new name."""
    settings = document.scene.settings
    value, label = items.item_value(settings, item), _comment(document, item)
    if getattr(value, "name", ""):
        value = replace(value, name=unique_name(settings, item.group, value.name))
    elif label:
        taken = [_comment(document, Item(item.group, i)) for i in range(len(getattr(settings, item.group)))]
        label = next_name(label, taken)
    return _insert(document, Item(item.group, item.index + 1), value, label)


def for_each(document: Document, chosen: Collection[Item], command: Callable[..., Document]) -> Document:
    """The document after a command for each item, the last of a list first: it keeps the numbers of those before."""
    return reduce(command, sorted(chosen, key=lambda item: (item.group, -item.index)), document)


def duplicate_all(document: Document, chosen: Collection[Item]) -> Document:
    """The document with a copy behind each of these items; the copies of a whole group are another group."""
    made = for_each(document, chosen, duplicate)
    for name, members in document.groups.items():
        if members <= set(chosen):
            copies = []
            for item in members:  # of items 2 and 5, the copies are items 3 and 7
                before = sum(other.group == item.group and other.index < item.index for other in chosen)
                copies.append(Item(item.group, item.index + before + 1))
            made = group(made, copies, next_name(name, list(made.scene.groups)))
    return made


def _insert(document: Document, item: Item, value: object, label: str) -> Document:
    """The document with `value` inserted as the item, in the settings and, if it holds the same list, in the text."""
    settings, base = document.scene.settings, document.text()
    values = list(getattr(settings, item.group))
    path = ("settings", item.group)
    if item_count(base.text, path) == len(values):
        order = list(items.groups(settings))
        later = order[order.index(item.group) + 1 :]
        table = to_table(value, base.path.parent)
        document = document.with_text(lambda text: toml_text.insert_item(text, path, item.index, table, label, later))
    # Old indices by new index, for _with_moved_paths()
    numbers = [*range(item.index), -1, *range(item.index, len(values))]
    values.insert(item.index, value)
    document = replace(document, selection=item).with_settings(**{item.group: tuple(values)})
    return _with_moved_paths(document.up_to_date(), item.group, numbers)


def delete(document: Document, item: Item) -> Document:
    """The document without an item; raises ValueError if other items refer to its name and no second item has it."""
    settings = document.scene.settings
    name = getattr(items.item_value(settings, item), "name", "")
    users = items.users(settings, item.group, name)
    same_name = [value for value in getattr(settings, item.group) if getattr(value, "name", "") == name]
    if users and len(same_name) == 1:
        first = document.label(users[0])
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        raise ValueError(f"{document.label(item)} is used by {first}{more}; give them another one before")
    values, path = list(getattr(settings, item.group)), ("settings", item.group)
    numbers = list(range(len(values)))
    del values[item.index], numbers[item.index]
    document = _with_moved_paths(document.up_to_date(), item.group, numbers)
    # The last item of a list is left to up_to_date(), which may have to write an empty list in place of the default.
    if values and item_count(document.text().text, path) == len(values) + 1:
        document = document.with_text(lambda text: toml_text.remove_item(text, path, item.index))
    return replace(document, selection=None).with_settings(**{item.group: tuple(values)}).up_to_date()


def move(document: Document, item: Item, to: int) -> Document:
    """The document with an item, which is selected, at another index of its list."""
    document, path = document.up_to_date(), ("settings", item.group)
    values = list(getattr(document.scene.settings, item.group))
    numbers = list(range(len(values)))
    for order in (values, numbers):
        order.insert(to, order.pop(item.index))
    if to != item.index and item_count(document.text().text, path) == len(values):
        document = document.with_text(lambda text: toml_text.move_item(text, path, item.index, to))
    document = replace(document, selection=Item(item.group, to)).with_settings(**{item.group: tuple(values)})
    return _with_moved_paths(document.up_to_date(), item.group, numbers)


def drop(document: Document, item: Item, target: Item) -> Document:
    """The document after an item is dragged onto another: it takes that place in its list, or a material is given."""
    value = items.item_value(document.scene.settings, target)
    if item.group == target.group:
        return move(document, item, target.index)
    if item.group != "materials" or "material" not in vars(value):
        raise ValueError("an item moves in its own list, and a material goes to what has one")
    return set_value(document, target, replace(value, material=items.item_value(document.scene.settings, item).name))


def _with_moved_paths(document: Document, group: str, order: list[int]) -> Document:
    """The document whose key frames and groups follow the items of a list, the paths of a deleted item removed.

    `order` has the old index of each item, by its new index; -1 for an inserted item.
    """
    new_index = {old: new for new, old in enumerate(order)}

    def followed(path: str) -> str:
        """The path after the move; empty for a deleted item."""
        match = re.fullmatch(rf"{re.escape(group)}\[(\d+)\](.*)", path)
        if match is None:  # of another list
            return path
        index = new_index.get(int(match[1]))
        return "" if index is None else f"{group}[{index}]{match[2]}"

    before, animation = document.scene, document.scene.animation
    groups = {name: tuple(filter(None, map(followed, members))) for name, members in before.groups.items()}
    groups = {name: members for name, members in groups.items() if members}
    if animation is not None and animation.tracks:
        tracks = tuple(replace(t, path=path) for t in animation.tracks if (path := followed(t.path)))
        animation = replace(animation, tracks=tracks) if tracks else None
    scene = replace(before, groups=groups, animation=animation)
    return document if scene == before else replace(document, scene=scene).up_to_date()


def group(document: Document, members: Collection[Item], name: str = "") -> Document:
    """The document with these items, but materials and textures, in the group `name` and no other; "": in none."""
    placed = [item for item in members if item.group not in ("materials", "textures")]
    paths, name = tuple(item.path for item in sorted(placed, key=attrgetter("group", "index"))), _checked_name(name)
    groups = {old: tuple(p for p in kept if p not in paths) for old, kept in document.scene.groups.items()}
    groups = {old: kept for old, kept in groups.items() if kept}
    if name in groups:
        raise ValueError(f"{name} is taken: another group has this name")
    groups |= {name: paths} if name and paths else {}
    if groups == document.scene.groups:
        raise ValueError("select shapes or lights for a group, or a group to dissolve")
    return replace(document, scene=replace(document.scene, groups=groups)).up_to_date()


def _checked_name(name: str) -> str:
    """The name without spaces around it; raises ValueError for one that is too long or not printable."""
    if len(name := name.strip()) > MAX_NAME or not name.isprintable():
        raise ValueError(f"a name has at most {MAX_NAME} characters, all of them printable")
    return name


def rename(document: Document, item: Item, name: str) -> Document:
    """The document with a new name of an item, also in all items that refer to it.

    A shape without a name, and a light, keep the name as the comment beside the header of its table: a scene file's
    named shapes are drawn only as instances.
    """
    name, settings = _checked_name(name), document.scene.settings
    value = items.item_value(settings, item)
    old, reference_list = getattr(value, "name", ""), items.reference_list(settings, item.group)
    if not reference_list or reference_list == items.SHAPES and not old:
        path = ("settings", item.group)
        return document.with_text(lambda text: toml_text.set_comment(text, path, item.index, name))
    if not name:
        raise ValueError(f"the name of {document.label(item)} is empty; others need it to find it")
    if name == old:
        return document
    if name in items.names_for(settings, reference_list):
        raise ValueError(f"{name} is taken: another item of {reference_list} has this name")
    return _renamed(document, reference_list, old, name)


def _renamed(document: Document, reference_list: str, old: str, name: str) -> Document:
    """The document with a name replaced in the items that have it, in references to them, and in key frames."""
    settings = document.scene.settings
    changed = {}
    for group, kind in items.groups(settings).items():
        named = reference_list == group or reference_list == items.SHAPES and group in items.shape_groups(settings)
        uses = [field for field, refers_to in items.reference_fields(kind).items() if refers_to == reference_list]
        names = [*uses, *(["name"] if named else [])]
        if names:
            values = getattr(settings, group)
            changed[group] = tuple(_with_name(value, names, old, name) for value in values)
    scene = replace(document.scene, settings=replace(settings, **changed))
    if scene.animation is not None:
        before = scene.animation.tracks
        tracks = tuple(_with_renamed_keys(track, settings, reference_list, old, name) for track in before)
        scene = replace(scene, animation=replace(scene.animation, tracks=tracks))
    return replace(document, scene=scene)


def _with_renamed_keys(track: Track, settings: PictureSettings, reference_list: str, old: str, name: str) -> Track:
    """The track with the new name in its keys, if it animates a field that refers to items of the list."""
    match = re.fullmatch(r"(\w+)\[\d+\]\.(\w+)", track.path)
    kind = items.groups(settings).get(match[1]) if match else None
    if match is None or kind is None or items.reference_fields(kind).get(match[2]) != reference_list:
        return track
    return replace(track, keys=tuple(k._replace(value=name) if k.value == old else k for k in track.keys))


def _with_name(value: Any, names: list[str], old: str, new: str) -> Any:
    """The item with `new` in place of the name `old` in these of its fields, which hold a name or a tuple of names."""
    edits: dict[str, Any] = {}
    for field in names:
        found = getattr(value, field)
        if found == old:
            edits[field] = new
        elif isinstance(found, tuple) and old in found:
            edits[field] = tuple(new if name == old else name for name in found)
    return replace(value, **edits) if edits else value


def set_value(document: Document, item: Item, value: object) -> Document:
    """The document with a new value of an item; raises InputError for a number outside of its range."""
    check_numbers(value, document.label(item))
    values = list(getattr(document.scene.settings, item.group))
    values[item.index] = value
    return replace(document, selection=item).with_settings(**{item.group: tuple(values)})


def _comment(document: Document, item: Item) -> str:
    """The comment beside the header of the item's table in the text; empty without one."""
    comments = document.base.comments(item.group) if document.base is not None else []
    return comments[item.index] if item.index < len(comments) else ""


def unique_name(settings: PictureSettings, group: str, name: str) -> str:
    """The name, or the first of name 2, name 3, ... that no item of the group has."""
    reference_list = items.reference_list(settings, group)
    in_group = [getattr(v, "name", "") for v in getattr(settings, group)]
    taken = items.names_for(settings, reference_list) if reference_list else in_group
    return name if name not in taken else next_name(name, taken)


def next_name(name: str, taken: list[str]) -> str:
    """The first of name 2, name 3, ... that is free; a number at the end of the name is counted up."""
    match = re.fullmatch(r"(.*?) (\d{1,9})", name)
    stem, number = (match[1], int(match[2])) if match else (name, 1)
    while (new := f"{stem} {number + 1}") in taken:
        number += 1
    return new
