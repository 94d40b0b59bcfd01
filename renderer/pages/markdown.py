"""Converts untrusted Markdown to HTML for pages, or to blocks of text for the window.

The dialect is CommonMark with tables and without HTML, parsed by markdown-it.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from renderer.records import dataclass

MAX_CHARACTERS = 1 << 16  # characters of a text
MAX_NESTING = 12  # levels of lists and quotes


@dataclass(frozen=True)
class Block:
    """A block of text for the window. A table has `rows`, head first.

    `level` is the rank of a heading (1 for h1); else the number of lists around the block, its indentation.
    """

    kind: Literal["heading", "text", "item", "code", "table", "rule"]
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_NESTING}).enable("table")


def parse(text: str) -> list[Token]:
    """Parses a text of at most MAX_CHARACTERS into markdown-it's tokens."""
    assert len(text) <= MAX_CHARACTERS, len(text)
    return _parser().parse(text)


def sections(text: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Splits a text into the title (`# ...`), the introduction, and (heading, text) of each `## ...` section."""
    starts: list[tuple[str, int, int]] = []
    lines, title = text.split("\n"), ""
    tokens = parse(text)
    body = 0
    for opening, inline in zip(tokens, tokens[1:], strict=False):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            if opening.tag == "h1" and not title and not starts:
                title, body = plain_text(inline), opening.map[1]
            elif opening.tag == "h2":
                starts.append((plain_text(inline), opening.map[0], opening.map[1]))
    ends = [*(start for _, start, _ in starts[1:]), len(lines)]
    texts = [(name, "\n".join(lines[first:end]).strip()) for (name, _, first), end in zip(starts, ends, strict=False)]
    return title, "\n".join(lines[body : starts[0][1] if starts else len(lines)]).strip(), texts


def targets(text: str, kind: Literal["link", "image"]) -> list[str]:
    """Returns the targets of the links or images of a text."""
    name, attribute = ("link_open", "href") if kind == "link" else ("image", "src")
    inner = [child for token in parse(text) for child in (token.children or [])]
    return [str(token.attrGet(attribute) or "") for token in inner if token.type == name]


def to_html(text: str, link: Callable[[str], str], image: Callable[[str], str]) -> str:
    """Converts a text to HTML. link(target) and image(target) return the address to write, "" for none."""
    tokens = parse(text)
    for token in tokens:
        for child in token.children or []:
            if child.type == "link_open":
                child.attrs = {"href": address} if (address := link(str(child.attrGet("href") or ""))) else {}
            elif child.type == "image":
                child.attrSet("src", image(str(child.attrGet("src") or "")))
    written: str = _parser().renderer.render(tokens, _parser().options, {})
    return written.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")


def blocks(text: str) -> list[Block]:
    """Splits a text into blocks, without emphasis and links."""
    return list(_blocks(parse(text)))


def _blocks(tokens: list[Token]) -> Iterator[Block]:
    """Yields the blocks of a parsed text: headings, paragraphs, items of lists, tables, code."""
    rows: list[list[str]] = []  # rows of the table that is being read; empty outside of tables
    # Lists around the token; bullet or number of a list item before its first text is read; 1 in h1, 0 in no heading.
    depth, bullet, heading_rank = 0, "", 0
    for token in tokens:
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif token.type == "list_item_open":
            bullet = f"{token.info}{token.markup} " if token.info else "\N{BULLET} "
        elif token.type in ("heading_open", "heading_close"):
            heading_rank = int(token.tag[1]) if token.type == "heading_open" else 0
        elif token.type in ("fence", "code_block"):
            yield Block("code", token.content.rstrip("\n"), depth)
        elif token.type == "hr":
            yield Block("rule")
        elif token.type == "tr_open":
            rows.append([])
        elif token.type == "table_close":
            yield Block("table", rows=tuple(map(tuple, rows)))
            rows = []
        elif token.type == "inline" and rows:
            rows[-1].append(plain_text(token))
        elif token.type == "inline":
            kind: Literal["heading", "text", "item"] = "heading" if heading_rank else "item" if bullet else "text"
            yield Block(kind, bullet + plain_text(token), heading_rank or depth)
            bullet = ""


def plain_text(inline: Token) -> str:
    """Returns the text of an inline token without markup; an image becomes its description in brackets."""
    out = []
    for child in inline.children or []:
        if child.type in ("text", "code_inline"):
            out.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            out.append(" ")
        elif child.type == "image":
            out.append(f"[{plain_text(child)}]")
    return "".join(out)
