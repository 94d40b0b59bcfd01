"""Maps file names to the views of a camera array; light_field.py calls find_views() for a folder or zip.

Supported conventions: Stanford archive names, the XML of Stanford's viewer, the HCI 4D light field benchmark, and a
pattern given by the user.
"""

import configparser
import math
import re

import numpy as np

from renderer.errors import InputError
from renderer.formats.archive import Folder, Zip
from renderer.formats.xml import parse_xml
from renderer.plain import quoted
from renderer.records import dataclass

IMAGE_SUFFIXES = ("png", "jpg", "jpeg", "tif", "tiff", "bmp", "webp", "ppm")
STANFORD = re.compile(r"(?:.*_)?(\d+)_(\d+)_(-?\d+(?:\.\d+)?)_(-?\d+(?:\.\d+)?)_?\.(?:png|jpe?g|tiff?)", re.IGNORECASE)
HCI = re.compile(r"input_Cam(\d{3})\.(?:png|jpe?g)", re.IGNORECASE)
RAW = (".lfp", ".lfr", ".raw")  # files of Lytro cameras, which are refused with advice
MAX_GRID = 1 << 8  # rows of views, and columns of views
MAX_POSITION = 1e18  # greatest coordinate of a camera, in any unit
ACCEPTED = (  # the conventions, for errors
    "out_ROW_COLUMN_V_U.png with or without a last _ (Stanford), an .xml that lists subaperture src, u, v (Stanford's "
    "viewer), input_Cam000.png and on (HCI), or a pattern with {row} and {col}, {v} and {u}, or {index}"
)
PATTERN_FIELDS = ({"row", "col"}, {"u", "v"}, {"index"}, {"row", "col", "u", "v"})  # sets of names that place a view


@dataclass(frozen=True)
class ViewFile:
    """One view before it is decoded: its file, its row and column, and its camera position (NaN if unknown)."""

    name: str
    row: int
    column: int
    v: float = math.nan  # downwards, any unit
    u: float = math.nan  # to the right


@dataclass(frozen=True)
class ViewList:
    """The files of the views of a `rows` x `columns` array, row by row."""

    convention: str
    files: tuple[ViewFile, ...]
    rows: int
    columns: int


def find_views(archive: Folder | Zip, pattern: str, grid: tuple[int, int]) -> ViewList:
    """Finds the views in a folder or zip; `pattern` replaces the known conventions if it is not empty.

    `grid` (rows, columns) arranges views that are only numbered; (0, 0) if unknown. InputError, with the files and the
    accepted conventions, if no convention matches.
    """
    images = [name for name in archive.names if name.rpartition(".")[2].lower() in IMAGE_SUFFIXES]
    if pattern:
        return _match_pattern(archive, images, pattern, grid)
    for convention in (_stanford, _viewer_xml, _hci):
        views = convention(archive, images, grid)
        if views is not None:
            return views
    raws = [name for name in archive.names if name.lower().endswith(RAW)]
    if raws:
        raise InputError(
            f"{archive.path}: {raws[0]} is a Lytro raw file, which only decodes with its camera's own calibration "
            "images; PlenoptiCam and the Light Field Toolbox convert it to views that can be read here"
        )
    names = ", ".join(archive.names[:6]) + (f" and {len(archive.names) - 6} more" if len(archive.names) > 6 else "")
    raise InputError(f"{archive.path}: no light field: found {names or 'no file'}; accepted are {ACCEPTED}")


def _stanford(archive: Folder | Zip, images: list[str], grid: tuple[int, int]) -> ViewList | None:
    matches = [(name, STANFORD.fullmatch(name)) for name in images]
    files = [ViewFile(name, int(m[1]), int(m[2]), float(m[3]), float(m[4])) for name, m in matches if m]
    return _view_list(archive, "Stanford names", files) if len(files) > 1 else None


def _viewer_xml(archive: Folder | Zip, images: list[str], grid: tuple[int, int]) -> ViewList | None:
    for name in archive.names:
        if name.lower().endswith(".xml"):
            positions = _subapertures(archive, name)
            if positions:
                return _from_positions(archive, "viewer XML", positions, set(images))
    return None


def _subapertures(archive: Folder | Zip, name: str) -> list[tuple[str, float, float]]:
    """Returns (file name, v, u) of every subaperture element of an XML file."""
    root = parse_xml(archive.read(name), archive.full_name(name))
    positions = []
    for element in root.iter("subaperture"):
        try:
            source, u, v = element.attrib["src"], float(element.attrib["u"]), float(element.attrib["v"])
        except (KeyError, ValueError) as error:
            attributes = dict(list(element.attrib.items())[:4])
            raise InputError(f"{archive.full_name(name)}: a subaperture needs src, u and v: {attributes}") from error
        if not (math.isfinite(u) and math.isfinite(v)):
            raise InputError(
                f"{archive.full_name(name)}: subaperture {source}: u is {u}, v is {v}; both must be finite"
            )
        positions.append((source.replace("\\", "/").rpartition("/")[2], v, u))
    return positions


def _hci(archive: Folder | Zip, images: list[str], grid: tuple[int, int]) -> ViewList | None:
    matches = [(name, HCI.fullmatch(name)) for name in images]
    numbered = [(name, int(match[1])) for name, match in matches if match]
    if len(numbered) < 2:
        return None
    return _from_numbers(archive, "HCI names", numbered, grid if all(grid) else _hci_grid(archive) or (0, 0))


def _hci_grid(archive: Folder | Zip) -> tuple[int, int] | None:
    """Reads rows and columns from the benchmark's parameters.cfg; None without a valid file."""
    if "parameters.cfg" not in archive.names:
        return None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(archive.read("parameters.cfg").decode("utf-8", "replace"))
        section = parser["extrinsics"]
        grid = int(section["num_cams_y"]), int(section["num_cams_x"])
    except (configparser.Error, KeyError, ValueError):
        return None
    return grid if 1 <= min(grid) and max(grid) <= MAX_GRID else None


def _from_numbers(
    archive: Folder | Zip, convention: str, numbered: list[tuple[str, int]], grid: tuple[int, int]
) -> ViewList:
    """Arranges views that are numbered row by row from 0 on `grid`, or on a square if that is (0, 0)."""
    count = max(number for _, number in numbered) + 1
    side = math.isqrt(count)
    if not all(grid) and side * side != count:
        raise InputError(f"{archive.path}: {count} numbered views make no square; set grid = [rows, columns]")
    rows, columns = grid if all(grid) else (side, side)
    files = [ViewFile(name, number // columns, number % columns) for name, number in numbered]
    return _view_list(archive, convention, files, (rows, columns))


def pattern_fields(pattern: str) -> set[str]:
    """Returns the names in braces of a pattern; ValueError if they place no view."""
    fields = set(re.findall(r"\{(\w+)\}", pattern))
    if fields not in PATTERN_FIELDS or len(fields) != pattern.count("{"):
        needed = "{row} and {col}, {v} and {u}, or {index}, each once"
        raise ValueError(f"pattern is {quoted(pattern)}; it must name {needed}")
    return fields


def _match_pattern(archive: Folder | Zip, images: list[str], pattern: str, grid: tuple[int, int]) -> ViewList:
    """Finds the views whose names match a pattern with {row} and {col}, {v} and {u}, or {index}."""
    try:
        fields = pattern_fields(pattern)
    except ValueError as error:
        raise InputError(f"{archive.path}: {error}") from error
    number = r"-?\d+(?:\.\d+)?"
    groups = {f"{{{f}}}": f"(?P<{f}>{number if f in 'uv' else r'[0-9]+'})" for f in fields}
    regex = re.compile("".join(groups.get(part, re.escape(part)) for part in re.split(r"(\{\w+\})", pattern)))
    matches = [(name, regex.fullmatch(name)) for name in images]
    named = [(name, match.groupdict()) for name, match in matches if match]
    if not named:
        names = ", ".join(images[:6]) or "no image"
        raise InputError(
            f"{archive.path}: nothing matches the pattern {pattern!r}; found {names}; accepted are {ACCEPTED}"
        )
    if "index" in fields:
        first = min(int(m["index"]) for _, m in named)
        return _from_numbers(archive, "pattern", [(name, int(m["index"]) - first) for name, m in named], grid)
    if "row" not in fields:
        positions = [(name, float(m["v"]), float(m["u"])) for name, m in named]
        return _from_positions(archive, "pattern", positions, set(images))
    files = [
        ViewFile(name, int(m["row"]), int(m["col"]), float(m.get("v", "nan")), float(m.get("u", "nan")))
        for name, m in named
    ]
    return _view_list(archive, "pattern", files)


def _from_positions(
    archive: Folder | Zip, convention: str, positions: list[tuple[str, float, float]], present: set[str]
) -> ViewList:
    """Assigns rows and columns to views with known (v, u) only: nearly equal v form a row, nearly equal u a column."""
    for name, v, u in positions:
        if not max(abs(v), abs(u)) < MAX_POSITION:
            raise InputError(f"{archive.path}: {name}: u is {u:g}, v is {v:g}; both must be below {MAX_POSITION:g}")
    rows, columns = _clusters([v for _, v, _ in positions]), _clusters([u for _, _, u in positions])
    cells = zip(positions, rows, columns, strict=True)
    files = [ViewFile(name, row, column, v, u) for (name, v, u), row, column in cells if name in present]
    return _view_list(archive, convention, files, (max(rows) + 1, max(columns) + 1))


def _clusters(values: list[float]) -> list[int]:
    """Returns the cluster number of each coordinate; a gap wider than half of the widest gap separates clusters."""
    ordered = np.unique(values)
    gaps = np.diff(ordered)
    wide = gaps > gaps.max(initial=0) / 2
    clusters: list[int] = np.searchsorted(ordered[:-1][wide] + gaps[wide] / 2, values).tolist()
    return clusters


def _view_list(
    archive: Folder | Zip, convention: str, files: list[ViewFile], grid: tuple[int, int] | None = None
) -> ViewList:
    """Makes the ViewList of `grid`, or of the smallest array that contains all files.

    InputError for a view outside of the array, for two files of one view, and for no files.
    """
    if not files:
        raise InputError(f"{archive.path}: none of the images that the light field names exists")
    top, left = (0, 0) if grid else (min(f.row for f in files), min(f.column for f in files))
    files = [ViewFile(f.name, f.row - top, f.column - left, f.v, f.u) for f in files]
    rows, columns = grid or (max(f.row for f in files) + 1, max(f.column for f in files) + 1)
    names: dict[tuple[int, int], str] = {}
    for file in files:
        if file.row >= rows or file.column >= columns or max(rows, columns) > MAX_GRID:
            raise InputError(
                f"{archive.full_name(file.name)}: row {file.row}, column {file.column} is outside of an array of "
                f"{min(rows, MAX_GRID)} x {min(columns, MAX_GRID)} views"
            )
        other = names.setdefault((file.row, file.column), file.name)
        if other != file.name:
            raise InputError(f"{archive.path}: {other} and {file.name} are the same view of the array")
    return ViewList(convention, tuple(sorted(files, key=lambda f: (f.row, f.column))), rows, columns)
