"""Which files have changed since they were last looked at, by their times; asked a few times a second."""

from pathlib import Path

EVERY = 0.25  # seconds between two looks


class Watch:
    def __init__(self):
        self._stamps: dict[Path, tuple[int, int] | None] = {}
        self._looked = 0.0

    def changed(self, paths: set[Path], now: float) -> set[Path]:
        """Those of `paths` that were saved since the last look; none for a path that is new here."""
        if now - self._looked < EVERY:
            return set()
        self._looked = now
        stamps = {path: _stamp(path) for path in paths}
        changed = {path for path, stamp in stamps.items() if path in self._stamps and stamp != self._stamps[path]}
        self._stamps = stamps
        return {path for path in changed if stamps[path] is not None}


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
