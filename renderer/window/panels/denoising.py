"""Denoising of a finished picture on another thread, so that the window stays responsive."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from renderer.gpu.gl import Texture
from renderer.images.denoise import denoise
from renderer.pictures.picture import Picture


class Denoiser:
    """Denoises one picture at a time; `wake` is called on the thread of `executor` when it is done."""

    def __init__(self, executor: ThreadPoolExecutor, wake: Callable[[], None]):
        self._executor, self._wake = executor, wake
        self._running: tuple[Future[np.ndarray], Any] | None = None

    def start(self, frame: Texture, picture: Picture, key: Any) -> None:
        """Starts with the linear `frame` of `picture`, whose albedo and normal are the auxiliary images of OIDN."""
        layers = picture.layers(key.settings, key.size)
        future = self._executor.submit(denoise, frame.read(), layers["albedo"], layers["normal"])
        future.add_done_callback(lambda _: self._wake())
        self._running = future, key

    def poll(self) -> tuple[np.ndarray, Any] | None:
        """The denoised picture and its key, once; None while there is none. Raises what the denoiser raised."""
        if self._running is None or not self._running[0].done():
            return None
        (future, key), self._running = self._running, None
        return future.result(), key
