"""The picture `fractal`: Mandelbrot and Julia sets. One GLSL pass draws a sample, in double precision for deep zooms.

The smooth count continues the number of iterations between integers (Vepstas 1997). The normal and the distance
estimate come from the derivative, which is iterated too (Peitgen and Saupe, The Science of Fractal Images, 1988).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

from renderer.errors import UnavailableError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.pictures.picture import AccumulatingPicture, Size, Tile
from renderer.scene.cameras import View2D
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

PALETTES = {"raw": 0, "sea": 1, "ice": 2, "ember": 3, "gray": 4}  # as in shaders/images/fractal.frag
R2_SEQUENCE = (0.7548776662466927, 0.5698402909980532)  # M. Roberts, 2018: evenly distributed for any count
REVOLUTION_SECONDS = 20  # of c on its circle


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The set, its view and its colors."""

    kind: Literal["mandelbrot", "julia"] = setting("mandelbrot", help="which set is drawn")
    c: tuple[float, float] = setting((-0.8, 0.156), help="c of the Julia set z^2 + c")
    c_path_radius: float = setting(
        0.0,
        0.0,
        1.0,
        "animation: c moves on a circle of this radius around its value, one revolution in 20 s; 0: still",
    )
    max_iterations: int = setting(
        500, 1, 1_000_000, "maximum iterations per sample; deep zooms need more", key="d", logarithmic=True
    )
    precision: Literal["auto", "single", "double"] = setting("auto", help="auto: double where single is too coarse")
    palette: Literal["sea", "ice", "ember", "gray", "raw"] = setting(
        "sea", help="raw: iteration count and distance in pixels"
    )
    color_density: float = setting(0.25, 0.01, 4.0, "palette cycles per doubling of the iteration count")
    color_offset: float = setting(0.0, 0.0, 1.0, "start in the palette, in cycles")
    relief: float = setting(0.5, 0.0, 1.0, "shading as a landscape lit from the side")
    samples: int = setting(8, 1, 4096, "samples per pixel")
    view: View2D = View2D(center=(-0.6, 0.0), height=2.6)


class Picture(AccumulatingPicture[Settings]):
    """Draws Mandelbrot and Julia sets with GLSL."""

    settings_type = Settings
    tone = ToneMapping("manual")
    passes = ("images/fractal.frag",)
    can_clone = True

    def __init__(self, gpu: DeviceContext) -> None:
        super().__init__(gpu)
        self.gl = gpu.gl
        self._targets: tuple[Texture, ...] = ()
        self._precision = "float"

    def begin(self, settings: Settings, size: Size, time: float, tile: Tile) -> None:
        """Allocate the two targets that samples are averaged in."""
        if not self._targets or self._targets[0].size != tile[2:]:
            self._targets = (self.gl.texture(tile[2:]), self.gl.texture(tile[2:]))

    def add_sample(self, settings: Settings, size: Size, time: float, tile: Tile) -> Texture:
        """Average one more jittered sample into the picture."""
        self._targets = self._targets[::-1]
        target, previous = self._targets
        uniforms = self._uniforms(settings, size, time)
        self._render_pass(settings, size)(target, previous=previous, tile_origin=tile[:2], **uniforms)
        return target

    def clone(self) -> Self:
        """A copy without samples, and with separate targets."""
        other = super().clone()
        other._targets = ()
        return other

    def depends_on_time(self, settings: Settings) -> bool:
        """True if c moves."""
        return settings.kind == "julia" and settings.c_path_radius > 0

    def work(self, settings: Settings) -> float:
        """The iterations of a pixel that does not escape; in double precision they cost about four times as much."""
        return float(settings.max_iterations) * (4.0 if self._precision == "double" else 1.0)

    def report(self) -> dict[str, object]:
        """Samples and precision."""
        return super().report() | {"arithmetic": self._precision}

    def _render_pass(self, settings: Settings, size: Size) -> Callable[..., None]:
        self._precision = "double" if self._use_double(settings, size) else "float"
        real2 = {"double": "dvec2", "float": "vec2"}[self._precision]
        julia, palette = settings.kind == "julia", PALETTES[settings.palette]
        return self.gl.render_pass(
            "images/fractal.frag", JULIA=julia, PALETTE=palette, REAL=self._precision, REAL2=real2
        )

    def _use_double(self, settings: Settings, size: Size) -> bool:
        has_double = self.gl.version >= 400
        if settings.precision == "double" and not has_double:
            raise UnavailableError(f"{self.gl.renderer}: its GLSL has no double; precision must be single or auto")
        view = settings.view
        too_coarse = view.height / size[1] < 2.0**-20 * max(1.0, *map(abs, view.center))  # 8 float32 steps per pixel
        return settings.precision == "double" or settings.precision == "auto" and too_coarse and has_double

    def _uniforms(self, settings: Settings, size: Size, time: float) -> dict[str, object]:
        right, down = settings.view.pixel_vectors(size[1])
        angle = 2 * math.pi * time / REVOLUTION_SECONDS
        (x, y), radius = settings.c, settings.c_path_radius
        return dict(
            center=settings.view.center, right=right, down=down, resolution=size,
            jitter=tuple((self.samples * step + 0.5) % 1 - 0.5 for step in R2_SEQUENCE),
            sample_index=float(self.samples), max_iterations=settings.max_iterations,
            color_density=settings.color_density, color_offset=settings.color_offset, relief=settings.relief,
            julia_c=(x + radius * math.cos(angle), y + radius * math.sin(angle)),
        )  # fmt: skip
