"""Records to people: rates by commit as a table, and plots as one HTML page. Only user of matplotlib."""

import base64
import html
import io
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from renderer.bench.experiment import Experiment, read_lines
from renderer.bench.verdict import shift_and_interval
from renderer.errors import InputError
from renderer.formats.images import atomic_write

MAX_BOXES = 40
STYLE = """
body { font: 15px system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; color: #222 }
img { max-width: 48%; margin: .5%; vertical-align: top }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
"""
PARAMETER = re.compile(r"(.+)/([^/=]+)=(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)$")
SCALING_KEYS = ("devices", "gpus", "cores", "threads", "workers", "q")  # keys whose curves are shown as speed-up
NUMBERS = ("rate", "median_ms", "work")
TEXTS = ("case", "unit", "device", "commit")
BLUE, RED, GRAY = "#4477aa", "#cc3311", "#999999"


def read_records(paths: list[str]) -> list[dict]:
    """The records of `bench run` files or folders of them, each with the commit; InputError where there is none."""
    records: list[dict] = []
    for path in _files(paths):
        header: dict = {}
        found = len(records)
        for row in read_lines(path):
            if "schema" in row:
                header = row
            elif "arm" not in row:
                record = {"file": path.name, "device": "", "commit": str(header.get("commit", "")), **row}
                if header.get("dirty"):
                    record["commit"] = record["commit"][:12] + "+changes"
                records += [record] if _is_record(record) else []
        if len(records) == found and str(path) in paths and not _is_experiment(path):
            raise InputError(f"{path}: holds no records of bench run")
    return records


def _is_record(row: dict) -> bool:
    numbers = all(type(row.get(key)) in (int, float) and np.isfinite(row[key]) and row[key] > 0 for key in NUMBERS)
    texts = all(isinstance(row.get(key), str) for key in TEXTS)
    lists = [row[key] for key in ("wall_ns", "device_ns") if row.get(key) is not None]
    peer = row.get("peer", {"ratio": 1.0})
    return (
        numbers
        and texts
        and all(isinstance(times, list) and all(type(ns) is int and ns > 0 for ns in times) for times in lists)
        and isinstance(peer, dict)
        and type(peer.get("ratio")) in (int, float)
        and peer["ratio"] > 0
    )


def _files(paths: list[str]) -> list[Path]:
    files = []
    for path in map(Path, paths):
        inside = sorted(path.glob("**/*.jsonl")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"{path}: a folder without .jsonl files")
        files += inside
    return files


def _is_experiment(path: Path) -> bool:
    return any("refs" in row and row.get("schema") == "bench/1" for row in read_lines(path))


def read_experiments(paths: list[str]) -> list[Experiment]:
    """The files that `bench ab` or `aa` wrote."""
    from renderer.bench.experiment import read_experiment

    return [read_experiment(path) for path in _files(paths) if _is_experiment(path)]


def history(args) -> int:
    """`bench history F...`: the rate of every case in the order of the files, and its change; never a verdict."""
    records = read_records(args.files)
    if not records:
        raise InputError(f"{args.files[0]}: holds no records of bench run")
    if args.json:
        keys = ("case", "commit", "rate", "unit", "median_ms", "device")
        print(json.dumps({"records": [{key: row.get(key) for key in keys} for row in records]}))
        return 0
    before: dict[tuple, float] = {}
    for row in sorted(records, key=lambda row: (row["case"], row["device"])):
        key = (row["case"], row["device"], row["unit"])
        change = f"{100 * (row['rate'] / before[key] - 1):+7.1f}%" if key in before else " " * 8
        before[key] = row["rate"]
        words = f"{row['rate']:12.4g} {row['unit']:12s} {change}  {row['device']}"
        print(f"{row['case']:38s} {row['commit'][:20]:20s} {words}")
    return 0


def report(args) -> int:
    """`bench report F... -o report.html`."""
    records, experiments = read_records(args.files), read_experiments(args.files)
    figures = [
        *curve_plots(records),
        *depth_plots(records),
        *bar_plots(records),
        *history_plots(records),
        *distribution_plots(records),
        *verdict_plots(experiments),
    ]
    page = html_page(records, figures)
    with atomic_write(Path(args.output)) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print(args.output)
    return 0


def _figure(title: str, x: str, y: str, height: float = 4.2):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, height), layout="constrained")
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    axes.set_title(title, fontsize=11)
    axes.grid(alpha=0.25)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _grouped(rows: list[dict], *keys) -> dict[tuple, list[dict]]:
    groups: dict[tuple, list[dict]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return groups


def curve_plots(records: list[dict]) -> list[tuple[str, object]]:
    """One plot for each family of cases that differ in one number: FPS by depth, rate by size, speed-up by devices."""
    varied = []
    for row in records:
        match = PARAMETER.match(row["case"])
        if match:
            varied.append(row | {"family": match[1], "key": match[2], "x": float(match[3])})
    plots = []
    for (family, key, unit), rows in _grouped(varied, "family", "key", "unit").items():
        if len({row["x"] for row in rows}) > 1:
            speed_up = key in SCALING_KEYS
            title = f"{family} by {key}"
            figure, axes = _figure(title, key, "times as fast as with the fewest" if speed_up else unit)
            for (device, commit), line in _grouped(rows, "device", "commit").items():
                _curve(axes, line, f"{device} {commit[:8]}".strip(), speed_up)
            _finish_curves(axes, [row["x"] for row in rows], speed_up)
            plots.append((title, figure))
            plots += _speed_up_plots(title, key, rows)
    return plots


def _speed_up_plots(title: str, key: str, rows: list[dict]) -> list[tuple[str, object]]:
    """How many times as fast as each peer, by what varies."""
    rows_with_peer = [row | {"reference": str(row["peer"].get("name", "peer"))} for row in rows if "peer" in row]
    plots = []
    for (reference,), family in _grouped(rows_with_peer, "reference").items():
        name = f"{title}: speed-up over {reference}"
        figure, axes = _figure(name, key, "times as fast")
        for (device, commit), line in _grouped(family, "device", "commit").items():
            ratios = {row["x"]: row["peer"]["ratio"] for row in line}
            axes.plot(sorted(ratios), [ratios[x] for x in sorted(ratios)], "o-", ms=4, label=f"{device} {commit[:8]}")
        axes.axhline(1, color=GRAY, ls=":")
        _finish_curves(axes, [row["x"] for row in family], False)
        plots.append((name, figure))
    return plots


def _curve(axes, rows: list[dict], label: str, speed_up: bool) -> None:
    """A line of rates with the quartiles of its runs, its peers dashed, and the last rate as a share of the first."""
    rows = sorted({row["x"]: row for row in rows}.values(), key=lambda row: row["x"])
    x, y = [row["x"] for row in rows], np.array([row["rate"] for row in rows])
    scale = 1 / y[0] if speed_up else 1.0
    if not speed_up and len(rows) > 1:
        label += f" (last/first {y[-1] / y[0]:.2f})"
    (line,) = axes.plot(x, y * scale, "o-", ms=4, label=label)
    quartiles = np.array([_quartiles(row) for row in rows]) * scale
    axes.fill_between(x, quartiles[:, 0], quartiles[:, 1], color=line.get_color(), alpha=0.15, lw=0)
    peers = [(row["x"], row["rate"] / row["peer"]["ratio"], row["peer"]) for row in rows if "peer" in row]
    if peers:
        name = str(peers[0][2].get("name", "peer"))
        axes.plot([p[0] for p in peers], [p[1] * scale for p in peers], "--", color=GRAY, label=name)


def depth_plots(records: list[dict]) -> list[tuple[str, object]]:
    """One plot for each scene timed at depths 1, 2, ... whose records hold active rays.

    It shows the time that each depth adds, the share of active rays and that of empty stencil words.
    """
    plots = []
    rows = [row for row in records if re.search(r"/(max_)?depth=\d+$", row["case"]) and _has_counts(row)]
    for (family, device, commit), found in _grouped(
        [row | {"family": row["case"].rpartition("/")[0]} for row in rows], "family", "device", "commit"
    ).items():
        line = {int(row["case"].rpartition("=")[2]): row for row in found}
        if sorted(line) != list(range(1, len(line) + 1)) or len(line) < 2:
            continue
        depths = sorted(line)
        live = np.array(line[depths[-1]]["active rays"], float)
        spent = np.diff([0.0, *(line[depth]["median_ms"] for depth in depths)])
        title = f"{family} by depth, {device} {commit[:8]}".strip()
        figure, axes = _figure(title.replace(", ", "\n", 1), "depth", "ms that the depth adds")
        axes.bar(depths, spent, color=BLUE, alpha=0.6, label="time")
        percent_axes = axes.twinx()
        percent_axes.plot(depths, 100 * live / live[0], "o-", color=RED, ms=4, label="active rays")
        skipped = line[depths[-1]].get("empty stencil words")
        if skipped:
            words = -(-live[0] // 32)
            percent_axes.plot(depths, 100 * np.array(skipped) / words, "s--", color=GRAY, ms=4, label="words skipped")
        percent_axes.set(ylabel="%", ylim=(0, 105))
        axes.set_xticks(depths)
        figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=3)
        plots.append((title, figure))
    return plots


def _has_counts(row: dict) -> bool:
    """Whether a record tells the active rays, and the words skipped if any, of each of its depths."""
    depth = int(row["case"].rpartition("=")[2])
    lists = [row.get("active rays"), row.get("empty stencil words", [0] * depth)]
    counts = all(isinstance(n, list) and len(n) == depth and all(type(k) is int and k >= 0 for k in n) for n in lists)
    return counts and depth > 0 and row["active rays"][0] > 0


def _times(row: dict) -> list[int]:
    """The time of every run in ns, by the clock of the record's rate."""
    return row.get("device_ns" if row.get("clock") == "device" else "wall_ns") or []


def _quartiles(row: dict) -> tuple[float, float]:
    """The rates between which half of the runs lie."""
    times = _times(row)
    if not times:
        return row["rate"], row["rate"]
    slow, fast = np.percentile(times, 75), np.percentile(times, 25)
    return row["work"] / slow * 1e9, row["work"] / fast * 1e9


def _finish_curves(axes, x: list[float], speed_up: bool) -> None:
    if min(x) > 0 and max(x) / min(x) >= 32:
        axes.set_xscale("log", base=2)
    elif all(value == int(value) for value in x) and len(set(x)) <= 20:
        axes.set_xticks(sorted(set(x)))
    if speed_up:
        ends = [min(x), max(x)]
        axes.plot(ends, [1, ends[1] / ends[0]], ":", color=GRAY, label="ideal")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)


def bar_plots(records: list[dict]) -> list[tuple[str, object]]:
    """Bars for each family of cases of one unit that differ in their last part: the ladder of products."""
    rows = [row | {"family": row["case"].rpartition("/")[0]} for row in records if not PARAMETER.match(row["case"])]
    plots = []
    for (family, unit, device), members in _grouped(rows, "family", "unit", "device").items():
        latest = list({row["case"]: row for row in members}.values())[::-1]
        if not family or len(latest) < 2:
            continue
        figure, axes = _figure(f"{family}, {device}", unit, "", max(2.2, 0.34 * len(latest) + 1.2))
        rates = [row["rate"] for row in latest]
        bars = axes.barh([row["case"].rpartition("/")[2] for row in latest], rates, color=BLUE)
        axes.bar_label(bars, [f" {rate:.4g}" for rate in rates], fontsize=8)
        peers = [(position, row) for position, row in enumerate(latest) if "peer" in row]
        for position, row in peers:
            peer = row["rate"] / row["peer"]["ratio"]
            label = str(row["peer"].get("name", "peer")) if (position, row) == peers[0] else None
            axes.plot([peer, peer], [position - 0.42, position + 0.42], color=RED, lw=2, label=label)
        if peers:
            axes.legend(frameon=False, fontsize=8)
        if max(rates) / min(rates) > 100:
            axes.set_xscale("log")
        axes.margins(x=0.12)
        axes.tick_params(axis="y", labelsize=8)
        plots.append((family, figure))
    return plots


def history_plots(records: list[dict]) -> list[tuple[str, object]]:
    """For each case that several commits were timed with: its rate, as a share of the first."""
    lines = {}
    for (case, device, _), rows in _grouped(records, "case", "device", "unit").items():
        by_commit = {row["commit"]: row for row in rows}
        if len(by_commit) > 1:
            lines[(case, device)] = by_commit
    plots = []
    for device in sorted({device for _, device in lines}):
        figure, axes = _figure(f"By commit, {device}", "", "rate / first rate")
        order = list(dict.fromkeys(row["commit"] for row in records if row["device"] == device))
        for (case, _), by_commit in [item for item in lines.items() if item[0][1] == device]:
            x = [order.index(commit) for commit in by_commit]
            rates = np.array([row["rate"] for row in by_commit.values()])
            axes.plot(x, rates / rates[0], "o-", ms=4, label=case)
        axes.set_xticks(range(len(order)), [commit[:8] for commit in order], rotation=45, fontsize=8)
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
        plots.append((f"By commit, {device}", figure))
    return plots


def distribution_plots(records: list[dict]) -> list[tuple[str, object]]:
    """The times of all runs of each case, as a share of its median; whiskers from P1 to P99."""
    rows = [row for row in records if len(_times(row)) >= 10][:MAX_BOXES][::-1]
    if not rows:
        return []
    figure, axes = _figure("Times of single runs", "time / median", "", max(2.5, 0.28 * len(rows) + 1.2))
    values = [np.array(_times(row)) / np.median(_times(row)) for row in rows]
    style = {"flierprops": {"markersize": 2}, "medianprops": {"color": RED}}
    axes.boxplot(values, orientation="horizontal", whis=(1, 99), **style)
    axes.set_yticks(range(1, len(rows) + 1), [f"{row['case']} ({len(_times(row))})" for row in rows], fontsize=7)
    spread = max(float(np.percentile(v, 99)) for v in values)
    axes.set_xlim(min(0.8, *(float(v.min()) for v in values)) - 0.02, min(4.0, max(1.2, spread * 1.05)))
    return [("Times of single runs", figure)]


def verdict_plots(experiments: list[Experiment]) -> list[tuple[str, object]]:
    """Every pair of each case as a dot, and the Hodges-Lehmann shift with its 99 % interval."""
    plots = []
    for experiment in experiments:
        names = [name for name in experiment.names() if len(experiment.differences(name, "screen")) >= 2][::-1]
        if not names:
            continue
        refs = {key: str(value)[:10] for key, value in experiment.header["refs"].items()}
        title = f"head {refs.get('head')} against base {refs.get('base')}"
        figure, axes = _figure(title, "time of the head, % more than the base", "", max(2.2, 0.4 * len(names) + 1.2))
        axes.axvline(0, color=GRAY, lw=1)
        for position, name in enumerate(names):
            d = experiment.differences(name, "screen")
            shift, low, high = (100 * np.expm1(value) for value in shift_and_interval(d))
            axes.plot(100 * np.expm1(d), np.full(len(d), position + 0.18), ".", color=GRAY, ms=4)
            if np.isfinite([low, high]).all():
                axes.plot([low, high], [position, position], color=BLUE, lw=2)
            axes.plot([shift], [position], "o", color=RED, ms=5)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(-0.5, len(names) - 0.5)
        plots.append((title, figure))
    return plots


def html_page(records: list[dict], figures) -> str:
    """The page: plots, then every record as a row; nothing is fetched from anywhere."""
    parts = []
    for title, figure in figures:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
        picture = base64.b64encode(buffer.getvalue()).decode()
        parts.append(f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{picture}">')
    rows = "".join(_row(row) for row in records)
    devices = sorted({row["device"] for row in records})
    head = "".join(f"<th>{name}" for name in ("case", "rate", "unit", "median ms", "P90 ms", "runs", "peer", "device"))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Rayfold: recorded rates</title>"
        f"<style>{STYLE}</style><h1>Recorded rates</h1>"
        f"<p>{html.escape(', '.join(devices))}. A history, never a verdict: <code>bench ab</code> judges.</p>"
        f"{''.join(parts)}<table><tr>{head}<th>commit</tr>{rows}</table></html>\n"
    )


def _row(row: dict) -> str:
    peer = f"{row['peer']['ratio']:.2f} x {row['peer'].get('name', '')}" if "peer" in row else ""
    p90 = f"{row['p90_ms']:.3f}" if isinstance(row.get("p90_ms"), float) else ""
    cells = [row["case"], f"{row['rate']:.4g}", row["unit"], f"{row['median_ms']:.3f}", p90, row.get("runs", ""), peer]
    cells += [row["device"], row["commit"][:20]]
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}" for cell in cells) + "</tr>"
