"""Key frames (a flame with its camera and time), and interpolation between them as in flam3's interpolation.c.

interpolate_at() gives the key frame of any time: temporal.py calls it for motion blur, animation.py interpolate().
Xforms are matched by index; align() pads the flame with fewer xforms. The weights of an interpolation sum to 1.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from renderer.flames.camera import FlameView
from renderer.flames.genome import EMPTY, IDENTITY_2D, IDENTITY_3D, Flame, Xform
from renderer.flames.palettes import interpolate_hsv
from renderer.flames.variations.catalog import parameter_owners, variation_table
from renderer.records import dataclass, field, fields, replace


@dataclass(frozen=True)
class KeyFrame:
    """One <flame> of a .flame file; y points down.

    A picture of `size` (width, height in pixels) shows `scale` times 2^`zoom` pixels per unit. `rotate`: degrees.
    `extra`: unknown attributes, kept for writing.
    """

    flame: Flame
    time: float = 0.0
    size: tuple[int, int] = (100, 100)
    center: tuple[float, float] = (0.0, 0.0)
    scale: float = 50.0
    zoom: float = 0.0
    rotate: float = 0.0
    pixel_aspect: float = 1.0
    interpolation: Literal["linear", "smooth"] = "linear"
    interpolation_type: Literal["log", "linear", "compat", "old", "older"] = "log"
    palette_interpolation: Literal["hsv_circular", "hsv", "rgb", "sweep"] = "hsv_circular"
    hsv_rgb_palette_blend: float = 0.0
    palette_number: int = -1  # number in flam3's palette file, -1: none; the flame also holds the colors
    hue: float = 0.0
    extra: dict[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def view(self) -> FlameView:
        """The camera, with y pointing up."""
        height = self.size[1] / (self.scale * 2.0**self.zoom)
        return FlameView((self.center[0], -self.center[1]), height, self.rotate, orbits=self.flame.has_camera)

    @property
    def quality(self) -> float:
        """Samples per pixel at `zoom`."""
        return self.flame.quality * math.pow(4.0, self.zoom)


MAX_LOGARITHM = 300.0  # greatest logarithm of a column's length, far below what double can hold
LEGACY_INTERPOLATIONS = ("compat", "old", "older")  # linear in the coefficients, padding with plain identities
CAMERA_FLOATS = ("scale", "zoom", "rotate", "pixel_aspect")
FLAME_FLOATS = tuple(f.name for f in fields(Flame) if f.type is float)
FLAME_INTS = tuple(f.name for f in fields(Flame) if f.type is int)


def interpolate_at(keyframes: Sequence[KeyFrame], time: float) -> KeyFrame:
    """The key frame interpolated at a time; outside the key frames the nearest segment is extrapolated."""
    if len(keyframes) == 1:
        return keyframes[0]
    first = min(max(bisect_right(keyframes, time, key=lambda key: key.time) - 1, 0), len(keyframes) - 2)
    before, after = keyframes[first], keyframes[first + 1]
    weight = (after.time - time) / (after.time - before.time)
    if before.interpolation == "smooth" and 0 < first < len(keyframes) - 2:
        t = 1 - weight  # Catmull-Rom over four key frames
        weights = (
            (-t + 2 * t**2 - t**3) / 2, (2 - 5 * t**2 + 3 * t**3) / 2, (t + 4 * t**2 - 3 * t**3) / 2, (t**3 - t**2) / 2,
        )  # fmt: skip
        return interpolate(keyframes[first - 1 : first + 3], weights, time)
    return interpolate((before, after), (weight, 1 - weight), time)


def _mean(values: Iterable[float], weights: Sequence[float]) -> float:
    return float(np.dot(weights, list(values)))


def interpolate(keyframes: Sequence[KeyFrame], weights: Sequence[float], time: float, stagger: float = 0.0) -> KeyFrame:
    """The weighted mean of 2 or 4 key frames, with `time`; the weights sum to 1.

    `base`, the key frame at the start of the segment (of 4, the second), gives all fields that have no mean, and the
    interpolation_type by which missing xforms are padded. The first key frame (of 4, the one before the segment) gives,
    as in flam3, the interpolation_type of all else and how palettes are blended; also the xforms' color_type.
    `stagger`, 0 to 1: how far the xforms of 2 key frames change one after the other, the first xform first.
    """
    base, kind = keyframes[0] if len(keyframes) == 2 else keyframes[1], keyframes[0].interpolation_type
    flames = align([key.flame for key in keyframes], base.interpolation_type)
    count = len(flames[0].xforms)
    xforms = tuple(
        _interpolate_xform([flame.xforms[i] for flame in flames], staggered(weights, stagger, count, i), kind)
        for i in range(count)
    )
    finals = [flame.final_xform for flame in flames if flame.final_xform is not None]  # aligned: none, or all
    final = _interpolate_xform(finals, weights, kind) if finals else None
    floats = {name: _mean((getattr(flame, name) for flame in flames), weights) for name in FLAME_FLOATS}
    for name in ("quality", "filter_radius", "estimator_radius", "estimator_minimum", "gamma_threshold"):
        floats[name] = max(floats[name], 0.0)
    ints = {name: max(1, _round(_mean((getattr(f, name) for f in flames), weights))) for name in FLAME_INTS}
    changes: dict[str, Any] = {**floats, **ints, **interpolate_palette(flames, weights, keyframes[0])}
    changes["background"] = tuple(_mean((flame.background[k] for flame in flames), weights) for k in range(3))
    flame = replace(base.flame, xforms=xforms, final_xform=final, **changes)
    camera: dict[str, Any] = {name: _mean((getattr(k, name) for k in keyframes), weights) for name in CAMERA_FLOATS}
    camera["center"] = tuple(_mean((key.center[k] for key in keyframes), weights) for k in range(2))
    camera["size"] = tuple(_round(_mean((key.size[k] for key in keyframes), weights)) for k in range(2))
    return replace(base, flame=flame, time=time, palette_number=-1, hue=0.0, **camera)


def staggered(weights: Sequence[float], stagger: float, count: int, index: int) -> Sequence[float]:
    """The weights of xform `index` of `count`, which changes during an interval of the segment that depends on index.

    As flam3's get_stagger_coef. With `stagger` 0 all xforms change during the whole segment, with 1 one after another.
    """
    if stagger <= 0 or count < 2 or len(weights) != 2:
        return weights
    waiting = stagger * (count - 1) / count  # the part of the segment in which an xform does not change
    t = min(max((weights[0] - waiting * (count - 1 - index) / (count - 1)) / (1 - waiting), 0.0), 1.0)
    first = t * t * (3 - 2 * t)
    return first, 1 - first


def _round(value: float) -> int:
    return math.floor(value + 0.5)


def _interpolate_xform(xforms: list[Xform], weights: Sequence[float], kind: str) -> Xform:
    """The weighted mean of the xforms of one index in all key frames; `kind`: the interpolation_type."""

    def mean(values: Iterable[float]) -> float:
        return _mean(values, weights)

    def bounded(name: str) -> float:
        return min(max(mean(getattr(x, name) for x in xforms), 0.0), 1.0)

    variations = {
        name: mean(x.variations.get(name, 0.0) for x in xforms) for name in _union(x.variations for x in xforms)
    }
    parameters = {
        name: mean(x.parameter_value(name) for x in _parameter_sources(xforms, name, kind))
        for name in _union([*(x.parameters for x in xforms), *(variation_table()[v].parameters for v in variations)])
    }
    longest = max(len(x.xaos) for x in xforms)
    xaos = [[*x.xaos, *[1.0] * (longest - len(x.xaos))] for x in xforms]
    has_post = any(x.post != IDENTITY_2D for x in xforms)
    return Xform(
        affine=interpolate_affine([x.affine for x in xforms], weights, kind),
        weight=max(mean(x.weight for x in xforms), 0.0),
        color=bounded("color"),
        color_speed=bounded("color_speed"),
        opacity=bounded("opacity"),
        post=interpolate_affine([x.post for x in xforms], weights, kind) if has_post else IDENTITY_2D,
        variations=variations,
        parameters=parameters,
        xaos=tuple(max(mean(row[k] for row in xaos), 0.0) for k in range(longest)),
        animate=mean(x.animate for x in xforms),
        var_color=mean(x.var_color for x in xforms),
        color_type=xforms[0].color_type,
        modifiers={n: mean(x.modifiers.get(n, 0.0) for x in xforms) for n in _union(x.modifiers for x in xforms)},
    )


def _parameter_sources(xforms: list[Xform], parameter: str, kind: str) -> list[Xform]:
    """The xforms to read a parameter from, one for each key frame's xform of `xforms`.

    A key frame whose xform lacks the parameter's variation takes the xform of the previous key frame (the first key
    frame: of the second) if that xform has the variation. Legacy interpolation types always take the key frame's xform,
    and so does flower_holes, which flam3 forgets to copy.
    """

    def has(xform: Xform) -> bool:
        return xform.variations.get(parameter_owners()[parameter], 0.0) != 0

    if kind in LEGACY_INTERPOLATIONS or parameter == "flower_holes":
        return xforms
    neighbors = [xforms[1], *xforms[:-1]]
    return [near if has(near) and not has(xform) else xform for xform, near in zip(xforms, neighbors, strict=True)]


def _union(tables: Iterable[Mapping[str, object]]) -> list[str]:
    """The keys of all tables, each once, in the order of their first occurrence."""
    return list(dict.fromkeys(name for table in tables for name in table))


def interpolate_affine(affines: Sequence[Sequence[float]], weights: Sequence[float], kind: str) -> tuple[float, ...]:
    """The weighted mean of affines, all of 6 or all of 12 coefficients; `kind`: the interpolation_type.

    With "log", the columns of 2D affines are interpolated in polar coordinates: angles by the shorter rotation, lengths
    geometrically.
    """
    rows, factors = np.array(affines, "f8"), np.asarray(weights, "f8")
    out = factors @ rows
    if kind != "log" or rows.shape[1] != 6:
        return tuple(map(float, out))
    for column in (0, 1):  # the translation stays linear
        x, y = rows[:, column], rows[:, 3 + column]
        lengths, angles = np.hypot(x, y), np.arctan2(y, x)
        other_angles = np.arctan2(rows[:, 4 - column], rows[:, 1 - column])  # polar angles of the other column
        angles = np.where(lengths == 0, other_angles, angles)  # a zero column has no angle
        # each within half a revolution of the previous one; exactly half is clockwise (y is down)
        for k in range(1, len(angles)):
            difference = angles[k] - angles[k - 1]
            if difference > math.pi + 1e-10:
                angles[k] -= 2 * math.pi
            elif difference < -math.pi + 1e-10:
                angles[k] += 2 * math.pi
        logarithms = np.log(np.maximum(lengths, 1e-300))
        exponent = min(factors @ logarithms, MAX_LOGARITHM)  # large if weights outside 0 to 1 extrapolate
        # as flam3: linear if a length is below e^-10
        length = factors @ lengths if (logarithms < -10).any() else math.exp(exponent)
        angle = factors @ angles
        out[column], out[3 + column] = length * math.cos(angle), length * math.sin(angle)
    return tuple(map(float, out))


def interpolate_palette(flames: list[Flame], weights: Sequence[float], base: KeyFrame) -> dict[str, tuple[object, ...]]:
    """The fields `colors` and `alphas` interpolated between the flames' palettes by `base.palette_interpolation`.

    As in flam3, colors are multiplied by their alphas before they are interpolated.
    """
    alphas = np.array([flame.alphas or (1.0,) * 256 for flame in flames])
    premultiplied = [flame.palette_colors * alpha[:, None] for flame, alpha in zip(flames, alphas, strict=True)]
    kind, alpha = base.palette_interpolation, np.clip(np.tensordot(weights, alphas, 1), 0, 1)
    if kind == "sweep":
        # The first palette's colors, then the second's; of 4 key frames only the second's, since weights[0] <= 0.
        first = np.arange(256) < 256 * weights[0]
        alpha = np.where(first, alphas[0], alphas[1])
        light = np.where(first[:, None], premultiplied[0], premultiplied[1])
    else:
        light = np.tensordot(weights, premultiplied, 1)
        if kind != "rgb":
            blend = base.hsv_rgb_palette_blend if kind == "hsv_circular" else 0.0
            light = blend * light + (1 - blend) * interpolate_hsv(premultiplied, weights, kind == "hsv_circular")
        light = np.clip(light, 0, 255)
    if (alphas == 1).all():
        return {"colors": tuple(map(tuple, light.tolist())), "alphas": ()}
    colors = light / np.maximum(alpha, 1e-9)[:, None]
    return {"colors": tuple(map(tuple, colors.tolist())), "alphas": tuple(alpha.tolist())}


# ---- padding: the flame with fewer xforms gets identity xforms of weight 0

# Variations whose identity is approached best from linear -1 after a rotation by 180 degrees, as in flam3.
ROTATED_IDENTITIES = ("spherical", "ngon", "julian", "juliascope", "polar", "wedge_sph", "wedge_julia")
# Variations that are the identity with these parameters.
IDENTITY_PARAMETERS = {
    "rectangles": {"rectangles_x": 0.0, "rectangles_y": 0.0},
    "rings2": {"rings2_val": 0.0},
    "fan2": {"fan2_x": 0.0, "fan2_y": 0.0},
    "blob": {"blob_low": 1.0, "blob_high": 1.0, "blob_waves": 1.0},
    "perspective": {"perspective_angle": 0.0},
    "curl": {"curl_c1": 0.0, "curl_c2": 0.0},
    "super_shape": {
        "super_shape_n1": 2.0, "super_shape_n2": 2.0, "super_shape_n3": 2.0, "super_shape_rnd": 0.0,
        "super_shape_holes": 0.0,
    },
}  # fmt: skip


def align(flames: list[Flame], kind: str) -> list[Flame]:
    """The flames padded to equally many xforms and, if any flame has a final xform, to one final xform each."""
    count, has_final = max(len(f.xforms) for f in flames), any(f.final_xform is not None for f in flames)
    out = []
    for index, flame in enumerate(flames):
        neighbors = [flames[k] for k in (index - 1, index + 1) if 0 <= k < len(flames)]
        # xaos does not extend to the xforms that are added here
        xforms = [replace(x, xaos=x.xaos[: len(flame.xforms)]) for x in flame.xforms]
        for i in range(len(xforms), count):
            partners = [other.xforms[i] for other in neighbors if i < len(other.xforms)]
            xforms.append(replace(padding_xform(partners, kind, flame.is_3d), color=float(i & 1)))  # as in flam3
        final = flame.final_xform
        if final is None and has_final:
            partners = [other.final_xform for other in neighbors if other.final_xform is not None]
            final = replace(padding_xform(partners, kind, flame.is_3d), color=float(count & 1), color_speed=0.0)
        out.append(replace(flame, xforms=tuple(xforms), final_xform=final))
    return out


def padding_xform(partners: list[Xform], kind: str, is_3d: bool) -> Xform:
    """An identity xform of weight 0; `partners`: the xforms of its index in the neighboring key frames.

    It uses the partners' variations where these can express the identity, so that the interpolation looks smooth.
    """
    identity = Xform(IDENTITY_3D if is_3d else IDENTITY_2D, weight=0.0)
    used = {name: x for x in partners for name, weight in x.variations.items() if weight > 0}
    if kind in LEGACY_INTERPOLATIONS or is_3d:
        return identity
    if kind == "log" and used.keys() & set(ROTATED_IDENTITIES):
        return replace(identity, affine=(-1.0, 0.0, 0.0, 0.0, -1.0, 0.0), variations={"linear": -1.0})
    shared = [name for name in IDENTITY_PARAMETERS if name in used]
    if shared:
        kept = {p: used[name].parameter_value(p) for name in shared for p in variation_table()[name].parameters}
        parameters = kept | {p: value for name in shared for p, value in IDENTITY_PARAMETERS[name].items()}
        return replace(identity, variations={name: 1 / len(shared) for name in shared}, parameters=parameters)
    swapped = [name for name in ("fan", "rings") if name in used]
    if swapped:
        weights = {str(name): 1 / len(swapped) for name in swapped}  # with x and y swapped, as in flam3
        return replace(identity, affine=(0.0, 1.0, 0.0, 1.0, 0.0, 0.0), variations=weights)
    return identity
