"""The statistics of experiments against SciPy, enumeration and simulations on recorded drift."""

import numpy as np
import pytest
from scipy import stats

from renderer.bench.experiment import read_experiment
from renderer.bench.verdict import (
    DecisionRule,
    decide,
    holm,
    judge,
    minimum_detectable_effect,
    shift_and_interval,
    signed_rank_p,
    slower_rate,
    walsh_averages,
)
from tests.bench.helpers import BUSY


def test_signed_rank_equals_scipy(rng):
    for n in (1, 2, 5, 10, 25):
        for _ in range(20):
            d = rng.normal(0.3, 1, n)
            assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, alternative="greater", method="exact").pvalue)


def test_signed_rank_with_ties_and_zeros_equals_enumeration(rng):
    for _ in range(20):
        d = rng.integers(-3, 4, 8).astype("f8")
        d = d[d != 0]
        if not len(d):
            continue
        ranks = stats.rankdata(np.abs(d))
        signs = np.array(np.meshgrid(*[[0, 1]] * len(d))).reshape(len(d), -1)
        assert signed_rank_p(d) == pytest.approx((ranks @ signs >= ranks[d > 0].sum() - 1e-9).mean())
    assert signed_rank_p(np.zeros(5)) == 1


def test_shift_is_the_median_of_walsh_averages_and_the_interval_covers(rng):
    d = rng.normal(size=9)
    assert shift_and_interval(d)[0] == np.median([(a + b) / 2 for i, a in enumerate(d) for b in d[i:]])
    assert len(walsh_averages(d)) == 45
    covered = [low <= 0.1 <= high for _, low, high in (shift_and_interval(rng.normal(0.1, 1, 12)) for _ in range(400))]
    assert np.mean(covered) >= 0.97
    assert shift_and_interval(d[:4])[1:] == (-np.inf, np.inf)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_the_labels(rng):
    noise = rng.normal(0, 0.002, 12)
    cases = {"slower": noise + 0.05, "faster": noise - 0.05, "same": noise, "little": noise + 0.01}
    labels = {name: verdict.label for name, verdict in judge(cases).items()}
    assert labels["slower"] == "SLOWER" and labels["faster"] == "FASTER" and labels["same"] == "SAME"
    assert labels["little"] in ("SAME", "UNDECIDED")
    assert judge({"few": noise[:3] + 1})["few"].label == "UNDECIDED"


def recorded_processes():
    """Frame times (n,) in ns of each of 260 processes that ran one after the other on a busy machine, in order."""
    experiment = read_experiment(BUSY)
    return [
        np.array(row["wall_ns"]) for row in sorted(experiment.processes("harness/pass"), key=lambda row: row["began"])
    ]


def drifting_medians(rng, count):
    """Log medians of `count` neighboring recorded processes, either way round, each of a sample of its frames."""
    start = rng.integers(0, len(PROCESSES) - count)
    stretch = PROCESSES[start : start + count]
    medians = [np.median(frames[rng.integers(0, len(frames), len(frames))]) for frames in stretch]
    return np.log(medians[::-1] if rng.random() < 0.5 else medians)


def correlated(rng, count, spread=0.3, neighbor=0.97):
    """A drifting series: neighbors correlate."""
    steps = rng.normal(0, spread * np.sqrt(1 - neighbor**2), count)
    series = np.zeros(count)
    for i in range(1, count):
        series[i] = neighbor * series[i - 1] + steps[i]
    return series


def simulated(rng, series, cases, rule, slower=0.0):
    """The labels of an experiment whose processes take exp(series(count)): pairs in time, their order by coin."""
    taken = {}

    def take(stage, names, pairs):
        for name in names:
            have = taken.get((stage, name), np.zeros(0))
            times = series(2 * (pairs - len(have))).reshape(-1, 2) if pairs > len(have) else np.zeros((0, 2))
            d = (times[:, 1] - times[:, 0]) * rng.choice((-1.0, 1.0), len(times)) + np.log1p(slower)
            taken[stage, name] = np.concatenate([have, d])
        return {name: taken[stage, name] for name in names}

    return [verdict.label for verdict in decide([str(case) for case in range(cases)], take, rule).values()]


PROCESSES = recorded_processes()


SIMULATIONS = 200


def test_recorded_times_drift():
    """The recording is a hard case: slow drift and neighbors that are alike."""
    medians = np.log([np.median(frames) for frames in PROCESSES])
    assert len(medians) >= 200 and medians.std() > 0.1
    assert np.corrcoef(medians[:-1], medians[1:])[0, 1] > 0.5


@pytest.mark.parametrize(
    ("drift", "cases"),
    [("recorded", 1), ("simulated", 1), ("simulated", 10), pytest.param("recorded", 10, marks=pytest.mark.slow)],
)
def test_false_alarms_are_at_most_one_percent(rng, drift, cases):
    """200 A/A runs on recorded drift, and on a series whose neighbors correlate by 0.97; every look counts."""
    series = (lambda n: drifting_medians(rng, n)) if drift == "recorded" else (lambda n: correlated(rng, n))
    alarms = sum("SLOWER" in simulated(rng, series, cases, DecisionRule(10, 20)) for _ in range(SIMULATIONS))
    assert alarms <= 0.01 * SIMULATIONS + 3 * np.sqrt(0.01 * SIMULATIONS)


def test_a_stored_baseline_would_fail_on_the_recorded_drift(rng):
    """Why pairs: ten processes of the head against ten that ran before them alarm many times more often."""
    alarms = 0
    for _ in range(SIMULATIONS):
        times = drifting_medians(rng, 120)
        alarms += stats.mannwhitneyu(times[-10:], times[:10], alternative="greater").pvalue < 0.01
    assert alarms > 0.08 * SIMULATIONS


def test_power_for_three_percent_with_ten_pairs(rng):
    """Drift with neighbors that correlate by 0.97, and process medians that scatter by 1 %: seen 8 times in 10."""
    series = lambda n: correlated(rng, n, spread=0.05) + rng.normal(0, 0.01, n)  # noqa: E731
    seen = [simulated(rng, series, 1, DecisionRule(10, 10), 0.03)[0] == "SLOWER" for _ in range(SIMULATIONS)]
    assert np.mean(seen) >= 0.8


def test_ten_pairs_suffice_for_ten_cases(rng):
    """Holm over ten cases and the split of alpha over the looks leave a p that ten pairs can reach."""
    labels = simulated(rng, lambda n: rng.normal(0, 0.001, n), 10, DecisionRule(), 0.1)
    assert labels == ["SLOWER"] * 10


def test_a_change_that_fresh_pairs_do_not_confirm_is_undecided():
    d = {"screen": np.full(10, 0.1) + np.arange(10) / 1e3, "confirm": np.arange(-5, 5) / 1e3 - 0.2}
    verdict = decide(["x"], lambda stage, names, pairs: {"x": d[stage][:pairs]}, DecisionRule(10, 10))["x"]
    assert verdict.label == "UNDECIDED" and verdict.reason == "SLOWER at first, not confirmed with fresh pairs"


def test_a_confirmation_that_fails_goes_on_to_the_limit():
    """Fresh pairs that fail after ten and hold after twenty; and asked for up to the limit if they never hold."""
    good = np.full(40, 0.1) + np.arange(40) / 1e3
    for doubtful, label, looks in ((5, "SLOWER", [10, 20]), (40, "UNDECIDED", [10, 20, 40])):
        asked, d = [], {"screen": good, "confirm": np.where(np.arange(40) < doubtful, -0.01, good)}

        def take(stage, names, pairs, asked=asked, d=d):
            asked.append((stage, pairs))
            return {"x": d[stage][:pairs]}

        verdict = decide(["x"], take, DecisionRule(10, 40))["x"]
        assert verdict.label == label and asked == [("screen", 10), *(("confirm", pairs) for pairs in looks)]


def test_more_pairs_are_taken_while_undecided():
    asked, swing = [], 0.2 * (1 + np.arange(40) / 100) * (-1) ** np.arange(40)

    def take(stage, names, pairs):
        asked.append((stage, tuple(names), pairs))
        return {name: swing[:pairs] * (1 if name == "noisy" else 1e-3) for name in names}

    labels = {name: verdict.label for name, verdict in decide(["noisy", "quiet"], take, DecisionRule(10, 40)).items()}
    assert labels == {"noisy": "UNDECIDED", "quiet": "SAME"}
    assert asked[0] == ("screen", ("noisy", "quiet"), 10) and ("screen", ("noisy",), 40) in asked
    assert DecisionRule(10, 40).looks == [10, 20, 40] and DecisionRule(7, 7).looks == [7]


def test_a_known_slowdown_is_told_from_none_where_the_same_noise_leaves_both_undecided(rng):
    """Noise of 10 % a pair: commits with all of a slowdown of 30 % and with none are told apart, without an error."""
    midpoint, labels = np.log(1.3) / 2, {}
    for slower in (0.0, 0.3):
        series = lambda n: rng.normal(0, 0.07, n)  # noqa: E731
        known = [simulated(rng, series, 1, DecisionRule(midpoint=midpoint), slower)[0] for _ in range(100)]
        labels[slower] = {label: known.count(label) for label in set(known)}
        if not slower:
            alone = [simulated(rng, series, 1, DecisionRule(), slower)[0] for _ in range(20)]
    assert labels == {0.0: {"SAME": 100}, 0.3: {"SLOWER": 100}} and alone.count("UNDECIDED") >= 15
    wrong = [
        simulated(rng, lambda n: rng.normal(0, 0.07, n), 1, DecisionRule(midpoint=midpoint), np.expm1(midpoint))[0]
        for _ in range(200)
    ]  # on the midpoint itself both are errors
    assert wrong.count("UNDECIDED") >= 190


def test_slower_rate_of_noise_is_low_and_of_a_rigged_rule_is_not(rng):
    noise = {"a": rng.normal(0, 0.1, 10), "b": rng.normal(0, 0.1, 10)}
    assert slower_rate(noise, DecisionRule(10, 10), simulations=200) <= 0.03
    assert slower_rate(noise, DecisionRule(10, 10, alpha=1.9, min_effect=1e-9), simulations=100) > 0.3
    assert minimum_detectable_effect(rng.normal(0, 0.003, 20), DecisionRule(10, 10)) == 0.03
    assert minimum_detectable_effect(rng.normal(0, 2, 20), DecisionRule(10, 10)) is None
