"""Draws figures (plot.Plot) as inline SVG by matplotlib.

The SVG takes colors from the page's CSS variables and uses the reader's fonts. It is FIGURE_WIDTH points wide, so that
its text is legible on a phone. Lessons and the bench report call draw_plots().
"""

import html
import io
import re
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from renderer.pages.plot import Plot, format_number, short_number

FIGURE_WIDTH = 360  # points
SERIES = ("#0b6bcb", "#c2410c", "#2e7d32", "#8e24aa", "#00838f", "#b0226b", "#6d4c41", "#5c6bc0")
INK, LINE, PAPER = "#101418", "#d2d6dc", "#fefefe"
VARIABLES = {INK: "--ink", LINE: "--line", PAPER: "--paper"} | {c: f"--series-{i}" for i, c in enumerate(SERIES)}
MARKERS = "os^DvPX*"
DASHES = ("-", "--", "-.", ":")
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "rayfold", "font.size": 9.0, "axes.titlesize": 9.5,
    "axes.labelsize": 9.0, "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "legend.fontsize": 8.5,
    "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK, "xtick.color": INK, "ytick.color": INK,
    "grid.color": LINE, "axes.titlecolor": INK, "axes.titlelocation": "left", "axes.facecolor": "none",
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
    "legend.frameon": False, "axes.formatter.useoffset": False, "figure.facecolor": "none", "lines.linewidth": 1.6,
}  # fmt: skip


def new_figure(heights: Sequence[float]) -> tuple[Figure, list[Axes]]:
    """Makes a figure with axes one below the other; `heights` are in points and include the labels."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(FIGURE_WIDTH / 72, sum(heights) / 72), layout="constrained")
        axes = figure.subplots(len(heights), 1, squeeze=False, gridspec_kw={"height_ratios": list(heights)})
    return figure, [row[0] for row in axes]


def to_svg(figure: Figure, alt: str) -> str:
    """Returns the figure as an <svg> element without metadata; `alt` is its text for screen readers."""
    out = io.StringIO()
    with matplotlib.rc_context(STYLE):
        no_metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
        figure.savefig(out, format="svg", metadata=no_metadata, transparent=True)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    # Comments, metadata and matplotlib's style sheet; ids, which would occur twice in a page of several figures; the
    # font, no rotation, the default line ends; line breaks, and the old name of href.
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<defs>\s*<style.*?</defs>", "", text, flags=re.S)
    text = re.sub(r'<g id="[^"]*"', "<g", text)
    text = re.sub(r" font-family: [^;\"]*;| transform=\"rotate\(-?0 [^\"]*\"|; stroke-linecap: square", "", text)
    text = re.sub(r"\s*\n\s*", " ", text.replace("xlink:href", "href"))
    text = re.sub(r"#[0-9a-f]{6}", lambda match: _variable(match[0]), text)
    text = re.sub(r"(\d\.\d{2})\d+", r"\1", text)  # two decimals of a point are enough
    text = re.sub(r">\s+<", "><", text)
    box = re.search(r'viewBox="[^"]*"', text)
    assert box is not None, "matplotlib writes a viewBox"
    label = html.escape(alt)
    return f'<svg class="figure" role="img" aria-label="{label}" {box[0]}>{text[text.index(">") + 1 :].strip()}'


def _variable(color: str) -> str:
    return f"var({VARIABLES[color]})" if color in VARIABLES else color


def draw_plots(plots: Sequence[Plot], alt: str) -> str:
    """Draws plots one below the other into one <svg>; each has its own axes, because devices share no scale."""
    figure, axes = new_figure([_height(plot) for plot in plots])
    with matplotlib.rc_context(STYLE):
        for plot, area in zip(plots, axes, strict=True):
            draw_plot(area, plot)
    return to_svg(figure, alt)


def _height(plot: Plot) -> float:
    """Returns the height of a plot in points: of its bars, or one height for all lines; and of title and labels."""
    legend = 14 * _legend_rows(plot)
    if plot.kind == "bars" or not plot.is_numeric:
        return 62 + legend + max(11, 22 - 4 * len(plot.series)) * len(plot.x) * len(plot.series) + 8 * len(plot.x)
    return 190 + legend


def draw_plot(axes: Axes, plot: Plot) -> None:
    """Draws a plot into axes of new_figure()."""
    pad = 8 + 14 * _legend_rows(plot)
    # A long title does not fit over the axes: set_title() reserves the height, the text begins at the figure's edge.
    axes.set_title(" ", pad=pad)
    units = ("figure fraction", "axes fraction")
    title = axes.annotate(plot.title, (0, 1), (2, pad), xycoords=units, textcoords="offset points", weight="bold")
    title.set_in_layout(False)
    if plot.is_numeric:
        _draw_lines(axes, plot)
    else:
        _draw_bars(axes, plot)
    if len(plot.series) > 1:
        position = dict(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=_legend_columns(plot))
        axes.legend(**position, borderaxespad=0.2, columnspacing=1.0, handlelength=1.6)


def _legend_columns(plot: Plot) -> int:
    """Returns the number of columns with which a legend's names fit the width of the figure."""
    longest = max((len(name) for name in plot.series), default=1)
    return max(1, min(3, 58 // (longest + 6)))


def _legend_rows(plot: Plot) -> int:
    return -(-len(plot.series) // _legend_columns(plot)) if len(plot.series) > 1 else 0


def _draw_lines(axes: Axes, plot: Plot) -> None:
    """Draws a line for each series, with ticks that fit the scale of each axis."""
    for index, (name, values) in enumerate(plot.series.items()):
        points = [(x, y) for x, y in zip(plot.x, values, strict=True) if y is not None and (y > 0 or not plot.log_y)]
        style, color = DASHES[index // len(SERIES) % len(DASHES)], SERIES[index % len(SERIES)]
        marker = MARKERS[index % len(MARKERS)]
        axes.plot(
            *(zip(*points, strict=True) if points else ((), ())), style, marker=marker, ms=4, color=color, label=name
        )
    axes.set(xlabel=plot.x_name, ylabel=plot.unit)
    if plot.log_x and all(x > 0 for x in plot.x):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(base=2, numticks=6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: short_number(x)))
        axes.xaxis.set_minor_locator(NullLocator())
    elif all(float(x).is_integer() for x in plot.x) and len(plot.x) <= 12 and _are_apart(plot.x):
        axes.set_xticks(list(plot.x))
    has_positive = any(y is not None and y > 0 for values in plot.series.values() for y in values)
    if plot.log_y and has_positive:
        axes.set_yscale("log")
        drawn = [y for values in plot.series.values() for y in values if y is not None and y > 0]
        _mark_decades(axes.yaxis, min(drawn), max(drawn))
    else:
        axes.set_ylim(bottom=0)
        axes.margins(y=0.12)


def _mark_decades(axis: Axis, low: float, high: float) -> None:
    """Labels powers of ten, and 2 and 5 times them if the axis spans few powers."""
    few = high < 60 * low
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,), numticks=8))
    if few:
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _are_apart(x: tuple[float, ...]) -> bool:
    """True if labels at these positions do not overlap."""
    steps = [b - a for a, b in zip(sorted(x), sorted(x)[1:], strict=False)]
    return not steps or min(steps) * 14 >= max(x) - min(x)


def _draw_bars(axes: Axes, plot: Plot) -> None:
    """Draws horizontal bars, which leave room for long names, with their values beside them."""
    count, labels = len(plot.series), plot.labels()
    thickness = 0.8 / max(count, 1)  # thickness of a bar, in rows
    drawn = [value for values in plot.series.values() for value in values if value is not None]
    for index, (name, values) in enumerate(plot.series.items()):
        centers = [row - 0.4 + thickness * (index + 0.5) for row in range(len(labels))]
        color = SERIES[index % len(SERIES)]
        bars = axes.barh(centers, [value or 0 for value in values], thickness * 0.92, color=color, label=name)
        axes.bar_label(bars, [f" {format_number(value)}" for value in values], fontsize=7.5, padding=2)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(plot.unit)
    positive = [value for value in drawn if value > 0]
    if plot.log_y and positive:
        axes.set_xscale("log")
        _mark_decades(axes.xaxis, min(positive), max(positive))
        axes.set_xlim(min(positive) / 2, max(positive) * 6)
    elif drawn and max(drawn) > 0:
        axes.set_xlim(0, max(drawn) * 1.22)
