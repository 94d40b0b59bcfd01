"""Converts tables of scene files and recipes, and --set options, to settings (frozen dataclasses), and back.

A picture declares its Settings once; the keys of the scene file, the --set options, the controls of the window and the
recipe inside exported pictures all come from that declaration. Every error of the user names file, key, value found and
values allowed.
"""

import dataclasses
import math
import os
import re
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass, replace
from decimal import Decimal
from functools import cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from renderer.errors import InputError, UserError
from renderer.paths import ASSETS
from renderer.plain import Json, format_names, format_value, parse_whole, quoted, suggestion, to_float
from renderer.system.files import parse_toml, resolve
from renderer.system.trust import named_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
Metadata = Mapping[str, Any]  # metadata of a dataclass field, made by setting()
NUMBERS = frozenset((float, int, bool))
EMPTY: Any = types.MappingProxyType({})  # the default of a table that a file may leave out
MAX_INTEGER = (1 << 63) - 1
MAX_CHARACTERS = 20_000  # characters of a decimal number
DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,5})?")
_SIZE = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,5})?"
# A point of the plane, such as -0.75+0.1i: the real part, then sign and size of the imaginary one.
COMPLEX = re.compile(rf"([-+]?{_SIZE}(?!\*?i)(?![\d.eE]))?(?:([-+]?)({_SIZE})?\*?i)?")
MAX_NUMBER = 1e30  # the greatest magnitude of a setting: the length of a vector of such numbers still fits into float32


def setting(
    default: T,
    low: float | Decimal | None = None,
    high: float | Decimal | None = None,
    help: str = "",
    key: str | None = None,
    file: tuple[str, ...] = (),
    logarithmic: bool = False,
    is_color: bool = False,
    refers_to: str = "",
) -> T:
    """A dataclass field with its closed range, one line of help, and the key of the window that steps its value.

    `file` marks a path, and is the suffixes that it may have ("" is a folder): relative to the scene file's folder in a
    table, absolute in the settings. `logarithmic` sets the scale of the control and of interpolation between key
    frames. `is_color` marks a linear RGB color. `refers_to` marks the name of an item, and is the list that holds the
    item ("shapes": any list of shapes).
    """
    metadata: dict[str, Any] = dict(low=low, high=high, help=help, key=key, file=file, logarithmic=logarithmic)
    metadata |= dict(is_color=is_color, refers_to=refers_to)
    if isinstance(default, (list, dict, set)):
        raise TypeError("a setting's default must be immutable")
    if isinstance(default, types.MappingProxyType):
        return dataclasses.field(default_factory=lambda: default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def required_file(suffixes: tuple[str, ...], help: str = "") -> Any:
    """A dataclass field without a default that is the path of a file, as setting(file=suffixes) has it; not empty."""
    return dataclasses.field(metadata=dict(help=help, file=suffixes, required=True))


def reference(refers_to: str, help: str) -> dict[str, str]:
    """Returns the metadata of a dataclass field that names an item of the list `refers_to` and has no default."""
    return {"help": help, "refers_to": refers_to}


class PictureSettings:
    """Base of the frozen dataclasses of pictures' settings; a picture overrides the members that it supports.

    Mouse and keys move `view` (a cameras.View). `focus_distance` and `lens_radius` describe a thin lens, in
    lengths of the scene; None if the picture has no lens.
    """

    view: Any = None
    focus_distance: float | None = None
    lens_radius: float | None = None

    @property
    def is_animated(self) -> bool:
        """True if the settings change with time without key frames: animations of models."""
        return False

    def at_time(self, time: float, settings_after: Callable[[float], Self]) -> Self:
        """These settings with the models' animations at `time` (seconds), and the instances at shutter close.

        settings_after(seconds) returns the settings of a later time, to which at_time() was not applied.
        """
        return self

    def without_time(self, original: Self, shown: Self) -> Self:
        """Undoes at_time() in these settings, which are an edit of `shown`, the settings that it made of `original`."""
        return self

    @classmethod
    def is_stale(cls, key: str, value: object) -> bool:
        """True for a setting that no longer exists, but that files may still hold."""
        return False

    def with_view(self, view: Any) -> Self:
        """These settings after the mouse or a key has moved the view."""
        settings: Any = self
        moved: Self = replace(settings, view=view)
        return moved

    def for_denoising(self) -> Self:
        """These settings without the filters that a denoiser replaces."""
        return self

    def for_window(self) -> Self:
        """These settings without effects that are costly and show only in films, such as motion blur of key frames."""
        return self

    def with_layers(self, drawn: bool) -> Self:
        """These settings for a picture whose layers are `drawn`, or are not: then without what only layers need."""
        return self


@cache
def field_types(Settings: type) -> dict[str, Any]:
    """Returns the types of the fields of a settings class, by name."""
    return get_type_hints(Settings)


def from_table(Settings: type[T], table: object, context: str, folder: Path | None) -> T:
    """Converts a table of a file in `folder` (None: of the user) to `Settings`; named_file() decides on its paths.

    Raises InputError, which begins with `context` and names the key, the value found and the values allowed.
    """
    kind: type = Settings
    hints, known = field_types(kind), {f.name: f for f in fields(kind)}
    if not isinstance(table, dict):
        raise InputError(f"{context} is {format_value(table)}; it must be a table with the keys {_plain_first(known)}")
    for key in table:
        if key not in known:
            raise InputError(_unknown_key(context, key, known))
    required = [name for name, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
    missing = [name for name in required if name not in table]
    if missing:
        raise InputError(f"{context}: the key {missing[0]!r} is missing")
    values = {k: _convert(hints[k], v, f"{context}: {k}", folder, known[k].metadata) for k, v in table.items()}
    try:
        made: T = kind(**values)
        return made
    except ValueError as error:  # __post_init__ checks what involves several fields
        raise InputError(f"{context}: {error}") from error


def _unknown_key(context: str, key: str, known: Iterable[str]) -> str:
    return f"{context}: unknown key {quoted(key)}{suggestion(key, known)}; allowed are {_plain_first(known)}"


def _plain_first(known: Iterable[str]) -> str:
    """The keys for a message; plain ones, such as color, come before compounds, such as sheen_color_texture."""
    names = format_names(sorted(known, key=lambda name: str(name).count("_")))
    return f"{names}, all in {ASSETS / 'reference' / 'settings.md'}" if names.endswith(" more") else names


def _convert(kind: object, value: object, context: str, folder: Path | None, metadata: Metadata) -> Any:
    """Converts `value` to the type `kind` and checks it by the field's `metadata`. Raises InputError."""
    if kind is Any:
        return value
    origin, inner = get_origin(kind), get_args(kind)
    if _without_none(kind) is not kind:
        return None if value is None else _convert(_without_none(kind), value, context, folder, metadata)
    if origin is Literal:
        if value not in inner or isinstance(value, bool):
            raise InputError(f"{context} is {format_value(value)}; allowed are {format_names(inner)}")
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


def _convert_tuple(
    inner: tuple[object, ...], value: object, context: str, folder: Path | None, metadata: Metadata
) -> tuple[object, ...]:
    """A tuple of converted items; a complex number also as a text."""
    if inner == (Decimal, Decimal) and isinstance(value, str):
        match = COMPLEX.fullmatch(re.sub(r"\s", "", value))
        if match is None or not match[0]:
            allowed = 'two numbers, or a text such as "-0.75+0.1i"'
            raise InputError(f"{context} is {format_value(value)}; it must be {allowed}")
        real, sign, size = match.groups()
        value = real or "0", (sign or "") + (size or "1") if match[0].endswith("i") else "0"
    is_open = len(inner) == 2 and inner[1] is Ellipsis
    if not isinstance(value, (list, tuple)) or not (is_open or len(value) == len(inner)):
        span = f", each {_span(metadata)}" if metadata.get("low") is not None else ""
        wanted = "be a list" if is_open else f"have {len(inner)} values{span}"
        raise InputError(f"{context} is {format_value(value)}; it must {wanted}")
    if is_open:
        inner = (inner[0],) * len(value)
    pairs = enumerate(zip(inner, value, strict=True))
    return tuple(_convert(kind, v, f"{context}[{i}]", folder, metadata) for i, (kind, v) in pairs)


def to_decimal(value: object, context: str, metadata: Metadata) -> Decimal:
    """Converts a number, or a text of any length up to MAX_CHARACTERS, to the decimal number that is written there."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise InputError(f"{context} is {format_value(value)}; it must be a number, or a decimal number as a text")
    # A WrittenFloat of parse_toml() has the digits of the file as `text`.
    text = value.strip() if isinstance(value, str) else str(getattr(value, "text", value)).replace("_", "")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"{context} has {len(text):,} characters; at most {MAX_CHARACTERS:,} are allowed")
    if not DECIMAL.fullmatch(text):
        example = 'a decimal number such as "-1.76", ".5" or "1e-1000", with an exponent of at most five digits'
        raise InputError(f"{context} is {format_value(text)}; it must be {example}")
    number = Decimal(text)
    _check_number(number, context, metadata)
    return number


def _convert_scalar(kind: type, value: object, context: str, folder: Path | None, metadata: Metadata) -> object:
    """A boolean, number or text within the limits of its field; InputError."""
    if kind is Decimal:
        return to_decimal(value, context, metadata)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int and isinstance(value, float) and value.is_integer() and abs(value) < MAX_INTEGER:
        value = int(value)  # 1e5
    is_valid, name = {
        bool: (isinstance(value, bool), f"{format_value(True)} or {format_value(False)}"),
        int: (is_number and isinstance(value, int), "a whole number"),
        float: (is_number, "a number"),
        str: (isinstance(value, str), "a text"),
    }[kind]
    if not is_valid:
        raise InputError(f"{context} is {format_value(value)}; it must be {name}")
    if isinstance(value, (int, float)) and is_number:
        value = to_float(value) if kind is float else value
        _check_number(value, context, metadata)
    if metadata.get("required") and not value:
        raise InputError(f"{context} is empty; it must name a file")
    if metadata.get("file") and isinstance(value, str) and value:
        return str(named_file(value, folder, metadata["file"], context))
    return value


def _check_number(value: float | Decimal, context: str, metadata: Metadata) -> None:
    """Raises InputError for a number that is not finite or beyond the limits."""
    low, high = metadata.get("low"), metadata.get("high")
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        raise InputError(f"{context} is {format_value(value)}; it must be below 2^63")
    if not math.isfinite(value):
        raise InputError(f"{context} is {value}; it must be finite")
    if not -MAX_NUMBER <= value <= MAX_NUMBER:
        raise InputError(f"{context} is {value:g}; it must be at most {MAX_NUMBER:g} in size")
    if (low is not None and value < low) or (high is not None and value > high):
        raise InputError(f"{context} is {value}; it must be {_span(metadata)}")


def _span(metadata: Metadata) -> str:
    """The range of a number for a message; one end may be open."""
    low, high = metadata.get("low"), metadata.get("high")
    both = low is not None and high is not None
    return f"{low} to {high}" if both else f"at least {low}" if high is None else f"at most {high}"


def check_numbers(value: object, context: str, metadata: Metadata = EMPTY) -> None:
    """Raises InputError for a number in settings that from_table() would refuse: not finite, or out of its range."""
    if is_dataclass(value):
        for f in fields(value):
            check_numbers(getattr(value, f.name), f"{context}: {f.name}", f.metadata)
    elif isinstance(value, tuple):
        for i, item in enumerate(value):
            check_numbers(item, f"{context}[{i}]", metadata)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_numbers(item, f"{context}.{key}", metadata)
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        _check_number(value, context, metadata)


def to_table(settings: object, folder: Path | None = None, defaults: object = None) -> Json:
    """Converts settings to the table that from_table() reads: only the values that differ from the defaults.

    Paths become relative to `folder` if it is given. `defaults` are settings of the same class; None for the defaults
    of the class.
    """
    out = {}
    for f in fields(typing.cast("DataclassInstance", settings)):
        value = getattr(settings, f.name)
        default: object = f.default if f.default_factory is MISSING else f.default_factory()
        if defaults is not None:
            default = getattr(defaults, f.name)
        if value != default:  # the value of a required field differs from MISSING
            out[f.name] = to_plain(value, folder, f.metadata)
    return out


def kept_values(settings: "DataclassInstance", settings_class: "type[DataclassInstance]") -> Json:
    """Returns the values, by name, of the fields that `settings_class` has with equal name and type."""
    kinds = {f.name: f.type for f in fields(settings)}
    return {f.name: getattr(settings, f.name) for f in fields(settings_class) if kinds.get(f.name) == f.type}


def referenced_files(settings: "DataclassInstance") -> Iterator[str]:
    """Yields the paths of all files that the settings name."""
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.metadata.get("file") and value:
            yield from (value,) if isinstance(value, str) else value
        items = value if isinstance(value, tuple) else value.values() if isinstance(value, Mapping) else (value,)
        for item in items:
            if is_dataclass(item) and not isinstance(item, type):
                yield from referenced_files(item)


def to_plain(value: object, folder: Path | None = None, metadata: Metadata = EMPTY) -> object:
    """Converts a setting's value to plain TOML and JSON types; `metadata` belong to the setting's field."""
    if is_dataclass(value) and not isinstance(value, type):
        return to_table(value, folder)
    if isinstance(value, tuple):
        are_plain = NUMBERS.issuperset(map(type, value))  # as in the thousands of palettes of a film of flames
        return list(value) if are_plain else [to_plain(v, folder, metadata) for v in value]
    if isinstance(value, Mapping):
        return {k: to_plain(v, folder, metadata) for k, v in value.items()}
    if isinstance(value, Decimal):  # a text if float64 does not hold it
        return float(value) if Decimal(repr(float(value))) == value else str(value)
    if metadata.get("file") and isinstance(value, str) and value and folder is not None:
        with suppress(ValueError):  # another drive
            return os.path.relpath(value, resolve(folder))
    return value


def set_from_text(settings: object, key: str, text: str, option: str = "--set", prefix: str = "") -> Any:
    """Returns the settings with `key` set to the TOML value `text`; raises UserError.

    Dots in the key descend into tables, [i] picks from a list: "camera.fov_degrees", "spheres[2].color". Strings need
    no quotes, lists no brackets. Errors name the `option`, the `prefix` and the key.
    """
    context = f"{option} {prefix}{key}"
    value = _value_of_text(text, context)
    try:
        return replace_path(settings, split_path(key), value, context)
    except InputError as error:  # the error is in the command's arguments, not in a file
        with suppress(UserError):  # the setting is a text, and this one looks like a number
            return replace_path(settings, split_path(key), text, context)
        raise UserError(str(error)) from error


def set_all_from_texts(settings: Any, assignments: Sequence[tuple[str, str]]) -> Any:
    """Sets several keys, given as pairs (key, text); the settings between two of them may be invalid."""
    try:
        return reduce(lambda changed, pair: set_from_text(changed, *pair), assignments, settings)
    except UserError:
        with suppress(UserError):
            return replace_all(settings, {key: _value_of_text(text, key) for key, text in assignments})
        raise


def _value_of_text(text: str, context: str) -> object:
    """The TOML value of an option's text; the text itself if it is none. Raises UserError."""
    try:
        value = _parse_toml(text, text)
        is_list = isinstance(value, str) and "," in value  # a list without its brackets: 1, 2, 3
        return _parse_toml(f"[{text}]", value) if is_list else value
    except ValueError as error:
        raise UserError(f"{context}: {error}") from error


def _parse_toml(text: str, fallback: object) -> object:
    """The value of a TOML expression; `fallback` if it is none."""
    try:
        value: object = parse_toml(f"value = {text}")["value"]
        return value
    except tomllib.TOMLDecodeError:
        return fallback


def split_path(path: str) -> list[str]:
    """Splits `a.b[2].c` into the names a, b, 2, c."""
    return path.replace("[", ".").replace("]", "").split(".")


def replace_path(
    node: Any,
    path: list[str],
    value: object,
    context: str,
    folder: Path | None = None,
    kind: object = Any,
    metadata: Metadata = EMPTY,
) -> Any:
    """Returns `node` with the value at `path` replaced; UserError for an unknown name, InputError for a bad value.

    `folder` holds the file that gives the value; None if the user gives it. `kind` is the type of the node, `metadata`
    has the limits of the field that holds it.
    """
    if not path:
        return _convert(kind, value, context, folder, metadata)
    name, rest = path[0], path[1:]
    if isinstance(node, tuple):
        index = parse_whole(name, 0, len(node) - 1)
        if index is None:
            raise UserError(f"{context}: no item {name!r}; there are {len(node)}, numbered from 0")
        inner = get_args(_without_none(kind)) or (Any,)  # (X, ...) of tuple[X, ...], or a type for each item
        item = inner[index] if index < len(inner) and inner[-1] is not Ellipsis else inner[0]
        new = replace_path(node[index], rest, value, context, folder, item, metadata)
        return (*node[:index], new, *node[index + 1 :])
    if isinstance(node, Mapping):
        if name not in node:
            raise UserError(f"{context}: unknown key {quoted(name)}; allowed are {format_names(node)}")
        item = (get_args(_without_none(kind)) or (Any,))[-1]  # the values' type in dict[str, X]
        new = replace_path(node[name], rest, value, context, folder, item, metadata)
        return types.MappingProxyType({**node, name: new})
    if not is_dataclass(node) or isinstance(node, type):
        raise UserError(f"{context}: {name!r} descends into a plain value")
    known = {f.name: f for f in fields(node)}
    if name not in known:
        raise UserError(_unknown_key(context, name, known))
    field_kind, limits = field_types(type(node))[name], known[name].metadata
    try:
        new = replace_path(getattr(node, name), rest, value, context, folder, field_kind, limits)
        return replace(node, **{name: new})
    except ValueError as error:
        raise UserError(f"{context}: {error}") from error


def replace_all(settings: Any, changes: Mapping[str, object], prefix: str = "", spelled: Mapping[str, str] = {}) -> Any:
    """Returns the settings with the values at the keys (`a` or `a.b[2]`) replaced, and checks them together.

    Raises UserError, which names the key as it is `spelled`, or after the `prefix`: "tone." for a tone mapping.
    """
    kinds = field_types(typing.cast(type, type(settings)))
    known, values = {f.name: f for f in fields(settings)}, dict[str, Any]()
    # Tables before the settings inside of them, which change the new table
    for key, value in sorted(changes.items(), key=lambda change: len(split_path(change[0]))):
        name, *rest = split_path(key)
        if name not in known:
            raise UserError(_unknown_key("tone" if prefix else "settings", spelled.get(key, name), known))
        node, shown = values.get(name, getattr(settings, name)), spelled.get(key, prefix + key)
        try:
            values[name] = replace_path(node, rest, value, shown, None, kinds[name], known[name].metadata)
        except InputError as error:  # the value comes from no file
            raise UserError(str(error)) from error
    try:
        return replace(settings, **values) if values else settings
    except ValueError as error:
        raise UserError(f"{', '.join(prefix + key for key in changes)}: {error}") from error


def _without_none(kind: object) -> Any:
    """Returns X for the type `X | None`, any other type unchanged."""
    if get_origin(kind) in (typing.Union, types.UnionType):
        (kind,) = [k for k in get_args(kind) if k is not type(None)]
    return kind


def replace_in_file(node: object, path: str, value: object, context: str, folder: Path | None) -> Any:
    """Does what replace_path() does for a path `a.b[2]` in a file of `folder`, where every error is an InputError."""
    try:
        return replace_path(node, split_path(path), value, context, folder)
    except UserError as error:
        raise InputError(str(error)) from error
