"""The table of variations, read from shaders/flames/variations: names, parameters with defaults, origin, group, source.

variation_table() serves kernel_source.py, the readers of .flame and scene files, the flame editor and the reference
page. A file's name is the group of its variations in the editor's list. `pre_NAME` and `post_NAME` exist for every
variation: the same function, applied to the point before the other variations, or to their sum.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Literal, TypeVar

import numpy as np

from renderer.errors import UserError
from renderer.flames.variations import clusters as clusters  # imported to register their builders of tables
from renderer.flames.variations import figures as figures
from renderer.flames.variations import recurrence as recurrence
from renderer.flames.variations import tables
from renderer.flames.variations import yeganeh as yeganeh
from renderer.flames.variations.user_variations import HEAD, KINDS, check_user_file, read_user_file, user_files
from renderer.paths import SHADERS
from renderer.records import dataclass, field, replace

FOLDER = SHADERS / "flames/variations"
HEADER = SHADERS / "flames/variation.h"
ORDER = SHADERS / "flames/variation_order.txt"
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?"
# The texts are parsed by regular expressions: an item (of KINDS, or a helper) begins at the start of a line and
# ends in a line `}`, `... }` or `;`. It must end before the next one begins: otherwise items without an end would make
# a search take quadratic time.
SAME_ITEM = rf"(?!{HEAD}|DEVICE |CONSTANT )"
LINES = rf"(?:{SAME_ITEM}[^\n]*\n)*?"
# An item, such as `VARIATION(blob, low = 0, waves = 1 [0, 9]) {` and its lines up to `}`, or an `// Origin:` comment.
# An item's body is `line` or `lines`, or it has none.
ITEM_RE = re.compile(
    rf"^(?P<kind>{'|'.join(KINDS)})\((?P<name>\w+)"
    rf"(?P<parameters>(?:,\s*\w+\s*=\s*{NUMBER}(?:\s*\[{NUMBER},\s*{NUMBER}\])?)*)\)"
    rf"(?:;| \{{(?: (?P<line>[^\n]*) \}}|\n(?P<lines>{LINES})\}}))\n|^// Origin: (?P<origin>[^\n]*)\n",
    re.MULTILINE | re.DOTALL,
)
# C functions and constants between the variations of a file.
HELPER_RE = re.compile(
    rf"^DEVICE (?:\w+ )+(?P<name>\w+)\((?:[^{{\n]|\n{SAME_ITEM})*\) \{{(?:[^\n]*\}}|\n{LINES}\}})\n"
    rf"|^CONSTANT (?:\w+ )+(?P<table>\w+)\[{LINES}[^\n]*\}};\n",
    re.MULTILINE | re.DOTALL,
)
PARAMETER_RE = re.compile(rf"(\w+)\s*=\s*({NUMBER})(?:\s*\[({NUMBER}),\s*({NUMBER})\])?")
# Parameters of these names are called NAME_PARAMETER in the body: they name something else there, or nothing in C.
RESERVED_NAMES = {"x", "y", "z", "weight", "circle", "color", "hidden", "affine", "random", "static", "real", "3side"}
# Random numbers that the functions of variation.h consume.
RANDOM_COUNTS = {"uniform(random": 1, "random_sign(": 1, "gauss4(random": 4, "random_table_point(": 1}
REPEAT_RE = re.compile(r"#\d{1,2}#")
Stage = Literal["", "pre_", "post_"]
PREFIXES = ("", "pre_", "post_", "pre_add_", "post_add_")  # prefixes of names that derive from a listed name
Entry = TypeVar("Entry")
# The parameters that every STAMP and PALETTE_STAMP has after those in its head.
STAMP_PARAMETERS = {"ColorOnly": 0.0, "Gradient": 0.0, "scale_z": 0.0, "offset_z": 0.0, "reset_z": 1.0}
# Constants in the head of a stamp: the side of its square; of a PIXEL_STAMP also the distance of the square's corner
# below the origin, and 1 if its gradient is the product of red and green.
STAMP_CONSTANTS = ("SIDE", "SHIFT", "PRODUCT")
# The parameters that every ESCAPE has after those in its head, which may give them other defaults.
ESCAPE_PARAMETERS = {
    "max_iter": 100.0, "direct_color": 1.0, "scalez": 1.0, "clip_iter_max": -5.0, "max_clip_iter": 3.0, "offsetx": 0.0,
    "offsety": 0.0, "offsetz": 0.0,
}  # fmt: skip
# Bodies of stamps, variations that fill a square: they choose a point p and set its color by stamp_NAME(p).
STAMP_BODY = """\
    real u = uniform(random), v = uniform(random);
    Pair p = stamp_point(ColorOnly, {side}f, x, y, u, v);
    return stamped(weight, p, {stamp}(p{arguments}), color, rgb, Gradient, scale_z, offset_z);
"""
BODIES = {
    "STAMP": STAMP_BODY,
    "PALETTE_STAMP": STAMP_BODY.replace("stamped(", "stamped_of_palette(").replace("offset_z)", "offset_z, table)"),
    "PIXEL_STAMP": """\
    real u = uniform(random), v = uniform(random);
    Pair p = pixel_of(u, v, Density_Pixels), q = pixel_center(p, Density_Pixels, {side}f, {shift}f);
    return pixel_stamped(weight, p, Density_Pixels, {stamp}(q{arguments}), color, rgb, Gradient, {product}f);
""",
    "ESCAPE": """\
    float high = clip_iter_max < 0.0f ? max_iter + clip_iter_max : 1e30f, low = fmax(clip_iter_min, 0.0f);
    real first = uniform(random), second = uniform(random), u = zero_real(), v = u, count = u;
    Random many = stream_of(first, second);
    mask done = (mask)(0);
    for (int k = 0; (float)k < fmin(max_clip_iter, 100.0f) && ANY_LANE(!done); k++) {{
        real a = (xmax - xmin) * uniform(&many) + xmin, b = (ymax - ymin) * uniform(&many) + ymin;
        real n = {stamp}(pair(a, b){arguments}).x;
        u = done ? u : a;
        v = done ? v : b;
        count = done ? count : n;
        done = done || (n < high && n > low);
    }}
    *hidden = !done;
    real t = count / max_iter, shade = *color + t, size = done ? (real)(scale * weight) : zero_real();
    shade = clamped(shade > 1.0f ? shade - 1.0f : shade, zero_real(), (real)(1.0f));
    if (direct_color != 0.0f) *color = done ? shade : *color;
    return triple(size * (u + offsetx), size * (v + offsety), size * (0.1f * scalez * t + offsetz));
""",
    "SOLID": """\
    real first = uniform(random), second = uniform(random);
    Random many = stream_of(first, second);
    Triple inside = gray(zero_real());
    mask done = (mask)(0);
    for (int k = 0; k < 50; k++) {{
        real x = uniform(&many) - 0.5f, y = uniform(&many) - 0.5f, z = uniform(&many) - 0.5f;
        mask taken = !done && {stamp}(triple(x, y, z){arguments});
        inside = choose3(taken, triple(x, y, z), inside);
        done = done || taken;
    }}
    *hidden = !done;
    return scaled3(weight, inside.x, inside.y, inside.z);
""",
}
SOLID_HEAD = "real u = magnitude(p.x), v = magnitude(p.y), w = magnitude(p.z), ring = vnorm(p.x, p.z);"


@dataclass(frozen=True)
class Variation:
    """One variation.

    `function`: the name in its file, also of its C function; `name` may have a stage before it and a #number# after it.
    `parameters`: file name -> default, in the order of the C arguments. `limits`: file name -> least and greatest
    value of the parameters that have them. `is_forced`: a file moves it to its stage. `body`: statements of the C
    function. `z_body`: statements of the function of the z coordinate; empty if the variation leaves z unchanged or
    returns it. `in_space`: it returns x, y and z. `replaces`: its x and y replace the sum of the variations before it.
    `helpers`: the C functions and constants of its file that it uses. `random_count`: random numbers that one
    application consumes. `takes_palette`: its table is the flame's palette. `origin`: the program that defines it.
    """

    index: int
    name: str
    function: str
    parameters: dict[str, float]
    body: str
    origin: str
    group: str
    in_space: bool = False
    replaces: bool = False
    takes_palette: bool = False
    z_body: str = ""
    helpers: tuple[str, ...] = ()
    random_count: int = 0
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stage: Stage = ""
    is_forced: bool = False

    @property
    def order(self) -> tuple[int, int]:
        """Key of the order in which an xform applies its variations.

        Variations defined with PRE come first, then pre_ forms in the xform's order, then variations without stage in
        the table's order, so that their sum has the same bits however a file orders them, then post_ forms in the
        xform's order.
        """
        if self.stage == "pre_":
            return (0, 0) if self.name == self.function else (1, 0)  # a PRE item's own name begins with pre_
        return (3, 0) if self.stage else (2, self.index)

    def limited(self, parameter: str, value: float) -> float:
        """A parameter's value, clamped to the origin's limits, which also bound loops."""
        low, high = self.limits.get(parameter, (value, value))
        return min(max(value, low), high)

    @cached_property
    def sets_color(self) -> bool:
        """True if the variation sets the point's color (direct color)."""
        return _mentions(self.body, "color")

    @cached_property
    def hides(self) -> bool:
        """True if the variation hides points from the picture."""
        return _mentions(self.body, "hidden")

    @cached_property
    def sets_rgb(self) -> bool:
        """True if the variation may give the point a color that is not the palette's."""
        return _mentions(self.body, "rgb")

    @property
    def has_table(self) -> bool:
        """True if the C function has the argument `table`, the numbers that table() returns."""
        return self.takes_palette or self.function in tables.BUILDERS and not self.is_user_defined

    def table(self, values: Mapping[str, float], texts: Mapping[str, str]) -> np.ndarray:
        """(n,) float32: the table for parameters and texts, both named without the variation's name."""
        return tables.build_table("PALETTE_STAMP" if self.takes_palette else self.function, values, texts)

    @cached_property
    def reads_z(self) -> bool:
        """True if the result depends on z, so that flames with this variation have three dimensions."""
        return self.in_space and _mentions(self.body, "z")

    @cached_property
    def reads_unvaried(self) -> bool:
        """True if a post_ variation reads the point before the xform's variations."""
        return _mentions(self.body, "unvaried")

    @cached_property
    def adds(self) -> bool:
        """True if the pre_ and post_ forms add to the point instead of replacing it.

        True of variations that do not read the point, such as blurs, and of variations that JWildfire forces into a
        stage.
        """
        return self.is_forced or not (self.replaces or _mentions(self.body, "[xyz]"))

    @property
    def is_user_defined(self) -> bool:
        """True if a file of the user's defines it."""
        return self.origin.endswith(".h")

    @property
    def is_plain(self) -> bool:
        """True if the C function returns a Pair and has no z, color, hidden or rgb among its arguments."""
        return not (self.in_space or self.sets_color or self.hides or self.sets_rgb)

    @cached_property
    def source(self) -> str:
        """The C functions variation_NAME and, if there is a `z_body`, z_of_NAME."""
        arguments = "".join(f", float {word}" for word in _c_names(self.function, self.parameters, self.name))
        point = "real x, real y" + ", real z" * (not self.is_plain) + ", Point unvaried" * self.reads_unvaried
        state = "Random *random" if self.is_plain else "Random *random, real *color, mask *hidden, real *rgb"
        if self.has_table:
            arguments += ", GLOBAL const float *table"
        result = "Triple" if self.in_space else "Pair"
        common = f"float weight, GLOBAL const float *affine, {state}{arguments}"
        source = f"DEVICE {result} variation_{self.function}({point}, {common}) {{\n{self.body}}}\n"
        if self.z_body:
            head = f"DEVICE real z_of_{self.function}(real x, real y, real z, float weight{arguments})"
            source += f"{head} {{\n{self.z_body}}}\n"
        return source


def _c_names(function: str, parameters: Iterable[str], name: str) -> list[str]:
    """The names of parameters in C: without the variation's name, unless that is a reserved name."""
    words = (parameter.removeprefix(f"{name}_") for parameter in parameters)
    return [f"{function}_{word}" if word in RESERVED_NAMES else word for word in words]


def _words(text: str) -> set[str]:
    """The names in a C text."""
    return set(re.findall(r"\w+", text))


def _mentions(body: str, word: str) -> bool:
    """True if a C body contains this word other than as a struct's member; `word` may be a character class."""
    return re.search(rf"(?<![.\w]){word}\b", body) is not None


def sources(variations: Iterable[Variation]) -> Iterable[str]:
    """The C texts of variations, each after the helpers that it uses, which are written once."""
    written: set[str] = set()
    for v in variations:
        yield from (helper for helper in v.helpers if helper not in written)
        written.update(v.helpers)
        yield v.source


class _StagedTable(dict[str, Entry]):
    """A dict that also answers for names derived from the listed ones, and makes their entries by `derive`.

    pre_NAME and post_NAME are stages of NAME; pre_add_NAME and post_add_NAME add to the point there. NAME#1# is NAME
    once more in the same xform, with parameters NAME#1#_PARAMETER, as JWildfire writes them.
    """

    def __init__(self, entries: Mapping[str, Entry], derive: Callable[[Entry, str, str], Entry]) -> None:
        super().__init__(entries)
        self._derive = derive
        self._made: dict[str, Entry] = {}

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or isinstance(key, str) and self._derivation(key) is not None

    def _derivation(self, key: str) -> tuple[Entry, str, str] | None:
        """The listed entry, prefix and #number# of a derived key; None if no listed entry has it."""
        repeat = REPEAT_RE.search(key)
        plain = key[: repeat.start()] + key[repeat.end() :] if repeat else key
        for prefix in PREFIXES:
            if plain.startswith(prefix) and dict.__contains__(self, plain[len(prefix) :]):
                return self[plain[len(prefix) :]], prefix, repeat[0] if repeat else ""
        return None

    def __missing__(self, key: str) -> Entry:
        if key not in self._made:
            derivation = self._derivation(key)
            if derivation is None:
                raise KeyError(key)
            self._made[key] = self._derive(*derivation)
        return self._made[key]


def _derived_variation(v: Variation, prefix: str, repeat: str) -> Variation:
    """A variation under its derived name, with one of PREFIXES and a #number#, which may be empty."""
    name = prefix + v.name + repeat
    stage: Stage = "pre_" if prefix.startswith("pre") else "post_" if prefix else v.stage
    parameters = {name + word.removeprefix(v.name): default for word, default in v.parameters.items()}
    limits = {name + word.removeprefix(v.name): bounds for word, bounds in v.limits.items()}
    forced = prefix.endswith("add_")
    return replace(v, name=name, stage=stage, parameters=parameters, limits=limits, is_forced=forced)


def parse_variations(text: str, group: str, first_index: int = 0) -> dict[str, Variation]:
    """Name -> variation, for the variations of a text in the grammar that shaders/flames/variation.h describes.

    `group`: their group in the editor. `first_index`: the index of the first one.
    """
    table: dict[str, Variation] = {}
    last_stamp: tuple[str, ...] = ()  # name and parameters of the last STAMP, which a PIXEL_STAMP without a body calls
    origin, last_body = "", ""
    helpers = {match["name"] or match["table"]: match[0] for match in HELPER_RE.finditer(text)}
    names_in = {name: helpers.keys() & _words(source) for name, source in helpers.items()}
    random_counts = dict(RANDOM_COUNTS)  # with the helpers of the file that draw numbers
    for helper, source in helpers.items():
        if count := _random_count(source.partition("{")[2], random_counts):
            random_counts[f"{helper}("] = count
    for match in ITEM_RE.finditer(text):
        if match["origin"] is not None:
            origin = match["origin"]
            continue
        name, kind = match["name"], match["kind"]
        has_body = match["line"] is not None or match["lines"] is not None
        if has_body:  # else it has the body of the item before it
            last_body = match["lines"] if match["line"] is None else f"    {match['line']}\n"
        body = last_body
        if not body:
            raise UserError(f"{kind}({name}) has no body, and there is no item before it")
        if kind == "VARIATION_Z":
            if name not in table:
                raise UserError(f"VARIATION_Z({name}) has no VARIATION({name}) before it")
            table[name] = replace(table[name], z_body=body)
            continue
        head = PARAMETER_RE.findall(match["parameters"])  # (word, default, least, greatest), limits "" if not given
        constants = {word: float(value) for word, value, _, _ in head if word in STAMP_CONSTANTS}
        parameters = {f"{name}_{word}": float(value) for word, value, _, _ in head if word not in constants}
        limits = {f"{name}_{word}": (float(low), float(high)) for word, _, low, high in head if low}
        if kind == "ESCAPE":
            shared = {f"{name}_{word}": default for word, default in ESCAPE_PARAMETERS.items()}
            parameters |= {word: default for word, default in shared.items() if word not in parameters}
        if kind == "PIXEL_STAMP" and not has_body:  # it calls the STAMP before it
            body = _pixel_body(last_stamp, _c_names(name, parameters, name))
        elif kind == "STAMP":
            last_stamp = name, *_c_names(name, parameters, name)
        used = _used_helpers(body, helpers, names_in)
        if kind in BODIES:  # the file's body becomes stamp_NAME(), which the body of its kind calls
            body, helper = _stamp(kind, name, body, parameters, constants)
            used.append(helper)
            helpers[f"stamp_{name}"], names_in[f"stamp_{name}"] = helper, helpers.keys() & _words(helper)
            if kind in ("STAMP", "PALETTE_STAMP"):
                parameters |= {f"{name}_{word}": default for word, default in STAMP_PARAMETERS.items()}
        table[name] = Variation(
            first_index + len(table), name, function=name, parameters=parameters, body=body, origin=origin, group=group,
            in_space=kind.endswith("3D") or kind in BODIES.keys() - {"PIXEL_STAMP"}, limits=limits, helpers=tuple(used),
            replaces=kind.startswith("REPLACING"), takes_palette=kind == "PALETTE_STAMP",
            random_count=_random_count(body, random_counts),
            stage="post_" if kind.startswith("POST") else "pre_" if kind == "PRE" else "",
        )  # fmt: skip
    return table


def _random_count(body: str, counts: Mapping[str, int]) -> int:
    """Random numbers that a C body consumes; `counts`: the begin of a call -> the numbers that the call consumes."""
    called = ((call, count) for call, count in counts.items() if call in body)
    return sum(count * len(re.findall(rf"\b{re.escape(call)}", body)) for call, count in called)


def _stamp(
    kind: str, name: str, body: str, parameters: Mapping[str, float], constants: Mapping[str, float]
) -> tuple[str, str]:
    """The C body of a stamp variation, and the C function stamp_NAME, whose body is the file's `body`."""
    words = _c_names(name, parameters, name)
    table = name in tables.BUILDERS
    floats = "".join(f", float {word}" for word in words) + ", GLOBAL const float *table" * table
    arguments = "".join(f", {word}" for word in words) + ", table" * table
    side = constants.get("SIDE", 1.0)
    shift, product = constants.get("SHIFT", 0.5 * side), constants.get("PRODUCT", 0.0)
    filled = BODIES[kind].format(stamp=f"stamp_{name}", arguments=arguments, side=side, shift=shift, product=product)
    if kind == "SOLID":
        return filled, f"DEVICE mask stamp_{name}(Triple p{floats}) {{\n    {SOLID_HEAD}\n{body}}}\n"
    return filled, f"DEVICE Triple stamp_{name}(Pair p{floats}) {{\n{body}}}\n"


def _pixel_body(stamp: tuple[str, ...], words: list[str]) -> str:
    """The body of a PIXEL_STAMP without one: a call of the STAMP before it.

    `stamp`: the STAMP's name and parameters. `words`: the PIXEL_STAMP's parameters, in the same order.
    """
    passed = [word for word in words if word not in ("Density_Pixels", "Gradient")]
    lacks_zoom = len(passed) < len(stamp) - 1  # "zoom" is the only parameter that a PIXEL_STAMP may lack
    arguments = ["1.0f" if lacks_zoom and word == "zoom" else passed.pop(0) for word in stamp[1:]]
    return f"    return stamp_{stamp[0]}(p, {', '.join(arguments)});\n"


def _used_helpers(text: str, helpers: Mapping[str, str], names_in: Mapping[str, set[str]]) -> list[str]:
    """The helpers that a text uses, directly or through others, in the order of their file.

    `names_in`: for each helper the names of helpers in its text.
    """
    used: set[str] = set()
    named = helpers.keys() & _words(text)
    while named:
        used |= named
        named = set().union(*(names_in[name] for name in named)) - used
    return [helper for name, helper in helpers.items() if name in used]


@lru_cache(maxsize=1)
def variation_table() -> dict[str, Variation]:
    """Name -> variation: in the order of variation_order.txt, then the others by name, then the user's.

    flam3's variations come first, in flam3's order, by which old files number them. pre_ and post_ names are
    known but not listed.
    """
    parsed: dict[str, Variation] = {}
    for path in sorted(FOLDER.glob("*.h")):
        parsed |= parse_variations(path.read_text(encoding="utf-8"), path.stem.replace("_", " "))
    ranks = {name: rank for rank, name in enumerate(ORDER.read_text(encoding="utf-8").split())}
    names = sorted(parsed, key=lambda name: (ranks.get(name, len(ranks)), name))
    table = _StagedTable({name: replace(parsed[name], index=k) for k, name in enumerate(names)}, _derived_variation)
    for path in user_files():
        text = read_user_file(path)
        users = {v.name: replace(v, origin=str(path)) for v in parse_variations(text, "user", len(table)).values()}
        check_user_file(path, text, {name: len(v.parameters) for name, v in users.items()}, table)
        table.update(users)
    return table


@lru_cache(maxsize=1)
def header_source() -> str:
    """The text of variation.h, which every variation may use."""
    return HEADER.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def parameter_owners() -> dict[str, str]:
    """Parameter name -> name of its variation; pre_ and post_ names are known but not listed."""
    owners = {parameter: v.name for v in variation_table().values() for parameter in v.parameters}
    return _StagedTable(owners, lambda name, stage, repeat: stage + name + repeat)
