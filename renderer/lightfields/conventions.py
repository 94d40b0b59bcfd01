"""File names to cells of a camera array: the ways in which light fields are published (research: gpgpu.md 5.4)."""

import configparser
import math
import re
from dataclasses import dataclass

from defusedxml import DefusedXmlException, ElementTree

from renderer.errors import InputError

IMAGES = ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "ppm")
STANFORD = re.compile(r"(?:.*_)?(\d+)_(\d+)_(-?\d+(?:\.\d+)?)_(-?\d+(?:\.\d+)?)_?\.(?:png|jpe?g|tiff?)", re.IGNORECASE)
HCI = re.compile(r"input_Cam(\d{3})\.(?:png|jpe?g)", re.IGNORECASE)
RAW = (".lfp", ".lfr", ".raw")
LARGEST_GRID = 1 << 8  # rows, and columns
ACCEPTED = (
    "out_ROW_COLUMN_V_U.png with or without a last _ (Stanford), an .xml that lists subaperture src, u, v (Stanford's "
    "viewer), input_Cam000.png and on (HCI), or a pattern with {row} and {col}, {v} and {u}, or {index}"
)


@dataclass(frozen=True)
class Shot:
    """One view before it is decoded: its file, its cell, and the camera's place where the field tells one."""

    name: str
    row: int
    column: int
    v: float = math.nan  # downwards, any unit
    u: float = math.nan  # to the right


@dataclass(frozen=True)
class Plan:
    """Which file is which view of a `rows` x `columns` array."""

    convention: str
    shots: tuple[Shot, ...]
    rows: int
    columns: int


def plan_of(archive, pattern: str, grid: tuple[int, int]) -> Plan:
    """The views of a folder or zip; InputError lists what was found and the accepted forms."""
    images = [name for name in archive.names if name.rpartition(".")[2].lower() in IMAGES]
    if pattern:
        return _by_pattern(archive, images, pattern, grid)
    for way in (_stanford, _viewer_xml, _hci):
        plan = way(archive, images, grid)
        if plan is not None:
            return plan
    raws = [name for name in archive.names if name.lower().endswith(RAW)]
    if raws:
        raise InputError(
            f"{archive.path}: {raws[0]} is a Lytro raw file, which only decodes with its camera's own calibration "
            "pictures; PlenoptiCam and the Light Field Toolbox turn it into views that are read here"
        )
    told = ", ".join(archive.names[:6]) + (f" and {len(archive.names) - 6} more" if len(archive.names) > 6 else "")
    raise InputError(f"{archive.path}: no light field: found {told or 'no file'}; accepted are {ACCEPTED}")


def _stanford(archive, images, grid) -> Plan | None:
    matches = [(name, STANFORD.fullmatch(name)) for name in images]
    shots = [
        Shot(name, int(match[1]), int(match[2]), float(match[3]), float(match[4])) for name, match in matches if match
    ]
    return _plan(archive, "Stanford names", shots) if len(shots) > 1 else None


def _viewer_xml(archive, images, grid) -> Plan | None:
    for name in archive.names:
        if name.lower().endswith(".xml"):
            places = _subapertures(archive, name)
            if places:
                return _of_places(archive, "viewer XML", places, set(images))
    return None


def _subapertures(archive, name: str) -> list[tuple[str, float, float]]:
    """(source, v, u) of every subaperture element."""
    try:
        root = ElementTree.fromstring(archive.read(name), forbid_dtd=True)
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError) as error:
        raise InputError(
            f"{archive.full_name(name)}: not XML that can be read: {error or type(error).__name__}"
        ) from error
    places = []
    for element in root.iter("subaperture"):
        try:
            source, u, v = element.attrib["src"], float(element.attrib["u"]), float(element.attrib["v"])
        except (KeyError, ValueError) as error:
            told = dict(list(element.attrib.items())[:4])
            raise InputError(f"{archive.full_name(name)}: a subaperture needs src, u and v: {told}") from error
        if not (math.isfinite(u) and math.isfinite(v)):
            raise InputError(
                f"{archive.full_name(name)}: subaperture {source}: u is {u}, v is {v}; both must be finite"
            )
        places.append((source.replace("\\", "/").rpartition("/")[2], v, u))
    return places


def _hci(archive, images, grid) -> Plan | None:
    matches = [(name, HCI.fullmatch(name)) for name in images]
    numbered = [(name, int(match[1])) for name, match in matches if match]
    if len(numbered) < 2:
        return None
    rows, columns = grid if all(grid) else _hci_grid(archive) or _square(max(n for _, n in numbered) + 1, archive)
    return _plan(archive, "HCI names", [Shot(name, n // columns, n % columns) for name, n in numbered], (rows, columns))


def _hci_grid(archive) -> tuple[int, int] | None:
    """Rows and columns from the benchmark's parameters.cfg, if there is one."""
    if "parameters.cfg" not in archive.names:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(archive.read("parameters.cfg").decode("utf-8", "replace"))
        section = parser["extrinsics"]
        grid = int(section["num_cams_y"]), int(section["num_cams_x"])
    except (configparser.Error, KeyError, ValueError):
        return None
    return grid if 1 <= min(grid) and max(grid) <= LARGEST_GRID else None


def _square(count: int, archive) -> tuple[int, int]:
    side = math.isqrt(count)
    if side * side != count:
        raise InputError(f"{archive.path}: {count} numbered views make no square; say grid = [rows, columns]")
    return side, side


def _by_pattern(archive, images, pattern: str, grid) -> Plan:
    """Views whose names fit a pattern with {row} and {col}, {v} and {u}, or {index}."""
    fields = set(re.findall(r"\{(\w+)\}", pattern))
    kinds = {frozenset(("row", "col")), frozenset(("u", "v")), frozenset(("index",))}
    if frozenset(fields) not in kinds | {frozenset(("row", "col", "u", "v"))} or len(fields) != pattern.count("{"):
        raise InputError(
            f"pattern {pattern!r}: must name {{row}} and {{col}}, {{v}} and {{u}}, or {{index}}, each once"
        )
    number = r"-?\d+(?:\.\d+)?"
    parts = re.split(r"(\{\w+\})", pattern)
    groups = {f"{{{f}}}": f"(?P<{f}>{number if f in 'uv' else r'[0-9]+'})" for f in fields}
    regex = re.compile("".join(groups.get(part, re.escape(part)) for part in parts))
    matches = [(name, regex.fullmatch(name)) for name in images]
    found = [(name, match.groupdict()) for name, match in matches if match]
    if not found:
        told = ", ".join(images[:6]) or "no image"
        raise InputError(f"{archive.path}: nothing fits the pattern {pattern!r}; found {told}; accepted are {ACCEPTED}")
    if "index" in fields:
        numbers = [(name, int(match["index"])) for name, match in found]
        first = min(n for _, n in numbers)
        rows, columns = grid if all(grid) else _square(max(n for _, n in numbers) - first + 1, archive)
        shots = [Shot(name, (n - first) // columns, (n - first) % columns) for name, n in numbers]
        return _plan(archive, "pattern", shots, (rows, columns))
    if "row" not in fields:
        places = [(name, float(match["v"]), float(match["u"])) for name, match in found]
        return _of_places(archive, "pattern", places, set(images))
    shots = [
        Shot(name, int(m["row"]), int(m["col"]), float(m.get("v", "nan")), float(m.get("u", "nan")))
        for name, m in found
    ]
    return _plan(archive, "pattern", shots)


def _of_places(archive, convention: str, places, present: set[str]) -> Plan:
    """Cells for views that only tell coordinates: lines of nearly equal v, and of nearly equal u, count as one."""
    rows, columns = _lines([v for _, v, _ in places]), _lines([u for _, _, u in places])
    shots = [Shot(name, rows(v), columns(u), v, u) for name, v, u in places]
    size = max(shot.row for shot in shots) + 1, max(shot.column for shot in shots) + 1
    return _plan(archive, convention, [shot for shot in shots if shot.name in present], size)


def _lines(values: list[float]):
    """A function from a coordinate to its line: the sorted values are cut at every gap wider than half the widest."""
    ordered = sorted(set(values))
    gaps = [b - a for a, b in zip(ordered, ordered[1:], strict=False)]
    if not gaps:
        return lambda value: 0
    cuts = [a + gap / 2 for a, gap in zip(ordered, gaps, strict=False) if gap > max(gaps) / 2]
    return lambda value: sum(value > cut for cut in cuts)


def _plan(archive, convention: str, shots: list[Shot], grid: tuple[int, int] | None = None) -> Plan:
    """The plan of shots on the smallest array that holds them, counted from the first row and column there is."""
    if not shots:
        raise InputError(f"{archive.path}: none of the images that the field names is there")
    top, left = (0, 0) if grid else (min(s.row for s in shots), min(s.column for s in shots))
    shots = [Shot(s.name, s.row - top, s.column - left, s.v, s.u) for s in shots]
    rows, columns = grid or (max(s.row for s in shots) + 1, max(s.column for s in shots) + 1)
    for shot in shots:
        if shot.row >= rows or shot.column >= columns or max(rows, columns) > LARGEST_GRID:
            allowed = min(rows, LARGEST_GRID), min(columns, LARGEST_GRID)
            raise InputError(
                f"{archive.full_name(shot.name)}: row {shot.row}, column {shot.column} lies outside of an array of "
                f"{allowed[0]} x {allowed[1]} views"
            )
    taken: dict[tuple[int, int], str] = {}
    for shot in shots:
        other = taken.setdefault((shot.row, shot.column), shot.name)
        if other != shot.name:
            raise InputError(f"{archive.path}: {other} and {shot.name} are the same view of the array")
    return Plan(convention, tuple(sorted(shots, key=lambda s: (s.row, s.column))), rows, columns)
