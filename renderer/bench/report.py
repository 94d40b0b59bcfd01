"""Plots of record files as one HTML page, and rates by commit as a table. The only user of matplotlib."""

import argparse
import base64
import html
import io
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from renderer.bench.experiment import Experiment, is_header, read_experiment
from renderer.bench.records import are_positive_integers, is_count, is_name, is_rate
from renderer.bench.verdict import shift_and_interval
from renderer.errors import InputError
from renderer.files import read_json_lines
from renderer.formats.images import atomic_write

STYLE = """
body { font: 15px system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; color: #222 }
img { max-width: 48%; margin: .5%; vertical-align: top }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
"""
PARAMETER = re.compile(r"(.+)/([^/=]+)=(-?[0-9]{1,15}(?:\.[0-9]{1,15})?(?:e[-+]?[0-9]{1,2})?)$")
SCALING_KEYS = ("devices", "gpus", "cores", "threads", "workers", "q")  # keys whose curves are shown as speed-up
MAX_BOXES = 40
NUMBERS = ("rate", "median_ms", "work")
TEXTS = ("case", "unit", "device", "commit")
BLUE, RED, GRAY = "#4477aa", "#cc3311", "#999999"

Plots = Iterator[tuple[str, Figure]]


def read_files(paths: list[Path]) -> tuple[list[dict], list[Experiment]]:
    """The records of `bench run`, each with its commit, and the experiments of `bench ab` and `aa`.

    `paths` are files or folders of them. InputError for a file that holds neither.
    """
    records: list[dict] = []
    experiments: list[Experiment] = []
    for path in paths:
        files = sorted(path.glob("**/*.jsonl")) if os.path.isdir(path) else [path]
        if not files:
            raise InputError(f"{path}: a folder without .jsonl files")
        for file in files:
            rows = read_json_lines(file)
            found = list(_records(rows))
            records += found
            if any(is_header(row) for row in rows):
                experiments.append(read_experiment(file))
            elif not found and file == path:
                raise InputError(f"{path}: holds no records of bench run")
    return records, experiments


def _records(rows: list[dict]) -> Iterator[dict]:
    commit = ""
    for row in rows:
        if "schema" in row:
            commit = str(row.get("commit", ""))
            if row.get("dirty"):
                commit = commit[:12] + "+changes"
        elif "arm" not in row:
            record = {"device": "", "commit": commit, **row}
            if _is_record(record):
                yield record


def _is_record(row: dict) -> bool:
    """Whether a row has what tables and plots need, in the right types."""
    times = [row[key] for key in ("wall_ns", "device_ns") if row.get(key) is not None]
    peer = row.get("peer", {"ratio": 1.0})
    return (
        all(is_rate(row.get(key)) for key in NUMBERS)
        and all(is_name(row.get(key)) for key in TEXTS)
        and all(map(are_positive_integers, times))
        and isinstance(peer, dict)
        and is_rate(peer.get("ratio"))
        and is_name(peer.get("name", ""))
    )


def history(args: argparse.Namespace) -> int:
    """`bench history F...`: the rate of every case in the order of the files, and its change; never a verdict."""
    records, _ = read_files(args.files)
    if not records:
        raise InputError(f"{args.files[0]}: holds no records of bench run")
    if args.json:
        keys = ("case", "commit", "rate", "unit", "median_ms", "device")
        print(json.dumps({"records": [{key: row.get(key) for key in keys} for row in records]}))
        return 0
    for (case, device, unit), rows in sorted(_grouped(records, "case", "device", "unit").items()):
        before = None
        for row in rows:
            change = f"{100 * (row['rate'] / before - 1):+7.1f}%" if before else " " * 8
            before = row["rate"]
            print(f"{case:38s} {row['commit'][:20]:20s} {before:12.4g} {unit:12s} {change}  {device}")
    return 0


def report(args: argparse.Namespace) -> int:
    """`bench report F... -o report.html`."""
    records, experiments = read_files(args.files)
    plots = [plot for kind in RECORD_PLOTS for plot in kind(records)] + list(verdict_plots(experiments))
    page = html_page(records, plots)
    with atomic_write(args.output) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print(args.output)
    return 0


def _figure(title: str, x: str, y: str = "", rows: int = 0) -> tuple[Figure, Axes]:
    """A figure with one pair of axes; its height suits `rows` named rows, or a curve for 0."""
    figure = Figure(figsize=(7, max(2.4, 0.35 * rows + 1.2) if rows else 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if rows:
        axes.tick_params(axis="y", labelsize=8)
    return figure, axes


def _legend(axes: Axes, **position: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=8, **position)


def _grouped(rows: Iterable[dict], *keys: str) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def curve_plots(records: list[dict]) -> Plots:
    """One plot for each family of cases that differ in one number: FPS by depth, rate by size, speed-up by devices.

    Where a peer was timed too, a dashed curve shows its rates.
    """
    matches = [(row, match) for row in records if (match := PARAMETER.match(row["case"]))]
    varied = [row | {"family": match[1], "key": match[2], "x": float(match[3])} for row, match in matches]
    for (family, key, unit), rows in _grouped(varied, "family", "key", "unit").items():
        if len({row["x"] for row in rows}) < 2:
            continue
        title, scaling = f"{family} by {key}", key in SCALING_KEYS
        figure, axes = _figure(title, key, "times as fast as with the fewest" if scaling else unit)
        for (device, commit), members in _grouped(rows, "device", "commit").items():
            latest = {row["x"]: row for row in members}
            _draw_rates(axes, [latest[x] for x in sorted(latest)], f"{device} {commit[:8]}".strip(), scaling)
        x = sorted({row["x"] for row in rows})
        if x[0] > 0 and x[-1] / x[0] >= 32:
            axes.set_xscale("log", base=2)
        elif all(value.is_integer() for value in x) and len(x) <= 20:
            axes.set_xticks(x)
        axes.set_ylim(bottom=0)
        if scaling:
            axes.plot([x[0], x[-1]], [1, x[-1] / x[0]], ":", color=GRAY, label="ideal")
        _legend(axes)
        yield title, figure


def _peer_name(row: dict) -> str:
    return str(row["peer"].get("name", "peer"))


def _draw_rates(axes: Axes, rows: list[dict], label: str, scaling: bool) -> None:
    """Rates with the quartiles of their runs, and the peer's rates dashed; the label says last rate / first rate.

    If `scaling`, all are divided by the first rate.
    """
    x, rates = [row["x"] for row in rows], [row["rate"] for row in rows]
    scale = 1 / rates[0] if scaling else 1.0
    if not scaling and len(rows) > 1:
        label += f" (last/first {rates[-1] / rates[0]:.2f})"
    (line,) = axes.plot(x, np.multiply(rates, scale), "o-", ms=4, label=label)
    low, high = scale * np.array([_quartiles(row) for row in rows]).T
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, lw=0)
    peers = [row for row in rows if "peer" in row]
    if peers:
        peer_rates = [scale * row["rate"] / row["peer"]["ratio"] for row in peers]
        axes.plot([row["x"] for row in peers], peer_rates, "--", color=GRAY, label=_peer_name(peers[0]))


def depth_plots(records: list[dict]) -> Plots:
    """One plot for each scene timed at depths 1, 2, ... whose records hold active rays.

    It shows the time that each depth adds, the fraction of active rays and that of empty stencil words.
    """
    rows = [
        row | {"family": match[1], "depth": int(match[2])}
        for row in records
        if (match := re.fullmatch(r"(.+)/(?:max_)?depth=([0-9]{1,4})", row["case"]))
    ]
    for (family, device, commit), members in _grouped(rows, "family", "device", "commit").items():
        line = {row["depth"]: row for row in members if _has_counts(row)}
        depths = list(range(1, len(line) + 1))
        if sorted(line) != depths or len(line) < 2:
            continue
        active = np.array(line[depths[-1]]["active rays"], float)
        title = f"{family} by depth, {device} {commit[:8]}".strip()
        figure, axes = _figure(title.replace(", ", "\n", 1), "depth", "ms that the depth adds")
        added = np.diff([0.0, *(line[depth]["median_ms"] for depth in depths)])
        axes.bar(depths, added, color=BLUE, alpha=0.6, label="time")
        percent_axes = axes.twinx()
        percent_axes.plot(depths, 100 * active / active[0], "o-", color=RED, ms=4, label="active rays")
        empty = line[depths[-1]].get("empty stencil words")
        if empty:
            percent = 100 * np.array(empty) / -(-active[0] // 32)
            percent_axes.plot(depths, percent, "s--", color=GRAY, ms=4, label="words skipped")
        percent_axes.set(ylabel="%", ylim=(0, 105))
        axes.set_xticks(depths)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
        yield title, figure


def _has_counts(row: dict) -> bool:
    """Whether a record has the active rays, and if any the empty stencil words, of each of its depths."""
    depth = row["depth"]
    lists = [row.get("active rays"), row.get("empty stencil words", [0] * depth)]
    counts = all(isinstance(n, list) and len(n) == depth and all(map(is_count, n)) for n in lists)
    return counts and depth > 0 and row["active rays"][0] > 0


def _times(row: dict) -> list[int]:
    """The time of every run in ns, by the clock of the record's rate."""
    return row.get("device_ns" if row.get("clock") == "device" else "wall_ns") or []


def _quartiles(row: dict) -> tuple[float, float]:
    """The rates between which half of the runs lie."""
    slow, fast = np.percentile(_times(row) or [row["work"] / row["rate"] * 1e9], (75, 25))
    return row["work"] / slow * 1e9, row["work"] / fast * 1e9


def bar_plots(records: list[dict]) -> Plots:
    """Bars for each family of cases of one unit that differ in their last part, such as the variants of a product."""
    rows = [row | {"family": row["case"].rpartition("/")[0]} for row in records if not PARAMETER.match(row["case"])]
    for (family, unit, device), members in _grouped(rows, "family", "unit", "device").items():
        latest = list({row["case"]: row for row in members}.values())[::-1]
        if not family or len(latest) < 2:
            continue
        figure, axes = _figure(f"{family}, {device}", unit, rows=len(latest))
        rates = [row["rate"] for row in latest]
        bars = axes.barh([row["case"].rpartition("/")[2] for row in latest], rates, color=BLUE)
        axes.bar_label(bars, [f" {rate:.4g}" for rate in rates], fontsize=8)
        peers = {position: row for position, row in enumerate(latest) if "peer" in row}
        if peers:
            peer_rates = [row["rate"] / row["peer"]["ratio"] for row in peers.values()]
            name = _peer_name(next(iter(peers.values())))
            axes.plot(peer_rates, list(peers), "|", color=RED, ms=16, mew=2, label=name)
        _legend(axes)
        if max(rates) / min(rates) > 100:
            axes.set_xscale("log")
        axes.margins(x=0.12)
        yield family, figure


def history_plots(records: list[dict]) -> Plots:
    """One plot for each device: the rate of each case that several commits were timed with, over its first rate."""
    for (device,), rows in sorted(_grouped(records, "device").items()):
        commits = list(dict.fromkeys(row["commit"] for row in rows))
        figure, axes = _figure(f"By commit, {device}", "", "rate / first rate")
        for (case, _), members in _grouped(rows, "case", "unit").items():
            rates = {row["commit"]: row["rate"] for row in members}
            if len(rates) > 1:
                values = np.array(list(rates.values()))
                axes.plot([commits.index(commit) for commit in rates], values / values[0], "o-", ms=4, label=case)
        axes.set_xticks(range(len(commits)), [commit[:8] for commit in commits], rotation=45, fontsize=8)
        _legend(axes, loc="upper left", bbox_to_anchor=(1, 1))
        if axes.lines:
            yield f"By commit, {device}", figure


def verdict_plots(experiments: list[Experiment]) -> Plots:
    """Every pair of each case as a dot, and the Hodges-Lehmann shift with its 99 % interval."""
    for experiment in experiments:
        pairs = {name: experiment.differences(name, "screen") for name in reversed(experiment.names())}
        pairs = {name: d for name, d in pairs.items() if len(d) >= 2}
        if not pairs:
            continue
        refs = {key: str(value)[:10] for key, value in experiment.header["refs"].items()}
        title = f"head {refs.get('head')} against base {refs.get('base')}"
        figure, axes = _figure(title, "time of the head, % more than the base", rows=len(pairs))
        axes.axvline(0, color=GRAY, lw=1)
        for position, d in enumerate(pairs.values()):
            shift, low, high = (100 * np.expm1(value) for value in shift_and_interval(d))
            axes.plot(100 * np.expm1(d), np.full(len(d), position + 0.18), ".", color=GRAY, ms=4)
            if np.isfinite([low, high]).all():
                axes.plot([low, high], [position, position], color=BLUE, lw=2)
            axes.plot([shift], [position], "o", color=RED, ms=5)
        axes.set_yticks(range(len(pairs)), list(pairs))
        axes.set_ylim(-0.5, len(pairs) - 0.5)
        yield title, figure


def distribution_plots(records: list[dict]) -> Plots:
    """The times of all runs of each case over their median; whiskers from P1 to P99."""
    rows = [row for row in records if len(_times(row)) >= 10][:MAX_BOXES][::-1]
    if not rows:
        return
    figure, axes = _figure("Times of single runs", "time / median", rows=len(rows))
    values = [np.array(_times(row)) / np.median(_times(row)) for row in rows]
    fliers, medians = {"markersize": 2}, {"color": RED}
    axes.boxplot(values, orientation="horizontal", whis=(1, 99), flierprops=fliers, medianprops=medians)
    axes.set_yticks(range(1, len(rows) + 1), [f"{row['case']} ({len(_times(row))})" for row in rows])
    spread = max(float(np.percentile(v, 99)) for v in values)
    axes.set_xlim(min(0.8, *(float(v.min()) for v in values)) - 0.02, min(4.0, max(1.2, spread * 1.05)))
    yield "Times of single runs", figure


RECORD_PLOTS = (curve_plots, depth_plots, bar_plots, history_plots, distribution_plots)


def html_page(records: list[dict], plots: list[tuple[str, Figure]]) -> str:
    """The page: plots, then every record as a row of a table; it refers to no other file."""
    images = []
    for title, figure in plots:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
        data = base64.b64encode(buffer.getvalue()).decode()
        images.append(f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{data}">')
    head = "".join(f"<th>{name}" for name in COLUMNS)
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(str(cell))}' for cell in _cells(row))}</tr>" for row in records)
    devices = sorted({row["device"] for row in records})
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Rayfold: recorded rates</title>"
        f"<style>{STYLE}</style><h1>Recorded rates</h1>"
        f"<p>{html.escape(', '.join(devices))}. A history, never a verdict: <code>bench ab</code> judges.</p>"
        f"{''.join(images)}<table><tr>{head}</tr>{rows}</table></html>\n"
    )


COLUMNS = ("case", "rate", "unit", "median ms", "P90 ms", "runs", "peer", "device", "commit")


def _cells(row: dict) -> list:
    """The values of COLUMNS."""
    peer = f"{row['peer']['ratio']:.2f} x {row['peer'].get('name', '')}" if "peer" in row else ""
    p90 = f"{row['p90_ms']:.3f}" if isinstance(row.get("p90_ms"), float) else ""
    rate = [row["case"], f"{row['rate']:.4g}", row["unit"]]
    return [*rate, f"{row['median_ms']:.3f}", p90, row.get("runs", ""), peer, row["device"], row["commit"][:20]]
