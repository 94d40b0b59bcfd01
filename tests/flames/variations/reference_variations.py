"""flam3's variations as formulas in float64: the witness of shaders/flames/variations, from the published table.

FORMULAS[name](x, y, w, affine, p, U) -> (u, v); `p` by parameter name without the variation's; U() draws like x.
"""

import numpy as np
from numpy import (
    abs,
    arccos,
    arctan2,
    cos,
    cosh,
    exp,
    floor,
    fmod,
    hypot,
    log,
    log10,
    pi,
    rint,
    sin,
    sinh,
    sqrt,
    tan,
    trunc,
    where,
)

EPS = 1e-10


def spread(x, y):
    r = hypot(x, y)
    return x * x + y * y, r, arctan2(x, y), arctan2(y, x)


def sgn0(t):
    return where(t >= 0, 1.0, -1.0)


def sgnp(t):
    return where(t > 0, 1.0, -1.0)


def sum4(U):
    return U() + U() + U() + U() - 2


def ngon(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    b = 2 * pi / p["sides"]
    f = th - b * floor(th / b)
    f = where(f > b / 2, f - b, f)
    k = w * (p["corners"] * (1 / (cos(f) + EPS) - 1) + p["circle"]) / (r2 ** (p["power"] / 2) + EPS)
    return k * x, k * y


def julian(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    A = (th + 2 * pi * trunc(abs(p["power"]) * U())) / p["power"]
    k = w * r2 ** (p["dist"] / p["power"] / 2)
    return k * cos(A), k * sin(A)


def juliascope(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    t = trunc(abs(p["power"]) * U())
    A = (2 * pi * t + where(t % 2 == 0, th, -th)) / p["power"]
    k = w * r2 ** (p["dist"] / p["power"] / 2)
    return k * cos(A), k * sin(A)


def fan(x, y, w, a, p, U):
    _, r, phi, _ = spread(x, y)
    D = pi * (a[2] ** 2 + EPS)
    A = phi + where(fmod(phi + a[5], D) > D / 2, -D / 2, D / 2)
    return w * r * cos(A), w * r * sin(A)


def fan2(x, y, w, a, p, U):
    _, r, phi, _ = spread(x, y)
    D = pi * (p["x"] ** 2 + EPS)
    t = phi + p["y"] - D * trunc((phi + p["y"]) / D)
    A = phi + where(t > D / 2, -D / 2, D / 2)
    return w * r * sin(A), w * r * cos(A)


def rings(x, y, w, a, p, U):
    _, r, _, _ = spread(x, y)
    D = a[2] ** 2 + EPS
    k = w * (fmod(r + D, 2 * D) - D + r * (1 - D))
    return k * y / r, k * x / r


def rings2(x, y, w, a, p, U):
    _, r, _, _ = spread(x, y)
    D = p["val"] ** 2 + EPS
    k = w * (r - 2 * D * trunc((r + D) / (2 * D)) + r * (1 - D))
    return k * x / r, k * y / r


def perspective(x, y, w, a, p, U):
    A = p["angle"] * pi / 2
    t = 1 / (p["dist"] - y * sin(A))
    return w * t * p["dist"] * x, w * t * p["dist"] * cos(A) * y


def radial_blur(x, y, w, a, p, U):
    _, r, _, th = spread(x, y)
    g, q = w * sum4(U), p["angle"] * pi / 2
    A, z = th + g * sin(q), g * cos(q) - 1
    return r * cos(A) + z * x, r * sin(A) + z * y


def pie(x, y, w, a, p, U):
    s = trunc(U() * p["slices"] + 0.5)
    A = p["rotation"] + 2 * pi * (s + U() * p["thickness"]) / p["slices"]
    k = w * U()
    return k * cos(A), k * sin(A)


def curl(x, y, w, a, p, U):
    re = 1 + p["c1"] * x + p["c2"] * (x * x - y * y)
    im = p["c1"] * y + 2 * p["c2"] * x * y
    k = w / (re * re + im * im)
    return k * (x * re + y * im), k * (y * re - x * im)


def rectangles(x, y, w, a, p, U):
    def one(t, size):
        return w * t if size == 0 else w * ((2 * floor(t / size) + 1) * size - t)

    return one(x, p["x"]), one(y, p["y"])


def twintrian(x, y, w, a, p, U):
    A = U() * w * hypot(x, y)
    D = log10(sin(A) ** 2) + cos(A)
    D = where(np.isnan(D) | (abs(D) > 1e10), -30, D)
    return w * x * D, w * x * (D - pi * sin(A))


def disc2(x, y, w, a, p, U):
    _, _, phi, _ = spread(x, y)
    T = p["twist"]
    K = 1 + T - 2 * pi if T > 2 * pi else 1 + T + 2 * pi if T < -2 * pi else 1
    t = p["rot"] * pi * (x + y)
    return w * phi / pi * (sin(t) + K * (cos(T) - 1)), w * phi / pi * (cos(t) + K * sin(T))


def super_shape(x, y, w, a, p, U):
    _, r, _, th = spread(x, y)
    A = p["m"] / 4 * th + pi / 4
    k = w * (p["rnd"] * U() + (1 - p["rnd"]) * r - p["holes"])
    k = k * (abs(cos(A)) ** p["n2"] + abs(sin(A)) ** p["n3"]) ** (-1 / p["n1"]) / r
    return k * x, k * y


def bipolar(x, y, w, a, p, U):
    r2 = x * x + y * y
    t = r2 + 1
    Y = 0.5 * arctan2(2 * y, r2 - 1) - p["shift"] * pi / 2
    Y = where(Y > pi / 2, -pi / 2 + fmod(Y + pi / 2, pi), where(Y < -pi / 2, pi / 2 - fmod(pi / 2 - Y, pi), Y))
    return w * 0.25 * (2 / pi) * log((t + 2 * x) / (t - 2 * x)), w * (2 / pi) * Y


def boarders(x, y, w, a, p, U):
    X, Y = rint(x), rint(y)
    u, v = x - X, y - Y
    inner, flat = U() >= 0.75, abs(u) >= abs(v)
    s, t = sgn0(u) / 4, sgn0(v) / 4
    bx, by = where(flat, s, t * u / v), where(flat, s * v / u, t)
    return w * (u / 2 + X + where(inner, 0, bx)), w * (v / 2 + Y + where(inner, 0, by))


def cell(x, y, w, a, p, U):
    S = p["size"]
    X, Y = floor(x / S), floor(y / S)

    def g(n):
        return where(n >= 0, 2 * n, -(2 * n + 1))

    return w * (x - X * S + g(X) * S), -w * (y - Y * S + g(Y) * S)


def cpow(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    c, d, L = p["r"] / p["power"], p["i"] / p["power"], log(r2) / 2
    A = c * th + d * L + (2 * pi / p["power"]) * floor(p["power"] * U())
    k = w * exp(c * L - d * th)
    return k * cos(A), k * sin(A)


def curve(x, y, w, a, p, U):
    lx, ly = max(p["xlength"] ** 2, 1e-20), max(p["ylength"] ** 2, 1e-20)
    return w * (x + p["xamp"] * exp(-y * y / lx)), w * (y + p["yamp"] * exp(-x * x / ly))


def edisc(x, y, w, a, p, U):
    t = x * x + y * y + 1
    M = (sqrt(t + 2 * x) + sqrt(t - 2 * x)) / 2
    f, q, k = log(M + sqrt(M - 1)), -arccos(x / M), w / 11.57034632
    return k * cosh(q) * cos(f), k * sinh(q) * where(y > 0, -sin(f), sin(f))


def elliptic(x, y, w, a, p, U):
    t = x * x + y * y + 1
    M = (sqrt(t + 2 * x) + sqrt(t - 2 * x)) / 2
    f = x / M
    b, s = sqrt(np.maximum(0, 1 - f * f)), sqrt(np.maximum(0, M - 1))
    return w / (pi / 2) * arctan2(f, b), w / (pi / 2) * sgnp(y) * log(M + s)


def escher(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    c, d, L = (1 + cos(p["beta"])) / 2, sin(p["beta"]) / 2, log(r2) / 2
    A, k = c * th + d * L, w * exp(c * L - d * th)
    return k * cos(A), k * sin(A)


def foci(x, y, w, a, p, U):
    E = exp(x) / 2
    N = 0.25 / E
    k = w / (E + N - cos(y))
    return k * (E - N), k * sin(y)


def lazysusan(x, y, w, a, p, U):
    X, Y = x - p["x"], y + p["y"]
    R = hypot(X, Y)
    A = arctan2(Y, X) + p["spin"] + p["twist"] * (w - R)
    k = w * (1 + p["space"] / R)
    return where(R < w, w * R * cos(A), k * X) + p["x"], where(R < w, w * R * sin(A), k * Y) - p["y"]


def loonie(x, y, w, a, p, U):
    r2 = x * x + y * y
    k = where(r2 < w * w, w * sqrt(np.maximum(w * w / r2 - 1, 0)), w)
    return k * x, k * y


def modulus(x, y, w, a, p, U):
    def one(t, m):
        return where(t > m, -m + fmod(t + m, 2 * m), where(t < -m, m - fmod(m - t, 2 * m), t))

    return w * one(x, p["x"]), w * one(y, p["y"])


def oscilloscope(x, y, w, a, p, U):
    t = p["amplitude"] * exp(-abs(x) * p["damping"]) * cos(2 * pi * p["frequency"] * x) + p["separation"]
    return w * x, w * where(abs(y) <= t, -y, y)


def wedge_angle(A, p):
    n = floor((p["count"] * A + pi) / (2 * pi))
    return A * (1 - p["angle"] * p["count"] / (2 * pi)) + n * p["angle"]


def wedge(x, y, w, a, p, U):
    _, r, _, th = spread(x, y)
    A = wedge_angle(th + p["swirl"] * r, p)
    return w * (r + p["hole"]) * cos(A), w * (r + p["hole"]) * sin(A)


def wedge_sph(x, y, w, a, p, U):
    _, r, _, th = spread(x, y)
    r = 1 / (r + EPS)
    A = wedge_angle(th + p["swirl"] * r, p)
    return w * (r + p["hole"]) * cos(A), w * (r + p["hole"]) * sin(A)


def wedge_julia(x, y, w, a, p, U):
    r2, _, _, th = spread(x, y)
    A = wedge_angle((th + 2 * pi * trunc(abs(p["power"]) * U())) / p["power"], p)
    k = w * r2 ** (p["dist"] / p["power"] / 2)
    return k * cos(A), k * sin(A)


def whorl(x, y, w, a, p, U):
    _, r, _, th = spread(x, y)
    A = th + where(r < w, p["inside"], p["outside"]) / (w - r)
    return w * r * cos(A), w * r * sin(A)


def auger(x, y, w, a, p, U):
    s, t = sin(p["freq"] * x), sin(p["freq"] * y)
    dy = y + p["weight"] * (p["scale"] * s / 2 + abs(y) * s)
    dx = x + p["weight"] * (p["scale"] * t / 2 + abs(x) * t)
    return w * (x + p["sym"] * (dx - x)), w * dy


def flux(x, y, w, a, p, U):
    A, B = x + w, x - w
    k = w * (2 + p["spread"]) * sqrt(sqrt(y * y + A * A) / sqrt(y * y + B * B))
    f = (arctan2(y, B) - arctan2(y, A)) / 2
    return k * cos(f), k * sin(f)


def mobius(x, y, w, a, p, U):
    z = x + 1j * y
    a, b, c, d = (p[f"re_{letter}"] + 1j * p[f"im_{letter}"] for letter in "abcd")
    q = w * (a * z + b) / (c * z + d)
    return q.real, q.imag


def of_complex(f):
    def formula(x, y, w, a, p, U):
        q = w * f(x + 1j * y)
        return q.real, q.imag

    return formula


def scaled(f):
    """A formula that gives (k, u, v): w k (u, v)."""

    def formula(x, y, w, a, p, U):
        k, u, v = f(x, y, w, a, p, U)
        return w * k * u, w * k * v

    return formula


def polar_formula(f):
    """A formula in r2, r, phi, th, x, y that gives (k, u, v)."""
    return scaled(lambda x, y, w, a, p, U: f(*spread(x, y), x, y))


FORMULAS = {
    "linear": lambda x, y, w, a, p, U: (w * x, w * y),
    "sinusoidal": lambda x, y, w, a, p, U: (w * sin(x), w * sin(y)),
    "spherical": polar_formula(lambda r2, r, f, t, x, y: (1 / (r2 + EPS), x, y)),
    "swirl": polar_formula(lambda r2, r, f, t, x, y: (1, sin(r2) * x - cos(r2) * y, cos(r2) * x + sin(r2) * y)),
    "horseshoe": polar_formula(lambda r2, r, f, t, x, y: (1 / (r + EPS), (x - y) * (x + y), 2 * x * y)),
    "polar": polar_formula(lambda r2, r, f, t, x, y: (1, f / pi, r - 1)),
    "handkerchief": polar_formula(lambda r2, r, f, t, x, y: (r, sin(f + r), cos(f - r))),
    "heart": polar_formula(lambda r2, r, f, t, x, y: (r, sin(r * f), -cos(r * f))),
    "disc": polar_formula(lambda r2, r, f, t, x, y: (f / pi, sin(pi * r), cos(pi * r))),
    "spiral": polar_formula(lambda r2, r, f, t, x, y: (1 / (r + EPS), cos(f) + sin(r + EPS), sin(f) - cos(r + EPS))),
    "hyperbolic": polar_formula(lambda r2, r, f, t, x, y: (1, sin(f) / (r + EPS), cos(f) * (r + EPS))),
    "diamond": polar_formula(lambda r2, r, f, t, x, y: (1, sin(f) * cos(r), cos(f) * sin(r))),
    "ex": polar_formula(
        lambda r2, r, f, t, x, y: (r, sin(f + r) ** 3 + cos(f - r) ** 3, sin(f + r) ** 3 - cos(f - r) ** 3)
    ),
    "julia": lambda x, y, w, a, p, U: _julia(x, y, w, U),
    "bent": lambda x, y, w, a, p, U: (w * where(x < 0, 2 * x, x), w * where(y < 0, y / 2, y)),
    "waves": lambda x, y, w, a, p, U: (
        w * (x + a[1] * sin(y / (a[2] ** 2 + EPS))), w * (y + a[4] * sin(x / (a[5] ** 2 + EPS)))
    ),
    "fisheye": polar_formula(lambda r2, r, f, t, x, y: (2 / (r + 1), y, x)),
    "popcorn": lambda x, y, w, a, p, U: (w * (x + a[2] * sin(tan(3 * y))), w * (y + a[5] * sin(tan(3 * x)))),
    "exponential": lambda x, y, w, a, p, U: (w * exp(x - 1) * cos(pi * y), w * exp(x - 1) * sin(pi * y)),
    "power": polar_formula(lambda r2, r, f, t, x, y: (r ** sin(f), cos(f), sin(f))),
    "cosine": lambda x, y, w, a, p, U: (w * cos(pi * x) * cosh(y), -w * sin(pi * x) * sinh(y)),
    "rings": rings,
    "fan": fan,
    "blob": lambda x, y, w, a, p, U: _blob(x, y, w, p),
    "pdj": lambda x, y, w, a, p, U: (
        w * (sin(p["a"] * y) - cos(p["b"] * x)), w * (sin(p["c"] * x) - cos(p["d"] * y))
    ),
    "fan2": fan2,
    "rings2": rings2,
    "eyefish": polar_formula(lambda r2, r, f, t, x, y: (2 / (r + 1), x, y)),
    "bubble": polar_formula(lambda r2, r, f, t, x, y: (1 / (r2 / 4 + 1), x, y)),
    "cylinder": lambda x, y, w, a, p, U: (w * sin(x), w * y),
    "perspective": perspective,
    "noise": lambda x, y, w, a, p, U: _turned(2 * pi * U(), w * U(), x, y),
    "julian": julian,
    "juliascope": juliascope,
    "blur": lambda x, y, w, a, p, U: _turned(2 * pi * U(), w * U(), 1, 1),
    "gaussian_blur": lambda x, y, w, a, p, U: _turned(2 * pi * U(), w * sum4(U), 1, 1),
    "radial_blur": radial_blur,
    "pie": pie,
    "ngon": ngon,
    "curl": curl,
    "rectangles": rectangles,
    "arch": lambda x, y, w, a, p, U: _arch(U() * w * pi, w),
    "tangent": lambda x, y, w, a, p, U: (w * sin(x) / cos(y), w * tan(y)),
    "square": lambda x, y, w, a, p, U: (w * (U() - 0.5), w * (U() - 0.5)),
    "rays": lambda x, y, w, a, p, U: _turned_by(w * tan(w * U() * pi) * w / (x * x + y * y + EPS), cos(x), sin(y)),
    "blade": lambda x, y, w, a, p, U: _blade(U() * w * hypot(x, y), w * x),
    "secant2": lambda x, y, w, a, p, U: _secant2(x, w, cos(w * hypot(x, y))),
    "twintrian": twintrian,
    "cross": scaled(lambda x, y, w, a, p, U: (sqrt(1 / ((x * x - y * y) ** 2 + EPS)), x, y)),
    "disc2": disc2,
    "super_shape": super_shape,
    "flower": lambda x, y, w, a, p, U: _turned_by(
        w * (U() - p["holes"]) * cos(p["petals"] * arctan2(y, x)) / hypot(x, y), x, y
    ),
    "conic": lambda x, y, w, a, p, U: _turned_by(
        w * (U() - p["holes"]) * p["eccentricity"] / (1 + p["eccentricity"] * x / hypot(x, y)) / hypot(x, y), x, y
    ),
    "parabola": lambda x, y, w, a, p, U: (
        w * p["height"] * sin(hypot(x, y)) ** 2 * U(), w * p["width"] * cos(hypot(x, y)) * U()
    ),
    "bent2": lambda x, y, w, a, p, U: (w * where(x < 0, p["x"] * x, x), w * where(y < 0, p["y"] * y, y)),
    "bipolar": bipolar,
    "boarders": boarders,
    "butterfly": lambda x, y, w, a, p, U: _turned_by(
        w * 4 / sqrt(3 * pi) * sqrt(abs(x * y) / (EPS + x * x + 4 * y * y)), x, 2 * y
    ),
    "cell": cell,
    "cpow": cpow,
    "curve": curve,
    "edisc": edisc,
    "elliptic": elliptic,
    "escher": escher,
    "foci": foci,
    "lazysusan": lazysusan,
    "loonie": loonie,
    "pre_blur": lambda x, y, w, a, p, U: _turned(2 * pi * U(), w * sum4(U), 1, 1),
    "modulus": modulus,
    "oscilloscope": oscilloscope,
    "polar2": polar_formula(lambda r2, r, f, t, x, y: (1 / pi, f, log(r2) / 2)),
    "popcorn2": lambda x, y, w, a, p, U: (
        w * (x + p["x"] * sin(tan(p["c"] * y))), w * (y + p["y"] * sin(tan(p["c"] * x)))
    ),
    "scry": lambda x, y, w, a, p, U: _turned_by(1 / (hypot(x, y) * (x * x + y * y + 1 / (w + EPS))), x, y),
    "separation": lambda x, y, w, a, p, U: (
        w * (sgnp(x) * sqrt(x * x + p["x"] ** 2) - x * p["xinside"]),
        w * (sgnp(y) * sqrt(y * y + p["y"] ** 2) - y * p["yinside"]),
    ),
    "split": lambda x, y, w, a, p, U: (w * x * sgn0(cos(y * p["ysize"] * pi)), w * y * sgn0(cos(x * p["xsize"] * pi))),
    "splits": lambda x, y, w, a, p, U: (w * (x + sgn0(x) * p["x"]), w * (y + sgn0(y) * p["y"])),
    "stripes": lambda x, y, w, a, p, U: _stripes(x, y, w, p, floor(x + 0.5)),
    "wedge": wedge,
    "wedge_julia": wedge_julia,
    "wedge_sph": wedge_sph,
    "whorl": whorl,
    "waves2": lambda x, y, w, a, p, U: (
        w * (x + p["scalex"] * sin(y * p["freqx"])), w * (y + p["scaley"] * sin(x * p["freqy"]))
    ),
    "exp": of_complex(np.exp),
    "log": of_complex(np.log),
    "sin": of_complex(np.sin),
    "cos": of_complex(np.cos),
    "tan": of_complex(np.tan),
    "sec": lambda x, y, w, a, p, U: _over(2 * w, cos(2 * x) + cosh(2 * y), cos(x) * cosh(y), sin(x) * sinh(y)),
    "csc": lambda x, y, w, a, p, U: _over(2 * w, cosh(2 * y) - cos(2 * x), sin(x) * cosh(y), -cos(x) * sinh(y)),
    "cot": lambda x, y, w, a, p, U: _over(w, cosh(2 * y) - cos(2 * x), sin(2 * x), -sinh(2 * y)),
    "sinh": of_complex(np.sinh),
    "cosh": of_complex(np.cosh),
    "tanh": of_complex(np.tanh),
    "sech": lambda x, y, w, a, p, U: _over(2 * w, cos(2 * y) + cosh(2 * x), cos(y) * cosh(x), -sin(y) * sinh(x)),
    "csch": lambda x, y, w, a, p, U: _over(2 * w, cosh(2 * x) - cos(2 * y), sinh(x) * cos(y), -cosh(x) * sin(y)),
    "coth": lambda x, y, w, a, p, U: _over(w, cosh(2 * x) - cos(2 * y), sinh(2 * x), sin(2 * y)),
    "auger": auger,
    "flux": flux,
    "mobius": mobius,
}  # fmt: skip


def _over(w, d, u, v):
    return w / d * u, w / d * v


def _turned(A, k, x, y):
    return k * x * cos(A), k * y * sin(A)


def _turned_by(k, u, v):
    return k * u, k * v


def _arch(A, w):
    return w * sin(A), w * sin(A) ** 2 / cos(A)


def _blade(A, k):
    return k * (cos(A) + sin(A)), k * (cos(A) - sin(A))


def _secant2(x, w, c):
    return w * x, w * (1 / c + where(c < 0, 1, -1))


def _stripes(x, y, w, p, R):
    return w * ((x - R) * (1 - p["space"]) + R), w * (y + (x - R) ** 2 * p["warp"])


def _blob(x, y, w, p):
    _, r, phi, _ = spread(x, y)
    k = w * r * (p["low"] + (p["high"] - p["low"]) * (0.5 + 0.5 * sin(p["waves"] * phi)))
    return k * sin(phi), k * cos(phi)


def _julia(x, y, w, U):
    _, r, phi, _ = spread(x, y)
    A = phi / 2 + where(U() < 0.5, 0, pi)
    return w * sqrt(r) * cos(A), w * sqrt(r) * sin(A)
