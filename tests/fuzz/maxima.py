"""Scenes that ask for the most: each whole number of the schema at its maximum, each list as long as a file allows.

`python -m tests.fuzz.maxima [KIND...]` reads and draws them with the limit of --max-memory set, in the processes of
run.py, and prints what was neither drawn nor refused in one sentence: internal errors, more memory, more time.
"""

import json
import os
import sys
import types
import typing
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin

from renderer.errors import InputError
from renderer.host import used_memory
from renderer.pictures import picture_class
from renderer.scene.schema import MAX_INTEGER, field_types
from renderer.system import trust
from renderer.system.files import MAX_TEXT_BYTES
from tests.fuzz import run, structured, targets

BUDGET = 512 << 20  # bytes of --max-memory
SLACK = 256 << 20  # bytes: allocations below trust.SMALL_BYTES are not asked about
SECONDS = 20.0  # of processor time
PRODUCTS = 8  # scenes with two maxima, and as many with three
UNIONS = (typing.Union, types.UnionType)

Keys = tuple[str, ...]  # names of the fields from the settings to a value; "*" is an item of a list
Leaf = tuple[type, str]  # the class that has the field, and the field's name


def leaves(Settings: type, wanted: str, outer: tuple[type, ...] = ()) -> Iterator[tuple[Keys, Leaf]]:
    """The whole numbers (`wanted` is "int") or the lists of any length ("list") in settings of a class."""
    for f in fields(Settings):
        kind = plain(field_types(Settings)[f.name])
        if wanted == "list" and is_list(kind):
            yield (f.name,), (Settings, f.name)
        for keys, inner in inner_types(kind, (f.name,)):
            if is_dataclass(inner) and inner not in (*outer, Settings):
                for rest, leaf in leaves(typing.cast(type, inner), wanted, (*outer, Settings)):
                    yield (*keys, *rest), leaf
            elif wanted == "int" and inner is int:
                yield keys, (Settings, f.name)


def plain(kind: Any) -> Any:
    """X for the type `X | None`."""
    return next(each for each in get_args(kind) if each is not type(None)) if get_origin(kind) in UNIONS else kind


def is_list(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1:] == (Ellipsis,)


def inner_types(kind: Any, keys: Keys) -> Iterator[tuple[Keys, Any]]:
    """The numbers and classes of which a type consists."""
    kind = plain(kind)
    if get_origin(kind) is tuple:
        for item in dict.fromkeys(each for each in get_args(kind) if each is not Ellipsis):
            yield from inner_types(item, (*keys, "*"))
    elif get_origin(kind) not in (Literal, dict):
        yield keys, kind


class Maker:
    """Makes scenes of a kind of picture from the fewest settings that it accepts."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.Settings = kind, folder, picture_class(kind).settings_type

    def scene(self, seed: str, *changes: tuple[Keys, Leaf, Any]) -> bytes:
        """A scene file with these values; None stands for the field's maximum, or for a list as long as there is room.

        Other items of the lists on the way to a value are made at random, as `seed` says.
        """
        self.schema = structured.Schema(Random(f"{self.kind} {seed}"), self.folder)
        settings = self.smallest()
        for keys, (owner, name), value in changes:
            metadata = {f.name: f.metadata for f in fields(owner)}[name]
            if value is None and keys[-1] == name and is_list(plain(field_types(owner)[name])):
                item = self.items(owner, name)[:1]
                value = item * ((MAX_TEXT_BYTES // 2 - 4096) // (len(json.dumps(item)) + 40))
            elif value is None:
                value = metadata.get("high") or MAX_INTEGER
            self.put(settings, keys, value, self.Settings)
        settings = structured.resolved(settings, structured.item_names(settings), self.schema.rng)
        return structured.toml({"picture": self.kind, "settings": settings})

    def smallest(self) -> dict[str, Any]:
        more = {"raytrace": {"materials": [{"name": "plain", "kind": "diffuse"}]}}
        affine = {"flame": [1, 0, 0, 0, 1, 0], "flame3d": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]}
        more |= {kind: {"xforms": [{"variations": {"linear": 1.0}, "affine": row}]} for kind, row in affine.items()}
        for _ in range(40):
            settings = self.schema.fields(self.Settings, 0.0) | more.get(self.kind, {})
            try:
                picture_class(self.kind).read_settings(dict(settings), "", self.folder)
            except InputError:
                continue
            return settings
        raise AssertionError(f"no {self.kind} is accepted")

    def items(self, owner: type, name: str) -> list[Any]:
        """A list that is not empty, for a field."""
        metadata = {f.name: {**f.metadata, "owner": owner.__name__} for f in fields(owner)}[name]
        kind = plain(field_types(owner)[name])
        for _ in range(40):
            if found := self.schema.value(kind, metadata, name):
                return found
        return [self.schema.value(get_args(kind)[0], metadata, name)]

    def put(self, table: dict[str, Any], keys: Keys, value: Any, owner: type) -> None:
        """Sets the value at a path of a table; makes the tables and items that it lies in."""
        name, rest, kind = keys[0], keys[1:], plain(field_types(owner)[keys[0]])
        if not rest:
            table[name] = value
        elif rest[0] != "*":
            self.put(table.setdefault(name, {}), rest, value, kind)
        elif rest[1:]:
            table[name] = table.get(name) or self.items(owner, name)
            for item in table[name]:
                self.put(item, rest[1:], value, get_args(kind)[0])
        else:
            table[name] = [value for _ in self.items(owner, name)]


def scenes(kind: str) -> list[tuple[str, bytes]]:
    """Scene files, each with the names of what is at its maximum."""
    make = Maker(kind, targets.good_files())
    numbers, lists = list(leaves(make.Settings, "int")), list(leaves(make.Settings, "list"))
    found = [((".".join(keys),), [(keys, leaf, None)]) for keys, leaf in (*numbers, *lists)]
    rng = Random(kind)
    for count in (2, 3):
        for _ in range(PRODUCTS if len(numbers) > count else 0):
            chosen = rng.sample(numbers, count)
            found.append((tuple(".".join(keys) for keys, _ in chosen), [(*each, None) for each in chosen]))
    found.append((("all",), [(*each, None) for each in numbers]))
    return [(" and ".join(names), make.scene(names[0], *changes)) for names, changes in found]


def findings(kind: str) -> tuple[int, dict[str, list[str]]]:
    """The number of scenes of a kind, and what is wrong with some of them by the names of what is at its maximum."""
    files = scenes(kind)
    os.environ.setdefault("RAYFOLD_FUZZ_DEVICE", "host")
    run.SECONDS, run.MEMORY, trust.Limits.memory = SECONDS, BUDGET + SLACK, used_memory() + BUDGET
    try:
        found = run.check(f"draw_{kind}", [("a.toml", data) for _, data in files])
    finally:
        trust.Limits.memory = None
    wrong: dict[str, list[str]] = {}
    for (name, _), rows in zip(files, found, strict=True):
        # check_memory() refuses in one sentence, before it allocates, when the picture is drawn
        if sentences := [f"{row.signature}: {row.detail}" for row in rows if "check_memory" not in row.signature]:
            wrong[name] = sentences
    return len(files), wrong


def main() -> int:
    """Prints a JSON object for each kind: the number of scenes, and the findings."""
    kinds, failed = sys.argv[1:] or list(targets.DRAWN), False
    targets.prepare([f"draw_{kind}" for kind in kinds])
    for kind in kinds:
        count, wrong = findings(kind)
        failed |= bool(wrong)
        print(json.dumps({kind: {"scenes": count, "findings": wrong}}, indent=1), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
