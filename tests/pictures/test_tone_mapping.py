"""Tone mapping: the kernel and the pass agree with a NumPy twin and with each other.

The curves behave as curves should.
"""

import numpy as np
import pytest

from renderer.formats.images import linear_to_srgb, srgb_to_linear
from renderer.images.tone_mapping import CURVES, Encoding, ExposureMeter, GlToneMapper, tonemap
from renderer.scene.scene import ToneMapping

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def picture(rng, height=23, width=37):
    image = np.ones((height, width, 4), "f4")
    image[..., :3] = np.exp(rng.normal(-2, 2, (height, width, 3)))
    image[:3, :, :3] = 0  # a black border, which the metering leaves out
    return image


AGX_INSET = np.array(
    [
        [0.842479062, 0.0784335985, 0.0792237451],
        [0.0423282422, 0.8784686, 0.0791661],
        [0.0423756886, 0.0784336, 0.8791421],
    ]
)  # towards gray, so that bright colors lose saturation rather than change hue
AGX_CONTRAST = [15.5, -40.14, 31.96, -6.868, 0.4298, 0.1191, -0.00232]  # by descending powers
AGX_STOPS = -12.47393, 4.026069  # log2 of what is shown black and white


def agx(color):
    """T. Sobotka's AgX in B. Wrensch's fit, in float64; the outset is the inverse of the inset."""
    low, high = AGX_STOPS
    stops = np.log2(np.maximum(color @ AGX_INSET.T, 1e-10))
    encoded = np.polyval(AGX_CONTRAST, np.clip((stops - low) / (high - low), 0, 1))
    return np.maximum(encoded @ np.linalg.inv(AGX_INSET).T, 0) ** 2.2


def twin(image, tone):
    """The displayed picture for the curves none, reinhard and agx, in float64."""
    y = image[..., :3].astype("f8") @ LUMINANCE
    factor = 2.0**tone.ev
    if tone.exposure == "auto":
        factor *= 0.18 / 2 ** np.log2(y[y >= 2.0**-20]).mean()
    color = image[..., :3] * factor
    if tone.curve == "reinhard":
        color = color / (1 + color @ LUMINANCE)[..., None]
    if tone.curve == "agx":
        color = agx(color)
    return linear_to_srgb(color)


@pytest.mark.parametrize("exposure", ["auto", "manual"])
@pytest.mark.parametrize("curve", ["none", "reinhard", "agx"])
def test_kernel_equals_numpy(device, rng, exposure, curve):
    image, tone = picture(rng), ToneMapping(exposure, float(rng.uniform(-1, 1)), curve)
    shown = tonemap(device.buffer(image.shape).write(image), tone)
    assert np.abs(shown[..., :3].astype(int) - twin(image, tone)).max() <= 1
    assert (shown[..., 3] == 255).all()


@pytest.mark.parametrize("curve", CURVES)
def test_pass_equals_kernel(gl, device, rng, curve):
    image, tone = picture(rng), ToneMapping("auto", 0.5, curve)
    by_kernel = tonemap(device.buffer(image.shape).write(image), tone)
    by_pass = tonemap(gl.texture(image.shape[1::-1]).write(image), tone)
    assert np.abs(by_kernel.astype(int) - by_pass).max() <= 1


def test_every_8_bit_value_survives_without_a_curve(device):
    values = np.arange(256, dtype="u1").reshape(16, 16)
    image = np.ones((16, 16, 4), "f4")
    image[..., :3] = srgb_to_linear(values)[..., None]
    shown = tonemap(device.buffer(image.shape).write(image), ToneMapping("manual"))
    assert np.array_equal(shown[..., 0], values)


@pytest.mark.parametrize("curve", CURVES)
def test_curves_rise_from_black_to_white(device, curve):
    image = np.ones((1, 512, 4), "f4")
    image[0, :, :3] = np.geomspace(1e-6, 1e4, 512)[:, None]
    gray = tonemap(device.buffer(image.shape).write(image), ToneMapping("manual", 0.0, curve))[0, :, :3].astype(int)
    assert (np.diff(gray, axis=0) >= 0).all() and gray[0].max() <= 2 and gray[-1].min() >= 250
    assert np.ptp(gray, axis=1).max() <= 1, "gray stays gray"


def test_agx_keeps_the_hue_of_highlights(device):
    """An orange that brightens by 6 stops stays orange; curves of each channel by itself turn it yellow."""
    image = np.ones((1, 65, 4), "f4")
    image[0, :, :3] = np.array([1.0, 0.25, 0.05]) * 2.0 ** np.linspace(-2, 6, 65)[:, None]

    def hues(curve):
        shown = tonemap(device.buffer(image.shape).write(image), ToneMapping("manual", 0.0, curve), Encoding(65535))
        red, green, blue = np.moveaxis(shown[0, :, :3].astype(float), -1, 0)
        return 60 * (green - blue) / np.maximum(red - blue, 1)

    assert 2 * np.ptp(hues("agx")[:48]) < np.ptp(hues("aces")[:48])


def test_not_a_number_and_infinity_show_as_magenta(device):
    image = np.ones((1, 3, 4), "f4")
    image[0, 0, 0], image[0, 1, 2] = np.nan, np.inf
    shown = tonemap(device.buffer(image.shape).write(image), ToneMapping("auto"))
    assert shown[0, 0].tolist() == shown[0, 1].tolist() == [255, 0, 255, 255]


def test_a_black_picture_stays_black(device):
    image = np.zeros((4, 4, 4), "f4")
    assert not tonemap(device.buffer(image.shape).write(image), ToneMapping("auto")).any()


def test_window_and_export_agree(gl, rng):
    image, tone = picture(rng), ToneMapping("auto", -0.5, "aces")
    texture, target = gl.texture(image.shape[1::-1]).write(image), gl.texture(image.shape[1::-1], 4, "f1")
    GlToneMapper(gl)(texture, tone, target)
    window = target.read()
    assert np.abs(window.astype(int) - tonemap(texture, tone)).max() <= 1


def test_sixteen_bits_refine_eight(device, gl, rng):
    image, tone = picture(rng), ToneMapping("auto", 0.0, "aces")
    for frame in (device.buffer(image.shape).write(image), gl.texture(image.shape[1::-1]).write(image)):
        fine, coarse = tonemap(frame, tone, Encoding(65535)), tonemap(frame, tone)
        assert fine.dtype == np.uint16 and np.abs(fine / 257 - coarse).max() <= 0.51


def test_metering_does_not_depend_on_the_parts(rng):
    image, tone = picture(rng), ToneMapping("auto")
    parts = ExposureMeter()
    for row in rng.permutation(len(image)):
        parts.add(image[row : row + 1])
    assert parts.exposure(tone) == ExposureMeter().add(image).exposure(tone)
