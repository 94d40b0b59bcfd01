"""Tables of the figures that shaders/flames/variations/figures.h draws: turtle curves, trees, texts, crystals.

tables.py calls a builder with the parameters and texts of a variation, and caches the table. A table begins with its
number of rows; the layout of a row is at the top of figures.h. Names like dragon_js are JWildfire's variations.
"""

import math
from collections.abc import Iterable
from itertools import islice

import numpy as np

from renderer.flames.variations.formulas import program
from renderer.flames.variations.java_random import JavaRandom
from renderer.flames.variations.tables import MAX_PRIMITIVES, Texts, Values, builder, clamped_int
from renderer.formats.text import text_pixels
from renderer.records import dataclass

LINE, POLYGON = 0.0, 2.0
MAX_TEXT = 200  # characters
MAX_WALKS = 100_000  # rounds in which every wandering particle makes a step
Segment = tuple[float, float, float, float]


def lines_table(segments: Iterable[Segment], thickness: float) -> np.ndarray:
    """The table of line segments (x1, y1, x2, y2); `thickness`: in hundredths of a unit."""
    rows: list[tuple[float, ...]] = [
        (LINE, 0.0, *segment, thickness / 100, 0.0, 0.0) for segment in islice(segments, MAX_PRIMITIVES)
    ]
    rows = rows or [(LINE, *[0.0] * 8)]
    return np.concatenate([[len(rows)], np.ravel(rows)])


def polygons_table(polygons: Iterable[tuple[float, ...]]) -> np.ndarray:
    """The table of polygons (color, x, y, size, angle in degrees, sides, hole)."""
    rows = []
    for color, x, y, size, angle, sides, hole in islice(polygons, MAX_PRIMITIVES):
        turn = math.radians(angle)
        rows.append((POLYGON, color, x, y, size, math.cos(turn), math.sin(turn), sides, hole))
    return np.concatenate([[len(rows)], np.ravel(rows)])


@dataclass(frozen=True)
class LSystem:
    """A curve of a turtle that follows an L-system (A. Lindenmayer).

    `rules` replace the letters of `start`, once for each level up to `max_level`. In the result D, F and N are a step
    ahead of length `step`, a letter of `turns` is a turn to the left in degrees, and other letters do nothing.
    """

    start: str
    rules: dict[str, str]
    turns: dict[str, float]
    max_level: int
    origin: tuple[float, float] = (0.0, 0.0)
    step: float = 1.0

    def segments(self, level: int) -> Iterable[Segment]:
        """Yields the turtle's steps after `level` replacements; it starts at `origin` in the direction +x."""
        text = self.start
        for _ in range(level):
            text = "".join(self.rules.get(letter, letter) for letter in text)
        (x, y), angle = self.origin, 0.0
        for letter in text:
            angle += self.turns.get(letter, 0.0)
            if letter in "DFN":
                turn = math.radians(angle)
                u, v = x + self.step * math.cos(turn), y + self.step * math.sin(turn)
                yield x, y, u, v
                x, y = u, v


GOSPER_ANGLE = math.degrees(math.asin(math.sqrt(3) / (2 * math.sqrt(7))))
L_SYSTEMS = {
    # J. Heighway's dragon.
    "dragon_js": LSystem("D", {"D": "D+N", "N": "D-N"}, {"+": 90.0, "-": -90.0}, 13),
    # B. Gosper's island: a hexagon whose sides are replaced by three of the same.
    "gosperisland_js": LSystem(
        "F+F+F+F+F+F", {"F": "rF+F-Fl"}, {"+": 60.0, "-": -60.0, "r": -GOSPER_ANGLE, "l": GOSPER_ANGLE}, 6,
        (9 / 32, 1 / 8),
    ),
    # D. Hilbert's curve.
    "hilbert_js": LSystem("A", {"A": "+BF-AFA-FB+", "B": "-AF+BFB+FA-"}, {"+": 90.0, "-": -90.0}, 7),
    # H. von Koch's curve.
    "koch_js": LSystem("F", {"F": "F+F-F+F"}, {"+": 60.0, "-": -120.0}, 7, step=0.5),
}  # fmt: skip


def _register_l_system(name: str, system: LSystem) -> None:
    """Register the builder of a variation that draws an L-system."""

    def build(values: Values, texts: Texts) -> np.ndarray:
        level = clamped_int(values["level"], 0, system.max_level)
        return lines_table(system.segments(level), values["line_thickness"])

    builder(name)(build)


for _name, _system in L_SYSTEMS.items():
    _register_l_system(_name, _system)


@builder("htree_js")
def h_tree(values: Values, texts: Texts) -> np.ndarray:
    """An H with smaller Hs at its four ends, recursively."""

    def draw(level: int, x: float, y: float, size: float) -> Iterable[Segment]:
        if level == 0:
            return
        x0, x1, y0, y1 = x - size / 2, x + size / 2, y - size / 2, y + size / 2
        yield from ((x0, y0, x0, y1), (x1, y0, x1, y1), (x0, y, x1, y))
        for a, b in ((x0, y0), (x0, y1), (x1, y0), (x1, y1)):
            yield from draw(level - 1, a, b, size / 2)

    return lines_table(draw(clamped_int(values["level"], 0, 7), 0.0, 0.0, values["size"]), values["line_thickness"])


@builder("rsquares_js")
def squares_at_corners(values: Values, texts: Texts) -> np.ndarray:
    """A square with smaller squares at its corners, recursively."""

    def draw(level: int, x: float, y: float, size: float) -> Iterable[Segment]:
        if level == 0:
            return
        h = size / 2
        corners = [(x - h, y - h), (x - h, y + h), (x + h, y + h), (x + h, y - h), (x - h, y - h)]
        yield from ((*start, *end) for start, end in zip(corners, corners[1:], strict=False))
        for a, b in ((x - h, y - h), (x - h, y + h), (x + h, y - h), (x + h, y + h)):
            yield from draw(level - 1, a, b, size / 2.2)

    return lines_table(draw(clamped_int(values["level"], 0, 7), 0.5, 0.5, 1.0), values["line_thickness"])


@builder("tree_js")
def tree(values: Values, texts: Texts) -> np.ndarray:
    """A tree whose branches each end in three branches."""
    bend, branch = math.radians(values["bend_angle"]), math.radians(values["branch_angle"])
    ratio = values["branch_ratio"]

    def draw(level: int, x: float, y: float, angle: float, length: float) -> Iterable[Segment]:
        u, v = x + math.cos(angle) * length, y + math.sin(angle) * length
        yield x, y, u, v
        if level > 0:
            yield from draw(level - 1, u, v, angle + bend - branch, length * ratio)
            yield from draw(level - 1, u, v, angle + bend + branch, length * ratio)
            yield from draw(level - 1, u, v, angle + bend, length * (1 - ratio))

    return lines_table(draw(clamped_int(values["level"], 0, 9), 0.0, 0.0, math.pi / 2, 2.0), values["line_thickness"])


@builder("sunflower")
def sunflower(values: Values, texts: Texts) -> np.ndarray:
    """Polygons at successive multiples of the golden angle, like a sunflower's seeds."""
    count = clamped_int(values["nPoints"], 1, 20000)
    step, limit = math.radians(values["angle"] * (3 - math.sqrt(5))), math.sqrt(count + 1)

    def seeds() -> Iterable[tuple[float, ...]]:
        for k in range(1, count + 1):
            r = math.sqrt(k) / limit
            size = r if values["invert"] == 1 else 1 - r
            x, y = r * math.cos(k * step), r * math.sin(k * step)
            yield size, x, y, values["scale"] * size, 0.0, values["shape"], values["F_filling"]

    return polygons_table(seeds())


@builder("gpattern")
def polygon_pattern(values: Values, texts: Texts) -> np.ndarray:
    """Rows of polygons whose numbers of sides repeat a list."""
    random = JavaRandom(clamped_int(values["seed"], -(2**31), 2**31 - 1))
    words = decoded(texts.get("string", "")).split(",") if texts.get("string") else ["3", "4", "5", "6"]
    sides = [int(word) if word.strip().isdigit() and 3 <= int(word) <= 20 else 3 for word in words[:1000]]
    step, angle = max(values["lineheight"], 0.01), values["angle"]

    def jitter(limit: float) -> float:
        return limit * (2 * random.next_double() - 1)

    def polygons() -> Iterable[tuple[float, ...]]:
        """Yields a pattern of polygons in columns, each filled, outlined or both."""
        x = 0.0
        while x <= values["width"]:
            y, k = 0.0, 0
            while y <= values["height"]:
                center, size = x + jitter(values["randPos"]), step / 2 + jitter(values["randSize"])
                n = sides[k % len(sides)]
                if values["ouline"] == 1:  # spelled as in JWildfire's files
                    yield values["outline_color"], center, y, size, angle, n, 1.0
                if values["fill"] == 1:
                    color = math.fmod(values["fill_color"] + values["fill_color_speed"] * random.next_double(), 1.0)
                    yield color, center, y, size, angle, n, 0.0
                y, k = y + step, k + 1
            x += step
        yield 0.0, 0.0, 0.0, 0.0, 0.0, 3, 0.0  # of size 0, so that no table is empty

    return polygons_table(polygons())


def decoded(text: str) -> str:
    """The text whose UTF-8 bytes a file has as hexadecimal digits; any other text as it is."""
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return text


@builder("text_wf")
def lit_pixels(values: Values, texts: Texts) -> np.ndarray:
    """The number of lit pixels of a text, then x and y of each, -0.5 to 0.5, in an image with a margin of font_size.

    The font is Pillow's own: fonts that files name may be missing here.
    """
    size = clamped_int(values["font_size"], 8, 400)
    text = decoded(texts.get("text", ""))[:MAX_TEXT] or "Hello"
    lit = text_pixels(text, size, size, values["baseline"])
    height, width = lit.shape
    y, x = np.nonzero(lit)
    if len(x) == 0:
        x, y = np.array([width // 2]), np.array([height // 2])
    positions = np.stack([x / width - 0.5, y / height - 0.5], 1)
    stride = -(-len(positions) // MAX_PRIMITIVES)
    return np.concatenate([[len(positions[::stride])], positions[::stride].ravel()])


@builder("dla_wf")
def aggregate(values: Values, texts: Texts) -> np.ndarray:
    """The number of particles of a diffusion-limited aggregate (T. Witten and L. Sander), then x and y of each."""
    size, count = clamped_int(values["buffer_size"], 10, 1000), clamped_int(values["max_iter"], 1, 10000)
    rng = np.random.default_rng(clamped_int(values["seed"], 0, 2**31))
    occupied = np.zeros((size, size), bool)
    center = size // 2
    occupied[center, center] = True
    _grow(rng, occupied, count)
    across, down = np.nonzero(occupied)
    turns = rng.uniform(0, 2 * np.pi, len(across))
    spread = min(max(values["jitter"], 0.0), 1.0) * np.stack([np.cos(turns), np.sin(turns)], 1)
    positions = (np.stack([across, down], 1) - center) / size * values["scale"] + spread
    return np.concatenate([[len(positions)], positions.ravel()])


def _grow(rng: np.random.Generator, occupied: np.ndarray, count: int) -> None:
    """Mark the cells of `count` particles that wander until they touch an occupied cell; up to 512 wander at once.

    Stops early when a particle sticks near the edge of the square.
    """
    size = len(occupied)
    center, radius, filled = size // 2, 3.0, 1
    steps = np.array([(1, 0), (0, -1), (-1, 0), (0, 1)])
    all_positions = np.full((512, 2), -1)  # outside of the square: not on its way yet
    for _ in range(MAX_WALKS):
        # Few wander while the aggregate is small, so that two rarely stick at once.
        positions = all_positions[: int(4 * radius)]
        distance = np.hypot(*(positions - center).T)
        lost = (positions < 1).any(1) | (positions > size - 2).any(1) | (distance > 2.1 * radius + 8)
        turns = rng.uniform(0, 2 * np.pi, int(lost.sum()))
        positions[lost] = center + np.rint(radius * np.stack([np.cos(turns), np.sin(turns)], 1)).astype(int)
        positions += steps[rng.integers(0, 4, len(positions))]
        # No occupied cell is nearer than the gap, so jump this far.
        gap = np.maximum(np.hypot(*(positions - center).T) - radius - 1, 0.0)
        turns = rng.uniform(0, 2 * np.pi, len(positions))
        positions += (gap[:, None] * np.stack([np.cos(turns), np.sin(turns)], 1)).astype(int)
        i, j = np.clip(positions, 1, size - 2).T
        touches = occupied[i - 1, j] | occupied[i + 1, j] | occupied[i, j - 1] | occupied[i, j + 1]
        if not touches.any():
            continue
        cells = np.unique(i[touches] * size + j[touches])
        filled += int((~occupied.flat[cells]).sum())
        occupied.flat[cells] = True
        radius = max(radius, float(np.hypot(i[touches] - center, j[touches] - center).max()) + 1)
        positions[touches] = -1
        if filled > count or radius > size / 2 - 2:
            return


# ---- symmetries and formulas


def _symmetries(angles: Iterable[float], rotations: bool, reflections: bool) -> np.ndarray:
    """The table of 2x2 matrices: rotations by `angles` in degrees, and those after y is mirrored.

    Their entries have 3 digits, as in JWildfire.
    """
    rows = []
    for angle in angles:
        c, s = round(math.cos(math.radians(angle)), 3), round(math.sin(math.radians(angle)), 3)
        rows += [(c, -s, s, c)] * rotations + [(c, s, s, -c)] * reflections
    return np.concatenate([[len(rows)], np.ravel(rows)])


def _register_symmetry(name: str, angles: tuple[float, ...], rotations: bool = True, reflections: bool = True) -> None:
    """Register the builder of a variation that applies one of these symmetries."""
    builder(name)(lambda values, texts: _symmetries(angles, rotations, reflections))


_register_symmetry("sym_ng13", (0, 120, 240), rotations=False)
_register_symmetry("sym_ng14", (0, 120, 240))
_register_symmetry("sym_ng15", (270, 30, 150))
_register_symmetry("sym_ng16", (0, 60, 120, 180, 240, 300), reflections=False)
_register_symmetry("sym_ng17", (0, 60, 120, 180, 240, 300))


def _register_formulas(name: str, keys: tuple[str, ...], variables: tuple[str, ...]) -> None:
    """Register the builder of a variation whose texts `keys` are formulas of `variables`."""

    def build(values: Values, texts: Texts) -> np.ndarray:
        numbers = {word: value for word, value in values.items() if word.startswith("param_")} | {"pi": math.pi}
        return np.array([code for key in keys for code in program(decoded(texts.get(key, "")), variables, numbers)])

    builder(name)(build)


_register_formulas("yplot2d_wf", ("formula",), ("x",))
_register_formulas("polarplot2d_wf", ("formula",), ("t",))
_register_formulas("polarplot3d_wf", ("formula",), ("t", "u"))
_register_formulas("parplot2d_wf", ("xformula", "yformula", "zformula"), ("u", "v"))
_register_formulas("isosfplot3d_wf", ("formula",), ("x", "y", "z"))


# ---- crystals and boards


@builder("snowflake_wf")
def snowflake(values: Values, texts: Texts) -> np.ndarray:
    """C. Reiter's snow crystal, by a cellular automaton on a hexagonal lattice: cells with water of 1 and more are ice.

    Water of receptive cells (ice and its neighbors) stays there and grows; other water diffuses. The table has the
    number of cells whose water exceeds the threshold, then x, y and the excess of each.
    """
    size = clamped_int(values["buffer_size"], 8, 200)
    rng = np.random.default_rng(clamped_int(values["seed"], 0, 2**31))
    side = 2 * size + 1
    water = values["bg_freeze_level"] + values["rnd_bg_noise"] * rng.uniform(-1, 1, (side, side))
    water[size, size] = 1.0
    gain, diffusion = values["fg_freeze_speed"] / 1000, values["diffusion_speed"] / 1000 + 1
    center_factor = 0.5 * values["diffusion_asymmetry"] / diffusion
    neighbor_factor = (diffusion - center_factor) / 6
    steps = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))  # neighbors in axial coordinates
    for _ in range(clamped_int(values["max_iter"], 1, 1000)):
        ice = water >= 1.0
        receptive = ice.copy()
        for step in steps:
            receptive |= np.roll(ice, step, (0, 1))
        diffusing = np.where(receptive, 0.0, water)
        spread = center_factor * diffusing + neighbor_factor * sum(np.roll(diffusing, step, (0, 1)) for step in steps)
        frozen = np.where(receptive, water + np.where(ice | (water <= 0), 0.0, gain), 0.0)
        water = np.minimum(frozen + spread, 4.0)
    i, j = np.nonzero(water > values["threshold"])
    turns = rng.uniform(0, 2 * np.pi, len(i))
    spread_radius = min(max(values["jitter"], 0.0), 1.0)
    a, b = (i - size) / side, (j - size) / side
    x, y = values["scale"] * (a + 0.5 * b), values["scale"] * math.sqrt(0.75) * b
    excess = water[i, j] - values["threshold"]
    rows = np.stack([x + spread_radius * np.cos(turns), y + spread_radius * np.sin(turns), excess], 1)
    rows = rows if len(rows) else np.zeros((1, 3))
    return np.concatenate([[len(rows)], rows.ravel()])


@builder("nsudoku")
def sudoku_board(values: Values, texts: Texts) -> np.ndarray:
    """Polygons colored by the digits of random sudoku boards, one board for each level, nested polygons per cell."""
    level, rng = clamped_int(values["Level"], 1, 9), np.random.default_rng(1)
    # A board, which stays one if rows of a band of three, or bands, change places.
    base = np.array([[(3 * (r % 3) + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)])

    def polygons() -> Iterable[tuple[float, ...]]:
        """Yields the polygons of each board, the largest level first: one in each cell, colored by its digit."""
        for n in range(level, 0, -1):
            rows = np.concatenate([3 * band + rng.permutation(3) for band in rng.permutation(3)])
            board = base[rows]
            size, hole = values["size"] * n / level / 9, 0.0 if n == 1 else values["thickness"]
            for i in range(9):
                for j in range(9):
                    yield board[j, i] / 9, i / 9 - 0.5, j / 9 - 0.5, size, values["angle"], values["type"], hole

    return polygons_table(polygons())
