"""The exact sum by GLSL render-to-texture passes: paper 2's halving as it was done before there was a compute language.

Expansions of four floats travel in RGBA32F texels; each pass turns 64 floats into one expansion, without any error.
"""

from fractions import Fraction

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.formats.npy import source_of
from renderer.numerics.sums.aggregates import Halving, halving_beside
from renderer.numerics.sums.exact_sum import NOT_MINUS_ZERO, Total, total_of
from renderer.numerics.texture_reduction import Reduction

TEXELS = 16  # inputs of one texel
WIDTH = 2048  # of the input texture: 2048 x 2048 texels are 16 M floats
BLOCK = 4 * WIDTH * WIDTH
NORMAL = (2.0**-100, 2.0**100)  # errors of sums of such floats are normal floats
NORMAL_FACTORS = (2.0**-39, 2.0**40)  # errors of products of such floats are normal floats
NORMAL_EXPANSIONS = (0.0, 2.0**126)


def total_in_passes(gl, numbers, other=None, absolute=False) -> Total:
    """The exact sum of float32 numbers, or of their products with `other`, as sums.total gives it."""
    if gl.version < 400:
        raise UnavailableError(f"{gl.renderer}: GLSL 3.30 has no `precise`; exact sums in passes need GL 4.0")
    sources = [source_of(a) for a in (numbers, other) if a is not None]
    if any(x.dtype != np.float32 for x in sources) or len({x.count for x in sources}) > 1:
        told = ", ".join(f"{x.dtype} ({x.count},)" for x in sources)
        raise UserError(f"a sum in passes of {told}: float32 arrays of one size are wanted")
    total = Total(0, 0, 0, 0)
    for flat in _blocks(sources):
        total += _block(gl, [np.abs(a) for a in flat] if absolute else flat)
    return total


def halving_in_passes(gl, numbers) -> Halving:
    """The sum of float32 numbers by passes that add 2 x 2 texels, as aggregates.halving tells of the paper's."""
    x, reduction = source_of(numbers), Reduction(gl, 2)
    parts, passes = [], 0
    for (flat,) in _blocks([x]):
        image = _image(gl, flat)
        passes = max(passes, len(reduction.sizes(image.size)))
        parts.append(reduction.sum(image).read().ravel())
    with np.errstate(all="ignore"):
        value = np.add.reduce(np.concatenate(parts), dtype="f4")
    depth = 3 * passes + 4 * len(parts) - 1  # additions that a number goes through, at most
    true, magnitude = total_in_passes(gl, x), total_in_passes(gl, x, absolute=True)
    return halving_beside(float(value), depth, Fraction(1, 1 << 24), true, magnitude)


def _blocks(sources):
    """The numbers of each source, float32 (n,), block by block."""
    for start in range(0, sources[0].count, BLOCK):
        flat = [np.empty(min(BLOCK, x.count - start), "f4") for x in sources]
        for x, numbers in zip(sources, flat, strict=True):
            x.read_into(numbers.view("u1"), start)
        yield flat


def _image(gl, numbers: np.ndarray):
    """A texture of numbers, four a texel, padded with -0, which changes no sum."""
    texels = -(-numbers.size // 4)
    width = min(texels, WIDTH)
    padded = np.full(4 * width * -(-texels // width), -0.0, "f4")
    padded[: numbers.size] = numbers
    image = padded.reshape(-1, width, 4)
    return gl.texture((width, len(image))).write(image)


def _block(gl, flat: list[np.ndarray]) -> Total:
    """The Total of what fits one texture."""
    count, texels = flat[0].size, -(-flat[0].size // 4)
    images = [_image(gl, numbers) for numbers in flat]
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
    draw = gl.render_pass("numerics/sum_exact.frag", TEXELS=TEXELS, DOT=int(len(images) == 2))
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
