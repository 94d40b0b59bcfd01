"""The kinds of measurements of lessons: `kind` in [steps.measure] selects a class of MEASUREMENTS.

The table's other keys are the fields of the class. A measurement ends soon after MAX_SECONDS of timing; its Finding
omits the points that it did not reach and counts them in a note.
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
