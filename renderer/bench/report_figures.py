"""Records as figures: one a question, each device on axes of its own, peers and papers beside.

A case's name says what it belongs to: SUBSYSTEM/WHAT/KEY=NUMBER. Cases that differ in a number are points of a curve,
others are bars.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from renderer.bench.papers import PAPERS
from renderer.pages.plot import Plot

PARAMETER = re.compile(r"([^/=]+)=(-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:e[-+]?[0-9]{1,2})?)")
SCALING_KEYS = ("devices", "gpus", "cores", "threads", "workers", "q")  # keys whose curves are shown as speed-up
MAX_SERIES, MAX_ROWS, MAX_POINTS = 7, 24, 64
LOG_RANGE = 50  # of rates, above which their axis is logarithmic
VENDOR = {"vendor's product": "product", "a product of as many operations": "product of as many operations"}


@dataclass
class ReportFigure:
    """A question, what answers it, and the records behind it."""

    question: str
    words: str
    plots: list[Plot]
    rows: list[dict] = field(default_factory=list)


def grouped(rows: Iterable[dict], *keys: str) -> dict[tuple, list[dict]]:
    """The rows by the values of these keys."""
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def subsystem_of(row: dict) -> str:
    """The first part of a case's name."""
    return row["case"].partition("/")[0]


def short_device(device: str) -> str:
    """A device's name without the numbers that distinguish equal ones, for titles."""
    name = re.sub(r"^pthread-(\w+-)*?(?=[A-Z])| \((opencl|cuda)(:\d+)+\)$|/PCIe.*$", "", device)
    return name[:48] or "unknown device"


def peer_name(row: dict) -> str:
    """What a record's peer is, by its own name; "the vendor's" depends on the device."""
    name = str(row["peer"].get("name") or "peer")
    if name in VENDOR:
        return f"{'cuBLAS' if 'NVIDIA' in row['device'] else 'host BLAS'}, {VENDOR[name]}"
    return name


def figures_of(subsystem: str, records: list[dict]) -> Iterator[ReportFigure]:
    """The figures of one subsystem's records; every record is in one of them, or in none."""
    curves: dict[tuple, list[dict]] = defaultdict(list)
    bars: list[dict] = []
    families = defaultdict(set)
    for row in records:
        if found := _parameter(row["case"]):
            families[found[0], found[1], row["unit"]].add(found[2])
    for row in records:
        found = _parameter(row["case"])
        if found and len(families[found[0], found[1], row["unit"]]) >= 3:
            curves[found[1], row["unit"]].append(row | {"series": _rest(found[0]), "x": found[2]})
        else:
            bars.append(row | {"name": _rest(row["case"])})
    for (key, unit), rows in curves.items():
        yield from _curves(subsystem, key, unit, rows)
    for (unit,), rows in grouped(bars, "unit").items():
        yield from _bars(subsystem, unit, rows)
    yield from _depths(subsystem, records)
    yield from _history(subsystem, records)


def _parameter(case: str) -> tuple[str, str, float] | None:
    """The name before the last part, and this part's key and number; None where it is none."""
    before, _, last = case.rpartition("/")
    found = PARAMETER.fullmatch(last)
    return (before, found[1], float(found[2])) if found and before else None


def _rest(case: str) -> str:
    """The name without its subsystem."""
    return case.partition("/")[2] or case


def _latest(rows: Iterable[dict]) -> list[dict]:
    """Of the records of each case the last one."""
    return list({row["case"]: row for row in rows}.values())


def _split(rows: list[dict], key: str, most: int) -> Iterator[tuple[str, list[dict]]]:
    """The rows at once, or by the first part of `key` where its names are too many for one figure."""
    if len({row[key] for row in rows}) <= most:
        yield "", rows
        return
    parts: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        parts[row[key].partition("/")[0]].append(row)
    yield from parts.items()


def _curves(subsystem: str, key: str, unit: str, all_rows: list[dict]) -> Iterator[ReportFigure]:
    for part, rows in _split(all_rows, "series", MAX_SERIES):
        plots, scaling = [], key in SCALING_KEYS
        for (device,), members in grouped(rows, "device").items():
            latest = _latest(members)
            x = tuple(sorted({row["x"] for row in latest}))[:MAX_POINTS]
            series = _curve_series(latest, x, scaling)
            drawn = [value for values in series.values() for value in values if value]
            log_x = min(x) > 0 and max(x) >= 32 * min(x)
            log_y = bool(drawn) and max(drawn) > LOG_RANGE * min(drawn)
            shown_unit = "times as fast as with the fewest" if scaling else unit
            plots.append(Plot(_title(device, latest), x, series, key, shown_unit, log_x=log_x, log_y=log_y))
        name = f"{subsystem}/{part}" if part else subsystem
        if paper := PAPERS.get((name, key)):
            plots.append(paper)
        words = f"{unit} by {key}." if not scaling else f"Speed-up by {key}; the dotted ideal is as many times as fast."
        yield ReportFigure(f"How does {name} depend on {key}?", words, plots, rows)


def _curve_series(rows: list[dict], x: tuple, scaling: bool) -> dict[str, tuple[float | None, ...]]:
    """The rates by name over x, and those of each peer by its own name."""
    out: dict[str, tuple[float | None, ...]] = {}
    peers: dict[str, dict[float, float]] = defaultdict(dict)
    for (name,), members in grouped(rows, "series").items():
        rates = {row["x"]: row["rate"] for row in members}
        first = rates[min(rates)] if scaling else 1.0
        out[name] = tuple(rates[at] / first if at in rates else None for at in x)
        for row in members:
            if "peer" in row and not scaling:
                peers[f"{peer_name(row)} ({name})"][row["x"]] = row["rate"] / row["peer"]["ratio"]
    if scaling:
        out["ideal"] = tuple(at / min(x) if min(x) > 0 else None for at in x)
    short = {name.rpartition(" (")[0] for name in peers}
    for name, rates in peers.items():
        label = name.rpartition(" (")[0] if len(peers) == len(short) else name
        out[label] = tuple(rates.get(at) for at in x)
    return out


def _title(device: str, rows: list[dict]) -> str:
    commits = list(dict.fromkeys(row["commit"][:8] for row in rows if row["commit"]))
    return f"{short_device(device)}{f', {commits[0]}' if len(commits) == 1 else ''}"


def _bars(subsystem: str, unit: str, all_rows: list[dict]) -> Iterator[ReportFigure]:
    for part, rows in _split(all_rows, "name", MAX_ROWS):
        plots = []
        for (device,), members in grouped(rows, "device").items():
            latest = _latest(members)
            for start in range(0, len(latest), MAX_ROWS):
                piece = latest[start : start + MAX_ROWS]
                x, series = _crossed(piece) or _plain(piece)
                drawn = [value for values in series.values() for value in values if value]
                log = max(drawn) > LOG_RANGE * min(drawn)
                plots.append(Plot(_title(device, piece), x, series, "", unit, "bars", log_y=log))
        name = f"{subsystem}/{part}" if part else subsystem
        if (paper := PAPERS.get((name, "bars"))) and paper.unit[-6:] == unit[-6:]:
            plots.append(paper)
        question = (
            f"Which of {name} is the fastest?" if len({row["case"] for row in rows}) > 1 else f"How fast is {name}?"
        )
        yield ReportFigure(question, f"{unit}; longer bars are faster.", plots, rows)


def _plain(rows: list[dict]) -> tuple[tuple[str, ...], dict[str, tuple[float | None, ...]]]:
    """A bar for each record, and one for each peer by its own name."""
    names = tuple(row["name"] for row in rows)
    series: dict[str, tuple[float | None, ...]] = {"Rayfold": tuple(row["rate"] for row in rows)}
    for peer in dict.fromkeys(peer_name(row) for row in rows if "peer" in row):
        series[peer] = tuple(
            row["rate"] / row["peer"]["ratio"] if "peer" in row and peer_name(row) == peer else None for row in rows
        )
    return names, series


def _crossed(rows: list[dict]) -> tuple[tuple[str, ...], dict[str, tuple[float | None, ...]]] | None:
    """Names by the numbers that they were timed with, where each name has each: `tile=4/row`, `tile=8/row`, ..."""
    cells: dict[tuple[str, str], float] = {}
    for row in rows:
        parts = row["name"].split("/")
        found = [part for part in parts if PARAMETER.fullmatch(part)]
        if len(found) != 1 or "peer" in row:
            return None
        cells["/".join(part for part in parts if part != found[0]), found[0]] = row["rate"]
    names, numbers = (tuple(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
    if len(cells) != len(rows) or len(numbers) < 2 or len(names) < 2 or len(cells) != len(names) * len(numbers):
        return None
    return names, {number: tuple(cells[name, number] for name in names) for number in numbers}


def _depths(subsystem: str, records: list[dict]) -> Iterator[ReportFigure]:
    """For scenes timed at depths 1, 2, ... with their active rays: what each depth adds, and who still works."""
    found = [(row, _parameter(row["case"])) for row in records]
    rows = [row | {"family": at[0], "depth": int(at[2])} for row, at in found if at and at[1] in ("depth", "max_depth")]
    for (family, device), members in grouped(rows, "family", "device").items():
        line = {row["depth"]: row for row in members if len(row.get("active rays", ())) == row["depth"] > 0}
        depths = tuple(range(1, len(line) + 1))
        if sorted(line) != list(depths) or len(line) < 2 or not line[depths[-1]]["active rays"][0]:
            continue
        last, before, added = line[depths[-1]], 0.0, []
        for depth in depths:
            added.append(max(0.0, line[depth]["median_ms"] - before))
            before = line[depth]["median_ms"]
        active = last["active rays"]
        series: dict[str, tuple[float | None, ...]] = {"active rays": tuple(100 * n / active[0] for n in active)}
        empty = last.get("empty stencil words", [])
        if len(empty) == len(active):
            series["words skipped"] = tuple(100 * n / -(-active[0] // 32) for n in empty)
        plots = [
            Plot(_title(device, [last]), depths, {"time": tuple(added)}, "depth", "ms that the depth adds"),
            Plot("Rays and words of the same", depths, series, "depth", "%"),
        ]
        words = "The milliseconds that each depth adds, and the rays that live there."
        yield ReportFigure(f"What does each depth of {family} cost?", words, plots, list(line.values()))


def _history(subsystem: str, records: list[dict]) -> Iterator[ReportFigure]:
    """The cases that several commits were timed with on one device, over their first rate."""
    plots, behind = [], []
    for (device,), rows in grouped(records, "device").items():
        cases = {}
        for (case, _), members in grouped(rows, "case", "unit").items():
            rates = {row["commit"][:8] or "unknown": row["rate"] for row in members}
            if len(rates) > 1:
                cases[_rest(case)] = rates
                behind += members
        for start in range(0, len(cases), MAX_ROWS):
            piece = dict(list(cases.items())[start : start + MAX_ROWS])
            commits = list(dict.fromkeys(commit for rates in piece.values() for commit in rates))[:MAX_SERIES]
            series = {
                c: tuple(r[c] / next(iter(r.values())) if c in r else None for r in piece.values()) for c in commits
            }
            plots.append(Plot(short_device(device), tuple(piece), series, "", "rate / first rate", "bars"))
    if plots:
        words = "Each case's rate over its first one, by commit. A history, never a verdict."
        yield ReportFigure(f"How has {subsystem} changed?", words, plots, behind)
