"""The exact sum by GLSL render-to-texture passes: paper 2's halving as it was done before there was a compute language.

Expansions of four floats travel in RGBA32F texels; each pass turns 64 floats into one expansion, without any error.
"""

import numpy as np

from renderer import MachineCannot, UserError
from renderer.compute.exact import NOT_MINUS_ZERO, Total, total_of

TEXELS = 16  # inputs of one texel
WIDTH = 2048  # of the input texture: 2048 x 2048 texels are 16 M floats
NORMAL = (2.0**-100, 2.0**100)  # errors of sums of such floats are normal floats
NORMAL_FACTORS = (2.0**-39, 2.0**40)  # errors of products of such floats are normal floats
NORMAL_EXPANSIONS = (0.0, 2.0**126)


def total_in_passes(gl, numbers, other=None) -> Total:
    """The exact sum of float32 numbers, or of their products with `other`, as sums.total gives it."""
    if gl.version < 400:
        raise MachineCannot(f"{gl.renderer}: GLSL 3.30 has no `precise`; exact sums in passes need GL 4.0")
    flat = [np.ascontiguousarray(a).ravel() for a in (numbers, other) if a is not None]
    if any(a.dtype != np.float32 for a in flat) or len({a.size for a in flat}) > 1:
        told = ", ".join(f"{a.dtype} ({a.size},)" for a in flat)
        raise UserError(f"a sum in passes of {told}: float32 arrays of one size are wanted")
    total = Total(0, 0, 0, 0)
    for start in range(0, flat[0].size, 4 * WIDTH * WIDTH):
        total += _block(gl, [a[start : start + 4 * WIDTH * WIDTH] for a in flat])
    return total


def _block(gl, flat: list[np.ndarray]) -> Total:
    """The Total of what fits one texture."""
    count, texels = flat[0].size, -(-flat[0].size // 4)
    height = -(-texels // WIDTH)
    images = []
    for numbers in flat:
        padded = np.full(4 * WIDTH * height, -0.0, "f4")
        padded[:count] = numbers
        images.append(gl.texture((WIDTH, height)).write(padded.reshape(height, WIDTH, 4)))
    total, limits = Total(), NORMAL_FACTORS if len(images) == 2 else NORMAL
    while True:
        images, left = _pass(gl, images, texels, limits)
        total += left
        texels = -(-texels // TEXELS)
        if texels == 1:
            break
        limits = NORMAL_EXPANSIONS
    total += total_of(images[0].read()[0, 0])
    minus_zero = len(flat) == 1 and bool(((flat[0] == 0) & np.signbit(flat[0])).all())
    flags = total.flags & ~NOT_MINUS_ZERO | (0 if minus_zero else NOT_MINUS_ZERO)
    return Total(total.units, total.exponent, flags, count)


def _pass(gl, images: list, texels: int, limits: tuple[float, float]):
    """The next level in a list of one texture, and the Total of the inputs that it could not take."""
    count = -(-texels // TEXELS)
    width = min(count, WIDTH)
    size = (width, -(-count // width))
    expansions, flags = gl.texture(size), gl.texture(size)
    words = dict(numbers=images[0], texels=texels, width=width, least=limits[0], most=limits[1])
    if len(images) == 2:
        words["factors"] = images[1]
    draw = gl.shader("sum.frag", TEXELS=TEXELS, DOT=int(len(images) == 2))
    draw((expansions, flags), **words)
    places = np.flatnonzero(flags.read()[..., 0].ravel()[:count])
    left = Total()
    if places.size:
        which = (places[:, None] * TEXELS + np.arange(TEXELS)).ravel()
        which = which[which < texels]
        operands = [image.read().reshape(-1, 4)[which].astype("f8") for image in images]
        left = total_of(operands[0] if len(operands) == 1 else _products(*operands))
    return [expansions], left


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return x * y  # float32 factors: exact in float64
