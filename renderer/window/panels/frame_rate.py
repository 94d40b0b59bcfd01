"""Frame rates as a person reads them: the median over the last second, not the time of one frame."""

from bisect import bisect_left
from collections import deque
from operator import sub
from statistics import median

WINDOW_SECONDS = 1.0  # over which the median is taken
REFRESH_SECONDS = 0.1  # between two medians of many frames: nobody reads numbers that change faster
MIN_COUNTED = 20  # frames that are many
HISTORY_LENGTH = 240  # intervals kept for the plot


class FrameRateCounter:
    """Counts frames by the timestamps, in seconds, at which they were complete."""

    def __init__(self):
        self._timestamps: deque[float] = deque()
        self.intervals: deque[float] = deque(maxlen=HISTORY_LENGTH)
        self._interval, self._measured_at = 0.0, -1e9  # the median, and when it was taken

    def add(self, timestamp: float) -> None:
        """Counts a frame that was complete at `timestamp`."""
        if self._timestamps:
            self.intervals.append(timestamp - self._timestamps[-1])
        self._timestamps.append(timestamp)
        while len(self._timestamps) > 2 and self._timestamps[0] < timestamp - WINDOW_SECONDS:
            self._timestamps.popleft()

    def pause(self) -> None:
        """Excludes the time until the next frame: it is not a frame time."""
        self._timestamps.clear()

    def rate(self, now: float) -> float:
        """Frames per second: the inverse of the median interval of the last second's frames, or of the last two.

        It is 0 once no frame was counted for two such intervals and a second.
        """
        if len(self._timestamps) < 2:
            return 0.0
        if not 0 <= now - self._measured_at < REFRESH_SECONDS or len(self._timestamps) < MIN_COUNTED:
            self._interval, self._measured_at = self._median(now), now
        last, interval = self._timestamps[-1], self._interval
        return 1 / max(interval, 1e-9) if now - last < max(WINDOW_SECONDS, 2 * interval) else 0.0

    def _median(self, now: float) -> float:
        timestamps = list(self._timestamps)
        recent = timestamps[bisect_left(timestamps, now - WINDOW_SECONDS) :]
        recent = recent if len(recent) > 2 else timestamps[-2:]
        return median(map(sub, recent[1:], recent))
