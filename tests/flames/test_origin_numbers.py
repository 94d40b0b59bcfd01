"""Every variation that is not flam3's, against numbers that its origin's program gave for the same points.

origin_numbers.npz holds, for each variation with its default parameters and with others, a weight and either results at
points where the formula is well conditioned, or, of variations that draw random numbers, quantiles of 20,000 draws at
two points: x, y, 0.6 x + 0.8 y, 0.8 x - 0.6 y, z, color, and red, green and blue over 64, -1 where there is none. They
were measured with JWildfire (in double precision, z not preserved) and contain no text of it. fractorium_numbers.npz
holds the same of Fractorium's functions, with 20,000 draws too; colors were not measured.

kept_numbers.npz holds our own results at drawn points with drawn parameters, after these numbers agreed: branches that
no measured case takes do not change unseen. `python -m tests.flames.test_origin_numbers` writes it anew.
"""

import json
import zlib
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from renderer.flames.variations.catalog import variation_table
from renderer.gpu import open_context
from tests.flames.test_formulas import FORMULAS as WRITTEN_AS_FORMULAS
from tests.flames.test_patterns import FORMULAS as PATTERNS
from tests.flames.variations.test_rare_variations import DISTANCES
from tests.flames.variations.test_rare_variations import FORMULAS as RARE
from tests.flames.variations.variation_kernel import PROGRAMS, apply_cases
from tests.seeds import seed_of

FILES = [
    dict(np.load(Path(__file__).with_name("numbers") / f"{name}_numbers.npz"))  # each array is decompressed once
    for name in ("origin", "fractorium")
]
NUMBERS = FILES[0]
KEPT = Path(__file__).with_name("numbers") / "kept_numbers.npz"
KEPT_POINTS, KEPT_CASES = 16, 3  # of a variation; the first case has its default parameters
DRAWS = 8192
PROJECTIONS = np.array([[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0], [0.8, -0.6, 0], [0, 0, 1]])
START_POINTS = np.array([[0.6, 0.35, -0.3, 0.4], [-0.4, 0.9, 0.5, 0.8]])
PARTS = PROGRAMS
QUICK_PART = -1  # a sample in place of one of PARTS parts: of every group one variation of each origin
# Witnessed by test_figures.py and test_clusters.py: they depend on random numbers, fonts, files or threads.
WITNESSED_ELSEWHERE = {
    "threeply", "hopalong", "gingerbread_man", "gumowski_mira", "macmillan", "dc_perlin", "plane_wf", "text_wf",
    "dla_wf", "snowflake_wf", "nsudoku", "yplot2d_wf", "polarplot2d_wf", "polarplot3d_wf", "parplot2d_wf",
    "isosfplot3d_wf", "dla3d_wf", "recurrenceplot", "dc_crackle_wf", "dc_hexes_wf", *WRITTEN_AS_FORMULAS,
}  # fmt: skip
# Their hash takes the fraction of 43758 times a sine, of which floats keep fewer digits than the origin's doubles.
HASHED = {"waves4": 1e-3, "waves42": 1e-3}
# Its vortices lie where such a hash says, so the noise is another of its kind. A bound of the distance.
OTHER_NOISE = {"dc_gabornoise": 0.08}


def chosen_names(part):
    """The names of one of PARTS parts of the table, or for QUICK_PART of variations spread over groups and origins."""
    if part != QUICK_PART:
        return {v.name for v in variation_table().values() if v.index % PARTS == part}
    measured = {case[0] for case in recorded()}
    families = defaultdict(list)
    for v in variation_table().values():
        if v.origin == "flam3" or v.name in measured:
            families[v.group, v.origin].append(v.name)
    rng = np.random.default_rng(seed_of("variations of the quick run"))
    selects_by_masks = {"cut_tileillusion"}  # a truth value is 1 of a point, but -1 in a vector
    return {str(rng.choice(names)) for names in families.values()} | selects_by_masks


@cache
def recorded():
    """(name, weight, parameters, expected) of every case: (points, results), or (quantiles, hidden, finite)."""
    cases = []
    for numbers in FILES:
        at, distribution = 0, 0
        for name, weight, said, kind, *rest in json.loads(str(numbers["index"])):
            if kind == "points":
                rows = slice(at, at + rest[0])
                expected = (numbers["points"][numbers["chosen"][rows]], numbers["values"][rows])
                at += rest[0]
            else:
                expected = (numbers["quantiles"][distribution], *rest)
                distribution += 1
            cases.append((name, weight, said, expected))
    return cases


def channels(packed):
    """(n, 3) red, green and blue over 64 of packed colors (n, 1); -1 where there is none."""
    whole = np.maximum(packed, 0).astype(int)
    return np.where(packed < 0, -1.0, np.concatenate([whole >> 16, whole >> 8 & 255, whole & 255], 1) / 64.0)


def check_points(name, said, found, wanted):
    with np.errstate(invalid="ignore"):
        wrong = ~(np.abs(found - wanted) <= HASHED.get(name, 1e-4) * (1 + np.abs(wanted)))
    assert not wrong.any(), (name, said, found[wrong.any(1)][0], wanted[wrong.any(1)][0])


def check_distribution(rng, name, said, found, quantiles, hidden, finite):
    """At each of two points: the distribution function at the recorded quantiles, within 2.6 / sqrt(draws) + 0.005.

    Quantiles are NaN, and say nothing, where a number is: colors of black are 0 / 0 in some origins.
    """
    bound = OTHER_NOISE.get(name, 2.6 / np.sqrt(DRAWS) + 0.005)
    for k in range(2):
        rows = found[k * DRAWS : (k + 1) * DRAWS].astype("f8")
        good = np.isfinite(rows[:, :3]).all(1)
        assert abs(good.mean() - finite[k]) < 0.02 and abs(rows[:, 4].mean() - hidden[k]) < 0.02, (name, said)
        columns = np.concatenate([rows[good, :3] @ PROJECTIONS.T, rows[good, 3:4], channels(rows[good, 5:6])], 1)
        columns += rng.uniform(-1e-3, 1e-3, columns.shape)  # atoms become as wide as their rounding
        for column, levels in zip(columns.T, quantiles[k], strict=True):
            if np.isnan(levels).any():
                continue
            assert np.isnan(column).mean() < 0.01, (name, said, k)
            cumulative = np.searchsorted(np.sort(column), levels) / max(len(column), 1)  # NaN come last
            apart = np.abs(cumulative - NUMBERS["levels"]).max()
            assert apart < bound or finite[k] < 0.01, (name, said, k, apart)


def drawn_cases(variation):
    """Cases for apply_cases() whose points and parameters depend on the variation's name alone."""
    rng = np.random.default_rng(zlib.crc32(variation.name.encode()))
    cases = []
    for k in range(KEPT_CASES):
        said = {}
        for name, value in variation.parameters.items() if k else ():
            whole = float(value).is_integer()
            drawn = float(rng.choice((value, value + 1, 0, 1, 2))) if whole else value * rng.uniform(0.5, 1.5)
            said[name.removeprefix(f"{variation.name}_")] = drawn
        points = rng.uniform(-1.5, 1.5, (KEPT_POINTS, 4)).astype("f4")
        points[:, 3] = np.abs(points[:, 3]) / 1.5  # a color
        cases.append((variation, 0.8, said, points))
    return cases


def short(values):
    """Floats of 12 bits: what kept numbers are written as, so that their file stays small."""
    return (np.ascontiguousarray(values, "f4").view("u4") + 0x800 & 0xFFFFF000).view("f4")


@cache
def kept_numbers():
    return dict(np.load(KEPT))


def check_kept(variation, found):
    """One point of a case may lie where a formula jumps, and fall on its other side on another device."""
    wanted = kept_numbers()[f"v{variation.index}"]
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(found.astype("f8") - wanted) <= 1e-3 * (1 + np.abs(wanted))
    near |= np.isnan(found) & np.isnan(wanted) | (found == wanted)
    assert (near.all(2).sum(1) >= KEPT_POINTS - 1).all(), (variation.name, found[~near], wanted[~near])


def variations_of(part):
    """The variations of a part, but for those whose tables take seconds."""
    names = chosen_names(part) - WITNESSED_ELSEWHERE
    return [v for v in variation_table().values() if v.name in names]


@pytest.mark.parametrize("part", range(PARTS))
def test_variations_give_the_numbers_of_their_origin(device, part):
    rng = np.random.default_rng(17)
    table = variation_table()
    names, variations = chosen_names(part), variations_of(part)
    mine = [case for case in recorded() if case[0] in names]
    cases = []
    for name, weight, said, expected in mine:
        points = expected[0] if len(expected) == 2 else np.repeat(START_POINTS, DRAWS, 0)
        if len(expected) == 2:
            points = np.asarray(points, "f4")
        cases.append((table[name], weight, said, points))
    results = apply_cases(device, variations, cases, NUMBERS["affine"])
    for (name, _, said, expected), found in zip(mine, results, strict=True):
        if len(expected) == 2:
            check_points(name, said, found, expected[1])
        else:
            check_distribution(rng, name, said, found, *expected)
    results = apply_cases(device, variations, sum(map(drawn_cases, variations), []), NUMBERS["affine"])
    for k, variation in enumerate(variations):
        check_kept(variation, np.stack(results[k * KEPT_CASES : (k + 1) * KEPT_CASES]))


def test_every_variation_has_numbers_or_a_formula():
    measured = {case[0] for case in recorded()}
    origins = {v.name for v in variation_table().values() if v.origin == "JWildfire"}
    elsewhere = WITNESSED_ELSEWHERE | PATTERNS.keys() | RARE.keys() | DISTANCES.keys()
    assert WITNESSED_ELSEWHERE <= origins - measured <= elsewhere


@pytest.mark.parametrize("part", [QUICK_PART, *(pytest.param(k, marks=pytest.mark.slow) for k in range(PARTS))])
def test_vectors_of_points_give_the_bits_of_single_ones(device, part):
    if device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item; their compilers have no vectors for more")
    rng = np.random.default_rng(3)
    variations = [variation_table()[name] for name in sorted(chosen_names(part))]
    cases = [(v, 0.7, {}, rng.normal(size=(64, 4))) for v in variations]
    alone = apply_cases(device, variations, cases, NUMBERS["affine"])
    together = apply_cases(device, variations, cases, NUMBERS["affine"], device.simd_width)
    for v, one, many in zip(variations, alone, together, strict=True):
        assert np.array_equal(one, many, equal_nan=True), v.name


def write_kept_numbers():
    """Writes kept_numbers.npz by the first device."""
    device, kept = open_context().device, {}
    for part in range(PARTS):
        variations = variations_of(part)
        results = apply_cases(device, variations, sum(map(drawn_cases, variations), []), NUMBERS["affine"])
        for k, v in enumerate(variations):
            kept[f"v{v.index}"] = short(np.stack(results[k * KEPT_CASES : (k + 1) * KEPT_CASES]))
    np.savez_compressed(KEPT, **kept)


if __name__ == "__main__":
    write_kept_numbers()
