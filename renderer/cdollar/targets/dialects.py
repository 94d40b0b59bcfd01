"""How C$ says a number, an operation and a declaration in common/portable.h and in GLSL."""

from __future__ import annotations

import numpy as np

from renderer.cdollar.ir.operations import OPERATIONS


class C:
    """The dialect of common/portable.h."""

    name = "kernel"
    types = {"bool": "bool", "int": "int", "uint": "uint", "float": "float", "double": "double"}
    int_to_bool = "({0} != 0)"
    infinity = "as_float(0x7f800000u)"
    nan = "as_float(0x7fc00000u)"

    def cast(self, target: str, text: str) -> str:
        return f"(({target}){text})"

    def operation(self, name: str) -> str:
        return OPERATIONS[name].c.replace("{r}", "")

    def declare(self, type_: str, name: str, value: str) -> str:
        return f"const {self.types[type_]} {name} = {value};"

    def struct(self, name: str, parts: tuple[str, ...]) -> str:
        members = " ".join(f"{self.types[p]} c{k};" for k, p in enumerate(parts))
        return f"typedef struct {{ {members} }} {name};"

    def bad_parameter(self) -> str:
        return "int *bad"

    def bad_argument(self, name: str) -> str:
        return f"&{name}"

    def set_bad(self, value: int) -> str:
        return f"*bad = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        loaded = f"{buffer}[{index}]"
        return f"({loaded} != 0)" if type_ == "bool" else loaded


class Glsl(C):
    """Fragment passes of GLSL 3.30 (4.00 for `precise`); arrays are textures whose rows are the last dimension."""

    name = "pass"
    infinity = "uintBitsToFloat(0x7f800000u)"
    nan = "uintBitsToFloat(0x7fc00000u)"

    def __init__(self, strict: bool = False):
        self.strict = strict

    def cast(self, target: str, text: str) -> str:
        return f"{target}({text})"

    def operation(self, name: str) -> str:
        if self.strict and name in ("/", "sqrt"):
            return "strict_divide({0}, {1})" if name == "/" else "strict_sqrt({0})"
        return OPERATIONS[name].glsl

    def declare(self, type_: str, name: str, value: str) -> str:
        precise = "precise " if self.strict and type_ == "float" else ""
        return f"{precise}{self.types[type_]} {name} = {value};"

    def struct(self, name: str, parts: tuple[str, ...]) -> str:
        members = " ".join(f"{self.types[p]} c{k};" for k, p in enumerate(parts))
        return f"struct {name} {{ {members} }};"

    def bad_parameter(self) -> str:
        return "inout int bad"

    def bad_argument(self, name: str) -> str:
        return name

    def set_bad(self, value: int) -> str:
        return f"bad = {value};"

    def load(self, buffer: str, index: str, type_: str) -> str:
        """`index` is the texel's column and row."""
        loaded = f"texelFetch({buffer}, ivec2({index}), 0).x"
        return f"({loaded} != 0u)" if type_ == "bool" else loaded


def neutral_text(name: str, part: str, dialect: C) -> str:
    """What a reduction starts from; for min and max of reals NaN where fmin and fmax pass over it, else infinity."""
    if name in ("min", "max"):
        if part in ("float", "double"):
            if dialect.name == "kernel":
                return dialect.nan
            return {"min": dialect.infinity, "max": f"(-{dialect.infinity})"}[name]
        limits = {"int": ("2147483647", "(-2147483647 - 1)"), "uint": ("4294967295u", "0u")}[part]
        return limits[name == "max"]
    if name in ("argmin", "argmax") or name not in ("+", "*", "&&", "||"):
        return literal(0, part, dialect)
    return literal({"+": 0, "*": 1, "&&": 1, "||": 0}[name], part, dialect)


def literal(number, type_: str, dialect: C) -> str:
    if type_ == "bool":
        return "true" if number else "false"
    if type_ == "int":
        return (
            f"({int(number) + 1} - 1)"
            if number == -(2**31)
            else str(int(number))
            if number >= 0
            else f"({int(number)})"
        )
    if type_ == "uint":
        return f"{int(number)}u"
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


def operation_text(dialect: C, name: str, operand: str, result: str, names: list[str]) -> str:
    """One operation on variables; `operand` is the scalar type of the operands."""
    if name == "select":
        return f"({names[0]} ? {names[1]} : {names[2]})"
    if name == "convert":
        return converted(dialect, operand, result, names[0])
    if operand in ("int", "uint"):
        if name in ("/", "%"):
            return f"{'divide' if name == '/' else 'remainder'}_{operand}({names[0]}, {names[1]})"
        if name in ("min", "max"):
            return f"({names[1]} {'<' if name == 'min' else '>'} {names[0]} ? {names[1]} : {names[0]})"
        if name == "abs":
            return names[0] if operand == "uint" else f"({names[0]} < 0 ? -{names[0]} : {names[0]})"
        if name == "sign":
            zero = literal(0, operand, dialect)
            plus, minus = literal(1, operand, dialect), "(-1)" if operand == "int" else zero
            return f"({names[0]} > {zero} ? {plus} : {names[0]} < {zero} ? {minus} : {zero})"
        if name in ("<<", ">>"):
            one = "31u" if operand == "uint" else "31"
            return f"({names[0]} {name} ({names[1]} & {one}))"
    if operand == "bool" and name in ("&", "|", "^", "==", "!="):
        sign = {"&": "&&", "|": "||", "^": "!=", "==": "==", "!=": "!="}[name]
        return f"({names[0]} {sign} {names[1]})"
    if operand in ("float", "double") and name in ("sign", "step"):
        one, zero = literal(1, operand, dialect), literal(0, operand, dialect)
        if name == "step":
            return f"({names[1]} < {names[0]} ? {zero} : {one})"
        return f"({names[0]} > {zero} ? {one} : {names[0]} < {zero} ? (-{one}) : {names[0]})"
    return dialect.operation(name).format(*names)


def converted(dialect: C, source: str, target: str, name: str) -> str:
    if source == target:
        return name
    if source in ("float", "double") and target in ("int", "uint"):
        return f"{source}_to_{target}({name})"
    return dialect.cast(dialect.types[target], name)
