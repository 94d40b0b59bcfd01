"""Exact and pairwise sums by OpenGL render-to-texture passes, the method of halving from before compute languages.

A lesson, run by `rayfold sum --device gl`. An RGBA32F texel stores an expansion: four floats whose exact sum is the
value. Each pass of numerics/sum_exact.frag reduces 16 texels to one expansion without rounding.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from renderer.errors import UnavailableError, UserError
from renderer.formats.npy import ArraySource, as_source
from renderer.gpu.gl import GlContext, Texture
from renderer.numerics.sums.aggregates import PairwiseSum, pairwise_error
from renderer.numerics.sums.device_sums import Numbers, read_numbers
from renderer.numerics.sums.exact_sum import NOT_NEGATIVE_ZERO, ExactSum, exact_sum_host
from renderer.numerics.texture_reduction import Reduction

TEXELS = 16  # input texels of one output texel
WIDTH = 2048  # texels; the input texture has 2048 x 2048 texels, 16 M floats
CHUNK = 4 * WIDTH * WIDTH
# Ranges of magnitudes in which all rounding errors are normal floats: of summands, of factors, of expansions.
SAFE_RANGE = (2.0**-100, 2.0**100)
SAFE_FACTOR_RANGE = (2.0**-39, 2.0**40)
SAFE_EXPANSION_RANGE = (0.0, 2.0**126)


def array_sum_gl(gl: GlContext, numbers: Numbers, y: Numbers = None, magnitudes: bool = False) -> ExactSum:
    """The exact sum of float32 numbers, of their products with `y`, or of their magnitudes, as from array_sum()."""
    if gl.version < 400:
        raise UnavailableError(f"{gl.renderer}: GLSL 3.30 has no `precise`; exact sums in passes need GL 4.0")
    sources = [as_source(a) for a in (numbers, y) if a is not None]
    if any(x.dtype != np.float32 for x in sources) or len({x.count for x in sources}) > 1:
        listed = ", ".join(f"{x.dtype} ({x.count},)" for x in sources)
        raise UserError(f"a sum in passes of {listed}: float32 arrays of one size are wanted")
    result = ExactSum()
    for chunk in _chunks(sources):
        result += _sum_chunk(gl, [np.abs(a) for a in chunk] if magnitudes else chunk)
    return result


def pairwise_sum_gl(gl: GlContext, numbers: Numbers) -> PairwiseSum:
    """The sum of float32 numbers by passes that add 2 x 2 texels, with the report of aggregates.pairwise_sum()."""
    x, reduction = as_source(numbers), Reduction(gl, 2)
    chunk_sums, passes = [], 0
    for (chunk,) in _chunks([x]):
        image = _texture(gl, chunk)
        passes = max(passes, len(reduction.sizes(image.size)))
        chunk_sums.append(reduction.reduce("sum", image).read().ravel())
    with np.errstate(all="ignore"):
        value = np.add.reduce(np.concatenate(chunk_sums), dtype="f4")
    # The most additions between a number and the result: three for the four texels of each pass, then all channels.
    depth = 3 * passes + 4 * len(chunk_sums) - 1
    exact, magnitude = array_sum_gl(gl, x), array_sum_gl(gl, x, magnitudes=True)
    return pairwise_error(float(value), depth, Fraction(1, 1 << 24), exact, magnitude)


def _chunks(sources: list[ArraySource]) -> Iterator[list[np.ndarray]]:
    """The numbers of each source, float32 (n,), chunk by chunk."""
    for start in range(0, sources[0].count, CHUNK):
        yield [read_numbers(x, start, min(CHUNK, x.count - start)) for x in sources]


def _texture(gl: GlContext, numbers: np.ndarray) -> Texture:
    """A texture with four numbers per texel, padded with -0, which changes no sum."""
    texels = -(-numbers.size // 4)
    width = min(texels, WIDTH)
    padded = np.full(4 * width * -(-texels // width), -0.0, "f4")
    padded[: numbers.size] = numbers
    image = padded.reshape(-1, width, 4)
    return gl.texture((width, len(image))).write(image)


def _sum_chunk(gl: GlContext, chunk: list[np.ndarray]) -> ExactSum:
    """The exact sum of the numbers of one texture, or of the products of the numbers of two."""
    texels = -(-chunk[0].size // 4)
    images = [_texture(gl, numbers) for numbers in chunk]
    result, limits = ExactSum(), SAFE_FACTOR_RANGE if len(images) == 2 else SAFE_RANGE
    while True:
        images, fallback_sum = _draw_pass(gl, images, texels, limits)
        result += fallback_sum
        texels = -(-texels // TEXELS)
        if texels == 1:
            break
        limits = SAFE_EXPANSION_RANGE
    result += exact_sum_host(images[0].read()[0, 0])
    negative_zero = len(chunk) == 1 and bool(((chunk[0] == 0) & np.signbit(chunk[0])).all())
    flags = result.flags & ~NOT_NEGATIVE_ZERO | (0 if negative_zero else NOT_NEGATIVE_ZERO)
    return ExactSum(result.significand, result.exponent, flags, chunk[0].size)


def _draw_pass(
    gl: GlContext, images: list[Texture], texels: int, limits: tuple[float, float]
) -> tuple[list[Texture], ExactSum]:
    """The texture of expansions after one pass, and the sum, computed on the host, of the inputs of flagged texels."""
    count = -(-texels // TEXELS)
    width = min(count, WIDTH)
    size = (width, -(-count // width))
    expansions, flags = gl.texture(size), gl.texture(size)
    inputs: dict[str, Any] = dict(zip(("numbers", "factors"), images, strict=False))
    draw = gl.render_pass("numerics/sum_exact.frag", TEXELS=TEXELS, DOT=int(len(images) == 2))
    draw((expansions, flags), **inputs, texels=texels, width=width, min_magnitude=limits[0], max_magnitude=limits[1])
    rejected = np.flatnonzero(flags.read()[..., 0].ravel()[:count])
    if not rejected.size:
        return [expansions], ExactSum()
    indices = (rejected[:, None] * TEXELS + np.arange(TEXELS)).ravel()  # of the texels that they read
    indices = indices[indices < texels]
    operands = [image.read().reshape(-1, 4)[indices].astype("f8") for image in images]
    with np.errstate(invalid="ignore"):
        terms = operands[0] if len(operands) == 1 else operands[0] * operands[1]  # float32 factors: exact in float64
    return [expansions], exact_sum_host(terms)
