"""Which files have poll since they were last looked at, by their times; asked a few times a second."""

from pathlib import Path

POLL_SECONDS = 0.25  # seconds between two looks


class FileWatcher:
    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._polled_at = 0.0

    def poll(self, paths: set[Path], now: float) -> set[Path]:
        """Those of `paths` that were saved since the last look; none for a path that is new here."""
        if now - self._polled_at < POLL_SECONDS:
            return set()
        self._polled_at = now
        stamps = {path: _stamp(path) for path in paths}
        poll = {path for path, stamp in stamps.items() if path in self._stamps and stamp != self._stamps[path]}
        self._stamps = stamps
        return {path for path in poll if stamps[path] is not None}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
