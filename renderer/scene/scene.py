"""Scene files: TOML read against frozen dataclasses, with every mistake of the user told by file and key.

A picture declares its Settings once, as a frozen dataclass; the keys of the scene file, the `--set` options, the
sliders of the viewer and the recipe inside exported pictures all come from that declaration.
"""

import dataclasses
import difflib
import json
import math
import tomllib
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from renderer.errors import InputError, UserError

LARGEST_FILE = 64 << 20  # bytes of a scene file


@dataclass(frozen=True)
class Tone:
    """How linear radiance becomes the 8-bit picture; see renderer/images/tone_mapping.py."""

    exposure: Literal["auto", "manual"] = "auto"
    ev: float = 0.0  # stops, added to the automatic exposure too
    curve: Literal["none", "reinhard", "aces", "agx"] = "none"


@dataclass(frozen=True)
class Scene:
    """What an input file says: all that draws one picture. `bench` and `test` are its tables for the harness."""

    path: Path
    title: str
    picture: str
    settings: Any
    tone: Tone = Tone()
    size: tuple[int, int] | None = None
    samples: int | None = None  # where the input is a picture that says how many it was made of
    moment: float = 0.0  # seconds that such a picture shows, where something moves
    animation: Any = None  # an animation.Animation, where something moves
    bench: dict = field(default_factory=dict)
    test: dict = field(default_factory=dict)


def setting(default, low=None, high=None, help="", key=None, file=False, logarithmic=False):
    """A dataclass field with its range (both ends allowed), its one-line help, and the viewer key that steps it.

    `file` marks a path, told relative to the scene file's folder and made absolute when read.
    """
    metadata = dict(low=low, high=high, help=help, key=key, file=file, logarithmic=logarithmic)
    if isinstance(default, (list, dict, set)):
        raise TypeError("a setting's default is immutable")
    if isinstance(default, types.MappingProxyType):
        return field(default_factory=lambda: default, metadata=metadata)
    return field(default=default, metadata=metadata)


def read(Settings: type, table: dict, where: str, folder: Path = Path(".")):
    """A Settings from a table of plain values; InputError names `where`, the key, the value found and the values
    allowed.
    """
    hints = get_type_hints(Settings)
    known = {f.name: f for f in fields(Settings)}
    if not isinstance(table, dict):
        raise InputError(f"{where} is {told(table)}; it must be a table with the keys {', '.join(known)}")
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise InputError(f"{where}: unknown key {key!r}{hint}; allowed are {', '.join(known)}")
    missing = [n for n, f in known.items() if _is_required(f) and n not in table]
    if missing:
        raise InputError(f"{where}: the key {missing[0]!r} is missing")
    values = {k: _convert(hints[k], v, f"{where}: {k}", folder, known[k].metadata) for k, v in table.items()}
    try:
        return Settings(**values)
    except ValueError as error:  # a Settings may check in __post_init__ what one field alone cannot tell
        raise InputError(f"{where}: {error}") from error


def _is_required(f) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def told(value) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _convert(kind, value, where: str, folder: Path, metadata):
    """`value` as `kind`, or InputError."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):  # X | None
        if value is None:
            return None
        (kind,) = [k for k in inner if k is not type(None)]
        return _convert(kind, value, where, folder, metadata)
    if origin is Literal:
        if value not in inner or isinstance(value, bool):
            raise InputError(f"{where} is {told(value)}; allowed are {', '.join(map(str, inner))}")
        return value
    if is_dataclass(kind):
        return read(kind, value, where, folder)
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"{where} is {told(value)}; it must be a table")
        return types.MappingProxyType(
            {k: _convert(inner[1], v, f"{where}.{k}", folder, metadata) for k, v in value.items()}
        )
    if origin is tuple:
        return _convert_tuple(inner, value, where, folder, metadata)
    return _convert_scalar(kind, value, where, folder, metadata)


def _convert_tuple(inner, value, where: str, folder: Path, metadata):
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{where} is {told(value)}; it must be a list")
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(_convert(inner[0], v, f"{where}[{i}]", folder, metadata) for i, v in enumerate(value))
    if len(value) != len(inner):
        raise InputError(f"{where} is {told(value)}; it must have {len(inner)} values")
    return tuple(
        _convert(k, v, f"{where}[{i}]", folder, metadata) for i, (k, v) in enumerate(zip(inner, value, strict=True))
    )


def _convert_scalar(kind, value, where: str, folder: Path, metadata):
    right = {
        bool: isinstance(value, bool),
        int: isinstance(value, int) and not isinstance(value, bool),
        float: isinstance(value, (int, float)) and not isinstance(value, bool),
        str: isinstance(value, str),
    }[kind]
    if not right:
        names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        raise InputError(f"{where} is {told(value)}; it must be {names[kind]}")
    low, high = metadata.get("low"), metadata.get("high")
    if kind is float:
        value = float(value)
        if not math.isfinite(value):
            raise InputError(f"{where} is {value}; it must be finite")
    if (low is not None and value < low) or (high is not None and value > high):
        span = (
            f"{low} to {high}" if None not in (low, high) else f"at least {low}" if high is None else f"at most {high}"
        )
        raise InputError(f"{where} is {value}; it must be {span}")
    if metadata.get("file") and value:
        path = (folder / value).resolve()
        if not path.exists():
            raise InputError(f"{where} is {told(value)}; there is no {path}")
        return str(path)
    return value


def write(settings, folder: Path | None = None) -> dict:
    """The plain table that `read` turns back into these settings: only what differs from the defaults.

    Paths are told relative to `folder` where one is given.
    """
    out = {}
    for f in fields(settings):
        value = getattr(settings, f.name)
        default = f.default if f.default is not dataclasses.MISSING else None
        if f.default_factory is not dataclasses.MISSING:
            default = f.default_factory()
        if _is_required(f) or value != default:
            out[f.name] = _plain(value, folder, f.metadata)
    return out


def files_of(settings):
    """The paths of every file that the settings name."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.metadata.get("file") and value:
            yield from (value,) if isinstance(value, str) else value
        for inner in (value,) if is_dataclass(value) else _inner(value):
            if is_dataclass(inner):
                yield from files_of(inner)


def _inner(value):
    return value if isinstance(value, tuple) else value.values() if hasattr(value, "values") else ()


def plain(value):
    """A setting's value as tables hold it."""
    return _plain(value, None, {})


def _plain(value, folder, metadata):
    if is_dataclass(value):
        return write(value, folder)
    if isinstance(value, tuple):
        return [_plain(v, folder, metadata) for v in value]
    if isinstance(value, (dict, types.MappingProxyType)):
        return {k: _plain(v, folder, metadata) for k, v in value.items()}
    if metadata.get("file") and value and folder is not None:
        return _relative(Path(value), folder)
    return value


def _relative(path: Path, folder: Path) -> str:
    try:
        return str(path.relative_to(folder.resolve(), walk_up=True))
    except (ValueError, TypeError):  # another drive, or Python 3.11 without walk_up
        import os

        return os.path.relpath(path, folder)


def assign(settings, key: str, text: str, where: str = "--set"):
    """The settings with `key` (dots go inwards, [i] picks from a list) set to the value that `text` says in TOML."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if isinstance(value, str) and "," in value:  # 1,2,3 without brackets
        try:
            value = tomllib.loads(f"value = [{text}]")["value"]
        except tomllib.TOMLDecodeError:
            pass
    try:
        return assigned(settings, key.replace("[", ".").replace("]", "").split("."), value, f"{where} {key}")
    except InputError as error:  # the mistake stands on the command line, not in a file
        raise UserError(str(error)) from error


def assigned(node, path: list[str], value, where: str):
    name, rest = path[0], path[1:]
    if isinstance(node, tuple):
        if not name.isdigit() or int(name) >= len(node):
            raise UserError(f"{where}: no item {name!r}; there are {len(node)}, numbered from 0")
        new = assigned(node[int(name)], rest, value, where) if rest else value
        return (*node[: int(name)], new, *node[int(name) + 1 :])
    if isinstance(node, (dict, types.MappingProxyType)):
        if name not in node:
            raise UserError(f"{where}: unknown key {name!r}; allowed are {', '.join(node)}")
        return types.MappingProxyType({**node, name: assigned(node[name], rest, value, where) if rest else value})
    if not is_dataclass(node):
        raise UserError(f"{where}: {name!r} goes into a plain value")
    known = {f.name: f for f in fields(node)}
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UserError(f"{where}: unknown key {name!r}{hint}; allowed are {', '.join(known)}")
    if rest:
        return replace(node, **{name: assigned(getattr(node, name), rest, value, where)})
    kind = get_type_hints(type(node))[name]
    try:
        return replace(node, **{name: _convert(kind, value, where, Path("."), known[name].metadata)})
    except ValueError as error:
        raise UserError(f"{where}: {error}") from error


def read_file(path: Path, largest: int = LARGEST_FILE) -> bytes:
    """What an input file holds, or InputError."""
    try:
        with open(path, "rb") as file:
            data = file.read(largest + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if len(data) > largest:
        raise InputError(f"{path}: larger than the {largest >> 20} MiB that such a file may have")
    return data


def read_text(path: Path, largest: int = LARGEST_FILE) -> str:
    """The UTF-8 text of an input file, or InputError."""
    try:
        return read_file(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error


def read_toml(path: Path) -> dict:
    """The tables of a TOML file, or InputError with its line."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from error
