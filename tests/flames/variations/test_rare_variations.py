"""Variations of Apophysis' plugins and rare ones of JWildfire, against their origins' definitions in NumPy, in float64.

FORMULAS[name](x, y, z, w, p, U, c) -> (x, y, z, color), as in test_patterns.py; DISTANCES[name](p, numbers): the signed
distance of a solid, of which the kernel only decides the sign.
"""

import numpy as np
import pytest
from numpy import arctan2, cos, cosh, exp, floor, fmod, hypot, pi, rint, sin, sinh, sqrt, trunc, where
from numpy.linalg import norm
from scipy.stats import ks_2samp

from renderer.flames.variations.catalog import variation_table
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = np.array([0.9, -0.3, 0.4, 0.2, 0.8, -0.35], "f4")
WEIGHT = 0.7


def curl2(x, y, z, w, p, U, c):
    c1, c2, c3 = p["c1"], p["c2"], p["c3"]
    re = c3 * x**3 - 3 * c3 * x * y * y + c2 * x * x - c2 * y * y + c1 * x + 1
    im = c3 * x * x * y - c3 * y**3 + 2 * c2 * x * y + c1 * y
    q = w * (x + 1j * y) / (re + 1j * im)
    return q.real, q.imag, None, c


def xcurl2(x, y, z, w, p, U, c):
    re = 1 + p["c1"] * x + p["c2"] * (x * x - y * y) + p["c3"] * (x**3 - 3 * x)
    im = p["c1"] * y + p["c2"] * 2 * x * y + p["c3"] * (3 * x * y - 1)
    r = w / (re**2 + im**2)
    return (x * re + y * im) * r, (y * re + x * im) * r, None, c


def xhyperbol(x, y, z, w, p, U, c):
    u, v = x / (x * x + y * y), y / (x * x + y * y)
    q = p["m00"] * u + p["m01"] * v + p["m20"] + 1j * (p["m10"] * u + p["m11"] * v + p["m21"])
    out = abs(q) ** 2 * exp(1j * np.angle(q))
    return w * out.real / abs(out) ** 2, w * out.imag / abs(out) ** 2, None, c


def glynnia3(x, y, z, w, p, U, c):
    r = p["rscale"] * hypot(x, y)
    side, first = where((r > p["rthresh"]) & (y > p["ythresh"]), 1, -1), U() > 0.5
    d1, d2 = p["dscale"] * sqrt(r + x), p["dscale"] * (r + x)
    k, s = w * sqrt(2) / 2, w / sqrt(r * (y * y + d2 * d2))
    return where(first, side * k * d1, side * s * d2), where(first, -k / d1 * y, s * y), None, c


def rooted(u, v, power, k, U):
    a, b, c, d, e, f = AFFINE.astype("f8")
    turn = floor(abs(power) * U())
    q = k * exp(1j * (arctan2(d * u + e * v + f, a * u + b * v + c) + 2 * pi * turn) / power)
    return q.real, q.imag


def julian3(x, y, z, w, p, U, c):
    n, h = p["power"], z / abs(p["power"])
    r = w * (x * x + y * y + h * h) ** ((p["dist"] / n - 1) / 2)
    m = (x + 1j * y) / ((p["real"] + 1j * p["imag"]) * (x + 1j * y) + 1)
    return *rooted(m.real, m.imag, n, r * hypot(x, y), U), r * h, c


def juni(x, y, z, w, p, U, c):
    n, h, r2 = p["power"], z / abs(p["power"]), x * x + y * y
    r = w * (r2 + h * h) ** ((p["stretch"] / n - 1) / 2)
    u, v = rooted(x, y, n, r * sqrt(r2), U)
    plain = r2 < w * w if p["invert"] else r2 > w * w
    return where(plain, w * x, u), where(plain, w * y, v), r * h, c


def circular(x, y, z, w, p, U, c):
    hashed = sin(x * p.get("xx", 12.9898) + y * p.get("yy", 78.233) + p["seed"]) * 43758.5453
    turn = (2 * (U() + fmod(hashed, 1)) - 2) * p["angle"] * pi / 180
    q = w * (x + 1j * y) * exp(1j * turn)
    return q.real, q.imag, None, c


def rings3(x, y, z, w, p, U, c):
    d, r = p["val"] ** 2 + 1e-8, hypot(x, y)
    k = trunc(r / d + 1) // 2
    s = w * (2 - d * (k * 2 / r + 1) - p["n"] * (k * 2 * (d - d * d) - 1) / r)
    return s * x, s * y, None, c


def bulge(x, y, z, w, p, U, c):
    k = w * hypot(x, y) ** p["N"] / hypot(x, y)
    return k * x, k * y, None, c


def question_mark(t, p):
    out = []
    for size in abs(t):
        left, q, right, s, step = 0.0, p["a"], p["b"], p["c"], p["dd"]
        y = left
        for _ in range(int(p["f"])):
            step *= p["e"]
            m, n = left + right, q + s
            if size < m / n:
                right, s = m, n
            else:
                y, left, q = y + step, m, n
        out.append(y + step if 0 < size < 1 else size)
    return np.copysign(out, t)


def whirligig(x, y, z, w, p, U, c):
    kind, signs = divmod(int(p["Mode"]), 4)
    u, v = [(cos(x) / cosh(y), sin(x) / sinh(y)), (sin(x) / cosh(y), cos(x) / sinh(y)),
            (sin(x) / sinh(y), cos(x) / cosh(y)), (cos(x) / sinh(y), sin(x) / cosh(y))][kind]  # fmt: skip
    return w * u * (1, -1, 1, -1)[signs], w * v * (-1, 1, 1, -1)[signs], None, c


def borders(x, y, z, w, p, U, c):
    rx, ry = rint(x), rint(y)
    u, v = x - rx, y - ry
    a, b = where(u >= 0, 0.25, -0.25), where(v >= 0, 0.25, -0.25)
    flat, inner = abs(u) >= abs(v), U() >= 0.75
    u2, v2 = where(flat, a, u / v * b), where(flat, a * v / u, b)
    return w * (u / 2 + rx + where(inner, 0, u2)), w * (v / 2 + ry + where(inner, 0, v2)), None, c


def sector(x, y, kx=1.0, ky=1.0):
    """The number of a grid's sector, 0 to 7, as the origin's nested ifs count them."""
    out = []
    for rx, ry in zip(rint(x) * kx, rint(y) * ky, strict=True):
        if ry <= 0:
            out.append((0 if -ry >= rx else 1) if rx > 0 else (2 if ry <= rx else 3))
        else:
            out.append((4 if ry >= rx else 5) if rx > 0 else (6 if ry > -rx else 7))
    return np.array(out)


def dc_gridout(x, y, z, w, p, U, c):
    k = sector(x, y)
    u, v = np.array([1, 0, 1, 0, -1, 0, -1, 0])[k], np.array([0, 1, 0, -1, 0, 1, 0, -1])[k]
    return w * (x + u), w * (y + v), None, fmod(c + where(u != 0, 0.25, 0.75), 1)


def gridout3d(x, y, z, w, p, U, c):
    k = sector(x, y, p["xx"], p["yy"])
    u, v, h = (np.array([p[axis + letter] for letter in "abcdefgh"])[k] for axis in "xyz")
    u, v = where((k == 4) | (k == 6), -u, u), where((k == 3) | (k == 7), -v, v)
    return w * (x + u), w * (y + v), w * where(k < 4, z + h, z * h), c


def bwraps7(x, y, z, w, p, U, c):
    size, g = p["cellsize"], p["gain"] ** 2 + 1e-6
    radius = 0.5 * (size / (1 + p["space"] ** 2))
    most = g * radius
    most = 1.0 if most > 2 else most / (most * most / 4 + 1)
    cx, cy = (floor(x / size) + 0.5) * size, (floor(y / size) + 0.5) * size
    q = (x - cx) + 1j * (y - cy)
    outside, q = abs(q) > radius, q * g
    q = q * radius / most / (abs(q) ** 2 / 4 + 1)
    r = abs(q) ** 2 / radius**2
    q = q * exp(-1j * (p["inner_twist"] * (1 - r) + p["outer_twist"] * r))
    return w * where(outside, x, cx + q.real), w * where(outside, y, cy + q.imag), None, c


def cut(kept):
    def formula(x, y, z, w, p, U, c):
        if p["mode"]:
            x, y = U() - 0.5, U() - 0.5
        inside = kept(x * p["zoom"], y * p["zoom"], p) != bool(p["invert"])
        return where(inside, w * x, 0), where(inside, w * y, 0), None, c

    return formula


def cross(u, v, p):
    t = abs(sin(pi / 4) * abs(u) - cos(pi / 4) * abs(v)) - p["size"]
    t = np.clip(t / 0.009, 0, 1)
    return t * t * (3 - 2 * t) >= 0.1


def conical_spiral(x, y, z, w, p, U, c):
    t = fmod(abs((x, y, z)[int(p["mode"])]), 1)
    h = t * p["height"] + sin(t * 2 * pi * p["z_wave_freq"]) * p["z_wave_amp"]
    q = t * p["radius"] * exp(1j * (t * 2 * pi * p["turns"] + h * p["twist"]))
    more = [p["thickness"] * (U() if p["solid"] else t) for t in (x, y, z)]
    driver = (t, t * p["radius"], fmod(t * p["turns"], 1), h)[int(p["colorMode"])]
    color = fmod(abs(driver * p["colorSpeed"] + p["colorOffset"]), 1) if p["colorize"] else c
    return w * (q.real + more[0]), w * (q.imag + more[1]), w * (h + more[2]), color


def onion(x, y, z, w, p, U, c):
    x, y = x - p["centre_x"], y - p["centre_y"]
    d = hypot(x, y)
    k = where(d <= w, 1, (2 * w - d) / d)
    cap = -sqrt(w * w - d * d)
    shoulder = sqrt(w * w - (k * d) ** 2)
    tip = exp(d - w - (w - w / sqrt(2))) - 1 + w / sqrt(2)
    h = where(d <= w, cap, where(2 * w - d > w / sqrt(2), shoulder, tip))
    return k * x + p["centre_x"], k * y + p["centre_y"], h + z, c


def post_stun(x, y, z, w, p, U, c):
    r2 = x * x + y * y
    offset = (sqrt(r2) + abs(p["power"] * sqrt(r2) * U())) ** 2
    k = 1 / where(offset > max(p["r_min"], p["r_max"]), offset, r2) - 1
    out = where(r2 > min(p["r_min"], p["r_max"]), k, 1)
    return w * out * x, w * out * y, w * z, c


FORMULAS = {
    "post_stun": post_stun,
    "curl2": curl2, "xcurl2": xcurl2, "xhyperbol": xhyperbol, "glynnia3": glynnia3, "julian3": julian3, "juni": juni,
    "circular": circular, "circular2": circular, "rings3": rings3, "whirligig": whirligig, "dc_boarders": borders,
    "bulge": bulge,
    "minkQM": lambda x, y, z, w, p, U, c: (w * question_mark(x, p), w * question_mark(y, p), None, c),
    "dc_gridout": dc_gridout, "gridout3D": gridout3d, "bwraps7": bwraps7,
    "cut_sqcir": cut(lambda u, v, p: abs(u - v) ** p["power"] + abs(u + v) ** p["power"] <= 1), "cut_x": cut(cross),
    "conicalSpiral": conical_spiral, "onion": onion,
}  # fmt: skip
OTHERS = {
    "curl2": {"c1": 0.4, "c2": -0.3, "c3": 0.2}, "xcurl2": {"c1": 0.4, "c2": -0.3, "c3": 0.2},
    "xhyperbol": {"m00": 0.8, "m01": 0.3, "m10": -0.2, "m20": 0.3, "m21": -0.1},
    "glynnia3": {"rscale": 1.3, "dscale": 0.8},
    "julian3": {"power": -3, "dist": 1.5, "real": 0.3, "imag": -0.4}, "juni": {"power": 3, "invert": 1, "stretch": 0.7},
    "circular": {"angle": 30}, "circular2": {"angle": 20, "xx": 3}, "rings3": {"val": 0.5, "n": 0.4},
    "whirligig": {"Mode": 9}, "bulge": {"N": -0.7}, "minkQM": {"a": 1.2, "e": 0.6, "f": 8},
    "gridout3D": {"xx": 0.7, "xa": 0.5, "yd": 0.3, "zb": 0.4, "zg": 0.2, "xg": 0.6, "yh": 0.9},
    "bwraps7": {"cellsize": 0.8, "space": 0.3, "gain": 1.2, "inner_twist": 0.7, "outer_twist": -0.4},
    "cut_sqcir": {"mode": 0, "invert": 1, "power": 3}, "cut_x": {"mode": 0, "zoom": 0.3},
    "conicalSpiral": {"mode": 1, "z_wave_freq": 2, "z_wave_amp": 0.2, "twist": 0.5, "thickness": 0.1, "colorize": 1,
                      "colorMode": 2, "colorSpeed": 1.5, "colorOffset": 0.1},
    "onion": {"centre_x": 0.2, "centre_y": -0.3},
}  # fmt: skip
CASES = [(name, more) for name in FORMULAS for more in ({}, OTHERS.get(name)) if more is not None]


def values(name, more):
    v = variation_table()[name]
    given = {key.removeprefix(f"{name}_"): default for key, default in v.parameters.items()} | more
    return v, {key: float(np.float32(value)) for key, value in given.items()}


@pytest.fixture(scope="module")
def applied():
    """The results of all cases by one kernel, and the points."""
    from renderer.gpu import open_context

    rng, cases = np.random.default_rng(44), []
    for name, more in CASES:
        v, p = values(name, more)
        points = np.column_stack([rng.normal(scale=1.2, size=(64, 3)), rng.uniform(size=64)]).astype("f4")
        cases.append(
            (v, WEIGHT, p, points if v.random_count == 0 or p.get("mode") == 0 else np.resize(points[0], (4000, 4)))
        )
    variations = [variation_table()[name] for name in FORMULAS]
    return [case[3] for case in cases], apply_cases(open_context().device, variations, cases, AFFINE)


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{name}-{k}" for k, (name, _) in enumerate(CASES)])
def test_rare_variations_equal_their_definitions(applied, rng, number):
    name, more = CASES[number]
    p, at, found = values(name, more)[1], applied[0][number], applied[1][number]
    x, y, z, c = at.T.astype("f8")
    with np.errstate(all="ignore"):
        wanted = FORMULAS[name](x, y, z, np.float64(np.float32(WEIGHT)), p, lambda: rng.uniform(size=len(x)), c)
    for k, b in enumerate(wanted):
        if b is None:
            continue
        a = found[:, k]
        if len(x) > 64:
            a, b = (t + rng.uniform(-1e-3, 1e-3, len(x)) for t in (a, b))
            assert ks_2samp(a, b, method="asymp").pvalue > 1e-5, k
        else:
            good = np.isfinite(b) & (abs(b) < 1e6)
            assert (abs(a - b)[good] <= 3e-4 * (1 + abs(b[good]))).mean() > 0.95, (k, a[:5], b[:5])
    if name.startswith("cut_"):
        assert abs(found[:, 4].mean() - (np.array(wanted[0]) == 0).mean()) < 0.05


# ---- solids: JWildfire's distance functions, of I. Quilez


def box_distance(q):
    return norm(np.maximum(q, 0), axis=1) + np.minimum(q.max(1), 0)


def flat(q):
    """The distance of a solid that two distances (n, 2) bound."""
    return np.minimum(q.max(1), 0) + norm(np.maximum(q, 0), axis=1)


def reflected(q, kx, ky):
    return q - np.outer(2 * np.minimum(q @ (kx, ky), 0), (kx, ky))


def edges(p, n):
    q0 = abs(p) - n[:3]
    q = abs(q0 + n[3]) - n[3]
    return np.min([box_distance(np.where(np.arange(3) == k, q0, q)) for k in range(3)], 0)


def cone(p, n):
    q, w = np.array([n[0], -n[1]]) * n[2] / n[1], np.stack([hypot(p[:, 0], p[:, 2]), p[:, 1]], 1)
    a = w - np.outer(np.clip(w @ q / (q @ q), 0, 1), q)
    b = w - q * np.stack([np.clip(w[:, 0] / q[0], 0, 1), np.ones(len(p))], 1)
    k, d = np.sign(q[1]), np.minimum((a * a).sum(1), (b * b).sum(1))
    return sqrt(d) * np.sign(np.maximum(k * (w[:, 0] * q[1] - w[:, 1] * q[0]), k * (w[:, 1] - q[1])))


def hexagon(p, n):
    q, h = abs(p), n[0]
    xy = reflected(q[:, :2], -0.8660254, 0.5)
    away = xy - np.stack([np.clip(xy[:, 0], -0.57735 * h, 0.57735 * h), np.full(len(p), h)], 1)
    return flat(np.stack([norm(away, axis=1) * np.sign(xy[:, 1] - h), q[:, 2] - n[1]], 1))


def octagon(p, n):
    q, r = abs(p), n[0]
    xy = reflected(reflected(q[:, :2], -0.9238795325, 0.3826834323), 0.9238795325, 0.3826834323)
    away = xy - np.stack([np.clip(xy[:, 0], -0.4142135623 * r, 0.4142135623 * r), np.full(len(p), r)], 1)
    return flat(np.stack([norm(away, axis=1) * np.sign(away[:, 1]), q[:, 2] - n[1]], 1))


def triangle(p, n):
    k, h = sqrt(3), n[0] * 0.5 * sqrt(3)
    x, y = abs(p[:, 0] / h) - 1, p[:, 1] / h + 1 / k
    x, y = where(x + k * y > 0, (x - k * y) / 2, x), where(x + k * y > 0, (-k * x - y) / 2, y)
    x = x - np.clip(x, -2, 0)
    return flat(np.stack([hypot(x, y) * np.sign(-y) * h, abs(p[:, 2]) - n[1]], 1))


def rhombus(p, n):
    q, b = abs(p), n[:2]
    m = b - 2 * q[:, ::2]
    f = np.clip((b[0] * m[:, 0] - b[1] * m[:, 1]) / (b @ b), -1, 1)
    away = norm(q[:, ::2] - b * np.stack([1 - f, 1 + f], 1) / 2, axis=1)
    sign = np.sign(q[:, 0] * b[1] + q[:, 2] * b[0] - b[0] * b[1])
    return flat(np.stack([away * sign - n[3], q[:, 1] - n[2]], 1))


def capped_torus(p, n):
    x, y = abs(p[:, 0]), p[:, 1]
    k = where(n[1] * x > n[0] * y, n[0] * x + n[1] * y, hypot(x, y))
    return sqrt((p * p).sum(1) + n[2] ** 2 - 2 * n[2] * k) - n[3]


def solid_angle(p, n):
    q, c = np.stack([hypot(p[:, 0], p[:, 2]), p[:, 1]], 1), n[:2]
    m = norm(q - np.outer(np.clip(q @ c, 0, n[2]), c), axis=1)
    return np.maximum(norm(q, axis=1) - n[2], m * np.sign(c[1] * q[:, 0] - c[0] * q[:, 1]))


def capped_cone(p, n):
    h, r1, r2 = n
    q = np.stack([hypot(p[:, 0], p[:, 2]), p[:, 1]], 1)
    k1, k2 = np.array([r2, h]), np.array([r2 - r1, 2 * h])
    a = np.stack([q[:, 0] - np.minimum(q[:, 0], where(q[:, 1] < 0, r1, r2)), abs(q[:, 1]) - h], 1)
    b = q - k1 + np.outer(np.clip((k1 - q) @ k2 / (k2 @ k2), 0, 1), k2)
    return where((b[:, 0] < 0) & (a[:, 1] < 0), -1, 1) * sqrt(np.minimum((a * a).sum(1), (b * b).sum(1)))


def capsule(p, n):
    a, ba = n[:3], n[3:6] - n[:3]
    return norm(p - a - np.outer(np.clip((p - a) @ ba / (ba @ ba), 0, 1), ba), axis=1) - n[6]


def oblique_cylinder(p, n):
    a, ba = n[:3], n[3:6] - n[:3]
    baba, paba = ba @ ba, (p - a) @ ba
    x = norm((p - a) * baba - np.outer(paba, ba), axis=1) - n[6] * baba
    y = abs(paba - baba / 2) - baba / 2
    x2, y2 = x * x, y * y * baba
    d = where(np.maximum(x, y) < 0, -np.minimum(x2, y2), where(x > 0, x2, 0) + where(y > 0, y2, 0))
    return np.sign(d) * sqrt(abs(d)) / baba


DISTANCES = {
    "torus3D": lambda p, n: hypot(hypot(p[:, 0], p[:, 2]) - n[0], p[:, 1]) - n[1],
    "box3D": lambda p, n: box_distance(abs(p) - n), "rbox3D": lambda p, n: box_distance(abs(p) - n[:3]) - n[3],
    "ellipsoid3D": lambda p, n: norm(p / n, axis=1) * (norm(p / n, axis=1) - 1) / norm(p / (n * n), axis=1),
    "cylinder3D": lambda p, n: flat(np.stack([hypot(p[:, 0], p[:, 2]), abs(p[:, 1])], 1) - n),
    "cappedtorus3D": capped_torus, "solidangle3D": solid_angle, "bbox3D": edges, "cone3D": cone, "hexprism3D": hexagon,
    "capsule3D": capsule, "octahedron3D": lambda p, n: (abs(p).sum(1) - n[0]) / sqrt(3), "triprism3D": triangle,
    "octogonprism3D": octagon, "rhombus3D": rhombus, "cappedcone3D": capped_cone, "ocylinder3D": oblique_cylinder,
}  # fmt: skip
OTHER_SOLIDS = {
    "torus3D": {"r1": 0.3, "r2": 0.1}, "box3D": {"dx": 0.2, "dy": 0.3, "dz": 0.1},
    "cone3D": {"p1": 0.5, "p2": 0.6, "p3": 0.4},
    "ellipsoid3D": {"dx": 0.2, "dy": 0.3, "dz": 0.4}, "rbox3D": {"dx": 0.2, "dy": 0.15, "dz": 0.1, "r": 0.12},
    "cappedtorus3D": {"p1": 0.6, "p2": 0.8}, "bbox3D": {"dx": 0.4, "r": 0.1},
    "capsule3D": {"p1": 0.3, "p5": -0.2, "p7": 0.2},
    "triprism3D": {"p1": 0.4, "p2": 0.3}, "rhombus3D": {"la": 0.3, "lb": 0.2, "h": 0.25}, "octahedron3D": {"h": 0.45},
    "cappedcone3D": {"p1": 0.3, "p2": 0.4, "p3": 0.15}, "ocylinder3D": {"p1": 0.3, "p2": 0.2, "p4": -0.2, "p7": 0.2},
    "octogonprism3D": {"r": 0.4, "h": 0.2}, "hexprism3D": {"d": 0.4}, "solidangle3D": {"p1": 0.4, "p2": 0.3},
}  # fmt: skip


@pytest.mark.slow
def test_solids_are_filled_evenly_by_points_inside(device, rng):
    """Shown points are those that the definition's distance accepts; hidden are as many as 50 tries leave."""
    names = [(name, more) for name in DISTANCES for more in ({}, OTHER_SOLIDS.get(name)) if more is not None]
    cases = [(*(v := values(name, more))[:1], WEIGHT, v[1], np.zeros((3000, 4), "f4")) for name, more in names]
    variations = [variation_table()[name] for name in DISTANCES]
    for (name, _), case, found in zip(names, cases, apply_cases(device, variations, cases, AFFINE), strict=True):
        numbers, shown = np.array(list(case[2].values())), found[:, 4] == 0
        points = rng.uniform(-0.5, 0.5, (400_000, 3))
        inside = points[DISTANCES[name](points, numbers) < 0]
        part = len(inside) / len(points)
        assert abs(shown.mean() - (1 - (1 - part) ** 50)) < 0.05, (name, shown.mean(), part)
        with np.errstate(invalid="ignore", divide="ignore"):
            assert (DISTANCES[name](found[shown, :3] / np.float32(WEIGHT), numbers) < 1e-5).all(), name
        for axis in range(3):
            if shown.sum() > 50:
                assert ks_2samp(found[shown, axis] / WEIGHT, inside[:, axis]).pvalue > 1e-5, (name, axis)


@pytest.mark.slow
def test_vectors_give_the_bits_of_single_points(device, rng):
    if device.simd_width == 1:
        pytest.skip("GPUs carry one point a work item")
    variations = [variation_table()[name] for name in [*FORMULAS, *DISTANCES]]
    cases = [(v, WEIGHT, {}, rng.normal(size=(64, 4))) for v in variations]
    alone, together = (apply_cases(device, variations, cases, AFFINE, lanes) for lanes in (1, device.simd_width))
    for v, one, many in zip(variations, alone, together, strict=True):
        assert np.array_equal(one, many, equal_nan=True), v.name
