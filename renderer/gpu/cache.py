"""The disk cache of compiled kernels: each entry carries a checksum, and a damaged entry is recompiled, never run."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from renderer.paths import ensure_cache, why_unusable

CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Returns the cache's folder: RAYFOLD_CACHE, or rayfold/ in the user's cache folder."""
    root = os.environ.get("RAYFOLD_CACHE")
    return Path(root) if root and not why_unusable(root) else ensure_cache() / "rayfold"


def read_entry(path: Path) -> bytes | None:
    """Reads the content that write_entry() stored; None if the entry is missing or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[CHECKSUM_BYTES:]
    return content if hashlib.sha256(content).digest() == data[:CHECKSUM_BYTES] else None


def write_entry(path: Path, content: bytes) -> None:
    """Stores an entry: a checksum, then the content."""
    write_atomically(path, hashlib.sha256(content).digest() + content)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file of the cache completely or not at all; failures are ignored, since the cache is optional."""
    name = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            name = file.name
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
