"""The genome of a flame: xforms, palette, camera and exposure settings, as frozen dataclasses with flam3's defaults.

The terms are flam3's (S. Draves and E. Reckase, "The Fractal Flame Algorithm"). xml/read.py makes genomes from .flame
files; settings.py adds a view and key frames for scene files; edit.py and evolve.py make changed copies.
"""

import difflib
import types
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from renderer.errors import BadValueError
from renderer.flames import palettes
from renderer.flames.solid import Solid
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.plain import format_names, format_value, quoted
from renderer.records import dataclass, field, fields, replace
from renderer.scene.schema import setting

IDENTITY_2D = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)
IDENTITY_3D = (1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)


Value = TypeVar("Value")


def read_only(table: Mapping[str, Value]) -> dict[str, Value]:
    """A read-only view of a dict, for fields of frozen genomes; typed as dict because scene files parse such fields."""
    return cast("dict[str, Value]", types.MappingProxyType(table))


# JWildfire's attributes of a point beside its color. Each xform blends them as it blends the palette coordinate.
MODIFIERS = ("mod_gamma", "mod_contrast", "mod_saturation", "mod_hue", "material")
MAX_CURVE_POINTS = 256
SLOW_TABLES = ("dla_wf", "dla3d_wf")  # variations whose tables take seconds to make
MAX_TABLES, MAX_SLOW_TABLES = 256, 8  # tables, and tables that are slow to make, of the variations of a flame or layer
LINEAR = read_only({"linear": 1.0})
EMPTY: dict[str, Any] = read_only({})
SPATIAL_FILTERS = Literal[
    "gaussian", "hermite", "box", "triangle", "bell", "bspline", "mitchell", "blackman", "catrom", "hanning", "hamming",
    "lanczos3", "lanczos2", "quadratic", "mitchell_smooth",
]  # fmt: skip
ColorType = Literal["diffusion", "none", "distance", "cyclic"]
COLOR_TYPES = get_args(ColorType)  # their numbers are in shaders/flames/point_attributes.h
CurvePoints = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Xform:
    """One function of the system: an affine map, then the weighted sum of its variations, then the post-affine.

    setting() makes a field with default, least and greatest value, and help, for scene files and the window.
    `affine`: a b c d e f with x' = a x + b y + c, y' = d x + e y + f; a 3D xform has 12 coefficients, three rows of
    four. `post` has the same layout.
    """

    affine: tuple[float, ...] = IDENTITY_2D
    weight: float = setting(1.0, 0.0, 1e9, "relative probability of choosing this xform")
    color: float = setting(0.0, None, None, "palette coordinate of the xform, 0 to 1")
    color_speed: float = setting(
        0.5, None, None, "blend factor toward `color` each time the xform is applied; 0 keeps the point's color"
    )
    opacity: float = setting(1.0, None, None, "1 plots, 0 hides; of the final xform: the probability of applying it")
    post: tuple[float, ...] = IDENTITY_2D
    variations: dict[str, float] = field(default_factory=lambda: LINEAR)
    parameters: dict[str, float] = field(default_factory=lambda: EMPTY)
    xaos: tuple[float, ...] = ()  # factors on the weights of the xforms chosen after this one; missing ones are 1
    var_color: float = setting(1.0, None, None, "how far variations that set colors (direct color) move the color")
    animate: float = 1.0  # 0: flam3's sequences do not rotate this xform
    extra: dict[str, str] = field(default_factory=lambda: EMPTY)  # unknown attributes of a file, kept for writing
    color_type: ColorType = "diffusion"  # JWildfire's
    # Values of MODIFIERS and of NAME_speed (JWildfire).
    modifiers: dict[str, float] = field(default_factory=lambda: EMPTY)
    motion: tuple[str, ...] = ()  # <motion> elements of a file, by their attributes, kept for writing

    def __post_init__(self) -> None:
        if len(self.affine) not in (6, 12):
            raise BadValueError(f"affine has {len(self.affine)} numbers; a 2D xform has 6, a 3D one 12")
        if len(self.post) not in (6, 12):
            raise BadValueError(f"post has {len(self.post)} numbers; it must have 6, in 3D 6 or 12")
        for name in self.variations:
            _require_known(name, variation_table(), "variation")
        for name in self.parameters:
            _require_known(name, parameter_owners(), "parameter of a variation")
        for name in self.modifiers:
            if name.removesuffix("_speed") not in MODIFIERS:
                raise BadValueError(f"unknown modifier {name!r}; allowed are {', '.join(MODIFIERS)}, each with _speed")
        if any(factor < 0 for factor in self.xaos):
            raise BadValueError(f"xaos is {format_value(list(self.xaos))}; factors must be at least 0")

    def parameter_value(self, parameter: str) -> float:
        """The value of a variation's parameter: from `parameters` if set there, else the variation's default."""
        return self.parameters.get(parameter, variation_table()[parameter_owners()[parameter]].parameters[parameter])


def _require_known(name: str, known: Mapping[str, object], kind: str) -> None:
    if name not in known:
        nearest = difflib.get_close_matches(name, known, 1, 0.0)[0]
        raise BadValueError(f"unknown {kind} {name!r}; the nearest known is {nearest!r}")


@dataclass(frozen=True)
class Layer:
    """Xforms and palette of one layer of a flame; camera and exposure are the flame's."""

    xforms: tuple[Xform, ...] = (Xform(),)
    final_xform: Xform | None = None
    further_finals: tuple[Xform, ...] = ()  # applied in this order after final_xform (JWildfire)
    palette: str = setting("ember", None, None, "a palette of assets/palettes.json; `colors` overrides it")
    colors: tuple[tuple[float, float, float], ...] = setting(
        (), 0.0, 255.0, "256 triples of red, green and blue; with these, `palette` is not read"
    )
    alphas: tuple[float, ...] = setting((), 0.0, 1.0, "256 numbers, of the palette's entries; empty: all 1")


@dataclass(frozen=True)
class Flame(Layer):
    """One flame: its first layer, further ones, camera and exposure.

    A layer's palette is `colors`, 256 triples of red, green and blue, 0 to 255; if empty, the built-in one named
    `palette`.
    """

    layers: tuple[Layer, ...] = ()  # drawn into the same picture (JWildfire)
    palette_mode: Literal["step", "linear"] = "step"
    quality: float = setting(50.0, 1e-3, 1e9, "samples per pixel", logarithmic=True)
    brightness: float = setting(4.0, 0.0, 1e6, "exposure of the log-density", logarithmic=True)
    gamma: float = setting(4.0, 0.01, 1e6, "of the tone curve")
    gamma_threshold: float = setting(0.01, 0.0, 1e6, "density below which the tone curve is linear")
    vibrancy: float = setting(1.0, -1e3, 1e3, "1: gamma acts on density and keeps hues; 0: on each channel")
    highlight_power: float = setting(-1.0, -1e3, 1e3, "how overexposed colors fade to white; negative: clip")
    background: tuple[float, float, float] = (0.0, 0.0, 0.0)
    supersample: int = setting(1, 1, 16, "buckets per pixel along each axis")
    filter_radius: float = setting(0.5, 0.0, 100.0, "radius of the spatial filter in pixels")
    filter_shape: SPATIAL_FILTERS = "gaussian"
    estimator_radius: float = setting(0.0, 0.0, 100.0, "largest radius of density estimation in pixels; 0: off")
    estimator_minimum: float = setting(0.0, 0.0, 100.0, "smallest radius of density estimation in pixels")
    estimator_curve: float = setting(0.4, 0.01, 10.0, "exponent by which the radius falls with the density")
    passes: int = setting(1, 1, 1000, "number of passes; each is log-density scaled by itself, then all are averaged")
    temporal_samples: int = setting(1, 1, 10000, "temporal samples per pass, for motion blur")
    temporal_filter_type: Literal["box", "gaussian", "exp"] = "box"
    temporal_filter_width: float = 1.0
    temporal_filter_exp: float = 0.0
    # The camera of flames with z: angles in radians, as in .flame files.
    cam_pitch: float = setting(0.0, None, None, "rotation of the camera about the x axis, radians")
    cam_yaw: float = setting(0.0, None, None, "rotation of the camera about the z axis, radians")
    cam_roll: float = setting(0.0, None, None, "JWildfire's bank, radians")
    cam_perspective: float = setting(
        0.0, None, None, "strength of perspective: x and y are divided by 1 - this times z"
    )
    cam_zpos: float = setting(0.0, None, None, "z of the camera's plane; for JWildfire's older lens: of the focus")
    cam_pos_x: float = setting(0.0, None, None, "JWildfire's camera: added to x before perspective")
    cam_pos_y: float = setting(0.0, None, None, "JWildfire's camera: added to y before perspective")
    cam_pos_z: float = setting(0.0, None, None, "JWildfire's camera: added to z before perspective")
    cam_dof: float = setting(0.0, None, None, "depth of field: blur by distance from the focus; 0: all is sharp")
    cam_xfocus: float = setting(0.0, None, None, "x of the focus of JWildfire's newer lens")
    cam_yfocus: float = setting(0.0, None, None, "y of the focus of JWildfire's newer lens")
    cam_zfocus: float = setting(0.0, None, None, "z of the focus of JWildfire's newer lens")
    cam_dof_area: float = setting(0.5, 0.0, 1e9, "distance from the focus that is sharp, of JWildfire's newer lens")
    cam_dof_exponent: float = setting(
        2.0, 1e-3, 1e3, "of JWildfire's newer lens: blur is the squared distance^(1/this)"
    )
    blur_curve: float = setting(
        0.0, None, None, "Fractorium's: above 0 the blur grows with the squared distance from the middle over this"
    )
    new_dof: bool = setting(False, help="JWildfire's newer lens, which has a focus in space")
    cam_model: Literal["apophysis", "jwildfire"] = "apophysis"
    cam_zdimish: float = setting(0.0, 0.0, 1e6, "JWildfire's fading with the squared depth; 0: off")
    cam_zdimdist: float = setting(0.0, None, None, "z before which points fade")
    cam_zdimcolor: tuple[float, float, float] = (0.0, 0.0, 0.0)
    antialias_amount: float = setting(
        0.0, 0.0, 1.0, "JWildfire's: fraction of points that are plotted at a random offset"
    )
    antialias_radius: float = setting(
        0.0, 0.0, 100.0, "scale of that offset: buckets are e^(this times the root of a logarithm) - 1"
    )
    solid: Solid | None = None  # JWildfire's solid rendering: only each bucket's nearest point is drawn, shaded
    preserve_z: bool = setting(False, help="z passes through variations that do not define it")
    # Additions of other programs to flam3's tone curve; with the defaults the curve is flam3's.
    exposure: Literal["flam3", "jwildfire"] = "flam3"
    contrast: float = setting(1.0, 0.01, 100.0, "of exposure jwildfire: times the brightness, over the density")
    white_level: float = setting(255.0, 1.0, 1e4, "palette value that is displayed as white")
    low_density_brightness: float = setting(0.0, None, None, "of exposure jwildfire: light of buckets with few hits")
    balancing_red: float = setting(1.0, None, None, "JWildfire's: factor on the red of the log-density")
    balancing_green: float = setting(1.0, None, None, "of the green")
    balancing_blue: float = setting(1.0, None, None, "of the blue")
    bg_transparency: bool = setting(
        False, help="JWildfire's: the picture keeps alpha beside colors over the background"
    )
    saturation: float = setting(1.0, 0.0, 10.0, "added to the displayed saturation, less 1")
    fg_opacity: float = setting(1.0, None, None, "JWildfire's: below 1 the flame hides more of the background")
    curves: tuple[CurvePoints, ...] = ()  # tone curves through points (x, y) in 0 to 1: overall, red, green, blue

    def __post_init__(self) -> None:
        if not self.xforms:
            raise BadValueError("xforms is empty; a flame has at least one xform")
        for name, entries in (("colors", self.colors), ("alphas", self.alphas)):
            if entries and len(entries) != 256:
                raise BadValueError(f"{name} has {len(entries)} entries; it must have 256")
        if self.curves and (len(self.curves) != 4 or any(len(points) > MAX_CURVE_POINTS for points in self.curves)):
            raise BadValueError(f"curves has {len(self.curves)} entries; it must have 4, each of at most 256 points")
        for points in self.curves:
            if any(after[0] - before[0] < 1e-6 for before, after in pairwise(points)) or len(points) == 1:
                raise BadValueError("curves: the points of a curve must be 2 or more whose x increase")
        if not self.colors and self.palette not in palettes.builtin_names():
            allowed = format_names(palettes.builtin_names())
            raise BadValueError(f"palette is {quoted(self.palette)}; allowed are {allowed}")
        if not self.has_z and any(len(xform.post) == 12 for xform in self.all_xforms):
            raise BadValueError("post has 12 numbers; the flame has no z, so it must have 6")

    def check_choices(self) -> None:
        """Raises ValueError for a layer that is no flame, and where no xform can be chosen, at first or after one.

        Flames that are read are checked; interpolated ones need not be, as their weights may be 0 for a moment.
        """
        for index in range(len(self.layers) + 1):
            try:
                flame = self.layer_flame(index)
                choice_weights(flame, any(xform.xaos for xform in flame.xforms))
                _check_tables(flame)
            except ValueError as error:
                raise BadValueError(f"layers[{index - 1}]: {error}" if index else str(error)) from error

    @property
    def all_xforms(self) -> tuple[Xform, ...]:
        """The xforms, then the final ones."""
        return *self.xforms, *self.final_xforms

    @property
    def final_xforms(self) -> tuple[Xform, ...]:
        """The final xforms in the order of application."""
        return (self.final_xform, *self.further_finals) if self.final_xform else ()

    @property
    def layer_flames(self) -> tuple["Flame", ...]:
        """One flame for each layer: this flame without `layers`, then copies with each layer's xforms and palette.

        All are padded to the same number of xforms with xforms of weight 0. Every layer gets equally many samples.
        """
        if not self.layers:
            return (self,)
        count = max(len(self.xforms), *(len(layer.xforms) for layer in self.layers))
        flames = [self.layer_flame(index) for index in range(len(self.layers) + 1)]
        paddings = [(Xform(weight=0.0),) * (count - len(flame.xforms)) for flame in flames]
        return tuple(replace(f, xforms=(*f.xforms, *padding)) for f, padding in zip(flames, paddings, strict=True))

    def layer_flame(self, index: int) -> "Flame":
        """This flame without `layers` (index 0), or with the xforms and the palette of the layer before `index`."""
        if not self.layers:
            return self
        layer = self.layers[index - 1] if index else self
        return replace(self, layers=(), **{f.name: getattr(layer, f.name) for f in fields(Layer)})

    @property
    def palette_colors(self) -> np.ndarray:
        """(256, 3) float64: red, green and blue of the palette's entries, 0 to 255."""
        return np.array(self.colors, "f8") if self.colors else palettes.builtin(self.palette)

    @property
    def is_3d(self) -> bool:
        """True if an xform has a 3D affine map (12 coefficients)."""
        return any(len(xform.affine) == 12 for xform in self.all_xforms)

    @property
    def has_camera(self) -> bool:
        """True if z changes the picture: by the camera's rotation or lens, fading or `solid`."""
        if self.solid or self.cam_zdimish:
            return True
        numbers = (self.cam_pitch, self.cam_yaw, self.cam_roll, self.cam_perspective, self.cam_dof)
        return any(numbers) or self.cam_model == "jwildfire" and any((self.cam_pos_x, self.cam_pos_y, self.cam_pos_z))

    @property
    def jitters(self) -> bool:
        """True if points are plotted at a random distance from their positions (JWildfire's antialiasing)."""
        return self.antialias_amount > 0 and self.antialias_radius > 0 and self.solid is None

    @property
    def has_z(self) -> bool:
        """True if points need z: an xform is 3D, has_camera holds, or a variation reads z."""
        table = variation_table()
        names = {name for xform in self.all_xforms for name, weight in xform.variations.items() if weight != 0}
        return self.is_3d or self.has_camera or any(table[name].reads_z for name in names)


def _check_tables(flame: Flame) -> None:
    """Raises ValueError if the tables of all variations of a flame would take minutes to make."""
    known = variation_table()
    used = [known[name] for xform in flame.all_xforms for name in xform.variations if name in known]
    slow = sum(variation.function in SLOW_TABLES for variation in used)
    tables = sum(variation.has_table for variation in used)
    if slow > MAX_SLOW_TABLES or tables > MAX_TABLES:
        limits = f"at most {MAX_TABLES}, and {MAX_SLOW_TABLES} of {' and '.join(SLOW_TABLES)}"
        raise BadValueError(f"has {tables} variations with a table, {slow} of them slow to make; allowed are {limits}")


def choice_weights(flame: Flame, xaos: bool) -> list[np.ndarray]:
    """Weights (xforms,) of the xforms at the first step and, with `xaos`, at the step after each xform.

    After an xform whose xaos excludes every xform a chain starts anew, as in JWildfire: its weights are then the
    weights of the first step. Raises ValueError if all weights are 0.
    """
    weights = np.array([xform.weight for xform in flame.xforms], "f8")
    if not weights.sum() > 0:
        raise BadValueError("the weights of all xforms are 0; at least one must be above 0")
    rows = [weights]
    for xform in flame.xforms if xaos else ():
        factors = np.ones(len(weights))
        factors[: len(xform.xaos)] = xform.xaos[: len(weights)]
        if not (weights * factors).sum() > 0:
            factors = np.ones(len(weights))
        rows.append(weights * factors)
    return rows
