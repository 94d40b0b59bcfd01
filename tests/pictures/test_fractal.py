"""Escape-time fractals: equal to an iteration in NumPy, and to what algebra says where it says something."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from renderer.errors import InputError, UnavailableError
from renderer.export.render import RenderJob, render
from renderer.gpu import DeviceContext
from renderer.pictures import load
from renderer.pictures.fractal import Picture, Settings
from renderer.scene.cameras import DeepView
from renderer.scene.scene import Scene
from renderer.scene.schema import from_table
from renderer.system.progress import Progress

BAILOUT2 = 65536.0


@pytest.fixture
def picture(gl):
    return Picture(DeviceContext(gl=gl))


def plane(view: DeepView, width: int, height: int) -> np.ndarray:
    """The complex number at each pixel's center (height, width)."""
    x = (np.arange(width) + 0.5 - width / 2) / height * float(view.height)
    y = -(np.arange(height) + 0.5 - height / 2) / height * float(view.height)
    return complex(*map(float, view.center)) + (x[None, :] + 1j * y[:, None]) * np.exp(
        1j * np.radians(view.rotation_degrees)
    )


def reference(z: np.ndarray, c: np.ndarray, iterations: int) -> np.ndarray:
    """The smooth count of every pixel in complex128, -1 where none of the iterates escapes."""
    count = np.full(z.shape, -1.0)
    z, c, alive = z.copy(), np.broadcast_to(c, z.shape), np.ones(z.shape, bool)
    for n in range(iterations + 1):
        square = np.abs(z) ** 2
        out = alive & (square > BAILOUT2)
        count[out] = n - np.log2(np.log(square[out]) / np.log(BAILOUT2))
        alive &= ~out
        if n == iterations:
            return count
        z = np.where(alive, z * z + c, 0)


def raw(picture, settings: Settings, width=48, height=32) -> np.ndarray:
    return picture.draw(replace(settings, palette="raw", samples=1), (width, height), 0.0).read()


def equal_fraction(count: np.ndarray, wanted: np.ndarray, tolerance: float) -> float:
    """Chaos near the set turns one rounding into another count, so a fraction of the pixels is asked for, not all."""
    inside = (count < 0) == (wanted < 0)
    return float((inside & (np.abs(count - wanted) < tolerance)).mean())


@pytest.mark.parametrize("precision", ["single", "double"])
def test_mandelbrot_equals_numpy(picture, rng, precision):
    if precision == "double" and picture.gpu.gl.version < 400:
        pytest.skip(f"{picture.gpu.gl.renderer} has no double in GLSL")
    views = [DeepView((-0.6, 0.0), 2.6), DeepView((-0.75, 0.1), 0.2, 30.0)]
    views.append(DeepView((float(rng.uniform(-1.8, 0.4)), float(rng.uniform(-1, 1))), 0.5, float(rng.uniform(0, 360))))
    for view in views:
        settings = Settings(max_iterations=60, view=view, precision=precision)
        c = plane(view, 48, 32)
        fraction = equal_fraction(raw(picture, settings)[..., 0], reference(0 * c, c, 60), 0.01)
        assert fraction > (0.97 if precision == "single" else 0.995), (view, fraction)


def test_julia_equals_numpy(picture, rng):
    for constant in [(-0.8, 0.156), tuple(float(x) for x in rng.uniform(-0.7, 0.7, 2))]:
        settings = Settings("julia", constant, max_iterations=50, view=DeepView(height=3.0))
        wanted = reference(plane(settings.view, 48, 32), complex(*constant), 50)
        assert equal_fraction(raw(picture, settings)[..., 0], wanted, 0.01) > 0.97, constant


def test_squaring_alone_escapes_as_its_closed_form_says(picture):
    """For c = 0, |z_n| = |z_0|^(2^n): the smooth count is log2(log BAILOUT2 / log |z_0|^2), the distance is known."""
    view = DeepView(height=8.0)
    drawn = raw(picture, Settings("julia", (0.0, 0.0), max_iterations=100, view=view))
    radius = np.abs(plane(view, 48, 32))
    outside = radius > 1.01
    wanted = np.log2(np.log(BAILOUT2) / np.log(radius[outside] ** 2))
    assert np.allclose(drawn[..., 0][outside], wanted, atol=2e-4)
    assert (drawn[..., 0][radius < 0.99] == -1).all()
    reach = radius * np.log(radius) / 2 / (8 / 32) * 2  # |z| log|z| / |z'| with z' = 2^n z_0^(2^n - 1), in pixels
    assert np.allclose(drawn[..., 1][outside], reach[outside], rtol=1e-3)


def test_mandelbrot_is_its_own_mirror_image(picture):
    count = raw(picture, Settings(max_iterations=40, view=DeepView((-0.6, 0.0), 2.6)))[..., 0]
    assert np.array_equal(count, count[::-1])


def test_known_points(picture):
    for c, inside in [
        ((0.0, 0.0), True),
        ((-1.0, 0.0), True),
        ((-2.0, 0.0), True),
        ((0.26, 0.0), False),
        ((0.0, 1.0), True),
    ]:
        count = raw(picture, Settings(max_iterations=2000, view=DeepView(c, 1e-9), precision="auto"), 1, 1)[0, 0, 0]
        assert (count < 0) == inside, c


def test_area_of_the_set(picture):
    """1.5066 by counting points (Mitchell, Mathematics of Computation 2001)."""
    count = raw(picture, Settings(max_iterations=400, view=DeepView((-0.75, 0.0), 2.5)), 300, 250)[..., 0]
    assert (count < 0).mean() * 2.5 * 3.0 == pytest.approx(1.5066, abs=0.03)


def test_deep_views_take_double(picture, rng):
    if picture.gpu.gl.version < 400:
        pytest.skip(f"{picture.gpu.gl.renderer} has no double in GLSL")
    view = DeepView((-0.743643887037151, 0.131825904205330), 1e-9)
    settings = Settings(max_iterations=1500, view=view)
    c = plane(view, 48, 32)
    wanted = reference(0 * c, c, 1500)
    assert equal_fraction(raw(picture, replace(settings, precision="double"))[..., 0], wanted, 0.05) > 0.9
    assert equal_fraction(raw(picture, settings)[..., 0], wanted, 0.05) > 0.9
    assert picture.report()["arithmetic"] == "perturbation, float64", "raw counts are exact"
    picture.draw(settings, (4, 4), 0.0)
    assert picture.report()["arithmetic"] == "double"
    single = raw(picture, replace(settings, precision="single"))[..., 0]
    assert equal_fraction(single, wanted, 0.05) < 0.3, "or else the view is not deep"


def test_double_without_a_driver_for_it_is_a_sentence(picture, monkeypatch):
    monkeypatch.setattr(picture.gpu.gl, "version", 330)
    with pytest.raises(UnavailableError, match="precision must be single or auto"):
        picture.draw(Settings(precision="double"), (4, 4), 0.0)
    picture.draw(Settings(view=DeepView(height=1e-9)), (4, 4), 0.0)
    assert picture.report()["arithmetic"] == "perturbation, float64"


def test_samples_average_and_restart(picture):
    settings = Settings(max_iterations=30, view=DeepView((-0.6, 0.0), 2.6), palette="gray")
    first = picture.draw(settings, (24, 16), 0.0).read()
    for _ in range(3):
        fourth = picture.draw(settings, (24, 16), 0.0).read()
    assert picture.report()["samples"] == 4 and not np.array_equal(first, fourth)
    picture.draw(replace(settings, color_offset=0.5), (24, 16), 0.0)
    assert picture.report()["samples"] == 1
    assert np.array_equal(picture.draw(settings, (24, 16), 7.0).read(), first), (
        "a still picture does not depend on time"
    )
    assert picture.draw(settings, (7, 5), 0.0).shape == (5, 7, 4)


def test_a_travelling_julia_constant(picture):
    settings = Settings("julia", (-0.7, 0.1), c_path_radius=0.1, max_iterations=40, view=DeepView(height=3.0))
    half_a_turn = picture.draw(replace(settings, palette="raw"), (24, 16), 10.0).read()
    assert np.array_equal(half_a_turn, raw(picture, replace(settings, c=(-0.8, 0.1), c_path_radius=0.0), 24, 16))


def test_colors_are_finite_and_the_inside_is_black(picture, rng):
    for palette in ("sea", "ice", "ember", "gray"):
        view = DeepView((-0.6, float(rng.uniform(-0.2, 0.2))), 2.6)
        settings = Settings(max_iterations=40, view=view, palette=palette)
        colors = picture.draw(settings, (48, 32), 0.0).read()
        count = raw(picture, settings)[..., 0]
        assert np.isfinite(colors).all() and (colors[..., 3] == 1).all() and colors.min() >= 0
        assert not colors[count < 0][:, :3].any() and colors[count >= 0][:, :3].max() > 0.05


@pytest.mark.parametrize("precision", ["single", "perturbation"])
def test_a_black_picture_names_max_iterations(gpu, precision):
    view = DeepView(("-0.7432702229233837", "0.1313571361114832"), "1e-5")
    settings, said = Settings(max_iterations=20, view=view, precision=precision), []
    for change in ({}, {"palette": "raw"}, {"max_iterations": 4000}):
        picture = Picture(gpu)
        scene = Scene(Path("a.toml"), "a", "fractal", replace(settings, **change), Picture.tone)
        render(picture, RenderJob(scene, (48, 27), 2, tile=32), Progress(0, ""))
        said += [picture.hints()]
    text = "100 % of the pixels reached max_iterations, 20, and are black; raise max_iterations"
    assert said == [[text], [text], []]


@pytest.mark.parametrize("center,period", [
    (("-0.1", "0.1"), 1), (("-1", "0.05"), 2), (("-0.1225", "0.7449"), 3), (("-1.75488", "0"), 3),
    (("0.25000001", "0"), 0), (("-0.75", "0.0001"), 0), (("-0.7436", "0.1318"), 0), (("-2", "0"), 0),
])  # fmt: skip
def test_the_period_of_the_center(center, period):
    """Of hyperbolic components by their known periods; points beside a cusp stay long, and escape."""
    assert Picture._period(Settings(view=DeepView(center, "1e-7"))) == period


def test_a_black_picture_inside_of_the_set_names_its_period(gpu):
    picture, view = Picture(gpu), DeepView(("-0.1225", "0.7449"), "1e-4")
    scene = Scene(Path("a.toml"), "a", "fractal", Settings(view=view), Picture.tone)
    render(picture, RenderJob(scene, (16, 9), 1), Progress(0, ""))
    (hint,) = picture.hints()
    assert hint.endswith("the center is inside of the set, of period 3, where no number of iterations helps")


KFR = "Re: -1.25\r\nIm: 0.5\r\nZoom: 1.6E33\r\nIterations: 2000\r\nColors: 1,2,3,\r\nPower: 3\r\nImagPointsUp: 1\r\n"


def test_a_place_of_kalles_fraktaler_opens(tmp_path):
    path = tmp_path / "place.kfr"
    path.write_bytes(KFR.encode())
    scene = load(path)
    view = DeepView(("-1.25", "0.5"), "2.5e-33")
    assert scene.settings == Settings(view=view, power=3, max_iterations=2000)
    assert scene.notes == ("of place.kfr, these are not read: Colors",)
    path.write_text("Re: 0\nIm: 0\nZoom: 2\nFractalType: 1")
    assert load(path).settings == Settings(kind="burning_ship", view=DeepView((0, 0), 2, y_axis="down"))


@pytest.mark.parametrize("old,new,words", [
    ("Im: 0.5\r\n", "", "has no line Im: ...; a place has Re, Im and Zoom"),
    ("1.6E33", "0", "Zoom is \"0\"; it must be a number above 0"),
    ("1.6E33", "1E99999", "height is 4E-99999; it must be 1E-10000 to"),
    ("1.6E33", "nan", "Zoom is \"nan\""),
    ("-1.25", "9" * 100_000, "center.* has 100,000 characters"),
    ("2000", "9" * 10_000, "max_iterations is .* must be a whole number"),
    ("Power: 3", "FractalType: 7", r"FractalType is \"7\"; allowed are 0 \(mandelbrot\), 1 \(burning_ship\)"),
    ("Power: 3", "Power: 3\nFractalType: 1", "power is 3; it must be 2"),
    ("Colors", "\xff", "not UTF-8 text"),
])  # fmt: skip
def test_mistakes_in_places_of_kalles_fraktaler_are_sentences(tmp_path, old, new, words):
    path = tmp_path / "place.kfr"
    path.write_bytes(KFR.replace(old, new).encode("latin-1"))
    with pytest.raises(InputError, match=words):
        load(path)


def test_mistakes_are_told():
    for table, words in [
        ({"max_iterations": 0}, "1 to 1000000"),
        ({"kind": "newton"}, "mandelbrot, julia"),
        ({"view": {"height": 0}}, "height"),
    ]:
        with pytest.raises(InputError, match=words):
            from_table(Settings, table, "x.toml: settings", None)
