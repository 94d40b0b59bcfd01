"""Reductions of a texture to one texel by render-to-texture passes: sum, min, max, mean log luminance.

For tone mapping, pictures/reduction.py and gl_sums.py. Each pass of numerics/reduce.frag draws a target of an eighth of
the width and height; squares of 8 x 8 texels were the fastest measured. The result stays a texture, so the host never
waits. The order of the additions depends only on the size, so a sum has the same bits on every run.
"""

from collections.abc import Callable, Iterator

from renderer.gpu.gl import GlContext, Texture

BLOCK = 8  # texels along each side of the square that a pass reduces to one texel
OPERATIONS = ("sum", "min", "max")  # numbered as OPERATION in shaders/numerics/reduce.frag


class Reduction:
    """Reduces textures of one GL context. A result is valid until the next call with the same operation."""

    def __init__(self, gl: GlContext, block: int = BLOCK):
        assert block >= 2, block
        self.gl = gl
        self.block = block
        self._targets: dict[str, tuple[object, list[Texture]]] = {}

    def reduce(self, operation: str, image: Texture) -> Texture:
        """A texture of one texel: the "sum", "min" or "max" of each component of the image.

        "min" and "max" ignore NaN; if all values are NaN they are inf and -inf.
        """
        return self.levels(operation, image)[-1]

    def mean_log_luminance(self, image: Texture) -> Texture:
        """A texture of one texel: x is the mean log2 luminance of all pixels that log_luminance() counts.

        y is 1 if it counts any pixel, else 0 (images/tone_mapping.h).
        """
        targets = self._targets_for("mean_log_luminance", image.size, 2)  # x sums logarithms, y counts pixels
        for level, target in enumerate(targets):
            self._shader(0, log_luminance=level == 0, divide=level == len(targets) - 1)(target, image=image)  # 0: "sum"
            image = target
        return image

    def levels(self, operation: str, image: Texture) -> list[Texture]:
        """The targets of all passes of reduce(), from the largest to the one texel."""
        return list(self.passes(operation, image))

    def passes(self, operation: str, image: Texture) -> Iterator[Texture]:
        """Draws the passes of reduce() and yields the target of each pass after it is drawn."""
        shader = self._shader(OPERATIONS.index(operation), log_luminance=False, divide=False)
        targets = self._targets_for(operation, image.size, image.components)
        for target in targets:
            shader(target, image=image)
            image = target
            yield target

    def _shader(self, operation: int, log_luminance: bool, divide: bool) -> Callable[..., None]:
        """The pass: `log_luminance` takes the pixels' log luminance first, `divide` divides the sum by the count."""
        constants = dict(OPERATION=operation, LOG_LUMINANCE=log_luminance, DIVIDE=divide, BLOCK=self.block)
        return self.gl.render_pass("numerics/reduce.frag", **constants)

    def _targets_for(self, name: str, size: tuple[int, int], components: int) -> list[Texture]:
        """The render targets of all passes for an image of `size`.

        They are cached by `name`, an operation, until it is called with another size or number of components.
        """
        key = (size, components)
        if self._targets.get(name, (None,))[0] != key:
            self._targets[name] = (key, [self.gl.texture(level, components) for level in self.sizes(size)])
        return self._targets[name][1]

    def sizes(self, size: tuple[int, int]) -> list[tuple[int, int]]:
        """(width, height) of the target of each pass; there is at least one pass, and the last target is (1, 1)."""
        out: list[tuple[int, int]] = []
        while not out or size != (1, 1):
            size = -(-size[0] // self.block), -(-size[1] // self.block)
            out.append(size)
        return out
