"""The table of variations, read from shaders/flames/variations.h: names, parameters with defaults, source.

To add a variation, add it to that file and its formula to tests/flames/reference_variations.py; nothing else.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from renderer.paths import SHADERS

VARIATION_RE = re.compile(
    r"^VARIATION\((\w+)((?:,\s*\w+\s*=\s*[-+.\deE]+)*)\) \{(?: ([^\n]*) \}|\n(.*?)^\})\n", re.MULTILINE | re.DOTALL
)
PARAMETER_RE = re.compile(r"(\w+)\s*=\s*([-+.\deE]+)")
RESERVED_NAMES = {"x", "y", "weight", "circle"}  # parameters of these names are called NAME_PARAMETER in the body
GAUSS4_RANDOM_COUNT = 4
COMMON_PARAMETERS = "GLOBAL const float *affine, Random *random"
# Names that other programs write for the same parameter.
ALIASES = {
    "oscope_separation": "oscilloscope_separation", "oscope_frequency": "oscilloscope_frequency",
    "oscope_amplitude": "oscilloscope_amplitude", "oscope_damping": "oscilloscope_damping",
    **{f"{part}_{letter}": f"mobius_{part.lower()}_{letter.lower()}" for part in ("Re", "Im") for letter in "ABCD"},
}  # fmt: skip


@dataclass(frozen=True)
class Variation:
    """One variation.

    `parameters`: file name -> default, in the order of the C arguments. `random_count`: random numbers that one
    application consumes. `source`: its C function, `variation_NAME`.
    """

    index: int
    name: str
    parameters: dict[str, float]
    random_count: int
    source: str


@lru_cache(maxsize=1)
def _parse() -> tuple[str, dict[str, Variation]]:
    text = (SHADERS / "flames/variations.h").read_text(encoding="utf-8")
    matches = list(VARIATION_RE.finditer(text))
    table = {}
    for index, match in enumerate(matches):
        name, listed, line, lines = match.groups()
        body = lines if line is None else f"    {line}\n"
        words = PARAMETER_RE.findall(listed)
        parameters = {f"{name}_{word}": float(value) for word, value in words}
        arguments = "".join(
            f", float {name}_{word}" if word in RESERVED_NAMES else f", float {word}" for word, _ in words
        )
        head = f"DEVICE Pair variation_{name}(real x, real y, float weight, {COMMON_PARAMETERS}{arguments})"
        random_count = body.count("uniform(random)") + GAUSS4_RANDOM_COUNT * body.count("gauss4(random)")
        table[name] = Variation(index, name, parameters, random_count, f"{head} {{\n{body}}}\n")
    return text[: matches[0].start()], table


def variation_table() -> dict[str, Variation]:
    """Every variation by name, in flam3's order."""
    return _parse()[1]


def header_source() -> str:
    """The text of variations.h before the first variation."""
    return _parse()[0]


@lru_cache(maxsize=1)
def parameter_owners() -> dict[str, str]:
    """Parameter name -> name of its variation."""
    return {parameter: v.name for v in variation_table().values() for parameter in v.parameters}
