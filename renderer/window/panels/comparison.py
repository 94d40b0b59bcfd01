"""A panel beside a reference, which is a picture kept earlier or another panel: wipe, flip, difference."""

from renderer.gpu.gl import GlContext, Texture

MODES = ("off", "wipe", "flip", "difference")
FLIP = 0.6  # seconds that each of the two stands
GAIN = 8.0  # of the difference


class Comparison:
    """What one panel is compared with, and how. `wipe` is the part of the width where the reference begins."""

    def __init__(self, gl: GlContext):
        self._gl = gl
        self._difference = gl.render_pass("images/difference.frag")
        self._target: Texture | None = None
        self.mode = "off"
        self.wipe = 0.5
        self.label = ""
        self._reference = None  # a Texture, or a panel

    def keep(self, shown: Texture) -> None:
        """Takes a copy of what is shown now as the reference."""
        self._reference = self._gl.texture(shown.size, 4, "f1").write(shown.read())
        self.label = "kept picture"

    def follow(self, panel) -> None:
        """Takes what another panel shows, as it changes."""
        self._reference, self.label = panel, panel.scene.title

    def cycle(self) -> str:
        """The next way to compare; "off" where there is nothing to compare with."""
        modes = MODES if self.reference() is not None else ("off",)
        self.mode = modes[(modes.index(self.mode) + 1) % len(modes)] if self.mode in modes else "off"
        return self.mode

    def reference(self) -> Texture | None:
        return self._reference if isinstance(self._reference, Texture) else getattr(self._reference, "shown", None)

    def shown(self, picture: Texture, now: float) -> tuple[Texture, Texture | None, float]:
        """The left texture, the right one, and the part of the width where the right one begins."""
        other = self.reference()
        if self.mode == "off" or other is None:
            return picture, None, 1.0
        if self.mode == "wipe":
            return picture, other, self.wipe
        if self.mode == "flip":
            return (picture if int(now / FLIP) % 2 else other), None, 1.0
        if self._target is None or self._target.size != picture.size:
            self._target = self._gl.texture(picture.size, 4, "f1")
        self._difference(self._target, image=picture, reference=other, gain=GAIN)
        return self._target, None, 1.0
