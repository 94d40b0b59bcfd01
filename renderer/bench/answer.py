"""The answer of `bench ab`, `bench aa` and `bench reanalyze`: the verdicts as text or JSON, and the exit code."""

import json

import numpy as np

from renderer.bench import MAX_PAIRS
from renderer.bench.counting import Measure, judge_counts, measure_nothing
from renderer.bench.experiment import Experiment, shown_label
from renderer.bench.verdict import DecisionRule, Verdict, decide
from renderer.plain import Json
from renderer.system.process import INTERNAL_ERROR


def compute_verdicts(
    experiment: Experiment, names: list[str], rule: DecisionRule, measure: Measure
) -> dict[str, Verdict]:
    """Returns the verdict of each case that the base has too; INVALID where a process crashed or the pictures differ.

    It is of the time, or of the quantity that the experiment's --by names. measure(stage, names, pairs) measures
    processes until `experiment` has `pairs` pairs of each named case.
    """

    def measure_pairs(stage: str, names: list[str], pairs: int) -> dict[str, np.ndarray]:
        measure(stage, names, pairs)
        # A resumed file may hold more pairs than this look of the test is to see.
        ratios = {name: experiment.differences(name, stage)[:pairs] for name in names if not experiment.invalid(name)}
        return {name: values for name, values in ratios.items() if len(values)}

    if experiment.by == "time":
        verdicts = decide(names, measure_pairs, rule)
    else:
        counted = judge_counts(experiment, names, rule, measure, experiment.by)
        verdicts = {name: judged[experiment.by] for name, judged in counted.items() if experiment.by in judged}
    for name in names:
        reason = experiment.invalid(name)
        if reason or name not in verdicts:
            # the numbers: shift, low, high, both p-values, pairs
            verdicts[name] = Verdict("INVALID", 0.0, 0.0, 0.0, 1.0, 1.0, 0, reason or "no complete pair was measured")
    return {name: verdicts[name] for name in names if not experiment.skipped(name)}


def print_verdicts(
    experiment: Experiment,
    verdicts: dict[str, Verdict],
    rule: DecisionRule,
    as_json: bool,
    fail_on_undecided: bool,
    extra: Json | None = None,
) -> int:
    """Prints the verdicts, with the further keys `extra`, and appends them to the file; returns the exit code.

    1: a case is slower, a counter increased, the head's picture differs, the head's check fails, the base crashes, or
    a command fails in one arm. 70: the head's case crashes. 3: a case is undecided (1 with `fail_on_undecided`). 0:
    otherwise. Where the time of a case is undecided its instructions decide, see deciding_label().
    """
    increases = {name: experiment.counter_increases(name) for name in verdicts}
    skipped = {name: experiment.skipped(name) for name in experiment.names()}
    facts = {name: verdict_facts(verdict) for name, verdict in verdicts.items()}
    answer = {
        "verdicts": {name: verdict.label for name, verdict in verdicts.items()},
        **{key: {name: fact[key] for name, fact in facts.items()} for key in ("percent", "interval", "pairs")},
        "by": experiment.by,
        "counts": count_facts(experiment, list(verdicts), rule),
        "outliers": {name: experiment.outliers(name) for name in verdicts},
        "reasons": {name: verdict.reason for name, verdict in verdicts.items() if verdict.reason},
        "counter_increases": {name: counters for name, counters in increases.items() if counters},
        "skipped": {name: reason for name, reason in skipped.items() if reason},
        "refs": experiment.header["refs"],
        **({"counter": experiment.header["counter"]} if "counter" in experiment.header else {}),
        **(extra or {}),
    }
    deciding = {name: deciding_label(verdict, answer["counts"][name]) for name, verdict in verdicts.items()}
    answer["deciding"] = deciding
    experiment.file.add({"verdict": answer})
    if as_json:
        print(json.dumps(answer))
    else:
        _print(answer, verdicts, experiment, rule)
    return _exit_code(experiment, answer, set(deciding.values()), fail_on_undecided)


def _exit_code(experiment: Experiment, answer: Json, labels: set[str], fail_on_undecided: bool) -> int:
    """1 if the head is slower or wrong, INTERNAL_ERROR if it crashed, 3 if a case is undecided, 0 otherwise.

    `labels`: the labels that decide. Increased counters also give 1, as do undecided cases with
    `fail_on_undecided`. An INVALID case gives 1, since CI must not pass what was not judged; but INTERNAL_ERROR if the
    head's case crashed. A command is not this program, so that its failure is never an internal error. No case at all,
    and a case without a complete pair, count as undecided.
    """
    invalid = [name for name, label in answer["verdicts"].items() if label == "INVALID"]
    crashes = [row for name in invalid if (row := experiment.crash(name))]
    differs = any(experiment.invalid(name) and not experiment.crash(name) for name in invalid)
    is_command = "program" in experiment.header.get("settings", {})
    wrong = any(is_command or row["arm"] == "base" or "wrong" in row for row in crashes)
    if "SLOWER" in labels or answer["counter_increases"] or differs or wrong:
        return 1
    if crashes:
        return INTERNAL_ERROR
    if labels & {"UNDECIDED", "INVALID"} or not labels:
        return 1 if fail_on_undecided else 3
    return 0


def deciding_label(verdict: Verdict, counts: Json) -> str:
    """The label of a case for the exit code: by its instructions where its time is UNDECIDED.

    A program that waits becomes slower by the clock alone: where the time's whole interval is above 0, instructions
    that are not more decide nothing. `counts` is the case's entry of count_facts().
    """
    if verdict.label != "UNDECIDED" or "instructions" not in counts:
        return verdict.label
    counted: str = counts["instructions"]["verdict"]
    return counted if counted == "SLOWER" or verdict.low <= 0 else verdict.label


def count_facts(experiment: Experiment, names: list[str], rule: DecisionRule) -> Json:
    """The verdicts of counts that were measured, as JSON: case -> quantity -> verdict, percent, interval, pairs."""
    counted = judge_counts(experiment, names, rule, measure_nothing)
    return {name: {key: verdict_facts(v) for key, v in quantities.items()} for name, quantities in counted.items()}


def verdict_facts(verdict: Verdict) -> Json:
    """A verdict as JSON; percent and interval are of the base's time, and None is an infinite bound."""
    interval = [round(100 * np.expm1(x), 3) if np.isfinite(x) else None for x in (verdict.low, verdict.high)]
    return {
        "verdict": verdict.label, "percent": round(verdict.percent, 3), "interval": interval, "pairs": verdict.pairs,
    }  # fmt: skip


def ways_to_decide(experiment: Experiment, rule: DecisionRule, kept: str) -> str:
    """What to try where a case is undecided; `kept` says where pairs are kept."""
    settings = experiment.header.get("settings", {})
    is_wall = "program" in settings and settings.get("clock") == "wall" and experiment.by == "time"
    clock = "--clock cpu, which other programs disturb less, " if is_wall else ""
    return f"{clock}more pairs by --max-pairs {min(MAX_PAIRS, 2 * rule.max_pairs)} ({kept}), or an idle machine"


def _print(answer: Json, verdicts: dict[str, Verdict], experiment: Experiment, rule: DecisionRule) -> None:
    """Prints the verdict of each case, then its other quantities, outliers and counters that rose."""
    refs, deciding = answer["refs"], answer["deciding"]
    dirty = " with uncommitted changes" if refs.get("dirty") else ""
    print(f"base {refs.get('base', '')[:12]}, head {refs.get('head', '')[:12]}{dirty}")
    for name, verdict in verdicts.items():
        text = f"{verdict.percent:+6.2f}% of the {answer['by']} ({_bounds(answer['interval'][name])})"
        text = "" if verdict.label == "INVALID" else f"{text}, {verdict.pairs} pairs in all"
        print(f"{verdict.label:10s} {name:38s} {'; '.join(filter(None, (text, verdict.reason)))}")
        for quantity, judged in answer["counts"][name].items():
            if quantity != answer["by"]:
                change = f"{judged['percent']:+6.2f}% of the {quantity} ({_bounds(judged['interval'])})"
                print(f"  {shown_label(quantity, judged['verdict']):10s} {change}, {judged['pairs']} pairs")
        if deciding[name] != verdict.label:
            print(f"           the instructions decide: {deciding[name]}")
        if answer["outliers"][name]:
            print(f"           {answer['outliers'][name]} pairs are outliers: other work on the machine disturbed them")
        for counter, (base, head) in answer["counter_increases"].get(name, {}).items():
            print(f"           {counter} of one run rose from {base} to {head}")
    for name, reason in answer["skipped"].items():
        print(f"skipped    {name:38s} {reason}")
    if not any("instructions" in judged for judged in answer["counts"].values()) and answer.get("counter"):
        print(f"no instructions were counted: {answer['counter']}")
    if "UNDECIDED" in deciding.values():
        path = experiment.file.path
        kept = f"-o {path} keeps these" if path else "-o F.jsonl keeps pairs"
        print(f"undecided: {ways_to_decide(experiment, rule, kept)}")
    if "false_positive_rate" in answer:
        print(f"false alarms of these pairs under random order: {100 * answer['false_positive_rate']:.2f}%")
        for name, effect in answer["detectable_percent"].items():
            detected = "no slowdown up to +50%" if effect is None else f"+{effect:g}%"
            print(f"detected with 80% power: {name:38s} {detected}")


def shown_interval(verdict: Verdict) -> str:
    """The bounds of the verdict's interval in percent of the base's time, in words."""
    return _bounds(verdict_facts(verdict)["interval"])


def _bounds(interval: list[float | None]) -> str:
    return " to ".join("unbounded" if x is None else f"{x:+.2f}%" for x in interval)
