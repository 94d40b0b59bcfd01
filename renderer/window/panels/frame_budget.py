"""Frame budgets: from measured costs, the resolution at which a panel is drawn so that the window stays responsive.

DrawLoop records the device time of each sample and asks for the resolution divisor and the budgets of the next draw.
Two draws may be in flight: a change waits for both, so that the budget of a draw is half the time that it may wait.
"""

import math
from collections import deque
from collections.abc import Callable

from renderer.gpu.gl import Texture
from renderer.pictures.picture import Frame

INTERACTION_SECONDS = 0.35  # after the last change, during which the user counts as interacting
INTERACTIVE_SECONDS = 0.03  # budget of a draw while the user changes something
FRAME_SECONDS = 1 / 60  # time between two refreshes of the display
GPU_TILE_SECONDS = FRAME_SECONDS  # budget of one tile on a GPU: the window draws on the same GPU
SOFTWARE_GL_TILE_SECONDS = 0.06  # budget of one tile for OpenGL rendered on the CPU
CPU_TILE_SECONDS = 0.06  # budget of one tile for a CPU as compute device: the system schedules the window beside it
ANIMATION_SECONDS = 0.25  # budget of a frame of an animated picture, in as many tiles as needed
IDLE_SECONDS = 0.25  # budget of a draw that cannot be tiled, in the window's GL; it grows with each second of rest
MAX_IDLE_SECONDS = 0.75  # largest budget of such a draw
DIVISORS = (1, 2, 4, 8)
FIRST_DIVISOR = 4  # divisor of the first draw, which measures the cost of a pixel
FIRST_DIVISOR_PIXELS = 1 << 16  # panels of at most this many pixels are drawn at full resolution first
FIRST_SECONDS = 10.0  # a first draw that is expected to take longer gets the greatest divisor
SOFTWARE_GUESS, GPU_GUESS = 5e-10, 1e-12  # guessed seconds of a pixel of work 1, with software GL and on a GPU
UNLIMITED = 1e9  # budget of a draw whose duration does not matter, in seconds
MAX_BATCH = 256  # samples of one draw
RECENT = 3  # recent costs; the smallest counts, as other work of the machine can only make a draw slower
PREVIEW_INTERVAL = 0.1  # seconds between two displays of the first sample, whose tiles are being drawn
HYSTERESIS = 1.5  # a draw may take this factor of its budget before the resolution drops
STEADY_HYSTERESIS = 4.0  # of a picture whose frames keep the pixels of earlier ones


class FrameBudget:
    """The resolution divisor of one picture, and the measured cost of a pixel at each divisor."""

    def __init__(self, fixed_divisor: int = 0, guess: float = 0.0):
        self.divisor = 1
        self.work = 1.0  # upper bound of a pixel's work in the next draw (Picture.work()); costs are proportional to it
        self._guess = guess  # seconds of a pixel of work 1, before any is measured
        self.fixed_divisor = fixed_divisor  # chosen by the user; 0 is automatic
        self._costs: dict[int, deque[float]] = {}  # the last seconds per pixel and work, by divisor
        self._latest = 0.0  # the last cost, at whatever divisor
        self._warm = False  # a draw was made: the first one compiles, so its cost is kept in _latest alone

    def keep_as_estimate(self) -> None:
        """Keeps only the last cost, as an estimate for changed settings."""
        if self._costs:
            self._costs = {self.divisor: deque([self._latest], 1)}

    @property
    def is_measured(self) -> bool:
        """True if a draw has been recorded."""
        return bool(self._costs)

    def record(self, seconds: float, pixels: int) -> None:
        """Records the device time of a sample of `pixels` pixels; NaN for one that was not timed."""
        if not math.isnan(seconds):
            self._latest = seconds / pixels / self.work
            if self._warm:
                costs = self._costs.get(self.divisor, ())
                self._costs[self.divisor] = deque([*costs, self._latest], RECENT)
        self._warm = True

    def seconds(self, pixels: float, divisor: int = 0) -> float:
        """Expected seconds for `pixels` pixels at a divisor (0: the current one), or at the last measured divisor."""
        return min(self._costs.get(divisor or self.divisor) or [self._latest]) * self.work * pixels

    def expected(self, pixels: float) -> float:
        """Expected seconds of a sample of `pixels` pixels, guessed before any is measured."""
        return self.seconds(pixels) if self._costs else self._guess * self.work * pixels

    def divisor_for(self, pixels: int, budget: float, hysteresis: float = HYSTERESIS) -> int:
        """The smallest divisor at which a panel of `pixels` pixels is drawn within `budget` seconds."""
        if self.fixed_divisor:
            return self.fixed_divisor
        if not self._costs:
            is_expensive = self._guess * self.work * pixels > FIRST_SECONDS
            return DIVISORS[-1] if is_expensive else FIRST_DIVISOR if pixels > FIRST_DIVISOR_PIXELS else 1
        for divisor in DIVISORS:
            tolerance = hysteresis if divisor == self.divisor else 1.0
            if self.seconds(pixels / divisor**2, divisor) <= budget * tolerance:
                return divisor
        return DIVISORS[-1]


def tile_budget(last_frame: Frame | None) -> float:
    """Seconds that one tile may take on the device of the last frame, if there is one."""
    if isinstance(last_frame, Texture):
        return SOFTWARE_GL_TILE_SECONDS if last_frame.gl.software else GPU_TILE_SECONDS
    # scalar_threads: one work-item does the work of a group, as on CPUs
    on_cpu = last_frame is not None and last_frame.device.properties.scalar_threads
    return CPU_TILE_SECONDS if on_cpu else GPU_TILE_SECONDS


def batch_size(last_frame: Frame | None, seconds: float, panels: int) -> int:
    """Samples of one draw, each of `seconds`: the draws in flight take at most as long together as one tile may.

    One panel has two draws in flight (MAX_IN_FLIGHT); several have up to four, of short draws (MAX_QUEUED).
    """
    return min(int(tile_budget(last_frame) / (2 * min(panels, 2)) / max(seconds, 1e-9)), MAX_BATCH)


def sample_budget(
    last_frame: Frame | None, animated: bool, unchanged_seconds: float, changed: bool, can_split: Callable[[], bool]
) -> float:
    """Seconds that a complete sample may take; slower samples are drawn at a lower resolution.

    `unchanged_seconds` have passed since the user changed something; `changed` is true until the change is displayed;
    `can_split()` is true if the picture can be drawn in tiles.
    """
    if unchanged_seconds < INTERACTION_SECONDS or changed and not animated:
        return INTERACTIVE_SECONDS  # a coarse picture of a change comes first
    if can_split():
        return ANIMATION_SECONDS if animated else UNLIMITED
    if not isinstance(last_frame, Texture):
        return UNLIMITED
    return IDLE_SECONDS if animated else min(IDLE_SECONDS * (1 + unchanged_seconds), MAX_IDLE_SECONDS)
