"""Source of the chaos game's kernels; kernel_arguments.py has the arguments that describe a flame to them.

A specialized kernel depends only on a flame's structure: the distinct signatures of its xforms (variations,
post-affine) and whether it has a final xform, xaos or 3D xforms. Weights, coefficients, parameters, the number of
xforms and the camera are arguments, so that editing them compiles nothing. The generic kernel runs every flame.
Both are shaders/flames/flame.cu after a generated apply_xform().
"""

from collections.abc import Sequence
from dataclasses import dataclass

from renderer.flames.genome import IDENTITY_2D, IDENTITY_3D, MODIFIERS, Flame, Xform
from renderer.flames.variations import Variation, header_source, sources, variation_table
from renderer.gpu.kernel_source import GeneratedSource

# The generic kernel on CPUs calls each variation instead of inlining it: compiled in a ninth of the time, and faster.
CALLED = "#if LANES > 1\n#define CALLED DEVICE_NOINLINE_ALWAYS\n#else\n#define CALLED DEVICE\n#endif"
APPLY_XFORM = "Point apply_xform(Point p, GLOBAL const float *a, Random *random) {"


@dataclass(frozen=True)
class XformSignature:
    """What an xform's source depends on."""

    variations: tuple[str, ...]
    post: bool

    def payload_floats(self, has_z: bool) -> int:
        """Floats of the xform's record after the header."""
        affine = affine_floats(has_z) * self.post
        return affine + sum(2 + payload_numbers(variation_table()[name]) for name in self.variations)


@dataclass(frozen=True)
class Specialization:
    """What a specialized kernel's source depends on.

    `is_3d`: whether points have z. `stochastic_rounding`: whether a sample may add fractions, because of palette
    interpolation, opacity or weights. `preserves_z`: whether z passes through variations that do not define it.
    `defocus`: whether the camera has depth of field. `shown`: whether points show another palette coordinate than they
    blend. `carried`: the genome.MODIFIERS that they carry. `fades`: whether they fade with depth. `solid`: whether the
    nearest point of each bucket is kept. `jitters`: whether points are plotted beside their places.
    """

    signatures: tuple[XformSignature, ...]
    finals: int
    xaos: bool
    is_3d: bool
    linear_palette: bool
    stochastic_rounding: bool
    preserves_z: bool = False
    defocus: bool = False
    shown: bool = False
    carried: tuple[str, ...] = ()
    fades: bool = False
    solid: bool = False
    jitters: bool = False

    @property
    def used_variations(self) -> list[Variation]:
        """The variations of its signatures, without stages, in the table's order."""
        table = variation_table()
        used = {table[name].function: table[name] for signature in self.signatures for name in signature.variations}
        return sorted(used.values(), key=lambda v: v.index)

    @property
    def direct_color(self) -> bool:
        """Whether a variation sets colors."""
        return any(v.sets_color for v in self.used_variations)

    @property
    def hides(self) -> bool:
        """Whether a variation hides points."""
        return any(v.hides for v in self.used_variations)

    @property
    def sets_rgb(self) -> bool:
        """Whether a variation gives points colors that are not the palette's."""
        return any(v.sets_rgb for v in self.used_variations)

    @property
    def is_generic(self) -> bool:
        """Whether the generic kernel runs it: it knows flam3's variations, without stages and without preserved z."""
        names = {name for signature in self.signatures for name in signature.variations}
        known = all(dict.__contains__(generic_variations(), name) for name in names)
        return (
            known
            and self.finals < 2
            and not (
                self.preserves_z
                or self.defocus
                or self.shown
                or self.carried
                or self.fades
                or self.solid
                or self.jitters
            )
        )

    @property
    def record_floats(self) -> int:
        """Floats of an xform's record: the header and the longest payload."""
        longest = max(signature.payload_floats(self.is_3d) for signature in self.signatures)
        return header_floats(self.is_3d, self.direct_color) + longest + self.extra_record_floats

    @property
    def extra_floats(self) -> int:
        """Floats that points carry besides place and color."""
        return self.shown + len(self.carried)

    @property
    def extra_record_floats(self) -> int:
        """Floats at the end of a record, for what points carry."""
        return 3 * self.shown + 2 * len(self.carried)

    @property
    def random_per_xform(self) -> int:
        """Upper bound of the random numbers that one xform consumes, with two that replace a bad value."""
        return max(sum(variation_table()[name].random_count for name in s.variations) for s in self.signatures) + 2

    @property
    def random_per_step(self) -> int:
        """Upper bound of the random numbers of one step.

        Those of the xform and the final ones, the final ones' probabilities, one rounding, two of a lens, one of a
        solid's opacity.
        """
        finals = max(self.finals, 1)
        return (1 + finals) * self.random_per_xform + 1 + finals + 2 * self.defocus + self.solid + 3 * self.jitters

    @property
    def feature_flags(self) -> int:
        """Flags for the generic kernel: bit 0 final xform, 1 xaos, 2 linear palette, 3 stochastic rounding.

        shaders/flames/flame.cu unpacks them.
        """
        return self.finals | self.xaos << 1 | self.linear_palette << 2 | self.stochastic_rounding << 3

    @property
    def state_floats(self) -> int:
        """Floats of a chain's state between launches."""
        return 3 + self.is_3d + self.xaos + self.extra_floats


def signature_of(xform: Xform) -> XformSignature:
    """The signature of an xform.

    Variations of weight 0 are left out. An xform without variations maps every point to the origin, as in flam3.
    pre_ variations come first, in the xform's order, pre_blur before all; then the others in the table's order, which
    gives a sum the same bits in any order of writing; then post_ variations in the xform's order.
    """
    table = variation_table()
    names = [name for name, weight in xform.variations.items() if weight != 0]
    rank = {"pre_": 1, "": 2, "post_": 3}
    names.sort(key=lambda name: (0, 0) if name == "pre_blur" else (rank[table[name].stage], table[name].stage_rank))
    return XformSignature(tuple(names), xform.post not in (IDENTITY_2D, IDENTITY_3D))


def payload_numbers(v: Variation) -> int:
    """Floats of a variation in a record after index and weight: parameters, and the distance of its table if any."""
    return len(v.parameters) + v.has_table


def affine_floats(has_z: bool) -> int:
    """Coefficients of an affine in a record."""
    return 12 if has_z else 6


def header_floats(is_3d: bool, direct_color: bool = False) -> int:
    """Floats of a record's header: affine, color, speed, opacity, direct color if any, signature, packed counts."""
    return affine_floats(is_3d) + 5 + direct_color


def generic_variations() -> dict[str, Variation]:
    """The variations of the generic kernels: flam3's. Others are rare, and their own kernels compile faster."""
    return {v.name: v for v in variation_table().values() if v.origin == "flam3"}


def specialization_of(flames: Sequence[Flame], stochastic_rounding: bool) -> Specialization:
    """The specialization that runs all of these temporal samples of one flame."""
    signatures = {signature_of(xform) for flame in flames for xform in flame.all_xforms}
    linear_palette = flames[0].palette_mode == "linear"
    has_z = any(flame.has_z for flame in flames)
    carried = tuple(n for n in MODIFIERS[:4] if any(x.modifiers.get(n) for flame in flames for x in flame.all_xforms))
    fades, solid = any(flame.cam_zdimish != 0 for flame in flames), flames[0].solid is not None
    recolors = fades or bool(carried)
    return Specialization(
        tuple(sorted(signatures, key=lambda signature: (signature.variations, signature.post))),
        max(len(flame.final_xforms) for flame in flames),
        any(factor != 1 for flame in flames for xform in flame.xforms for factor in xform.xaos),
        has_z,
        linear_palette,
        stochastic_rounding or linear_palette or recolors,
        has_z and flames[0].preserve_z,
        has_z and not solid and any(flame.cam_dof != 0 for flame in flames),
        any(xform.color_type in ("distance", "cyclic") for flame in flames for xform in flame.all_xforms),
        carried + ("material",) * solid,
        fades,
        solid,
        any(flame.jitters for flame in flames),
    )


def specialized_source(spec: Specialization) -> GeneratedSource:
    """The source of a specialization's kernel."""
    last = len(spec.signatures) - 1
    functions = [
        *sources(spec.used_variations),
        *(_xform_source(k, signature, spec) for k, signature in enumerate(spec.signatures)),
        f"DEVICE {APPLY_XFORM}",
        f"    switch ((int)a[{header_floats(spec.is_3d, spec.direct_color) - 2}]) {{" if last else "",
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
        DIRECT_COLOR=int(spec.direct_color),
        HIDES=int(spec.hides),
        RGB=int(spec.sets_rgb),
        DEFOCUS=int(spec.defocus),
        HAS_XAOS=int(spec.xaos),
        FINALS=spec.finals,
        LINEAR_PALETTE=int(spec.linear_palette),
        STOCHASTIC_ROUNDING=int(spec.stochastic_rounding),
        RECORD_FLOATS=spec.record_floats,
        RANDOM_PER_STEP=f"{spec.random_per_step}u",
        RANDOM_PER_XFORM=f"{spec.random_per_xform}u",
        SHOWN=int(spec.shown),
        FADES=int(spec.fades),
        SOLID=int(spec.solid),
        JITTERS=int(spec.jitters),
        EXTRA_FLOATS=spec.extra_floats,
        EXTRA_RECORD_FLOATS=spec.extra_record_floats,
        **{f"AT_{name.upper()}": spec.shown + k for k, name in enumerate(spec.carried)},
    )


def generic_source(is_3d: bool) -> GeneratedSource:
    """The source of the kernel that runs any 2D or any 3D flame of flam3's variations: the records say which."""
    header = header_floats(is_3d)
    table = generic_variations()
    pre_blur = table["pre_blur"]
    cases = []
    for v in table.values():
        if v is not pre_blur:
            cases.append(f"        case {v.index}: {_application(v, 'v', 0, is_3d, False)}")
            cases.append(f"            v += {2 + len(v.parameters)}; break;")
    apply_post = "apply_affine" if is_3d else "apply_post"
    functions = [
        CALLED,
        *(
            text.replace("DEVICE ", "CALLED ") if text.startswith("DEVICE ") else text
            for text in sources(table.values())
        ),
        f"DEVICE_NOINLINE {APPLY_XFORM}",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
        f"    int packed_counts = (int)a[{header - 1}], left = packed_counts >> 1, has_post = packed_counts & 1;",
        f"    GLOBAL const float *v = a + {header} + has_post * {affine_floats(is_3d)};",
        f"    if (left > 0 && (int)v[0] == {pre_blur.index}) {{",
        f"        {_application(pre_blur, 'v', 0, is_3d, False)}",
        "        v += 2; left--;",
        "    }",
        "    for (; left > 0; left--) {",
        "        switch ((int)v[0]) {",
        *cases,
        "        default: return p;",
        "        }",
        "    }",
        f"    return has_post ? {apply_post}(sum, a + {header}) : sum;",
        "}",
    ]
    return _kernel_source(
        "flame.cu of any flame",
        functions,
        GENERIC=1,
        IS_3D=int(is_3d),
        DIRECT_COLOR=0,
        HIDES=0,
        RGB=0,
        DEFOCUS=0,
        SHOWN=0,
        FADES=0,
        SOLID=0,
        JITTERS=0,
        EXTRA_FLOATS=0,
    )


def _kernel_source(name: str, functions: list[str], **macros: int | str) -> GeneratedSource:
    """The kernel of flame.cu after its macros, the head of the variations and generated functions."""
    defines = (f"#define {macro} {value}" for macro, value in macros.items())
    return GeneratedSource(name, "\n".join([*defines, header_source(), *functions, '#include "flames/flame.cu"']))


def _application(v: Variation, record: str, offset: int, is_3d: bool, preserves_z: bool) -> str:
    """The statements that apply a variation, whose index, weight and parameters are at `offset` of a record.

    The affine is `a`; pre_ variations change the point q, post_ ones `sum`; the others add to `sum` for the point q.
    """
    place, target = ("sum" if v.stage == "post_" else "q"), ("q" if is_pre(v) else "sum")
    weight = f"{record}[{offset + 1}]"
    parameters = "".join(f", {record}[{offset + 2 + k}]" for k in range(len(v.parameters)))
    if v.has_table:
        parameters += f", a + (int){record}[{offset + 2 + len(v.parameters)}]"
    in_stage = v.stage != "" or is_pre(v)
    sets = v.replaces if not in_stage else not (v.adds or is_pre_blur(v))
    move = "moved_to" if sets else "moved_by"
    if v.is_plain:
        call = f"variation_{v.function}({place}.x, {place}.y, {weight}, a, random{parameters})"
    else:
        head = f"{place}.x, {place}.y, {place}.z, {weight}, a, random, &color, &hidden, &rgb"
        call = f"variation_{v.function}({head}{parameters})"
    if v.in_space:
        z = f" {target}.z = {'' if in_stage and sets else f'{target}.z + '}t.z;" if is_3d else ""
        return f"{{ Triple t = {call}; {target} = {move}({target}, flat(t));{z} }}"
    z = _z_of_plain(v, place, weight, parameters, preserves_z) if is_3d else ""
    if z and in_stage:
        before = f"real z = {z}; "
        return f"{{ {before}{target} = {move}({target}, {call}); {target}.z = {'z' if sets else f'{target}.z + z'}; }}"
    return f"{target} = {move}({target}, {call});" + (f" sum.z = sum.z + {z};" if z else "")


def _z_of_plain(v: Variation, place: str, weight: str, parameters: str, preserves_z: bool) -> str:
    """What a variation of x and y adds to z, or as a stage sets z to; empty: nothing."""
    if v.z_body:
        return f"z_of_{v.function}({place}.x, {place}.y, {place}.z, {weight}{parameters})"
    if v.function == "linear" or preserves_z and v.stage == "" and not is_pre_blur(v):
        return f"{weight} * {place}.z"
    return ""


def is_pre_blur(v: Variation) -> bool:
    """Whether it is flam3's pre_blur, which has its own place in the table."""
    return v.name == "pre_blur"


def is_pre(v: Variation) -> bool:
    """Whether it changes the point before the other variations."""
    return v.stage == "pre_" or is_pre_blur(v)


def _xform_source(index: int, signature: XformSignature, spec: Specialization) -> str:
    """The function xform_INDEX: the point p after an xform of this signature, whose record is `a`."""
    header = header_floats(spec.is_3d, spec.direct_color)
    offset = header + affine_floats(spec.is_3d) * signature.post
    lines = [
        f"DEVICE Point xform_{index}(Point p, GLOBAL const float *a, Random *random) {{",
        "    Point q = apply_affine(p, a), sum = at_origin(p);",
    ]
    used = [variation_table()[name] for name in signature.variations]
    if not all(v.is_plain for v in used) or spec.direct_color:
        lines.append("    real blended = blend_color(p, a), color = blended;")
        lines.append("    mask hidden = (mask)(0);")
        lines.append("    real rgb = (real)(-1.0f);")
    for v in used:
        lines.append(f"    {_application(v, 'a', offset, spec.is_3d, spec.preserves_z)}")
        offset += 2 + payload_numbers(v)
    if spec.direct_color:
        lines.append("    sum.color = direct_color(blended, color, a);")
    if spec.hides:
        hidden = any(v.hides for v in used)
        lines.append(f"    sum.hidden = {'hidden ? (real)(1.0f) : (real)(0.0f)' if hidden else '(real)(0.0f)'};")
    if spec.sets_rgb:
        lines.append(f"    sum.rgb = {'rgb' if any(v.sets_rgb for v in used) else '(real)(-1.0f)'};")
    apply_post = "apply_affine" if spec.is_3d else "apply_post"
    result = f"{apply_post}(sum, a + {header})" if signature.post else "sum"
    return "\n".join([*lines, f"    return {result};", "}"])
