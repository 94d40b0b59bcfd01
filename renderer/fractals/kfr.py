"""Reads locations of Kalles Fraktaler (.kfr): lines `Key: value`, which hold the view, the formula and colors.

Source: the parameter files of Kalles Fraktaler 2 (K. Runmo, C. Heiland-Allen). Its picture is 4 / Zoom high, and its
imaginary axis points down unless ImagPointsUp is 1.
"""

from decimal import Context, Decimal
from pathlib import Path
from typing import Any

from renderer.errors import InputError
from renderer.fractals.settings import Settings
from renderer.plain import format_names, format_value, parse_whole
from renderer.scene.schema import DECIMAL, MAX_INTEGER, from_table
from renderer.system.files import read_text

MAX_BYTES = 1 << 20
KINDS = {"0": "mandelbrot", "1": "burning_ship", "4": "tricorn"}  # by FractalType
READ = ("Re", "Im", "Zoom", "Iterations", "FractalType", "Power", "ImagPointsUp")


def read_kfr(path: Path) -> tuple[Settings, tuple[str, ...]]:
    """The settings of a .kfr file, and a sentence on the keys that are not read. Raises InputError."""
    pairs = (line.partition(":") for line in read_text(path, MAX_BYTES).splitlines())
    found = {key.strip(): value.strip() for key, colon, value in pairs if colon}
    if missing := [key for key in READ[:3] if key not in found]:
        raise InputError(f"{path}: has no line {missing[0]}: ...; a place has Re, Im and Zoom")
    kind = found.get("FractalType", "0")
    if kind not in KINDS:
        allowed = ", ".join(f"{number} ({name})" for number, name in KINDS.items())
        raise InputError(f"{path}: FractalType is {format_value(kind)}; allowed are {allowed}")
    zoom, center = found["Zoom"], [found["Re"], found["Im"]]
    # without traps, a division by zero gives infinity, which is refused below
    height = Context(prec=20, traps=[]).divide(Decimal(4), Decimal(zoom)) if DECIMAL.fullmatch(zoom) else Decimal(0)
    if height <= 0 or not height.is_finite():
        raise InputError(f"{path}: Zoom is {format_value(zoom)}; it must be a number above 0")
    table: dict[str, Any] = {"kind": KINDS[kind], "view": {"center": center, "height": str(height)}}
    if found.get("ImagPointsUp", "0") != "1":
        table["view"]["y_axis"] = "down"
    for key, name in (("Iterations", "max_iterations"), ("Power", "power")):
        if key in found:
            number = parse_whole(found[key], 0, MAX_INTEGER)
            table[name] = found[key] if number is None else number  # from_table() names what is wrong
    unread = [key for key in found if key not in READ]
    notes = (f"of {path.name}, these are not read: {format_names(unread)}",) if unread else ()
    return from_table(Settings, table, str(path), None), notes
