"""The genome of a flame: xforms, colors, exposure. Frozen plain data with flam3's defaults; an edit gives a new one."""

import types
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from renderer.flames import palettes
from renderer.flames.variations import parameter_owners, variation_table
from renderer.scene.scene import setting

IDENTITY_2D = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
IDENTITY_3D = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)
LINEAR: Any = types.MappingProxyType({"linear": 1.0})
EMPTY: Any = types.MappingProxyType({})
SPATIAL_FILTERS = Literal[
    "gaussian", "hermite", "box", "triangle", "bell", "bspline", "mitchell", "blackman", "catrom", "hanning", "hamming",
    "lanczos3", "lanczos2", "quadratic",
]  # fmt: skip


@dataclass(frozen=True)
class Xform:
    """One map of the system: the affine, then the sum of its variations, then the post-affine.

    `affine`: a b c d e f, x' = a x + b y + c, y' = d x + e y + f; in space twelve numbers, three such rows of four.
    """

    affine: tuple[float, ...] = IDENTITY_2D
    weight: float = setting(1.0, 0.0, 1e9, "how often the map is drawn, against the other xforms' weights")
    color: float = setting(0.0, None, None, "where the map pulls the color, 0 to 1 along the palette")
    color_speed: float = setting(0.5, None, None, "how far it pulls")
    opacity: float = setting(1.0, None, None, "1 plotted, 0 unseen; of the final map the probability of applying it")
    post: tuple[float, ...] = IDENTITY_2D
    variations: dict[str, float] = field(default_factory=lambda: LINEAR)
    parameters: dict[str, float] = field(default_factory=lambda: EMPTY)
    xaos: tuple[float, ...] = ()  # factors of the weights of the xforms after this one; missing ones are 1
    animate: float = 1.0  # 0: sequences do not turn it
    extra: dict[str, str] = field(default_factory=lambda: EMPTY)  # attributes of a file that nothing here knows
    motion: tuple[str, ...] = ()  # <motion> elements of a file, by their attributes

    def __post_init__(self):
        if len(self.affine) not in (6, 12):
            raise ValueError(f"affine has {len(self.affine)} numbers; a map of the plane has 6, one of space 12")
        if len(self.post) != 6:
            raise ValueError(f"post has {len(self.post)} numbers; it must have 6")
        for name in self.variations:
            _require_known(name, variation_table(), "variation")
        for name in self.parameters:
            _require_known(name, parameter_owners(), "parameter of a variation")
        if any(factor < 0 for factor in self.xaos):
            raise ValueError(f"xaos is {list(self.xaos)}; factors must be at least 0")

    def parameter_value(self, parameter: str) -> float:
        """A variation's parameter: this map's, or the default."""
        return self.parameters.get(parameter, variation_table()[parameter_owners()[parameter]].parameters[parameter])


def _require_known(name: str, names, what: str) -> None:
    if name not in names:
        import difflib

        near = difflib.get_close_matches(name, names, 1, 0.0)
        raise ValueError(f"unknown {what} {name!r}; the nearest known is {near[0]!r}")


@dataclass(frozen=True)
class Flame:
    """One flame. Colors of the palette: (256) of red, green, blue, 0 to 255; or `palette` names a built-in one."""

    xforms: tuple[Xform, ...] = (Xform(),)
    final_xform: Xform | None = None
    palette: str = setting("ember", None, None, "a palette of assets/palettes.json, unless `colors` says all 256")
    colors: tuple[tuple[float, float, float], ...] = ()
    alphas: tuple[float, ...] = ()  # of the colors, 0 to 1; none: all 1
    palette_mode: Literal["step", "linear"] = "step"
    quality: float = setting(50.0, 1e-3, 1e9, "samples a pixel", logarithmic=True)
    brightness: float = setting(4.0, 0.0, 1e6, "exposure of the log-density", logarithmic=True)
    gamma: float = setting(4.0, 0.01, 1e3, "of the brightness curve")
    gamma_threshold: float = setting(0.01, 0.0, 1e6, "density below which the curve is a line")
    vibrancy: float = setting(1.0, -1e3, 1e3, "1 keeps hues, 0 curves each channel by itself")
    highlight_power: float = setting(-1.0, -1e3, 1e3, "how too bright colors fade to white; negative: a plain clip")
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    supersample: int = setting(1, 1, 16, "buckets a pixel is wide")
    filter_radius: float = setting(0.5, 0.0, 100.0, "radius of the spatial filter in pixels")
    filter_shape: SPATIAL_FILTERS = "gaussian"
    estimator_radius: float = setting(0.0, 0.0, 100.0, "largest radius of density estimation in pixels; 0 is off")
    estimator_minimum: float = setting(0.0, 0.0, 100.0, "smallest radius")
    estimator_curve: float = setting(0.4, 0.01, 10.0, "how fast the radius falls with the density")
    passes: int = setting(1, 1, 1000, "parts of the samples that are exposed by themselves and then added")
    temporal_samples: int = setting(1, 1, 10000, "moments that motion blur is made of")
    temporal_filter_type: Literal["box", "gaussian", "exp"] = "box"
    temporal_filter_width: float = 1.0
    temporal_filter_exp: float = 0.0

    def __post_init__(self):
        if not self.xforms:
            raise ValueError("xforms is empty; at least one map is wanted")
        if self.colors and len(self.colors) != 256:
            raise ValueError(f"colors has {len(self.colors)} entries; it must have 256")
        if self.alphas and len(self.alphas) != 256:
            raise ValueError(f"alphas has {len(self.alphas)} entries; it must have 256")
        if not self.colors and self.palette not in palettes.builtin_names():
            raise ValueError(f"palette is {self.palette!r}; allowed are {', '.join(palettes.builtin_names())}")
        spaces = {len(m.affine) for m in (*self.xforms, *([self.final_xform] if self.final_xform else []))}
        if len(spaces) > 1:
            raise ValueError(
                "affine: some xforms have 6 numbers and some 12; all must be of the plane, or all of space"
            )

    @property
    def palette_colors(self) -> np.ndarray:
        """(256, 3) float64, 0 to 255."""
        return np.array(self.colors, "f8") if self.colors else palettes.builtin(self.palette)

    @property
    def is_3d(self) -> bool:
        """Whether the xforms are of space."""
        return len(self.xforms[0].affine) == 12
