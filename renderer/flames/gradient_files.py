"""Palettes in files of other programs: .map (Fractint), .gpl (GIMP), .ugr (Ultra Fractal), .ase (Adobe swatches).

A palette is (256, 3) float64 of red, green, blue, 0 to 255. Colors of a file that are not 256 become stops at equal
distances, linear between them.
"""

import re
import struct
from pathlib import Path

import numpy as np

from renderer.errors import InputError, UserError
from renderer.flames.palettes import interpolated, resampled
from renderer.system.files import read_file

SUFFIXES = (".map", ".gpl", ".ugr", ".ase")
MAX_BYTES = 4 << 20
MAX_GRADIENTS = 4096  # most gradients of one .ugr file
UGR_LENGTH = 400  # positions of Ultra Fractal's gradients, which are circular
_UGR_STOP = re.compile(r"index=(-?\d{1,6})\s+color=(\d{1,9})\b")


def read_gradients(path: Path) -> list[tuple[str, np.ndarray]]:
    """The names and palettes of a file, by its suffix; raises InputError for a file without any."""
    data, kind = read_file(path, MAX_BYTES), path.suffix.lower()
    if kind == ".ase":
        found = [(path.stem, _ase_colors(data, path))]
    elif kind == ".ugr":
        chunks = [part.partition("{") for part in data.decode("utf-8", "replace").split("}")[:MAX_GRADIENTS]]
        found = [
            (name.strip().rpartition("\n")[2], _ugr_colors(body)) for name, _, body in chunks if "gradient:" in body
        ]
    elif kind in (".map", ".gpl"):
        rows = (
            re.match(r"\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})\b", line)
            for line in data.decode("latin-1").split("\n")
        )
        found = [(path.stem, np.array([row.groups() for row in rows if row], "f8").reshape(-1, 3))]
    else:
        raise UserError(f"{path}: no file of gradients; allowed are {', '.join(SUFFIXES)}")
    found = [(name, np.clip(resampled(colors), 0, 255)) for name, colors in found if len(colors)]
    if not found:
        raise InputError(f"{path}: holds no color of a gradient")
    return found


def _ugr_colors(body: str) -> np.ndarray:
    """(256, 3) of a gradient's stops, linear around the circle; a color is red + 256 green + 65536 blue."""
    stops = {int(at) % UGR_LENGTH: int(color) for at, color in _UGR_STOP.findall(body)}
    at, packed = np.array(sorted(stops), "i8"), np.array([stops[key] for key in sorted(stops)], "i8")
    positions = np.arange(256) * UGR_LENGTH / 256
    channels = [packed >> shift & 255 for shift in (0, 8, 16)]
    return interpolated(positions, at, np.stack(channels, 1), period=UGR_LENGTH) if stops else np.zeros((0, 3))


def _ase_colors(data: bytes, path: Path) -> np.ndarray:
    """(n, 3) of the color entries of models RGB, Gray and CMYK; all numbers of a file are big-endian.

    After 12 bytes (ASEF, version, count) come blocks: a kind (2 bytes; 1 is a color), a size (4), and of a color the
    length of its name in UTF-16 units (2), the name, a model (4), floats of the model, and a type (2).
    """
    colors, at = [], 12
    if data[:4] != b"ASEF":
        raise InputError(f"{path}: begins with {data[:4]!r}; a file of Adobe swatches begins with b'ASEF'")
    try:
        while at + 6 <= len(data):
            kind, size = struct.unpack_from(">HI", data, at)
            if kind == 1:
                model_at = at + 8 + 2 * struct.unpack_from(">H", data, at + 6)[0]
                model = data[model_at : model_at + 4]
                count = {b"RGB ": 3, b"CMYK": 4, b"Gray": 1}.get(model, 0)
                values = struct.unpack_from(f">{count}f", data, model_at + 4)
                if count == 4:
                    values = tuple((1 - value) * (1 - values[3]) for value in values[:3])
                if count and np.isfinite(values).all():
                    colors.append(values if count > 1 else values * 3)
            at += 6 + size
    except struct.error as error:
        raise InputError(f"{path}: ends within a swatch") from error
    return np.asarray(255 * np.clip(np.array(colors, "f8").reshape(-1, 3), 0, 1))


def write_gradient(path: Path, name: str, palette: np.ndarray) -> None:
    """Write a palette in the format of the path's suffix, rounded to bytes; UserError for another suffix."""
    rows = np.clip(np.round(palette), 0, 255).astype(int).tolist()
    lines = [f"{r:3d} {g:3d} {b:3d}" for r, g, b in rows]
    name = re.sub(r"[\s{};\"]+", " ", name).strip() or "gradient"
    match path.suffix.lower():
        case ".map":
            content = "\n".join(lines).encode()
        case ".gpl":
            content = "\n".join(["GIMP Palette", f"Name: {name}", "Columns: 16", "#", *lines]).encode()
        case ".ugr":
            stops = (
                f"  index={round(k * UGR_LENGTH / 256)} color={r | g << 8 | b << 16}"
                for k, (r, g, b) in enumerate(rows)
            )
            content = "\n".join([f"{name} {{", "gradient:", f'  title="{name}" smooth=no', *stops, "}"]).encode()
        case ".ase":
            # each of 22 bytes: a name that is only its end, a model, three floats, type 2 (a normal color)
            blocks = [struct.pack(">HIHH4s3fH", 1, 22, 1, 0, b"RGB ", *(c / 255 for c in row), 2) for row in rows]
            content = b"ASEF" + struct.pack(">HHI", 1, 0, len(rows)) + b"".join(blocks)
        case _:
            raise UserError(f"{path}: no file of gradients; allowed are {', '.join(SUFFIXES)}")
    path.write_bytes(content + b"\n" * (path.suffix.lower() != ".ase"))
