"""Settings as frozen dataclasses: from the tables of scene files and recipes, from --set options, and back to tables.

A picture declares its Settings once; the keys of the scene file, the --set options, the controls of the window and the
recipe inside exported pictures all come from that declaration. Every error of the user names file, key, value found and
values allowed.
"""

import dataclasses
import difflib
import json
import math
import os
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from renderer.errors import InputError, UserError, reading

MAX_FILE_BYTES = 64 << 20  # of a scene file


def setting(
    default: Any,
    low: float | None = None,
    high: float | None = None,
    help: str = "",
    key: str | None = None,
    file: bool = False,
    logarithmic: bool = False,
) -> Any:
    """A dataclass field with its closed range, one line of help, and the key that steps it in the window.

    `file` marks a path: relative to the scene file's folder in a table, absolute in the settings. `logarithmic` sets
    the scale of the control and of interpolation between key frames.
    """
    metadata = dict(low=low, high=high, help=help, key=key, file=file, logarithmic=logarithmic)
    if isinstance(default, (list, dict, set)):
        raise TypeError("a setting's default must be immutable")
    if isinstance(default, types.MappingProxyType):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


class PictureSettings:
    """Base of the frozen dataclasses of pictures' settings; a picture overrides what it has.

    `view` is what mouse and keys move (a cameras.View). `focus_distance` and `lens_radius` are those of a thin lens, in
    lengths of the scene; None where a picture has no lens.
    """

    view: Any = None
    focus_distance: float | None = None
    lens_radius: float | None = None

    def with_shutter_close(self, settings_after: Callable[[float], Any]) -> Self:
        """These settings with moving parts as they are when the shutter closes; settings_after(seconds) gives them."""
        return self

    def without_shutter_close(self, original: Self) -> Self:
        """These settings without what with_shutter_close() added to `original`."""
        return self

    def with_variance(self) -> Self:
        """These settings with the variance of pixels among the layers, where the picture can estimate it."""
        return self


def from_table(Settings: type, table: Any, context: str, folder: Path = Path(".")) -> Any:
    """Settings of the given class from a table of plain values.

    Raises InputError, which begins with `context` and names the key, the value found and the values allowed.
    """
    hints = get_type_hints(Settings)
    known = {f.name: f for f in fields(Settings)}
    if not isinstance(table, dict):
        raise InputError(f"{context} is {format_value(table)}; it must be a table with the keys {', '.join(known)}")
    for key in table:
        if key not in known:
            raise InputError(_unknown_key(context, key, known))
    missing = [name for name, f in known.items() if _is_required(f) and name not in table]
    if missing:
        raise InputError(f"{context}: the key {missing[0]!r} is missing")
    values = {k: _convert(hints[k], v, f"{context}: {k}", folder, known[k].metadata) for k, v in table.items()}
    try:
        return Settings(**values)
    except ValueError as error:  # __post_init__ checks what involves several fields
        raise InputError(f"{context}: {error}") from error


def _unknown_key(context: str, key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key, known, 1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"{context}: unknown key {key!r}{hint}; allowed are {', '.join(known)}"


def _is_required(f: dataclasses.Field) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def format_value(value: Any) -> str:
    """The value as JSON for a message, at most 60 characters long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def _convert(kind: Any, value: Any, context: str, folder: Path, metadata: Mapping) -> Any:
    """`value` as the type `kind`, or InputError."""
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):  # X | None
        if value is None:
            return None
        (kind,) = [k for k in inner if k is not type(None)]
        return _convert(kind, value, context, folder, metadata)
    if origin is Literal:
        if value not in inner or isinstance(value, bool):
            raise InputError(f"{context} is {format_value(value)}; allowed are {', '.join(map(str, inner))}")
        return value
    if is_dataclass(kind):
        return from_table(typing.cast(type, kind), value, context, folder)
    if origin is dict:
        if not isinstance(value, dict):
            raise InputError(f"{context} is {format_value(value)}; it must be a table")
        items = {k: _convert(inner[1], v, f"{context}.{k}", folder, metadata) for k, v in value.items()}
        return types.MappingProxyType(items)
    if origin is tuple:
        return _convert_tuple(inner, value, context, folder, metadata)
    return _convert_scalar(kind, value, context, folder, metadata)


def _convert_tuple(inner: tuple, value: Any, context: str, folder: Path, metadata: Mapping) -> tuple:
    if not isinstance(value, (list, tuple)):
        raise InputError(f"{context} is {format_value(value)}; it must be a list")
    if len(inner) == 2 and inner[1] is Ellipsis:
        inner = (inner[0],) * len(value)
    elif len(value) != len(inner):
        raise InputError(f"{context} is {format_value(value)}; it must have {len(inner)} values")
    pairs = enumerate(zip(inner, value, strict=True))
    return tuple(_convert(kind, v, f"{context}[{i}]", folder, metadata) for i, (kind, v) in pairs)


def _convert_scalar(kind: type, value: Any, context: str, folder: Path, metadata: Mapping) -> Any:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    right, name = {
        bool: (isinstance(value, bool), "true or false"),
        int: (is_number and isinstance(value, int), "a whole number"),
        float: (is_number, "a number"),
        str: (isinstance(value, str), "a text"),
    }[kind]
    if not right:
        raise InputError(f"{context} is {format_value(value)}; it must be {name}")
    low, high = metadata.get("low"), metadata.get("high")
    if kind is float:
        value = float(value)
        if not math.isfinite(value):
            raise InputError(f"{context} is {value}; it must be finite")
    if (low is not None and value < low) or (high is not None and value > high):
        both = low is not None and high is not None
        span = f"{low} to {high}" if both else f"at least {low}" if high is None else f"at most {high}"
        raise InputError(f"{context} is {value}; it must be {span}")
    if metadata.get("file") and value:
        path = (folder / value).resolve()
        if not path.exists():
            raise InputError(f"{context} is {format_value(value)}; there is no {path}")
        return str(path)
    return value


def to_table(settings: Any, folder: Path | None = None) -> dict[str, Any]:
    """The plain table that from_table() turns back into these settings: only what differs from the defaults.

    Paths become relative to `folder` where one is given.
    """
    out = {}
    for f in fields(settings):
        value = getattr(settings, f.name)
        default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        if value != default:  # a required one differs from MISSING
            out[f.name] = to_plain(value, folder, f.metadata)
    return out


def referenced_files(settings: Any) -> Iterator[str]:
    """The paths of all files that the settings name."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.metadata.get("file") and value:
            yield from (value,) if isinstance(value, str) else value
        for inner in (value,) if is_dataclass(value) else _items(value):
            if is_dataclass(inner):
                yield from referenced_files(inner)


def _items(value: Any) -> Iterable:
    return value if isinstance(value, tuple) else value.values() if isinstance(value, Mapping) else ()


def to_plain(value: Any, folder: Path | None = None, metadata: Mapping = types.MappingProxyType({})) -> Any:
    """The value of a setting as TOML and JSON tables have it; `metadata` is that of the setting's field."""
    if is_dataclass(value):
        return to_table(value, folder)
    if isinstance(value, tuple):
        return [to_plain(v, folder, metadata) for v in value]
    if isinstance(value, Mapping):
        return {k: to_plain(v, folder, metadata) for k, v in value.items()}
    if metadata.get("file") and value and folder is not None:
        with suppress(ValueError):  # another drive
            return os.path.relpath(value, folder.resolve())
    return value


def set_from_text(settings: Any, key: str, text: str, option: str = "--set") -> Any:
    """The settings with `key` set to the value that `text` is in TOML; raises UserError.

    Dots in the key descend into tables, [i] picks from a list. Strings need no quotes, lists no brackets.
    """
    value = _parse_toml(text, text)
    if isinstance(value, str) and "," in value:
        value = _parse_toml(f"[{text}]", value)
    try:
        return replace_path(settings, split_path(key), value, f"{option} {key}")
    except InputError as error:  # the error is in the command's arguments, not in a file
        raise UserError(str(error)) from error


def _parse_toml(text: str, fallback: Any) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return fallback


def split_path(path: str) -> list[str]:
    """`a.b[2].c` as the names a, b, 2, c."""
    return path.replace("[", ".").replace("]", "").split(".")


def replace_path(node: Any, path: list[str], value: Any, context: str) -> Any:
    """`node` with the value at `path` replaced; raises UserError for an unknown name, InputError for a bad value."""
    name, rest = path[0], path[1:]
    if isinstance(node, tuple):
        if not name.isdigit() or int(name) >= len(node):
            raise UserError(f"{context}: no item {name!r}; there are {len(node)}, numbered from 0")
        new = replace_path(node[int(name)], rest, value, context) if rest else value
        return (*node[: int(name)], new, *node[int(name) + 1 :])
    if isinstance(node, Mapping):
        if name not in node:
            raise UserError(f"{context}: unknown key {name!r}; allowed are {', '.join(node)}")
        return types.MappingProxyType({**node, name: replace_path(node[name], rest, value, context) if rest else value})
    if not is_dataclass(node) or isinstance(node, type):
        raise UserError(f"{context}: {name!r} descends into a plain value")
    known = {f.name: f for f in fields(node)}
    if name not in known:
        raise UserError(_unknown_key(context, name, known))
    if rest:
        return replace(node, **{name: replace_path(getattr(node, name), rest, value, context)})
    kind = get_type_hints(type(node))[name]
    try:
        return replace(node, **{name: _convert(kind, value, context, Path("."), known[name].metadata)})
    except ValueError as error:
        raise UserError(f"{context}: {error}") from error


def replace_in_file(node: Any, path: str, value: Any, context: str) -> Any:
    """replace_path() of `a.b[2]` for a value that a file names: every error is an InputError."""
    try:
        return replace_path(node, split_path(path), value, context)
    except UserError as error:
        raise InputError(str(error)) from error


def read_file(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """The content of an input file, or InputError."""
    with reading(path), open(path, "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(f"{path}: larger than the {max_bytes >> 20} MiB that such a file may have")
    return data


def read_text(path: Path, max_bytes: int = MAX_FILE_BYTES) -> str:
    """The UTF-8 text of an input file, or InputError."""
    try:
        return read_file(path, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, or InputError with its line."""
    try:
        return tomllib.loads(read_text(path))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from error


def read_json_lines(path: Path, max_bytes: int = 1 << 30) -> list[dict]:
    """The JSON objects of a file of lines; a line that a killed run left incomplete is skipped."""
    rows = []
    for line in read_text(path, max_bytes).splitlines():
        try:
            rows.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return [row for row in rows if isinstance(row, dict)]
