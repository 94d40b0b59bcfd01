"""Source of the chaos game's kernels, and the arguments that describe a flame to them.

A specialized kernel depends only on a flame's structure: the distinct signatures of its xforms (variations,
post-affine) and whether it has a final xform, xaos or 3D xforms. Weights, coefficients, parameters, the number of
xforms and the camera are arguments, so that editing them compiles nothing. The generic kernel runs every flame.
Both are shaders/flames/flame.cu after a generated apply_xform().
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from renderer.errors import InputError
from renderer.flames.genome import IDENTITY_2D, Flame, Xform
from renderer.flames.variations import Variation, header_source, variation_table
from renderer.gpu.kernel_source import GeneratedSource

APPLY_XFORM = "Point apply_xform(Point p, GLOBAL const float *a, Random *random) {"


@dataclass(frozen=True)
class XformSignature:
    """What an xform's source depends on."""

    variations: tuple[str, ...]
    post: bool

    @property
    def payload_floats(self) -> int:
        """Floats of the xform's record after the header."""
        return 6 * self.post + sum(2 + len(variation_table()[name].parameters) for name in self.variations)


@dataclass(frozen=True)
class Specialization:
    """What a specialized kernel's source depends on.

    `stochastic_rounding`: whether a sample may add fractions, because of palette interpolation, opacity or weights.
    """

    signatures: tuple[XformSignature, ...]
    final: bool
    xaos: bool
    is_3d: bool
    linear_palette: bool
    stochastic_rounding: bool

    @property
    def record_floats(self) -> int:
        """Floats of an xform's record: the header and the longest payload."""
        return header_floats(self.is_3d) + max(signature.payload_floats for signature in self.signatures)

    @property
    def random_per_xform(self) -> int:
        """Upper bound of the random numbers that one xform consumes, with two that replace a bad value."""
        return max(sum(variation_table()[name].random_count for name in s.variations) for s in self.signatures) + 2

    @property
    def random_per_step(self) -> int:
        """Upper bound of the random numbers of one step: two xforms, the final one's probability, one rounding."""
        return 2 * self.random_per_xform + 2

    @property
    def feature_flags(self) -> int:
        """Flags for the generic kernel: bit 0 final xform, 1 xaos, 2 linear palette, 3 stochastic rounding.

        shaders/flames/flame.cu unpacks them.
        """
        return self.final | self.xaos << 1 | self.linear_palette << 2 | self.stochastic_rounding << 3

    @property
    def state_floats(self) -> int:
        """Floats of a chain's state between launches."""
        return 3 + self.is_3d + self.xaos


def signature_of(xform: Xform) -> XformSignature:
    """The signature of an xform.

    Variations of weight 0 are left out. An xform without variations maps every point to the origin, as in flam3.
    """
    names = [name for name, weight in xform.variations.items() if weight != 0]
    # pre_blur comes first: it moves the point that the other variations transform
    names.sort(key=lambda name: (name != "pre_blur", variation_table()[name].index))
    return XformSignature(tuple(names), xform.post != IDENTITY_2D)


def header_floats(is_3d: bool) -> int:
    """Floats of a record's header: affine, color, speed, opacity, signature, packed counts."""
    return 11 + 6 * is_3d


def specialization_of(flames: Sequence[Flame], stochastic_rounding: bool) -> Specialization:
    """The specialization that runs all of these temporal samples of one flame."""
    signatures = {signature_of(xform) for flame in flames for xform in flame.all_xforms}
    linear_palette = flames[0].palette_mode == "linear"
    return Specialization(
        tuple(sorted(signatures, key=lambda signature: (signature.variations, signature.post))),
        any(flame.final_xform is not None for flame in flames),
        any(factor != 1 for flame in flames for xform in flame.xforms for factor in xform.xaos),
        flames[0].is_3d,
        linear_palette,
        stochastic_rounding or linear_palette,
    )


def specialized_source(spec: Specialization) -> GeneratedSource:
    """The source of a specialization's kernel."""
    table = variation_table()
    used = {name for signature in spec.signatures for name in signature.variations}
    last = len(spec.signatures) - 1
    functions = [
        *(table[name].source for name in sorted(used, key=lambda name: table[name].index)),
        *(_xform_source(k, signature, spec.is_3d) for k, signature in enumerate(spec.signatures)),
        f"DEVICE {APPLY_XFORM}",
        f"    switch ((int)a[{header_floats(spec.is_3d) - 2}]) {{" if last else "",
        *(f"    case {k}: return xform_{k}(p, a, random);" for k in range(last)),
        "    }" if last else "",
        f"    return xform_{last}(p, a, random);",
        "}",
    ]
    return _kernel_source(
        "flame.cu of this flame",
        functions,
        GENERIC=0,
        IS_3D=int(spec.is_3d),
        HAS_XAOS=int(spec.xaos),
        HAS_FINAL=int(spec.final),
        LINEAR_PALETTE=int(spec.linear_palette),
        STOCHASTIC_ROUNDING=int(spec.stochastic_rounding),
        RECORD_FLOATS=spec.record_floats,
        RANDOM_PER_STEP=f"{spec.random_per_step}u",
        RANDOM_PER_XFORM=f"{spec.random_per_xform}u",
    )


def generic_source(is_3d: bool) -> GeneratedSource:
    """The source of the kernel that runs any 2D or any 3D flame: the records say which variations to apply."""
    header = header_floats(is_3d)
    pre_blur = variation_table()["pre_blur"]
    cases = []
    for v in variation_table().values():
        if v is not pre_blur:
            z = " sum.z = sum.z + v[1] * q.z;" if v.name == "linear" and is_3d else ""
            cases.append(f"        case {v.index}: sum = moved_by(sum, {_call(v, 'v', 0)});{z}")
            cases.append(f"            v += {2 + len(v.parameters)}; break;")
    functions = [
        *(v.source for v in variation_table().values()),
        f"DEVICE_NOINLINE {APPLY_XFORM}",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
        f"    int packed_counts = (int)a[{header - 1}], left = packed_counts >> 1, has_post = packed_counts & 1;",
        f"    GLOBAL const float *v = a + {header} + has_post * 6;",
        f"    if (left > 0 && (int)v[0] == {pre_blur.index}) {{",
        f"        q = moved_by(q, {_call(pre_blur, 'v', 0)});",
        "        v += 2; left--;",
        "    }",
        "    for (; left > 0; left--) {",
        "        switch ((int)v[0]) {",
        *cases,
        "        default: return p;",
        "        }",
        "    }",
        f"    return has_post ? apply_post(sum, a + {header}) : sum;",
        "}",
    ]
    return _kernel_source("flame.cu of any flame", functions, GENERIC=1, IS_3D=int(is_3d))


def _kernel_source(name: str, functions: list[str], **macros: int | str) -> GeneratedSource:
    """The kernel of flame.cu after its macros, the head of variations.h and generated functions."""
    defines = (f"#define {macro} {value}" for macro, value in macros.items())
    return GeneratedSource(name, "\n".join([*defines, header_source(), *functions, '#include "flames/flame.cu"']))


def _call(v: Variation, record: str, offset: int) -> str:
    """A variation of the point q, its index, weight and parameters at `offset` of a record whose affine is `a`."""
    parameters = "".join(f", {record}[{offset + 2 + k}]" for k in range(len(v.parameters)))
    return f"variation_{v.name}(q.x, q.y, {record}[{offset + 1}], a, random{parameters})"


def _xform_source(index: int, signature: XformSignature, is_3d: bool) -> str:
    """The function xform_INDEX: the point p after an xform of this signature, whose record is `a`."""
    header = header_floats(is_3d)
    offset = header + 6 * signature.post
    lines = [
        f"DEVICE Point xform_{index}(Point p, GLOBAL const float *a, Random *random) {{",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
    ]
    for name in signature.variations:
        v = variation_table()[name]
        target = "q" if name == "pre_blur" else "sum"
        lines.append(f"    {target} = moved_by({target}, {_call(v, 'a', offset)});")
        if name == "linear" and is_3d:
            lines.append(f"    sum.z = sum.z + a[{offset + 1}] * q.z;")
        offset += 2 + len(v.parameters)
    result = f"apply_post(sum, a + {header})" if signature.post else "sum"
    return "\n".join([*lines, f"    return {result};", "}"])


# ---- arguments


def adjusted_opacity(opacity: float) -> float:
    """flam3's adjust_percentage: 0 hidden, 0.5 a tenth, 1 fully plotted."""
    return 0.0 if opacity <= 0 else min(1.0, 10.0 ** np.log2(opacity))


def pack_xform(xform: Xform, spec: Specialization, final: bool) -> np.ndarray:
    """(record_floats,) float32: the record of one xform.

    The opacity of an xform that is no final one is a uint in 1/65536, stored in a float's bits.
    """
    signature = signature_of(xform)
    values = [*xform.affine, xform.color, xform.color_speed, xform.opacity if final else 0.0]
    values += [float(spec.signatures.index(signature)), 2.0 * len(signature.variations) + signature.post]
    if signature.post:
        values += xform.post
    for name in signature.variations:
        v = variation_table()[name]
        values += [v.index, xform.variations[name], *(xform.parameter_value(p) for p in v.parameters)]
    out = np.zeros(spec.record_floats, "f4")
    out[: len(values)] = np.clip(values, -3e38, 3e38)
    if not final:
        out.view("u4")[len(xform.affine) + 2] = round(adjusted_opacity(xform.opacity) * 65536)
    return out


def pack_parameters(flame: Flame, camera: np.ndarray, spec: Specialization) -> np.ndarray:
    """(n,) float32: the parameters of one temporal sample: camera, final xform if any, xforms."""
    parts = [np.asarray(camera, "f4").ravel()]
    if spec.final:
        parts.append(pack_xform(flame.final_xform or Xform(opacity=0.0), spec, final=True))
    parts += [pack_xform(xform, spec, final=False) for xform in flame.xforms]
    return np.concatenate(parts)


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
