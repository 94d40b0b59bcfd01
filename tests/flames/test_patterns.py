"""Tilings, colors and escape times of Fractorium and JWildfire, against their formulas in NumPy, in float64.

FORMULAS[name](x, y, z, w, p, U, c) -> (x, y, z, color); `p`: parameters; U() draws like x; c: the color before. None
says that a coordinate is not compared. Random ones are compared by their distribution.
"""

import numpy as np
import pytest
from numpy import arctan2, cos, exp, floor, hypot, pi, sin, sqrt, where
from scipy.stats import ks_2samp

from renderer.flames.variations.catalog import variation_table
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = np.array([0.9, -0.3, 0.4, 0.2, 0.8, -0.35], "f4")
ROOT3 = sqrt(3.0)


def fract(t):
    return t - floor(t)


def sine_noise(u, v, seed):
    return fract(sin(u * 12.9898 + v * 78.233 + seed) * 43758.5453)


def arcs(u, v, n, width, flipped):
    a = where(flipped, 1 - u, u)
    most = 0.5 * (2 ** (1 / n) - 1) * width
    return [abs((abs(s) ** n + abs(t) ** n) ** (1 / n) - 0.5) / most for s, t in ((a, v), (1 - a, 1 - v))]


def truchet_glyph(x, y, z, w, p, U, c):
    u, v = fract(x / w), fract(y / w)
    kind = np.fmod(sine_noise(floor(abs(x) + 0.5), floor(abs(y) + 0.5), p["seed"]) * 32747 + 12345, 2)
    near, far = arcs(u, v, min(p["exponent"], 2), min(p["arc_width"], 1), (p["seed"] if p["seed"] < 2 else kind) >= 1)
    angle, amp = np.radians(p["angle"]), p["amp"]
    a, b = (t - (floor(t / amp) + 0.5) * amp for t in (x, y))
    inside = abs(cos(angle) * a + sin(angle) * b) + abs(cos(angle) * b - sin(angle) * a) < amp * p["max"] / 2
    count = 2.0 * (near < 1) + 2.0 * (far < 1)
    return where(inside, count * (u + floor(x)) - x, x), where(inside, count * (v + floor(y)) - y, y), None, c


def truchet2(x, y, z, w, p, U, c):
    t, s = abs(fract(x / p["scale"]) - 0.5) * 2, abs(p["seed"])
    width = np.minimum(p["width1"] * (1 - t) + p["width2"] * t, 1)
    e = p["exponent1"] * (1 - t) + p["exponent2"] * t
    k = sqrt(1.5 * s) / (0.5 * s) / 4
    i, j = np.rint(x) * k, np.rint(y) * k
    kind = np.fmod(np.fmod((i + j + i * j + s) * k / 2 * 32747 + 12345, 65535), 2)
    a = where(kind < 1, fract(x), 1 - fract(x))
    n, o, b = np.minimum(e, 2), 1 / e, fract(y)
    near, far = (abs((q**n + r**n) ** o - 0.5) / (0.5 * (2**o - 1) * width) for q, r in ((a, b), (1 - a, 1 - b)))
    kept = (near > 1) & (far > 1) if p["inverse"] else (near < 1) | (far < 1)
    away = 10000.0 if p["inverse"] else 100.0
    return where(kept, w * x, away), where(kept, w * y, away), None, c


def r_circleblur(x, y, z, w, p, U, c):
    r = np.fmod(hypot(x, y), abs(p["n"]))
    a = arctan2(y, x) + r
    u, v = np.rint(r * cos(a)), np.rint(r * sin(a))
    first, second, third = (
        np.fmod(sin(u * k + v * m + p["seed"]) * 43758.5453, 1)
        for k, m in ((127.1, 311.7), (269.5, 183.3), (78.233, 12.9898))
    )
    far, turn = sqrt(U()) / 2 * (third * (p["max"] - p["min"]) + p["min"]), 2 * pi * U()
    return w * (u + far * cos(turn) + second * p["dist"]), w * (v + far * sin(turn) + first * p["dist"]), None, c


def dc_bubble(x, y, z, w, p, U, c):
    r = (x * x + y * y) / 4 + 1
    u, v = w * x / r, w * y / r
    color = abs(((u + p["centerx"]) ** 2 + (v + p["centery"]) ** 2) / p["scale"]) % 1
    return u, v, w * (2 / (w / r if p["invert"] == 1 else r) - 1), color


def dc_cylinder(x, y, z, w, p, U, c):
    a, r = 2 * pi * U(), p["blur"] * (U() + U() + U() + U() - 2)
    u, v = w * sin(x + r * sin(a)) * p["x"], r + y * p["y"]
    t = (cos(p["angle"]) * u + sin(p["angle"]) * v + p["offset"]) / p["scale"]
    return u, v, w * cos(x + r * cos(a)), abs(0.5 * (t + 1)) % 1


def dc_cube(x, y, z, w, p, U, c):
    a, b, axis, low = 2 * U() - 1, 2 * U() - 1, floor(3 * U()), U() < 0.5
    side = where(low, -1, 1)
    at = [np.choose(axis.astype(int), options) for options in ((side, a, a), (a, side, b), (b, b, side))]
    colors = [where(low, p[f"c{2 * k + 1}"], p[f"c{2 * k + 2}"]) for k in range(3)]
    return (
        w * at[0] * p["x"],
        w * at[1] * p["y"],
        w * at[2] * p["z"],
        np.clip(np.choose(axis.astype(int), colors), 0, 1),
    )


def dc_carpet(x, y, z, w, p, U, c):
    i, j, h = where(U() < 0.5, -1, 1), where(U() < 0.5, -1, 1), 0.1 * p["origin"]
    both = where(i == j, 0, -2)
    h = -h + (1 - both) * h
    u, v, a = x + i, y + j, AFFINE.astype("f8")
    color = abs(c * 0.5 * (1 + h) + both * (1 - h) * 0.5) % 1
    return w * (a[0] * u + a[1] * v + a[2]), w * (a[3] * u + a[4] * v + a[5]), None, color


def colorscale(x, y, z, w, p, U, c):
    h = c * p["scale_z"] * w + p["offset_z"]
    return w * p["scale_x"] * x, w * p["scale_y"] * y, h * (U() if p["sides"] > 0 else 1), c


def wave(x, y, z, w, p, U, c):
    d = np.stack([x - p["centre_x"], y - p["centre_y"], z - p["centre_z"]])
    axis = int(p["axis"])
    fixed = {0: 2, 1: 0, 2: 1}.get(axis)
    r = sqrt(sum(d[k] ** 2 for k in range(3) if k != fixed))
    amp = w * exp(-r / p["wavelen"] * p["damping"]) * sin(2 * pi * r / p["wavelen"] + p["phase"])
    out = d / r * amp if axis == 3 else [amp * (k == fixed) for k in range(3)]
    return *out, c


def juliascope3db(x, y, z, w, p, U, c):
    power = p["power"]
    n, t, a = p["dist"] / power / 2, floor(abs(power) * U()), arctan2(y, x)
    turn = (2 * pi * t + where(t % 2 == 0, a, -a)) / power
    r, h = w * (x * x + y * y + (z * z if p["type"] else 0)) ** n, z / abs(power) + p["warp"]
    up = w * p["zamount"] * (x * x * p["za"] + y * y * p["zb"] + h * h) ** (n * p["zdist"]) * h
    return r * cos(turn), r * sin(turn), up * (sin(p["wave1"]) * cos(p["wave2"]) if p["mode"] else 1), c


def lace(x, y, z, w, p, U, c):
    pick = U()
    centers = [(1, 0), (-0.5, ROOT3 / 2), (-0.5, -ROOT3 / 2), (0, 0)]
    which = np.select([pick > 0.75, pick > 0.5, pick > 0.25], [0, 1, 2], 3)
    cx, cy = np.array(centers).T[:, which]
    a, r = arctan2(y - cy, x - cx), hypot(x, y) / 2
    return w * (cy - r * sin(a)), w * (cx - r * cos(a)), None, c


def post_depth(x, y, z, w, p, U, c):
    """The kernel of the test gives (x + 1, y - 2, z + 3) as the point before the variations."""
    k = abs(z) ** p["power"]
    return x + w * (x + 1 + x * k), y + w * (y - 2 + y * k), z + w * (z + 3 + z * k), c


def escape(step):
    def formula(x, y, z, w, p, U, c):
        """Java's loop for one point after the other."""
        count, color = len(x), c.copy()
        out = np.zeros((3, count))
        for k in range(count):
            for _ in range(int(p["max_clip_iter"])):
                at = complex((p["xmax"] - p["xmin"]) * U()[k] + p["xmin"], (p["ymax"] - p["ymin"]) * U()[k] + p["ymin"])
                q, steps, size = at, 0, 0.0
                while steps < p["max_iter"] and size < 4:
                    size = abs(q) ** 2
                    q, steps = step(q, at, p), steps + 1
                n = steps + 1
                good = n < p["max_iter"] + p["clip_iter_max"] and n > p["clip_iter_min"]
                if good:
                    break
            if good:
                shade = c[k] + n / p["max_iter"]
                color[k] = np.clip(shade - (shade > 1), 0, 1)
                up = p["scalez"] / 10 * n / p["max_iter"] + p["offsetz"]
                out[:, k] = p["scale"] * w * np.array([at.real + p["offsetx"], at.imag + p["offsety"], up])
        return *out, color

    return formula


def seed(p):
    return complex(p["xseed"], p["yseed"])


FORMULAS = {
    "Truchet_glyph": truchet_glyph,
    "truchet2": truchet2, "r_circleblur": r_circleblur,
    "dc_bubble": dc_bubble, "dc_cylinder": dc_cylinder, "dc_cube": dc_cube,
    "dc_carpet": dc_carpet, "colorscale_wf": colorscale, "wave3D_wf": wave,
    "juliascope3Db": juliascope3db, "lace_js": lace, "post_depth": post_depth,
    "rect_wf": lambda x, y, z, w, p, U, c: (
        w * (p["x0"] + (p["x1"] - p["x0"]) * U()), w * (p["y0"] + (p["y1"] - p["y0"]) * U()), None, c,
    ),
    "fract_mandelbrot_wf": escape(lambda q, at, p: q ** p["power"] + at),
    "fract_julia_wf": escape(lambda q, at, p: q ** p["power"] + seed(p)),
    "fract_dragon_wf": escape(lambda q, at, p: seed(p) * (q - q * q)),
    "fract_meteors_wf": escape(lambda q, at, p: at * (q - 1 / q)),
    "fract_pearls_wf": escape(lambda q, at, p: seed(p) * (q - 1 / q)),
    "fract_salamander_wf": escape(lambda q, at, p: seed(p) * q * q - 1),
}  # fmt: skip
OTHERS = {
    "Truchet_glyph": [{"seed": 5, "exponent": 1.5}, {"seed": 0, "angle": 20, "amp": 2}],
    "truchet2": [{"inverse": 1, "width1": 0.3}], "r_circleblur": [{"n": 3, "seed": 2}],
    "dc_bubble": [{"invert": 1, "scale": 0.3, "centerx": 0.5}], "dc_cylinder": [{"angle": 0.4, "x": 1, "y": 1}],
    "dc_cube": [{"c1": 0.1, "c2": 0.3, "c3": 0.5, "c4": 0.6, "c5": 0.8, "c6": 0.9, "y": 2}],
    "dc_carpet": [{"origin": 2}], "colorscale_wf": [{"sides": 1, "scale_x": 0.5, "offset_z": 0.2}],
    "wave3D_wf": [{"axis": k, "centre_y": 0.3, "phase": 1} for k in (0, 1, 3)],
    "juliascope3Db": [{"type": 1, "mode": 1, "power": -2, "warp": 0.1}], "post_depth": [{"power": 2}],
    "fract_mandelbrot_wf": [{"power": 3, "max_clip_iter": 8}],
}  # fmt: skip
# Fractions of points that agree: these hashes' digits beyond floats turn a few tiles.
AGREEING = {"Truchet_glyph": 0.8, "truchet2": 0.8}
CASES = [(name, more) for name in FORMULAS for more in ({}, *OTHERS.get(name, ()))]


@pytest.mark.parametrize("name,more", CASES, ids=[f"{name}-{k}" for k, (name, _) in enumerate(CASES)])
def test_patterns_equal_their_formulas(device, rng, name, more):
    v = variation_table()[name]
    p = {key.removeprefix(f"{name}_"): float(np.float32(value)) for key, value in v.parameters.items()}
    p |= {key: float(np.float32(value)) for key, value in more.items()}
    count = 1500 if name.startswith("fract") else 6000
    points = np.column_stack([rng.normal(scale=1.5, size=(64, 3)), rng.uniform(size=64)]).astype("f4")
    at = points if v.random_count == 0 else np.resize(points[0], (count, 4))
    (found,) = apply_cases(device, [v], [(v, 0.7, p, at)], AFFINE)
    x, y, z, c = at.T.astype("f8")
    with np.errstate(all="ignore"):
        wanted = FORMULAS[name](x, y, z, np.float64(np.float32(0.7)), p, lambda: rng.uniform(size=len(x)), c)
    for k, b in enumerate(wanted):
        if b is None or k == 2 and not v.in_space:
            continue
        a = found[:, k]
        if v.random_count:
            a, b = (t + rng.uniform(-1e-3, 1e-3, len(x)) for t in (a, b))  # atoms become as wide as their rounding
            assert ks_2samp(a, b, method="asymp").pvalue > 1e-5, k
        else:
            assert (abs(a - b) <= 2e-4 * (1 + abs(b))).mean() > AGREEING.get(name, 0.95), (k, a[:5], b[:5])
    if name.startswith("fract"):
        assert abs(found[:, 4].mean() - (np.array(wanted[0]) == 0).mean()) < 0.05  # hidden where no start is good


def test_cells_of_crackle_and_hexes_color_by_their_border(device, rng):
    """The same points as without color; the color is the distance ratio: 0 in the middle of a hexagon, 1 on its rim."""
    points = rng.normal(size=(64, 4)).astype("f4")
    table = variation_table()
    for plain, colored in (("hexes", "dc_hexes_wf"), ("crackle", "dc_crackle_wf")):
        pair = [table[plain], table[colored]]
        cases = [(v, 0.7, {"color_scale": 0.5, "color_offset": 0.25}, points) for v in pair]
        (one,), (other,) = (apply_cases(device, pair, [case], AFFINE) for case in cases)
        assert np.array_equal(one[:, :2], other[:, :2])
        assert np.allclose(one[:, 3], points[:, 3]) and (other[:, 3] >= 0.25).all() and other[:, 3].max() <= 0.75 + 1e-5
    middle = np.zeros((16, 4), "f4")
    (found,) = apply_cases(device, [pair[0], table["dc_hexes_wf"]], [(table["dc_hexes_wf"], 1.0, {}, middle)], AFFINE)
    assert np.allclose(found[:, 3], 0, atol=1e-6)


@pytest.mark.parametrize("part", range(2))
def test_vectors_give_the_bits_of_single_points(device, part):
    if device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item")
    rng = np.random.default_rng(5)
    names = [*sorted(FORMULAS), "dc_hexes_wf", "dc_crackle_wf"][part::2]
    variations = [variation_table()[name] for name in names]
    cases = [(v, 0.7, {}, rng.normal(size=(64, 4))) for v in variations]
    alone, together = (apply_cases(device, variations, cases, AFFINE, lanes) for lanes in (1, device.simd_width))
    for v, one, many in zip(variations, alone, together, strict=True):
        assert np.array_equal(one, many, equal_nan=True), v.name
