"""Every variation against its formula in float64, and the elementary functions against NumPy's."""

import re

import numpy as np
import pytest
from scipy.stats import ks_2samp

from renderer.errors import UserError
from renderer.flames.variations.catalog import FOLDER, ORDER, parse_variations, variation_table
from renderer.gpu.kernel_source import GeneratedSource
from tests.flames.variations.reference_variations import FORMULAS
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = np.array([0.9, -0.3, 0.4, 0.2, 0.8, -0.35], "f4")
SETS = {  # parameters away from their defaults, for those whose defaults do nothing
    "julian": dict(power=3, dist=-0.7), "juliascope": dict(power=-4, dist=1.3),
    "blob": dict(low=0.2, high=1.4, waves=5),
    "pdj": dict(a=1.1, b=-0.7, c=2.1, d=0.6), "fan2": dict(x=0.6, y=0.3), "rings2": dict(val=0.4),
    "perspective": dict(angle=0.4, dist=2.5), "radial_blur": dict(angle=0.3), "curl": dict(c1=0.6, c2=-0.4),
    "rectangles": dict(x=0.7, y=0.4), "disc2": dict(rot=0.7, twist=-7.1), "flower": dict(petals=5, holes=0.3),
    "super_shape": dict(rnd=0.3, m=5, n1=1.4, n2=2.1, n3=0.7, holes=0.2), "conic": dict(eccentricity=0.7, holes=0.2),
    "parabola": dict(height=0.7, width=1.3), "bent2": dict(x=0.4, y=1.7), "bipolar": dict(shift=0.6),
    "cell": dict(size=0.6), "cpow": dict(r=0.8, i=0.3, power=3),
    "curve": dict(xamp=0.4, yamp=-0.6, xlength=0.7, ylength=1.4),
    "escher": dict(beta=0.7), "lazysusan": dict(space=0.3, twist=0.6, spin=0.4, x=0.2, y=-0.3),
    "modulus": dict(x=0.6, y=0.8),
    "oscilloscope": dict(separation=0.7, frequency=1.3, amplitude=0.6, damping=0.4),
    "popcorn2": dict(x=0.4, y=0.3, c=1.2),
    "separation": dict(x=0.4, xinside=0.3, y=0.5, yinside=-0.2), "split": dict(xsize=0.7, ysize=1.3),
    "splits": dict(x=0.3, y=-0.4), "stripes": dict(space=0.3, warp=0.7),
    "wedge": dict(angle=0.6, hole=0.2, count=3, swirl=0.4),
    "wedge_julia": dict(angle=0.4, count=2, power=3, dist=0.7),
    "wedge_sph": dict(angle=0.5, hole=0.1, count=2, swirl=0.3),
    "whorl": dict(inside=0.3, outside=-0.4), "waves2": dict(scalex=0.3, scaley=0.4, freqx=2.1, freqy=1.7),
    "auger": dict(freq=2.1, weight=0.6, sym=0.3, scale=0.7), "flux": dict(spread=0.4),
    "mobius": dict(re_a=1, im_a=0.3, re_b=0.2, im_b=-0.4, re_c=0.5, im_c=0.1, re_d=1.2, im_d=0.3),
    "pie": dict(slices=5, rotation=0.4, thickness=0.6), "ngon": dict(sides=5, power=2.2, circle=0.8, corners=1.6),
}  # fmt: skip
FLAM3 = [v for v in variation_table().values() if v.origin == "flam3"]
DETERMINISTIC = [v.name for v in FLAM3 if v.random_count == 0]
RANDOM = [v.name for v in FLAM3 if v.random_count > 0]
# Whose lanes one kernel tests.
GROUPS = [names[k : k + 8] for names in (DETERMINISTIC, RANDOM) for k in range(0, len(names), 8)]


def applied(device, name, x, y, weight, said, lanes=1):
    """The variation of the points on the device: (n,) and (n,) float32."""
    (group,) = (names for names in GROUPS if name in names)
    table = variation_table()
    points = np.stack([x, y, np.zeros_like(x), np.zeros_like(x)], 1)
    variations = [table[each] for each in group] if lanes > 1 else [table[name]]  # whose program holds others too
    (found,) = apply_cases(device, variations, [(table[name], weight, said, points)], AFFINE, lanes)
    return found[:, 0].copy(), found[:, 1].copy()


def parameters(name, said):
    variation = variation_table()[name]
    return {
        p.removeprefix(f"{name}_"): said.get(p.removeprefix(f"{name}_"), d) for p, d in variation.parameters.items()
    }


def formula(name, x, y, weight, said, uniform):
    p = {key: np.float64(np.float32(value)) for key, value in parameters(name, said).items()}
    with np.errstate(all="ignore"):
        return FORMULAS[name](
            x.astype("f8"), y.astype("f8"), np.float64(np.float32(weight)), AFFINE.astype("f8"), p, uniform
        )


def test_there_are_99_in_flam3s_order():
    assert [v.index for v in FLAM3] == list(range(99))
    assert [variation_table()[name].index for name in ("linear", "julian", "pre_blur", "exp", "mobius")] == [
        0,
        32,
        67,
        82,
        98,
    ]
    assert set(FORMULAS) == {v.name for v in FLAM3}


def test_each_variation_has_a_number_of_its_own():
    """The kernel of any flame selects by it."""
    names = [name for path in FOLDER.glob("*.h") for name in parse_variations(path.read_text(), path.stem)]
    assert len(set(names)) == len(names), "a name is defined twice"
    assert set(ORDER.read_text().split()) <= set(names), "the order names variations that no file defines"
    assert sorted(v.index for v in variation_table().values()) == list(range(len(variation_table())))


def test_a_stamp_calls_the_color_of_an_earlier_stamp():
    """A glsl_ stamp names its dc_ twin; the twin's function and its helpers are written before it, once."""
    text = (
        "DEVICE real twice(real x) { return 2.0f * x; }\n"
        "STAMP(one, zoom = 3) { return gray(twice(zoom * p.x)); }\n"
        "PIXEL_STAMP(two, Density_Pixels = 100, Gradient = 0) { return stamp_one(p, 1.0f); }\n"
    )
    two = parse_variations(text, "group")["two"]
    assert [helper.split("(")[0] for helper in two.helpers] == [
        "DEVICE real twice", "DEVICE Triple stamp_one", "DEVICE Triple stamp_two",
    ]  # fmt: skip


def test_an_item_without_a_body_has_that_of_the_item_before():
    text = (
        "VARIATION(one, a = 3) { return scaled(weight, a * x, y); }\nVARIATION(two, a = 4 [0, 9]);\n"
        "STAMP(three, Seed = 1, zoom = 2, level = 3) { return gray(Seed * zoom * level); }\n"
        "PIXEL_STAMP(four, Density_Pixels = 9, seed = 1, Level = 2, Gradient = 0);\n"
        "SOLID(five, r = 0.5) { return u < r; }\n"
    )
    one, two, _, four, five = parse_variations(text, "group").values()
    assert one.body == two.body and two.parameters == {"two_a": 4.0} and two.limits == {"two_a": (0.0, 9.0)}
    assert "return stamp_three(p, seed, 1.0f, Level);" in four.helpers[-1], "the zoom that it lacks is 1"
    assert five.in_space and five.hides and five.random_count == 2 and "stamp_five(triple(x, y, z), r)" in five.body
    with pytest.raises(UserError, match=r"^VARIATION\(one\) has no body, and there is no item before it$"):
        parse_variations("VARIATION(one, a = 3);\n", "group")


def test_helpers_of_one_name_are_one_text():
    """A flame may use variations of several files, whose C functions lie in one kernel."""
    texts: dict[str, set[str]] = {}
    for helper in {helper for v in variation_table().values() for helper in v.helpers}:
        texts.setdefault(re.search(r"(\w+)[(\[]", helper)[1], set()).add(helper)
    assert not [name for name, found in texts.items() if len(found) > 1]


def test_every_device_draws_the_same_random_numbers():
    """A draw behind ?, && or || happens on GPUs only for the points that need it, on vectors of points for all.

    C does not order the draws of one expression.
    """
    branch = re.compile(r"(?:\?|&&|\|\|)((?:[^;,?&|()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*)")
    by_parameter = {"cropn", "epispiral"}  # the condition is a parameter, the same for all points
    branching = {
        v.name
        for v in variation_table().values()
        for operand in branch.findall("".join([*v.helpers, v.body]))
        if re.search(r"\brandom\b", operand)
    }
    assert branching == by_parameter
    texts = {helper.partition("{")[2] for v in variation_table().values() for helper in v.helpers}
    for text in texts | {v.body for v in variation_table().values() if v.random_count > 1}:
        flat = text
        while "(" in flat:  # so that the commas left are those between expressions
            flat = re.sub(r"\(([^()]*)\)", lambda call: f" {call[1].replace(',', ' ')} ", flat)
        assert all(len(re.findall(r"\brandom\b", part)) < 2 for part in re.split("[;,{}]", flat)), text


def test_no_variation_calls_a_vendors_function():
    """Their last bits differ by device, and chaotic maps amplify that."""
    vendors = re.compile(r"\b(?:a?(?:sin|cos|tan)h?|atan2|pow|exp2?|log2?|hypot|cbrt|rsqrt)\(")
    assert not [v.name for v in variation_table().values() if vendors.search("".join([*v.helpers, v.body]))]


def agree(name, x, y, weight, said, found):
    """Most points to 1e-4, the rest near a place where the formula itself moves that fast within float32's spacing."""
    wanted = formula(name, x, y, weight, said, None)
    eps = np.spacing(np.maximum(np.abs(x), np.abs(y)).astype("f4")).astype("f8") * 4
    loose = np.zeros(len(x), bool)
    wrong = np.zeros(len(x), bool)
    for u, w in zip(found, wanted, strict=True):
        finite = np.isfinite(w) & (np.abs(w) < 1e9)
        with np.errstate(all="ignore"):
            wrong |= finite & ~(np.abs(u - w) <= 1e-4 * (np.abs(w) + 1))
            loose |= ~finite
    bad = np.flatnonzero(wrong & ~loose)
    if len(bad) == 0:
        return 0.0
    near = [
        formula(name, x[bad] + dx * eps[bad], y[bad] + dy * eps[bad], weight, said, None)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1))
    ]
    excused = np.zeros(len(bad), bool)
    with np.errstate(all="ignore"):
        for k in range(len(found)):
            moves = np.max([np.abs(n[k] - wanted[k][bad]) for n in near], axis=0)
            excused |= ~np.isfinite(moves) | (moves > 2e-5 * (np.abs(wanted[k][bad]) + 1))
    return float((~excused).sum() / len(x))


@pytest.mark.parametrize("name", ["tan", "sec", "csc", "cot", "tanh", "sech", "csch", "coth"])
def test_quotients_of_hyperbolic_functions_end_where_those_of_doubles_do(device, rng, name):
    """Far out they are no numbers, bad points, exactly where flam3's doubles overflow; before that their limits."""
    near, far = rng.uniform(-3, 3, 1024), rng.uniform(20, 1000, 1024) * rng.choice([-1, 1], 1024)
    circular = name in ("tan", "sec", "csc", "cot")
    x, y = (near, far) if circular else (far, near)
    x, y = x.astype("f4"), y.astype("f4")
    found, wanted = applied(device, name, x, y, 0.7, {}), formula(name, x, y, 0.7, {}, None)
    doubled = 2 if name in ("tan", "cot", "tanh", "coth") else 1  # flam3 takes sinh and cosh of twice the number
    end = doubled * np.abs((y if circular else x).astype("f8"))
    with np.errstate(over="ignore"):
        assert np.isfinite(np.cosh(710.475)) and not np.isfinite(np.cosh(710.477))
    for u, w in zip(found, wanted, strict=True):
        assert not np.isfinite(u[end > 710.477]).any() and np.isfinite(u[end < 710.475]).all()
        assert np.allclose(u[end < 710.475], w[end < 710.475], atol=1e-6)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_variations_equal_their_formulas(device, rng, name):
    grid = np.linspace(-3, 3, 32) + 0.0137
    x, y = (a.ravel() for a in np.meshgrid(grid, grid[:30] * 0.97))
    fresh = rng.normal(scale=1.5, size=(2, 64))
    x, y = np.concatenate([x, fresh[0]]).astype("f4"), np.concatenate([y, fresh[1]]).astype("f4")
    for weight, said in ((0.7, SETS.get(name, {})), (-0.45, SETS.get(name, {})), (1.3, {})):
        found = applied(device, name, x, y, weight, said)
        assert agree(name, x, y, weight, said, found) == 0.0, (name, weight, said)


@pytest.mark.parametrize("name", RANDOM)
def test_random_variations_have_their_distribution(device, name):
    count = 64 * 128
    rng = np.random.default_rng(7)
    for x, y, weight in ((0.6, 0.35, 0.7), (-0.4, 0.9, 1.3)):
        said = SETS.get(name, {})
        xs, ys = np.full(count, x, "f4"), np.full(count, y, "f4")
        found = applied(device, name, xs, ys, weight, said)
        wanted = formula(name, xs, ys, weight, said, lambda: rng.uniform(size=count))
        for project in ((1, 0), (0, 1), (0.6, 0.8), (0.8, -0.6)):
            a, b = (project[0] * u + project[1] * v for u, v in (found, wanted))
            a, b = (v + rng.uniform(-1e-3, 1e-3, count) for v in (a, b))  # atoms become as wide as their rounding
            assert ks_2samp(a, b, method="asymp").pvalue > 1e-5, (name, x, y, weight, project)


def test_lanes_give_the_bits_of_single_points(device, rng):
    if device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item; their compilers have no vectors for more")
    x, y = rng.normal(scale=2, size=(2, 64 * 16)).astype("f4")
    for name in (each for group in GROUPS if {"julian", "elliptic"} & set(group) for each in group):
        one = applied(device, name, x, y, 0.7, SETS.get(name, {}))
        many = applied(device, name, x, y, 0.7, SETS.get(name, {}), lanes=16)
        for a, b in zip(one, many, strict=True):
            assert np.array_equal(a.view("u4")[~np.isnan(a)], b.view("u4")[~np.isnan(a)]), name
            assert np.array_equal(np.isnan(a), np.isnan(b))


ELEMENTARY = """
KERNEL tabulate(GLOBAL const float *xs, GLOBAL const float *ys, GLOBAL float *out, int count) {
    uint i = thread_index();
    if (i < (uint)count) {
        real x = xs[i], y = ys[i];
        Pair c = circle(x), h = hyperbola(y);
        out[10 * i] = c.x;
        out[10 * i + 1] = c.y;
        out[10 * i + 2] = exponential_of(y);
        out[10 * i + 3] = logarithm_of(magnitude(x));
        out[10 * i + 4] = power_of(magnitude(x), y);
        out[10 * i + 5] = angle_of(x, y);
        out[10 * i + 6] = h.x;
        out[10 * i + 7] = h.y;
        out[10 * i + 8] = floor_of(x);
        out[10 * i + 9] = remainder_of(x, y);
    }
}
"""


def tabulator(device):
    text = GeneratedSource("elementary", '#include "common/reproducible_math.h"\n' + ELEMENTARY)
    return device.kernel(text, "tabulate", group_size=64, STRICT=1, LANES=1)


def test_elementary_functions_equal_numpys(device, rng):
    count = 4096
    x = (rng.normal(size=count) * 10.0 ** rng.uniform(-4, 3, count)).astype("f4")
    y = (rng.normal(size=count) * 10.0 ** rng.uniform(-3, 1, count)).astype("f4")
    kernel = tabulator(device)
    out = device.buffer((count, 10))
    kernel(count, device.buffer(count).write(x), device.buffer(count).write(y), out, count)
    a, b = x.astype("f8"), y.astype("f8")
    with np.errstate(all="ignore"):
        wanted = np.stack(
            [
                np.cos(a),
                np.sin(a),
                np.exp(b),
                np.log(abs(a)),
                abs(a) ** b,
                np.arctan2(a, b),
                np.cosh(b),
                np.sinh(b),
                np.floor(a),
            ],
            1,
        )
    found = out.read()
    for k, tolerance in enumerate((3e-7, 3e-7, 1e-6, 1e-6, 3e-5, 5e-7, 1e-6, 1e-6, 0)):
        w, f = wanted[:, k], found[:, k].astype("f8")
        usual = np.isfinite(w) & (np.abs(w) < 1e37)
        scale = np.maximum(np.abs(w), 1.0 if k < 2 else 1e-30)
        if k == 3:
            scale = np.maximum(scale, 1)
        assert (np.abs(f - w) <= tolerance * scale + 1e-37)[usual].all(), (k, np.max((np.abs(f - w) / scale)[usual]))
    rest = np.fmod(a, b)
    error = np.abs(found[:, 9] - rest)
    few = np.abs(a / b) < 2**20
    assert (np.minimum(error, np.abs(np.abs(b) - error)) <= 1e-6 * np.abs(b) + 1e-12)[few].mean() > 0.999


def test_elementary_functions_at_their_edges(device):
    x = np.array([0.0, -0.0, np.inf, 1e-42, -1.0, 1.0, 1e30, 3e38] * 8, "f4")
    y = np.array([0.0, -0.0, 200.0, -200.0, 1.0, -1.0, 0.5, 88.0] * 8, "f4")
    kernel = tabulator(device)
    out = device.buffer((64, 10))
    kernel(64, device.buffer(64).write(x), device.buffer(64).write(y), out, 64)
    found = out.read()
    assert np.isneginf(found[0, 3]) and np.isposinf(found[2, 3]) and np.isclose(found[3, 3], np.log(1e-42), rtol=1e-3)
    assert found[0, 2] == 1 and np.isposinf(found[2, 2]) and found[3, 2] == 0 and np.isclose(found[7, 2], np.exp(88.0))
    assert found[0, 4] == 1 and found[0, 5] == 0
    assert np.isclose(found[4, 5], -np.pi / 4) and np.isclose(found[5, 5], 3 * np.pi / 4)
    assert (np.abs(found[[6, 7], :2]) <= 1.01).all()  # far out the angle is lost, the circle is not
