"""Turns the records of `bench run` into the figures of report_page.py, each the answer to one question.

A figure has separate axes for each device; it also shows peers (other libraries timed in the same process) and numbers
from papers. Cases are named SUBSYSTEM/NAME/KEY=NUMBER. At least three cases that differ only in the number are points
of a curve, the others are bars.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from renderer.bench.records import case_name, latest_records
from renderer.pages.plot import PaperFigure, Plot
from renderer.paths import ASSETS
from renderer.plain import Json
from renderer.records import dataclass, field
from renderer.scene.schema import from_table
from renderer.system.files import read_toml

Series = dict[str, tuple[float | None, ...]]  # values by name, one for each x
Groups = list[tuple[str, list[Json]]]  # the title of each plot of a figure, and the last record of each case in it
PRECISION = re.compile(r"float(16|32|64)")
PARAMETER = re.compile(r"([^/=]+)=(-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:e[-+]?[0-9]{1,2})?)")
SCALING_KEYS = ("devices", "gpus", "cores", "threads", "workers", "q")  # keys whose curves are shown as speed-up
DEPTHS = ("depth", "max_depth")  # keys whose numbers are depths of rays
MAX_SERIES, MAX_ROWS, MAX_POINTS = 7, 24, 64
LOG_RANGE = 50  # largest rate / smallest rate, above which the axis of rates is logarithmic
VENDOR = {"vendor's product": "product", "a product of as many operations": "product of as many operations"}
# The lesson whose paper has the figure that is drawn beside the measured one of this name and parameter.
LESSONS = {
    ("mirrors", "max_depth"): "stencil",
    ("raytrace", "depth"): "stencil",
    ("raytrace/mirrors", "depth"): "stencil",
    ("products/thesis", "bars"): "cuda",
    ("cdollar", "bars"): "cdollar",
}


@dataclass
class ReportFigure:
    """A figure of the report: `question` is the heading, `words` the caption, `rows` the records behind the plots."""

    question: str
    words: str
    plots: list[Plot]
    rows: list[Json] = field(default_factory=list)


def paper_figure(name: str, parameter: str) -> Plot | None:
    """Returns the figure of a paper for a measured one, None if no paper has it: the first of a bundled lesson."""
    lesson = LESSONS.get((name, parameter))
    if lesson is None:
        return None
    path = ASSETS / "lessons" / lesson / "lesson.toml"
    table = next(step["paper"] for step in read_toml(path)["steps"] if "paper" in step)
    paper: PaperFigure = from_table(PaperFigure, table, str(path), path.parent)
    return paper.plot()


def grouped(rows: Iterable[Json], *keys: str) -> dict[tuple[str, ...], list[Json]]:
    """Groups the rows by their values of `keys`, in the order of first occurrence."""
    groups: dict[tuple[str, ...], list[Json]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def subsystem_name(row: Json) -> str:
    """Returns the first component of the name of a record's case."""
    return str(row["case"]).partition("/")[0]


def short_device(device: str) -> str:
    """Returns a device's name for titles, without API, index and bus: NVIDIA H200 of "NVIDIA H200 (cuda:0)"."""
    name = re.sub(r"^pthread-(\w+-)*?(?=[A-Z])| \((opencl|cuda)(:\d+)+\)$|/PCIe.*$", "", device)
    return name[:48] or "unknown device"


def peer_name(row: Json) -> str:
    """Returns the name of a record's peer; VENDOR's texts become the BLAS of the record's device."""
    name = str(row["peer"].get("name") or "peer")
    if name in VENDOR:
        return f"{'cuBLAS' if 'NVIDIA' in row['device'] else 'host BLAS'}, {VENDOR[name]}"
    return name


def subsystem_figures(subsystem: str, records: list[Json]) -> Iterator[ReportFigure]:
    """Yields the figures of one subsystem: curves over a parameter, bars, costs by depth, and rates by commit.

    The rows of a figure are records with further keys: precision, and series and x for a curve or name for bars.
    """
    curves: dict[tuple[str, str], list[Json]] = defaultdict(list)
    bars: list[Json] = []
    families = defaultdict(set)  # the numbers of the cases that differ only in a parameter: three make a curve
    for row in records:
        name, key, number = _parameter(row["case"])
        families[name, key, row["unit"]].add(number)
    for row in records:
        (name, key, number), precision = _parameter(row["case"]), PRECISION.search(row["case"])
        row = row | {"precision": precision[0] if precision else ""}
        if key and len(families[name, key, row["unit"]]) >= 3:
            curves[key, row["unit"]].append(row | {"series": case_name(name), "x": number})
        else:
            bars.append(row | {"name": case_name(row["case"])})
    for (key, unit), rows in curves.items():
        yield from _curves(subsystem, key, unit, rows)
    for (unit,), rows in grouped(bars, "unit").items():
        yield from _bars(subsystem, unit, rows)
    yield from _depths(subsystem, records)
    yield from _history(subsystem, records)


def _parameter(case: str) -> tuple[str, str, float]:
    """Splits a case's name NAME/KEY=NUMBER into (NAME, KEY, NUMBER); other names have the KEY ""."""
    name, _, last = case.rpartition("/")
    match = PARAMETER.fullmatch(last)
    return (name, match[1], float(match[2])) if match and name else (case, "", 0.0)


def _split(subsystem: str, rows: list[Json], key: str, most: int) -> Iterator[tuple[str, list[Json], Groups]]:
    """Yields the name of a figure, its rows, and for each device and precision a title and each case's last record.

    One figure, or one for each first component of row[key] if that has more than `most` values.
    """
    parts: dict[str, list[Json]] = defaultdict(list)
    is_large = len({row[key] for row in rows}) > most
    for row in rows:
        parts[f"{subsystem}/{row[key].partition('/')[0]}" if is_large else subsystem].append(row)
    for name, members in parts.items():
        groups = grouped(members, "device", "precision").values()
        yield name, members, [(_title(latest), latest) for latest in map(latest_records, groups)]


def _is_wide(series: Series) -> bool:
    """True if the values need a logarithmic axis."""
    drawn = [value for values in series.values() for value in values if value]
    return bool(drawn) and max(drawn) > LOG_RANGE * min(drawn)


def _curves(subsystem: str, key: str, unit: str, all_rows: list[Json]) -> Iterator[ReportFigure]:
    """Yields a figure for each series of cases: the rate by `key`, a plot for each device and for the paper."""
    for name, rows, groups in _split(subsystem, all_rows, "series", MAX_SERIES):
        plots, scaling = [], key in SCALING_KEYS
        for title, latest in groups:
            x = tuple(sorted({row["x"] for row in latest}))[:MAX_POINTS]
            series = _curve_series(latest, x, scaling)
            log_x = min(x) > 0 and max(x) >= 32 * min(x)
            shown_unit = "times as fast as with the fewest" if scaling else unit
            plots.append(Plot(x, series, key, shown_unit, "lines", log_x, _is_wide(series), title))
        if paper := paper_figure(name, key):
            plots.append(paper)
        words = f"{unit} by {key}." if not scaling else f"Speed-up by {key}; the dotted ideal is as many times as fast."
        yield ReportFigure(f"How does {name} depend on {key}?", words, plots, rows)


def _curve_series(rows: list[Json], x: tuple[float, ...], scaling: bool) -> Series:
    """Returns the rates at each x: a series for each case's name and one for each peer; None where none was timed.

    With `scaling` they are relative to the rate at the smallest x, an "ideal" series is added, and peers are omitted.
    """
    out: Series = {}
    peers: dict[str, dict[float, float]] = defaultdict(dict)
    for (name,), members in grouped(rows, "series").items():
        rates = {row["x"]: row["rate"] for row in members}
        first = rates[min(rates)] if scaling else 1.0
        out[name] = tuple(rates[value] / first if value in rates else None for value in x)
        for row in members:
            if "peer" in row and not scaling:
                peers[f"{peer_name(row)} ({name})"][row["x"]] = row["rate"] / row["peer"]["ratio"]
    if scaling:
        out["ideal"] = tuple(value / min(x) if min(x) > 0 else None for value in x)
    short = {name.rpartition(" (")[0] for name in peers}  # without the case, if each peer was timed beside one case
    for name, rates in peers.items():
        label = name.rpartition(" (")[0] if len(peers) == len(short) else name
        out[label] = tuple(rates.get(value) for value in x)
    return out


def _title(rows: list[Json]) -> str:
    """The device, precision and, if it is one, commit of records."""
    commits = list(dict.fromkeys(row["commit"][:8] for row in rows if row["commit"]))
    parts = short_device(rows[0]["device"]), rows[0].get("precision"), commits[0] if len(commits) == 1 else ""
    return ", ".join(filter(None, parts))


def _bars(subsystem: str, unit: str, all_rows: list[Json]) -> Iterator[ReportFigure]:
    """Yields a figure for each group of cases: rates as bars, a plot for each device and for the paper."""
    for name, rows, groups in _split(subsystem, all_rows, "name", MAX_ROWS):
        plots = []
        for title, latest in groups:
            for start in range(0, len(latest), MAX_ROWS):
                piece = latest[start : start + MAX_ROWS]
                x, series = _crossed(piece) or _plain(piece)
                plots.append(Plot(x, series, "", unit, "bars", False, _is_wide(series), title))
        if (paper := paper_figure(name, "bars")) and paper.unit[-6:] == unit[-6:]:  # GFLOP/s and TFLOP/s, for example
            plots.append(paper)
        has_several = len({row["case"] for row in rows}) > 1
        question = f"Which of {name} is the fastest?" if has_several else f"How fast is {name}?"
        yield ReportFigure(question, f"{unit}; longer bars are faster.", plots, rows)


def _plain(rows: list[Json]) -> tuple[tuple[str, ...], Series]:
    """Returns a bar for each record and one for the peer it was timed with, in a series of the peer's name."""
    names = tuple(row["name"] for row in rows)
    series: Series = {"Rayfold": tuple(row["rate"] for row in rows)}
    for peer in dict.fromkeys(peer_name(row) for row in rows if "peer" in row):
        series[peer] = tuple(
            row["rate"] / row["peer"]["ratio"] if "peer" in row and peer_name(row) == peer else None for row in rows
        )
    return names, series


def _crossed(rows: list[Json]) -> tuple[tuple[str, ...], Series] | None:
    """Returns the rates as a table, names by parameter values, such as tile=4/row, tile=8/row, tile=4/coalesced, ...

    None unless every combination was timed once, there are at least two of each, and no record has a peer.
    """
    cells: dict[tuple[str, str], float] = {}
    for row in rows:
        parts = row["name"].split("/")
        parameters = [part for part in parts if PARAMETER.fullmatch(part)]
        if len(parameters) != 1 or "peer" in row:
            return None
        cells["/".join(part for part in parts if part != parameters[0]), parameters[0]] = row["rate"]
    names, numbers = (tuple(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    if len(cells) != len(rows) or len(numbers) < 2 or len(names) < 2 or len(cells) != len(names) * len(numbers):
        return None
    return names, {number: tuple(cells[name, number] for name in names) for number in numbers}


def _depths(subsystem: str, records: list[Json]) -> Iterator[ReportFigure]:
    """Yields a figure for each scene timed at depths 1, 2, ...: milliseconds that a depth adds, percent of active rays.

    A stencil word holds the active-ray bits of 32 rays; an empty word is skipped.
    """
    named = [(row, *_parameter(row["case"])) for row in records]
    rows = [row | {"family": name, "depth": int(number)} for row, name, key, number in named if key in DEPTHS]
    for (family, _device), members in grouped(rows, "family", "device").items():
        # records with a count of active rays for each depth; of these, every depth from 1 is needed
        by_depth = {row["depth"]: row for row in members if len(row.get("active rays", ())) == row["depth"] > 0}
        depths = tuple(range(1, len(by_depth) + 1))
        if sorted(by_depth) != list(depths) or len(by_depth) < 2 or not by_depth[depths[-1]]["active rays"][0]:
            continue
        last, before, added = by_depth[depths[-1]], 0.0, []
        for depth in depths:
            added.append(max(0.0, by_depth[depth]["median_ms"] - before))
            before = by_depth[depth]["median_ms"]
        active = last["active rays"]
        series: Series = {"active rays": tuple(100 * n / active[0] for n in active)}
        empty = last.get("empty stencil words", [])
        if len(empty) == len(active):
            series["words skipped"] = tuple(100 * n / -(-active[0] // 32) for n in empty)
        plots = [
            Plot(depths, {"time": tuple(added)}, "depth", "ms that the depth adds", title=_title([last])),
            Plot(depths, series, "depth", "%", title="Rays and words of the same"),
        ]
        words = "The milliseconds that each depth adds, and the rays that live there."
        yield ReportFigure(f"What does each depth of {family} cost?", words, plots, list(by_depth.values()))


def _history(subsystem: str, records: list[Json]) -> Iterator[ReportFigure]:
    """Yields a figure of cases timed at several commits on one device: their rates relative to the first commit."""
    plots, behind = [], []
    for (device,), rows in grouped(records, "device").items():
        cases = {}
        for (case, _), members in grouped(rows, "case", "unit").items():
            rates = {row["commit"][:8] or "unknown": row["rate"] for row in members}
            if len(rates) > 1:
                cases[case_name(case)] = rates
                behind += members
        for start in range(0, len(cases), MAX_ROWS):
            piece = dict(list(cases.items())[start : start + MAX_ROWS])
            commits = list(dict.fromkeys(commit for rates in piece.values() for commit in rates))[:MAX_SERIES]
            series = {
                c: tuple(r[c] / next(iter(r.values())) if c in r else None for r in piece.values()) for c in commits
            }
            plots.append(Plot(tuple(piece), series, "", "rate / first rate", "bars", title=short_device(device)))
    if plots:
        words = "Each case's rate over its first one, by commit. A history, never a verdict."
        yield ReportFigure(f"How has {subsystem} changed?", words, plots, behind)
