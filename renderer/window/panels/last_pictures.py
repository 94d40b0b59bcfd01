"""The last picture of each file that a panel has shown: small, in the cache folder, the preview of its next start.

Pictures are known by their file and view. A folder that cannot be used is one without pictures: nothing here fails.
"""

import hashlib
from contextlib import suppress
from datetime import datetime
from itertools import accumulate
from pathlib import Path

import numpy as np

from renderer.errors import UserError
from renderer.formats.images import encode_jpeg, read_pixels
from renderer.gpu.cache import write_atomically
from renderer.scene.scene import Scene
from renderer.system.files import resolve

MAX_SIDE = 960  # pixels of a kept picture's longer side
MAX_PICTURES, MAX_BYTES = 100, 16 << 20  # in the folder; the newest displace the oldest


def _path(folder: Path, scene: Scene) -> Path:
    """Where the picture is kept: by the file, the part of it that is shown, and the view."""
    key = str(resolve(scene.path)), scene.part, repr(getattr(scene.settings, "view", None))
    return folder / f"{hashlib.sha256(repr(key).encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.jpg"


def keep(folder: Path, scene: Scene, pixels: np.ndarray) -> None:
    """Keeps (height, width, 4) uint8 sRGB pixels of a scene; every nth of a large picture, in both directions."""
    step = -(-max(pixels.shape) // MAX_SIDE)
    write_atomically(_path(folder, scene), encode_jpeg(np.ascontiguousarray(pixels[::step, ::step, :3])))
    with suppress(OSError):
        newest_first = sorted(folder.glob("*.jpg"), key=lambda path: -path.stat().st_mtime)
        sizes = accumulate([path.stat().st_size for path in newest_first])
        for number, (path, size) in enumerate(zip(newest_first, sizes, strict=True)):
            if number >= MAX_PICTURES or size > MAX_BYTES:
                path.unlink()


def find(folder: Path, scene: Scene) -> tuple[np.ndarray, str] | None:
    """The last picture of a scene, (height, width, 4) uint8, and what it is: its date if its file has changed since."""
    path = _path(folder, scene)
    with suppress(OSError, UserError):
        kept_at, changed_at = path.stat().st_mtime, scene.path.stat().st_mtime
        age = f" from {datetime.fromtimestamp(kept_at):%Y-%m-%d %H:%M}, before its file was changed"
        return read_pixels(path, MAX_SIDE**2), f"last picture{age if changed_at > kept_at else ', until it is drawn'}"
    return None
