"""Dialects of generated code: C for common/portable.h (CUDA, OpenCL), and GLSL."""

from __future__ import annotations

from typing import Any

import numpy as np

from renderer.cdollar.ir.operations import OPERATIONS


class CDialect:
    """The dialect of common/portable.h."""

    types = {"bool": "bool", "int": "int", "uint": "uint", "float": "float", "double": "double"}
    infinity = "as_float(0x7f800000u)"
    nan = "as_float(0x7fc00000u)"
    min_ignores_nan = True  # fmin and fmax return the other operand of a NaN
    first_index = "0"  # of load()

    def cast(self, target: str, text: str) -> str:
        """A conversion."""
        return f"(({target}){text})"

    def operation(self, name: str, operands: list[str]) -> str:
        """An operation of the table in ir/operations.py."""
        return OPERATIONS[name].c.format(*operands)

    def variable(self, type_: str, name: str, value: str) -> str:
        """Declares a variable."""
        return f"{self.types[type_]} {name} = {value};"

    def constant(self, type_: str, name: str, value: str) -> str:
        """Declares a variable that is not assigned again."""
        return f"const {self.variable(type_, name, value)}"

    def struct(self, name: str, types: tuple[str, ...]) -> str:
        """Declares a struct with members c0, c1, ..."""
        return f"typedef struct {{ {self.members(types)} }} {name};"

    def members(self, types: tuple[str, ...]) -> str:
        """The members of a struct."""
        return " ".join(f"{self.types[t]} c{k};" for k, t in enumerate(types))

    def return_struct(self, name: str, values: list[str]) -> str:
        """Returns a struct with these members."""
        stores = " ".join(f"result.c{k} = {v};" for k, v in enumerate(values))
        return f"{{ {name} result; {stores} return result; }}"

    poison_parameter = "int *poison"  # of device functions with loops
    poison_variable = "*poison"  # inside of them

    def poison_argument(self, name: str) -> str:
        """The argument that lets a device function set a variable."""
        return f"&{name}"

    def load(self, buffer: str, index: str, type_: str) -> str:
        """An element of an array."""
        element = f"{buffer}[{index}]"
        return f"({element} != 0)" if type_ == "bool" else element


class GlslDialect(CDialect):
    """Fragment shaders of GLSL 3.30 (4.00 for `precise`); arrays are textures, indexed by column and row."""

    infinity = "uintBitsToFloat(0x7f800000u)"
    nan = "uintBitsToFloat(0x7fc00000u)"
    min_ignores_nan = False
    first_index = "0, 0"
    poison_parameter = "inout int poison"
    poison_variable = "poison"

    def __init__(self, strict: bool = False) -> None:
        """`strict`: no contraction, correctly rounded division and square root."""
        self.strict = strict

    def cast(self, target: str, text: str) -> str:
        """A conversion."""
        return f"{target}({text})"

    def operation(self, name: str, operands: list[str]) -> str:
        """An operation of the table in ir/operations.py."""
        if self.strict and name in ("/", "sqrt"):
            return f"strict_{'divide' if name == '/' else 'sqrt'}({', '.join(operands)})"
        return OPERATIONS[name].glsl.format(*operands)

    def variable(self, type_: str, name: str, value: str) -> str:
        """Declares a variable."""
        precise = "precise " if self.strict and type_ == "float" else ""
        return f"{precise}{self.types[type_]} {name} = {value};"

    def constant(self, type_: str, name: str, value: str) -> str:
        """Declares a variable that is not assigned again."""
        return self.variable(type_, name, value)

    def struct(self, name: str, types: tuple[str, ...]) -> str:
        """Declares a struct with members c0, c1, ..."""
        return f"struct {name} {{ {self.members(types)} }};"

    def poison_argument(self, name: str) -> str:
        """The argument that lets a device function set a variable."""
        return name

    def load(self, buffer: str, index: str, type_: str) -> str:
        """An element of an array; `index` is the texel's column and row."""
        texel = f"texelFetch({buffer}, ivec2({index}), 0).x"
        return f"({texel} != 0u)" if type_ == "bool" else texel


def neutral_text(name: str, type_: str, dialect: CDialect) -> str:
    """The start value of a reduction; for min and max of floats NaN if it is ignored, else an infinity."""
    if name in ("min", "max"):
        if type_ in ("float", "double"):
            if dialect.min_ignores_nan:
                return dialect.nan
            return dialect.infinity if name == "min" else f"(-{dialect.infinity})"
        limits = {"int": ("2147483647", "(-2147483647 - 1)"), "uint": ("4294967295u", "0u")}[type_]
        return limits[name == "max"]
    return literal({"*": 1, "&&": 1}.get(name, 0), type_, dialect)


def literal(number: Any, type_: str, dialect: CDialect) -> str:
    """A number as a literal of a scalar type."""
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "uint":
        return f"{int(number)}u"
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
    text = f"{value:.9g}" if type_ == "float" else repr(value)
    if not any(c in text for c in ".e"):
        text += ".0"
    text += "f" if type_ == "float" else ""
    return f"({text})" if text.startswith("-") else text


def operation_text(dialect: CDialect, name: str, type_: str, result: str, operands: list[str]) -> str:
    """One operation on variables of scalar type `type_`."""
    a, b = operands[0], operands[-1]
    if name == "select":
        return f"({a} ? {operands[1]} : {b})"
    if name == "convert":
        return conversion_text(dialect, type_, result, a)
    if name == "sign" and type_ != "bool":
        one, zero = literal(1, type_, dialect), literal(0, type_, dialect)
        minus = zero if type_ == "uint" else f"(-{one})"
        return f"({a} > {zero} ? {one} : {a} < {zero} ? {minus} : {a if type_ in ('float', 'double') else zero})"
    if type_ in ("int", "uint"):
        if name in ("/", "%"):
            return f"{'divide' if name == '/' else 'remainder'}_{type_}({a}, {b})"
        if name in ("min", "max"):
            return f"({b} {'<' if name == 'min' else '>'} {a} ? {b} : {a})"
        if name == "abs":
            return a if type_ == "uint" else f"({a} < 0 ? -{a} : {a})"
        if name in ("<<", ">>"):
            return f"({a} {name} ({b} & {literal(31, type_, dialect)}))"
    if type_ == "bool" and name in ("&", "|", "^", "==", "!="):
        sign = {"&": "&&", "|": "||", "^": "!="}.get(name, name)
        return f"({a} {sign} {b})"
    if name == "step" and type_ in ("float", "double"):
        return f"({b} < {a} ? {literal(0, type_, dialect)} : {literal(1, type_, dialect)})"
    return dialect.operation(name, operands)


def conversion_text(dialect: CDialect, source: str, target: str, name: str) -> str:
    """A variable converted from one scalar type to another."""
    if source == target:
        return name
    if source in ("float", "double") and target in ("int", "uint"):
        return f"{source}_to_{target}({name})"
    return dialect.cast(dialect.types[target], name)
