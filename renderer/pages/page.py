"""Builds self-contained HTML pages: the frame with its style sheet, embedded pictures, tables and contents.

Lessons and the bench report fill the page. The style fits light and dark screens, phones and paper.
"""

import base64
import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from renderer.formats.images import encode_jpeg, png_bytes
from renderer.pages.figures import SERIES
from renderer.paths import ASSETS
from renderer.system.files import read_text

DARK_SERIES = ("#5aa9ff", "#ff8f5a", "#7ccf80", "#d58bea", "#4dd0d9", "#f27bb5", "#c8a898", "#a3aef0")
MAX_PNG = 24_000  # bytes; a larger PNG is replaced by a JPEG if that is smaller
CSS = read_text(ASSETS / "page.css")  # with LIGHT and DARK in place of the colors of series


def _variables(colors: Sequence[str]) -> str:
    return " ".join(f"--series-{index}: {color};" for index, color in enumerate(colors))


def html_page(title: str, body: str, kind: str = "lesson") -> str:
    """Returns the HTML of a page around `body`, which is HTML; `kind` is its CSS class, "lesson" or "report".

    The page refers to no other file, and its content security policy forbids the browser to load any.
    """
    style = CSS.replace("LIGHT", _variables(SERIES)).replace("DARK", _variables(DARK_SERIES))
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title><style>{style}</style></head>\n'
        f'<body><main class="{kind}">\n{body}\n</main></body></html>\n'
    )


def picture(pixels: np.ndarray, alt: str, caption: str = "", over: str = "") -> str:
    """Returns a <figure> with (height, width, 3) uint8 sRGB pixels embedded as PNG, or as JPEG (see MAX_PNG).

    `over` is an <svg class="marks"> that lies over the picture.
    """
    data, kind = png_bytes(pixels), "png"
    if len(data) > MAX_PNG and len(smaller := encode_jpeg(pixels, 88)) < len(data):
        data, kind = smaller, "jpeg"
    height, width = pixels.shape[:2]
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    image = f'<img alt="{escape(alt)}" width="{width}" height="{height}" src="{source}">'
    image = f'<div class="marked">{image}{over}</div>' if over else image
    return f"<figure>{image}{below}</figure>"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Returns a <table> of texts; the first row is the head."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[1:])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def data_behind(rows: Sequence[Sequence[str]], words: str = "The numbers") -> str:
    """Returns a collapsed table that opens on a click on `words`."""
    return f'<details class="data"><summary>{escape(words)}</summary>{table(rows)}</details>'


def contents(entries: Iterable[tuple[str, str]], ordered: bool = True) -> str:
    """Returns a list of links to headings of the page; `entries` are (id, text)."""
    kind = "ol" if ordered else "ul"
    items = "".join(f'<li><a href="#{escape(name)}">{escape(words)}</a></li>' for name, words in entries)
    return f'<nav aria-label="Contents"><{kind}>{items}</{kind}></nav>'


def format_seconds(seconds: float) -> str:
    """Returns a duration as text, such as 0.25 s or 40 s."""
    if not math.isfinite(seconds):
        return "unknown"
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
