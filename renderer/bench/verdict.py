"""The statistics of paired fresh processes: Hodges-Lehmann shift, exact signed-rank test, Holm, and the five words.

A stored baseline raises 36 to 48 % false alarms on a drifting machine; pairs in random order raise none, because a
pair's order is a coin flip and so the sign of its difference is too when nothing changed. Wilcoxon 1945; Hodges and
Lehmann 1963; Holm 1979.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np

WORDS = ("SLOWER", "FASTER", "SAME", "UNDECIDED", "INVALID")
CONFIDENCE = 0.99
Differences = dict[str, np.ndarray]  # case -> log(head / base) of each pair


@dataclass(frozen=True)
class Verdict:
    """A case's word, the shift in log time (head over base), its 99 % interval, and the one-sided p of the word."""

    word: str
    shift: float
    low: float
    high: float
    p_slower: float
    p_faster: float
    pairs: int
    reason: str = ""

    @property
    def percent(self) -> float:
        return (np.exp(self.shift) - 1) * 100


@lru_cache(maxsize=256)
def _counts(doubled_ranks: tuple[int, ...]) -> np.ndarray:
    """How many of the 2^n sign patterns give each sum of positive (doubled) ranks; float64 holds 2^40 exactly."""
    counts = np.zeros(sum(doubled_ranks) + 1)
    counts[0] = 1
    for rank in doubled_ranks:
        shifted = np.zeros_like(counts)
        shifted[rank:] = counts[: len(counts) - rank]
        counts = counts + shifted
    return counts


def doubled_ranks(values: np.ndarray) -> np.ndarray:
    """Twice the ranks of the values, ties averaged: whole numbers."""
    _, inverse, number = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(number)
    return (2 * last - number + 1)[inverse]


def signed_rank_p(differences: np.ndarray) -> float:
    """Exact one-sided p of Wilcoxon's signed-rank test that the differences tend to be positive; zeros are dropped."""
    d = np.asarray(differences, "f8")
    d = d[d != 0]
    if not len(d):
        return 1.0
    ranks = doubled_ranks(np.abs(d))
    counts = _counts(tuple(sorted(int(rank) for rank in ranks)))
    return float(counts[int(ranks[d > 0].sum()) :].sum() / 2.0 ** len(d))


def walsh_averages(differences: np.ndarray) -> np.ndarray:
    """The sorted means of every pair of differences, each with itself too."""
    d = np.asarray(differences, "f8")
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def shift_and_interval(differences: np.ndarray) -> tuple[float, float, float]:
    """The Hodges-Lehmann shift and the exact interval of at least 99 % that inverts the signed-rank test."""
    walsh = walsh_averages(differences)
    cut = _cut(len(differences))
    if cut == 0:  # so few pairs cannot give the confidence
        return float(np.median(walsh)), -np.inf, np.inf
    return float(np.median(walsh)), float(walsh[cut - 1]), float(walsh[-cut])


@cache
def _cut(n: int) -> int:
    """How many Walsh averages of n differences lie outside the interval on each side."""
    tail = np.cumsum(_counts(tuple(2 * rank for rank in range(1, n + 1)))[::2]) / 2.0**n
    return int(np.searchsorted(tail, (1 - CONFIDENCE) / 2, side="right"))


def holm(ps: list[float]) -> list[float]:
    """The ps corrected for having asked so many questions."""
    order = np.argsort(ps)
    corrected, worst = [0.0] * len(ps), 0.0
    for position, index in enumerate(order):
        worst = max(worst, min(1.0, ps[index] * (len(ps) - position)))
        corrected[index] = worst
    return corrected


@dataclass(frozen=True)
class Plan:
    """How an experiment decides, with at most `alpha` false alarms in a whole run of any number of cases.

    Two stages. Screening looks after `pairs`, 2 `pairs`, ... up to `most`: equal shares of its level for the looks,
    Holm over the cases. What it calls SLOWER or FASTER is confirmed on `pairs` fresh pairs. The coins of the stages are
    independent, so a false word passes both with the product of their levels, which is alpha / 2 each way.
    """

    pairs: int = 10
    most: int = 40
    alpha: float = 0.01
    effect: float = 0.02

    @property
    def looks(self) -> list[int]:
        counts = [self.pairs]
        while counts[-1] * 2 <= self.most:
            counts.append(counts[-1] * 2)
        return counts

    @property
    def stage_alpha(self) -> float:
        return float(np.sqrt(self.alpha / 2))


def judge(cases: dict[str, np.ndarray], alpha: float = 0.01, effect: float = 0.02) -> dict[str, Verdict]:
    """The verdict of each case from its log time ratios, one a pair; `alpha` holds for all cases together."""
    names = [name for name, d in cases.items() if len(d)]
    slower = holm([signed_rank_p(cases[name]) for name in names])
    faster = holm([signed_rank_p(-cases[name]) for name in names])
    bound = float(np.log1p(effect))
    verdicts = {}
    for name, p_slower, p_faster in zip(names, slower, faster, strict=True):
        shift, low, high = shift_and_interval(cases[name])
        word = "UNDECIDED"
        if p_slower < alpha and shift > bound:
            word = "SLOWER"
        elif p_faster < alpha and shift < -bound:
            word = "FASTER"
        elif -bound < low and high < bound:
            word = "SAME"
        verdicts[name] = Verdict(word, shift, low, high, p_slower, p_faster, len(cases[name]))
    return verdicts


def decide(names: list[str], take: Callable[[str, list[str], int], Differences], plan: Plan) -> dict[str, Verdict]:
    """The verdict of each case that can be measured.

    take(stage, names, pairs) measures until each case has `pairs` pairs of the stage, "screen" or "confirm", and
    returns the log time ratios of all of them; a case that cannot be measured is left out.
    """
    verdicts: dict[str, Verdict] = {}
    taken: Differences = {}
    for pairs in plan.looks:
        still = [name for name in names if name not in verdicts or verdicts[name].word == "UNDECIDED"]
        if not still:
            break
        taken |= take("screen", still, pairs)
        judged = judge(taken, plan.stage_alpha / len(plan.looks), plan.effect)
        verdicts |= {name: judged[name] for name in still if name in judged}
    moved = [name for name in verdicts if verdicts[name].word in ("SLOWER", "FASTER")]
    if moved:
        verdicts |= confirmed({name: verdicts[name] for name in moved}, taken, take("confirm", moved, plan.pairs), plan)
    return verdicts


def confirmed(verdicts: dict[str, Verdict], taken: Differences, fresh: Differences, plan: Plan) -> dict[str, Verdict]:
    """The verdicts that fresh pairs confirm; the others become UNDECIDED. Shift and interval are those of all pairs."""
    names = [name for name in verdicts if len(fresh.get(name, ()))]
    signs = {name: 1 if verdicts[name].word == "SLOWER" else -1 for name in names}
    ps = dict(zip(names, holm([signed_rank_p(signs[name] * fresh[name]) for name in names]), strict=True))
    bound = float(np.log1p(plan.effect))
    answer = {}
    for name, verdict in verdicts.items():
        d = np.concatenate([taken[name], fresh.get(name, [])])
        shift, low, high = shift_and_interval(d)
        held = name in ps and ps[name] < plan.stage_alpha and signs[name] * shift > bound
        word = verdict.word if held else "UNDECIDED"
        reason = "" if held else f"{verdict.word} at first, not in fresh pairs"
        answer[name] = Verdict(word, shift, low, high, verdict.p_slower, verdict.p_faster, len(d), reason)
    return answer


def alarm_rate(cases: Differences, plan: Plan, draws: int = 500, slower: float = 0.0) -> float:
    """How often any case is called SLOWER when the order inside these pairs is thrown again and the head is slower.

    With slower = 0 that is the harness's own error on the machine of the pairs, otherwise its power there.
    """
    rng = np.random.default_rng(0)
    pools = {name: np.asarray(d) for name, d in cases.items() if len(d)}
    step = float(np.log1p(slower))

    def take(stage: str, names: list[str], pairs: int) -> Differences:
        if stage == "confirm":
            return {name: draw(name, pairs) for name in names}
        for name in names:
            screened[name] = np.concatenate([screened.get(name, []), draw(name, pairs - len(screened.get(name, ())))])
        return {name: screened[name] for name in names}

    def draw(name: str, count: int) -> np.ndarray:
        return rng.choice(pools[name], count) * rng.choice((-1.0, 1.0), count) + step

    alarms = 0
    for _ in range(draws):
        screened: Differences = {}
        alarms += any(verdict.word == "SLOWER" for verdict in decide(list(pools), take, plan).values())
    return alarms / draws


def detectable(d: np.ndarray, plan: Plan, power: float = 0.8, draws: int = 60) -> float | None:
    """The least of a few slowdowns that a case with such pairs is called SLOWER for, with `power`; None above 50 %."""
    for slower in (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5):
        if slower > plan.effect and alarm_rate({"one": d}, plan, draws, slower) >= power:
            return slower
    return None
