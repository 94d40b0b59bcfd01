"""The display of a panel: the linear frame drawn last, its tone mapped texture, and the denoising of finished pictures.

DrawLoop shows frames, starts the denoiser after the last sample and polls it each frame; the main loop calls update()
when the tone settings may have changed.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from renderer.gpu.gl import GlContext, Texture
from renderer.images.denoise import denoise
from renderer.images.tone_mapping import GlToneMapper
from renderer.scene.scene import ToneMapping
from renderer.window.panels.row_tiles import DrawKey, RowTiles


class Display:
    """The displayed picture of one panel; it stays while the next picture is opened."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self.frame: Texture | None = None  # linear
        self.texture: Texture | None = None  # 8 bits per channel, tone mapped
        self._tone_mapper: GlToneMapper | None = None
        self._applied_tone: ToneMapping | None = None  # in the texture
        self._mapped_at = 0.0  # seconds of the clock
        self.version = 0  # counts how often the texture was mapped
        self.is_new = False  # the window has not drawn the texture, or an error over it, yet

    def reset(self) -> None:
        """Drops the frame, and takes a new tone mapper, which compiles its shaders anew; the texture stays."""
        self.frame, self._tone_mapper, self._applied_tone = None, GlToneMapper(self._gl), None

    def show(self, frame: Texture, tone: ToneMapping, now: float, interval: float = 0.0) -> None:
        """Takes a linear frame, and maps it to the texture if `interval` seconds have passed since the last mapping."""
        self.frame = frame
        if now - self._mapped_at >= interval:
            self._applied_tone, self._mapped_at = None, now
            self.update(tone)

    def update(self, tone: ToneMapping) -> None:
        """Maps the frame to the texture again if the tone settings changed."""
        if self.frame is None or self._tone_mapper is None or self._applied_tone == tone:
            return
        if self.texture is None or self.texture.size != self.frame.size:
            self.texture = self._gl.texture(self.frame.size, 4, "f1")
        self._tone_mapper(self.frame, tone, self.texture)
        self.is_new, self.version = True, self.version + 1
        self._applied_tone = tone


class Denoiser:
    """Denoises one picture at a time by OIDN on the thread of `executor`, where `wake` is called when it is done."""

    def __init__(self, executor: ThreadPoolExecutor, wake: Callable[[], None]):
        self._executor, self._wake = executor, wake
        self.enabled = False  # finished pictures are denoised
        self.displayed = False  # the displayed picture is denoised
        self._running: tuple[Future[np.ndarray], DrawKey] | None = None

    def start(self, frame: Texture, tiles: RowTiles, key: DrawKey) -> None:
        """Starts with the linear `frame` of `key`; the picture's albedo and normal are the auxiliary images of OIDN."""
        # In tiles, the picture has samples of the first tile alone, and layers() of all rows would discard them
        picture = tiles.picture.clone() if tiles.count > 1 else tiles.picture
        layers = picture.layers(key.settings, key.size)
        future = self._executor.submit(denoise, frame.read(), albedo=layers["albedo"], normal=layers["normal"])
        future.add_done_callback(lambda _: self._wake())
        self._running = future, key

    def poll(self, key: DrawKey | None) -> np.ndarray | None:
        """Returns the denoised picture of `key` once it is done, otherwise None. Raises what OIDN raised."""
        if self._running is None or not self._running[0].done():
            return None
        (future, denoised_key), self._running = self._running, None
        image = future.result()
        return image if denoised_key == key and self.enabled else None
