"""Edits of a TOML text that leave everything else as it is: comments, order, spelling of numbers, blank lines.

A text is cut at its headers into blocks of whole lines. Items of lists are added and removed as blocks; a value is
replaced inside its block, which tomlkit parses alone. A path names a value: ("settings", "quads", 2, "material").
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from renderer.files import parse_toml

Path = tuple[str | int, ...]
MAX_LINE = 120  # of a list or a table in one line; a longer one takes a line for each item
_TOKENS = re.compile(r'''"""|\'\'\'|"(?:[^"\\]|\\.)*"|'[^']*'|\#.*|[\[\]{}]''')
_HEADER = re.compile(r"\s*\[")
_COMMENT_AFTER = re.compile(r"""^((?:[^#"']|"(?:[^"\\]|\\.)*"|'[^']*')*)(#.*)?$""")


class Block(NamedTuple):
    """A header with the lines below it, or the lines above the first header.

    Lines `start` to `end` are the block's; those before `header` are comments that introduce it.
    """

    path: Path
    is_item: bool  # of an array of tables
    start: int
    header: int  # the line of the header; -1 for the lines above the first
    end: int


class TextError(ValueError):
    """A text that cannot be edited in this way; the sentence says why."""


def format_value(value: Any, width: int = MAX_LINE) -> str:
    """A value as TOML writes it: numbers, texts, lists, and tables in one line; `width` is what is left of the line."""
    line = _inline(value)
    if len(line) <= width or not isinstance(value, (list, tuple)) or not value:
        return line
    return "[\n" + "".join(f"    {_inline(item)},\n" for item in value) + "]"


def _inline(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        inner = ", ".join(f"{format_key(k)} = {_inline(v)}" for k, v in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return repr(value)


def format_key(key: str) -> str:
    """A key as TOML writes it, quoted where it must be."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _inline(key)


def table_lines(name: str, table: Mapping[str, Any], is_item: bool = False, comment: str = "") -> list[str]:
    """The lines of a table with its header; tables inside are in one line, or have a header if that is too long."""
    header = f"[[{name}]]" if is_item else f"[{name}]"
    long = [k for k, v in table.items() if isinstance(v, Mapping) and v and len(_key_line(k, v)) > MAX_LINE]
    lines = [f"{header} # {comment}" if comment else header]
    lines += _key_lines({key: value for key, value in table.items() if key not in long})
    for key in long:
        lines += table_lines(f"{name}.{format_key(key)}", table[key])
    return lines


def _key_lines(table: Mapping[str, Any]) -> list[str]:
    return [line for k, v in table.items() for line in _key_line(k, v).split("\n")]


def _key_line(key: str, value: Any) -> str:
    start = f"{format_key(key)} = "
    return start + format_value(value, MAX_LINE - len(start))


def blocks(text: str) -> list[Block]:
    """The blocks of a valid TOML text, in order; together they are all of its lines."""
    lines = text.split("\n")
    headers = _header_lines(lines)
    starts = [_first_comment(lines, line, after) for line, after in zip(headers, [-1, *headers], strict=False)]
    ends = [*starts[1:], len(lines)] if starts else []
    out, counts = [Block((), False, 0, -1, starts[0] if starts else len(lines))], dict[tuple[str, ...], int]()
    for header, start, end in zip(headers, starts, ends, strict=True):
        names, is_item = _names(lines[header])
        if is_item:
            counts[names] = counts.get(names, -1) + 1
            for inner in [other for other in counts if len(other) > len(names) and other[: len(names)] == names]:
                del counts[inner]
        path: Path = ()
        for length in range(1, len(names) + 1):
            path += (names[length - 1],)
            if names[:length] in counts:
                path += (counts[names[:length]],)
        out.append(Block(path, is_item, start, header, end))
    return out


def _header_lines(lines: Sequence[str]) -> list[int]:
    """The numbers of the lines that are headers: those that begin with a bracket outside of strings and lists."""
    out, depth, quotes = [], 0, ""
    for number, line in enumerate(lines):
        if not quotes and depth == 0 and _HEADER.match(line):
            out.append(number)
            continue
        at = 0
        while at < len(line):
            if quotes:
                at, quotes = _end_of_string(line, at, quotes)
                continue
            token = _TOKENS.search(line, at)
            if token is None:
                break
            found, at = token.group(), token.end()
            if found in ('"""', "'''"):
                quotes = found
            elif found in "[{":
                depth += 1
            elif found in "]}":
                depth -= 1
    return out


def _end_of_string(line: str, at: int, quotes: str) -> tuple[int, str]:
    """The column after a multi-line string and no quotes, or the line's end and the quotes that stay open."""
    while at < len(line):
        if line[at] == "\\" and quotes == '"""':
            at += 2
        elif line.startswith(quotes, at):
            at += 3
            while at < len(line) and line[at] == quotes[0]:  # up to two quotes may precede the end
                at += 1
            return at, ""
        else:
            at += 1
    return at, quotes


def _first_comment(lines: Sequence[str], header: int, after: int) -> int:
    """The first of the comment lines directly above a header, below line `after`."""
    first = header
    while first - 1 > after and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first if first == 0 or not lines[first - 1].strip() or first == after + 1 else header


def _names(header: str) -> tuple[tuple[str, ...], bool]:
    """The keys of a header, and whether it begins an item of an array of tables."""
    parsed: Any = parse_toml(header)
    names: list[str] = []
    while isinstance(parsed, dict) and parsed:
        name, parsed = next(iter(parsed.items()))
        names.append(name)
        if isinstance(parsed, list):
            return tuple(names), True
    return tuple(names), False


def _joined(before: list[str], new: list[str], after: list[str]) -> str:
    """Lines with new ones between them that stand alone: a blank line before and after."""
    while before and not before[-1].strip():
        before = before[:-1]
    while after and not after[0].strip():
        after = after[1:]
    if not new:
        return "\n".join([*before, *([""] if before else []), *after])
    new = ([""] if before else []) + new
    return "\n".join([*before, *new, *(["", *after] if after else [""])])


def items_of(text: str, path: Path) -> list[Block] | None:
    """The blocks of an array of tables; None where the text has the list in another form, or not at all."""
    found = [block for block in blocks(text) if block.is_item and block.path[:-1] == path]
    return found or None


def comments_of(text: str, path: Path) -> list[str]:
    """The comment beside each header of an array of tables; [] where the list has another form."""
    lines = text.split("\n")
    return [_split_comment(lines[block.header])[1] for block in items_of(text, path) or []]


def _split_comment(header: str) -> tuple[str, str]:
    match = _COMMENT_AFTER.match(header)
    code, comment = match.groups() if match else (header, None)
    return code.rstrip(), (comment or "").removeprefix("#").strip()


def set_comment(text: str, path: Path, index: int, comment: str) -> str:
    """The text with this comment, one line, beside the header of an item; an empty one removes it."""
    found = items_of(text, path)
    if found is None:
        raise TextError(f"{format_path(path)} is one list in the file, whose items have no place for a name")
    lines = text.split("\n")
    header = found[index].header
    comment = " ".join("".join(c if c.isprintable() else " " for c in comment).split())
    code = _split_comment(lines[header])[0]
    lines[header] = f"{code} # {comment}" if comment else code
    return "\n".join(lines)


def insert_item(
    text: str, path: Path, index: int, table: Mapping[str, Any], comment: str = "", later: Sequence[str] = ()
) -> str:
    """The text with a table inserted as item `index` of the list at `path`.

    The first item of a new list goes before the first list of its table that is named in `later`.
    """
    found = items_of(text, path)
    if found is None and (inline := _inline_list(text, path)) is not None:
        return replace_value(text, path, [*inline[:index], dict(table), *inline[index:]])
    name = ".".join(format_key(str(key)) for key in path)
    if found is not None:
        at = _end_of_item(text, found, index - 1) if index > 0 else found[0].start
    else:
        at = _place_of_list(text, path, later)
    lines = text.split("\n")
    return _joined(lines[:at], table_lines(name, table, True, comment), lines[at:])


def _end_of_item(text: str, found: list[Block], index: int) -> int:
    """The line after an item and the tables inside of it."""
    inside = [block.end for block in blocks(text) if block.path[: len(found[index].path)] == found[index].path]
    return max(inside)


def _place_of_list(text: str, path: Path, later: Sequence[str]) -> int:
    outer, known = path[:-1], blocks(text)
    for block in known:
        if block.is_item and block.path[: len(outer)] == outer and block.path[len(outer)] in later:
            return block.start
    ends = [block.end for block in known if outer and block.path[: len(outer)] == outer]
    return max(ends, default=known[-1].end)


def remove_item(text: str, path: Path, index: int) -> str:
    """The text without an item of the list at `path`, and without the comments that introduce it."""
    found = items_of(text, path)
    if found is None:
        inline = _inline_list(text, path) or []
        return replace_value(text, path, [*inline[:index], *inline[index + 1 :]])
    lines, end = text.split("\n"), _end_of_item(text, found, index)
    before, after = lines[: found[index].start], lines[end:]
    return _joined(before, [], after) if not before else "\n".join([*before, *after]) if after else _ended(before)


def _ended(lines: list[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _inline_list(text: str, path: Path) -> list[Any] | None:
    """The plain items of a list that is the value of a key; None if there is no such key."""
    found: Any = parse_toml(text)
    for name in path:
        if not (isinstance(found, dict) and name in found or isinstance(found, list) and isinstance(name, int)):
            return None
        found = found[name]  # type: ignore[index]  # checked above
    return found if isinstance(found, list) else None


def replace_value(text: str, path: Path, value: Any, sections: Sequence[str] = ()) -> str:
    """The text with the value at `path` replaced, or added behind the keys that are there.

    A table of the file that is missing is added in the order of `sections`.
    """
    lines = text.split("\n")
    for block in blocks(text) if isinstance(value, Mapping) else ():
        if block.path == path and not block.is_item:  # a table with a header
            return _joined([*lines[: block.header + 1], *_key_lines(value)], [], lines[block.end :])
    block = _block_of(text, path)
    rest = path[len(block.path) :]
    if not block.path and len(rest) > 1 and not _has_key(_body(lines, block), rest[0]):
        return _add_section(text, str(rest[0]), _nested(rest[1:], value), sections)
    body = _replaced(_body(lines, block), rest, value)
    return "\n".join([*lines[: block.header + 1], *body.split("\n"), *lines[block.end :]])


def remove_value(text: str, path: Path) -> str:
    """The text without the value at `path`, which is there; a table with a header loses all of its lines."""
    lines = text.split("\n")
    inside = [block for block in blocks(text) if block.path and block.path[: len(path)] == path]
    if inside:
        for block in reversed(inside):
            del lines[block.start : block.end]
        return _ended(lines)
    block = _block_of(text, path)
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


def _block_of(text: str, path: Path) -> Block:
    """The innermost block that holds the value at a path."""
    known = [block for block in blocks(text) if block.path == path[: len(block.path)] and len(block.path) < len(path)]
    return max(known, key=lambda block: len(block.path))


def _body(lines: Sequence[str], block: Block) -> str:
    return "\n".join(lines[block.header + 1 : block.end])


def _has_key(body: str, key: Any) -> bool:
    return key in parse_toml(body)


def _nested(path: Path, value: Any) -> dict[str, Any]:
    name = str(path[0])
    return {name: value if len(path) == 1 else _nested(path[1:], value)}


def _replaced(body: str, path: Path, value: Any) -> str:
    """The keys of one block with the value at `path` replaced or added."""
    try:
        document = tomlkit.parse(body)
        table: Any = document
        for depth, name in enumerate(path[:-1]):
            if isinstance(name, str) and name not in table:
                return _replaced(body, path[: depth + 1], _nested(path[depth + 1 :], value))
            table = table[name]
        if len(path) == 1 and path[0] not in table:
            return _with_key(body, str(path[0]), value)
        table[path[-1]] = tomlkit.value(format_value(value, MAX_LINE - len(str(path[-1])) - 3))
        return document.as_string()
    except (TOMLKitError, KeyError, IndexError, TypeError) as error:
        raise TextError(f"{format_path(path)} cannot be changed in the text: {error}") from error


def _with_key(body: str, key: str, value: Any) -> str:
    """The keys of one block with one more behind the last."""
    lines = body.split("\n")
    count = len(lines)
    while count and not lines[count - 1].strip():
        count -= 1
    rest = lines[count:] or [""]
    return "\n".join([*lines[:count], _key_line(key, value), *rest])


def _add_section(text: str, name: str, table: dict[str, Any], sections: Sequence[str]) -> str:
    later = sections[sections.index(name) + 1 :] if name in sections else ()
    starts = [block.start for block in blocks(text) if block.path and block.path[0] in later]
    lines = text.split("\n")
    at = min(starts, default=len(lines))
    return _joined(lines[:at], table_lines(format_key(name), table), lines[at:])


def format_path(path: Path) -> str:
    """A path as --set takes it: settings.quads[2].material."""
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path).removeprefix(".")
