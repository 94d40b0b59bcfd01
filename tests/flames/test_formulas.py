"""Variations of JWildfire that have no recorded numbers, against their formulas in NumPy, in float64.

FORMULAS[name](x, y, z, w, p, U) -> (x, y, z); `p`: parameters; U() draws like x. Random ones are compared by their
distribution.
"""

import numpy as np
import pytest
from numpy import cos, pi, sin, sqrt, where
from scipy.special import erf
from scipy.stats import ks_2samp

from renderer.flames.variations.catalog import variation_table
from renderer.flames.variations.java_random import JavaRandom
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = np.array([0.9, -0.3, 0.4, 0.2, 0.8, -0.35], "f4")


def affine3d(x, y, z, w, p, U):
    """Scaling and shear as a matrix, then rotations about x, y and z."""
    s = np.diag([p["scaleX"], p["scaleY"], p["scaleZ"]])
    shear = np.array(
        [[1, p["shearXY"], p["shearXZ"]], [p["shearYX"], 1, p["shearYZ"]], [p["shearZX"], p["shearZY"], 1]]
    )
    a, b, c = (np.radians(p[f"rotate{axis}"]) for axis in "XYZ")
    about_x = np.array([[1, 0, 0], [0, cos(a), -sin(a)], [0, sin(a), cos(a)]])
    about_y = np.array([[cos(b), 0, sin(b)], [0, 1, 0], [-sin(b), 0, cos(b)]])
    about_z = np.array([[cos(c), -sin(c), 0], [sin(c), cos(c), 0], [0, 0, 1]])
    moved = about_z @ about_y @ about_x @ shear @ s @ np.stack([x, y, z])
    return tuple(w * (moved + np.array([[p[f"translate{axis}"]] for axis in "XYZ"])))


def petal3d_apo(x, y, z, w, p, U):
    v = w * cos(x) * (sin(x) * cos(y)) ** 3 * p["width"]
    fold = -0.5 * sin(x * p["scale1"] * pi) + (0.5 * x * (abs(p["scale1"]) - 1) if abs(p["scale1"]) > 1 else 0)
    first, last = fold + sin(abs(y * p["scale2"] * pi)), fold + 0.5 * v * p["scale2"]
    style = p["style"]
    t = 2 * (0.5 - style**2)
    height = first if style == 0 else t * first + np.sign(style) * (1 - t) * last
    height = np.sign(style) * last if abs(style) > sqrt(0.5) else height
    return w * cos(x) * (cos(x) * cos(y)) ** 3, v, w * height * p["Zshape"]


def petal3d(x, y, z, w, p, U):
    def product(f, u, v, name):
        a = [p[f"{name}{k}"] for k in range(1, 7)]
        return np.prod([f(u + a[k]) * cos(v + a[k + 1]) for k in (0, 2, 4)], 0)

    k, at = w * cos(x * p["warp"]), [(None, None), (z, x), (z, y), (y, z), (x, z)][int(p["mode"])]
    height = w * z if p["mode"] < 1 else k * product(sin, *at, "z")
    return k * product(cos, x, y, "x"), k * product(sin, x, y, "y"), height


def joukowski(x, y, z, w, p, U):
    z0, c = complex(-p["P2"], 0.2), x + 1j * y
    root = np.emath.sqrt(c * c / 4 - p["P1"] ** 2)
    one, two = c / 2 + root - z0, c / 2 - root - z0
    out = where(abs(one) > abs(two), one, two) if p["inverse"] else c + z0 + p["P1"] ** 2 / (c + z0)
    return w * out.real, w * out.imag, 0 * x


def hole2(x, y, z, w, p, U):
    t = np.arctan2(y, x) * p["d"]
    delta, r2, b = (t / pi + 1) ** p["a"] * p["c"], x * x + y * y, p["b"]
    inner = {
        0: (sqrt(r2) + delta) ** 2, 1: r2 + delta, 2: r2 + sin(b * t) + delta, 3: r2 + sin(t) + delta,
        4: r2 + t * t - delta + 1, 5: r2 + abs(np.tan(t)) + delta, 6: r2 * (1 + sin(b * t)) + delta,
        7: r2 + abs(sin(b * t / 2)) + delta, 8: r2 + sin(pi * sin(b * t)) + delta,
        9: r2 + (sin(b * t) + sin(2 * b * t + pi / 2)) / 2 + delta,
    }[int(p["shape"])]  # fmt: skip
    r = w / sqrt(inner) if p["inside"] else w * sqrt(inner)
    return r * cos(t), r * sin(t), 0 * x


def combimirror(x, y, z, w, p, U):
    u, v, h = w * x, w * y, w * z
    point = U() > p["pmirror"] / 2
    u, v = where(point, p["pmovex"] - u, u), where(point, p["pmovey"] - v, v)
    u = where(U() < p["vmirror"] / 2, p["vmove"] - u, u)
    v = where(U() < p["hmirror"] / 2, p["hmove"] - v, v)
    return u, v, where(U() < p["zmirror"] / 2, p["zmove"] - h, h)


def _strip(u, v, p, names, U):
    width, tile, first, factor, height = (p[name] for name in names)
    step = np.round(where(U() < 0.5, width, -width) * np.log(U()))
    folded = np.sign(v) * (np.fmod(abs(v) + first, first * factor) - first)
    return tile * (u + step), height * where(abs(v) > first, folded, v)


def intersection(x, y, z, w, p, U):
    a = _strip(x, y, p, ("xwidth", "xtilesize", "xmod1", "xmod2", "xheight"), U)
    b = _strip(y, x, p, ("yheight", "ytilesize", "ymod1", "ymod2", "ywidth"), U)
    first = U() < 0.5
    return where(first, a[0], b[1]), where(first, a[1], b[0]), 0 * x


def parallel(x, y, z, w, p, U):
    names = ("width", "tilesize", "mod1", "mod2", "height")
    a, b = (_strip(x, y, p, [f"x{k}{name}" for name in names], U) for k in (1, 2))
    first = U() < 0.5
    return where(first, a[0], b[0]), where(first, a[1] + w * p["x1move"], b[1] - w * p["x2move"]), 0 * x


def _sine_bit(x, y):
    return (43758.5453 * sin(12.9898 * np.floor(x) + 78.233 * np.floor(y)) % 1 >= 0.5) * 1.0


def cut_fun(x, y, z, w, p, U):
    offsets, seed = JavaRandom(int(p["seed"])), int(p["seed"])
    a, b, middle = (x, y, 0.0) if p["mode"] < 1 else (U(), U(), 0.5)
    u, v = a * p["zoom"] + seed * offsets.next_double(), b * p["zoom"] + seed * offsets.next_double()
    fu, fv = 2 * (u % 1) - 1, 2 * (v % 1) - 1
    d, du, dv = np.hypot(fu, fv), 0.9 * np.sign(fu), 0.9 * np.sign(fv)
    mine, beside, above = _sine_bit(u, v), _sine_bit(u + du, v), _sine_bit(u, v + dv)
    other = where((mine == _sine_bit(u + du, v + dv)) & (mine != beside), 0.0, beside)
    other = where(beside == above, other, mine)
    t = np.clip((1.01 - d) / (1 - d), 0, 1)
    shade = where(d < 1, mine, mine + (other - mine) * t * t * (3 - 2 * t))
    cut = (shade > 0) == (p["invert"] < 1)
    return w * (where(cut, 0, a) - middle), w * (where(cut, 0, b) - middle), 0 * x


def cut_tileillusion(x, y, z, w, p, U):
    grid = np.linspace(-60, 60, 1_000_001)
    a, b = (x, y) if p["mode"] < 1 else (U() - 0.5, U() - 0.5)
    row = b * p["zoom"] + 0.1 * sin(1.6 * b * p["zoom"])
    n = np.floor(row)
    low, high = (np.interp(k, grid + 0.1 * sin(1.6 * grid), grid) for k in (n, n + 1))
    tile = np.floor(a * p["zoom"] / (high - low) + p["time"] * np.sign(n % 2 - 0.5)) + n
    cut = ((tile % 2 == 0) | (row - n <= 0.05)) == (p["invert"] < 1)
    return w * where(cut, 0, a), w * where(cut, 0, b), 0 * x


def dc_portal(x, y, z, w, p, U):
    a, b = (x, y) if p["ColorOnly"] == 1 else (U() - 0.5, U() - 0.5)
    u, v, t = a * p["zoom"], b * p["zoom"], 1000 + p["time"]
    s = 3 * sin((1 + sqrt(np.hypot(u, v)) / p["waves"]) * t + t / 8 * cos(u) * cos(v))
    rgb = where(s > 0, [abs(s) - 1, abs(s) - 1.5, abs(s) - 2], [abs(s) - 1.5] * 3)
    levels = np.clip(np.floor(256 * rgb), 0, 255)
    gray = np.floor(levels * np.array([[0.299], [0.587], [0.114]])).sum(0) / 255
    return w * a, w * b, gray * p["scale_z"] + p["offset_z"]


FORMULAS = {
    "cut_fun": cut_fun, "cut_tileillusion": cut_tileillusion, "dc_portal": dc_portal,
    "affine3D": affine3d, "petal3D_apo": petal3d_apo, "petal3D": petal3d, "joukowski": joukowski, "hole2": hole2,
    "combimirror": combimirror, "intersection": intersection, "parallel": parallel,
    "post_zscale_wf": lambda x, y, z, w, p, U: (x, y, w * z + p["ztranslate"]),
    "post_ztranslate_wf": lambda x, y, z, w, p, U: (x, y, z + w),
    "elliptic_mirrory": lambda x, y, z, w, p, U: (
        2 * w / pi * np.arcsin(x / _longest(x, y)),
        2 * w / pi * np.log(_longest(x, y) + sqrt(_longest(x, y) - 1)) * where(U() < 0.5, 1, -1),
        0 * x,
    ),
    "mandelbrot": None,  # see the test of its table
}  # fmt: skip
FRACTORIUM = {
    "modulusx": lambda x, y, z, w, p, U: (w * _folded(x, p["x"], p["shift"]), w * y, 0 * x),
    "modulusy": lambda x, y, z, w, p, U: (w * x, w * _folded(y, p["y"], p["shift"]), 0 * x),
    "erf3D": lambda x, y, z, w, p, U: (w * erf(x), w * erf(y), w * erf(z)),
    "linearxz": lambda x, y, z, w, p, U: (w * x, 0 * y, w * z),
    "linearyz": lambda x, y, z, w, p, U: (0 * x, w * y, w * z),
    "expo": lambda x, y, z, w, p, U: (
        w * (complex(p["real"], p["imaginary"]) ** (x + 1j * y)).real,
        w * (complex(p["real"], p["imaginary"]) ** (x + 1j * y)).imag, 0 * x,
    ),
}  # fmt: skip


def _folded(t, half, shift):
    f = np.fmod(t + half + shift, 2 * half)
    return where(f >= 0, f - half, f + half)


def _longest(x, y):
    return 0.5 * (np.hypot(x + 1, y) + np.hypot(x - 1, y))


def values_of(name, rng, change):
    """Parameters: the defaults, or with `change` others in the neighborhood."""
    table = variation_table()[name].parameters
    defaults = {key.removeprefix(f"{name}_"): value for key, value in table.items()}
    if not change:
        return {key: float(np.float32(value)) for key, value in defaults.items()}
    whole = {"mode": 2.0, "shape": float(rng.integers(10)), "inside": 1.0, "inverse": 1.0}
    return {key: whole.get(key, float(np.float32(value + rng.uniform(0.1, 0.6)))) for key, value in defaults.items()}


@pytest.mark.parametrize("name", [*(n for n, f in FORMULAS.items() if f), *FRACTORIUM])
def test_variations_equal_their_formulas(device, rng, name):
    v, formula = variation_table()[name], (FORMULAS | FRACTORIUM)[name]
    points = rng.normal(scale=1.2, size=(64, 4)).astype("f4")
    count = 8192
    for change in (False, True):
        p = values_of(name, rng, change)
        at = points if v.random_count == 0 else np.resize(points[0], (count, 4))
        (found,) = apply_cases(device, [v], [(v, 0.7, p, at)], AFFINE)
        x, y, z = at[:, :3].T.astype("f8")
        with np.errstate(all="ignore"):
            wanted = formula(x, y, z, np.float64(np.float32(0.7)), p, lambda: rng.uniform(size=count))
        for a, b in zip(found.T[: 3 if v.in_space else 2], wanted, strict=False):
            if v.random_count:
                a, b = (c + rng.uniform(-1e-3, 1e-3, count) for c in (a, b))  # atoms become as wide as their rounding
                assert ks_2samp(a, b, method="asymp").pvalue > 1e-5, (name, p)
            else:
                usual = np.isfinite(b) & (abs(b) < 1e4)
                assert usual.any() and (abs(a - b) <= 2e-4 * (1 + abs(b)))[usual].mean() > 0.96, (name, p, a[:3], b[:3])


def test_points_of_the_mandelbrot_set_escape_or_stay():
    """The table's points leave the circle of radius 2 late, or never with `invert`."""
    v = variation_table()["mandelbrot"]
    defaults = {key.removeprefix("mandelbrot_"): value for key, value in v.parameters.items()}
    for invert in (0.0, 1.0):
        table = v.table(defaults | {"invert": invert, "iter": 60.0}, {})
        points = table[1:].reshape(-1, 2)
        assert len(points) == table[0] > 1000
        c = points[:, 0].astype("f8") + 1j * points[:, 1]
        z, steps = c.copy(), np.zeros(len(c))
        for _ in range(60):
            inside = abs(z) < 2
            z, steps = np.where(inside, z * z + c, z), steps + inside
        assert ((steps >= 59) if invert else (steps >= 5) & (steps <= 60)).mean() > 0.99


def test_a_priority_adds_to_the_point():
    """JWildfire adds a variation that a file moves before the others to the point, instead of replacing it."""
    table = variation_table()
    assert table["pre_add_swirl"].adds and table["post_add_swirl"].stage == "post_" and not table["pre_swirl"].adds
