"""Reductions of a texture to one texel by render-to-texture passes (paper 5): sum, min, max, mean log luminance.

Each pass draws a target an eighth as wide and high (8 x 8 squares of vec4 were the fastest of those measured), down to
one texel. Nothing is read back: the result is a texture for the next pass. The order of the additions depends on the
size alone, so a sum has the same bits on every run.
"""

from collections.abc import Iterator

from renderer.gpu.gl import GlContext, Texture

BLOCK = 8
OPERATIONS = ("sum", "min", "max")  # numbered as in shaders/numerics/reduce.frag


class Reduction:
    """Reduces textures of one GL context. A result stays valid until the next call of the same method."""

    def __init__(self, gl: GlContext, block: int = BLOCK):
        assert block >= 2, block
        self.gl = gl
        self.block = block
        self._targets: dict[str, tuple[tuple, list[Texture]]] = {}

    def reduce(self, operation: str, image: Texture) -> Texture:
        """One texel: the "sum", "min" or "max" of each of the image's components.

        "min" and "max" ignore NaN, and are infinite and minus infinite where all are NaN.
        """
        return self.levels(operation, image)[-1]

    def mean_log_luminance(self, image: Texture) -> Texture:
        """One texel: x is the mean log2 luminance of the pixels that count (see images/tone_mapping.h).

        y is 1 if any pixel counts, else 0.
        """
        targets = self._targets_for("mean_log_luminance", image.size, 2)
        for level, target in enumerate(targets):
            self._shader(0, level == 0, level == len(targets) - 1)(target, image=image)
            image = target
        return image

    def levels(self, operation: str, image: Texture) -> list[Texture]:
        """The targets of every pass of reduce(), from the largest to one texel."""
        return list(self.passes(operation, image))

    def passes(self, operation: str, image: Texture) -> Iterator[Texture]:
        """Draws the passes of reduce() one after another; gives the target of each once it is drawn."""
        shader = self._shader(OPERATIONS.index(operation), False, False)
        targets = self._targets_for(operation, image.size, image.components)
        for target in targets:
            shader(target, image=image)
            image = target
            yield target

    def _shader(self, operation: int, log_luminance: bool, divide: bool):
        constants = dict(OPERATION=operation, LOG_LUMINANCE=log_luminance, DIVIDE=divide, BLOCK=self.block)
        return self.gl.render_pass("numerics/reduce.frag", **constants)

    def _targets_for(self, name: str, size: tuple[int, int], components: int) -> list[Texture]:
        """The render targets for an image of `size`; those of the last call are reused if they fit."""
        key = (size, components)
        if self._targets.get(name, (None,))[0] != key:
            self._targets[name] = (key, [self.gl.texture(level, components) for level in self.sizes(size)])
        return self._targets[name][1]

    def sizes(self, size: tuple[int, int]) -> list[tuple[int, int]]:
        """(width, height) of each pass's target; at least one, the last (1, 1)."""
        out: list[tuple[int, int]] = []
        while not out or size != (1, 1):
            size = -(-size[0] // self.block), -(-size[1] // self.block)
            out.append(size)
        return out
