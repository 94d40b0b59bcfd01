"""Color grading and high dynamic range: kernels and passes agree with NumPy twins, tables with their definitions."""

import numpy as np
import pytest

from renderer.errors import InputError
from renderer.formats.cube import read_cube
from renderer.formats.images import linear_to_srgb, srgb_to_linear
from renderer.images.color_grade import SRGB_TO_XYZ, planckian_white, white_balance, white_xyz
from renderer.images.tone_mapping import Encoding, GlToneMapper, tonemap
from renderer.scene.scene import ToneMapping


def cube_text(size, color, dimensions=3, header=""):
    steps = np.linspace(0, 1, size)
    if dimensions == 1:
        rows = [[color(np.full(3, x))[k] for k in range(3)] for x in steps]
    else:
        rows = [color(np.array([r, g, b])) for b in steps for g in steps for r in steps]
    lines = [" ".join(f"{x:.7f}" for x in row) for row in rows]
    return "\n".join(["# a comment", 'TITLE "test"', f"LUT_{dimensions}D_SIZE {size}", header, *lines, ""])


def picture(rng, height=17, width=29):
    image = np.ones((height, width, 4), "f4")
    image[..., :3] = np.exp(rng.normal(-2, 1.5, (height, width, 3)))
    return image


def twin(image, tone, table=lambda color: color):
    color = image[..., :3].astype("f8") @ white_balance(tone.temperature, tone.tint).T * 2.0**tone.ev
    color = 0.18 * (np.maximum(color, 0) / 0.18) ** tone.contrast
    x = np.clip(color, 0, 1)
    return np.clip(table(np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)), 0, 1) * 255


def affine(color):
    """A map that cubes interpolate exactly: every channel is a weighted sum of all."""
    return color @ np.array([[0.7, 0.1, 0.0], [0.2, 0.8, 0.3], [0.0, 0.1, 0.6]]) + [0.05, 0.0, 0.02]


def test_kernel_and_pass_equal_numpy(device, gl, rng, tmp_path):
    (tmp_path / "a.cube").write_text(cube_text(5, affine))
    image = picture(rng)
    tone = ToneMapping("manual", 0.3, temperature=4200.0, tint=12.0, contrast=1.3, lut=str(tmp_path / "a.cube"))
    by_kernel = tonemap(device.buffer(image.shape).write(image), tone)
    by_pass = tonemap(gl.texture(image.shape[1::-1]).write(image), tone)
    for shown in (by_kernel, by_pass):
        assert np.abs(shown[..., :3] - twin(image, tone, affine)).max() < 0.6


def test_a_table_of_one_dimension_and_a_domain(device, rng, tmp_path):
    path = tmp_path / "b.cube"
    text = cube_text(9, lambda color: color * [1.0, 0.5, 0.25], 1, "DOMAIN_MIN -0.5 -0.5 -0.5\nDOMAIN_MAX 1.5 1.5 1.5")
    path.write_text(text)
    image, tone = picture(rng), ToneMapping("manual", lut=str(path))
    shown = tonemap(device.buffer(image.shape).write(image), tone)
    expected = twin(image, tone, lambda color: (color + 0.5) / 2 * [1.0, 0.5, 0.25])
    assert np.abs(shown[..., :3] - expected).max() < 0.6


def test_tetrahedra_keep_grays_gray_and_corners_exact(device, rng, tmp_path):
    path = tmp_path / "c.cube"
    tinted = np.array([0.1, 0.0, -0.1])
    path.write_text(cube_text(4, lambda color: np.full(3, color.mean()) + tinted * (np.ptp(color) > 1e-9)))
    image = np.ones((1, 256, 4), "f4")
    image[0, :, :3] = srgb_to_linear(np.arange(256, dtype="u1"))[:, None]
    shown = tonemap(device.buffer(image.shape).write(image), ToneMapping("manual", lut=str(path)))[0]
    assert np.array_equal(shown[:, :3], np.repeat(np.arange(256)[:, None], 3, 1))


def test_a_changed_table_is_read_again(gl, rng, tmp_path):
    path, image = tmp_path / "d.cube", picture(rng)
    tone, texture, mapper = ToneMapping("manual", lut=str(path)), gl.texture(image.shape[1::-1]).write(image), None
    mapper, target = GlToneMapper(gl), gl.texture(image.shape[1::-1])
    for factor in (1.0, 0.25):
        path.write_text(cube_text(2 if factor == 1 else 3, lambda color, factor=factor: color * factor))
        mapper(texture, tone, target)
        assert np.abs(target.read()[..., :3] * 255 - linear_to_srgb(image[..., :3]) * factor).max() < 1.01


def test_neutral_grading_is_left_out():
    assert Encoding().constants(ToneMapping()) == {"LEVELS": 255}
    assert np.abs(white_balance(6500.0, 0.0) - np.eye(3)).max() < 1e-12


@pytest.mark.parametrize("temperature", [2500, 2856, 4000, 6500, 10000, 15000])
def test_the_white_of_black_bodies_follows_planck(temperature):
    """Witness: Planck's law through the CIE 1931 observer in Wyman, Sloan and Shirley's fit (2013)."""

    def bell(x, mean, left, right):
        return np.exp(-0.5 * ((x - mean) * np.where(x < mean, left, right)) ** 2)

    nm = np.arange(360.0, 831.0)
    x = 0.362 * bell(nm, 442.0, 0.0624, 0.0374) + 1.056 * bell(nm, 599.8, 0.0264, 0.0323)
    x -= 0.065 * bell(nm, 501.1, 0.0490, 0.0382)
    y = 0.821 * bell(nm, 568.8, 0.0213, 0.0247) + 0.286 * bell(nm, 530.9, 0.0613, 0.0322)
    z = 1.217 * bell(nm, 437.0, 0.0845, 0.0278) + 0.681 * bell(nm, 459.0, 0.0385, 0.0725)
    power = nm**-5 / np.expm1(1.438777e7 / (nm * temperature))
    X, Y, Z = (float((power * w).sum()) for w in (x, y, z))
    expected = np.array([4 * X, 6 * Y]) / (X + 15 * Y + 3 * Z)
    assert np.abs(planckian_white(temperature) - expected).max() < 0.003


@pytest.mark.parametrize(("temperature", "tint"), [(2856, 0), (4000, 30), (9000, -40)])
def test_a_gray_card_in_that_light_gets_gray(temperature, tint):
    card = np.linalg.inv(SRGB_TO_XYZ) @ white_xyz(temperature, tint)
    shown = white_balance(temperature, tint) @ card
    expected = np.linalg.inv(SRGB_TO_XYZ) @ white_xyz(6500.0)
    assert np.abs(shown - expected).max() < 1e-9
    greener = SRGB_TO_XYZ @ np.array([0.0, 1.0, 0.0])
    assert (white_xyz(5000, 50) - white_xyz(5000, 0)) @ (greener / greener.sum() - 1 / 3) > 0, "positive tint is green"


def pq_codes(nits):
    """16-bit PQ values of light, by the fractions of SMPTE ST 2084 in float64."""
    m1, m2, c1, c2, c3 = 2610 / 16384, 2523 / 4096 * 128, 3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32
    power = (nits / 1e4) ** m1
    return 65535 * ((c1 + c2 * power) / (1 + c3 * power)) ** m2


def test_pq_stores_the_light_itself(device, gl, rng):
    image = picture(rng)
    image[0, 0, :3], tone, encoding = 40.0, ToneMapping("manual", 0.5, "agx"), Encoding(65535, "pq")
    to_2020 = np.array([[0.6274, 0.3293, 0.0433], [0.0691, 0.9195, 0.0114], [0.0164, 0.0880, 0.8956]])
    expected = np.minimum(image[..., :3] * 2.0**0.5 @ to_2020.T * 203, 1e4)
    for frame in (device.buffer(image.shape).write(image), gl.texture(image.shape[1::-1]).write(image)):
        codes = tonemap(frame, tone, encoding)[..., :3].astype(int)
        assert np.abs(codes - pq_codes(expected)).max() < 16, "a quarter of a step of 10 bits"


BAD = {
    "": "there are no colors",
    "LUT_3D_SIZE 2\n0 0 0\n": "there are 1 colors; its size asks for 8",
    "LUT_3D_SIZE 1000\n0 0 0\n": "LUT_3D_SIZE is .1000.; it must be 2 to 129",
    "LUT_3D_SIZE\n0 0 0\n": "it must be 2 to 129",
    "0 0 0\n": "the key LUT_3D_SIZE or LUT_1D_SIZE is missing",
    "SIZE 3\n0 0 0\n": "unknown key .SIZE.",
    "LUT_1D_SIZE 2\n0 0 0\n1 1 nan\n": "numbers of at most a million",
    "LUT_1D_SIZE 2\n0 0 0\n1 1 x\n": "a color is not three numbers",
    "LUT_1D_SIZE 2\n0 0 0\n1 1\n": "a color is not three numbers",
    "LUT_1D_SIZE 2\nDOMAIN_MIN 1 1 1\nDOMAIN_MAX 1 1 1\n0 0 0\n1 1 1\n": "each end must be above its start",
    "LUT_1D_SIZE 2\nDOMAIN_MIN 1 1\n0 0 0\n1 1 1\n": "it must be 3 numbers",
    "LUT_1D_SIZE 2\nDOMAIN_MIN 1 1 inf\n0 0 0\n1 1 1\n": "it must be 3 numbers",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_tables(tmp_path, text):
    path = tmp_path / "bad.cube"
    path.write_text(text)
    with pytest.raises(InputError, match=BAD[text]) as caught:
        read_cube(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_not_quoted(tmp_path):
    (tmp_path / "secret").write_text("root:x:0:0\n")
    with pytest.raises(InputError, match="secret: is no .cube file$"):
        read_cube(tmp_path / "secret")
