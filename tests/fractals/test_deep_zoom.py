"""Perturbation equals exact integer arithmetic, at any depth and for every formula; mistakes are sentences."""

import time
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import IncompleteError, InputError, UnavailableError, UserError
from renderer.formats.images import linear_to_srgb
from renderer.fractals.deep_zoom import KernelPass, compute_reference, to_binary
from renderer.fractals.reference import reference_orbit
from renderer.fractals.settings import Settings
from renderer.gpu import DeviceContext
from renderer.images.metrics import psnr
from renderer.pictures import load
from renderer.pictures.fractal import Picture
from renderer.scene.animation import Key, Track, value_at
from renderer.scene.cameras import DeepView
from renderer.scene.schema import from_table, set_all_from_texts, set_from_text, to_table
from tests.fractals import exact

PLACES = exact.places()
# Found by random_place(), in the seahorse valley.
SEAHORSE = ("-0.7432702229233837663394808025507390218020093422939085445",
            "0.1313571361114832040437703506765760683636616951712903396")  # fmt: skip


def raw(**keys) -> Settings:
    return Settings(palette="raw", **keys)


def points(rng, count: int) -> list[tuple[int, int]]:
    return [tuple(map(int, row)) for row in rng.integers(-exact.GRID // 2, exact.GRID // 2, (count, 2))]


def check_place(device, place, count: int) -> None:
    """99.5 % of the counts are exact, and all where the set is farther than 1e-13 heights; distances are right too."""
    pixels = [(round(x * exact.GRID), round(y * exact.GRID)) for x, y in zip(place["dx"], place["dy"], strict=True)]
    view = DeepView((place["center_re"], place["center_im"]), place["height"])
    drawn = exact.drawn_counts(device, raw(max_iterations=place["max_iter"], view=view), pixels[:count])
    same = drawn[:, 0] == place["n"][:count]
    distance = np.array([value or 0.0 for value in place["de"][:count]])
    assert same.sum() >= len(same) - 1 and same[distance > 1e-13].all()
    outside = (drawn[:, 0] > 0) & (distance > 1e-13)
    assert np.allclose(drawn[outside, 1], distance[outside], rtol=1e-5), "distances in heights"


@pytest.mark.skipif(not PLACES, reason="the exact counts are not here; RAYFOLD_DEEP_PLACES names their file")
def test_counts_of_two_shallow_places(device):
    for place in PLACES[:2]:
        check_place(device, place, 12)


@pytest.mark.slow
@pytest.mark.skipif(not PLACES, reason="the exact counts are not here; RAYFOLD_DEEP_PLACES names their file")
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place["id"])
def test_counts_of_known_places(device, place):
    check_place(device, place, len(place["n"]))


def test_a_deep_view_equals_integers(device, rng):
    """At 1e-28 with skipped iterations, and at 1e-160 with floatexp, about the same center."""
    settings = raw(max_iterations=2500, view=DeepView(SEAHORSE, "1e-28"))
    same, counts, _ = exact.compare(device, settings, points(rng, 6))
    assert same.all() and len(set(counts)) > 3
    deeper = replace(settings, max_iterations=400, view=DeepView(("-2", "1e-170"), "1e-160"))
    same, counts, _ = exact.compare(device, deeper, points(rng, 6))
    assert same.all() and len(set(counts)) > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind,power,start", [
    ("mandelbrot", 2, (-0.7436, 0.1318)), ("mandelbrot", 3, (0.52, 0.09)), ("mandelbrot", 5, (0.6, 0.3)),
    ("tricorn", 2, (-0.3, 0.9)), ("tricorn", 3, (-0.3, 0.9)), ("julia", 2, (0.3, 0.2)),
    ("burning_ship", 2, (-1.755, -0.03)), ("burning_ship", 2, (-1.62, -0.01)),
])  # fmt: skip
@pytest.mark.parametrize("depth", [12, 35, 150])
def test_every_formula_equals_integers(device, rng, kind, power, start, depth):
    """At random places, every point that is farther than 1e-13 heights from the set has its exact count.

    The ship's places are dust: up to a third of their points are nearer, where 53 bits of c do not say the count.
    """
    c = (-0.8, 0.156)
    x, y, height = exact.random_place(rng, kind, power, start, depth, c if kind == "julia" else None)
    settings = raw(kind=kind, c=c, power=power, max_iterations=2000, view=DeepView((x, y), height))
    same, counts, distances = exact.compare(device, settings, points(rng, 32))
    assert same[distances > 1e-13].all(), (kind, power, depth, x, y, counts[~same], distances[~same])
    assert (same | (distances < 1e-13)).all() and same.mean() > (0.6 if kind == "burning_ship" else 0.95)


def test_steps_change_no_count(device, rng):
    settings = raw(max_iterations=2500, view=DeepView(SEAHORSE, "1e-28"))
    where = points(rng, 40)
    skipping = exact.drawn_counts(device, settings, where)
    assert compute_reference(settings, settings.c, 1.0).steps.levels > 3
    plain = exact.drawn_counts(device, settings, where, with_steps=False)
    assert (skipping[:, 0] == plain[:, 0]).all() and np.allclose(skipping[:, 1], plain[:, 1], rtol=1e-4)


def test_kernel_and_glsl_draw_the_same(gl):
    picture = Picture(DeviceContext(gl=gl))
    for kind in ("mandelbrot", "julia"):
        settings = Settings(kind=kind, max_iterations=60, view=DeepView(height=3), precision="double")
        if picture.gpu.gl.version < 400:
            settings = replace(settings, precision="single")
        glsl = picture.draw(settings, (48, 32), 0.0).read()
        kernel = picture.draw(replace(settings, precision="perturbation"), (48, 32), 0.0).read()
        assert np.mean(np.abs(glsl - kernel).max(axis=2) < 2e-3) > 0.98, kind


def test_a_tile_has_the_picture_s_bits(device, gpu):
    picture = Picture(gpu)
    settings = Settings(max_iterations=300, view=DeepView(SEAHORSE, "1e-28"), coloring="distance")
    whole = picture.draw(settings, (24, 16), 0.0).read()
    tile = picture.draw(settings, (24, 16), 0.0, (8, 4, 9, 7)).read()
    assert np.array_equal(whole[4:11, 8:17], tile)


def test_formulas_equal_numpy(gpu):
    picture = Picture(gpu)
    x = (np.arange(24) + 0.5 - 12) / 16 * 3
    y = -(np.arange(16) + 0.5 - 8) / 16 * 3
    c = x[None, :] + 1j * y[:, None]
    settings = raw(kind="formula", formula="sin(z)*c + z^-2 - 0.5i*conj(z)/3".replace("0.5i", "0.5*i"), samples=1,
                   max_iterations=12, view=DeepView(height=3))  # fmt: skip
    drawn = picture.draw(settings, (24, 16), 0.0).read()[..., 2]
    z, wanted = c.copy(), np.full(c.shape, -1.0)
    with np.errstate(all="ignore"):
        for n in range(1, 13):
            z = np.sin(z) * c + z**-2 - 0.5j * np.conj(z) / 3
            wanted[(wanted < 0) & ~(np.abs(z) ** 2 <= 1e6)] = n
    drawn = np.where(drawn > 0, drawn, -1)
    assert (drawn == wanted).mean() > 0.98 and len(np.unique(wanted)) > 3


def test_the_mandelbrot_formula_is_the_mandelbrot_set(gpu):
    picture = Picture(gpu)
    settings = Settings(max_iterations=50, view=DeepView(height=3), precision="perturbation", coloring="stripe")
    built_in = picture.draw(settings, (24, 16), 0.0).read()
    written = replace(settings, kind="formula", formula="z*z + c", formula_start="0", precision="auto")
    assert np.mean(np.abs(picture.draw(written, (24, 16), 0.0).read() - built_in).max(axis=2) < 1e-3) > 0.97


def test_newton_converges_to_roots(gpu):
    settings = raw(kind="formula", formula="z - (z^3 - 1)/(3*z^2)", formula_stop="convergence", max_iterations=40,
                   view=DeepView((1, 0), 0.2))  # fmt: skip
    counts = Picture(gpu).draw(settings, (8, 8), 0.0).read()[..., 2]
    assert ((counts >= 3) & (counts <= 6)).all(), "quadratic convergence near a root"


def test_reference_orbit_equals_floats():
    """The fixed point orbit of c = i is 0, i, -1+i, -i, -1+i, ...; tiny iterates keep their digits."""
    orbit = reference_orbit("power", 2, (Decimal(0), Decimal(0)), (Decimal(0), Decimal(1)), 128, 6)
    assert np.array_equal(orbit.mantissas, [0, 1j, -1 + 1j, -1j, -1 + 1j, -1j, -1 + 1j]) and not orbit.exponents.any()
    tiny = Decimal("1e-400")
    orbit = reference_orbit("power", 2, (Decimal(0), Decimal(0)), (tiny, Decimal(0)), 3000, 1)
    assert abs(orbit.mantissas[1]) * 2.0 ** (orbit.exponents[1] + 1300) == pytest.approx(
        float(tiny * 2**1300), rel=1e-12
    )
    mantissa, exponent = to_binary(Decimal("1e-1000"))
    assert 1 <= mantissa <= 2 and Decimal(mantissa) * Decimal(2) ** exponent == pytest.approx(Decimal("1e-1000"))


def test_frames_of_a_zoom_share_a_reference():
    reference_orbit.cache_clear()
    for height in ("3", "1e-10", "1e-28"):
        compute_reference(Settings(view=DeepView(SEAHORSE, height), max_iterations=300), (0, 0), 1.0)
    assert reference_orbit.cache_info().misses == 1


def test_a_view_moves_at_any_depth(rng):
    view = DeepView(SEAHORSE, "1e-200", 30.0)
    x, y = (float(v) for v in rng.uniform(-0.5, 0.5, 2))
    with localcontext(prec=400):

        def under(v):
            dx, dy = v.turned(x, -y)
            return [v.center[0] + Decimal(dx) * v.height, v.center[1] + Decimal(dy) * v.height]

        moved = view.scroll(5, x, y)
        assert moved.height < view.height * Decimal("0.6")
        assert all(abs(a - b) < view.height * Decimal("1e-9") for a, b in zip(under(moved), under(view), strict=True))
        back = view.drag(0.1, 0.2).drag(-0.1, -0.2)
        assert all(abs(a - b) < view.height * Decimal("1e-9") for a, b in zip(back.center, view.center, strict=True))
        assert back.center != view.drag(0.1, 0.2).center
    for steps, bound in ((1000, "1e-10000"), (-1000, "1e30")):
        for _ in range(175):
            view = view.scroll(steps, 0.1, 0.2)
        assert view.height == Decimal(bound)


def test_key_frames_zoom_exponentially():
    keys = (Key(0.0, Decimal(4), "linear"), Key(2.0, Decimal("4e-1000"), "linear"))
    middle = value_at(Track("view.height", keys, True), 1.0)
    assert abs(middle / Decimal("4e-500") - 1) < Decimal("1e-9")
    with localcontext(prec=200):
        keys = (Key(0.0, Decimal("0.1"), "linear"), Key(2.0, Decimal("0.1") + Decimal("4e-100"), "linear"))
        offset = value_at(Track("view.center[0]", keys, False), 1.0) - Decimal("0.1")
    assert abs(offset / Decimal("2e-100") - 1) < Decimal("1e-9")


def test_numbers_keep_every_digit(tmp_path):
    """Of texts and of TOML numbers; recipes and scene files get texts only where float64 is not enough."""
    digits = "-1." + "123456789" * 30
    path = tmp_path / "a.toml"
    path.write_text(f'picture = "fractal"\n[settings]\nview = {{ center = [{digits}, "0.5"], height = 1e-1000 }}\n')
    view = load(path).settings.view
    assert str(view.center[0]) == digits and view.height == Decimal("1e-1000")
    assert to_table(view) == {"center": [digits, 0.5], "height": "1E-1000"}
    settings = set_from_text(Settings(), "view.center", f'["{digits}", "1e-3"]')
    assert settings.view.center == (Decimal(digits), Decimal("0.001"))
    assert from_table(Settings, to_table(settings), "x", None) == settings
    assert set_from_text(Settings(), "view.height", "1e-1000").view.height == Decimal("1e-1000")


@pytest.mark.parametrize("table,words", [
    ({"view": {"height": 0}}, "height is 0; it must be 1E-10000 to"),
    ({"view": {"height": "-1e-20"}}, "height is -1E-20; it must be 1E-10000 to"),
    ({"view": {"height": "1e-20000"}}, "it must be 1E-10000 to"),
    ({"view": {"height": "1e-999999999"}}, "exponent of at most five digits"),
    ({"view": {"center": ["0." + "1" * 10**6, "0"]}}, r"center\[0\] has 1,000,002 characters; at most 20,000"),
    ({"view": {"center": ["1,5", "0"]}}, "must be a decimal number such as"),
    ({"view": {"center": ["nan", "0"]}}, "must be a decimal number such as"),
    ({"view": {"center": ["١", "0"]}}, "must be a decimal number such as"),
    ({"view": {"center": [True, 0]}}, "must be a number"),
    ({"view": {"center": ["1e31", "0"]}}, "at most 1e\\+30 in size"),
    ({"kind": "burning_ship", "power": 3}, "power is 3; it must be 2"),
    ({"kind": "formula", "formula": "z^2 + q"}, "unknown name at character 7: 'q'; it must be a formula of z, c, i"),
    ({"kind": "formula", "formula": "__import__('os')"}, "no such function at character 1"),
    ({"kind": "formula", "formula": "z^2 + sin(z, c)"}, r"sin takes 1 argument at character 7: 'sin\(z, c\)'"),
    ({"kind": "formula", "formula": "z +"}, "it is no expression at character"),
    ({"kind": "formula", "formula": "z^z"}, "the exponent z is not a number"),
    ({"kind": "formula", "formula": "z^1e9"}, "the exponent 1000000000.0 is beyond 64"),
    ({"kind": "formula", "formula": "(" * 400 + "z" + ")" * 400}, "it has 801 characters"),
    ({"kind": "formula", "formula_start": "z"}, "formula_start is"),
    ({"view": {"center": "1+2"}}, 'center is "1\\+2"; it must be two numbers, or a text such as "-0.75\\+0.1i"'),
    ({"view": {"center": ""}}, "must be two numbers"),
    ({"max_iterations": 1.5e-3}, "must be a whole number"),
])  # fmt: skip
def test_mistakes_are_sentences(table, words):
    with pytest.raises(InputError, match=words):
        from_table(Settings, table, "x.toml: settings", None)


def test_a_formula_says_where_float64_ends(gpu):
    settings = Settings(kind="formula", view=DeepView((1, 0), "1e-14"))
    with pytest.raises(UserError, match="resolves heights from .* here; mandelbrot, julia"):
        Picture(gpu).draw(settings, (8, 8), 0.0)


def test_a_precision_too_coarse_is_refused(gpu):
    with pytest.raises(UserError, match="precision is 'double', in which a height of 1e-20 is one point; it must be"):
        Picture(gpu).draw(Settings(precision="double", view=DeepView(SEAHORSE, "1e-20")), (8, 8), 0.0)


@pytest.mark.parametrize("text,center", [
    ("-0.75+0.1i", ("-0.75", "0.1")), ("1e-3 - 2e-5*i", ("1e-3", "-2e-5")), ("-i", ("0", "-1")), ("0.5", ("0.5", "0")),
])  # fmt: skip
def test_a_center_may_be_a_complex_number_and_counts_have_exponents(text, center):
    settings = from_table(Settings, {"view": {"center": text}, "max_iterations": 1e5}, "x", None)
    assert settings.view.center == tuple(map(Decimal, center)) and settings.max_iterations == 100_000


def test_all_digits_of_a_julia_constant_count(gpu):
    """Around a point of the plane that float64 rounds, the Julia set of c was flat: its orbit was another c's."""
    digits = ("-0.10109636384562216103", "0.95628651080914150077")
    settings = set_from_text(Settings(kind="julia", max_iterations=4000, palette="raw"), "c", ",".join(digits))
    assert settings.c == tuple(map(Decimal, digits)) and to_table(settings)["c"] == list(digits)
    assert from_table(Settings, to_table(settings), "x", None) == settings
    settings = replace(settings, view=DeepView(digits, Decimal("3e-19")))  # about c: the orbit of 0 goes through it
    drawn = Picture(gpu).draw(settings, (16, 9), 0.0).read()[..., 2]
    for x, y in ((0, 0), (7, 4), (15, 8)):
        z, c = ([Fraction(value) for value in digits] for _ in range(2))
        z[0] += Fraction(2 * x - 15, 18) * Fraction("3e-19")
        z[1] -= Fraction(2 * y - 8, 18) * Fraction("3e-19")
        (a, b), (u, v) = ([round(value * 2**300) for value in pair] for pair in (z, c))
        n = 0
        while a * a + b * b <= 10**6 << 600 and n < 4000:
            a, b, n = ((a * a - b * b) >> 300) + u, (a * b >> 299) + v, n + 1
        assert drawn[y, x] == n, (x, y)
    rounded = replace(settings, c=tuple(map(float, digits)))
    assert not np.array_equal(Picture(gpu).draw(rounded, (16, 9), 0.0).read()[..., 2], drawn)


def test_the_degree_is_the_formula_s():
    """In whatever order a user sets them; `power` counts where the formula is no polynomial."""
    degrees = {"z^3 + c": 3, "z*z - z^2 + c": 5, "sin(z) + c": 5, "(z^2 + c)^2 - i": 4, "z^12": 12}
    degrees |= {"z^2.5 + z^2": 5, "(z^3)^-1 + c": 5, "z^2 + c^0.5": 2}  # other powers of z are no polynomials
    for formula, power in degrees.items():
        assert Settings(kind="formula", formula=formula, power=5).degree == power
    assert Settings(kind="mandelbrot", formula="z^3 + c", power=5).degree == 5


def test_assignments_are_checked_together():
    start = Settings(power=3)
    assert set_all_from_texts(start, [("kind", "burning_ship"), ("power", "2")]).kind == "burning_ship"
    assert set_all_from_texts(start, [("formula_start", "0.5"), ("kind", "formula")]).formula_start == "0.5"
    with pytest.raises(UserError, match="--set kind: power is 3; it must be 2"):
        set_all_from_texts(start, [("kind", "burning_ship"), ("samples", "4")])
    with pytest.raises(UserError, match="--set samples is 0.5; it must be a whole number"):
        set_all_from_texts(start, [("samples", "0.5")])


def test_relief_where_squares_of_derivatives_are_infinite(gl):
    """Outside, at -2, |z| of one count spans 1e3 to 1e6: the normal was 0 where the derivative's square overflowed."""
    picture = Picture(DeviceContext(gl=gl))
    view = DeepView(("-2.00000000001", "0"), "1e-11")
    settings = Settings(max_iterations=60, relief=1.0, samples=1, precision="double", view=view)
    if picture.gpu.gl.version < 400:
        pytest.skip("no double in GLSL")
    drawn = [picture.draw(replace(settings, precision=p), (12, 8), 0.0).read() for p in ("double", "perturbation")]
    assert np.abs(drawn[0] - drawn[1]).max() < 0.02


def test_a_view_whose_y_axis_points_down_is_the_mirror_image(gpu):
    view = DeepView(("-1.7", "-0.03"), "0.2")
    for kind, precision in (("burning_ship", "auto"), ("mandelbrot", "single")):
        settings = Settings(kind=kind, max_iterations=40, samples=1, precision=precision, relief=0.0, view=view)
        mirrored = replace(settings, view=replace(view, y_axis="down"))
        up, down = (Picture(gpu).draw(each, (16, 8), 0.0).read() for each in (settings, mirrored))
        assert np.allclose(up, down[::-1], atol=1e-3) and not np.allclose(up, down, atol=0.05), kind
    assert float(replace(view, y_axis="down").drag(0.0, 0.25).center[1]) == pytest.approx(-0.08)
    assert float(view.drag(0.0, 0.25).center[1]) == pytest.approx(0.02)


def test_the_time_limit_ends_a_reference_orbit(gpu):
    picture, view = Picture(gpu), DeepView(("-0.5001", "0.1"), "1e-9000")
    picture.deadline = time.monotonic() + 0.2
    with pytest.raises(IncompleteError, match="the time limit ended the reference orbit after .* before the first"):
        picture.draw(Settings(max_iterations=1_000_000, view=view), (8, 8), 0.0)
    assert time.monotonic() < picture.deadline + 5


def test_devices_without_float64_are_told():
    with pytest.raises(UnavailableError, match="no float64"):
        KernelPass(SimpleNamespace(name="a GPU", properties=SimpleNamespace(has_fp64=False)))


def test_stripes_are_continuous_across_counts(gpu):
    """Along a line outside the set, where the count of iterations changes, no color jumps."""
    view = DeepView((3.0, 0.3), 0.02)
    settings = Settings(view=view, coloring="stripe", palette="gray", relief=0.0, color_density=0.1)
    line = Picture(gpu).draw(settings, (400, 2), 0.0).read()[0, :, 0]
    assert np.ptp(line) > 0.2 and np.abs(np.diff(line)).max() < 0.03


def test_raw_pixels_inside_the_set_have_no_count_and_no_distance(gpu):
    settings = raw(precision="perturbation", max_iterations=10, view=DeepView(("0", "0"), "1e-3"))
    assert (Picture(gpu).draw(settings, (4, 4), 0.0).read() == [-1, 0, 0, 1]).all()


REPROJECTED = dict(samples=4, max_iterations=400, palette="ember", precision="perturbation")


def zoom_frame(gpu, height, size=(64, 36), picture=None, tile=None, **keys) -> np.ndarray:
    """The displayed colors (height, width, 3), 0 to 255, of a frame of a zoom to SEAHORSE."""
    settings = Settings(**{**REPROJECTED, **keys}, view=DeepView(SEAHORSE, height, 10.0))
    picture = picture or Picture(gpu)
    for _ in range(settings.samples):
        frame = picture.draw(settings, size, 0.0, tile)
    return frame.read()[..., :3]


def test_reprojected_frames_are_near_the_exact_ones(gpu):
    """As near to 36 samples as an exact frame of 4 samples is, at both ends of an octave."""
    for height in (0.25, 0.13):
        truth, exact, again = (
            linear_to_srgb(zoom_frame(gpu, height, (40, 24), **keys))
            for keys in (dict(samples=36), {}, dict(reproject=True))
        )
        assert psnr(again, truth) > psnr(exact, truth) - 0.5 and psnr(again, truth) > 30


def test_a_reprojected_frame_does_not_depend_on_the_frames_before(gpu):
    """Frame 7 alone, in a film and in tiles has the same bits; a film of an octave draws two key pictures."""
    heights = [f"{2.0 ** (-20 - k / 8):.17g}" for k in range(8)]
    picture = Picture(gpu)
    film = [zoom_frame(gpu, height, picture=picture, reproject=True) for height in heights]
    keys = dict(picture._kernels._keys)
    zoom_frame(gpu, heights[0], picture=picture, reproject=True)
    assert picture._kernels._keys == keys and len(keys) == 2, "the same key pictures serve the octave"
    assert np.array_equal(film[-1], zoom_frame(gpu, heights[-1], reproject=True))
    for k in (0, 3):
        tiles = [zoom_frame(gpu, heights[k], tile=(x, 9, 21, 20), reproject=True) for x in (0, 21, 42)]
        assert np.array_equal(np.concatenate(tiles, 1), film[k][9:29, :63])
    assert not np.array_equal(film[0], film[-1]) and "from key pictures" in picture.report()["arithmetic"]


def test_reprojected_colors_are_the_frame_s(gpu):
    """A key picture serves all colors, and distances are in pixels of the frame: inside is black in both."""
    picture = Picture(gpu)
    one = zoom_frame(gpu, 0.2, picture=picture, reproject=True)
    keys = dict(picture._kernels._keys)
    other = zoom_frame(gpu, 0.2, picture=picture, reproject=True, palette="ice", relief=0.0, color_offset=0.3)
    assert picture._kernels._keys == keys and not np.array_equal(one, other)
    assert np.array_equal(other, zoom_frame(gpu, 0.2, reproject=True, palette="ice", relief=0.0, color_offset=0.3))


@pytest.mark.parametrize("table,words", [
    ({"palette": "raw"}, "palette is 'raw'; with reproject it must not be raw"),
    ({"precision": "double"}, "precision is 'double'; with reproject it must not be single or double"),
])  # fmt: skip
def test_settings_that_no_key_picture_serves_are_refused(table, words):
    with pytest.raises(InputError, match=words):
        from_table(Settings, {"reproject": True, **table}, "settings", None)
