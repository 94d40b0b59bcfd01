"""Finds the <flame> elements of a .flame file for read.py, by an XML parser or, if the file is no XML, a tolerant one.

Flame editors write attribute names with spaces, # or brackets, unescaped & in names, and several roots; such files are
read all the same. The tolerant parser visits every character a bounded number of times.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError

from renderer.errors import InputError
from renderer.formats.xml import parse_xml

FLAME_TAGS = ("flame", "jwf-flame")
MAX_DEPTH = 100
MAX_FLAMES = 10_000  # flames of a file: reading one takes a third of a millisecond
NAME = re.compile(r"[A-Za-z_][\w:.-]*")
TAG_END = re.compile(r"""(?:[^>"']|"[^"]*"|'[^']*')*+>""")
ATTRIBUTE = re.compile(r"""([^=]*)=\s*("[^"]*"|'[^']*')""")  # an attribute's name is the text after the last value
REFERENCE = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9A-Fa-f]{1,6}));")
ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
SKIPPED = (("<!--", "-->"), ("<?", "?>"), ("<!", ">"))


class FlameElement(NamedTuple):
    """A <flame> element; `error`: a sentence if the element cannot be used, else empty.

    `span`: where the tolerant parser found it in the text.
    """

    element: Element
    error: str = ""
    span: tuple[int, int] = (0, 0)


def flame_spans(text: str) -> list[tuple[int, int]]:
    """Begin and end of each element of flame_elements() in the text, from its first `<` to behind its last `>`."""
    return [flame.span for flame in _tolerant_elements(text) if not flame.error]


def flame_elements(text: str | bytes, path: object) -> list[FlameElement]:
    """The outermost <flame> elements in document order, except inside <edit>, which holds earlier versions.

    Raises InputError if there is none.
    """
    try:
        root = parse_xml(text, path)
    except InputError as error:
        if not isinstance(error.__cause__, ParseError):
            raise
        decoded = text if isinstance(text, str) else text.decode("utf-8", "replace")
        flames = list(_tolerant_elements(decoded, f"the first error of the XML: {error.__cause__}"))
        if not flames:
            raise
        return _counted(flames, path)
    flames = [FlameElement(element) for element in _flames_below(root)]
    if not flames:
        raise InputError(f"{path}: has no <flame> element; its root is <{root.tag}>")
    return _counted(flames, path)


def _counted(flames: list[FlameElement], path: object) -> list[FlameElement]:
    if len(flames) > MAX_FLAMES:
        raise InputError(f"{path}: has {len(flames)} flames; it must be at most {MAX_FLAMES}")
    return flames


def _flames_below(root: Element) -> Iterator[Element]:
    """Yields the outermost <flame> elements in document order. No recursion: files may be nested very deeply."""
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag in FLAME_TAGS:
            yield element
        elif element.tag != "edit":
            stack.extend(reversed(element))


def _tolerant_elements(text: str, fault: str = "") -> Iterator[FlameElement]:
    """Yields the <flame> elements of a text that is not XML; in well-formed documents the same as the XML parser.

    `fault`: the XML parser's error, which the message about an element that is not closed quotes.
    """
    open_elements: list[Element] = []
    begins: list[int] = []  # where the tag of each open element begins in the text
    for closing, name, attributes, empty, tail, (begin, end) in _tags(text):
        if closing:
            if name not in [element.tag for element in open_elements]:
                continue
            while open_elements[-1].tag != name:
                open_elements.pop()
            done, began = open_elements.pop(), begins[len(open_elements)]
            del begins[len(open_elements) :]
            if done.tag in FLAME_TAGS and _is_outermost(open_elements):
                yield FlameElement(done, "", (began, end))
            continue
        element = Element(name, attributes)
        element.text = tail
        if open_elements:
            open_elements[-1].append(element)
        if empty:
            if name in FLAME_TAGS and _is_outermost(open_elements):
                yield FlameElement(element, "", (begin, end))
        elif len(open_elements) < MAX_DEPTH:
            open_elements.append(element)
            begins.append(begin)
    for depth, element in enumerate(open_elements):
        if element.tag in FLAME_TAGS and _is_outermost(open_elements[:depth]):
            yield FlameElement(element, f"its element is not closed; {fault}")


def _is_outermost(ancestors: list[Element]) -> bool:
    return not any(ancestor.tag in (*FLAME_TAGS, "edit") for ancestor in ancestors)


def _tags(text: str) -> Iterator[tuple[bool, str, dict[str, str], bool, str, tuple[int, int]]]:
    """Yields for each tag: True if it is an end tag, name, attributes, True if it is <name/>, text after it, span."""
    position = text.find("<")
    while position >= 0:
        skipped = next((marks for marks in SKIPPED if text.startswith(marks[0], position)), None)
        if skipped:
            end = text.find(skipped[1], position + len(skipped[0]))
            position = text.find("<", end) if end >= 0 else -1
            continue
        closing = text.startswith("/", position + 1)
        name = NAME.match(text, position + 1 + closing)
        if name is None:  # a < that begins no tag
            position = text.find("<", position + 1)
            continue
        tag = TAG_END.match(text, name.end())
        if tag is None:  # no > follows outside of quotes: a search from each further < would take quadratic time
            return
        end = tag.end() - 1
        body = text[name.end() : end]
        following = text.find("<", end)
        tail = text[end + 1 : following if following >= 0 else len(text)]
        yield closing, name[0], _attributes(body), body.endswith("/"), tail, (position, end + 1)
        position = following


def _attributes(body: str) -> dict[str, str]:
    """The attributes of a tag up to the first that has no quotes, each name once."""
    attributes: dict[str, str] = {}
    position = 0
    while match := ATTRIBUTE.match(body, position):
        if name := " ".join(match[1].split()):
            attributes.setdefault(name, REFERENCE.sub(_character, match[2][1:-1]))
        position = match.end()
    return attributes


def _character(match: re.Match[str]) -> str:
    """The character of an entity or a character reference; an invalid reference stays as it is written."""
    if match[1]:
        return ENTITIES[match[1]]
    code = int(match[2]) if match[2] else int(match[3], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]
