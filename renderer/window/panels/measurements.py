"""The measurements of one panel: samples so far, their durations, the frame rate, and the picture's report.

The main window counts its frames with the same FrameRateCounter.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from operator import sub
from statistics import median
from typing import NamedTuple

import numpy as np

REPORT_INTERVAL = 0.5  # least seconds between two reports of a picture; a report may read from the device
# Reports are read in intervals of this fraction of the time since the first sample: they change less and less.
REPORT_FRACTION = 0.25
MEDIAN_SECONDS = 1.0  # a frame rate is the median over this time: the time of one frame is not readable
REFRESH_SECONDS = 0.1  # between two medians of MIN_COUNTED or more frames: nobody reads numbers that change faster
MIN_COUNTED = 20  # with fewer frames in the last second, each frame takes a new median
HISTORY_LENGTH = 240  # intervals kept for the plot
# Samples that come later than this, for their device time, were not drawn in a row: a compiler worked, or one paused.
REST_SECONDS, REST_FACTOR = 1.0, 8.0


class Row(NamedTuple):
    """A reported value as it is shown."""

    name: str
    label: str
    text: str
    series: np.ndarray | None  # a list of numbers as float32; None for other values


class Measurements:
    """The figures of a panel's draws that the status bar and the statistics show."""

    def __init__(self) -> None:
        self.samples = self.target_samples = 0
        self.device = ""  # name of the device that drew the last tile
        self.transfer = ""  # how frames reach the window's GL
        self.report: dict[str, object] = {}
        self.rows: list[Row] = []  # the report as the window shows it
        self.frame_rate = FrameRateCounter()
        self.sample_seconds = 0.0  # device time of the last sample
        self.sample_rate = FrameRateCounter()
        self.sample_history: deque[float] = deque(maxlen=HISTORY_LENGTH)
        self._reported_at = 0.0

    def add_samples(self, count: int, seconds: float, timestamp: float) -> None:
        """Records `count` whole samples, complete at `timestamp`; `seconds` of device time, or NaN if it is unknown."""
        if not math.isnan(seconds):
            self.sample_seconds = seconds / count
            self.sample_history.append(self.sample_seconds)
        self.samples += count
        # NaN, an untimed draw, counts as a pause too: its rate would not be the device's.
        if not timestamp - self.sample_rate.last < REST_SECONDS + REST_FACTOR * seconds:
            self.sample_rate.pause()
        self.sample_rate.add(timestamp, count)

    def needs_report(self, timestamp: float, seconds: float) -> bool:
        """True if a new report is due, `seconds` seconds after the first sample."""
        is_due = timestamp - self._reported_at > max(REPORT_INTERVAL, REPORT_FRACTION * seconds)
        return is_due or self.samples == self.target_samples

    def update_report(self, report: Callable[[], dict[str, object]], timestamp: float, seconds: float) -> None:
        """Takes a new report if it is due."""
        if self.needs_report(timestamp, seconds):
            self.report, self._reported_at = report(), timestamp
            self.rows = report_rows(self.report)


class FrameRateCounter:
    """Counts frames by the timestamps, in seconds, at which they were complete."""

    def __init__(self):
        self._frames = deque[tuple[float, int]]()  # timestamp and count of each
        self.intervals: deque[float] = deque(maxlen=HISTORY_LENGTH)
        self._interval, self._measured_at = 0.0, -1e9  # the last median, and the time at which it was taken

    def add(self, timestamp: float, count: int = 1) -> None:
        """Counts `count` frames or samples that were complete at `timestamp`."""
        if self._frames:
            self.intervals.append(timestamp - self.last)
        self._frames.append((timestamp, count))
        while len(self._frames) > 2 and self._frames[0][0] < timestamp - MEDIAN_SECONDS:
            self._frames.popleft()

    @property
    def last(self) -> float:
        """The time of the last frame; minus infinity before the first."""
        return self._frames[-1][0] if self._frames else -math.inf

    def pause(self) -> None:
        """Excludes the time until the next frame: it is not a frame time."""
        self._frames.clear()

    def mean_rate(self) -> float:
        """Counts per second over the last MEDIAN_SECONDS, without the first one's; 0 until there are two timestamps."""
        if len(self._frames) < 2 or self.last == self._frames[0][0]:
            return 0.0
        return sum(count for _, count in list(self._frames)[1:]) / (self.last - self._frames[0][0])

    def rate(self, now: float) -> float:
        """Frames per second: the inverse of the median interval of the last second's frames, or of the last two.

        It is 0 once no frame was counted for a second and for two such intervals.
        """
        if len(self._frames) < 2:
            return 0.0
        if not 0 <= now - self._measured_at < REFRESH_SECONDS or len(self._frames) < MIN_COUNTED:
            self._interval, self._measured_at = self._median(now), now
        interval = self._interval
        return 1 / max(interval, 1e-9) if now - self.last < max(MEDIAN_SECONDS, 2 * interval) else 0.0

    def _median(self, now: float) -> float:
        timestamps = [timestamp for timestamp, _ in self._frames]
        recent = timestamps[bisect_left(timestamps, now - MEDIAN_SECONDS) :]
        recent = recent if len(recent) > 2 else timestamps[-2:]
        return median(map(sub, recent[1:], recent))


def report_rows(report: dict[str, object]) -> list[Row]:
    """The rows of a picture's report without empty values, and without the samples, which the panel counts."""
    rows = []
    for name, value in report.items():
        if name == "samples" or value is None or isinstance(value, (str, list, tuple, dict)) and not value:
            continue
        numbers = value if isinstance(value, (list, tuple)) else ()
        is_series = len(numbers) > 1 and all(isinstance(number, (int, float)) for number in numbers)
        series = np.asarray(numbers, "f4") if is_series else None
        rows.append(Row(name, name.replace("_", " "), readable(value), series))
    return rows


def readable(value: object) -> str:
    """A reported value as text: thousands separated, floats with four digits, tables and lists in one line."""
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {readable(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "  ".join(map(readable, value))
    return str(value)
