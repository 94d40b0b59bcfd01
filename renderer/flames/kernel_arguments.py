"""Packs a flame into the arrays that the chaos game's kernels read: xforms, cameras, probabilities of xforms.

chaos_game.py uploads the arrays. shaders/flames/flame.cu describes the layout of an xform's record at its top; its
lengths depend on the kernel's Specialization (kernel_source.py).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from renderer.errors import InputError
from renderer.flames.camera import plane_in_space
from renderer.flames.genome import COLOR_TYPES, Flame, Xform, choice_weights
from renderer.flames.kernel_source import FINAL_PADDING, Specialization, xform_signature
from renderer.flames.variations.catalog import Variation, variation_table

MAX_PACKED_FLOATS = 1 << 24  # for all temporal samples: differences of their indices are exact in float32


def adjusted_opacity(opacity: float) -> float:
    """The probability of plotting a point of an xform of this opacity: 0, 0.5, 1 -> 0, 0.1, 1 (adjust_percentage)."""
    return 0.0 if opacity <= 0 else min(1.0, 10.0 ** np.log2(opacity))


def in_space(affine: Sequence[float]) -> tuple[float, ...]:
    """The 12 coefficients of an affine of 12 or 6 coefficients; 6 leave z unchanged."""
    if len(affine) == 12:
        return tuple(affine)
    a, b, c, d, e, f = affine
    return (a, b, 0.0, c, d, e, 0.0, f, 0.0, 0.0, 1.0, 0.0)


def pack_xform(xform: Xform, spec: Specialization, final: bool, table_distances: Mapping[str, int]) -> np.ndarray:
    """(record_floats,) float32: the record of one xform.

    The opacity of an xform is stored as the bits of a uint32 in 1/65536, of a final xform as a float.
    `table_distances`: by the variations with a table, the number of floats from the record's start to the table.
    """
    signature = xform_signature(xform)
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
        values += [table_distances[name]] if v.has_table else []
    out = np.zeros(spec.record_floats, "f4")
    out[: len(values)] = np.clip(values, -3e38, 3e38)
    if spec.extra_record_floats:
        out[-spec.extra_record_floats :] = _attribute_values(xform, spec)
    if not final:
        # after affine, color and speed
        out.view("u4")[len(affine) + 2] = round(adjusted_opacity(xform.opacity) * 65536)
    return out


def _attribute_values(xform: Xform, spec: Specialization) -> list[float]:
    """The end of a record: if spec.shown, color type, color and factor; then factor and term of each modifier.

    A point's modifier becomes factor times its value plus term.
    """
    symmetry = 1 - 2 * xform.color_speed  # JWildfire's measure of color_speed
    kind = COLOR_TYPES.index(xform.color_type)
    values = [kind, xform.color, symmetry + (xform.color_type == "distance")] if spec.shown else []
    for name in spec.modifiers:
        keep = (1 + xform.modifiers.get(f"{name}_speed", 0.0)) / 2
        values += [keep, xform.modifiers.get(name, 0.0) * (1 - keep)]
    return values


def _packed_camera(flame: Flame, camera: np.ndarray, spec: Specialization) -> np.ndarray:
    """(n,) float32: a flame's camera, padded with the numbers that only other temporal samples of the picture have."""
    camera = np.asarray(camera, "f8").ravel()
    if spec.is_3d and not flame.has_z:
        camera = np.concatenate([plane_in_space(camera[:6]), camera[6:]])  # behind the affine: the jitter, if any
    if spec.jitters and not flame.jitters:
        camera = np.append(camera, (0.0, 0.0))
    largest = float(np.finfo("f4").max)  # a camera far from all points may have larger numbers
    return np.asarray(np.clip(camera, -largest, largest), "f4")


def _table(v: Variation, xform: Xform, flame: Flame) -> np.ndarray:
    """(n,) float32: the table of a variation by the parameters, texts and palette that the xform and flame give it."""
    prefix = f"{v.name}_"
    values = {name.removeprefix(prefix): v.limited(name, xform.parameter_value(name)) for name in v.parameters}
    texts = {name.removeprefix(prefix): text for name, text in xform.extra.items() if name.startswith(prefix)}
    if v.takes_palette and values["Gradient"] == 1:
        levels = np.clip(np.rint(flame.palette_colors[:256, :3]), 0, 255)
        texts["palette"] = levels.astype("u1").tobytes().hex()
    return v.table(values, texts)


def pack_parameters(
    flames: Sequence[Flame], cameras: Sequence[np.ndarray], spec: Specialization
) -> tuple[np.ndarray, int]:
    """(n,) float32 parameters of all temporal samples, and the number of floats of one sample.

    A sample has its camera, the records of the final xforms, and the records of the xforms. The tables of variations
    follow the last sample; equal tables are stored once.
    """
    packed_cameras = [_packed_camera(flame, camera, spec) for flame, camera in zip(flames, cameras, strict=True)]
    records = len(flames[0].xforms) + spec.finals
    stride = len(packed_cameras[0]) + records * spec.record_floats
    arrays: list[np.ndarray] = []
    tables: dict[bytes, int] = {}
    end = stride * len(flames)

    def table_start(table: np.ndarray) -> int:
        """The index of a table's first float among all floats; equal tables share one."""
        nonlocal end
        key = table.tobytes()
        if key not in tables:
            if end + table.size > MAX_PACKED_FLOATS:
                raise InputError(f"flame: the tables of its variations have more than {MAX_PACKED_FLOATS} numbers")
            tables[key] = end
            end += table.size
        return tables[key]

    for sample, (flame, camera) in enumerate(zip(flames, packed_cameras, strict=True)):
        arrays.append(camera)
        padding = (FINAL_PADDING,) * (spec.finals - len(flame.final_xforms))
        for k, xform in enumerate((*flame.final_xforms, *padding, *flame.xforms)):
            record_start = sample * stride + len(camera) + k * spec.record_floats
            used = [variation_table()[name] for name in xform_signature(xform).variations]
            distances = {v.name: table_start(_table(v, xform, flame)) - record_start for v in used if v.has_table}
            arrays.append(pack_xform(xform, spec, k < spec.finals, distances))
    return np.concatenate([*arrays, *(np.frombuffer(key, "f4") for key in tables)]), stride


def alias_table(weights: np.ndarray) -> np.ndarray:
    """(n, 2) uint32 for Walker's alias method with weights (n,).

    Entry k: the threshold in 1/2^32 below which k is chosen, and the alias that is chosen otherwise.
    """
    count = len(weights)
    scaled = weights / weights.sum() * count
    table, order = np.zeros((count, 2), "u4"), range(count)
    small, large = [i for i in order if scaled[i] < 1], [i for i in order if scaled[i] >= 1]
    while small and large:
        low, high = small.pop(), large.pop()
        table[low] = min(max(round(scaled[low] * 2**32), 0), 2**32 - 1), high
        scaled[high] -= 1 - scaled[low]
        (small if scaled[high] < 1 else large).append(high)
    for i in small + large:  # scaled weights of 1, apart from rounding
        table[i] = 2**32 - 1, i
    return table


def xform_distributions(flame: Flame, spec: Specialization) -> np.ndarray:
    """(n, xforms, 2) uint32 alias tables: of the first step, and with xaos one more for the step after each xform.

    n is 1 + xforms with xaos, else 1. Raises InputError if no xform can be chosen.
    """
    try:
        return np.array([alias_table(weights) for weights in choice_weights(flame, spec.xaos)])
    except ValueError as error:
        raise InputError(f"flame: {error}") from error
