"""The browsers that show windows: each has its own frames and events, so its own window on the drawing thread."""

import re
import threading

from renderer.window.remote.exchange import FrameExchange

MAX_VIEWERS = 32  # windows at a time
LEFT_SECONDS = 10.0  # after a viewer's last request, when another may take over the first window
FORGET_SECONDS = 60.0  # after a viewer's last request, when its window is closed
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")  # that a page gives itself


class Viewers:
    """Who watches, by the names that pages give themselves; requests and the drawing thread share it.

    The first window is there from the start and stays: it belongs to the first viewer, and once that one has left to
    the next new one, who finds what was done. Every other viewer has a window of its own.
    """

    def __init__(self):
        self.wake = threading.Event()  # set when the drawing thread has something to do
        self._lock = threading.Lock()
        self.first = FrameExchange(self.wake.set)
        self._names: dict[str, FrameExchange] = {}
        self._closed = False

    def find(self, name: str) -> FrameExchange | None:
        """The exchange of a viewer; a new name gets a window. None where there are MAX_VIEWERS."""
        with self._lock:
            known = self._names.get(name)
            if known is not None or self._closed:
                return known or self.first
            owner = next((n for n, exchange in self._names.items() if exchange is self.first), None)
            if owner is None or self.first.seconds_since_request() > LEFT_SECONDS:
                self._names.pop(owner or "", None)
                self._names[name] = self.first
            elif len(self._names) >= MAX_VIEWERS:
                return None
            else:
                self._names[name] = FrameExchange(self.wake.set)
                self.wake.set()
            self._names[name].touch()
            return self._names[name]

    def all(self) -> list[FrameExchange]:
        """The exchanges whose windows are to be drawn, the first one first."""
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
                exchange.close()


def is_name(text: str) -> bool:
    """Whether a page may give itself this name."""
    return NAME.fullmatch(text) is not None
