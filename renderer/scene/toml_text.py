"""Edits the text of a scene file and keeps everything else: comments, order, spelling of numbers, blank lines.

The window's editor uses them (window/document/scene_text.py). The text is cut at its headers into blocks of full lines.
Items of lists are added and removed as blocks; a value is replaced inside its block, which tomlkit parses alone. A path
names a value: ("settings", "quads", 2, "material").
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from renderer.system.files import parse_toml

Path = tuple[str | int, ...]
MAX_LINE = 120  # characters: longer lists and tables take a line for each item
# Strings and comments match first, so that brackets inside of them do not count. A multi-line string may end in one or
# two quotes before the three that close it.
_TOKENS = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*'''
    r"|(?P<header>^[ \t]*\[)|(?P<open>[\[{])|(?P<close>[\]}])",
    re.DOTALL | re.MULTILINE,
)
# A header line: what stands before a # outside of strings, and the comment from there on.
_COMMENT_AFTER = re.compile(r"""^((?:[^#"']|"(?:[^"\\]|\\.)*"|'[^']*')*)(#.*)?$""")


class Block(NamedTuple):
    """Lines `start` up to `end`: comments, a header and the lines below it; or the lines above the first header."""

    path: Path
    is_item: bool  # an item of an array of tables
    start: int
    header: int  # the line of the header; -1 for the lines above the first
    end: int


class TextError(ValueError):
    """The text cannot be edited in the way that was asked for; the message says why."""


def format_value(value: object, width: int = MAX_LINE) -> str:
    """Formats a value as TOML in one line; a list that is longer than `width` characters takes a line for each item."""
    line = _inline(value)
    if len(line) <= width or not isinstance(value, (list, tuple)) or not value:
        return line
    return "[\n" + "".join(f"    {_inline(item)},\n" for item in value) + "]"


def _inline(value: object) -> str:
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(f"{format_key(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return repr(value)


def format_key(key: str) -> str:
    """Formats a key as TOML, with quotes if it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _inline(key)


def table_lines(name: str, table: Mapping[str, object], is_item: bool = False, comment: str = "") -> list[str]:
    """Formats a table with its header, in lines; an inner table takes one line, or a header if it is too long."""
    header = f"[[{name}]]" if is_item else f"[{name}]"
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping) and value}
    long = {key: value for key, value in tables.items() if len(_key_line(key, value)) > MAX_LINE}
    lines = [f"{header} # {comment}" if comment else header]
    lines += _key_lines({key: value for key, value in table.items() if key not in long})
    for key, inner in long.items():
        lines += table_lines(f"{name}.{format_key(key)}", inner)
    return lines


def _key_lines(table: Mapping[str, object]) -> list[str]:
    return [line for k, v in table.items() for line in _key_line(k, v).split("\n")]


def _key_line(key: str, value: object) -> str:
    start = f"{format_key(key)} = "
    return start + format_value(value, MAX_LINE - len(start))


def blocks(text: str) -> list[Block]:
    """Splits a valid TOML text into blocks, in order, which together cover all lines."""
    lines = text.split("\n")
    headers = _header_lines(text)
    starts = [_first_comment(lines, line, after) for line, after in zip(headers, [-1, *headers], strict=False)]
    ends = [*starts[1:], len(lines)] if starts else []
    above = Block((), is_item=False, start=0, header=-1, end=starts[0] if starts else len(lines))
    out, counts = [above], dict[tuple[str, ...], int]()  # by array of tables: the index of its last item so far
    for header, start, end in zip(headers, starts, ends, strict=True):
        names, is_item = _header_keys(lines[header])
        if is_item:
            counts[names] = counts.get(names, -1) + 1
            # The new item's inner arrays of tables begin anew.
            for inner in [other for other in counts if len(other) > len(names) and other[: len(names)] == names]:
                del counts[inner]
        path: Path = ()
        for length in range(1, len(names) + 1):
            path += (names[length - 1],)
            if names[:length] in counts:
                path += (counts[names[:length]],)
        out.append(Block(path, is_item, start, header, end))
    return out


def _header_lines(text: str) -> list[int]:
    """Returns the numbers of the header lines, which begin with a bracket outside of strings and lists."""
    out, depth, line, at = [], 0, 0, 0
    for match in _TOKENS.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if match.lastgroup == "header" and depth == 0:
            out.append(line)
        depth += {"header": 1, "open": 1, "close": -1}.get(match.lastgroup or "", 0)
    return out


def _first_comment(lines: Sequence[str], header: int, after: int) -> int:
    """Returns the first of the comment lines directly above a header and below line `after`, the header before.

    Comments that touch keys above them belong to these keys: then there are none, and the header's line is returned.
    """
    first = header
    while first - 1 > after and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first if first == 0 or not lines[first - 1].strip() or first == after + 1 else header


def _header_keys(header: str) -> tuple[tuple[str, ...], bool]:
    """Returns the keys of a header line, and True for the header of an item of an array of tables."""
    parsed: Any = parse_toml(header)
    names: list[str] = []
    while isinstance(parsed, dict) and parsed:
        name, parsed = next(iter(parsed.items()))
        names.append(name)
        if isinstance(parsed, list):
            return tuple(names), True
    return tuple(names), False


def _joined(before: list[str], new: list[str], after: list[str]) -> str:
    """Joins lines to a text, with one blank line before and after the `new` lines."""
    while before and not before[-1].strip():
        before = before[:-1]
    while after and not after[0].strip():
        after = after[1:]
    if not new:
        return "\n".join([*before, *([""] if before else []), *after])
    new = ([""] if before else []) + new
    return "\n".join([*before, *new, *(["", *after] if after else [""])])


def list_blocks(text: str, path: Path) -> list[Block] | None:
    """Returns the blocks of an array of tables; None if the text has no such list, or writes it as a key's value."""
    return [block for block in blocks(text) if block.is_item and block.path[:-1] == path] or None


def list_comments(text: str, path: Path) -> list[str]:
    """Returns the comment beside each header of an array of tables; [] if list_blocks() is None."""
    lines = text.split("\n")
    return [_split_comment(lines[block.header])[1] for block in list_blocks(text, path) or []]


def _split_comment(header: str) -> tuple[str, str]:
    match = _COMMENT_AFTER.match(header)
    code, comment = match.groups() if match else (header, None)
    return code.rstrip(), (comment or "").removeprefix("#").strip()


def set_comment(text: str, path: Path, index: int, comment: str) -> str:
    """Returns the text with `comment` beside the header of an item; an empty comment removes the old one."""
    items = list_blocks(text, path)
    if items is None:
        raise TextError(f"{format_path(path)} is one list in the file, whose items have no place for a name")
    lines = text.split("\n")
    header = items[index].header
    comment = " ".join("".join(c if c.isprintable() else " " for c in comment).split())
    code = _split_comment(lines[header])[0]
    lines[header] = f"{code} # {comment}" if comment else code
    return "\n".join(lines)


def insert_item(
    text: str, path: Path, index: int, table: Mapping[str, object], comment: str = "", later: Sequence[str] = ()
) -> str:
    """Returns the text with a table inserted as item `index` of the list at `path`.

    The first item of a new list goes before the lists of the same table that `later` names.
    """
    items = list_blocks(text, path)
    if items is None and (inline := _inline_list(text, path)) is not None:
        return replace_value(text, path, [*inline[:index], dict(table), *inline[index:]])
    name = ".".join(format_key(str(key)) for key in path)
    if items is None:
        line = _first_line_of_list(text, path, later)
    else:
        line = _end_of_item(text, items[index - 1]) if index > 0 else items[0].start
    lines = text.split("\n")
    return _joined(lines[:line], table_lines(name, table, is_item=True, comment=comment), lines[line:])


def _end_of_item(text: str, item: Block) -> int:
    """Returns the number of the line after an item and the tables inside of it."""
    return max(block.end for block in blocks(text) if block.path[: len(item.path)] == item.path)


def _first_line_of_list(text: str, path: Path, later: Sequence[str]) -> int:
    """Returns the line where a new list begins: before the lists named in `later`, else after its table."""
    outer, known = path[:-1], blocks(text)
    for block in known:
        if block.is_item and block.path[: len(outer)] == outer and block.path[len(outer)] in later:
            return block.start
    ends = [block.end for block in known if outer and block.path[: len(outer)] == outer]
    return max(ends, default=known[-1].end)


def remove_item(text: str, path: Path, index: int) -> str:
    """Returns the text without an item of the list at `path` and without the comments above its header."""
    items = list_blocks(text, path)
    if items is None:
        inline = _inline_list(text, path) or []
        return replace_value(text, path, [*inline[:index], *inline[index + 1 :]])
    lines, end = text.split("\n"), _end_of_item(text, items[index])
    before, after = lines[: items[index].start], lines[end:]
    if not before:
        return _joined([], [], after)  # without blank lines at the top
    return "\n".join([*before, *after]) if after else _ended(before)


def move_item(text: str, path: Path, index: int, to: int) -> str:
    """Returns the text with an item of the list at `path`, and its comments, moved to another index."""
    items = list_blocks(text, path)
    if items is None:
        inline = _inline_list(text, path) or []
        inline.insert(to, inline.pop(index))
        return replace_value(text, path, inline)
    moved = _ended(text.split("\n")[items[index].start : _end_of_item(text, items[index])]).split("\n")[:-1]
    text = remove_item(text, path, index)
    rest, lines = list_blocks(text, path) or [], text.split("\n")
    line = rest[to].start if to < len(rest) else _end_of_item(text, rest[-1])
    return _joined(lines[:line], moved, lines[line:])


def _ended(lines: list[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _inline_list(text: str, path: Path) -> list[object] | None:
    """Returns the items of a list that is a key's value; None if there is no such key."""
    value: Any = parse_toml(text)
    for name in path:
        if not (isinstance(value, dict) and name in value or isinstance(value, list) and isinstance(name, int)):
            return None
        value = value[name]  # type: ignore[index]  # checked above
    return value if isinstance(value, list) else None


def replace_value(text: str, path: Path, value: object, sections: Sequence[str] = ()) -> str:
    """Returns the text with the value at `path` replaced, or added after the other keys of its table.

    A missing table of the top level is added in the order of `sections`.
    """
    lines = text.split("\n")
    if isinstance(value, Mapping):
        for block in blocks(text):
            if block.path == path and not block.is_item:  # a table with a header
                return _joined([*lines[: block.header + 1], *_key_lines(value)], [], lines[block.end :])
    block = _block_at(text, path)
    rest = path[len(block.path) :]
    if not block.path and len(rest) > 1 and rest[0] not in parse_toml(_body(lines, block)):
        return _add_section(text, str(rest[0]), _nested(rest[1:], value), sections)
    body = _replaced(_body(lines, block), rest, value)
    return "\n".join([*lines[: block.header + 1], *body.split("\n"), *lines[block.end :]])


def remove_value(text: str, path: Path) -> str:
    """Returns the text without the value at `path`, which must exist; a table with a header loses all its lines."""
    lines = text.split("\n")
    inside = [block for block in blocks(text) if block.path and block.path[: len(path)] == path]
    if inside:
        for block in reversed(inside):
            del lines[block.start : block.end]
        return _ended(lines)
    block = _block_at(text, path)
    rest = path[len(block.path) :]
    try:
        body = tomlkit.parse(_body(lines, block))
        table: Any = body
        for name in rest[:-1]:
            table = table[name]
        del table[rest[-1]]
        changed = body.as_string()
    except (TOMLKitError, KeyError, IndexError, TypeError) as error:
        raise TextError(f"{format_path(path)} cannot be removed from the text: {error}") from error
    return "\n".join([*lines[: block.header + 1], *changed.split("\n"), *lines[block.end :]])


def _block_at(text: str, path: Path) -> Block:
    """Returns the innermost block that holds the value at a path."""
    known = [block for block in blocks(text) if block.path == path[: len(block.path)] and len(block.path) < len(path)]
    return max(known, key=lambda block: len(block.path))


def _body(lines: Sequence[str], block: Block) -> str:
    return "\n".join(lines[block.header + 1 : block.end])


def _nested(path: Path, value: object) -> dict[str, object]:
    name = str(path[0])
    return {name: value if len(path) == 1 else _nested(path[1:], value)}


def _replaced(body: str, path: Path, value: object) -> str:
    """Returns the text of one block's keys with the value at `path` replaced or added; raises TextError."""
    try:
        document = tomlkit.parse(body)
        table: Any = document
        for depth, name in enumerate(path[:-1]):
            if isinstance(name, str) and name not in table:  # a missing table is added with the value in it
                return _replaced(body, path[: depth + 1], _nested(path[depth + 1 :], value))
            table = table[name]
        if len(path) == 1 and path[0] not in table:
            return _with_key(body, str(path[0]), value)
        width = MAX_LINE - len(f"{path[-1]} = ")
        table[path[-1]] = tomlkit.value(format_value(value, width))
        return document.as_string()
    except (TOMLKitError, KeyError, IndexError, TypeError) as error:
        raise TextError(f"{format_path(path)} cannot be changed in the text: {error}") from error


def _with_key(body: str, key: str, value: object) -> str:
    """Returns the text of one block's keys with another key after the last."""
    lines = body.split("\n")
    count = len(lines)
    while count and not lines[count - 1].strip():
        count -= 1
    rest = lines[count:] or [""]
    return "\n".join([*lines[:count], _key_line(key, value), *rest])


def _add_section(text: str, name: str, table: Mapping[str, object], sections: Sequence[str]) -> str:
    later = sections[sections.index(name) + 1 :] if name in sections else ()
    lines = text.split("\n")
    starts = [block.start for block in blocks(text) if block.path and block.path[0] in later]
    line = min(starts, default=len(lines))
    return _joined(lines[:line], table_lines(format_key(name), table), lines[line:])


def format_path(path: Path) -> str:
    """Formats a path in the notation of --set: settings.quads[2].material."""
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path).removeprefix(".")
