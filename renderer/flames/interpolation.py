"""Key frames: a flame with its camera and time, and what stands between two of them (flam3's interpolation)."""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Literal

import numpy as np

from renderer.flames.genome import EMPTY, IDENTITY_2D, IDENTITY_3D, Flame, Xform
from renderer.flames.palettes import interpolate_hsv
from renderer.flames.variations import parameter_owners, variation_table
from renderer.scene.cameras import View2D


@dataclass(frozen=True)
class KeyFrame:
    """One <flame> of a file: `scale` pixels a unit at `size`, both times 2^zoom; y grows downwards. `extra`: unknown
    attributes.
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
    palette_number: int = -1  # of flam3's palettes, -1 none; the colors stand in the flame too
    hue: float = 0.0
    extra: dict[str, str] = field(default_factory=lambda: EMPTY)

    @property
    def view(self) -> View2D:
        """The camera, with y growing upwards."""
        height = self.size[1] / (self.scale * 2.0**self.zoom)
        return View2D((self.center[0], -self.center[1]), height, self.rotate)

    @property
    def quality(self) -> float:
        """Samples a pixel."""
        return self.flame.quality * 4.0**self.zoom


LEGACY_INTERPOLATIONS = ("compat", "old", "older")  # of interpolation: matrices, and no map is spelled like its partner
CAMERA_FLOATS = ("scale", "zoom", "rotate", "pixel_aspect")
FLAME_FLOATS = (
    "quality", "brightness", "gamma", "gamma_threshold", "vibrancy", "highlight_power", "filter_radius",
    "estimator_radius", "estimator_minimum", "estimator_curve", "temporal_filter_width", "temporal_filter_exp",
)  # fmt: skip
FLAME_INTS = ("supersample", "passes", "temporal_samples")


def interpolate_at(keys: tuple[KeyFrame, ...], time: float) -> KeyFrame:
    """The flame at a time; outside the keys the nearest segment goes on."""
    if len(keys) == 1:
        return keys[0]
    first = min(max(sum(key.time <= time for key in keys) - 1, 0), len(keys) - 2)
    one, two = keys[first], keys[first + 1]
    share = (two.time - time) / (two.time - one.time)
    if one.interpolation == "smooth" and 0 < first < len(keys) - 2:
        t = 1 - share  # Catmull-Rom over four keys
        weights = (
            (-t + 2 * t**2 - t**3) / 2, (2 - 5 * t**2 + 3 * t**3) / 2, (t + 4 * t**2 - 3 * t**3) / 2, (t**3 - t**2) / 2,
        )  # fmt: skip
        return interpolate(keys[first - 1 : first + 3], weights, time)
    return interpolate((one, two), (share, 1 - share), time)


def interpolate(keys: tuple[KeyFrame, ...], weights: tuple[float, ...], time: float) -> KeyFrame:
    """The mean of key frames of these weights, which sum to 1; what is no number is the first's."""
    home = keys[0] if len(keys) == 2 else keys[1]

    def mean(values):
        return float(np.dot(weights, list(values)))

    flames = align([key.flame for key in keys], home.interpolation_type)
    xforms = tuple(
        _interpolate_xform([flame.xforms[i] for flame in flames], weights, home.interpolation_type)
        for i in range(len(flames[0].xforms))
    )
    final = None
    if flames[0].final_xform is not None:
        final = _interpolate_xform([flame.final_xform for flame in flames], weights, home.interpolation_type)
    numbers = {name: mean(getattr(flame, name) for flame in flames) for name in FLAME_FLOATS}
    for name in ("quality", "filter_radius", "estimator_radius", "estimator_minimum", "gamma_threshold"):
        numbers[name] = max(numbers[name], 0.0)
    counts = {name: max(1, math.floor(mean(getattr(flame, name) for flame in flames) + 0.5)) for name in FLAME_INTS}
    background = tuple(mean(flame.background[k] for flame in flames) for k in range(3))
    flame = replace(
        home.flame, xforms=xforms, final_xform=final, background=background, **numbers, **counts,
        **interpolate_palette(flames, weights, home),
    )  # fmt: skip
    camera = {name: mean(getattr(key, name) for key in keys) for name in CAMERA_FLOATS}
    center = tuple(mean(key.center[k] for key in keys) for k in range(2))
    size = tuple(math.floor(mean(key.size[k] for key in keys) + 0.5) for k in range(2))
    return replace(home, flame=flame, time=time, size=size, center=center, palette_number=-1, hue=0.0, **camera)


def _interpolate_xform(xforms: list[Xform], weights, kind: str) -> Xform:
    def mean(values):
        return float(np.dot(weights, list(values)))

    def bounded(name):
        return min(max(mean(getattr(m, name) for m in xforms), 0.0), 1.0)

    variations = {
        name: mean(m.variations.get(name, 0.0) for m in xforms) for name in _union(m.variations for m in xforms)
    }
    parameters = {
        name: mean(m.parameter_value(name) for m in _parameter_sources(xforms, name, kind))
        for name in _union([*(m.parameters for m in xforms), *(variation_table()[v].parameters for v in variations)])
    }
    longest = max(len(m.xaos) for m in xforms)
    xaos = [[*m.xaos, *[1.0] * (longest - len(m.xaos))] for m in xforms]
    post = IDENTITY_2D
    if any(m.post != IDENTITY_2D for m in xforms):
        post = interpolate_affine([m.post for m in xforms], weights, kind)
    return Xform(
        affine=interpolate_affine([m.affine for m in xforms], weights, kind),
        weight=max(mean(m.weight for m in xforms), 0.0),
        color=bounded("color"),
        color_speed=bounded("color_speed"),
        opacity=bounded("opacity"),
        post=post,
        variations=variations,
        parameters=parameters,
        xaos=tuple(max(mean(row[k] for row in xaos), 0.0) for k in range(longest)),
        animate=mean(m.animate for m in xforms),
    )


def _parameter_sources(xforms: list[Xform], parameter: str, kind: str) -> list[Xform]:
    """The xforms that tell a parameter: where a map lacks the variation, the one before it that has it, or the next."""

    def has(m):
        return m.variations.get(parameter_owners()[parameter], 0.0) != 0

    if kind in LEGACY_INTERPOLATIONS:
        return xforms
    neighbours = [xforms[1], *xforms[:-1]]
    return [other if has(other) and not has(m) else m for m, other in zip(xforms, neighbours, strict=True)]


def _union(tables) -> list[str]:
    return list(dict.fromkeys(name for table in tables for name in table))


def interpolate_affine(affines, weights, kind: str) -> tuple[float, ...]:
    """The mean of affines: by "log" each column turns by angles, on the short way, and grows by ratios of lengths."""
    rows = np.array(affines, "f8")
    weights = np.asarray(weights, "f8")
    if kind != "log" or rows.shape[1] != 6:
        return tuple(map(float, weights @ rows))
    out = weights @ rows  # translations are linear
    for column in (0, 1):
        x, y = rows[:, column], rows[:, 3 + column]
        lengths, angles = np.hypot(x, y), np.arctan2(y, x)
        other = np.arctan2(rows[:, 4 - column], rows[:, 1 - column])  # a column without length has the other's angle
        angles = np.where(lengths == 0, other, angles)
        for k in range(1, len(angles)):  # relative to the one before; half a turn goes clockwise (y is down)
            turn = angles[k] - angles[k - 1]
            if turn > math.pi + 1e-10:
                angles[k] -= 2 * math.pi
            elif turn < -math.pi + 1e-10:
                angles[k] += 2 * math.pi
        logarithms = np.log(np.maximum(lengths, 1e-300))
        length = weights @ lengths if (logarithms < -10).any() else math.exp(weights @ logarithms)
        angle = weights @ angles
        out[column], out[3 + column] = length * math.cos(angle), length * math.sin(angle)
    return tuple(map(float, out))


def interpolate_palette(flames: list[Flame], weights, home: KeyFrame) -> dict:
    """Colors and alphas between the palettes, in the key frame's way: of colors times alphas, as flam3 has it."""
    alphas = np.array([flame.alphas or (1.0,) * 256 for flame in flames])
    lights = [flame.palette_colors * alpha[:, None] for flame, alpha in zip(flames, alphas, strict=True)]
    kind, alpha = home.palette_interpolation, np.clip(np.tensordot(weights, alphas, 1), 0, 1)
    if kind == "sweep":
        first = np.arange(256) < 256 * weights[0]
        alpha, light = np.where(first, alphas[0], alphas[1]), np.where(first[:, None], lights[0], lights[1])
    else:
        light = np.clip(np.tensordot(weights, lights, 1), 0, 255)
        if kind != "rgb":
            blend = home.hsv_rgb_palette_blend
            light = blend * light + (1 - blend) * interpolate_hsv(lights, weights, kind == "hsv_circular")
    if (alphas == 1).all():
        return {"colors": tuple(map(tuple, light.tolist())), "alphas": ()}
    colors = light / np.maximum(alpha, 1e-9)[:, None]
    return {"colors": tuple(map(tuple, colors.tolist())), "alphas": tuple(alpha.tolist())}


# ---- padding: the shorter flame gets xforms that do nothing, spelled so that the way there looks well

ROTATED_IDENTITIES = ("spherical", "ngon", "julian", "juliascope", "polar", "wedge_sph", "wedge_julia")
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
    """The flames with as many xforms each, and all with a final map if one has one."""
    count, finals = max(len(flame.xforms) for flame in flames), any(flame.final_xform is not None for flame in flames)
    out = []
    for number, flame in enumerate(flames):
        beside = [flames[k] for k in (number - 1, number + 1) if 0 <= k < len(flames)]
        xforms = [
            replace(m, xaos=m.xaos[: len(flame.xforms)]) for m in flame.xforms
        ]  # not to xforms that are added here
        for i in range(len(xforms), count):
            partners = [other.xforms[i] for other in beside if i < len(other.xforms)]
            xforms.append(replace(padding_xform(partners, kind, flame.is_3d), color=float(i & 1)))
        final = flame.final_xform
        if final is None and finals:
            partners = [other.final_xform for other in beside if other.final_xform is not None]
            final = replace(padding_xform(partners, kind, flame.is_3d), color=float(count & 1), color_speed=0.0)
        out.append(replace(flame, xforms=tuple(xforms), final_xform=final))
    return out


def padding_xform(partners: list[Xform], kind: str, space: bool) -> Xform:
    """A map of weight 0 that does nothing, akin to its partners."""
    plain = Xform(IDENTITY_3D if space else IDENTITY_2D, weight=0.0)
    used = {name: m for m in partners for name, weight in m.variations.items() if weight > 0}
    if kind in LEGACY_INTERPOLATIONS or space:
        return plain
    if kind == "log" and used.keys() & set(ROTATED_IDENTITIES):
        return replace(plain, affine=(-1.0, 0.0, 0.0, 0.0, -1.0, 0.0), variations={"linear": -1.0})
    shared = [name for name in IDENTITY_PARAMETERS if name in used]
    if shared:
        kept = {
            parameter: used[name].parameter_value(parameter)
            for name in shared
            for parameter in variation_table()[name].parameters
        }
        parameters = kept | {
            parameter: value for name in shared for parameter, value in IDENTITY_PARAMETERS[name].items()
        }
        return replace(plain, variations={name: 1 / len(shared) for name in shared}, parameters=parameters)
    turned = [name for name in ("fan", "rings") if name in used]
    if turned:
        weights = {name: 1 / len(turned) for name in turned}
        return replace(plain, affine=(0.0, 1.0, 0.0, 1.0, 0.0, 0.0), variations=weights)
    return plain


def flame_fields(flame: Flame) -> dict:
    """The fields of a flame by name."""
    return {f.name: getattr(flame, f.name) for f in fields(Flame)}
