"""Reductions to one texel equal NumPy for sizes of every kind, pass NaN over as they say, and repeat bit for bit."""

import numpy as np
import pytest

from renderer.cli import main
from renderer.errors import InputError
from renderer.formats.images import srgb_to_linear, write_png
from renderer.gpu import DeviceContext
from renderer.images.reduction_passes import reduction_view
from renderer.numerics.texture_reduction import Reduction
from renderer.pictures import load, open_picture
from renderer.pictures import reduction as reduction_picture
from renderer.scene.schema import from_table

PRIMES = [2, 3, 5, 7, 11, 13, 31, 61, 67, 127, 251, 509, 521]
EDGES = [7, 8, 9, 63, 64, 65, 512, 513]
SIZES = [(1, 1), (16384, 1), (1, 16384), (16381, 3), (640, 360)]
SIZES += [(p, q) for p, q in zip(PRIMES, PRIMES[::-1], strict=True)]
SIZES += [(edge, 1) for edge in EDGES] + [(1, edge) for edge in EDGES] + [(edge, edge) for edge in EDGES[:7]]
FRESH = 60 - len(SIZES)  # the rest of the sizes is drawn anew in each run
BOUND = {"sum": np.sum, "min": np.min, "max": np.max}


def sizes(rng):
    assert FRESH >= 10
    return SIZES + [tuple(int(n) for n in rng.integers(1, 300, 2)) for _ in range(FRESH)]


def test_sum_min_max_equal_numpy_for_60_sizes(gl, rng):
    reduction = Reduction(gl)
    for width, height in sizes(rng):
        image = rng.standard_normal((height, width, 4)).astype("f4") * 100
        texture = gl.texture((width, height)).write(image)
        told = f"{width} x {height}"
        assert np.array_equal(reduction.reduce("min", texture).read()[0, 0], image.min((0, 1))), told
        assert np.array_equal(reduction.reduce("max", texture).read()[0, 0], image.max((0, 1))), told
        # A tree of passes, each adding at most 16 terms in a row: its error bound is (16 passes) u sum |x|.
        bound = 16 * len(reduction.sizes((width, height))) * 2.0**-24 * np.abs(image.astype("f8")).sum((0, 1))
        error = np.abs(reduction.reduce("sum", texture).read()[0, 0] - image.astype("f8").sum((0, 1)))
        assert (error <= bound).all(), (told, error, bound)


def test_a_sum_of_whole_numbers_is_exact(gl, rng):
    image = rng.integers(-50, 51, (317, 211, 4)).astype("f4")
    total = Reduction(gl).reduce("sum", gl.texture((211, 317)).write(image)).read()[0, 0]
    assert np.array_equal(total, image.sum((0, 1), dtype="i8"))


def test_mean_log_luminance_equals_numpy_for_many_sizes(gl, rng):
    reduction = Reduction(gl)
    for width, height in sizes(rng):
        image = np.exp(rng.normal(-1, 3, (height, width, 4))).astype("f4")
        image[rng.random((height, width)) < 0.2] = 0  # pixels too dark to count
        y = image[..., :3].astype("f8") @ np.array([0.2126, 0.7152, 0.0722])
        counting = y[y >= 2.0**-20]
        mean, any_counts = reduction.mean_log_luminance(gl.texture((width, height)).write(image)).read()[0, 0]
        assert any_counts == (counting.size > 0)
        assert abs(mean - (np.log2(counting).mean() if counting.size else 0)) < 2e-5, f"{width} x {height}"


def test_pixels_that_do_not_count_leave_the_metering_alone(gl):
    image = np.full((3, 5, 4), 0.25, "f4")
    image[0, 0] = np.nan
    image[1, 1] = np.inf
    image[2, 2] = 0
    texel = Reduction(gl).mean_log_luminance(gl.texture((5, 3)).write(image)).read()[0, 0]
    assert texel == pytest.approx([-2, 1], abs=1e-5)


def test_nan_is_kept_by_a_sum_and_passed_over_by_the_extremes(gl, rng):
    image = rng.random((20, 30, 4), dtype="f4")
    image[4, 7, 1] = image[0, 0, 1] = np.nan
    image[..., 3] = np.nan
    texture, reduction = gl.texture((30, 20)).write(image), Reduction(gl)
    assert np.isnan(reduction.reduce("sum", texture).read()[0, 0, [1, 3]]).all()
    with np.errstate(invalid="ignore"):
        low, high = np.fmin.reduce(image, (0, 1)), np.fmax.reduce(image, (0, 1))
    assert np.array_equal(reduction.reduce("min", texture).read()[0, 0, :3], low[:3])
    assert np.array_equal(reduction.reduce("max", texture).read()[0, 0, :3], high[:3])
    assert (
        reduction.reduce("min", texture).read()[0, 0, 3] == np.inf
        and reduction.reduce("max", texture).read()[0, 0, 3] == -np.inf
    )


@pytest.mark.parametrize("components", [1, 2])
def test_textures_of_fewer_components(gl, rng, components):
    image = rng.integers(-9, 10, (41, 23, components)).astype("f4")
    texture = gl.texture((23, 41), components).write(image)
    for name, numpy in BOUND.items():
        assert np.array_equal(Reduction(gl).reduce(name, texture).read()[0, 0], numpy(image, (0, 1)))


def test_eight_bit_textures_read_as_fractions(gl, rng):
    image = rng.integers(0, 256, (9, 17, 4), dtype="u1")
    texture = gl.texture((17, 9), 4, "f1").write(image)
    assert np.allclose(Reduction(gl).reduce("max", texture).read()[0, 0], image.max((0, 1)) / 255, rtol=1e-6, atol=0)


@pytest.mark.parametrize("block", [2, 3, 16])
def test_any_block_gives_the_same_answer(gl, rng, block):
    image = rng.integers(-9, 10, (37, 53, 4)).astype("f4")
    reduction = Reduction(gl, block)
    levels = reduction.levels("sum", gl.texture((53, 37)).write(image))
    assert [level.size for level in levels] == reduction.sizes((53, 37)) and levels[-1].size == (1, 1)
    assert np.array_equal(levels[-1].read()[0, 0], image.sum((0, 1)))
    assert np.array_equal(levels[0].read()[0, 0], image[:block, :block].sum((0, 1)))


def test_a_sum_repeats_bit_for_bit_and_allocates_once(gl, rng):
    texture = gl.texture((333, 111)).write(rng.standard_normal((111, 333, 4)).astype("f4"))
    reduction = Reduction(gl)
    first = reduction.reduce("sum", texture)
    bits = first.read().view("u4")
    assert reduction.reduce("sum", texture) is first, "the targets are kept between frames"
    assert np.array_equal(first.read().view("u4"), bits)


def pyramid(gl, source, operation="mean", size=(360, 240)):
    """The drawn pyramid, its picture, and the rectangles of its levels."""
    picture = reduction_picture.Picture(DeviceContext(gl=gl))
    settings = from_table(
        reduction_picture.Settings, {"source": str(source), "operation": operation}, "x.toml: settings", None
    )
    assert picture.sample_count(settings, size) >= 1
    return picture.draw(settings, size, 0.0).read(), picture


@pytest.mark.parametrize("operation", ["mean", "min", "max"])
def test_pyramid_ends_in_the_whole_image(gl, rng, tmp_path, operation):
    pixels = rng.integers(0, 256, (90, 120, 3), dtype="u1")
    write_png(tmp_path / "noise.png", pixels)
    drawn, picture = pyramid(gl, tmp_path / "noise.png", operation)
    linear = srgb_to_linear(pixels)
    wanted = getattr(np, operation)(linear.astype("f8"), (0, 1))
    last_texel = drawn[-60:, -60:][30, 30]  # the last level's square lies at the bottom of the right column
    assert np.allclose(last_texel[:3], wanted, rtol=1e-4)
    assert np.isfinite(drawn).all() and (drawn[..., 3] == 1).all()
    assert np.allclose(picture.report()["last texel"], wanted, atol=1e-4)


def test_pyramid_of_a_scene_draws_the_scene(gl, tmp_path):
    (tmp_path / "f.toml").write_text('picture = "fractal"\nsettings = { max_iterations = 20, samples = 3 }\n')
    drawn, picture = pyramid(gl, tmp_path / "f.toml")
    scene = load(tmp_path / "f.toml")
    assert picture.sample_count(reduction_picture.Settings(str(tmp_path / "f.toml")), (9, 9)) == 3
    gap, wide = 5, (360 - 15) * 2 // 3
    alone = open_picture(scene, DeviceContext(gl=gl)).draw(scene.settings, (wide, 240 - 2 * gap), 0.0).read()
    assert np.array_equal(drawn[gap : 240 - gap, gap : gap + wide], alone)
    again = picture.draw(reduction_picture.Settings(str(tmp_path / "f.toml")), (360, 240), 0.0).read()
    picture.restart()
    first = picture.draw(reduction_picture.Settings(str(tmp_path / "f.toml")), (360, 240), 0.0).read()
    assert np.array_equal(first, drawn) and not np.array_equal(first, again), "one more sample, and the first one"


def test_sources_that_cannot_be(gl, tmp_path):
    (tmp_path / "loop.toml").write_text('picture = "reduction"\nsettings = { source = "loop.toml" }\n')
    with pytest.raises(InputError, match="is a reduction"):
        pyramid(gl, tmp_path / "loop.toml")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="not an image"):
        pyramid(gl, tmp_path / "bad.png")
    with pytest.raises(InputError, match="there is no"):
        pyramid(gl, tmp_path / "absent.png")
    (tmp_path / "empty.toml").write_text('picture = "reduction"\n')
    with pytest.raises(InputError, match="'source' is missing"):
        load(tmp_path / "empty.toml")


def test_pyramid_of_one_pixel(gl, tmp_path):
    write_png(tmp_path / "one.png", np.full((1, 1, 3), 255, "u1"))
    for size in [(1, 1), (2, 9), (64, 48)]:
        assert np.isfinite(pyramid(gl, tmp_path / "one.png", size=size)[0]).all()


def test_the_view_of_passes_folds_blocks_and_keeps_the_value(gl, rng):
    pixels = rng.random((37, 70, 4)).astype("f4")
    pixels[..., 3] = 1
    image = gl.texture((70, 37)).write(pixels)
    for operation, fold in (("sum", np.sum), ("min", np.min), ("max", np.max)):
        view = reduction_view(Reduction(gl), operation, image, (90, 50))
        assert [row["size"] for row in view.rows] == ["70 x 37", "9 x 5", "2 x 1", "1 x 1"]
        assert [row["bytes"] for row in view.rows] == [16 * n for n in (70 * 37, 45, 2, 1)]
        wanted = fold(pixels.astype("f8"), axis=(0, 1))[:3] / (37 * 70 if operation == "sum" else 1)
        for row in view.rows:
            assert [row["red"], row["green"], row["blue"]] == pytest.approx(wanted.tolist(), abs=1e-6)
        found = view.step(1).values
        assert found.shape == (50, 90, 3)
        block = fold(pixels[8:16, 16:24, :3].astype("f8"), axis=(0, 1)) / (64 if operation == "sum" else 1)
        assert np.allclose(found[15, 25], block, atol=1e-6)  # texel (2, 1) of 9 x 5, ten pixels a texel
        assert tuple(view.step(3).pixels[0, 0]) == (0, 0, 0) and view.step(3).pixels[25, 45].any()


def test_an_image_wider_than_a_texture_is_named(gl, tmp_path, monkeypatch, capsys):
    """The sentence named the driver alone; a toy's channel has the same."""
    write_png(tmp_path / "wide.png", np.zeros((2, 24, 3), "u1"))
    (tmp_path / "a.toml").write_text('picture = "reduction"\n[settings]\nsource = "wide.png"\n')
    entry = "void mainImage(out vec4 c, in vec2 p) { c = texture(iChannel0, p); }\n"
    (tmp_path / "a.frag").write_text(f"// iChannel0: wide.png\n{entry}")
    monkeypatch.setattr(gl, "max_texture_size", 20)
    for name in ("a.toml", "a.frag"):
        words = ["export", str(tmp_path / name), "-o", str(tmp_path / "a.png"), "--size", "12x8", "--samples", "1"]
        assert main(words) == 4
        said = capsys.readouterr().err
        assert said.startswith(f"rayfold: {tmp_path / 'wide.png'}: ")
        assert said.endswith("no texture of 24 x 2; each side may be 1 to 20\n")
