"""What a step of a lesson can measure: `kind` in [steps.measure], and the class whose fields are its other keys.

A measurement ends soon after MAX_SECONDS of timing; points that it did not reach are left out, and it says so.
"""

from renderer.lessons.measurements.band_lu import BandDigits, BandRate
from renderer.lessons.measurements.base import MAX_SECONDS, Bench, Finding, Measurement
from renderer.lessons.measurements.kernels import LaplacianRate, ProductLadder, ProductSizes, Roofline
from renderer.lessons.measurements.pictures import FrameRate, LiveRays, Noise
from renderer.lessons.measurements.sums import SumError, SumRate

MEASUREMENTS: dict[str, type[Measurement]] = {
    "frame_rate": FrameRate,
    "noise": Noise,
    "live_rays": LiveRays,
    "sum_error": SumError,
    "sum_rate": SumRate,
    "band_rate": BandRate,
    "band_digits": BandDigits,
    "product_ladder": ProductLadder,
    "product_sizes": ProductSizes,
    "roofline": Roofline,
    "laplacian": LaplacianRate,
}

__all__ = ["MAX_SECONDS", "MEASUREMENTS", "Bench", "Finding", "Measurement"]
