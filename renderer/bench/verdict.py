"""The statistics of `bench ab` and `bench aa`: verdicts SLOWER, FASTER, SAME or UNDECIDED from paired times.

A pair is a process of the base commit and one of the head commit, run one after the other in random order. The data of
a case, its differences, are log(head's time / base's time), one number for each pair. They are judged by the
Hodges-Lehmann shift, the exact signed-rank test and the Holm correction over the cases. Comparing with a stored
baseline gave 36 to 48 % false alarms on a machine whose speed drifts. Pairs in random order give the nominal rate: if
nothing changed, the sign of a pair's difference is as random as the pair's order.

Wilcoxon, "Individual comparisons by ranking methods", 1945. Hodges and Lehmann, "Estimates of location based on rank
tests", 1963. Holm, "A simple sequentially rejective multiple test procedure", 1979.
"""

import itertools
from collections.abc import Callable
from functools import cache, lru_cache

import numpy as np
from scipy.stats import rankdata

from renderer.records import dataclass

CONFIDENCE = 0.99
Differences = dict[str, np.ndarray]  # case -> log(head / base) of each pair


@dataclass(frozen=True)
class Verdict:
    """A case's label, the shift of log(head / base), its 99 % interval, and both one-sided p-values."""

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
        """Returns the shift in percent of the base's time."""
        return float(np.exp(self.shift) - 1) * 100


@lru_cache(maxsize=256)
def _counts(ranks: tuple[int, ...]) -> np.ndarray:
    """Counts, for each possible sum of the ranks of positive differences, the sign patterns that give it.

    Of the ranks (1, 2, 3): [1, 1, 1, 2, 1, 1, 1], since two patterns, 1 + 2 and 3, give the sum 3. Ranks may be
    doubled, to make them whole numbers. There are 2^n patterns for n ranks. float64 counts are exact below 2^53 and
    rounded above.
    """
    counts = np.zeros(sum(ranks) + 1)
    counts[0] = 1
    for rank in ranks:  # a pattern of the ranks so far goes on with this rank's difference negative, or positive
        counts[rank:] += counts[:-rank].copy()
    return counts


def signed_rank_p(differences: np.ndarray) -> float:
    """Returns the exact one-sided p of Wilcoxon's signed-rank test; a small p says the differences tend to be positive.

    Zeros are dropped. Ties share their mean rank, which scipy.stats.wilcoxon's exact method does not support.
    """
    d = np.asarray(differences, "f8")
    d = d[d != 0]
    doubled_ranks = (2 * rankdata(np.abs(d))).astype(int)  # whole numbers: ties have half ranks
    counts, rank_sum = _counts(tuple(sorted(doubled_ranks.tolist()))), doubled_ranks[d > 0].sum()
    return float(counts[rank_sum:].sum() / 2.0 ** len(d))  # the sign patterns with at least this rank sum


def walsh_averages(differences: np.ndarray) -> np.ndarray:
    """Returns the sorted means of all pairs of differences, including each difference with itself."""
    d = np.asarray(differences, "f8")
    i, j = np.triu_indices(len(d))
    return np.sort((d[i] + d[j]) / 2)


def shift_and_interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Returns the Hodges-Lehmann shift and both bounds of the exact 99 % interval that inverts the signed-rank test."""
    walsh = walsh_averages(differences)
    rank = _critical_rank(len(differences))  # 0: so few pairs cannot give the confidence
    low, high = (walsh[rank - 1], walsh[-rank]) if rank else (-np.inf, np.inf)
    return float(np.median(walsh)), float(low), float(high)


def outliers(differences: np.ndarray) -> int:
    """Returns how many differences lie 3.5 robust standard deviations from the median (Iglewicz and Hoaglin, 1993)."""
    if not len(differences):
        return 0
    distances = np.abs(differences - np.median(differences))
    return int((distances > 3.5 * 1.4826 * max(np.median(distances), 1e-12)).sum())


@cache
def _critical_rank(n: int) -> int:
    """Returns the rank k of the interval's lower bound among the sorted Walsh averages of n differences, from 1.

    The interval goes from the k-th smallest to the k-th largest average. It misses the true shift below, or above, with
    the probability of a rank sum less than k. 0: no interval of n differences has the confidence.
    """
    counts = _counts(tuple(range(1, n + 1)))  # without ties, ranks need not be doubled
    return int(np.searchsorted(np.cumsum(counts) / 2.0**n, (1 - CONFIDENCE) / 2, side="right"))


def holm(ps: list[float]) -> list[float]:
    """Corrects p-values for multiple testing by Holm's step-down method; returns them in the given order."""
    order, factors = np.argsort(ps), np.arange(len(ps), 0, -1)  # the smallest p is multiplied by the number of tests
    corrected = np.empty(len(ps))
    corrected[order] = np.minimum(np.maximum.accumulate(np.array(ps)[order] * factors), 1.0)
    return corrected.tolist()


@dataclass(frozen=True)
class DecisionRule:
    """The decision rule of an experiment, with at most `alpha` false alarms in a whole run of any number of cases.

    A group-sequential test in two stages, each at level sqrt(alpha / 2). Screening tests after `pairs`, 2 `pairs`, 4
    `pairs`, ... up to `max_pairs` pairs; its level is split equally over these looks and corrected over the cases by
    Holm. A case called SLOWER or FASTER is tested again on fresh pairs, by the same looks. The random orders of the two
    stages are independent, so a false SLOWER passes both with probability at most alpha / 2, and a false FASTER too.

    With a `midpoint`, a log ratio, SLOWER means above it and SAME below it, whatever the least effect: the two are told
    apart by one stage of looks, each error with probability at most alpha / 2. A slowdown that is known to be there or
    not takes few pairs, as in Wald's test of two simple hypotheses ("Sequential analysis", 1947).
    """

    pairs: int = 10
    max_pairs: int = 40
    alpha: float = 0.01
    min_effect: float = 0.02
    midpoint: float = 0.0

    @property
    def looks(self) -> list[int]:
        """Returns the numbers of pairs after which a stage tests."""
        doublings = (self.max_pairs // self.pairs).bit_length()
        return [self.pairs << doubling for doubling in range(doublings)]

    @property
    def stage_alpha(self) -> float:
        """Returns the level of each stage's one-sided test."""
        return float(np.sqrt(self.alpha / 2))


def judge(
    cases: dict[str, np.ndarray], alpha: float = 0.01, min_effect: float = 0.02, midpoint: float = 0.0
) -> dict[str, Verdict]:
    """Returns the verdict of each case from its log time ratios, one a pair; `alpha` holds for all cases together."""
    names = [name for name, d in cases.items() if len(d)]
    slower = holm([signed_rank_p(cases[name] - midpoint) for name in names])
    faster = holm([signed_rank_p(midpoint - cases[name]) for name in names])
    bound = float(np.log1p(min_effect))
    verdicts = {}
    for name, p_slower, p_faster in zip(names, slower, faster, strict=True):
        shift, low, high = shift_and_interval(cases[name])
        label = "UNDECIDED"
        if midpoint:
            label = "SLOWER" if p_slower < alpha else "SAME" if p_faster < alpha else label
        elif p_slower < alpha and shift > bound:
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
    """Runs both stages of the decision rule; returns the verdict of each case that can be measured.

    measure_pairs(stage, names, pairs) measures until each case has `pairs` pairs of the stage ("screen" or "confirm")
    and returns the log time ratios of these pairs by case; it omits a case that cannot be measured.
    """
    verdicts: dict[str, Verdict] = {}
    screened: Differences = {}
    for pairs in rule.looks:
        undecided = [name for name in names if name not in verdicts or verdicts[name].label == "UNDECIDED"]
        if not undecided:
            break
        screened |= measure_pairs("screen", undecided, pairs)
        # Decided cases are judged again but keep their verdicts: Holm's correction needs the p-values of all cases.
        alpha = rule.alpha / 2 if rule.midpoint else rule.stage_alpha
        judged = judge(screened, alpha / len(rule.looks), rule.min_effect, rule.midpoint)
        verdicts |= {name: judged[name] for name in undecided if name in judged}
    changed = {name: verdict for name, verdict in verdicts.items() if verdict.label in ("SLOWER", "FASTER")}
    fresh: Differences = {}
    left = [] if rule.midpoint else list(changed)  # with a midpoint there is no second stage
    for pairs in rule.looks:
        if not left:
            break
        fresh |= measure_pairs("confirm", left, pairs)
        tested = confirmed(changed, screened, fresh, rule)
        verdicts |= {name: tested[name] for name in left}
        left = [name for name in left if tested[name].label == "UNDECIDED"]
    return verdicts


def confirmed(
    verdicts: dict[str, Verdict], screened: Differences, fresh: Differences, rule: DecisionRule
) -> dict[str, Verdict]:
    """Tests SLOWER and FASTER again on `fresh` pairs; verdicts that are not confirmed become UNDECIDED.

    A verdict is confirmed if the fresh pairs alone are significant in its direction and the shift of all pairs, of the
    screening stage and fresh, exceeds the least effect. Shift and interval use all pairs.
    """
    names = [name for name in verdicts if len(fresh.get(name, ()))]
    signs = {name: 1 if verdicts[name].label == "SLOWER" else -1 for name in names}
    ps = dict(zip(names, holm([signed_rank_p(signs[name] * fresh[name]) for name in names]), strict=True))
    bound = float(np.log1p(rule.min_effect))
    answer = {}
    for name, verdict in verdicts.items():
        d = np.concatenate([screened[name], fresh.get(name, [])])
        shift, low, high = shift_and_interval(d)
        is_confirmed = name in ps and ps[name] < rule.stage_alpha / len(rule.looks) and signs[name] * shift > bound
        label = verdict.label if is_confirmed else "UNDECIDED"
        reason = "" if is_confirmed else f"{verdict.label} at first, not confirmed with fresh pairs"
        answer[name] = Verdict(label, shift, low, high, verdict.p_slower, verdict.p_faster, len(d), reason)
    return answer


def slower_rate(cases: Differences, rule: DecisionRule, simulations: int = 500, slower: float = 0.0) -> float:
    """Estimates the probability that any case is called SLOWER if the head takes the fraction `slower` more time.

    Simulates experiments by drawing pairs of `cases` (A/A pairs of one machine) again with random signs. With slower =
    0 the result is the false alarm rate on that machine, otherwise the power of the test.
    """
    rng = np.random.default_rng(0)
    pools = {name: np.asarray(d) for name, d in cases.items() if len(d)}
    max_pairs = max(rule.looks)

    def is_slower() -> bool:
        stages = itertools.product(("screen", "confirm"), pools)
        drawn = {key: rng.choice(pools[key[1]], max_pairs) * rng.choice((-1.0, 1.0), max_pairs) for key in stages}

        def measure_pairs(stage: str, names: list[str], pairs: int) -> Differences:
            return {name: drawn[stage, name][:pairs] + np.log1p(slower) for name in names}

        return any(verdict.label == "SLOWER" for verdict in decide(list(pools), measure_pairs, rule).values())

    return sum(is_slower() for _ in range(simulations)) / simulations


def minimum_detectable_effect(
    d: np.ndarray, rule: DecisionRule, power: float = 0.8, simulations: int = 60
) -> float | None:
    """Returns the smallest of ten slowdowns that is called SLOWER with probability `power`; None if even 0.5 is not."""
    for slower in (0.02, 0.03, 0.04, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5):
        if slower > rule.min_effect and slower_rate({"one": d}, rule, simulations, slower) >= power:
            return slower
    return None
