"""The commands on a document's items: add, duplicate, delete, rename, set a value. Each returns a new document.

Every command but set_value raises ValueError, one sentence, for what the scene does not allow; set_value raises
InputError. The old document is unchanged.
"""

import re
from dataclasses import replace
from typing import Any

from renderer.scene import toml_text
from renderer.scene.animation import Animation, Track
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
    values.insert(item.index, value)
    document = replace(document, selection=item).with_settings(**{item.group: tuple(values)})
    return _with_shifted_tracks(document.up_to_date(), item, 1)


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
    document, path = _with_shifted_tracks(document.up_to_date(), item, -1), ("settings", item.group)
    values = list(getattr(settings, item.group))
    del values[item.index]
    if values and item_count(document.text().text, path) == len(values) + 1:
        document = document.with_text(lambda text: toml_text.remove_item(text, path, item.index))
    return replace(document, selection=None).with_settings(**{item.group: tuple(values)}).up_to_date()


def _with_shifted_tracks(document: Document, item: Item, by: int) -> Document:
    """The document whose key frames follow their items when one is inserted (1) or about to be deleted (-1)."""
    animation: Animation | None = document.scene.animation
    if animation is None:
        return document
    tracks: list[Track] = []
    for track in animation.tracks:
        match = re.fullmatch(rf"{re.escape(item.group)}\[(\d+)\](.*)", track.path)
        index = int(match[1]) if match else -1
        if match and by < 0 and index == item.index:
            continue
        if match and index >= item.index:
            track = replace(track, path=f"{item.group}[{index + by}]{match[2]}")
        tracks.append(track)
    if tuple(tracks) == animation.tracks:
        return document
    animation = replace(animation, tracks=tuple(tracks)) if tracks else None
    return replace(document, scene=replace(document.scene, animation=animation)).up_to_date()


def rename(document: Document, item: Item, name: str) -> Document:
    """The document with a new name of an item, also in all items that refer to it.

    A shape without a name, and a light, keep the name as the comment beside the header of its table: a scene file's
    named shapes are drawn only as instances.
    """
    name = name.strip()
    if len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"a name has at most {MAX_NAME} characters, all of them printable")
    settings = document.scene.settings
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
