"""flam3's filters (its filters.c): spatial filters, temporal filters and the kernels of density estimation.

postprocess.py uploads the spatial filter and the kernels; temporal.py weights temporal samples.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import Flame
from renderer.records import dataclass

MAX_KERNELS = 20000  # kernels of density estimation of a flame
SINGLE_HIT_KERNELS = 100  # hit counts below this have a kernel each; above, a kernel serves a range of counts


def _cubic(t: np.ndarray, b: float, c: float) -> np.ndarray:
    """The cubic filters of Mitchell and Netravali, 1988."""
    inner = ((12 - 9 * b - 6 * c) * t**3 + (-18 + 12 * b + 6 * c) * t * t + (6 - 2 * b)) / 6
    outer = ((-b - 6 * c) * t**3 + (6 * b + 30 * c) * t * t + (-12 * b - 48 * c) * t + (8 * b + 24 * c)) / 6
    return np.where(t < 1, inner, np.where(t < 2, outer, 0))


def _bell(u: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.where(t < 0.5, 0.75 - t * t, np.where(t < 1.5, 0.5 * (t - 1.5) ** 2, 0))


def _windowed_sinc(u: np.ndarray, t: np.ndarray, constant: float, first: float, second: float) -> np.ndarray:
    """A sinc times a window of support 1: constant + first cos(pi u) + second cos(2 pi u)."""
    window = constant + first * np.cos(np.pi * u) + second * np.cos(2 * np.pi * u)
    return np.where(t <= 1, window * np.sinc(u), 0)


def _lanczos(u: np.ndarray, t: np.ndarray, lobes: float) -> np.ndarray:
    """Lanczos' filter with its window squared: flam3 multiplies by the window twice."""
    return np.where(t < lobes, np.sinc(u) * np.sinc(u / lobes) ** 2, 0)


# Filter name -> (radius of its support, its values at signed distances u; t = |u|), in units of the filter radius.
FILTERS: dict[str, tuple[float, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "gaussian": (1.5, lambda u, t: np.exp(-2 * u * u) * np.sqrt(2 / np.pi)),
    "hermite": (1.0, lambda u, t: np.where(t < 1, (2 * t - 3) * t * t + 1, 0)),
    "box": (0.5, lambda u, t: np.where((u > -0.5) & (u <= 0.5), 1.0, 0.0)),
    "triangle": (1.0, lambda u, t: np.where(t < 1, 1 - t, 0)),
    "bell": (1.5, _bell),
    "bspline": (2.0, lambda u, t: np.where(t < 1, t**3 / 2 - t * t + 2 / 3, np.where(t < 2, (2 - t) ** 3 / 6, 0))),
    "mitchell": (2.0, lambda u, t: _cubic(t, 1 / 3, 1 / 3)),
    "blackman": (1.0, partial(_windowed_sinc, constant=0.42, first=0.5, second=0.08)),
    "catrom": (2.0, lambda u, t: _cubic(t, 0.0, 0.5)),
    "hanning": (1.0, partial(_windowed_sinc, constant=0.5, first=0.5, second=0.0)),
    "hamming": (1.0, partial(_windowed_sinc, constant=0.54, first=0.46, second=0.0)),
    "lanczos3": (3.0, partial(_lanczos, lobes=3.0)),
    "lanczos2": (2.0, partial(_lanczos, lobes=2.0)),
    "quadratic": (1.5, _bell),
    "mitchell_smooth": (2.0, lambda u, t: _cubic(t, 0.42, 0.29)),  # JWildfire's parameters b and c: b + 2 c = 1
}


def spatial_filter(flame: Flame) -> np.ndarray:
    """The spatial filter of a flame: see filter_kernel()."""
    return filter_kernel(flame.filter_shape, flame.filter_radius, flame.supersample)


def filter_kernel(shape: str, radius: float, supersample: int = 1) -> np.ndarray:
    """A filter (taps, taps) float32 in buckets, of sum 1; taps is even if and only if `supersample` is.

    Buckets are at the signed distances `u`, in units of the filter radius, as in flam3's flam3_create_spatial_filter.
    """
    support, evaluate = FILTERS[shape]
    width = 2 * support * supersample * radius
    taps = int(width) + 1
    taps += (taps ^ supersample) & 1  # both even or both odd
    adjust = support * taps / width if width > 1e-9 else 1.0
    u = ((2 * np.arange(taps) + 1) / taps - 1) * adjust
    row = evaluate(u, np.abs(u))
    kernel = np.outer(row, row)
    if not kernel.sum() > 0:  # no sample of a narrow filter lies in its support: use only the middle bucket
        kernel = np.zeros((taps, taps))
        kernel[taps // 2, taps // 2] = 1
    return np.asarray(kernel / kernel.sum(), "f4")


def density_filter_radius(flame: Flame) -> int:
    """The largest radius of density estimation in buckets; 0 if it is off."""
    if flame.estimator_radius <= 0:
        return 0
    return int(np.ceil(flame.estimator_radius)) * flame.supersample + flame.supersample - 1


@dataclass(frozen=True)
class DensityFilter:
    """Filters of density estimation: `kernels` (count, side, side) float32, one quadrant each, widest first.

    `radii`: (count,) int32, in buckets. Buckets of more than `max_hits` hits use the last filter. The four quadrants of
    a filter sum to 1, or to less if its width is an integer, because flam3 drops the outermost ring after the
    normalization.
    """

    kernels: np.ndarray
    radii: np.ndarray
    max_hits: float


def density_filter(flame: Flame) -> DensityFilter | None:
    """The filters of density estimation; None if it is off or has a single width, for which flam3 skips it."""
    if flame.estimator_radius <= 0:
        return None
    widest = flame.estimator_radius * flame.supersample + 1
    narrowest = min(flame.estimator_minimum * flame.supersample + 1, widest)
    curve, single = flame.estimator_curve, SINGLE_HIT_KERNELS
    # the hits after which the width is `narrowest`; exp(600) stands for any larger number
    count = max_hits = math.ceil(math.exp(min(math.log(widest / narrowest) / curve, 600.0)))
    if count > single:  # kernel k is for k hits, but from `single` on for (k - single)^(1 / curve) + single
        count = math.ceil(single + (count - single) ** curve) + 1
        max_hits = int(min((count - single) ** (1 / curve), 1e30)) + single
    if count > MAX_KERNELS:
        raise InputError(
            f"flame: estimator_curve is {curve:g}, which asks for {count} kernels; allowed are {MAX_KERNELS}"
        )
    widths = []
    for k in range(count):
        hits = k if k < single else (k - single) ** (1 / curve) + single
        width = widest / (hits + 1) ** curve
        widths.append(max(width, narrowest))
        if width <= narrowest:
            break
    if len(widths) <= 1:
        return None
    radii = np.array([math.ceil(width) - 1 for width in widths], "i4")
    side = int(radii.max()) + 1
    distance = np.hypot(*np.mgrid[: side + 1, : side + 1])
    kernels = np.zeros((len(widths), side, side), "f8")
    mirror_counts = np.where(np.arange(side + 1) > 0, 2, 1)
    for kernel, width, radius in zip(kernels, widths, radii, strict=True):
        d = distance / width
        weight = np.where(d <= 1, np.exp(-2 * (1.5 * d) ** 2), 0.0)  # the Gaussian of FILTERS, of support `width`
        weight /= (weight * np.outer(mirror_counts, mirror_counts)).sum()
        weight[radius + 1 :] = weight[:, radius + 1 :] = 0
        kernel[:] = weight[:side, :side]
    return DensityFilter(kernels.astype("f4"), radii, float(max_hits))


def gutter(flame: Flame, filter_width: int) -> tuple[int, int]:
    """The count of buckets beyond the picture on each side; the first bucket of the first pixel's spatial filter."""
    filter_margin = (filter_width - flame.supersample) // 2
    width = max(filter_margin, density_filter_radius(flame))
    return width, width - filter_margin


def temporal_filter(flame: Flame, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """(passes * samples,) times of temporal samples relative to the frame's, and their weights, scaled to maximum 1."""
    count = flame.passes * samples
    if count == 1:
        return np.zeros(1), np.ones(1)
    temporal_offsets = (np.arange(count) / (count - 1) - 0.5) * flame.temporal_filter_width
    if flame.temporal_filter_type == "exp":
        weights = ((np.arange(count) + 1) / count) ** abs(flame.temporal_filter_exp)
        weights = weights[::-1] if flame.temporal_filter_exp < 0 else weights
    elif flame.temporal_filter_type == "gaussian":
        (support, evaluate), half = FILTERS["gaussian"], count / 2
        u = support * np.abs(np.arange(count) - half) / half
        weights = evaluate(u, u)
    else:
        weights = np.ones(count)
    return temporal_offsets, weights / weights.max()
