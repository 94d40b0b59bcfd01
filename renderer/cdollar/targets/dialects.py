"""Dialects of generated kernels: C with the macros of common/portable.h (CUDA, OpenCL), C for CPUs, and GLSL.

A dialect spells declarations, literals, casts, array elements and operations; the emitters (expression_emitter.py)
take a dialect and do not know the target. The texts of operations come from the table in ir/operations.py. Texts are
Python formats: {0}, {1} are the operands, which are C variables.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from renderer.cdollar.ir.operations import NEUTRAL_ELEMENTS, OPERATIONS, neutral_element
from renderer.cdollar.ir.types import FLOATS, INTEGERS, Number, promoted_type

# Operations on floats that shaders/cdollar/elementary.h (exp: builtins.h) has as NAME_float.
ELEMENTARY = "sin cos tan sinh cosh tanh asin acos atan atan2 exp exp2 log log2 log10 pow".split()

STORAGE = {"bool": "uchar", "byte": "uchar", "half": "ushort"}


def storage_type(type_: str) -> str:
    """The C type in which arrays of a scalar type are stored."""
    return STORAGE.get(type_, type_)


class CDialect:
    """C with the macros of common/portable.h, which OpenCL and CUDA compile; the base of the other dialects."""

    infinity = "as_float(0x7f800000u)"
    nan = "as_float(0x7fc00000u)"
    wraps = False  # True: signed integers wrap, as unsigned ones do; in C their overflow is undefined
    unrolls_loops = False  # True: the text repeats short reductions element by element
    may_leave_loops = False  # True: drivers may leave loops before their conditions are false
    keeps_rounding = True  # False: compilers may simplify (a + b) - a to b
    first_index = "0"  # the index of load() for the first element
    struct = "typedef struct {{ {members} }} {name};"  # declares a struct
    # Device functions with loops or local arrays have a parameter for the poison, an int that is set if a loop is
    # stopped or an index is outside of its array.
    poison_parameter = "int *poison"
    poison_variable = "*poison"  # the name of this parameter's value inside of the function
    # Reductions of bool without branches: LLVM miscompiles `&&` in vectorized loops with several elements per round.
    reducers: ClassVar[dict[str, str]] = {"&&": "({0} & {1})", "||": "({0} | {1})"}
    zero = ""  # an expression for 0.0, for drivers that simplify x + 0.0 to x and x * 0.0 to 0.0
    poison_address = "&"  # the prefix of the variable that a call passes for poison_parameter
    inlines_calls = False  # True: drivers inline every call

    def __init__(self, strict: bool = False) -> None:
        """`strict`: floats are reduced in one order; in GLSL nothing is contracted, and / and sqrt round correctly."""
        self.strict = strict

    def cast(self, target: str, text: str) -> str:
        """The conversion of an expression to the scalar type `target`."""
        return f"(({target}){text})"

    def operation(self, name: str, type_: str) -> str:
        """The format of operation `name` on values of scalar type `type_`.

        Under `strict` and on CPUs elementary functions of floats are ours, and min and max are spelled out: C leaves
        fmin(0, -0) open, and PoCL's fmin prevents vectors.
        """
        exact = {"min": "({1} < {0} || {0} != {0} ? {1} : {0})", "max": "({1} > {0} || {0} != {0} ? {1} : {0})"}
        if self.replaced_functions() and name in exact:
            return exact[name]
        text = OPERATIONS[name].c
        return text.replace(name, f"{name}_float") if type_ == "float" and name in self.replaced_functions() else text

    def replaced_functions(self) -> Sequence[str]:
        """The operations on floats for which shaders/cdollar/elementary.h replaces the driver's functions."""
        return ELEMENTARY if self.strict else ()

    def declaration(self, type_: str, name: str, value: str, constant: bool) -> str:
        """The declaration of a variable; a `constant` is not assigned again."""
        return f"{'const ' if constant else ''}{type_} {name} = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        """The value of a buffer's element at `index`; `type_` is the scalar type of the array."""
        return self.loaded(type_, f"{buffer}[{index}]")

    def loaded(self, type_: str, element: str) -> str:
        """The value of an array's stored element: a bool is stored as uchar, a half as ushort."""
        return {"bool": f"({element} != 0)", "half": f"half_to_float({element})"}.get(type_, element)

    def stored(self, type_: str, value: str) -> str:
        """A value converted to the type in which arrays of scalar type `type_` store it."""
        return {"half": f"float_to_half({value})", "byte": f"((uchar){value})"}.get(type_, value)


class CpuDialect(CDialect):
    """C for CPUs, whose drivers' elementary functions are calls that prevent vectors: ours are faster."""

    unrolls_loops = True

    def replaced_functions(self) -> Sequence[str]:
        """All of them."""
        return ELEMENTARY


class GlslDialect(CDialect):
    """GLSL 3.30 fragment shaders (4.00 for `precise`); arrays are textures, indexed by column and row."""

    infinity = "uintBitsToFloat(0x7f800000u)"
    nan = "uintBitsToFloat(0x7fc00000u)"
    wraps = True
    reducers: ClassVar[dict[str, str]] = {}  # GLSL has no & of bool
    may_leave_loops = True  # llvmpipe leaves them after 65,535 rounds of all loops of an invocation, without an error
    keeps_rounding = False
    first_index = "0, 0"
    struct = "struct {name} {{ {members} }};"
    poison_parameter = "inout int poison"
    poison_variable = "poison"
    poison_address = ""
    inlines_calls = True

    @property
    def zero(self) -> str:  # type: ignore[override]  # llvmpipe folds operations with 0.0 in spite of `precise`
        """The name of a uniform whose value is 0: no driver can simplify operations with it."""
        return "runtime_zero" if self.strict else ""

    def cast(self, target: str, text: str) -> str:
        """The conversion of an expression to the scalar type `target`."""
        return f"{target}({text})"

    def operation(self, name: str, type_: str) -> str:
        """The format of operation `name`; under `strict` / and sqrt are functions that round correctly."""
        exact = {"/": "strict_divide({0}, {1})", "sqrt": "strict_sqrt({0})"} if self.strict else {}
        return exact.get(name, OPERATIONS[name].glsl)

    def declaration(self, type_: str, name: str, value: str, constant: bool) -> str:
        """The declaration of a variable."""
        precise = "precise " if self.strict and type_ == "float" else ""
        return f"{precise}{type_} {name} = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        """The value of a texture's element; `index` is the texel's column and row."""
        texel = f"texelFetch({buffer}, ivec2({index}), 0).x"
        return f"({texel} != 0u)" if type_ == "bool" else texel


def neutral_text(name: str, type_: str, dialect: CDialect) -> str:
    """The start value of reduction `name`, as a literal; NaN for min and max of floats, which ignore a NaN operand."""
    type_ = promoted_type(type_)
    if name in ("min", "max") and type_ in FLOATS:
        return dialect.nan
    has_neutral = name in ("min", "max", *NEUTRAL_ELEMENTS)  # else a variable only needs a value
    return literal(neutral_element(name, type_) if has_neutral else 0, type_, dialect)


def literal(number: Number, type_: str, dialect: CDialect) -> str:
    """A number as a literal of a scalar type."""
    type_ = promoted_type(type_)
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "uint":
        return f"{int(number)}u"
    if type_ == "long":
        return f"((long){int(number)})" if number > -(2**63) else "((long)(-9223372036854775807 - 1))"
    if type_ == "int":
        if number == -(2**31):
            return f"({int(number) + 1} - 1)"
        return str(int(number)) if number >= 0 else f"({int(number)})"
    with np.errstate(all="ignore"):
        value = float(np.float32(number)) if type_ == "float" else float(number)
    if value != value:
        return dialect.nan
    if value in (float("inf"), float("-inf")):
        return dialect.infinity if value > 0 else f"(-{dialect.infinity})"
    if value == 0 and dialect.zero:
        return dialect.zero if np.copysign(1, value) > 0 else f"(-{dialect.zero})"
    text = f"{value:.9g}" if type_ == "float" else repr(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    text += "f" if type_ == "float" else ""
    return f"({text})" if text.startswith("-") else text


def operation_text(
    dialect: CDialect, name: str, type_: str, result: str, operands: list[str], can_overflow: bool = True
) -> str:
    """The text of operation `name` on variables of scalar type `type_`, with a result of scalar type `result`.

    `can_overflow`: False if interval arithmetic has shown that an integer result fits its type.
    """
    if name == "select":
        return "({} ? {} : {})".format(*operands)
    if name == "convert" and result in ("half", "byte"):
        return f"round_to_half({operands[0]})" if result == "half" else f"({operands[0]} & 255)"
    type_ = promoted_type(type_)
    if name == "convert":
        if type_ in FLOATS and result in INTEGERS:
            return f"{type_}_to_{result}({operands[0]})"
        return operands[0] if type_ == result else dialect.cast(result, operands[0])
    zero, one, mask = (literal(number, type_, dialect) for number in (0, 1, 63 if type_ == "long" else 31))
    operation, is_undefined = OPERATIONS[name], can_overflow and type_ in ("int", "long") and not dialect.wraps
    wrapping = operation.wrapping if is_undefined else ""
    text = wrapping or operation.typed_text(type_) or dialect.operation(name, type_)
    return text.format(*operands, type=type_, zero=zero, one=one, mask=mask)


def indented(lines: list[str]) -> list[str]:
    """Lines indented by one level."""
    return ["    " + line for line in lines]
