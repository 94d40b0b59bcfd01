"""Reads material libraries of .obj files (.mtl), with Blender's and Clara.io's PBR keys, as Materials of gltf/model.py.

Blinn-Phong materials are converted: the squared roughness is the microfacet width sqrt(2 / (Ns + 2)) of the exponent Ns
(B. Walter et al. 2007, section 5.2); a Ks of 0.5 stands for the 4 % reflectance of common dielectrics, as in Blender;
illum 4, 6, 7 and 9 make glass of index Ni and color Tf. The ambient color Ka is ignored: it approximates the indirect
light that a path tracer computes.
"""

import os
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from renderer.errors import InputError
from renderer.formats.gltf.model import Material, Texture, TextureSlot
from renderer.formats.images import IMAGE_SUFFIXES, LUMINANCE, read_pixels
from renderer.formats.meshes.contents import MeshError, text_lines
from renderer.formats.texture_maps import CHANNELS, is_gray, normals_from_heights, replicated
from renderer.plain import format_value, parse_float
from renderer.records import dataclass, field, replace
from renderer.system.files import file_stamp, read_file
from renderer.system.trust import named_file

MAX_LIBRARY_BYTES = 64 << 20
MAX_LIBRARIES = 64
MAX_MATERIALS = 1 << 14
MAX_TOTAL_PIXELS = 1 << 27  # pixels of all maps of a mesh together
BUMP_HEIGHT = 0.01  # height of white above black at -bm 1, in picture widths: the format gives no unit
GLASS = (4, 6, 7, 9)  # values of illum that make glass
NUMBERS = ("Ns", "Ni", "d", "Tr", "Pr", "Pm", "Ps", "Pc", "Pcr", "aniso", "anisor", "illum")
COLORS = ("Kd", "Ks", "Ke", "Tf")
# Slots of Material.textures by the statement that names a map. Scalar maps are read as one channel.
COLOR_MAPS = {"map_Kd": "base_color", "map_Ke": "emissive", "map_Ks": "specular_color"}
SCALAR_MAPS = {"map_Ns": "roughness", "map_Pr": "roughness", "map_Pm": "metallic", "map_d": "alpha", "map_Tr": "alpha",
               "map_Ps": "sheen_color", "map_Pc": "clearcoat", "map_Pcr": "clearcoat_roughness"}  # fmt: skip
SLOTS = COLOR_MAPS | SCALAR_MAPS | {"map_Bump": "normal", "norm": "normal"}
# A map multiplies its slot's field of Material. This factor, which leaves the map as it is, is the field's value in an
# entry with the map but without the number: with map_Pr but without Pr.
NEUTRAL: dict[str, Any] = {"roughness": 1.0, "metallic": 1.0, "clearcoat": 1.0, "clearcoat_roughness": 1.0,
                           "sheen_color": (1.0, 1.0, 1.0)}  # fmt: skip
ALIASES = {"bump": "map_Bump", "map_bump": "map_Bump", "map_opacity": "map_d", "map_norm": "norm", "map_Norm": "norm",
           "map_Kn": "norm", "map_ke": "map_Ke", "map_kd": "map_Kd", "map_ks": "map_Ks", "map_ns": "map_Ns",
           "map_D": "map_d", "Ts": "Tf"}  # fmt: skip
# Statements and options without effect on a path traced picture: they are not counted as ignored.
SILENT = ("Ka", "map_Ka", "sharpness", "map_aat", "name")
SILENT_OPTIONS = ("-blendu", "-blendv", "-texres", "-type", "-colorspace")
# Options that are read or, as -bm and -imfchan at colors, mean nothing at a map. -mm is read at SCALAR_MAPS alone.
READ_OPTIONS = ("-s", "-o", "-bm", "-clamp", "-imfchan")
OPTION_SIZES = {"-blendu": 1, "-blendv": 1, "-cc": 1, "-clamp": 1, "-mm": 2, "-o": 3, "-s": 3, "-t": 3, "-texres": 1,
                "-bm": 1, "-imfchan": 1, "-boost": 1, "-type": 1, "-colorspace": 1}  # fmt: skip
LIBRARIES, PICTURES = (".mtl",), (*IMAGE_SUFFIXES, ".tga", ".dds", ".exr", ".hdr", ".psd")  # some unreadable


@dataclass(frozen=True)
class Map:
    """A texture file named by a material, with its options: {"-bm": ["0.5"]}."""

    name: str
    options: dict[str, list[str]]

    def number(self, option: str, index: int, default: float) -> float:
        """Returns word `index` of an option as a number; `default` if it is missing."""
        words = self.options.get(option, [])
        number = parse_float(words[index]) if index < len(words) else None
        return default if number is None else number


@dataclass
class Entry:
    """One newmtl block of a library, unconverted: numbers, colors and maps by key."""

    name: str
    numbers: dict[str, float] = field(default_factory=dict)
    colors: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    maps: dict[str, Map] = field(default_factory=dict)


def read_libraries(names: list[str], path: Path) -> "Library":
    """Reads the libraries that the .obj file at `path` names; counts missing files in Library.ignored."""
    out = Library(path.parent)
    for name in dict.fromkeys(names[:MAX_LIBRARIES]):
        # `mtllib a b.mtl` names one file with a space or two files: one, if it exists.
        for each in [name] if find_beside(path.parent, name, LIBRARIES) else name.split():
            file = find_beside(path.parent, each, LIBRARIES)
            if file is None:
                out.ignored[absence(each)] += 1
                out.linked[_beside(path.parent, each)] = None
                continue
            out.linked[file], out.base = file_stamp(file), file.parent
            for entry in _entries(read_file(file, MAX_LIBRARY_BYTES), out.ignored):
                out.materials.append(out.material(entry))
                if len(out.materials) > MAX_MATERIALS:
                    raise MeshError(f"its libraries have more than the {MAX_MATERIALS} materials allowed")
    out.ignored.update(f"mtllib {name} statements" for name in names[MAX_LIBRARIES:])
    return out


def find_beside(folder: Path, name: str, suffixes: tuple[str, ...], base: Path | None = None) -> Path | None:
    """Finds a file by its path relative to `base` (default: `folder`), else by its file name in `folder`, else None.

    Letter case is ignored below `base`, since most such files come from Windows. Files that named_file() refuses to a
    file in `folder` are not found.
    """
    written = name.replace("\\", "/")
    parts = [part for part in written.split("/") if part not in ("", ".")]
    if not parts or "\0" in name:
        return None
    for start, wanted in ((base or folder, parts), (folder, parts), (folder, parts[-1:])):
        # A name that leads out of the folder is taken as written; named_file() says whether it may.
        path = start / written if _leaves_folder(name) and wanted is parts else _walk(start, wanted)
        with suppress(InputError):
            if path and named_file(os.path.abspath(path), folder, suffixes, name):
                return path
    return None


def absence(name: str) -> str:
    """The key of MeshFile.ignored for a file that find_beside() does not find."""
    return f"outside of the folder, without --allow: {name} files" if _leaves_folder(name) else f"missing {name} files"


def _leaves_folder(name: str) -> bool:
    written = name.replace("\\", "/")
    return written.startswith("/") or ".." in written.split("/")


def _beside(folder: Path, name: str) -> Path:
    """The path at which a missing file is expected, so that its appearance can be watched for."""
    return folder / (name.replace("\\", "/").replace("\0", "").rpartition("/")[2] or "missing")


def _walk(folder: Path, parts: list[str]) -> Path | None:
    """The file or folder below `folder` by the names on the way, in any letter case; None if there is none."""
    try:
        for part in parts:
            names = [part] if (folder / part).exists() else [entry.name for entry in folder.iterdir()]
            folder /= next(name for name in names if name.casefold() == part.casefold())
    except (OSError, ValueError, StopIteration):
        return None
    return folder


def _entries(data: bytes, ignored: Counter[str]) -> list[Entry]:
    """Parses the newmtl blocks of a library; counts unknown statements in `ignored`."""
    out: list[Entry] = []
    for line in text_lines(data):
        word, _, rest = line.split(b"#")[0].decode("utf-8", "replace").strip().partition(" ")
        word, _, tail = word.partition("\t")
        rest = f"{tail} {rest}".strip()
        word = ALIASES.get(word, word)
        if word == "newmtl":
            out.append(Entry(rest))
        elif not word or word in SILENT or not out:
            continue
        elif word in NUMBERS and rest.split()[:1] == ["-halo"]:
            ignored["d -halo materials"] += 1
        elif word in NUMBERS:
            out[-1].numbers[word] = _finite(rest.split()[:1], word)[0]
        elif word in COLORS and rest.split()[:1] in (["xyz"], ["spectral"]):
            ignored[f"{word} {rest.split()[0]} materials"] += 1
        elif word in COLORS:
            values = _finite(rest.split()[:3], word)
            out[-1].colors[word] = tuple(values if len(values) == 3 else values[:1] * 3)  # type: ignore[assignment]
        elif word in SLOTS:
            out[-1].maps[word] = _map(rest)
        else:
            ignored[f"{word} materials"] += 1
    return out


def _finite(words: list[str], key: str) -> list[float]:
    values = [value for word in words if (value := parse_float(word)) is not None and abs(value) < 1e18]
    if not values or len(values) < len(words):
        raise MeshError(f"its material library has the {key} {format_value(' '.join(words))}; numbers are wanted")
    return values


def _map(rest: str) -> Map:
    """Parses a map statement: options, then the file name, which is the rest of the line and may have spaces."""
    options: dict[str, list[str]] = {}
    while (match := re.match(r"(-[a-z]+)\s+", rest)) and match[1] in OPTION_SIZES:
        rest = rest[match.end() :]
        values: list[str] = []
        for _ in range(OPTION_SIZES[match[1]]):  # the second and third number may be missing
            value = re.match(r"(\S+)\s+", rest)
            if not value or (values and OPTION_SIZES[match[1]] > 1 and parse_float(value[1]) is None):
                break
            values.append(value[1])
            rest = rest[value.end() :]
        options[match[1]] = values
    return Map(rest.strip().strip('"'), options)


class Library:
    """The materials of all libraries of an .obj file in `folder`; textures of equal options are shared.

    `linked` holds the stamps of libraries and textures, `ignored` counts what has no effect.
    """

    def __init__(self, folder: Path):
        self.materials: list[Material] = []
        self.textures: list[Texture] = []
        self.ignored = Counter[str]()
        self.linked: dict[Path, tuple[int, int] | None] = {}
        self.base = self._folder = folder  # `base`: folder of the library that is being read
        self._pixels: dict[Path, np.ndarray | None] = {}  # the pictures that were read; None: unreadable
        self._rows: dict[tuple[object, ...], int] = {}  # index in `textures` by file, conversion and options
        self._total = 0  # pixels of all pictures

    def material(self, entry: Entry) -> Material:
        """Converts an entry to a Material of glTF's model.

        Keys of the MTL format: Kd, Ks, Ke are diffuse, specular and emitted colors, Tf the filter of transmitted light,
        Ns the Blinn-Phong exponent, Ni the index of refraction, d the opacity and Tr its complement, illum the number
        of an illumination model. Pr, Pm, Ps, Pc, Pcr, aniso and anisor are the PBR extension: roughness, metallic,
        sheen, clear coat and its roughness, anisotropy and its rotation.
        """
        number, color = entry.numbers.get, entry.colors.get

        def fraction(key: str, default: float = 0.0) -> float:
            return float(np.clip(number(key, default), 0, 1))

        illum, exponent = int(number("illum", 2.0)), max(number("Ns", 0.0), 0.0)
        glass = illum in GLASS
        diffuse = _clipped(color("Kd", (0.8, 0.8, 0.8)))
        if "map_Kd" in entry.maps and not any(diffuse):
            diffuse = (1.0, 1.0, 1.0)  # some exporters write a Kd of 0 beside a map
        alpha, sheen = fraction("d", 1.0 - number("Tr", 0.0)), fraction("Ps")
        base = _clipped(color("Tf", (1.0, 1.0, 1.0))) if glass else diffuse
        shiny = illum >= 2 and ("Ks" in entry.colors or "Pr" in entry.numbers or "map_Ks" in entry.maps)
        specular = np.clip(color("Ks", (0.5, 0.5, 0.5)), 0, 1) / 0.5
        blends = not glass and (alpha < 1 or "map_d" in entry.maps or "map_Tr" in entry.maps)
        out = Material(
            name=entry.name,
            color=(*base, 1.0 if glass else alpha),
            metallic=fraction("Pm"),
            roughness=fraction("Pr", float(roughness_from_exponent(exponent))),
            emission=tuple(np.clip(color("Ke", (1.0,) * 3 if "map_Ke" in entry.maps else (0.0,) * 3), 0, 1e6)),
            alpha="BLEND" if blends else "OPAQUE",
            ior=float(np.clip(number("Ni", 1.5), 1, 10)) if glass else 1.5,
            specular=1.0 if shiny else 0.0,
            specular_color=tuple(float(s) for s in specular) if shiny else (1.0, 1.0, 1.0),
            clearcoat=fraction("Pc"),
            clearcoat_roughness=fraction("Pcr"),
            sheen_color=(sheen,) * 3,
            sheen_roughness=0.5 if sheen or "map_Ps" in entry.maps else 0.0,  # the format gives none
            transmission=1.0 if glass else 0.0,
            anisotropy=fraction("aniso"),
            anisotropy_rotation=float(2 * np.pi * number("anisor", 0.0)),
        )
        return self._with_maps(out, entry, exponent)

    def _with_maps(self, material: Material, entry: Entry, exponent: float) -> Material:
        """Adds the texture slots of the entry's maps to `material`."""
        slots: dict[str, TextureSlot | None] = {}
        for word, picture in entry.maps.items():
            name = SLOTS[word]
            if word == "map_Ns" and "Pr" in entry.numbers:
                self.ignored[f"{word} materials"] += 1
            elif name == "normal":
                slots[name] = self._normal_slot(picture, word)
            elif word in COLOR_MAPS:
                slots[name] = self._slot(picture, word, lambda pixels: pixels)
            else:
                kind = f"{word} {exponent}" if word == "map_Ns" else word
                make = partial(_scalar_pixels, picture=picture, word=word, exponent=exponent)
                slots[name] = self._slot(picture, kind, make)
                # Pr scales map_Pr; but Ns, as `exponent`, is in the pixels of map_Ns already.
                if name in NEUTRAL and (word == "map_Ns" or word[4:] not in entry.numbers):
                    material = replace(material, **{name: NEUTRAL[name]})
        return replace(material, textures={name: slot for name, slot in slots.items() if slot})

    def _normal_slot(self, picture: Map, word: str) -> TextureSlot | None:
        """The slot of a normal map; a gray picture is taken as a height map and converted to normals."""
        strength = picture.number("-bm", 0, 1.0)
        pixels = self._read(picture.name)
        if pixels is not None and word == "map_Bump" and is_gray(pixels):
            height = strength * BUMP_HEIGHT
            return self._slot(picture, f"{word} {strength}", lambda gray: normals_from_heights(gray[..., 0], height))
        slot = self._slot(picture, word, lambda p: p)
        return replace(slot, scale=float(np.clip(strength, -100, 100))) if slot else None

    def _slot(self, picture: Map, kind: str, make: Callable[[np.ndarray], np.ndarray]) -> TextureSlot | None:
        """The slot of a map whose pixels make(pixels) converts; None if its picture cannot be read.

        `kind` names the conversion: the map's keyword, then what else it depends on. Maps of equal picture, conversion
        and options share a texture.
        """
        pixels = self._read(picture.name)
        for option in picture.options:
            is_scale_read = option == "-mm" and kind.split()[0] in SCALAR_MAPS
            if option not in (*SILENT_OPTIONS, *READ_OPTIONS) and not is_scale_read:
                self.ignored[f"{option} options"] += 1
        if pixels is None:
            return None
        clamp = picture.options.get("-clamp") == ["on"]
        key = picture.name, kind, clamp, repr(sorted(picture.options.items()))
        if key not in self._rows:
            self._rows[key] = len(self.textures)
            made = np.ascontiguousarray(make(pixels), "u1")
            made.flags.writeable = False
            self.textures.append(Texture(made, ("clamp", "clamp") if clamp else ("repeat", "repeat")))
        scale_u, scale_v = picture.number("-s", 0, 1.0), picture.number("-s", 1, 1.0)
        move_u, move_v = picture.number("-o", 0, 0.0), picture.number("-o", 1, 0.0)
        transform = (scale_u, 0.0, move_u, 0.0, scale_v, 1.0 - scale_v - move_v)  # .mtl has v upwards, glTF downwards
        return TextureSlot(self._rows[key], 0, transform)

    def _read(self, name: str) -> np.ndarray | None:
        """Reads a picture beside the library or the model, once; None, and a count in `ignored`, if that fails."""
        file = find_beside(self._folder, name, PICTURES, self.base)
        if file is None:
            self.ignored[absence(name)] = 1
            self.linked[_beside(self._folder, name)] = None
            return None
        if file not in self._pixels:
            self.linked[file] = file_stamp(file)
            try:
                self._pixels[file] = read_pixels(file)
            except InputError:
                self._pixels[file] = None
                self.ignored[f"unreadable {name} files"] = 1
            else:
                self._total += self._pixels[file].shape[0] * self._pixels[file].shape[1]  # type: ignore[union-attr]
                if self._total > MAX_TOTAL_PIXELS:
                    raise MeshError(f"its maps have more than the {MAX_TOTAL_PIXELS} pixels allowed")
        return self._pixels[file]


def roughness_from_exponent(exponent: float | np.ndarray) -> float | np.ndarray:
    """Converts a Blinn-Phong exponent to perceptual roughness, the square root of the microfacet width."""
    return (2.0 / (exponent + 2.0)) ** 0.25


def _clipped(color: tuple[float, ...]) -> tuple[float, float, float]:
    r, g, b = (float(np.clip(c, 0, 1)) for c in color)
    return r, g, b


def _scalar_pixels(pixels: np.ndarray, picture: Map, word: str, exponent: float) -> np.ndarray:
    """Extracts one channel of a map, scaled by the gain and base of -mm, replicated to four channels.

    The channel is the one of -imfchan; else luminance ("l"), or for opacity the matte channel ("m", alpha) unless the
    image is opaque. The transparency of map_Tr is inverted to opacity. map_Ns, times `exponent`, becomes roughness.
    """
    is_opacity = word in ("map_d", "map_Tr") and not (pixels[..., 3] == 255).all()
    channel = (picture.options.get("-imfchan") or ["m" if is_opacity else "l"])[0]
    values = pixels[..., CHANNELS.get(channel, 0)].astype("f8")
    if channel == "l":
        values = pixels[..., :3] @ LUMINANCE
    base, gain = picture.number("-mm", 0, 0.0), picture.number("-mm", 1, 1.0)
    values = np.clip(values * gain + 255 * base, 0, 255)
    if word == "map_Tr":
        values = 255 - values
    elif word == "map_Ns":
        values = 255 * np.asarray(roughness_from_exponent(values / 255 * exponent))
    return replicated(np.rint(values).astype("u1"))
