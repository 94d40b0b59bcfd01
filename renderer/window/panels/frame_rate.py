"""Frame rates for people: the median of the last second, never one frame's time."""

from bisect import bisect_left
from collections import deque
from operator import sub

SPAN = 1.0  # seconds
RING = 240  # intervals kept for the plot


class Counter:
    """Counts frames by the moments, in seconds, at which they were complete."""

    def __init__(self):
        self._moments: deque[float] = deque()
        self.intervals: deque[float] = deque(maxlen=RING)

    def add(self, moment: float) -> None:
        if self._moments:
            self.intervals.append(moment - self._moments[-1])
        self._moments.append(moment)
        while len(self._moments) > 2 and self._moments[0] < moment - SPAN:
            self._moments.popleft()

    def pause(self) -> None:
        """The next frame begins anew: the time since the last one is no frame time."""
        self._moments.clear()

    def rate(self, now: float) -> float:
        """Frames a second: one over the median interval of the last second's frames, or of the last two frames.

        0 when the last frame is longer ago than two such intervals and a second.
        """
        moments = list(self._moments)
        if len(moments) < 2:
            return 0.0
        recent = moments[bisect_left(moments, now - SPAN) :]
        recent = recent if len(recent) > 2 else moments[-2:]
        intervals = sorted(map(sub, recent[1:], recent))
        interval = (intervals[len(intervals) // 2] + intervals[(len(intervals) - 1) // 2]) / 2
        return 1 / max(interval, 1e-9) if now - moments[-1] < max(SPAN, 2 * interval) else 0.0
