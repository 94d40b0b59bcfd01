"""The commands on a document's items: add, duplicate, delete, rename, set a value. Each returns a new document.

Every command raises ValueError, one sentence, for what the scene does not allow; the document before it stays.
"""

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

from renderer.scene import toml_text
from renderer.scene.animation import Animation, Track
from renderer.scene.schema import check_numbers, to_table
from renderer.window.document import items
from renderer.window.document.document import Document
from renderer.window.document.items import Item
from renderer.window.document.scene_text import SceneText, item_count

MAX_NAME = 200  # characters


def add(document: Document, group: str, value: Any, label: str = "") -> Document:
    """The document with an item at the end of a list, which is selected."""
    return _insert(document, Item(group, len(getattr(document.scene.settings, group))), value, label)


def duplicate(document: Document, item: Item) -> Document:
    """The document with a copy behind an item; a copy of a named item gets a name of its own."""
    settings = document.scene.settings
    value, label = items.value_of(settings, item), _comment(document, item)
    if getattr(value, "name", ""):
        value = replace(value, name=unique_name(settings, item.group, value.name))
    elif label:
        taken = [_comment(document, Item(item.group, i)) for i in range(len(getattr(settings, item.group)))]
        label = next_name(label, taken)
    return _insert(document, Item(item.group, item.index + 1), value, label)


def _insert(document: Document, item: Item, value: Any, label: str) -> Document:
    document = document.up_to_date()
    assert document.base is not None
    scene, base = document.scene, document.base
    values = list(getattr(scene.settings, item.group))
    values.insert(item.index, value)
    settings = replace(scene.settings, **{item.group: tuple(values)})
    scene = replace(scene, settings=settings)
    path = ("settings", item.group)
    if item_count(base.text, path) == len(values) - 1:
        order = list(items.groups(settings))
        later = order[order.index(item.group) + 1 :]
        table = to_table(value, base.path.parent)
        base = SceneText(toml_text.insert_item(base.text, path, item.index, table, label, later), base.path)
    document = replace(document, scene=scene, base=base, selection=item).up_to_date()
    return _with_shifted_tracks(document, item, 1)


def delete(document: Document, item: Item) -> Document:
    """The document without an item; one that others name stays."""
    document = document.up_to_date()
    assert document.base is not None
    scene, base = document.scene, document.base
    name = getattr(items.value_of(scene.settings, item), "name", "")
    users = items.users(scene.settings, item.group, name)
    others = [i for i, value in enumerate(getattr(scene.settings, item.group)) if getattr(value, "name", "") == name]
    if users and len(others) == 1:
        first = document.label(users[0])
        more = f" and {len(users) - 1} more" if len(users) > 1 else ""
        raise ValueError(f"{document.label(item)} is used by {first}{more}; give them another one before")
    document = _with_shifted_tracks(document, item, -1)
    assert document.base is not None
    scene, base = document.scene, document.base
    values = list(getattr(scene.settings, item.group))
    del values[item.index]
    scene = replace(scene, settings=replace(scene.settings, **{item.group: tuple(values)}))
    path = ("settings", item.group)
    if item_count(base.text, path) == len(values) + 1 and values:
        base = SceneText(toml_text.remove_item(base.text, path, item.index), base.path)
    return replace(document, scene=scene, base=base, selection=None).up_to_date()


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
    """The document with another name of an item, and in all items that name it.

    A shape without a name, and a light, keep the name as the comment beside the header of its table: a scene file's
    named shapes are drawn only as instances.
    """
    name = name.strip()
    if len(name) > MAX_NAME or not name.isprintable():
        raise ValueError(f"a name has at most {MAX_NAME} characters, all of them printable")
    settings = document.scene.settings
    value = items.value_of(settings, item)
    old, what = getattr(value, "name", ""), items.is_referred_to(settings, item.group)
    if not what or what == items.SHAPES and not old:
        return _with_comment(document.up_to_date(), item, name)
    if not name:
        raise ValueError(f"the name of {document.label(item)} is empty; others need it to find it")
    if name == old:
        return document
    if name in items.names_for(settings, what):
        raise ValueError(f"{name} is taken: another item of {what} has this name")
    return _renamed(document, what, old, name)


def _renamed(document: Document, what: str, old: str, name: str) -> Document:
    """The document with a name replaced where it is given and where it is used, also in key frames."""
    settings = document.scene.settings
    changed = {}
    for group, kind in items.groups(settings).items():
        named = what == group or what == items.SHAPES and group in items.shape_groups(settings)
        uses = [field for field, refers_to in items.reference_fields(kind).items() if refers_to == what]
        names = [*uses, *(["name"] if named else [])]
        if names:
            values = getattr(settings, group)
            changed[group] = tuple(_with_name(value, names, old, name) for value in values)
    scene = replace(document.scene, settings=replace(settings, **changed))
    if scene.animation is not None:
        tracks = tuple(_with_renamed_keys(track, settings, what, old, name) for track in scene.animation.tracks)
        scene = replace(scene, animation=replace(scene.animation, tracks=tracks))
    return replace(document, scene=scene)


def _with_renamed_keys(track: Track, settings: Any, what: str, old: str, name: str) -> Track:
    """The track with the new name in its keys, if it animates which item another one names."""
    match = re.fullmatch(r"(\w+)\[\d+\]\.(\w+)", track.path)
    kind = items.groups(settings).get(match[1]) if match else None
    if match is None or kind is None or items.reference_fields(kind).get(match[2]) != what:
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


def _with_comment(document: Document, item: Item, name: str) -> Document:
    assert document.base is not None
    base = document.base
    path = ("settings", item.group)
    return replace(document, base=replace(base, text=toml_text.set_comment(base.text, path, item.index, name)))


def set_value(document: Document, item: Item, value: Any) -> Document:
    """The document with other values of an item; raises InputError for a number outside of its range."""
    scene = document.scene
    check_numbers(value, document.label(item))
    values = list(getattr(scene.settings, item.group))
    values[item.index] = value
    return replace(
        document, scene=replace(scene, settings=replace(scene.settings, **{item.group: tuple(values)})), selection=item
    )


def set_title(document: Document, title: str) -> Document:
    """The document with another title."""
    return replace(document, scene=replace(document.scene, title=title))


def _comment(document: Document, item: Item) -> str:
    comments = document.base.comments(item.group) if document.base is not None else []
    return comments[item.index] if item.index < len(comments) else ""


def unique_name(settings: Any, group: str, name: str) -> str:
    """The name, or the first of name 2, name 3, ... that no item of the group has."""
    what = items.is_referred_to(settings, group)
    taken = items.names_for(settings, what) if what else [getattr(v, "name", "") for v in getattr(settings, group)]
    return name if name not in taken else next_name(name, taken)


def next_name(name: str, taken: list[str]) -> str:
    """The first of name 2, name 3, ... that is free; a number at its end is counted on."""
    match = re.fullmatch(r"(.*?) (\d{1,9})", name)
    stem, number = (match[1], int(match[2])) if match else (name, 1)
    while (new := f"{stem} {number + 1}") in taken:
        number += 1
    return new


def is_named(document: Document, item: Item) -> bool:
    """Whether others can name the item."""
    value = items.value_of(document.scene.settings, item)
    return is_dataclass(value) and "name" in {f.name for f in fields(value)} and bool(getattr(value, "name", ""))
