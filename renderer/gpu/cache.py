"""The folder of compiled kernels, whose entries carry a checksum: a damaged one is made again, not run."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from renderer.paths import ensure_cache, why_unusable

CHECKSUM_BYTES = hashlib.sha256().digest_size


def cache_folder() -> Path:
    """Where compiled kernels are kept: RAYFOLD_CACHE, or rayfold/ in the user's cache folder."""
    root = os.environ.get("RAYFOLD_CACHE")
    return Path(root) if root and not why_unusable(root) else ensure_cache() / "rayfold"


def read_entry(path: Path) -> bytes | None:
    """What write_entry() has written; None where there is nothing, or where it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[CHECKSUM_BYTES:]
    return content if hashlib.sha256(content).digest() == data[:CHECKSUM_BYTES] else None


def write_entry(path: Path, content: bytes) -> None:
    """Writes an entry behind its checksum."""
    write_atomically(path, hashlib.sha256(content).digest() + content)


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file of the cache, whole or not at all; a cache that cannot be written is no error."""
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
