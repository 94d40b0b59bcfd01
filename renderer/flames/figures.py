"""Builders of the figures that shaders/flames/variations/figures.h draws: turtle curves, trees, texts, crystals."""

import math
from collections.abc import Iterable

import numpy as np

from renderer.flames.formulas import program
from renderer.flames.java_random import JavaRandom
from renderer.flames.stamps import MAX_PRIMITIVES, Texts, Values, builder, whole
from renderer.formats.letters import text_pixels

LINE, POLYGON = 0.0, 2.0
MAX_TEXT = 200  # characters
MAX_WALKS = 100_000  # steps of all wandering particles
Segment = tuple[float, float, float, float]


def lines_table(segments: Iterable[Segment], thickness: float) -> np.ndarray:
    """The table of line segments (x1, y1, x2, y2) of a thickness in hundredths."""
    rows: list[tuple[float, ...]] = [
        (LINE, 0.0, *segment, thickness / 100, 0.0, 0.0)
        for segment, _ in zip(segments, range(MAX_PRIMITIVES), strict=False)
    ]
    rows = rows or [(LINE, *[0.0] * 8)]
    return np.concatenate([[len(rows)], np.ravel(rows)])


def polygons_table(polygons: Iterable[tuple[float, ...]]) -> np.ndarray:
    """The table of polygons (color, x, y, size, angle in degrees, sides, hole)."""
    rows = []
    for (color, x, y, size, angle, sides, hole), _ in zip(polygons, range(MAX_PRIMITIVES), strict=False):
        turn = math.radians(angle)
        rows.append((POLYGON, color, x, y, size, math.cos(turn), math.sin(turn), sides, hole))
    return np.concatenate([[len(rows)], np.ravel(rows)])


class Turtle:
    """Draws segments of length 1 as it goes."""

    def __init__(self, x: float = 0.0, y: float = 0.0):
        self.x, self.y, self.angle = x, y, 0.0
        self.segments: list[Segment] = []

    def left(self, degrees: float) -> None:
        """Turn left."""
        self.angle += degrees

    def forward(self) -> None:
        """Draw one step."""
        turn = math.radians(self.angle)
        x, y = self.x + math.cos(turn), self.y + math.sin(turn)
        self.segments.append((self.x, self.y, x, y))
        self.x, self.y = x, y


def follow(turtle: Turtle, start: str, rules: dict[str, str], turns: dict[str, float], level: int) -> None:
    """Draw an L-system: letters with rules are replaced `level` times, F draws, the others turn."""
    text = start
    for _ in range(level):
        text = "".join(rules.get(letter, letter) for letter in text)
    for letter in text:
        if letter == "F":
            turtle.forward()
        elif letter in turns:
            turtle.left(turns[letter])


@builder("dragon_js")
def dragon(values: Values, texts: Texts) -> np.ndarray:
    """J. Heighway's dragon."""
    turtle, level = Turtle(), whole(values["level"], 0, 13)
    text = "D"
    for _ in range(level):
        text = "".join({"D": "D+N", "N": "D-N"}.get(letter, letter) for letter in text)
    follow(turtle, text.replace("D", "F").replace("N", "F"), {}, {"+": 90.0, "-": -90.0}, 0)
    return lines_table(turtle.segments, values["line_thickness"])


@builder("gosperisland_js")
def gosper_island(values: Values, texts: Texts) -> np.ndarray:
    """B. Gosper's island: a hexagon whose sides are replaced by three of the same."""
    turtle, angle = Turtle(9 / 32, 1 / 8), math.degrees(math.asin(math.sqrt(3) / (2 * math.sqrt(7))))
    turns = {"+": 60.0, "-": -60.0, "r": -angle, "l": angle}
    follow(turtle, "F+F+F+F+F+F", {"F": "rF+F-Fl"}, turns, whole(values["level"], 0, 6))
    return lines_table(turtle.segments, values["line_thickness"])


@builder("hilbert_js")
def hilbert(values: Values, texts: Texts) -> np.ndarray:
    """D. Hilbert's curve."""
    rules = {"A": "+BF-AFA-FB+", "B": "-AF+BFB+FA-"}
    turtle = Turtle()
    follow(turtle, "A", rules, {"+": 90.0, "-": -90.0}, whole(values["level"], 0, 7))
    return lines_table(turtle.segments, values["line_thickness"])


@builder("koch_js")
def koch(values: Values, texts: Texts) -> np.ndarray:
    """H. von Koch's curve."""
    turtle = Turtle()
    follow(turtle, "F", {"F": "F+F-F+F"}, {"+": 60.0, "-": -120.0}, whole(values["level"], 0, 7))
    halves = ((0.5 * a, 0.5 * b, 0.5 * c, 0.5 * d) for a, b, c, d in turtle.segments)
    return lines_table(halves, values["line_thickness"])


@builder("htree_js")
def h_tree(values: Values, texts: Texts) -> np.ndarray:
    """An H at each end of an H."""

    def draw(level: int, x: float, y: float, size: float) -> Iterable[Segment]:
        if level == 0:
            return
        x0, x1, y0, y1 = x - size / 2, x + size / 2, y - size / 2, y + size / 2
        yield from ((x0, y0, x0, y1), (x1, y0, x1, y1), (x0, y, x1, y))
        for a, b in ((x0, y0), (x0, y1), (x1, y0), (x1, y1)):
            yield from draw(level - 1, a, b, size / 2)

    return lines_table(draw(whole(values["level"], 0, 7), 0.0, 0.0, values["size"]), values["line_thickness"])


@builder("rsquares_js")
def squares_at_corners(values: Values, texts: Texts) -> np.ndarray:
    """A smaller square at each corner of a square."""

    def draw(level: int, x: float, y: float, size: float) -> Iterable[Segment]:
        if level == 0:
            return
        h = size / 2
        corners = [(x - h, y - h), (x - h, y + h), (x + h, y + h), (x + h, y - h), (x - h, y - h)]
        yield from ((*one, *two) for one, two in zip(corners, corners[1:], strict=False))
        for a, b in ((x - h, y - h), (x - h, y + h), (x + h, y - h), (x + h, y + h)):
            yield from draw(level - 1, a, b, size / 2.2)

    return lines_table(draw(whole(values["level"], 0, 7), 0.5, 0.5, 1.0), values["line_thickness"])


@builder("tree_js")
def tree(values: Values, texts: Texts) -> np.ndarray:
    """A tree of three branches a branch."""
    bend, branch = math.radians(values["bend_angle"]), math.radians(values["branch_angle"])
    ratio = values["branch_ratio"]

    def draw(level: int, x: float, y: float, angle: float, length: float) -> Iterable[Segment]:
        u, v = x + math.cos(angle) * length, y + math.sin(angle) * length
        yield x, y, u, v
        if level > 0:
            yield from draw(level - 1, u, v, angle + bend - branch, length * ratio)
            yield from draw(level - 1, u, v, angle + bend + branch, length * ratio)
            yield from draw(level - 1, u, v, angle + bend, length * (1 - ratio))

    return lines_table(draw(whole(values["level"], 0, 9), 0.0, 0.0, math.pi / 2, 2.0), values["line_thickness"])


@builder("sunflower")
def sunflower(values: Values, texts: Texts) -> np.ndarray:
    """Seeds at the golden angle."""
    count = whole(values["nPoints"], 1, 20000)
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
    """Rows of polygons whose sides follow a list."""
    random = JavaRandom(whole(values["seed"], -(2**31), 2**31 - 1))
    words = decoded(texts.get("string", "")).split(",") if texts.get("string") else ["3", "4", "5", "6"]
    sides = [int(word) if word.strip().isdigit() and 3 <= int(word) <= 20 else 3 for word in words[:1000]]
    step, angle = max(values["lineheight"], 0.01), values["angle"]

    def between(limit: float) -> float:
        return limit * (2 * random.next_double() - 1)

    def polygons() -> Iterable[tuple[float, ...]]:
        x = 0.0
        while x <= values["width"]:
            y, k = 0.0, 0
            while y <= values["height"]:
                place, size = x + between(values["randPos"]), step / 2 + between(values["randSize"])
                n = sides[k % len(sides)]
                if values["ouline"] == 1:
                    yield values["outline_color"], place, y, size, angle, n, 1.0
                if values["fill"] == 1:
                    color = math.fmod(values["fill_color"] + values["fill_color_speed"] * random.next_double(), 1.0)
                    yield color, place, y, size, angle, n, 0.0
                y, k = y + step, k + 1
            x += step
        yield 0.0, 0.0, 0.0, 0.0, 0.0, 3, 0.0

    return polygons_table(polygons())


def decoded(text: str) -> str:
    """A text that a file has in hexadecimal digits of its bytes."""
    try:
        return bytes.fromhex(text).decode("utf-8", "replace")
    except ValueError:
        return text


@builder("text_wf")
def lit_pixels(values: Values, texts: Texts) -> np.ndarray:
    """The pixels of a text, in an image with a margin of the font's size, -0.5 to 0.5.

    The font is the one that Pillow brings: files name fonts of other systems.
    """
    size = whole(values["font_size"], 8, 400)
    text = decoded(texts.get("text", ""))[:MAX_TEXT] or "Hello"
    lit = text_pixels(text, size, size, values["baseline"])
    height, width = lit.shape
    y, x = np.nonzero(lit)
    if len(x) == 0:
        x, y = np.array([width // 2]), np.array([height // 2])
    places = np.stack([x / width - 0.5, y / height - 0.5], 1)
    every = -(-len(places) // MAX_PRIMITIVES)
    return np.concatenate([[len(places[::every])], places[::every].ravel()])


@builder("dla_wf")
def aggregate(values: Values, texts: Texts) -> np.ndarray:
    """Particles that wander until they touch the aggregate (T. Witten and L. Sander)."""
    size, count = whole(values["buffer_size"], 10, 1000), whole(values["max_iter"], 1, 10000)
    rng = np.random.default_rng(whole(values["seed"], 0, 2**31))
    taken = np.zeros((size, size), bool)
    center = size // 2
    taken[center, center] = True
    _grow(rng, taken, count)
    across, down = np.nonzero(taken)
    turns = rng.uniform(0, 2 * np.pi, len(across))
    spread = min(max(values["jitter"], 0.0), 1.0) * np.stack([np.cos(turns), np.sin(turns)], 1)
    places = (np.stack([across, down], 1) - center) / size * values["scale"] + spread
    return np.concatenate([[len(places)], places.ravel()])


def _grow(rng: np.random.Generator, taken: np.ndarray, count: int) -> None:
    """Add so many particles, of which many wander at once; fewer if they reach the edge of the square."""
    size = len(taken)
    center, radius, filled = size // 2, 3.0, 1
    steps = np.array([(1, 0), (0, -1), (-1, 0), (0, 1)])
    all_places = np.full((512, 2), -1)
    for _ in range(MAX_WALKS):
        places = all_places[: int(4 * radius)]  # few where the aggregate is small: they hardly meet
        away = np.hypot(*(places - center).T)
        lost = (places < 1).any(1) | (places > size - 2).any(1) | (away > 2.1 * radius + 8)
        turns = rng.uniform(0, 2 * np.pi, int(lost.sum()))
        places[lost] = center + np.rint(radius * np.stack([np.cos(turns), np.sin(turns)], 1)).astype(int)
        places += steps[rng.integers(0, 4, len(places))]
        free = np.maximum(np.hypot(*(places - center).T) - radius - 1, 0.0)  # nothing is nearer: jump so far
        turns = rng.uniform(0, 2 * np.pi, len(places))
        places += (free[:, None] * np.stack([np.cos(turns), np.sin(turns)], 1)).astype(int)
        i, j = np.clip(places, 1, size - 2).T
        touches = taken[i - 1, j] | taken[i + 1, j] | taken[i, j - 1] | taken[i, j + 1]
        if not touches.any():
            continue
        cells = np.unique(i[touches] * size + j[touches])
        filled += int((~taken.flat[cells]).sum())
        taken.flat[cells] = True
        radius = max(radius, float(np.hypot(i[touches] - center, j[touches] - center).max()) + 1)
        places[touches] = -1
        if filled > count or radius > size / 2 - 2:
            return


# ---- symmetries and formulas


def _turns(angles: Iterable[float], mirrored: bool) -> np.ndarray:
    """The table of rotations by degrees, with each also its mirror image, to three digits as the origin has them."""
    rows = []
    for angle in angles:
        c, s = round(math.cos(math.radians(angle)), 3), round(math.sin(math.radians(angle)), 3)
        rows += [(c, -s, s, c), *([(c, s, s, -c)] if mirrored else [])]
    return np.concatenate([[len(rows)], np.ravel(rows)])


def _register_symmetry(name: str, angles: tuple[float, ...], mirrored: bool) -> None:
    builder(name)(lambda values, texts: _turns(angles, mirrored))


_register_symmetry("sym_ng14", (0, 120, 240), True)
_register_symmetry("sym_ng15", (270, 30, 150), True)
_register_symmetry("sym_ng16", (0, 60, 120, 180, 240, 300), False)
_register_symmetry("sym_ng17", (0, 60, 120, 180, 240, 300), True)


def _register_formulas(name: str, keys: tuple[str, ...], variables: tuple[str, ...]) -> None:
    """Register the builder of a variation whose texts `keys` are formulas of variables."""

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
    """C. Reiter's snow crystal: water freezes to the ice on a lattice of hexagons and diffuses."""
    size = whole(values["buffer_size"], 8, 200)
    rng = np.random.default_rng(whole(values["seed"], 0, 2**31))
    side = 2 * size + 1
    water = values["bg_freeze_level"] + values["rnd_bg_noise"] * rng.uniform(-1, 1, (side, side))
    water[size, size] = 1.0
    gain, diffusion = values["fg_freeze_speed"] / 1000, values["diffusion_speed"] / 1000 + 1
    own = 0.5 * values["diffusion_asymmetry"] / diffusion
    share = (diffusion - own) / 6
    steps = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))  # neighbors in axial coordinates
    for _ in range(whole(values["max_iter"], 1, 1000)):
        ice = water >= 1.0
        near = ice.copy()
        for step in steps:
            near |= np.roll(ice, step, (0, 1))
        moving = np.where(near, 0.0, water)
        spread = own * moving + share * sum(np.roll(moving, step, (0, 1)) for step in steps)
        held = np.where(near, water + np.where(ice | (water <= 0), 0.0, gain), 0.0)
        water = np.minimum(held + spread, 4.0)
    i, j = np.nonzero(water > values["threshold"])
    turns = rng.uniform(0, 2 * np.pi, len(i))
    spread_radius = min(max(values["jitter"], 0.0), 1.0)
    a, b = (i - size) / side, (j - size) / side
    x, y = values["scale"] * (a + 0.5 * b), values["scale"] * math.sqrt(0.75) * b
    bright = water[i, j] - values["threshold"]
    rows = np.stack([x + spread_radius * np.cos(turns), y + spread_radius * np.sin(turns), bright], 1)
    rows = rows if len(rows) else np.zeros((1, 3))
    return np.concatenate([[len(rows)], rows.ravel()])


@builder("nsudoku")
def sudoku_board(values: Values, texts: Texts) -> np.ndarray:
    """Polygons of nine colors in the order of sudoku boards, one inside the other."""
    level, rng = whole(values["Level"], 1, 9), np.random.default_rng(1)
    base = np.array([[(3 * (r % 3) + r // 3 + c) % 9 + 1 for c in range(9)] for r in range(9)])

    def polygons() -> Iterable[tuple[float, ...]]:
        for n in range(level, 0, -1):
            rows = np.concatenate([3 * band + rng.permutation(3) for band in rng.permutation(3)])
            board = base[rows]
            size, hole = values["size"] * n / level / 9, 0.0 if n == 1 else values["thickness"]
            for i in range(9):
                for j in range(9):
                    yield board[j, i] / 9, i / 9 - 0.5, j / 9 - 0.5, size, values["angle"], values["type"], hole

    return polygons_table(polygons())
