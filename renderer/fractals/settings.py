"""Settings of the picture `fractal`: the formula, the view and the colors."""

from decimal import Decimal
from typing import Literal

from renderer.fractals.formula import check_formula, polynomial_degree
from renderer.records import dataclass
from renderer.scene.cameras import DeepView
from renderer.scene.schema import PictureSettings, setting

PALETTES = {"raw": 0, "sea": 1, "ice": 2, "ember": 3, "gray": 4}  # as in shaders/fractals/shade.h
COLORINGS = {"count": 0, "distance": 1, "stripe": 2, "trap": 3}  # as in shaders/fractals/sample.h


@dataclass(frozen=True)
class Settings(PictureSettings):
    """The set, its view and its colors."""

    kind: Literal["mandelbrot", "julia", "tricorn", "burning_ship", "formula"] = setting(
        "mandelbrot", help="which set is drawn"
    )
    c: tuple[Decimal, Decimal] = setting((Decimal("-0.8"), Decimal("0.156")), help="c of the Julia set z^n + c")
    c_path_radius: float = setting(
        0.0,
        0.0,
        1.0,
        "animation: c moves on a circle of this radius around its value, one revolution in 20 s; 0: still",
    )
    max_iterations: int = setting(
        500, 1, 1_000_000, "maximum iterations per sample; deep zooms need more", key="d", logarithmic=True
    )
    precision: Literal["auto", "single", "double", "perturbation"] = setting(
        "auto", help="auto: the cheapest that resolves the view; perturbation resolves every view"
    )
    palette: Literal["sea", "ice", "ember", "gray", "raw"] = setting(
        "sea", help="raw: iteration count and distance in pixels; below double's depth blue is the whole count"
    )
    coloring: Literal["count", "distance", "stripe", "trap"] = setting(
        "count",
        help="what picks the color: smooth count, distance to the set, average of stripes, nearness to the axes",
    )
    color_density: float = setting(0.25, 0.01, 4.0, "palette cycles per doubling of the count or distance")
    color_offset: float = setting(0.0, 0.0, 1.0, "start in the palette, in cycles")
    relief: float = setting(0.5, 0.0, 1.0, "shading as a landscape lit from the side")
    power: int = setting(
        2, 2, 8, "n of z^n + c, 2 for the burning ship; smooth counts of a formula that is no polynomial"
    )
    formula: str = setting("z^2 + c", help='next z, where kind is "formula": of z, c, numbers, + - * / ^ and functions')
    formula_start: str = setting("c", help='z of iteration 0, where kind is "formula", such as a critical point')
    formula_stop: Literal["escape", "convergence"] = setting(
        "escape", help='where kind is "formula": z is far away, or stays where it is (Newton\'s method)'
    )
    samples: int = setting(8, 1, 4096, "samples per pixel")
    reproject: bool = setting(
        False,
        help="frames of a zoom are resampled from key pictures whose heights are powers of 2, one an octave",
    )
    view: DeepView = DeepView((Decimal("-0.6"), Decimal(0)), Decimal("2.6"))

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", tuple(Decimal(str(value)) for value in self.c))  # as in DeepView
        if self.kind == "burning_ship" and self.power != 2:
            raise ValueError(f"power is {self.power}; it must be 2 where kind is 'burning_ship'")
        if self.reproject:
            # A frame's pixel is a mean of colors, and raw pictures hold numbers; KernelPass, which draws key pictures,
            # chooses its arithmetic by the view.
            for name, refused in (("palette", ("raw",)), ("precision", ("single", "double"))):
                value = getattr(self, name)
                if value in refused:
                    raise ValueError(f"{name} is {value!r}; with reproject it must not be {' or '.join(refused)}")
        if self.kind == "formula":
            check_formula(self.formula, "formula", "zc")
            check_formula(self.formula_start, "formula_start", "c")

    @property
    def degree(self) -> int:
        """The power of z by which iterates grow: of a formula that is a polynomial its degree, else `power`."""
        degree = polynomial_degree(self.formula) if self.kind == "formula" else None
        return degree or self.power
