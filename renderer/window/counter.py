"""Frame rates for people: the median of the last second, never one frame's time."""

from collections import deque
from statistics import median

SPAN = 1.0  # seconds
RING = 240  # intervals kept for the plot


class Counter:
    """Counts frames by the moments, in seconds, at which they were complete."""

    def __init__(self):
        self._moments: deque[float] = deque()
        self.intervals: deque[float] = deque(maxlen=RING)

    def add(self, moment: float) -> None:
        if self._moments and moment - self._moments[-1] < SPAN:
            self.intervals.append(moment - self._moments[-1])
        self._moments.append(moment)
        while self._moments[0] < moment - SPAN:
            self._moments.popleft()

    def rate(self, now: float) -> float:
        """Frames a second: one over the median interval of the frames of the last second; 0 where there are none."""
        recent = [moment for moment in self._moments if moment >= now - SPAN]
        if len(recent) < 2:
            return 0.0 if not recent else 1 / SPAN
        intervals = [b - a for a, b in zip(recent, recent[1:], strict=False)]
        return 1 / max(median(intervals), 1e-9)
