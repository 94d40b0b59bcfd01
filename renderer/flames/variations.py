"""The table of variations, read from flames/variations.h: names, parameters with defaults, random draws, bodies."""

import re
from dataclasses import dataclass
from functools import lru_cache

from renderer.paths import SHADERS

VARIATION_RE = re.compile(
    r"^VARIATION\((\w+)((?:,\s*\w+\s*=\s*[-+.\deE]+)*)\) \{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL
)
PARAMETER = re.compile(r"(\w+)\s*=\s*([-+.\deE]+)")
RESERVED_NAMES = {
    "x",
    "y",
    "weight",
    "circle",
}  # words of the body: parameters called so keep their variation's name before them
GAUSS4_DRAWS = 4
COMMON_PARAMETERS = "GLOBAL const float *affine, Random *random"
# Names that other programs write for the same parameter.
ALIASES = {
    "oscope_separation": "oscilloscope_separation", "oscope_frequency": "oscilloscope_frequency",
    "oscope_amplitude": "oscilloscope_amplitude", "oscope_damping": "oscilloscope_damping",
    **{f"{part}_{letter}": f"mobius_{part.lower()}_{letter.lower()}" for part in ("Re", "Im") for letter in "ABCD"},
}  # fmt: skip


@dataclass(frozen=True)
class Variation:
    """`parameters`: file name -> default, in the order of the C arguments; `draws`: random numbers that one
    application takes.
    """

    number: int
    name: str
    parameters: dict[str, float]
    draws: int
    text: str


@lru_cache(maxsize=1)
def _file() -> tuple[str, dict[str, Variation]]:
    text = (SHADERS / "flames/variations.h").read_text(encoding="utf-8")
    found = {}
    for number, match in enumerate(VARIATION_RE.finditer(text)):
        name, listed, body = match.groups()
        parameters = {f"{name}_{word}": float(value) for word, value in PARAMETER.findall(listed)}
        words = [f"{name}_{word}" if word in RESERVED_NAMES else word for word, _ in PARAMETER.findall(listed)]
        arguments = "".join(f", float {word}" for word in words)
        head = f"DEVICE Pair variation_{name}(real x, real y, float weight, {COMMON_PARAMETERS}{arguments})"
        draws = body.count("uniform(random)") + GAUSS4_DRAWS * body.count("bell(random)")
        found[name] = Variation(number, name, parameters, draws, f"{head} {{\n{body}}}\n")
    return text[: VARIATION_RE.search(text).start()], found


def variation_table() -> dict[str, Variation]:
    """Every variation by name, in flam3's order."""
    return _file()[1]


def header_source() -> str:
    """What stands in the file before the first variation."""
    return _file()[0]


@lru_cache(maxsize=1)
def parameter_owners() -> dict[str, str]:
    """Parameter name -> name of its variation."""
    return {parameter: v.name for v in variation_table().values() for parameter in v.parameters}
