"""What experiments say: the verdict of each case with its reason, interval, pairs, counters and what to do next.

For the top of the page of `bench report`, and as Markdown for a pull request (`bench report --text`).
"""

import shlex
from typing import NamedTuple

import numpy as np

from renderer.bench import MAX_PAIRS
from renderer.bench.ab import compute_verdicts
from renderer.bench.experiment import Experiment
from renderer.bench.verdict import DecisionRule, Verdict
from renderer.pages.markdown import escape
from renderer.pages.page import table

LABELS = ("SLOWER", "INVALID", "UNDECIDED", "FASTER", "SAME")  # worst first
LIMITS = DecisionRule()
COLUMNS = ("verdict", "case", "time", "99 % interval", "pairs", "counters of a run", "what to do next")


class Conclusion(NamedTuple):
    """The verdict of one case in words, in the order of COLUMNS."""

    label: str
    case: str
    change: str
    interval: str
    pairs: str
    counters: str
    advice: str


def conclude(experiment: Experiment) -> list[Conclusion]:
    """The conclusions of an experiment, worst first, by the limits with which it was last judged."""
    names = [name for name in experiment.names() if not experiment.skipped(name)]
    rule = _rule(experiment)
    verdicts = compute_verdicts(experiment, names, rule, lambda stage, names, pairs: None)
    out = []
    for name, verdict in verdicts.items():
        change = interval = ""
        if verdict.label != "INVALID":
            bounds = (verdict.low, verdict.high)
            low, high = (f"{100 * np.expm1(x):+.2f} %" if np.isfinite(x) else "unbounded" for x in bounds)
            change, interval = f"{verdict.percent:+.2f} %", f"{low} to {high}"
        increases = experiment.counter_increases(name)
        rose = ", ".join(f"{counter} {base} -> {head}" for counter, (base, head) in increases.items())
        counted = any(row.get("counters") for row in experiment.processes(name))
        counters = rose or ("not more" if counted else "not counted")
        advice = _advice(experiment, name, verdict, rule)
        if rose:
            advice = f"a counter rose, which fails the experiment whatever the time; {advice}"
        out.append(Conclusion(verdict.label, name, change, interval, str(verdict.pairs), counters, advice))
    return sorted(out, key=lambda row: LABELS.index(row.label))


def _rule(experiment: Experiment) -> DecisionRule:
    """The rule of the experiment's header and of its last line with verdicts, as far as these hold valid numbers."""
    settings, answer = experiment.header.get("settings", {}), experiment.answer
    pairs, most = settings.get("pairs"), settings.get("max_pairs")
    if type(pairs) is not int or type(most) is not int or not 1 <= pairs <= most <= MAX_PAIRS:
        pairs, most = LIMITS.pairs, LIMITS.max_pairs
    alpha, effect = answer.get("alpha"), answer.get("min_effect")
    return DecisionRule(
        pairs, most,
        alpha if isinstance(alpha, float) and 0 < alpha < 1 else LIMITS.alpha,
        effect if isinstance(effect, float) and 0 < effect < 1 else LIMITS.min_effect,
    )  # fmt: skip


def _advice(experiment: Experiment, name: str, verdict: Verdict, rule: DecisionRule) -> str:
    base, smallest = str(experiment.header["refs"].get("base", ""))[:12], f"{100 * rule.min_effect:g} %"
    case = f"--command {shlex.quote(name)}" if "program" in experiment.header.get("settings", {}) else f"--case {name}"
    reason = f"{verdict.reason}: " if verdict.reason else ""
    return {
        "SLOWER": f"`rayfold bench find --base {base} {case}` names the commit",
        "FASTER": "keep the change, and name this case and device where the speed is claimed",
        "SAME": f"nothing: a change of {smallest} or more is ruled out",
        "UNDECIDED": f"{reason}measure again on an idle machine, with more pairs (--max-pairs {2 * rule.max_pairs}) "
        f"or a larger --min-effect than {smallest}",
        "INVALID": f"{reason}mend this first, its times mean nothing",
    }[verdict.label]


def summary(experiment: Experiment, rows: list[Conclusion]) -> str:
    """One sentence: the worst verdict and how many cases have each."""
    counts = [f"{sum(row.label == label for row in rows)} {label}" for label in LABELS]
    counted = ", ".join(text for text in counts if not text.startswith("0 "))
    refs = {key: str(value)[:12] for key, value in experiment.header["refs"].items()}
    dirty = " with uncommitted changes" if experiment.header["refs"].get("dirty") else ""
    return f"head {refs.get('head')}{dirty} against base {refs.get('base')}: {counted or 'no case was measured'}"


def as_text(experiments: list[Experiment]) -> str:
    """The conclusions as Markdown: a sentence and a table for each experiment."""
    parts = []
    for experiment in experiments:
        rows = conclude(experiment)
        cells = [COLUMNS, ["---"] * len(COLUMNS), *rows]
        lines = [" | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) for row in cells]
        parts.append(f"**{summary(experiment, rows)}**\n\n" + "\n".join(f"| {line} |" for line in lines))
    return "\n\n".join(parts) + "\n"


def as_html(experiments: list[Experiment]) -> str:
    """The conclusions as HTML: a sentence and a table for each experiment."""
    parts = []
    for experiment in experiments:
        rows = conclude(experiment)
        parts.append(f'<p class="headline">{escape(summary(experiment, rows))}</p>{table([COLUMNS, *rows])}')
    return "".join(parts)
