"""The statistics of paired processes: Hodges-Lehmann shift, exact signed-rank test, Holm correction, verdicts.

Comparison with a stored baseline gave 36 to 48 % false alarms on a machine whose speed drifts. Pairs in random order
give the nominal rate: when nothing changed, the sign of a pair's difference is as random as its order.

Wilcoxon, "Individual comparisons by ranking methods", 1945. Hodges and Lehmann, "Estimates of location based on rank
tests", 1963. Holm, "A simple sequentially rejective multiple test procedure", 1979.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from scipy.stats import rankdata

CONFIDENCE = 0.99
Differences = dict[str, np.ndarray]  # case -> log(head / base) of each pair


@dataclass(frozen=True)
class Verdict:
    """A case's label, the shift in log time (head over base), its 99 % interval, and both one-sided p-values."""

    label: str
    shift: float
    low: float
    high: float
    p_slower: float
    p_faster: float
    pairs: int
    reason: str = ""

    @property
    def percent(self) -> float:
        """The shift in percent of the base's time."""
        return (np.exp(self.shift) - 1) * 100


@lru_cache(maxsize=256)
def _counts(doubled_ranks: tuple[int, ...]) -> np.ndarray:
    """How many of the 2^n sign patterns give each sum of the doubled ranks of positive differences.

    Exact below 2^53 and correctly rounded above, since float64 adds them.
    """
    counts = np.zeros(sum(doubled_ranks) + 1)
    counts[0] = 1
    for rank in doubled_ranks:
        counts[rank:] += counts[:-rank].copy()
    return counts


def signed_rank_p(differences: np.ndarray) -> float:
    """Exact one-sided p of Wilcoxon's signed-rank test that the differences tend to be positive; zeros are dropped.

    Ties share their mean rank, which scipy.stats.wilcoxon's exact method does not support.
    """
    d = np.asarray(differences, "f8")
    d = d[d != 0]
    ranks = (2 * rankdata(np.abs(d))).astype(int)
    counts = _counts(tuple(sorted(ranks.tolist())))
    return float(counts[ranks[d > 0].sum() :].sum() / 2.0 ** len(d))


def walsh_averages(differences: np.ndarray) -> np.ndarray:
    """The sorted means of every pair of differences, each with itself too."""
    d = np.asarray(differences, "f8")
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def shift_and_interval(differences: np.ndarray) -> tuple[float, float, float]:
    """The Hodges-Lehmann shift and the exact interval of at least 99 % that inverts the signed-rank test."""
    walsh = walsh_averages(differences)
    cut = _critical_rank(len(differences))
    if cut == 0:  # so few pairs cannot give the confidence
        return float(np.median(walsh)), -np.inf, np.inf
    return float(np.median(walsh)), float(walsh[cut - 1]), float(walsh[-cut])


@cache
def _critical_rank(n: int) -> int:
    """How many Walsh averages of n differences lie outside the interval on each side."""
    tail = np.cumsum(_counts(tuple(2 * rank for rank in range(1, n + 1)))[::2]) / 2.0**n
    return int(np.searchsorted(tail, (1 - CONFIDENCE) / 2, side="right"))


def holm(ps: list[float]) -> list[float]:
    """The p-values corrected for multiple testing by Holm's step-down method."""
    order = np.argsort(ps)
    corrected, worst = [0.0] * len(ps), 0.0
    for position, index in enumerate(order):
        worst = max(worst, min(1.0, ps[index] * (len(ps) - position)))
        corrected[index] = worst
    return corrected


@dataclass(frozen=True)
class DecisionRule:
    """How an experiment decides, with at most `alpha` false alarms in a whole run of any number of cases.

    A group-sequential test in two stages, each at level sqrt(alpha / 2). Screening tests after `pairs`, 2 `pairs`, 4
    `pairs`, ... up to `max_pairs` pairs; its level is split equally over these looks and corrected over the cases by
    Holm. A case found SLOWER or FASTER is tested again on `pairs` fresh pairs. The random orders of the two stages are
    independent, so a false SLOWER passes both with probability at most alpha / 2, and so does a false FASTER.
    """

    pairs: int = 10
    max_pairs: int = 40
    alpha: float = 0.01
    min_effect: float = 0.02

    @property
    def looks(self) -> list[int]:
        """The numbers of pairs after which screening tests."""
        doublings = (self.max_pairs // self.pairs).bit_length()
        return [self.pairs << doubling for doubling in range(doublings)]

    @property
    def stage_alpha(self) -> float:
        """The level of each stage, in one direction."""
        return float(np.sqrt(self.alpha / 2))


def judge(cases: dict[str, np.ndarray], alpha: float = 0.01, min_effect: float = 0.02) -> dict[str, Verdict]:
    """The verdict of each case from its log time ratios, one a pair; `alpha` holds for all cases together."""
    names = [name for name, d in cases.items() if len(d)]
    slower = holm([signed_rank_p(cases[name]) for name in names])
    faster = holm([signed_rank_p(-cases[name]) for name in names])
    bound = float(np.log1p(min_effect))
    verdicts = {}
    for name, p_slower, p_faster in zip(names, slower, faster, strict=True):
        shift, low, high = shift_and_interval(cases[name])
        label = "UNDECIDED"
        if p_slower < alpha and shift > bound:
            label = "SLOWER"
        elif p_faster < alpha and shift < -bound:
            label = "FASTER"
        elif -bound < low and high < bound:
            label = "SAME"
        verdicts[name] = Verdict(label, shift, low, high, p_slower, p_faster, len(cases[name]))
    return verdicts


def decide(
    names: list[str], measure_pairs: Callable[[str, list[str], int], Differences], rule: DecisionRule
) -> dict[str, Verdict]:
    """The verdict of each case that can be measured.

    measure_pairs(stage, names, pairs) measures until each case has `pairs` pairs of the stage ("screen" or "confirm")
    and returns the log time ratios of all of them; it omits a case that cannot be measured.
    """
    verdicts: dict[str, Verdict] = {}
    taken: Differences = {}
    for pairs in rule.looks:
        still = [name for name in names if name not in verdicts or verdicts[name].label == "UNDECIDED"]
        if not still:
            break
        taken |= measure_pairs("screen", still, pairs)
        judged = judge(taken, rule.stage_alpha / len(rule.looks), rule.min_effect)
        verdicts |= {name: judged[name] for name in still if name in judged}
    moved = [name for name in verdicts if verdicts[name].label in ("SLOWER", "FASTER")]
    if moved:
        verdicts |= confirmed(
            {name: verdicts[name] for name in moved}, taken, measure_pairs("confirm", moved, rule.pairs), rule
        )
    return verdicts


def confirmed(
    verdicts: dict[str, Verdict], taken: Differences, fresh: Differences, rule: DecisionRule
) -> dict[str, Verdict]:
    """The verdicts that fresh pairs confirm; the others become UNDECIDED. Shift and interval are those of all pairs."""
    names = [name for name in verdicts if len(fresh.get(name, ()))]
    signs = {name: 1 if verdicts[name].label == "SLOWER" else -1 for name in names}
    ps = dict(zip(names, holm([signed_rank_p(signs[name] * fresh[name]) for name in names]), strict=True))
    bound = float(np.log1p(rule.min_effect))
    answer = {}
    for name, verdict in verdicts.items():
        d = np.concatenate([taken[name], fresh.get(name, [])])
        shift, low, high = shift_and_interval(d)
        held = name in ps and ps[name] < rule.stage_alpha and signs[name] * shift > bound
        label = verdict.label if held else "UNDECIDED"
        reason = "" if held else f"{verdict.label} at first, not in fresh pairs"
        answer[name] = Verdict(label, shift, low, high, verdict.p_slower, verdict.p_faster, len(d), reason)
    return answer


def slower_rate(cases: Differences, rule: DecisionRule, simulations: int = 500, slower: float = 0.0) -> float:
    """How often any case is called SLOWER when the order inside these pairs is drawn again and the head is slower.

    With slower = 0 that is the harness's own error on the machine of the pairs, otherwise its power there.
    """
    rng = np.random.default_rng(0)
    pools = {name: np.asarray(d) for name, d in cases.items() if len(d)}
    most = max(rule.looks)

    def is_slower() -> bool:
        stages = itertools.product(("screen", "confirm"), pools)
        drawn = {key: rng.choice(pools[key[1]], most) * rng.choice((-1.0, 1.0), most) for key in stages}

        def measure_pairs(stage: str, names: list[str], pairs: int) -> Differences:
            return {name: drawn[stage, name][:pairs] + np.log1p(slower) for name in names}

        return any(verdict.label == "SLOWER" for verdict in decide(list(pools), measure_pairs, rule).values())

    return sum(is_slower() for _ in range(simulations)) / simulations


def minimum_detectable_effect(
    d: np.ndarray, rule: DecisionRule, power: float = 0.8, simulations: int = 60
) -> float | None:
    """The smallest of a few slowdowns that is called SLOWER with probability `power`; None above 50 %."""
    for slower in (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5):
        if slower > rule.min_effect and slower_rate({"one": d}, rule, simulations, slower) >= power:
            return slower
    return None
