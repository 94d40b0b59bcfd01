"""Records to people: medians by commit as a table, and plots as one HTML page. Only user of matplotlib."""

import base64
import html
import io
import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np

from renderer import BadInput
from renderer.image import replacing

LARGEST = 256 << 20
STYLE = """
body { font: 15px system-ui, sans-serif; margin: 2rem auto; max-width: 1500px; color: #222 }
img { max-width: 48%; margin: .5% }
table { border-collapse: collapse; font-size: 13px }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #ddd }
td:first-child, th:first-child { text-align: left }
"""
VARIED = re.compile(r"(.+)/([^/=]+)=([-+.\deE]+)$")


def read_records(paths: list[str]) -> list[dict]:
    """The records of JSON-lines files, each with its file's host and commit; BadInput for a file that holds none."""
    records = []
    for name in paths:
        path = Path(name)
        try:
            if path.stat().st_size > LARGEST:
                raise BadInput(f"{path}: larger than {LARGEST >> 20} MiB")
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: {getattr(error, 'strerror', None) or error}") from error
        header, found = {}, len(records)
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:  # the half line of a killed run
                continue
            if isinstance(row, dict) and "schema" in row:
                header = row
            elif isinstance(row, dict) and {"case", "rate", "median_ms"} <= row.keys():
                records.append({"file": path.name, "commit": header.get("commit", ""), **row})
        if len(records) == found:
            raise BadInput(f"{path}: holds no records of bench run")
    return records


def history(args) -> int:
    """`bench history F...`: the rate of every case by commit, in the order of the files; never a verdict."""
    records = read_records(args.files)
    if args.json:
        keys = ("case", "commit", "rate", "unit", "median_ms", "device")
        print(json.dumps({"records": [{key: row.get(key) for key in keys} for row in records]}))
        return 0
    for row in records:
        print(
            f"{row['case']:38s} {row['commit'][:12]:12s} {row['rate']:12.4g} {row['unit']:12s} {row.get('device', '')}"
        )
    return 0


def report(args) -> int:
    """`bench report F... -o report.html`."""
    records = read_records(args.files)
    pictures = [*depth_plots(records), *ladder_plots(records), *distribution_plots(records)]
    page = html_page(records, pictures)
    with replacing(Path(args.output)) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print(args.output)
    return 0


def _figure(title: str, x: str, y: str):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.set(title=title, xlabel=x, ylabel=y)
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def depth_plots(records: list[dict]) -> list[tuple[str, object]]:
    """One plot for each family of cases that differ in one number: FPS by depth, speed-up by size."""
    families: dict[tuple, dict[str, list]] = defaultdict(lambda: defaultdict(list))
    for row in records:
        match = VARIED.match(row["case"])
        if match:
            line = f"{row.get('device', '')} {row['commit'][:8]}".strip()
            families[(match[1], match[2], row["unit"])][line].append((float(match[3]), row))
    plots = []
    for (family, key, unit), lines in families.items():
        figure, axes = _figure(f"{family} by {key}", key, unit)
        largest = 0.0
        for label, points in lines.items():
            points.sort(key=lambda point: point[0])
            x, y = [p for p, _ in points], [row["rate"] for _, row in points]
            axes.plot(x, y, "o-", label=label)
            largest = max(largest, *y)
            peers = [(p, row["peer"]) for p, row in points if "peer" in row]
            if peers:
                axes.plot([p for p, _ in peers], [y[x.index(p)] / peer["ratio"] for p, peer in peers], "--", alpha=0.6)
        if min(x) > 0 and max(x) / min(x) >= 64:
            axes.set_xscale("log", base=2)
        axes.set_ylim(0, largest * 1.08)
        axes.legend(frameon=False, fontsize=8)
        plots.append((f"{family} by {key}", figure))
    return plots


def ladder_plots(records: list[dict]) -> list[tuple[str, object]]:
    """Bars for each family of cases of one unit that differ in their last part: the ladder of products."""
    families: dict[tuple, list[dict]] = defaultdict(list)
    for row in records:
        family, slash, _ = row["case"].rpartition("/")
        if slash and not VARIED.match(row["case"]):
            families[(family, row["unit"], row.get("device", ""))].append(row)
    plots = []
    for (family, unit, device), rows in families.items():
        if len(rows) < 2:
            continue
        figure, axes = _figure(f"{family}, {device}", unit, "")
        names = [row["case"].rpartition("/")[2] for row in rows][::-1]
        rates = [row["rate"] for row in rows][::-1]
        axes.barh(names, rates, color="#4477aa")
        for place, row in enumerate(rows[::-1]):
            if "peer" in row:
                axes.plot([row["rate"] / row["peer"]["ratio"]] * 2, [place - 0.4, place + 0.4], color="#cc3311", lw=2)
        axes.tick_params(axis="y", labelsize=8)
        figure.set_figheight(max(2.2, 0.34 * len(rows) + 1.2))
        plots.append((family, figure))
    return plots


def distribution_plots(records: list[dict], most: int = 24) -> list[tuple[str, object]]:
    """The times of all runs of each case, as a share of its median."""
    rows = [row for row in records if len(row.get("wall_ns", ())) >= 10][:most]
    if not rows:
        return []
    figure, axes = _figure("Times of single runs", "time / median", "")
    values = [np.array(row["wall_ns"]) / np.median(row["wall_ns"]) for row in rows][::-1]
    axes.boxplot(values, orientation="horizontal", showfliers=True, flierprops=dict(markersize=2))
    axes.set_yticks(range(1, len(rows) + 1), [row["case"] for row in rows][::-1], fontsize=7)
    axes.set_xlim(0.5, max(2.0, min(4.0, max(float(v.max()) for v in values))))
    figure.set_figheight(max(2.5, 0.3 * len(rows) + 1.2))
    return [("Times of single runs", figure)]


def html_page(records: list[dict], pictures) -> str:
    """The page: plots, then every record as a row; nothing is fetched from anywhere."""
    parts = []
    for title, figure in pictures:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg")
        picture = base64.b64encode(buffer.getvalue()).decode()
        parts.append(f'<img alt="{html.escape(title)}" src="data:image/svg+xml;base64,{picture}">')
    rows = "".join(_row(row) for row in records)
    devices = sorted({row.get("device", "") for row in records})
    head = "".join(f"<th>{name}" for name in ("case", "rate", "unit", "median ms", "P90 ms", "runs", "peer", "device"))
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Rayfold: recorded rates</title>"
        f"<style>{STYLE}</style><h1>Recorded rates</h1>"
        f"<p>{html.escape(', '.join(devices))}. A history, never a verdict: <code>bench ab</code> judges.</p>"
        f"{''.join(parts)}<table><tr>{head}<th>commit</tr>{rows}</table></html>\n"
    )


def _row(row: dict) -> str:
    peer = f"{row['peer']['ratio']:.2f} x {row['peer']['name']}" if "peer" in row else ""
    p90 = f"{row['p90_ms']:.3f}" if row.get("p90_ms") else ""
    cells = [row["case"], f"{row['rate']:.4g}", row["unit"], f"{row['median_ms']:.3f}", p90, row.get("runs", ""), peer]
    cells += [row.get("device", ""), row["commit"][:12]]
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}" for cell in cells) + "</tr>"
