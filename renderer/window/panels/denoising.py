"""Denoising of finished pictures by OIDN on another thread, so that the window stays responsive.

DrawLoop starts it after the last sample and polls it each frame.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from renderer.gpu.gl import Texture
from renderer.images.denoise import denoise
from renderer.window.panels.row_tiles import DrawKey, RowTiles


class Denoiser:
    """Denoises one picture at a time; `wake` is called on the thread of `executor` when it is done."""

    def __init__(self, executor: ThreadPoolExecutor, wake: Callable[[], None]):
        self._executor, self._wake = executor, wake
        self.enabled = False  # finished pictures are denoised
        self.displayed = False  # the displayed picture is denoised
        self._running: tuple[Future[np.ndarray], DrawKey] | None = None

    def start(self, frame: Texture, tiles: RowTiles, key: DrawKey) -> None:
        """Starts with the linear `frame` of `key`; the picture's albedo and normal are the auxiliary images of OIDN."""
        picture = tiles.picture.clone() if tiles.count > 1 else tiles.picture
        layers = picture.layers(key.settings, key.size)
        future = self._executor.submit(denoise, frame.read(), layers["albedo"], layers["normal"])
        future.add_done_callback(lambda _: self._wake())
        self._running = future, key

    def poll(self, key: DrawKey | None) -> np.ndarray | None:
        """Returns the denoised picture of `key` once it is done, otherwise None. Raises what OIDN raised."""
        if self._running is None or not self._running[0].done():
            return None
        (future, denoised_key), self._running = self._running, None
        image = future.result()
        return image if denoised_key == key and self.enabled else None
