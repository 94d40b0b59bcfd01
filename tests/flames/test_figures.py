"""Variations without numbers of their origin: figures, orbits, formulas of files, noise, and Fractorium's by NumPy."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.flames import kernel_arguments, kernel_source
from renderer.flames.genome import Flame, Xform
from renderer.flames.variations import tables
from renderer.flames.variations.catalog import variation_table
from renderer.flames.variations.formulas import FUNCTIONS, program
from renderer.flames.variations.java_random import JavaRandom
from renderer.flames.variations.yeganeh import lines_or_circles
from tests.flames.test_formulas import FRACTORIUM
from tests.flames.variations.variation_kernel import apply_cases

AFFINE = np.zeros(6)
COUNT = 64


def values_of(name, **said):
    table = variation_table()[name].parameters
    return {word.removeprefix(f"{name}_"): value for word, value in table.items()} | said


def test_presets_of_yeganehs_figures_keep_their_numbers():
    """Each preset by one number, for parameters of 1, 2 and 3, which occur in every term of the formulas."""
    letters = {letter: 1 + k % 3 for k, letter in enumerate("abcdefghijklmnop")}
    tables_ = [lines_or_circles(letters | {"presetId": k, "number_lines_circles": 7}, {}) for k in range(20)]
    numbers = [table[2:] @ np.arange(1, len(table) - 1) for table in tables_]
    assert numbers == pytest.approx([
        -35.0, -17.093328, -27.030781, -49.360036, -13.639964, -157.835361, 13.981026, -59.801303, 153.039201, 217.49,
        78.737484, 29.166667, 97.007288, 124.331294, 62.528854, 73.952406, 50.293127, 23.741772, 21.666113, 73.288253,
    ], abs=1e-5)  # fmt: skip
    assert [table[0] for table in tables_] == [0.0] * 10 + [1.0] * 10


def test_tables_follow_the_last_record_one_after_another():
    """Three xforms, two of them with the same table; a camera of six numbers."""
    affine = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
    names = "rhodonea", "scrambly", "rhodonea"
    flame = Flame(tuple(Xform(affine, variations={name: 1.0}) for name in names))
    spec = kernel_source.specialize((flame,), False)
    packed, stride = kernel_arguments.pack_parameters((flame,), (np.zeros(6),), spec)
    built = [tables.build_table(name, values_of(name), {}) for name in names[:2]]
    assert np.array_equal(packed[stride:], np.concatenate(built).astype("f4"))
    starts = np.cumsum([stride, len(built[0])])
    records = np.arange(3) * spec.record_floats + stride - 3 * spec.record_floats
    for start, record in zip((*starts, starts[0]), records, strict=True):
        assert float(start - record) in packed[record : record + spec.record_floats]


@pytest.mark.parametrize("name", ["threeply", "hopalong", "gingerbread_man", "gumowski_mira", "macmillan"])
def test_places_of_an_orbit_follow_its_map(name):
    """Each place is the map of the one before, by NumPy over the whole table."""
    v = values_of(name)
    table = tables.build_table(name, v, {})
    places = table[1:].reshape(-1, 2).astype("f8")
    assert len(places) == table[0] > 10000
    (x, y), (u, w) = places[:-1].T, places[1:].T
    if name == "threeply":
        inner = np.sin(x) * math.cos(v["b"]) + v["c"] - x * math.sin(v["a"] + v["b"] + v["c"])
        wanted = y - np.sign(x) * np.abs(inner), v["a"] - x
    elif name == "hopalong":
        wanted = y - np.sign(x) * np.sqrt(np.abs(v["b"] * x - v["c"])), v["a"] - x
    elif name == "gingerbread_man":
        wanted = 1 - y + np.abs(x), x
    elif name == "gumowski_mira":
        f = lambda t: -0.08 * t + 2.16 * t * t / (1 + t * t)  # noqa: E731
        following = y + v["a"] * (1 - v["b"] * y * y) * y + f(x)
        wanted = following, f(following) - x
    else:
        g = lambda a, b: -a + 2 * v["a"] * b / (1 + b * b) + v["b"] * b  # noqa: E731
        wanted = g(x, y), g(y, g(x, y))
    scale = 1e-4 * (1 + np.abs(places[1:]).max(1))
    agrees = np.all([np.abs(a - b) < scale for a, b in zip((u, w), wanted, strict=True)], axis=0)
    assert agrees.mean() > 0.99  # threeply's sine of large numbers loses single precision


def evaluated(code, x, y, z):
    """A program of formulas.py by NumPy."""
    binary = {4: np.add, 5: np.subtract, 6: np.multiply, 7: np.divide, 8: np.power, 9: np.arctan2, 10: np.fmod}
    unary = {
        11: np.negative, 12: np.sin, 13: np.cos, 14: np.tan, 15: np.sqrt, 16: np.square, 17: np.exp, 18: np.log,
        19: np.abs, 20: np.floor, 21: np.tanh, 22: np.sinh, 23: np.cosh, 24: np.arcsin, 25: np.arccos, 26: np.arctan,
        27: np.sign,
    }  # fmt: skip
    stack, k = [], 1
    while k <= code[0]:
        op = int(code[k])
        if op == 0:
            k += 1
            stack.append(np.full_like(x, code[k]))
        elif op < 4:
            stack.append((x, y, z)[op - 1])
        elif op in binary:
            b, a = stack.pop(), stack.pop()
            stack.append(binary[op](a, b))
        else:
            stack.append(unary[op](stack.pop()))
        k += 1
    assert len(stack) == 1
    return stack[0]


FORMULA = "pow(x, 3)*0.5 - sin(2*y)/(1.5 + cos(z)) + fabs(-x)*param_a + sqrt(sqr(y)+1) - atan2(x, z) + tanh(y)"


def test_formulas_mean_what_they_say(rng):
    x, y, z = rng.normal(size=(3, 50))
    code = program(FORMULA, ("x", "y", "z"), {"param_a": 0.25})
    wanted = x**3 * 0.5 - np.sin(2 * y) / (1.5 + np.cos(z)) + abs(x) * 0.25 + np.sqrt(y * y + 1)
    assert np.allclose(evaluated(code, x, y, z), wanted - np.arctan2(x, z) + np.tanh(y))


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "x.real", "(lambda: x)()", "1e999", "x if y else z", "q", "pow(x)", "x**y", "[x]"]
    + ["sin(" * 40 + "x" + ")" * 40 + "+(" * 200, "+".join(["x*x"] * 500), "(" * 5000],
)
def test_what_is_no_formula_is_one_sentence(text):
    with pytest.raises(InputError, match="the formula .* is not one of numbers") as caught:
        program(text, ("x", "y", "z"), {})
    assert "\n" not in str(caught.value)


def test_plots_lie_on_their_formulas(device, monkeypatch):
    """The surface of an implicit formula, a curve over x, a rose: every drawn place satisfies its equation."""
    texts = {
        "yplot2d_wf": {"formula": "sin(2*x)+param_a"}, "polarplot2d_wf": {"formula": "1+0.5*cos(3*t)"},
        "isosfplot3d_wf": {"formula": b"sqr(x)+sqr(y)+sqr(z)-0.5".hex()},
    }  # fmt: skip
    original = tables.build_table
    monkeypatch.setattr(tables, "build_table", lambda name, values, _: original(name, values, texts[name]))
    variations = [variation_table()[name] for name in texts]
    cases = [(v, 1.0, {"param_a": 0.25}, np.zeros((COUNT, 4))) for v in variations]
    curve, rose, ball = apply_cases(device, variations, cases, AFFINE)
    assert np.allclose(curve[:, 1], np.sin(2 * curve[:, 0]) + 0.25, atol=1e-5) and np.ptp(curve[:, 0]) > 1.5
    r, t = np.hypot(rose[:, 0], rose[:, 1]), np.arctan2(rose[:, 1], rose[:, 0])
    assert np.allclose(r, 1 + 0.5 * np.cos(3 * t), atol=1e-5)
    shown = ball[:, 4] == 0
    assert shown.sum() > 40 and (np.abs((ball[shown, :3] ** 2).sum(1) - 0.5) <= 0.0501).all()


@pytest.mark.parametrize("mode", [1.0, 2.0, 3.0, 4.0])
def test_surfaces_over_angles_have_the_colors_of_their_parameters(device, monkeypatch, mode):
    """As a cylinder, the surface shows both parameters: the angle t, and u as its height."""
    original = tables.build_table
    monkeypatch.setattr(tables, "build_table", lambda name, values, _: original(name, values, {"formula": "1+0.1*u"}))
    v = variation_table()["polarplot3d_wf"]
    p = values_of("polarplot3d_wf", cylindrical=1.0, color_mode=mode, rmin=0.5, rmax=1.5)
    (found,) = apply_cases(device, [v], [(v, 1.0, p, np.zeros((COUNT, 4)))], AFFINE)
    x, y, height, color = found.T[:4].astype("f8")
    r, s, q = np.hypot(x, y), (np.arctan2(y, x) + np.pi) / (2 * np.pi), (height + 1.570796) / 3.141592
    assert np.allclose(r, 1 + 0.1 * height, atol=1e-5) and np.ptp(s) > 0.8 and np.ptp(q) > 0.8
    assert np.allclose(color, {1: s, 2: q, 3: s * q, 4: r - 0.5}[mode], atol=1e-5)


FORMULAS_OF_CODES = {  # on -1 to 1
    "x+0.25": lambda x: x + 0.25, "x-0.25": lambda x: x - 0.25, "x*0.3": lambda x: 0.3 * x,
    "0.3/(x+2)": lambda x: 0.3 / (x + 2), "pow(x,3)": lambda x: x**3, "pow(x,2)": np.square,
    "pow(x+1,0.4)": lambda x: (x + 1) ** 0.4, "pow(x,0.5)": np.sqrt, "atan2(x,0.4)": lambda x: np.arctan2(x, 0.4),
    "fmod(5*x,2)": lambda x: np.fmod(5 * x, 2), "(3*x)%0.7": lambda x: np.fmod(3 * x, 0.7), "-x": np.negative,
    "sin(3*x)": lambda x: np.sin(3 * x), "cos(3*x)": lambda x: np.cos(3 * x), "tan(x)": np.tan, "sqrt(x+1)": lambda x:
    np.sqrt(x + 1), "sqr(x)": np.square, "exp(x)": np.exp, "log(x+1.5)": lambda x: np.log(x + 1.5), "fabs(x)": np.abs,
    "abs(x)": np.abs, "floor(3*x)": lambda x: np.floor(3 * x), "tanh(x)": np.tanh, "sinh(x)": np.sinh,
    "cosh(x)": np.cosh, "asin(x)": np.arcsin, "acos(x)": np.arccos, "atan(2*x)": lambda x: np.arctan(2 * x),
    "signum(x)": np.sign,
}  # fmt: skip


def test_every_function_of_formulas_is_numpys_on_devices(device, monkeypatch):
    """One plot over x for each operator and function; a parameter of the variation names its formula."""
    assert {word for text in FORMULAS_OF_CODES for word in re.findall(r"[a-z]\w+", text)} == {*FUNCTIONS}
    texts, original = list(FORMULAS_OF_CODES), tables.build_table

    def build(name, values, _):
        return original(name, values, {"formula": texts[int(values["param_f"])]})

    monkeypatch.setattr(tables, "build_table", build)
    v = variation_table()["yplot2d_wf"]
    cases = [(v, 1.0, {"param_f": float(number)}, np.zeros((COUNT, 4))) for number in range(len(texts))]
    plots = apply_cases(device, [v], cases, AFFINE)
    for (text, formula), plot in zip(FORMULAS_OF_CODES.items(), plots, strict=True):
        x = plot[:, 0].astype("f8")
        with np.errstate(invalid="ignore"):
            wanted = formula(x)
        near = np.isclose(plot[:, 1], wanted, rtol=1e-5, atol=2e-6, equal_nan=True)
        assert near.mean() > 0.95 and np.ptp(x) > 1.5, (text, x[~near], plot[~near, 1], wanted[~near])


@pytest.mark.parametrize("type_", [0.0, 1.0])
def test_szubietas_cells_have_the_colors_of_their_integers(device, type_):
    """The color of the cell (i, j), where the point lies, by Python's integers."""
    v, side = variation_table()["szubieta"], 32
    p = values_of("szubieta", width=float(side), height=float(side), type=type_, scale=0.5)
    (found,) = apply_cases(device, [v], [(v, 10.0, p, np.zeros((512, 4)))], AFFINE)
    i, j = (np.rint(found[:, k] + side / 2).astype(int) for k in range(2))  # a polygon of radius 0.5 around each cell
    assert i.min() == 0 and i.max() == side - 1 and len(set(zip(i, j, strict=True))) > 300
    if type_ == 0:
        number, turns = i * i - 2 * (i | j) + j * j, 255
    else:
        number, turns = i & (2 * j - 2 * (i ^ j)) & i, 256
    assert np.allclose(found[:, 3], np.abs(np.fmod(number, turns)) / 255, atol=1e-5)


def test_random_numbers_of_java():
    """The first numbers of java.util.Random(42), which its users know."""
    random = JavaRandom(42)
    assert random.next_double() == 0.7275636800328681
    assert JavaRandom(42)._next(32) == -1170105035


def test_text_is_the_pixels_of_its_letters():
    """An I is a bar, an O has a hole; letters written in hexadecimal are the same."""
    values = values_of("text_wf", font_size=64.0)
    bar, ring = (tables.build_table("text_wf", values, {"text": text})[1:].reshape(-1, 2) for text in "IO")
    assert np.ptp(bar[:, 0]) < 0.4 * np.ptp(bar[:, 1]) and len(ring) > 400
    assert (np.hypot(*ring.T) > 0.05).all()
    assert np.array_equal(tables.build_table("text_wf", values, {"text": "4F"})[1:].reshape(-1, 2), ring)


def test_aggregate_is_connected():
    """Every particle of diffusion-limited aggregation touches another."""
    values = values_of("dla_wf", buffer_size=100.0, max_iter=150.0, jitter=0.0, scale=100.0)
    places = {tuple(place) for place in np.rint(tables.build_table("dla_wf", values, {})[1:].reshape(-1, 2)).tolist()}
    assert len(places) > 100
    assert all(places & {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)} for x, y in places)


def test_snow_crystal_is_symmetric():
    """Without noise the crystal has the lattice's six turns."""
    values = values_of("snowflake_wf", buffer_size=24.0, max_iter=60.0, rnd_bg_noise=0.0, jitter=0.0)
    rows = tables.build_table("snowflake_wf", values, {})[1:].reshape(-1, 3).astype("f8")
    places = {tuple(row) for row in np.round(rows[:, :2] * 1000).astype(int).tolist()}
    c, s = 0.5, math.sqrt(0.75)
    turned = np.round(1000 * np.stack([c * rows[:, 0] - s * rows[:, 1], s * rows[:, 0] + c * rows[:, 1]], 1))
    near = [
        any((x + i, y + j) in places for i in (-1, 0, 1) for j in (-1, 0, 1)) for x, y in turned.astype(int).tolist()
    ]
    assert len(rows) > 30 and all(near)


def test_sudoku_boards_have_every_color_once_a_row():
    table = tables.build_table("nsudoku", values_of("nsudoku", Level=1.0), {})
    rows = table[1:].reshape(-1, 9)
    board = {(round(9 * x + 4.5), round(9 * y + 4.5)): round(9 * color) for color, x, y in rows[:, 1:4].tolist()}
    columns = sorted({x for x, _ in board})
    assert len(board) == 81 and all({board[x, y] for y in {y for _, y in board}} == set(range(1, 10)) for x in columns)


def test_noise_and_plane(device):
    """Perlin colors vary around their center; the plane is flat at its position."""
    variations = [variation_table()[name] for name in ("dc_perlin", "plane_wf")]
    cases = [(v, 1.0, {"scale": 30.0} if v.name == "dc_perlin" else {}, np.zeros((512, 4))) for v in variations]
    noise, plane = apply_cases(device, variations, cases, AFFINE)
    assert abs(noise[:, 3].mean() - 0.25) < 0.03 and 0.03 < noise[:, 3].std() < 0.2
    assert (plane[:, 1] == 3).all() and 4 < np.abs(plane[:, [0, 2]]).max() <= 5


# ---- Fractorium's, by NumPy


def blob2(x, y, p):
    r, a = np.hypot(x, y), np.arctan2(y, x)
    d = (np.sin(a * p["n"]) + p["symmetry"]) / (1 + p["compensation"] * abs(p["symmetry"]))
    k = np.abs(d) ** p["prescale"] * p["postscale"] * p["mode"]
    far = p["radius"] + (r - p["radius"]) * k
    return [np.where(r < p["radius"], a0, far * a1) for a0, a1 in ((x, np.cos(a)), (y, np.sin(a)))]


def gnarly(x, y, p):
    size = p["cellsize"]
    cx, cy = ((np.floor(t / size) + 0.5) * size for t in (x, y))
    z = (x - cx) + 1j * (y - cy)
    r = np.abs(z) ** 2 / (size / 2) ** 2
    z = np.where(r <= 1, z * np.exp(-1j * p["twist"] * np.log(r)), z)
    return [cx + z.real, cy + z.imag]


def cropn(x, y, p):
    wedge = 2 * np.pi / max(2, abs(p["power"]))
    m = np.mod(np.arctan2(y, x) + np.pi, wedge)
    inside = np.hypot(x, y) <= p["radius"] / np.cos(np.minimum(m, wedge - m))
    return [np.where(inside, t, 0) for t in (x, y)]


def smartshape(x, y, p):
    n, wedge = p["power"], 2 * np.pi / p["power"]
    a = (np.arctan2(y, x) + np.pi) / wedge
    k = (1 / np.cos((a - np.rint(a)) * wedge)) ** p["distortion"]
    assert n == 4
    return [x * k, y * k]


def bcircle(x, y, p):
    inside = np.hypot(x, y) * p["scale"] <= 1
    return [np.where(inside, t * p["scale"], 0) for t in (x, y)]


TWINS = {
    "blob2": (blob2, dict(mode=0.7, n=5.0, radius=0.4, prescale=1.3, symmetry=0.3, compensation=0.5)),
    "gnarly": (gnarly, dict(cellsize=0.8, twist=0.6)), "cropn": (cropn, dict(power=5.0, radius=0.9)),
    "smartshape": (smartshape, dict(power=4.0, distortion=0.7)), "bcircle": (bcircle, dict(scale=0.8)),
}  # fmt: skip


# Compared with Fractorium by hand: some cells of their float hashes are others than those of doubles (the first four),
# Fractorium reads one parameter for another (truchet), or its functions keep a state between calls (the last two).
WITHOUT_WITNESS = {"bwraps_rand", "crackle2", "dust", "squares", "truchet", "hexaplay3D", "hexnix3D"}
NUMBERS = Path(__file__).with_name("numbers") / "fractorium_numbers.npz"


def test_fractoriums_variations_equal_their_formulas(device, rng):
    points = np.concatenate([rng.uniform(-1.6, 1.6, (COUNT, 2)), np.zeros((COUNT, 2))], 1).astype("f4")
    drawing = ["wavesn", "sphereblur", "depth_blur2", "mirror_x", "juliaNab", "blur_heart", "falloff"]
    names = [*TWINS, *drawing]
    measured = {case[0] for case in json.loads(str(np.load(NUMBERS)["index"]))} | set(FRACTORIUM) | WITHOUT_WITNESS
    fractoriums = {v.name for v in variation_table().values() if v.origin == "Fractorium"}
    assert fractoriums == {*names} | measured | {"Truchet_glyph"}  # test_patterns.py
    said = {name: TWINS[name][1] for name in TWINS} | {
        "juliaNab": dict(b=0.0), "sphereblur": {}, "wavesn": dict(power=2.0), "depth_blur2": dict(radius=0.0)
    }  # fmt: skip
    variations = [variation_table()[name] for name in names]
    cases = [(v, 0.7, said.get(v.name, {}), points) for v in variations]
    results = dict(zip(names, apply_cases(device, variations, cases, AFFINE), strict=True))
    x, y = points[:, 0].astype("f8"), points[:, 1].astype("f8")
    for name, (formula, parameters) in TWINS.items():
        wanted = 0.7 * np.stack(formula(x, y, values_of(name, **parameters)), 1)
        assert (np.abs(results[name][:, :2] - wanted) < 2e-4).mean() > 0.97, name
    found = results["mirror_x"]
    assert np.allclose(np.abs(found[:, 0]), np.abs(x)) and {*np.sign(found[:, 0])} == {-1.0, 1.0}
    assert (np.linalg.norm(results["sphereblur"][:, :3], axis=1) <= 0.7001).all()
    assert np.allclose(np.hypot(*results["juliaNab"][:, :2].T), 0.7 * np.hypot(x, y), rtol=1e-4)
    z = results["falloff"][:, :3]
    assert np.abs(z[:, :2] / 0.7 - points[:, :2]).max() < 0.04 and (z[:, 2] == 0).all()
    assert (np.abs(results["blur_heart"][:, 0]) <= 0.7).all()
    blurred = np.hypot(*(results["depth_blur2"][:, :2] / 0.7 - points[:, :2]).T)
    assert (blurred <= 0.1 * np.hypot(x, y) + 1e-5).all() and blurred.max() > 0.02
    waves = results["wavesn"][:, :2]
    root = np.sqrt(np.hypot(x, y)) * 0.7
    assert (np.hypot(*waves.T) <= 0.7 * (root + 0.5 * math.sqrt(2)) + 1e-5).all()
