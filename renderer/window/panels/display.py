"""The display of a panel: the linear frame that was drawn last, and its tone mapped texture.

DrawLoop shows frames; the main loop calls update() when the tone settings may have changed.
"""

from renderer.gpu.gl import GlContext, Texture
from renderer.images.tone_mapping import GlToneMapper
from renderer.scene.scene import ToneMapping


class Display:
    """The displayed picture of one panel; it stays while the next picture is opened."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self.frame: Texture | None = None  # linear
        self.texture: Texture | None = None  # 8 bits per channel, tone mapped
        self._tone_mapper: GlToneMapper | None = None
        self._applied_tone: ToneMapping | None = None  # in the texture
        self._mapped_at = 0.0  # seconds of the clock
        self.is_new = False  # the window has not drawn the texture, or an error over it, yet

    def reset(self) -> None:
        """Drops the frame, and compiles tone mapping again for the next one; the texture stays."""
        self.frame, self._tone_mapper, self._applied_tone = None, GlToneMapper(self._gl), None

    def show(self, frame: Texture, tone: ToneMapping, now: float, interval: float = 0.0) -> None:
        """Displays a frame, if `interval` seconds have passed since the last one."""
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
        self.is_new = True
        self._applied_tone = tone
