"""The table of variations, read from shaders/flames/variations: names, parameters with defaults, origin, source.

Kernels, files, scenes, the editor and the reference page are made from this table. `pre_NAME` and `post_NAME` exist for
every variation: the same function, applied to the point before the others, or to their sum.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

from renderer.errors import UserError
from renderer.flames import clusters as clusters  # registers its builders
from renderer.flames import figures as figures  # the same
from renderer.flames import recurrence as recurrence
from renderer.flames import yeganeh as yeganeh
from renderer.flames.stamps import BUILDERS
from renderer.flames.user_variations import check_user_file, read_user_file, user_files
from renderer.paths import SHADERS

FOLDER = "flames/variations"
FILES = (  # in the order of the table
    "flam3", "space", "blurs", "plane", "trigonometry", "crops", "symmetry", "plane2", "color", "plane3", "space2",
    "complex", "plane4", "space3", "shaders", "shaders2", "shaders3", "shaders4", "plane5", "noise", "plane6",
    "plane7", "plane8", "plane9", "figures", "fractorium",
)  # fmt: skip
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,2})?"
# An item ends before the next one begins, so that a search of a whole file takes linear time: some have no end.
SAME_ITEM = r"(?!VARIATION|REPLACING|POST_3D|DEVICE |CONSTANT )"
LINES = rf"(?:{SAME_ITEM}[^\n]*\n)*?"
ITEM_RE = re.compile(
    r"^(?P<kind>VARIATION(?:_3D|_Z)?|REPLACING(?:_3D)?|POST_3D)\((?P<name>\w+)"
    rf"(?P<parameters>(?:,\s*\w+\s*=\s*{NUMBER}(?:\s*\[{NUMBER},\s*{NUMBER}\])?)*)\) \{{"
    rf"(?: (?P<line>[^\n]*) \}}|\n(?P<lines>{LINES})\}})\n|^// Origin: (?P<origin>[^\n]*)\n",
    re.MULTILINE | re.DOTALL,
)
# C functions and constants between the variations of a file.
HELPER_RE = re.compile(
    rf"^DEVICE (?:\w+ )+(?P<name>\w+)\((?:[^{{\n]|\n{SAME_ITEM})*\) \{{(?:[^\n]*\}}|\n{LINES}\}})\n"
    rf"|^CONSTANT (?:\w+ )+(?P<table>\w+)\[{LINES}[^\n]*\}};\n",
    re.MULTILINE | re.DOTALL,
)
PARAMETER_RE = re.compile(rf"(\w+)\s*=\s*({NUMBER})(?:\s*\[({NUMBER}),\s*({NUMBER})\])?")
# Parameters of these names are called NAME_PARAMETER in the body.
RESERVED_NAMES = {"x", "y", "z", "weight", "circle", "color", "hidden", "affine", "random", "static"}
GAUSS4_RANDOM_COUNT = 4
STAGES = ("pre_", "post_")
REPEAT_RE = re.compile(r"#\d{1,2}#")
Stage = Literal["", "pre_", "post_"]
# Names that other programs write for the same parameter.
ALIASES = {
    "oscope_separation": "oscilloscope_separation", "oscope_frequency": "oscilloscope_frequency",
    "oscope_amplitude": "oscilloscope_amplitude", "oscope_damping": "oscilloscope_damping",
    **{f"{part}_{letter}": f"mobius_{part.lower()}_{letter.lower()}" for part in ("Re", "Im") for letter in "ABCD"},
}  # fmt: skip


@dataclass(frozen=True)
class Variation:
    """One variation.

    `parameters`: file name -> default, in the order of the C arguments. `origin`: the program that defines it.
    `body`: of its C function; `z_body`: of that of its z, if it has one of its own. `in_space`: it returns x, y and z.
    `replaces`: its x and y replace the sum of the variations before it. `helpers`: the C functions and constants of
    its file that it uses. `limits`: file name -> the least and the greatest value of a parameter that has them.
    """

    index: int
    name: str
    parameters: dict[str, float]
    body: str
    origin: str
    in_space: bool = False
    replaces: bool = False
    z_body: str = ""
    helpers: tuple[str, ...] = ()
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    stage: Stage = ""

    @property
    def function(self) -> str:
        """The variation's name without its stage and its #number#: that of the C function variation_NAME."""
        return self.name.removeprefix(self.stage).split("#", 1)[0]

    @property
    def stage_rank(self) -> int:
        """Its place among variations of its stage: the index, or for pre_ and post_ the same for all."""
        return 0 if self.stage else self.index

    def limited(self, parameter: str, value: float) -> float:
        """A parameter's value within its limits: they bound loops, and are those of the origin."""
        low, high = self.limits.get(parameter, (value, value))
        return min(max(value, low), high)

    @cached_property
    def random_count(self) -> int:
        """Random numbers that one application consumes."""
        return self.body.count("uniform(random)") + GAUSS4_RANDOM_COUNT * self.body.count("gauss4(random)")

    @cached_property
    def sets_color(self) -> bool:
        """Whether it sets the point's color (direct color)."""
        return _mentions(self.body, "color")

    @cached_property
    def hides(self) -> bool:
        """Whether it hides points from the picture."""
        return _mentions(self.body, "hidden")

    @cached_property
    def sets_rgb(self) -> bool:
        """Whether it may give the point a color that is not the palette's."""
        return _mentions(self.body, "rgb")

    @property
    def has_table(self) -> bool:
        """Whether it draws places from a table that stamps.py makes of its parameters."""
        return self.function in BUILDERS and not self.is_users

    @cached_property
    def reads_z(self) -> bool:
        """Whether its result depends on z, so that flames with it have three dimensions."""
        return self.in_space and _mentions(self.body, "z")

    @cached_property
    def adds(self) -> bool:
        """Whether its pre_ and post_ forms add to the point instead of replacing it.

        True of those that do not read the point, such as blurs.
        """
        return not _mentions(self.body, "[xyz]")

    @property
    def is_users(self) -> bool:
        """Whether it is of a file of the user's."""
        return self.origin.endswith(".h")

    @property
    def is_plain(self) -> bool:
        """Whether the C function takes only x, y, the weight and parameters, and returns a Pair."""
        return not (self.in_space or self.sets_color or self.hides or self.sets_rgb)

    @cached_property
    def source(self) -> str:
        """Its C functions: variation_NAME, and z_of_NAME if its z has one of its own."""
        arguments = "".join(f", float {word}" for word in self._arguments())
        place = "real x, real y" if self.is_plain else "real x, real y, real z"
        state = "Random *random" if self.is_plain else "Random *random, real *color, mask *hidden, real *rgb"
        if self.has_table:
            arguments += ", GLOBAL const float *table"
        result = "Triple" if self.in_space else "Pair"
        common = f"float weight, GLOBAL const float *affine, {state}{arguments}"
        source = f"DEVICE {result} variation_{self.function}({place}, {common}) {{\n{self.body}}}\n"
        if self.z_body:
            head = f"DEVICE real z_of_{self.function}(real x, real y, real z, float weight{arguments})"
            source += f"{head} {{\n{self.z_body}}}\n"
        return source

    def _arguments(self) -> Iterable[str]:
        for name in self.parameters:
            word = name.removeprefix(f"{self.name}_")
            yield f"{self.function}_{word}" if word in RESERVED_NAMES else word


def _mentions(body: str, word: str) -> bool:
    """Whether a body has a word, but not as a struct's member."""
    return re.search(rf"(?<![.\w]){word}\b", body) is not None


def sources(variations: Iterable[Variation]) -> Iterable[str]:
    """The C texts of variations, each after the helpers that it uses, which are written once."""
    written: set[str] = set()
    for v in variations:
        yield from (helper for helper in v.helpers if helper not in written)
        written.update(v.helpers)
        yield v.source


class _StagedTable(dict):
    """A dict whose entries are found under other names too, which are not listed.

    pre_NAME and post_NAME are stages of NAME. NAME#1# is NAME once more in the same xform, with parameters
    NAME#1#_PARAMETER, as JWildfire writes them.
    """

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or isinstance(key, str) and self._derived(key) is not None

    def _derived(self, key: str) -> tuple[Any, Stage, str] | None:
        """The listed entry, stage and #number# of a key."""
        repeat = REPEAT_RE.search(key)
        plain = key[: repeat.start()] + key[repeat.end() :] if repeat else key
        for stage in ("", *STAGES):
            if plain.startswith(stage) and dict.__contains__(self, plain[len(stage) :]):
                return self[plain[len(stage) :]], stage, repeat[0] if repeat else ""  # type: ignore[return-value]
        return None

    def __missing__(self, key: str) -> Any:
        self._made = getattr(self, "_made", {})
        if key not in self._made:
            found = self._derived(key)
            if found is None:
                raise KeyError(key)
            self._made[key] = derived(*found)
        return self._made[key]


def derived(entry: Any, stage: Stage, repeat: str) -> Any:
    """A variation, or a variation's name, with a stage and a #number#."""
    if isinstance(entry, str):
        return stage + entry + repeat
    name = stage + entry.name + repeat
    parameters, limits = (
        {name + word.removeprefix(entry.name): value for word, value in table.items()}
        for table in (entry.parameters, entry.limits)
    )
    return replace(entry, name=name, stage=stage or entry.stage, parameters=parameters, limits=limits)


def parse_variations(text: str, first_index: int) -> dict[str, Variation]:
    """The variations of a text in the grammar of shaders/flames/variations."""
    table: dict[str, Variation] = {}
    origin, helpers = "", {match["name"] or match["table"]: match[0] for match in HELPER_RE.finditer(text)}
    for match in ITEM_RE.finditer(text):
        if match["origin"] is not None:
            origin = match["origin"]
            continue
        name, kind = match["name"], match["kind"]
        body = match["lines"] if match["line"] is None else f"    {match['line']}\n"
        if kind == "VARIATION_Z":
            if name not in table:
                raise UserError(f"VARIATION_Z({name}) has no VARIATION({name}) before it")
            table[name] = replace(table[name], z_body=body)
            continue
        found = PARAMETER_RE.findall(match["parameters"])
        parameters = {f"{name}_{word}": float(value) for word, value, _, _ in found}
        limits = {f"{name}_{word}": (float(low), float(high)) for word, _, low, high in found if low}
        table[name] = Variation(
            first_index + len(table), name, parameters, body, origin, kind.endswith("3D"),
            kind.startswith("REPLACING"), helpers=tuple(_used_helpers(body, helpers)), limits=limits,
            stage="post_" if kind.startswith("POST") else "",
        )  # fmt: skip
    return table


def _used_helpers(text: str, helpers: dict[str, str]) -> list[str]:
    """The helpers that a text uses, and those that they use, in the order of their file."""
    words = set(re.findall(r"\w+", text))
    while True:
        used = [helper for name, helper in helpers.items() if name in words]
        more = words.union(*(re.findall(r"\w+", helper) for helper in used))
        if more == words:
            return used
        words = more


@lru_cache(maxsize=1)
def variation_table() -> dict[str, Variation]:
    """Every variation by name, in flam3's order, then the others, then the user's.

    pre_ and post_ names are found but not listed.
    """
    table = _StagedTable()
    for file in FILES:
        text = (SHADERS / FOLDER / f"{file}.h").read_text(encoding="utf-8")
        table.update(parse_variations(text, len(table)))
    for path in user_files():
        text = read_user_file(path)
        parsed = {v.name: replace(v, origin=str(path)) for v in parse_variations(text, len(table)).values()}
        check_user_file(path, text, parsed, table)
        table.update(parsed)
    return table


@lru_cache(maxsize=1)
def header_source() -> str:
    """The text of base.h, which every variation may use."""
    return (SHADERS / FOLDER / "base.h").read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def parameter_owners() -> dict[str, str]:
    """Parameter name -> name of its variation; pre_ and post_ names are found but not listed."""
    return _StagedTable({parameter: v.name for v in variation_table().values() for parameter in v.parameters})
