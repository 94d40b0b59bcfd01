"""The arguments that describe a flame to the chaos game's kernels: records of xforms, cameras, tables of choices."""

from collections.abc import Callable, Sequence

import numpy as np

from renderer.errors import InputError
from renderer.flames import stamps
from renderer.flames.camera import plane_in_space
from renderer.flames.genome import Flame, Xform
from renderer.flames.kernel_source import Specialization, signature_of
from renderer.flames.variations import Variation, variation_table

COLOR_TYPES = ("diffusion", "none", "distance", "cyclic")  # as in shaders/flames/carried.h
MAX_PACKED_FLOATS = 1 << 24  # of all temporal samples: distances between them are exact in float32


def adjusted_opacity(opacity: float) -> float:
    """flam3's adjust_percentage: 0 hidden, 0.5 a tenth, 1 fully plotted."""
    return 0.0 if opacity <= 0 else min(1.0, 10.0 ** np.log2(opacity))


def in_space(affine: Sequence[float]) -> tuple[float, ...]:
    """The 12 coefficients of an affine, which may have 6: then z stays."""
    if len(affine) == 12:
        return tuple(affine)
    a, b, c, d, e, f = affine
    return (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 1.0, 0.0)


def pack_xform(
    xform: Xform, spec: Specialization, final: bool, table_distance: Callable[[Variation], float]
) -> np.ndarray:
    """(record_floats,) float32: the record of one xform.

    The opacity of an xform that is no final one is a uint in 1/65536, stored in a float's bits. `table_distance`: how
    far after the record's first float a variation's table lies.
    """
    signature = signature_of(xform)
    affine = in_space(xform.affine) if spec.is_3d else xform.affine
    speed = 0.0 if xform.color_type in ("none", "distance") else xform.color_speed
    values = [*affine, xform.color, speed, xform.opacity if final else 0.0]
    values += [xform.var_color] if spec.direct_color else []
    values += [float(spec.signatures.index(signature)), 2.0 * len(signature.variations) + signature.post]
    if signature.post:
        values += in_space(xform.post) if spec.is_3d else xform.post
    for name in signature.variations:
        v = variation_table()[name]
        values += [v.index, xform.variations[name], *(v.limited(p, xform.parameter_value(p)) for p in v.parameters)]
        values += [table_distance(v)] if v.has_table else []
    out = np.zeros(spec.record_floats, "f4")
    out[: len(values)] = np.clip(values, -3e38, 3e38)
    if spec.extra_record_floats:
        out[-spec.extra_record_floats :] = _carried_values(xform, spec)
    if not final:
        out.view("u4")[len(affine) + 2] = round(adjusted_opacity(xform.opacity) * 65536)
    return out


def _carried_values(xform: Xform, spec: Specialization) -> list[float]:
    """The end of a record: kind of color, its offset and factor; then of each carried modifier a factor and a term."""
    symmetry = 1 - 2 * xform.color_speed
    kind = COLOR_TYPES.index(xform.color_type)
    values = [kind, xform.color, symmetry + (xform.color_type == "distance")] if spec.shown else []
    for name in spec.carried:
        keep = (1 + xform.modifiers.get(f"{name}_speed", 0.0)) / 2
        values += [keep, xform.modifiers.get(name, 0.0) * (1 - keep)]
    return values


def _packed_camera(flame: Flame, camera: np.ndarray, spec: Specialization) -> np.ndarray:
    """A flame's camera as the kernel of all temporal samples reads it."""
    camera = np.asarray(camera, "f8").ravel()
    if spec.is_3d and not flame.has_z:
        camera = np.concatenate([plane_in_space(camera[:6]), camera[6:]])
    if spec.jitters and not flame.jitters:
        camera = np.append(camera, (0.0, 0.0))
    return camera.astype("f4")


def pack_parameters(
    flames: Sequence[Flame], cameras: Sequence[np.ndarray], spec: Specialization
) -> tuple[np.ndarray, int]:
    """The parameters of all temporal samples, and the floats of one: camera, final xforms, xforms.

    (n,) float32. The tables of variations follow the last sample, equal ones once.
    """
    shown = [_packed_camera(flame, camera, spec) for flame, camera in zip(flames, cameras, strict=True)]
    records = len(flames[0].xforms) + spec.finals
    stride = len(shown[0]) + records * spec.record_floats
    parts: list[np.ndarray] = []
    tables: dict[bytes, int] = {}
    end = stride * len(flames)

    def place(table: np.ndarray) -> int:
        """Where a table lies among all floats."""
        nonlocal end
        key = table.tobytes()
        if key not in tables:
            if end + table.size > MAX_PACKED_FLOATS:
                raise InputError(f"flame: the tables of its variations have more than {MAX_PACKED_FLOATS} numbers")
            tables[key] = end
            end += table.size
        return tables[key]

    for number, (flame, camera) in enumerate(zip(flames, shown, strict=True)):
        parts.append(camera)
        idle = (Xform(opacity=0.0),) * (spec.finals - len(flame.final_xforms))
        for k, xform in enumerate((*flame.final_xforms, *idle, *flame.xforms)):
            start = number * stride + len(camera) + k * spec.record_floats

            def distance(v: Variation, xform: Xform = xform, start: int = start, flame: Flame = flame) -> float:
                values = {
                    name.removeprefix(f"{v.name}_"): v.limited(name, xform.parameter_value(name))
                    for name in v.parameters
                }
                texts = {
                    name.removeprefix(f"{v.name}_"): text
                    for name, text in xform.extra.items()
                    if name.startswith(f"{v.name}_")
                }
                if v.function in stamps.OF_PALETTE and values["Gradient"] == 1:
                    levels = np.clip(np.rint(flame.palette_colors[:256, :3]), 0, 255)
                    texts["palette"] = levels.astype("u1").tobytes().hex()
                return float(place(stamps.table_of(v.function, values, texts)) - start)

            parts.append(pack_xform(xform, spec, k < spec.finals, distance))
    return np.concatenate([*parts, *(np.frombuffer(key, "f4") for key in tables)]), stride


def alias_table(weights: np.ndarray) -> np.ndarray:
    """(n, 2) uint32 for Walker's alias method with weights (n,): a threshold out of 2^32, and the alias above it."""
    count = len(weights)
    scaled = weights / weights.sum() * count
    table, order = np.zeros((count, 2), "u4"), range(count)
    small, large = [i for i in order if scaled[i] < 1], [i for i in order if scaled[i] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        table[low] = min(max(round(scaled[low] * 2**32), 0), 2**32 - 1), high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    for i in small + large:  # these are 1 but for rounding
        table[i] = 2**32 - 1, i
    return table


def xform_distributions(flame: Flame, spec: Specialization) -> np.ndarray:
    """(1 or 1 + xforms, xforms, 2) uint32: the alias table of the first step, and with xaos that after each xform."""
    weights = np.array([xform.weight for xform in flame.xforms], "f8")
    if not weights.sum() > 0:
        raise InputError("flame: the weights of all xforms are 0; at least one must be above 0")
    tables = [alias_table(weights)]
    for index, xform in enumerate(flame.xforms if spec.xaos else ()):
        factors = np.ones(len(weights))
        factors[: len(xform.xaos)] = xform.xaos[: len(weights)]
        if not (weights * factors).sum() > 0:
            if xform.weight > 0:
                raise InputError(f"flame: the xaos of xform {index} excludes every xform, so chains would end there")
            factors = np.ones(len(weights))
        tables.append(alias_table(weights * factors))
    return np.array(tables)
