"""The browsers that show windows: for each, a queue of input events and a slot for the newest frame.

HTTP threads (handler.py) and the drawing thread (server.py) share these objects. Each FrameExchange has one slot for a
frame: a viewer that takes frames slowly gets fewer, and the drawing thread never waits for it.
"""

import re
import threading
import time
from collections.abc import Callable

import numpy as np

MAX_VIEWERS = 32  # windows at a time
LEFT_SECONDS = 10.0  # after a viewer's last request, until another viewer may take over the first window
FORGET_SECONDS = 60.0  # after a viewer's last request, until its window is closed
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")  # a page makes up its name
MAX_QUEUED_EVENTS = 2000  # beyond it the oldest are dropped
LONG_POLL_SECONDS = 10.0  # a request for the next frame waits at most this long
MAX_WAITS = 4  # requests of a viewer that wait for a frame; a page has one, or two as it is loaded again
VIEWER_TIMEOUT = 1.0  # seconds after the last request during which frames are still read back


class FrameExchange:
    """A thread-safe queue of events and a slot for one numbered frame."""

    def __init__(self, wake: Callable[[], None]):
        """`wake` tells the drawing thread of new events, or of a viewer that waits for a frame."""
        self._condition, self._wake = threading.Condition(), wake
        self._events: list[dict] = []
        self._frame: np.ndarray | None = None
        self._number = 0
        self.wants_text = False  # the window waits for typed text
        self.closed = self.was_ended = False  # by whom the window was closed: see close()
        # Of wait_frame(): the calls that wait now, and the number of all calls so far.
        self._waiting = self._waits = 0
        self._requested_at = -1e9  # the time of the viewer's last request, on time.perf_counter()'s clock

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
        """Stores the newest frame, unless its pixels equal the last frame's."""
        with self._condition:
            if self._frame is None or not np.array_equal(pixels, self._frame):
                self._frame, self._number = pixels, self._number + 1
                self._condition.notify_all()

    def wait_frame(self, after: int) -> tuple[int, np.ndarray | None] | None:
        """Waits for a frame whose number is not `after`: its number and pixels.

        The pixels are None if LONG_POLL_SECONDS pass without one, or MAX_WAITS later requests wait; the result is None
        after close().
        """
        self._wake()
        with self._condition:
            self._waiting, self._waits = self._waiting + 1, self._waits + 1
            displaced_by = self._waits + MAX_WAITS  # the number of the call that ends this one
            self._condition.notify_all()
            self._condition.wait_for(
                lambda: self.closed or self._number != after or self._waits >= displaced_by, LONG_POLL_SECONDS
            )
            self._waiting -= 1
            self._requested_at = time.perf_counter()
            if self.closed:
                return None
            return self._number, self._frame if self._number != after else None

    def has_viewer(self) -> bool:
        """True if a browser waits for a frame, or took one less than VIEWER_TIMEOUT ago."""
        with self._condition:
            return self._waiting > 0 or time.perf_counter() - self._requested_at < VIEWER_TIMEOUT

    def touch(self) -> None:
        """Notes a request of the viewer."""
        with self._condition:
            self._requested_at = time.perf_counter()

    def seconds_since_request(self) -> float:
        """Seconds since the viewer last asked for something; 0 while it waits for a frame."""
        with self._condition:
            return 0.0 if self._waiting else time.perf_counter() - self._requested_at

    def close(self, ended: bool = False) -> None:
        """Ends all waits for frames; `ended`: the server ends, nobody has closed the window."""
        with self._condition:
            self.was_ended = self.was_ended or ended and not self.closed
            self.closed = True
            self._condition.notify_all()


class Viewers:
    """The viewers, by the names that pages give themselves; requests and the drawing thread share it.

    The first window is open from the start to the end. It belongs to the first viewer; after that viewer has left, to
    the next new one, who goes on with the same panels. Each other viewer gets a new window.
    """

    def __init__(self) -> None:
        self.wake = threading.Event()  # set when the drawing thread has something to do
        self._lock = threading.Lock()
        self.first = FrameExchange(self.wake.set)
        self._names: dict[str, FrameExchange] = {}
        self._closed = False

    def find(self, name: str) -> FrameExchange | None:
        """The exchange of a viewer; a new name gets a window. None if MAX_VIEWERS have one."""
        with self._lock:
            known = self._names.get(name)
            if known is not None or self._closed:
                return known or self.first  # whose waits have ended, if the server is closed
            owner = next((n for n, exchange in self._names.items() if exchange is self.first), None)  # its name
            if owner is None or self.first.seconds_since_request() > LEFT_SECONDS:
                self._names.pop(owner or "", None)  # the new viewer takes its window over
                self._names[name] = self.first
            elif len(self._names) >= MAX_VIEWERS:
                return None
            else:
                self._names[name] = FrameExchange(self.wake.set)
                self.wake.set()
            self._names[name].touch()
            return self._names[name]

    def all(self) -> list[FrameExchange]:
        """The exchanges whose windows are drawn, beginning with `first`."""
        with self._lock:
            return [self.first, *(exchange for exchange in self._names.values() if exchange is not self.first)]

    def forget_gone(self) -> None:
        """Ends the exchanges of viewers that have left, except the first."""
        with self._lock:
            for name, exchange in list(self._names.items()):
                if exchange is not self.first and exchange.seconds_since_request() > FORGET_SECONDS:
                    exchange.close()
                    del self._names[name]

    def close(self) -> None:
        """Ends all waits of requests."""
        with self._lock:
            self._closed = True
            for exchange in [self.first, *self._names.values()]:
                exchange.close(ended=True)


def is_name(text: str) -> bool:
    """True if a page may give itself this name."""
    return NAME.fullmatch(text) is not None
