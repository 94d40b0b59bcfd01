"""Builds self-contained HTML pages: the frame with its style sheet, embedded pictures, tables and contents.

Lessons and the bench report fill the page. The style fits light and dark screens, phones and paper.
"""

import base64
import math
from collections.abc import Iterable, Sequence

import numpy as np

from renderer.formats.images import encode_jpeg, png_bytes
from renderer.pages.figures import SERIES
from renderer.pages.markdown import escape

DARK_SERIES = ("#5aa9ff", "#ff8f5a", "#7ccf80", "#d58bea", "#4dd0d9", "#f27bb5", "#c8a898", "#a3aef0")
MAX_PNG = 24_000  # bytes; a larger PNG is replaced by a JPEG if that is smaller
CSS = """
:root { --ink: #1b2027; --soft: #5a6472; --line: #d9dee5; --paper: #fff; --panel: #f4f6f9; --accent: #0b5cad; LIGHT }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #a0a9b6; --line: #39424e; --paper: #14181d;
  --panel: #1d232b; --accent: #7db8ff; DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 76rem; padding: 1.2rem; color: var(--ink); background: var(--paper);
  font: 17px/1.6 system-ui, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word }
main { max-width: 44rem; margin: 0 auto } main.report { max-width: none }
h1 { font-size: 2rem; line-height: 1.2; margin: 1.2rem 0 .4rem } h2 { margin: 2.6rem 0 .6rem; line-height: 1.25 }
h3 { margin: 1.6rem 0 .4rem; font-size: 1.05rem } h2 .number { color: var(--soft); font-weight: 400 }
a { color: var(--accent) } p, li { margin: .6rem 0 }
.soft, figcaption, summary { color: var(--soft); font-size: .88rem }
figure { margin: 1.2rem 0; break-inside: avoid } figure img { width: 100%; height: auto; display: block;
  border-radius: 6px; background: var(--panel) } figcaption { margin-top: .4rem; line-height: 1.45 }
svg.figure { width: 100%; height: auto; display: block; max-width: 37rem; margin: 0 auto;
  font-family: "DejaVu Sans", Verdana, system-ui, sans-serif }
.strip { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 13.5rem), 1fr)); gap: .8rem }
.strip.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 18rem), 1fr)) } .strip figure { margin: 0 }
.marked { position: relative } svg.marks { position: absolute; inset: 0; width: 100%; height: 100%; font-size: 11px }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: .9rem 1.1rem;
  margin: 1.2rem 0; break-inside: avoid } .card h3 { margin-top: 0 }
.wide { overflow-x: auto; margin: 1rem 0 } table { border-collapse: collapse; font-size: .88rem;
  font-variant-numeric: tabular-nums } td, th { padding: .25rem .8rem .25rem 0; text-align: right;
  border-bottom: 1px solid var(--line); white-space: nowrap } td:first-child, th:first-child { text-align: left }
th { color: var(--soft); font-weight: 600 }
code, pre { font: .86em/1.5 ui-monospace, SFMono-Regular, Consolas, monospace } code { background: var(--panel);
  padding: .1em .3em; border-radius: 4px } pre { background: var(--panel); border: 1px solid var(--line);
  border-radius: 8px; padding: .8rem 1rem; overflow-x: auto } pre code { background: none; padding: 0 }
details { margin: .7rem 0 } summary { cursor: pointer } ol.answers { list-style: upper-alpha; padding-left: 1.6rem }
nav ol, nav ul { padding-left: 1.4rem; columns: 2; column-gap: 2rem } nav li { margin: .15rem 0; break-inside: avoid }
.questions { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem 1.6rem }
.headline { font-size: 1.05rem; border-left: 4px solid var(--accent); padding-left: .9rem }
@media (max-width: 34rem) { body { padding: .8rem; font-size: 16px } h1 { font-size: 1.6rem } nav ol, nav ul
  { columns: 1 } .card { padding: .7rem .8rem } }
@media print { :root { --ink: #000; --soft: #444; --line: #bbb; --paper: #fff; --panel: #fff; --accent: #000; LIGHT }
  body { max-width: none; font-size: 10.5pt; padding: 0 } h2 { break-after: avoid } details { break-inside: avoid }
  details.answer::details-content, details.data::details-content { content-visibility: visible; display: block }
  pre { white-space: pre-wrap }
  svg.figure { max-width: 12cm } figure img { max-height: 16cm; width: auto; max-width: 100% } }
"""


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
