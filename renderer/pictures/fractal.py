"""Mandelbrot and Julia sets: one GLSL pass a sample, smooth colouring, float64 where the view asks for it.

The smooth count continues the number of iterations between whole ones (Vepstas 1997); the slope and the distance to the
set come from the derivative that is iterated along (Peitgen and Saupe, The Science of Fractal Images, 1988).
"""

import math
from dataclasses import dataclass
from typing import Literal

from renderer.errors import UnavailableError
from renderer.gpu import DeviceContext
from renderer.gpu.gl import Texture
from renderer.pictures.picture import AccumulatingPicture
from renderer.scene.cameras import View2D
from renderer.scene.scene import ToneMapping
from renderer.scene.schema import PictureSettings, setting

PALETTES = {"numbers": 0, "sea": 1, "ice": 2, "ember": 3, "grey": 4}  # numbered as in shaders/images/fractal.frag
GOLDEN = (0.7548776662466927, 0.5698402909980532)  # R2 sequence of M. Roberts, 2018: evenly spread for any count


@dataclass(frozen=True)
class Settings(PictureSettings):
    kind: Literal["mandelbrot", "julia"] = setting("mandelbrot", help="which set is drawn")
    constant: tuple[float, float] = setting((-0.8, 0.156), help="c of the Julia set")
    orbit: float = setting(0.0, 0.0, 1.0, "radius of the circle that c follows in time, a turn in 20 seconds")
    iterations: int = setting(500, 1, 1_000_000, "at most; deep views need more", key="d", logarithmic=True)
    precision: Literal["auto", "single", "double"] = setting("auto", help="auto takes double where single shows blocks")
    palette: Literal["sea", "ice", "ember", "grey", "numbers"] = setting(
        "sea", help="numbers: count, distance in pixels"
    )
    density: float = setting(0.25, 0.01, 4.0, "turns of the palette for each doubling of the iterations")
    phase: float = setting(0.0, 0.0, 1.0, "where the palette begins")
    relief: float = setting(0.5, 0.0, 1.0, "light from the side")
    samples: int = setting(8, 1, 4096, "samples of each pixel")
    view: View2D = View2D(center=(-0.6, 0.0), height=2.6)


class Picture(AccumulatingPicture):
    settings_type = Settings
    can_clone = True
    tone = ToneMapping("manual")

    def __init__(self, gpu: DeviceContext):
        super().__init__(gpu)
        self.gl = gpu.gl
        self._targets: tuple[Texture, ...] = ()
        self._real = "float"

    def begin(self, settings: Settings, size: tuple[int, int], time: float, tile) -> None:
        if not self._targets or self._targets[0].size != tile[2:]:
            self._targets = (self.gl.texture(tile[2:]), self.gl.texture(tile[2:]))

    def add_sample(self, settings: Settings, size: tuple[int, int], time: float, tile) -> Texture:
        self._targets = self._targets[::-1]
        target, previous = self._targets
        inputs = self._inputs(settings, size, time)
        self._pass(settings, size)(target, previous=previous, corner=tile[:2], **inputs)
        return target

    def clone(self) -> "Picture":
        """A picture that draws on its own with the passes of this one."""
        other = super().clone()
        other._targets = ()
        return other

    def depends_on_time(self, settings: Settings) -> bool:
        """Whether the picture depends on time."""
        return settings.kind == "julia" and settings.orbit > 0

    def report(self) -> dict:
        return super().report() | {"arithmetic": self._real}

    def _pass(self, settings: Settings, size: tuple[int, int]):
        self._real = "double" if self._wants_double(settings, size) else "float"
        real2 = {"double": "dvec2", "float": "vec2"}[self._real]
        constants = dict(
            JULIA=settings.kind == "julia", PALETTE=PALETTES[settings.palette], REAL=self._real, REAL2=real2
        )
        return self.gl.render_pass("images/fractal.frag", **constants)

    def _wants_double(self, settings: Settings, size: tuple[int, int]) -> bool:
        has_double = self.gl.version >= 400
        if settings.precision == "double" and not has_double:
            raise UnavailableError(f"{self.gl.renderer}: its GLSL has no double; precision must be single or auto")
        view = settings.view
        blocks = view.height / size[1] < 2.0**-20 * max(1.0, *map(abs, view.center))  # 8 float32 steps a pixel
        return settings.precision == "double" or settings.precision == "auto" and blocks and has_double

    def _inputs(self, settings: Settings, size: tuple[int, int], time: float) -> dict:
        right, down = settings.view.pixel_vectors(size[1])
        turn = 2 * math.pi * time / 20
        x, y = settings.constant
        constant = (x + settings.orbit * math.cos(turn), y + settings.orbit * math.sin(turn))
        jitter = tuple((self.samples * step + 0.5) % 1 - 0.5 for step in GOLDEN)
        inputs = dict(
            centre=settings.view.center, right=right, down=down, pixels=size, jitter=jitter,
            sample_number=float(self.samples), iterations=settings.iterations, density=settings.density,
            phase=settings.phase, relief=settings.relief,
        )  # fmt: skip
        return inputs | {"constant": constant}
