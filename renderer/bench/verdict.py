"""The statistics of paired fresh processes: Hodges-Lehmann shift, exact signed-rank test, Holm, and the five words.

A stored baseline raises 36 to 48 % false alarms on a drifting machine; pairs in random order raise none, because a
pair's order is a coin flip and so the sign of its difference is too when nothing changed. Wilcoxon 1945; Hodges and
Lehmann 1963; Holm 1979.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

WORDS = ("SLOWER", "FASTER", "SAME", "UNDECIDED", "INVALID")
CONFIDENCE = 0.99


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


@cache
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
    n = len(differences)
    tail = np.cumsum(_counts(tuple(2 * rank for rank in range(1, n + 1)))[::2]) / 2.0**n
    cut = int(np.searchsorted(tail, (1 - CONFIDENCE) / 2, side="right"))
    if cut == 0:  # so few pairs cannot give the confidence
        return float(np.median(walsh)), -np.inf, np.inf
    return float(np.median(walsh)), float(walsh[cut - 1]), float(walsh[-cut])


def holm(ps: list[float]) -> list[float]:
    """The ps corrected for having asked so many questions."""
    order = np.argsort(ps)
    corrected, worst = [0.0] * len(ps), 0.0
    for position, index in enumerate(order):
        worst = max(worst, min(1.0, ps[index] * (len(ps) - position)))
        corrected[index] = worst
    return corrected


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


def false_alarm_rate(cases: dict[str, np.ndarray], alpha: float, effect: float, draws: int = 2000) -> float:
    """How often any of these pairs would be called SLOWER under random orders: the harness's own error here."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(draws):
        flipped = {name: d * rng.choice((-1.0, 1.0), len(d)) for name, d in cases.items()}
        alarms += any(verdict.word == "SLOWER" for verdict in judge(flipped, alpha, effect).values())
    return alarms / draws
