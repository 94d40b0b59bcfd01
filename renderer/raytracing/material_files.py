"""The catalog of materials: the files of shaders/raytracing/materials and the declarations in them.

A declaration states a property of the material to the host, such as the textures that it reads or the compile-time
constants that it needs. It is a comment line that begins with `// @`; shaders/raytracing/surface.h explains each. It
may end in `where CONDITION`: names of MATERIAL fields (materials.py) joined by `and` and `or`, `and` first. A field is
true if one of its channels is above 0; `ior` is true if it is not 1. kernels.py, settings.py and geometry.py ask.
"""

import re

import numpy as np

from renderer.errors import InputError
from renderer.paths import SHADERS
from renderer.records import dataclass, field

DECLARATION = re.compile(r"^// @(\w+) ?(.*)$", re.MULTILINE)
COMMON_MAPS = ("emission", "color", "normal", "bump", "alpha")  # maps of all materials without `@maps none`
MAX_MEDIA = (1 << 15) - 2  # materials that shaders/raytracing/volumes/media.h can number
IOR_TOLERANCE = 1e-3  # light is not refracted if the ior differs less from 1


@dataclass(frozen=True)
class Condition:
    """A disjunction of conjunctions of MATERIAL fields; an empty conjunction always holds."""

    terms: tuple[tuple[str, ...], ...] = ((),)

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Parses the text behind `where`; the condition of an empty text always holds."""
        if not text:
            return cls()
        return cls(tuple(tuple(term.split(" and ")) for term in text.split(" or ")))

    def holds(self, rows: np.ndarray) -> np.ndarray:
        """Returns the mask (n,) bool of the materials (n,) MATERIAL for which the condition holds."""
        out = np.zeros(len(rows), bool)
        for term in self.terms:
            out |= np.all([_is_set(rows, name) for name in term], axis=0) if term else True
        return out


@dataclass
class MaterialFile:
    """The declarations of one material's file; a file without declarations has these defaults.

    Condition(()) never holds. `simd8` is the name of the material's eight-lane shading on CPUs, "" for none.
    """

    name: str
    optional: bool = False
    unlit: bool = False
    shadow_catcher: bool = False
    simd8: str = ""
    maps: tuple[str, ...] = COMMON_MAPS
    transmits: Condition = Condition(())
    mirrors: Condition = Condition(())
    constants: dict[str, Condition] = field(default_factory=dict)

    def declare(self, key: str, value: str) -> None:
        """Stores the declaration of a line `// @key value`; raises InputError for an unknown key."""
        head, _, condition = value.partition("where ")  # "where CONDITION" or, of a constant, "NAME where CONDITION"
        if key in ("optional", "unlit", "shadow_catcher"):
            setattr(self, key, True)
        elif key == "simd8":
            self.simd8 = value
        elif key == "maps":
            self.maps = ("emission",) if value == "none" else (*self.maps, *value.split(", "))
        elif key in ("transmits", "mirrors"):
            setattr(self, key, Condition.parse(condition))
        elif key == "constant":
            self.constants[head.strip()] = Condition.parse(condition)
        else:
            raise InputError(
                f"shaders/raytracing/materials/{self.name}.h: @{key} is no declaration; allowed are @optional, @unlit, "
                "@shadow_catcher, @simd8, @maps, @transmits, @mirrors and @constant"
            )


def _is_set(rows: np.ndarray, name: str) -> np.ndarray:
    values: np.ndarray = rows[name]
    if name == "ior":
        return np.asarray(np.abs(values - 1) > IOR_TOLERANCE)
    return np.asarray((values[:, :3] > 0).any(1) if values.ndim > 1 else values > 0)


def _read_catalog() -> dict[str, MaterialFile]:
    out = {}
    for path in sorted((SHADERS / "raytracing" / "materials").glob("*.h")):
        out[path.stem] = MaterialFile(path.stem)
        for key, value in DECLARATION.findall(path.read_text(encoding="utf-8")):
            out[path.stem].declare(key, value.strip())
    return out


MATERIAL_FILES = _read_catalog()  # by name; a material's number in the kernels is its position
MATERIALS = tuple(MATERIAL_FILES)
SIMD8_KINDS = tuple(sorted({file.simd8 for file in MATERIAL_FILES.values() if file.simd8}))  # numbered from 1


def declares(rows: np.ndarray, flag: str) -> np.ndarray:
    """Returns the mask (n,) bool of the materials (n,) MATERIAL whose files declare `flag`, a field of MaterialFile."""
    return np.array([getattr(file, flag) for file in MATERIAL_FILES.values()]).take(rows["kind"])


def holds(rows: np.ndarray, condition: str) -> np.ndarray:
    """Returns the mask (n,) bool of the materials (n,) MATERIAL for which a condition of their files holds.

    `condition` is "transmits", of surfaces that transmit light, or "mirrors", of mirrors where they are smooth.
    """
    out = np.zeros(len(rows), bool)
    for index, file in enumerate(MATERIAL_FILES.values()):
        out |= (rows["kind"] == index) & getattr(file, condition).holds(rows)
    return out


def material_constants(rows: np.ndarray) -> dict[str, int]:
    """Returns the declared compile-time constants: 1 if one of the materials (n,) MATERIAL needs the constant, else 0.

    Textures only lower the strength of a lobe, so a lobe of strength 0 needs no code. Raises InputError if a scene with
    absorbing media has more than MAX_MEDIA materials.
    """
    out = {"UNLIT": int(declares(rows, "unlit").any()), "SHADOW_CATCHER": int(declares(rows, "shadow_catcher").any())}
    for index, file in enumerate(MATERIAL_FILES.values()):
        file_rows = rows[rows["kind"] == index]
        if file.optional:
            out[file.name.upper()] = int(len(file_rows) > 0)
        for name, condition in file.constants.items():
            out[name] = out.get(name, 0) | int(condition.holds(file_rows).any())
    if out.get("MEDIA") and len(rows) > MAX_MEDIA:
        raise InputError(f"the scene has {len(rows)} materials; {MAX_MEDIA} are allowed where one absorbs light inside")
    return out
