"""Variations of other programs than JWildfire, clusters in space, and what files call differently."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames.genome import MAX_SLOW_TABLES, MAX_TABLES
from renderer.flames.variations import clusters, recurrence, tables
from renderer.flames.variations.catalog import variation_table
from renderer.flames.xml import dialects
from renderer.flames.xml.attributes import AttributeParser
from renderer.flames.xml.elements import MAX_FLAMES
from renderer.flames.xml.read import parse_library
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = [1, 0, 0, 0, 1, 0]
GLUE = 0.7


def cluster_values(**changed):
    variation = variation_table()["dla3d_wf"]
    return {p.removeprefix("dla3d_wf_"): d for p, d in variation.parameters.items()} | changed


def test_particles_stick_to_their_parents():
    """Each is within the glue's radius of an earlier one; depths grow toward the tips, where they are 1."""
    values = cluster_values(max_iter=60.0, glue_radius=GLUE)
    rows = tables.build_table("dla3d_wf", values, {})[1:].reshape(-1, 8).astype("f8")
    assert len(rows) == 60 and not rows[0, :3].any() and rows[0, 7] == -1
    earlier = np.linalg.norm(rows[1:, None, :3] - rows[None, :, :3], axis=2)
    for k in range(1, len(rows)):
        parent = np.flatnonzero((rows[:k, :3] == rows[k, 4:7]).all(1))
        assert len(parent) and np.linalg.norm(rows[k, :3] - rows[k, 4:7]) <= GLUE + 1e-5, k
        assert rows[k, 3] > max(rows[k, 7], 0) and earlier[k - 1, parent].min() <= GLUE + 1e-5
    is_parent = {tuple(row) for row in rows[1:, 4:7]}
    assert all(row[3] == 1 for row in rows[1:] if tuple(row[:3]) not in is_parent)


def grown_by_brute_force(rng, count, glue, force):
    """The growth of clusters._grow, with the distances of all walkers to all particles at every step."""
    positions, parents, inner, outer = [np.zeros(3)], [0], 3.0, 9.0
    walkers, active = np.zeros((256, 3)), np.zeros(256, bool)
    for _ in range(clusters.MAX_STEPS):
        if len(positions) == count:
            break
        n = min(256, int(4 * inner))
        phi, theta = rng.uniform(0, 2 * np.pi, (2, n))
        births = inner * np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 1)
        walkers[:n][~active[:n]], active[:n] = births[~active[:n]], True
        steps = clusters.DIRECTIONS[rng.integers(0, 6, n)]
        walkers[:n] += steps * clusters.STEP + np.where(steps != 0, force, 0.0)
        squares = ((walkers[:n, None] - np.array(positions)) ** 2).sum(2)
        stuck = [i for i in range(n) if squares[i].min() <= glue * glue][: count - len(positions)]
        for i in stuck:
            positions.append(walkers[i].copy())
            parents.append(int(squares[i].argmin()))
        active[stuck] = False
        active[:n][np.hypot(np.hypot(walkers[:n, 0], walkers[:n, 1]), walkers[:n, 2]) > outer] = False
        if stuck:
            inner = max(inner, float(np.sqrt((walkers[stuck] ** 2).sum(1).max())))
            outer = max(outer, 2.1 * inner)
    return np.array(positions), np.array(parents)


@pytest.mark.parametrize(("glue", "force"), [(0.7, 0.0), (3.0, 0.0), (1.0, 0.3), (1e9, 0.0), (1.0, 1e20)])
def test_the_grid_finds_every_particle_that_sticks(glue, force):
    drift = np.array([force, 0, -force])
    answers = [grow(np.random.default_rng(5), 40, glue, drift) for grow in (clusters._grow, grown_by_brute_force)]
    assert all(np.array_equal(a, b) for a, b in zip(*answers, strict=True))


def test_tables_that_take_minutes_are_refused():
    xform = '<xform weight="1" linear="1" {}="1" {}_seed="{}"/>'
    for name, most in (("dla_wf", MAX_SLOW_TABLES), ("hopalong", MAX_TABLES)):
        texts = [xform.format(name, name, seed) for seed in range(most + 1)]
        (entry,), _ = read_text(f'<flame size="4 4">{"".join(texts[1:])}</flame>')
        assert entry.keyframe
        with pytest.raises(InputError, match=f"has {most + 1} variations .* allowed are at most 256, and 8 of dla_wf"):
            read_text(f'<flame size="4 4">{"".join(texts)}</flame>')


def test_a_file_has_ten_thousand_flames_at_most():
    text = "<flames>" + "<flame/>" * (MAX_FLAMES + 1) + "</flames>"
    for each in (text, text.replace("</flames>", "<")):  # the second is no XML
        with pytest.raises(InputError, match="text: has 10001 flames; it must be at most 10000"):
            read_text(each)


def read_text(text):
    return parse_library(text, AttributeParser("text"))


def angle_twin(x, y, n, rotation):
    t = np.arctan2(y, x) - np.radians(rotation)
    return np.cos(np.pi / n) / np.cos(t - np.pi / n * (2 * np.floor(n * t / (2 * np.pi)) + 1))


def test_kernels_give_the_formulas(device, rng):
    table = variation_table()
    names = ("julian2dc", "depth", "waves2_z", "prepost_circlize", "dla3d_wf")
    points = np.asarray(rng.uniform(0.1, 1.5, (64, 4)), "f4")
    cluster = dict(max_iter=60.0, glue_radius=GLUE, inner_blur_radius=0.2, outer_blur_radius=0.1, junction_scale=2.0)
    said = [
        dict(power=3, dist=0.8, col=0.3, a=0.8, c=0.3, d=1.4, e=0.2), dict(power=1.7),
        dict(scalex=0.3, scaley=-0.4, scalez=1.9, freqx=2, freqy=3, freqz=1.5), dict(n=8, rotation=32, reverse=1),
        cluster,
    ]  # fmt: skip
    cases = [(table[name], 0.7, values, points) for name, values in zip(names, said, strict=True)]
    julian, depth, waves, circle, dla = apply_cases(device, [table[name] for name in names], cases, AFFINE)
    x, y, z, _ = points.astype("f8").T
    u, v = 0.8 * x + 0.2, 0.3 * x + 1.4 * y
    r = 0.7 * (u * u + v * v) ** (0.8 / 6)
    angle = np.arctan2(julian[:, 1], julian[:, 0])
    assert np.allclose(np.hypot(julian[:, 0], julian[:, 1]), r, rtol=1e-4)
    assert np.allclose(np.exp(3j * angle), np.exp(1j * np.arctan2(v, u)), atol=1e-3)
    turned = np.where(angle < -1e-6, angle + 2 * np.pi, angle)  # the origin's angles are (a + 2 pi k) / 3, k = 0, 1, 2
    shade = np.abs(r * 0.3 + turned / (2 * np.pi) * 0.7) % 1
    assert np.allclose(julian[:, 3], shade, atol=1e-3)
    assert np.allclose(depth[:, :3], 0.7 * (1 + z**1.7)[:, None] * points[:, :3], rtol=1e-4)
    wave = np.stack([x + 0.3 * np.sin(2 * y), y - 0.4 * np.sin(3 * x), z + 1.9 * np.sin(1.5 * np.hypot(x, y))], 1)
    assert np.allclose(waves[:, :3], 0.7 * wave, atol=1e-5)
    k = 0.3 + 0.7 / angle_twin(x, y, 8, 32)
    assert np.allclose(circle[:, :2], np.stack([k * x, k * y], 1), rtol=1e-4)
    rows = tables.build_table("dla3d_wf", cluster_values(**cluster), {})[1:].reshape(-1, 8).astype("f8")
    a, b = rows[:, :3], rows[:, 4:7]
    t = np.clip(((dla[:, None, :3] / 0.7 - a) * (b - a)).sum(2) / np.maximum(((b - a) ** 2).sum(1), 1e-12), 0, 1)
    apart = np.linalg.norm(dla[:, None, :3] / 0.7 - a - t[..., None] * (b - a), axis=2).min(1)
    assert (apart <= 0.4 + 1e-4).all() and (apart > 0.05).any() and not dla[:, 4].any()


def test_gradient_1_takes_the_nearest_color_of_the_palette(device):
    """Without a palette the gray ramp is used, and the points are the same as with Gradient 0."""
    names = ("dc_inversion", "dc_layers", "dc_quadtree")
    variations = [variation_table()[name] for name in names]
    points = np.zeros((256, 4), "f4")
    own, found = (
        [r[:, 5].astype(int) for r in apply_cases(device, variations, cases, AFFINE)]
        for cases in ([(v, 0.7, dict(Gradient=g), points) for v in variations] for g in (0, 1))
    )
    for name, before, after in zip(names, own, found, strict=True):
        levels = np.stack([before >> 16, before >> 8 & 255, before & 255], 1)
        nearest = ((levels[:, None] - np.arange(256)[None, :, None]) ** 2).sum(2).argmin(1)
        assert np.array_equal(after, nearest * 0x10101) and len(set(after)) > 3, name


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"pixel_flow": "1", "angle": "130", "len": "1.2"},
         {"pixel_flow": "1", "pixel_flow_angle": "130", "pixel_flow_len": "1.2"}),
        ({"linear": "1", "angle": "130"}, {"linear": "1", "angle": "130"}),
        ({"octagon": "1", "octa_x": "0.1"}, {"octagon": "1", "octagon_x": "0.1"}),
        ({"pre_waves2": "0.7", "pre_waves2_scalez": "2", "pre_waves2_freqx": "3"},
         {"pre_waves2_z": "0.7", "pre_waves2_z_scalez": "2", "pre_waves2_z_freqx": "3"}),
        ({"waves2": "1", "waves2_scalez": "0", "waves2_scalex": "2"},
         {"waves2": "1", "waves2_scalez": "0", "waves2_scalex": "2"}),
        ({"prepost_circlize": "0.5", "prepost_circlize_n": "8"},
         {"pre_prepost_circlize": "0.5", "pre_prepost_circlize_n": "8", "pre_prepost_circlize_reverse": "1",
          "post_prepost_circlize": "0.5", "post_prepost_circlize_n": "8"}),
        ({"dc_worley": "1", "dc_worley_seed": "3"}, {"dc_worley": "1"}),
    ],
)  # fmt: skip
def test_names_of_other_programs(written, read):
    assert dialects.rewritten(written) == read


def test_what_is_not_drawn_is_said():
    assert dialects.undrawn_value("dla3d_wf_node_obj_filename", "a.obj")
    assert not dialects.undrawn_value("dla3d_wf_node_obj_filename", "")


RECURRENCES = {  # number: (parameters, the function by another formula)
    0: ({}, lambda t: 50 * np.sin(4 * np.pi * t) + 25 * np.sin(40 * np.pi * t)),
    22: (dict(a=490.0, b=3.0), lambda t: 245 * (5 * (2 * t - 1) ** 3 - 3 * (2 * t - 1))),
    26: (dict(a=90.0, b=1.0, k=1.0), lambda t: 30 * np.pi**2 - 360 * np.cos(2 * np.pi * t)),
    29: (dict(a=475.0, k=10.0), lambda t: 475 * np.cos(10 * np.arccos(2 * t - 1))),
}


def test_recurrences_are_all_pairs_of_near_values(device):
    """Each pair drawn is near by brute force, and each that is near is drawn as often as the others."""
    variation, count, tolerance = variation_table()["recurrenceplot"], 40, 30.0
    points = np.zeros((1 << 15, 4), "f4")
    said = [
        dict(func_id=number, Density=count, tolerance=tolerance) | given for number, (given, _) in RECURRENCES.items()
    ]
    results = apply_cases(device, [variation], [(variation, 1.0, values, points) for values in said], AFFINE)
    for found, (number, (_, formula)) in zip(results, RECURRENCES.items(), strict=True):
        y = formula(np.arange(count) / count)
        near = np.abs(y[:, None] - y) < tolerance
        i, j = np.rint((found[:, :2].T + 0.5) * count).astype(int)
        drawn = np.zeros((count, count))
        np.add.at(drawn, (i, j), 1)
        expected = near * len(points) / near.sum()
        sure = np.abs(np.abs(y[:, None] - y) - tolerance) > 1e-3  # not at the edge, where rounding decides
        assert (np.abs(drawn - expected)[sure] < 6 * np.sqrt(expected[sure]) + 1e-9).all(), number


def test_values_that_are_infinite_have_no_partners():
    """A recurrence whose first values overflow to minus infinity: all pairs of the others are near."""
    given = dict(func_id=18.0, a=-50.0, b=-1.0, Density=20.0, tolerance=1e300)
    values = {"k": 0.0} | given
    y = recurrence.function_values(values)
    finite = np.flatnonzero(np.isfinite(y))
    table = recurrence.pairs(values, {})
    rows = table[2:].reshape(-1, 4)
    assert y.min() == -np.inf and 0 < len(finite) < 20 and table[0] == 20
    assert table[1] == len(finite) ** 2 / 400 and sorted(rows[: len(finite), 3]) == finite.tolist()
