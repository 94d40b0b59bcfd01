"""Conclusions of experiments: the verdict of each case with its reason, interval, pairs, counters and what to do next.

For the top of the page of `bench report`, as Markdown for a pull request (`bench report --text`), and as a badge.
"""

import json
import shlex
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

import numpy as np

from renderer.bench import MAX_PAIRS
from renderer.bench.answer import compute_verdicts, count_facts, deciding_label, shown_interval, ways_to_decide
from renderer.bench.counting import measure_nothing
from renderer.bench.experiment import Experiment, case_of_command, shown_label
from renderer.bench.verdict import DecisionRule, Verdict, minimum_detectable_effect
from renderer.pages.page import table
from renderer.plain import Json, printable

LABELS = ("SLOWER", "INVALID", "UNDECIDED", "FASTER", "SAME")  # worst first
LIMITS = DecisionRule()  # the defaults, for files that do not say theirs
MAX_SIMULATED = 100  # --max-pairs up to which the power of a test is simulated, in 0.2 s for a case
COLUMNS = ("verdict", "case", "change", "99 % interval", "pairs", "counts", "counters of a run", "what to do next")
COLORS = {"SLOWER": "#c0392b", "INVALID": "#c0392b", "UNDECIDED": "#7f7f7f"}  # badges of other verdicts are green
BADGE = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="bench: {message}">
<rect width="{width}" height="20" rx="3" fill="#444"/><rect x="46" width="{right}" height="20" rx="3" fill="{color}"/>
<g fill="#fff" font-family="DejaVu Sans,sans-serif" font-size="11"><text x="6" y="14" textLength="34">bench</text>
<text x="52" y="14" textLength="{length}">{message}</text></g></svg>
"""


class Conclusion(NamedTuple):
    """The verdict of one case in words, in the order of COLUMNS."""

    label: str
    case: str
    change: str
    interval: str
    pairs: str
    counts: str
    counters: str
    advice: str


def conclude(experiment: Experiment) -> list[Conclusion]:
    """The conclusions of an experiment, worst first, by the limits with which it was last judged."""
    names = [name for name in experiment.names() if not experiment.skipped(name)]
    rule = _rule(experiment)
    verdicts = compute_verdicts(experiment, names, rule, measure_nothing)
    counts = count_facts(experiment, list(verdicts), rule)
    rows = [_conclusion(experiment, name, verdict, counts[name], rule) for name, verdict in verdicts.items()]
    return sorted(rows, key=lambda row: LABELS.index(row.label))


def _conclusion(experiment: Experiment, name: str, verdict: Verdict, counts: Json, rule: DecisionRule) -> Conclusion:
    """The conclusion of a case; `counts` is its entry of count_facts()."""
    change = interval = ""
    if verdict.label != "INVALID":
        change = f"{verdict.percent:+.2f} % of the {experiment.by}"
        interval = shown_interval(verdict).replace("%", " %")
    increases = experiment.counter_increases(name)
    rose = ", ".join(f"{counter} {base} -> {head}" for counter, (base, head) in increases.items())
    has_counters = any(row.get("counters") for row in experiment.processes(name))
    advice = _advice(experiment, name, verdict, rule)
    if rose:
        advice = f"a counter rose, which fails the experiment whatever the time; {advice}"
    if (decided := deciding_label(verdict, counts)) != verdict.label:
        what = "fail" if decided == "SLOWER" else "pass"
        advice = f"its instructions decide, and {what} the experiment; {advice}"
    counted = [f"{quantity} {shown_label(quantity, fact['verdict'])} {fact['percent']:+.2f} %"
               for quantity, fact in counts.items() if quantity != experiment.by]  # fmt: skip
    counts_text = ", ".join(counted) or "not counted"
    counters = rose or ("not more" if has_counters else "not counted")
    case = f"{str(experiment.header['refs'].get('head'))[:12]}: {name}" if _is_step(experiment) else name
    return Conclusion(verdict.label, case, change, interval, str(verdict.pairs), counts_text, counters, advice)


def _rule(experiment: Experiment) -> DecisionRule:
    """The rule by which an experiment was last judged; LIMITS stand for numbers that are missing or not valid.

    Its header has the numbers of pairs, its last line with verdicts the others. `midpoint` (verdict.py) is 0 but for
    the steps of `bench find` after its head.
    """
    settings, answer = experiment.header.get("settings", {}), experiment.answer
    pairs, most = settings.get("pairs"), settings.get("max_pairs")
    if type(pairs) is not int or type(most) is not int or not 1 <= pairs <= most <= MAX_PAIRS:
        pairs, most = LIMITS.pairs, LIMITS.max_pairs
    alpha, effect = answer.get("alpha"), answer.get("min_effect")
    midpoint = answer.get("midpoint")
    return DecisionRule(
        pairs, most,
        alpha if isinstance(alpha, float) and 0 < alpha < 1 else LIMITS.alpha,
        effect if isinstance(effect, float) and 0 < effect < 1 else LIMITS.min_effect,
        midpoint if isinstance(midpoint, float) and abs(midpoint) < 100 else LIMITS.midpoint,
    )  # fmt: skip


def _is_step(experiment: Experiment) -> bool:
    """True for a step of `bench find`."""
    return bool(experiment.header.get("settings", {}).get("action") == "find")


def _advice(experiment: Experiment, name: str, verdict: Verdict, rule: DecisionRule) -> str:
    """A sentence that says what to do after the verdict of a case."""
    base, smallest = str(experiment.header["refs"].get("base", ""))[:12], f"{100 * rule.min_effect:g} %"
    settings, case = experiment.header.get("settings", {}), f"--case {shlex.quote(name)}"
    program = settings.get("program")
    if program:
        is_whole = name == case_of_command(str(program))
        case = f"--command {shlex.quote(printable(str(program)))}" + ("" if is_whole else f" {case}")
        for option in ("setup", "clock", "counts"):
            value = printable(str(settings.get(option) or ""))
            # the defaults of setup, clock and counts need no option
            case += f" --{option} {shlex.quote(value)}" if value not in ("", "wall", "auto") else ""
    by = f" --by {experiment.by.removeprefix('peak ')}" if experiment.by != "time" else ""
    same = f"a change of {smallest} or more is ruled out"
    reason = f"{verdict.reason}: " if verdict.reason else ""
    ways = ways_to_decide(experiment, rule, "the same -o keeps these")
    is_simulated = experiment.by == "time" and rule.max_pairs <= MAX_SIMULATED and not rule.midpoint
    if verdict.label == "UNDECIDED" and is_simulated:
        differences = experiment.differences(name, "screen")
        effect = minimum_detectable_effect(differences - np.median(differences), rule) if len(differences) else None
        ways = f"a slowdown of {100 * effect:g} % is seen with 80 % power; {ways}" if effect else ways
    find = f"`rayfold bench find --base {base} {case}{by}` names the commit"
    if _is_step(experiment):
        find = "at least half of the slowdown that was searched for" if rule.midpoint else experiment.found or find
    return {
        "SLOWER": find,
        "FASTER": "keep the change, and name this case and device where the speed is claimed",
        "SAME": f"nothing: {'less than half of the slowdown that was searched for' if rule.midpoint else same}",
        "UNDECIDED": f"{reason}{ways}, or a larger --min-effect than {smallest}",
        "INVALID": f"{reason}mend this first, its times mean nothing",
    }[verdict.label]


def summary(experiment: Experiment, rows: list[Conclusion]) -> str:
    """One sentence: the worst verdict and how many cases have each."""
    refs = {key: str(value)[:12] for key, value in experiment.header["refs"].items()}
    dirty = " with uncommitted changes" if experiment.header["refs"].get("dirty") else ""
    return f"head {refs.get('head')}{dirty} against base {refs.get('base')}: {tally(rows)}"


def tally(rows: list[Conclusion]) -> str:
    """The number of cases for each verdict, worst first: 1 SLOWER, 3 SAME."""
    counts = {label: sum(row.label == label for row in rows) for label in LABELS}
    return ", ".join(f"{count} {label}" for label, count in counts.items() if count) or "no case was measured"


def badge(experiments: list[Experiment], as_json: bool) -> str:
    """All verdicts as a picture (SVG), or as JSON for an endpoint of shields.io, in the color of the worst."""
    rows = sorted((row for e in experiments for row in conclude(e)), key=lambda row: LABELS.index(row.label))
    message, color = tally(rows), COLORS.get(rows[0].label if rows else "UNDECIDED", "#2e7d32")
    if as_json:
        return json.dumps({"schemaVersion": 1, "label": "bench", "message": message, "color": color}) + "\n"
    length = 7 * len(message)
    return BADGE.format(width=length + 58, right=length + 12, length=length, message=message, color=color)


def _sections(experiments: list[Experiment]) -> Iterator[tuple[str, list[Conclusion]]]:
    """A sentence and the conclusions of each experiment; the steps of a `bench find` follow its head in one table."""
    groups: dict[str, list[Experiment]] = {}
    for number, experiment in enumerate(experiments):
        base = experiment.header["refs"].get("base")
        groups.setdefault(f"find from {base}" if _is_step(experiment) else str(number), []).append(experiment)
    for members in groups.values():
        members.sort(key=lambda experiment: not experiment.found)  # the head first: only it has `found`
        rows = [conclude(experiment) for experiment in members]
        found = f"; {members[0].found}" if members[0].found else ""
        yield summary(members[0], rows[0]) + found, [row for group in rows for row in group]


def as_text(experiments: list[Experiment]) -> str:
    """The conclusions as Markdown: a sentence and a table for each experiment."""
    parts = []
    for sentence, rows in _sections(experiments):
        cells = [COLUMNS, ["---"] * len(COLUMNS), *rows]
        lines = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in cells]
        parts.append(f"**{sentence}**\n\n" + "\n".join(f"| {line} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def as_html(experiments: list[Experiment]) -> str:
    """The conclusions as HTML: a sentence and a table for each experiment."""
    parts = [f'<p class="headline">{escape(sentence)}</p>{table([COLUMNS, *rows])}'
             for sentence, rows in _sections(experiments)]  # fmt: skip
    return "".join(parts)
