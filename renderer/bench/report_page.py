"""Lays out the HTML page of `bench report`: contents, and for each subsystem a headline and its figures with numbers.

report.py reads the record files and calls report_page(); report_figures.py chooses the figures.
"""

from html import escape

import numpy as np

from renderer.bench.conclusions import as_html
from renderer.bench.experiment import Experiment
from renderer.bench.records import case_name, latest_records
from renderer.bench.report_figures import grouped, peer_name, short_device, subsystem_figures, subsystem_name
from renderer.bench.verdict import shift_and_interval
from renderer.pages import page
from renderer.pages.figures import INK, SERIES, draw_plots, new_figure, to_svg
from renderer.pages.plot import format_number
from renderer.paths import ASSETS
from renderer.plain import Json
from renderer.system.files import read_toml

# The title and the question of each subsystem, the first component of a case's name.
SUBSYSTEMS: dict[str, list[str]] = read_toml(ASSETS / "tables" / "subsystems.toml")
COLUMNS = ("case", "rate", "unit", "median ms", "half of the runs", "runs", "peer", "device", "commit")
MAX_PAIRS = 60  # cases of an experiment in one figure


def report_page(records: list[Json], experiments: list[Experiment]) -> str:
    """Returns the HTML page of the records and experiments; it refers to no other file."""
    groups: dict[str, list[Json]] = {}
    for row in records:
        groups.setdefault(subsystem_name(row), []).append(row)
    entries = [(f"s{number}", SUBSYSTEMS.get(name, (name, ""))[0]) for number, name in enumerate(groups)]
    if experiments:
        entries.append(("verdicts", "Commits compared"))
    devices = ", ".join(sorted({row["device"] for row in records if row["device"]})) or "no device"
    parts = [
        *(["<h1>Verdicts</h1>", as_html(experiments)] if experiments else []),
        "<h1>Recorded rates</h1>",
        f'<p class="soft">{len(records)} records of {escape(devices)}. Each device has separate axes. A record is a '
        "history, never a verdict: <code>bench ab</code> judges.</p>",
        page.contents(entries),
    ]
    for number, (name, rows) in enumerate(groups.items()):
        parts += _section(f"s{number}", name, rows)
    if experiments:
        parts += ['<h2 id="verdicts">Commits compared</h2>', *map(_experiment, experiments)]
    return page.html_page("Rayfold: recorded rates", "\n".join(parts), "report")


def _section(anchor: str, name: str, rows: list[Json]) -> list[str]:
    """The HTML of a subsystem: its headline, and each figure with the records behind it."""
    title, question = SUBSYSTEMS.get(name, (name, ""))
    parts = [f'<section><h2 id="{anchor}">{escape(title)}</h2>']
    parts.append(f'<p class="headline">{escape(" ".join([question, *headlines(rows)]).strip())}</p>')
    parts.append('<div class="questions">')
    for figure in subsystem_figures(name, rows):
        words = f"<figcaption>{escape(figure.words)}</figcaption>"
        drawn = draw_plots(figure.plots, figure.question)
        data = page.data_behind([COLUMNS, *map(_cells, figure.rows)], f"{len(figure.rows)} records behind it")
        parts.append(f"<figure><h3>{escape(figure.question)}</h3>{drawn}{words}{data}</figure>")
    return [*parts, "</div></section>"]


def headlines(rows: list[Json]) -> list[str]:
    """Returns a sentence for each device: its highest rate, and the best rate relative to a peer."""
    out = []
    for (device,), members in grouped(rows, "device").items():
        latest = latest_records(members)
        unit = max({row["unit"] for row in latest}, key=lambda unit: sum(row["unit"] == unit for row in latest))
        best = max((row for row in latest if row["unit"] == unit), key=lambda row: row["rate"])
        text = f"On {short_device(device)} up to {format_number(best['rate'])} {unit} ({case_name(best['case'])})"
        compared = best if "peer" in best else max(
            (row for row in latest if "peer" in row), key=lambda row: row["peer"]["ratio"], default=None
        )  # fmt: skip
        if compared is best:
            text += f", {best['peer']['ratio']:.3g} times the rate of {peer_name(best)}"
        elif compared is not None:
            where = case_name(compared["case"])
            text += f"; at best {compared['peer']['ratio']:.3g} times the rate of {peer_name(compared)} ({where})"
        out.append(f"{text}.")
    return out


def _times(row: Json) -> list[int]:
    """Returns the time of every run in ns, from the clock that the record's rate uses."""
    return row.get("device_ns" if row.get("clock") == "device" else "wall_ns") or []


def _cells(row: Json) -> list[str]:
    """Returns the texts of a record's cells, in the order of COLUMNS."""
    peer = f"{row['peer']['ratio']:.2f} x {peer_name(row)}" if "peer" in row else "none"
    middle = ""
    if len(_times(row)) >= 4:
        low, high = np.percentile(_times(row), (25, 75)) / 1e6
        middle = f"{format_number(float(low))} to {format_number(float(high))} ms"
    numbers = [format_number(row["rate"]), row["unit"], format_number(row["median_ms"]), middle]
    runs = row.get("runs")
    return [row["case"], *numbers, str(runs if isinstance(runs, int) else ""), peer, row["device"], row["commit"][:20]]


def _experiment(experiment: Experiment) -> str:
    """Returns the HTML figure of an experiment, or an empty text without two pairs of a case.

    Shows each case's pairs as dots, and their Hodges-Lehmann shift with its 99 % interval, whose numbers as_html() has.
    """
    pairs = {name: experiment.differences(name, "screen") for name in experiment.names()}
    pairs = {name: d for name, d in list(pairs.items())[:MAX_PAIRS] if len(d) >= 2}
    if not pairs:
        return ""
    refs = {key: str(value)[:10] for key, value in experiment.header["refs"].items()}
    title = f"Head {refs.get('head')} against base {refs.get('base')}"
    figure, (axes,) = new_figure([60 + 18 * len(pairs)])
    axes.axvline(0, color=INK, lw=0.8)
    for position, d in enumerate(pairs.values()):
        shift, low, high = (float(100 * np.expm1(value)) for value in shift_and_interval(d))
        axes.plot(100 * np.expm1(d), np.full(len(d), position - 0.2), ".", color=SERIES[0], ms=3)
        if np.isfinite([low, high]).all():
            axes.plot([low, high], [position, position], color=SERIES[0], lw=2)
        axes.plot([shift], [position], "o", color=SERIES[1], ms=5)
    axes.set_yticks(range(len(pairs)), list(pairs))
    axes.set_ylim(len(pairs) - 0.5, -0.5)
    axes.set_xlabel("time of the head, % more than the base")
    words = "A dot is a pair of processes; the line is the 99 % interval of the shift. Left of 0 the head is faster."
    drawn = f"{to_svg(figure, title)}<figcaption>{escape(words)}</figcaption>"
    return f"<figure><h3>{escape(title)}</h3>{drawn}</figure>"
