"""Panel layouts: trees of rows and columns whose leaves are panel indices. Frozen: each change returns a new tree.

The leaves of a tree are 0 to n - 1, each once. Sizes are ratios of the parent's length, so a tree holds no pixels.

OpenPanels lays panels out with it; dragging of panels and splitters (app/docking.py) changes it.

Dear ImGui's docking (tried with 1.93's) is not used, because users would lose features. A picture restarts when its
panel's size changes, and there a drag undocks the panel at once: its neighbors grow under the pointer before anything
is dropped, and Escape, or a drop beside a target, leaves it floating over the others. A drop in the middle stacks tabs
in place of swapping. A new window size goes to the central node: four panels of 499 x 319 in a window of 1000 x 640
become 699 x 319 twice, 499 x 579 and 899 x 579 at 1400 x 900. Sessions would hold its ini text, which cannot be
checked, and swapping, docking along a side and the grid need the unstable `imgui.internal`.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate, groupby
from operator import itemgetter

from renderer.records import dataclass, replace
from renderer.scene.panel_grid import grid
from renderer.window.controls.theme import Rect

SIDES = ("left", "right", "above", "below")
MIN_RATIO = 0.05  # fraction of a split's length that each child keeps when a splitter is dragged
MAX_DEPTH = 32  # levels of a tree in a session file
DROP_MARGIN = 0.3  # fraction of a panel's width or height: a drop nearer to a side docks there


@dataclass(frozen=True)
class Split:
    """A row (`horizontal`) or a column of children, and the fraction of its length that each takes; their sum is 1."""

    horizontal: bool
    children: tuple["Split | int", ...]
    ratios: tuple[float, ...]

    def pairs(self) -> list[tuple["LayoutNode", float]]:
        """The children with their ratios."""
        return list(zip(self.children, self.ratios, strict=True))


LayoutNode = Split | int


@lru_cache(64)
def grid_layout(count: int, size: tuple[int, int], columns: int) -> LayoutNode:
    """Rows of panels, as renderer.scene.panel_grid.grid arranges pictures of that size; 0 columns are automatic."""
    tops = enumerate(y for _, y, _, _ in grid(count, size, columns))
    return rows_layout([[index for index, _ in row] for _, row in groupby(tops, key=itemgetter(1))])


def rows_layout(rows: list[list[int]]) -> LayoutNode:
    """Rows of panels, equally high; the panels of a row are equally wide."""
    return _join(False, [(_join(True, [(index, 1.0) for index in row]), 1.0) for row in rows])


def panel_indices(node: LayoutNode) -> list[int]:
    """The panels of a tree, depth first."""
    return [node] if isinstance(node, int) else [index for child in node.children for index in panel_indices(child)]


@lru_cache(64)
def rectangles(node: LayoutNode, rect: Rect, gap: int) -> Mapping[int, Rect]:
    """The rectangle of each panel, at least 1 x 1, with `gap` units between neighbors."""
    if isinstance(node, int):
        return {node: rect}
    inner = zip(node.children, _split_rectangle(node, rect, gap), strict=True)
    return {panel: r for child, part in inner for panel, r in rectangles(child, part, gap).items()}


@dataclass(frozen=True)
class Splitter:
    """The gap after child `number` of the split at `path` (child numbers from the root) of `length` units."""

    path: tuple[int, ...]
    number: int
    horizontal: bool
    rectangle: Rect
    length: int


def splitters(node: LayoutNode, rect: Rect, gap: int, path: tuple[int, ...] = ()) -> list[Splitter]:
    """The gaps between the panels of a tree."""
    if isinstance(node, int):
        return []
    x, y, width, height = rect
    out = []
    for number, (left, top, w, h) in enumerate(inner := _split_rectangle(node, rect, gap)):
        out += splitters(node.children[number], (left, top, w, h), gap, (*path, number))
        if number + 1 < len(inner):
            between = (left + w, y, gap, height) if node.horizontal else (x, top + h, width, gap)
            out.append(Splitter(path, number, node.horizontal, between, width if node.horizontal else height))
    return out


def move_splitter(node: LayoutNode, splitter: Splitter, by: float) -> LayoutNode:
    """Moves a splitter by a fraction of its split's length; each neighbor keeps at least MIN_RATIO."""
    assert isinstance(node, Split)
    if splitter.path:
        first, *rest = splitter.path
        children = list(node.children)
        children[first] = move_splitter(children[first], replace(splitter, path=tuple(rest)), by)
        return replace(node, children=tuple(children))
    ratios, k = list(node.ratios), splitter.number
    by = min(max(by, MIN_RATIO - ratios[k]), ratios[k + 1] - MIN_RATIO)
    if ratios[k] + ratios[k + 1] > 2 * MIN_RATIO:
        ratios[k], ratios[k + 1] = ratios[k] + by, ratios[k + 1] - by
    return replace(node, ratios=tuple(ratios))


def swap(node: LayoutNode, first: int, second: int) -> LayoutNode:
    """Exchanges two panels."""
    swapped = _replace_panels(node, lambda index: {first: second, second: first}.get(index, index))
    assert swapped is not None
    return swapped


def insert(node: LayoutNode, index: int, target: int, side: str) -> LayoutNode:
    """Puts panel `index`, moved or new, at a side of panel `target`, which gives it half of its rectangle."""
    if index == target:
        return node

    def replacement(panel: int) -> LayoutNode | None:
        return _pair(panel, index, side, 0.5) if panel == target else None if panel == index else panel

    inserted = _replace_panels(node, replacement)
    assert inserted is not None  # the target is in it
    return inserted


def dock(node: LayoutNode, index: int, side: str) -> LayoutNode:
    """Puts a panel along a side of the window."""
    rest = _replace_panels(node, lambda panel: None if panel == index else panel)
    return node if rest is None else _pair(rest, index, side, 1 / (1 + len(panel_indices(rest)) ** 0.5))


def remove(node: LayoutNode, index: int) -> LayoutNode | None:
    """Removes a panel; those after it get the next lower index. None if it was the last."""
    return _replace_panels(node, lambda panel: None if panel == index else panel - 1 if panel > index else panel)


def nearest(rects: Mapping[int, Rect], index: int, side: str) -> int | None:
    """The panel whose center is nearest on a side of the center of panel `index`; None if there is none."""
    axis, sign = {"left": (0, -1), "right": (0, 1), "above": (1, -1), "below": (1, 1)}[side]
    centers = {k: (x + w / 2, y + h / 2) for k, (x, y, w, h) in rects.items()}
    center = centers[index]
    candidates = [k for k, other in centers.items() if sign * (other[axis] - center[axis]) > 1]
    return min(candidates, key=lambda k: math.dist(centers[k], center), default=None)


def drop_side(rect: Rect, x: float, y: float) -> str:
    """The side of a panel's rectangle that a drop at (x, y) is for, or "middle"."""
    left, top, width, height = rect
    u, v = (x - left) / width, (y - top) / height
    distances = dict(zip(SIDES, (u, 1 - u, v, 1 - v), strict=True))
    side = min(SIDES, key=distances.__getitem__)
    return side if distances[side] < DROP_MARGIN else "middle"


def drop_preview(rect: Rect, side: str) -> Rect:
    """The rectangle of a panel that is dropped there: one half, or all of it for the middle."""
    return rect if side == "middle" else rectangles(_pair(0, 1, side, 0.5), rect, 0)[1]


def layout_to_table(node: LayoutNode) -> int | dict[str, object]:
    """The tree as plain data for a session file."""
    if isinstance(node, int):
        return node
    children = [layout_to_table(child) for child in node.children]
    return {"horizontal": node.horizontal, "children": children, "ratios": list(node.ratios)}


def layout_from_table(table: object, count: int) -> LayoutNode:
    """The tree of layout_to_table() for `count` panels; raises ValueError if it is malformed."""
    node = _from_table(table, MAX_DEPTH)
    if sorted(panel_indices(node)) != list(range(count)):
        raise ValueError(f"its panels are {sorted(panel_indices(node))[:20]}; they must be 0 to {count - 1}, each once")
    return node


def _from_table(table: object, levels: int) -> LayoutNode:
    """The tree of panels in a session file's table, at most `levels` deep. Raises ValueError."""
    if type(table) is int:
        return table
    if not (isinstance(table, dict) and levels and type(table.get("horizontal")) is bool):
        raise ValueError("a node must be a panel's index, or a table with horizontal, children and ratios")
    children, ratios = table.get("children"), table.get("ratios")
    if not (isinstance(children, list) and isinstance(ratios, list) and 2 <= len(children) == len(ratios) <= 64):
        raise ValueError("children and ratios must be lists of equal length, of at least 2")
    if not all(type(ratio) in (int, float) and 1e-6 <= ratio <= 1 for ratio in ratios):
        raise ValueError("ratios must be numbers above 0 and up to 1")
    nodes = [_from_table(child, levels - 1) for child in children]
    return _join(table["horizontal"], list(zip(nodes, ratios, strict=True)))


def _join(horizontal: bool, pairs: list[tuple[LayoutNode, float]]) -> LayoutNode:
    """A split of nodes with their ratios; a single node stays as it is, and splits of the same direction merge."""
    if len(pairs) == 1:
        return pairs[0][0]
    flat: list[tuple[LayoutNode, float]] = []
    for child, ratio in pairs:
        if isinstance(child, Split) and child.horizontal == horizontal:
            flat += [(inner, r * ratio) for inner, r in child.pairs()]
        else:
            flat.append((child, ratio))
    total = sum(ratio for _, ratio in flat)
    return Split(horizontal, tuple(child for child, _ in flat), tuple(ratio / total for _, ratio in flat))


def _split_rectangle(split: Split, rect: Rect, gap: int) -> list[Rect]:
    """The rectangles of the children; rounding errors do not add up, as each end is rounded by itself."""
    x, y, width, height = rect
    length = (width if split.horizontal else height) + gap  # each child with a gap behind it
    # 1e-6: three ratios of 1/3 may sum to less than 1, and must not lose a unit
    ends = [math.floor(length * end + 1e-6) for end in accumulate(split.ratios, initial=0.0)]
    spans = [(start, max(1, end - gap - start)) for start, end in zip(ends, ends[1:], strict=False)]
    return [(x + a, y, n, height) if split.horizontal else (x, y + a, width, n) for a, n in spans]


def _replace_panels(node: LayoutNode, new: Callable[[int], LayoutNode | None]) -> LayoutNode | None:
    """The tree with new(index) in place of each panel; None removes the panel. None if no panel is left."""
    if isinstance(node, int):
        return new(node)
    kept = [(new_child, r) for child, r in node.pairs() if (new_child := _replace_panels(child, new)) is not None]
    return _join(node.horizontal, kept) if kept else None


def _pair(node: LayoutNode, index: int, side: str, ratio: float) -> LayoutNode:
    """A split of the node and a panel at a side of it; the panel takes `ratio` of the length."""
    pairs = [(node, 1 - ratio), (index, ratio)]
    return _join(side in ("left", "right"), pairs if side in ("right", "below") else pairs[::-1])
