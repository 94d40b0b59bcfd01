"""Where panels stand: a tree of rows and columns whose leaves are the panels' numbers. Immutable; changes return trees.

A tree's panels are 0 to n - 1, each once. Lengths are shared out in parts of 1, so that a tree knows no pixels.
"""

import math
from dataclasses import dataclass, replace
from itertools import accumulate, groupby

from renderer.scene.panel_grid import grid

SIDES = ("left", "right", "above", "below")
LEAST = 0.05  # of a length, that a part keeps
DEEPEST = 32  # levels of a tree that is read


@dataclass(frozen=True)
class Split:
    """Places beside each other (`across`) or one below the other, and their shares of the length."""

    across: bool
    parts: tuple["Split | int", ...]
    shares: tuple[float, ...]


Place = Split | int
Rectangle = tuple[int, int, int, int]


def in_grid(count: int, size: tuple[int, int], columns: int) -> Place:
    """Rows of panels, as renderer.view.grid puts them."""
    cells = enumerate(grid(count, size, columns))
    rows = [[index for index, _ in row] for _, row in groupby(cells, key=lambda cell: cell[1][1])]
    return _joined(False, [(_joined(True, [(index, 1.0) for index in row]), 1.0) for row in rows])


def panels(place: Place) -> list[int]:
    """The numbers of the panels of a tree."""
    return [place] if isinstance(place, int) else [index for part in place.parts for index in panels(part)]


def rectangles(place: Place, rectangle: Rectangle, gap: int) -> dict[int, Rectangle]:
    """The rectangle of every panel, at least a pixel wide and high."""
    if isinstance(place, int):
        return {place: rectangle}
    found = {}
    for part, inner in zip(place.parts, _cut(place, rectangle, gap), strict=True):
        found |= rectangles(part, inner, gap)
    return found


@dataclass(frozen=True)
class Sash:
    """The gap behind part `number` of the split that `path` leads to; `length` is the split's, in pixels."""

    path: tuple[int, ...]
    number: int
    across: bool
    rectangle: Rectangle
    length: int


def sashes(place: Place, rectangle: Rectangle, gap: int, path: tuple[int, ...] = ()) -> list[Sash]:
    """The gaps that can be dragged."""
    if isinstance(place, int):
        return []
    x, y, width, height = rectangle
    inner, found = _cut(place, rectangle, gap), []
    for number, (part, (left, top, w, h)) in enumerate(zip(place.parts, inner, strict=True)):
        found += sashes(part, (left, top, w, h), gap, (*path, number))
        if number + 1 < len(place.parts):
            at = (left + w, y, gap, height) if place.across else (x, top + h, width, gap)
            found.append(Sash(path, number, place.across, at, width if place.across else height))
    return found


def moved_sash(place: Place, sash: Sash, by: float) -> Place:
    """The tree with the gap moved by a part of the split's length; every part keeps at least LEAST of it."""
    if sash.path:
        parts = list(place.parts)
        parts[sash.path[0]] = moved_sash(parts[sash.path[0]], replace(sash, path=sash.path[1:]), by)
        return replace(place, parts=tuple(parts))
    shares, k = list(place.shares), sash.number
    by = min(max(by, LEAST - shares[k]), shares[k + 1] - LEAST)
    if shares[k] + shares[k + 1] > 2 * LEAST:
        shares[k], shares[k + 1] = shares[k] + by, shares[k + 1] - by
    return replace(place, shares=tuple(shares))


def swapped(place: Place, one: int, other: int) -> Place:
    """The tree with two panels in each other's place."""
    return _renamed(place, {one: other, other: one})


def put(place: Place, index: int, target: int, side: str) -> Place:
    """The tree with panel `index`, which may be in it or not, at a side of the `target`, whose place they share."""
    if index == target:
        return place
    rest = _without(place, index) if index in panels(place) else place
    return _beside(rest, index, target, side)


def docked(place: Place, index: int, side: str) -> Place:
    """The tree with the panel along a whole side of the window."""
    rest = _without(place, index)
    return place if rest is None else _pair(rest, index, side, 1 / (1 + len(panels(rest)) ** 0.5))


def closed(place: Place, index: int) -> Place | None:
    """The tree without the panel, those behind it renumbered; None where it was the last one."""
    rest = _without(place, index)
    return None if rest is None else _renamed(rest, {k: k - 1 for k in panels(rest) if k > index})


def nearest(cells: dict[int, Rectangle], index: int, side: str) -> int | None:
    """The panel whose middle is nearest on a side of that of panel `index`; None where there is none."""
    axis, sign = {"left": (0, -1), "right": (0, 1), "above": (1, -1), "below": (1, 1)}[side]
    middles = {k: (x + w / 2, y + h / 2) for k, (x, y, w, h) in cells.items()}
    here = middles[index]
    there = [k for k, middle in middles.items() if sign * (middle[axis] - here[axis]) > 1]
    return min(there, key=lambda k: math.dist(middles[k], here), default=None)


def side_of(rectangle: Rectangle, x: float, y: float) -> str:
    """The side of a rectangle that a point in it is near; "middle" for what is far from all of them."""
    left, top, width, height = rectangle
    across, down = (x - left) / width, (y - top) / height
    distances = dict(zip(SIDES, (across, 1 - across, down, 1 - down), strict=True))
    side = min(SIDES, key=distances.__getitem__)
    return side if distances[side] < 0.3 else "middle"


def part_of(rectangle: Rectangle, side: str) -> Rectangle:
    """What a panel that is put at a side of the rectangle takes of it: one half, or all for the middle."""
    x, y, width, height = rectangle
    w, h = (width // 2, height) if side in ("left", "right") else (width, height // 2)
    if side == "middle":
        return rectangle
    return (x + (width - w if side == "right" else 0), y + (height - h if side == "below" else 0), w, h)


def table_of(place: Place):
    """The tree as numbers, lists and tables."""
    if isinstance(place, int):
        return place
    return {"across": place.across, "parts": [table_of(part) for part in place.parts], "shares": list(place.shares)}


def place_of(table, count: int) -> Place:
    """The tree of such a table for so many panels; ValueError says what is wrong with it."""
    place = _read(table, DEEPEST)
    if sorted(panels(place)) != list(range(count)):
        raise ValueError(f"its panels are {sorted(panels(place))[:20]}; they must be 0 to {count - 1}, each once")
    return place


def _read(table, levels: int) -> Place:
    if type(table) is int:
        return table
    if not (isinstance(table, dict) and levels and type(table.get("across")) is bool):
        raise ValueError("a place must be a panel's number, or a table with across, parts and shares")
    parts, shares = table.get("parts"), table.get("shares")
    if not (isinstance(parts, list) and isinstance(shares, list) and 2 <= len(parts) == len(shares) <= 64):
        raise ValueError("parts and shares must be lists of one length, of at least 2")
    if not all(type(share) in (int, float) and 1e-6 <= share <= 1 for share in shares):
        raise ValueError("shares must be numbers above 0 and up to 1")
    return _joined(
        table["across"], [(_read(part, levels - 1), share) for part, share in zip(parts, shares, strict=True)]
    )


def _joined(across: bool, parts: list[tuple[Place, float]]) -> Place:
    """A split of places and their shares; one place is itself, and splits of the same direction become one."""
    if len(parts) == 1:
        return parts[0][0]
    flat = []
    for part, share in parts:
        inner = isinstance(part, Split) and part.across == across
        flat += [(p, s * share) for p, s in zip(part.parts, part.shares, strict=True)] if inner else [(part, share)]
    whole = sum(share for _, share in flat)
    return Split(across, tuple(part for part, _ in flat), tuple(share / whole for _, share in flat))


def _cut(split: Split, rectangle: Rectangle, gap: int) -> list[Rectangle]:
    x, y, width, height = rectangle
    length = (width if split.across else height) + gap
    cuts = [math.floor(length * end + 1e-6) for end in accumulate(split.shares, initial=0.0)]
    spans = [(a, max(1, b - gap - a)) for a, b in zip(cuts, cuts[1:], strict=False)]
    return [(x + a, y, n, height) if split.across else (x, y + a, width, n) for a, n in spans]


def _renamed(place: Place, names: dict[int, int]) -> Place:
    if isinstance(place, int):
        return names.get(place, place)
    return replace(place, parts=tuple(_renamed(part, names) for part in place.parts))


def _without(place: Place, index: int) -> Place | None:
    if isinstance(place, int):
        return None if place == index else place
    left = [(_without(part, index), share) for part, share in zip(place.parts, place.shares, strict=True)]
    left = [(part, share) for part, share in left if part is not None]
    return _joined(place.across, left) if left else None


def _beside(place: Place, index: int, target: int, side: str) -> Place:
    if isinstance(place, int):
        return _pair(place, index, side, 0.5) if place == target else place
    parts = [(_beside(part, index, target, side), share) for part, share in zip(place.parts, place.shares, strict=True)]
    return _joined(place.across, parts)


def _pair(place: Place, index: int, side: str, share: float) -> Place:
    """The place and a panel at a side of it, which takes `share` of both."""
    parts = [(place, 1 - share), (index, share)]
    return _joined(side in ("left", "right"), parts if side in ("right", "below") else parts[::-1])
