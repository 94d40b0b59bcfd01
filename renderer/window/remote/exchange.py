"""What the drawing thread and the HTTP threads of one viewer exchange: input events in, the newest frame out.

There is one slot for a frame: a viewer that takes frames slowly gets fewer, and nobody waits for it.
"""

import threading
import time
from collections.abc import Callable

import numpy as np

MAX_QUEUED_EVENTS = 2000  # more are dropped, oldest first
LONG_POLL_SECONDS = 10.0  # a request for the next frame waits at most this long
VIEWER_TIMEOUT = 1.0  # seconds after the last request during which frames are still read back


class FrameExchange:
    """A thread-safe event queue and a slot for one numbered frame."""

    def __init__(self, wake: Callable[[], None]):
        """`wake` notifies the drawing thread that there are events, or a viewer that waits for a frame."""
        self._condition, self._wake = threading.Condition(), wake
        self._events: list[dict] = []
        self._frame: np.ndarray | None = None
        self._number = 0
        self.wants_text = False  # whether the window waits for typed text
        self.closed = False
        self._waiting = 0
        self._requested_at = -1e9

    def post_events(self, events: list[dict]) -> None:
        """Queues events for the drawing thread."""
        with self._condition:
            self._events = (self._events + events)[-MAX_QUEUED_EVENTS:]
            self._requested_at = time.perf_counter()
        self._wake()

    def take_events(self) -> list[dict]:
        """Returns the events since the last call."""
        with self._condition:
            events, self._events = self._events, []
            return events

    def publish_frame(self, pixels: np.ndarray) -> None:
        """Stores the newest frame; pixels equal to the last frame's are not a new frame."""
        with self._condition:
            if self._frame is None or not np.array_equal(pixels, self._frame):
                self._frame, self._number = pixels, self._number + 1
                self._condition.notify_all()

    def wait_frame(self, after: int) -> tuple[int, np.ndarray | None] | None:
        """Waits for a frame whose number is not `after`: its number and pixels.

        The pixels are None if LONG_POLL_SECONDS pass without one; the result is None after close().
        """
        self._wake()
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self.closed or self._number != after, LONG_POLL_SECONDS)
            self._waiting -= 1
            self._requested_at = time.perf_counter()
            if self.closed:
                return None
            return self._number, self._frame if self._number != after else None

    def has_viewer(self) -> bool:
        """Whether a browser waits for a frame or took one less than VIEWER_TIMEOUT ago."""
        with self._condition:
            return self._waiting > 0 or time.perf_counter() - self._requested_at < VIEWER_TIMEOUT

    def touch(self) -> None:
        """Counts as a request."""
        with self._condition:
            self._requested_at = time.perf_counter()

    def seconds_since_request(self) -> float:
        """Seconds since the viewer last asked for something; 0 while it waits for a frame."""
        with self._condition:
            return 0.0 if self._waiting else time.perf_counter() - self._requested_at

    def close(self) -> None:
        """Ends all waits for frames."""
        with self._condition:
            self.closed = True
            self._condition.notify_all()
