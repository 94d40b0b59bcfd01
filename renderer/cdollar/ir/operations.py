"""The table of C$'s elementary operations on scalars: types, NumPy function, text in C and GLSL, cost.

The checker takes types from it, the NumPy target functions, the emitters texts (beside the texts of
targets/dialects.py), the fusing pass costs.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from renderer.cdollar.ir.types import DTYPES, FLOATS, INTEGERS, NUMBERS, Number, promoted_type

Operand = np.ndarray | np.generic  # an array, or a number of a NumPy type


def divide(a: Operand, b: Operand) -> np.ndarray:
    """Integer division truncates toward zero and x / 0 is 0; floating-point division is IEEE's."""
    a, b = np.asarray(a), np.asarray(b)
    if np.result_type(a, b).kind not in "iu":
        return np.divide(a, b)
    safe = np.where(b == 0, b.dtype.type(1), b)
    is_rounded_down = (np.remainder(a, safe) != 0) & ((a < 0) != (safe < 0))  # floor_divide() rounds to -infinity
    return np.where(b == 0, 0, np.floor_divide(a, safe) + is_rounded_down).astype(a.dtype)


def remainder(a: Operand, b: Operand) -> np.ndarray:
    """The remainder, with the sign of the dividend; x % 0 is 0 for integers."""
    if np.result_type(a, b).kind not in "iu":
        return np.fmod(a, b)
    safe = np.where(b == 0, np.asarray(b).dtype.type(1), b)
    return np.where(b == 0, 0, np.fmod(a, safe)).astype(np.asarray(a).dtype)


def shift_left(a: Operand, b: Operand) -> np.ndarray:
    """Shifts a left by b modulo its bits."""
    a, bits = _shifted(a, b)
    return np.asarray(a.astype(bits.dtype) << bits).astype(a.dtype)


def shift_right(a: Operand, b: Operand) -> np.ndarray:
    """Shifts a right by b modulo its bits; arithmetic for int and long."""
    a, bits = _shifted(a, b)
    return np.asarray(a >> bits.astype(a.dtype))


def _shifted(a: Operand, b: Operand) -> tuple[np.ndarray, np.ndarray]:
    """The number to shift, and the number of bits modulo its width, unsigned."""
    a = np.asarray(a)
    unsigned = np.dtype(f"u{a.dtype.itemsize}")
    return a, np.asarray(b).astype(unsigned) & unsigned.type(8 * a.dtype.itemsize - 1)


def step(edge: Operand, x: Operand) -> np.ndarray:
    """0 below the edge, 1 from it on."""
    x = np.asarray(x)
    return np.where(x < edge, 0, 1).astype(x.dtype)


def convert(value: Operand, target: str) -> np.ndarray:
    """Floating point to integer truncates toward zero, saturates, and takes NaN to 0."""
    value = np.asarray(value)
    dtype = DTYPES[target]
    if target in INTEGERS and value.dtype.kind == "f":
        limits = np.iinfo(dtype)
        wide = np.clip(np.nan_to_num(value.astype(np.float64)), limits.min, limits.max)
        if target == "long":  # 2^63 - 1024 is the greatest double below 2^63
            return np.where(wide >= 2.0**63, limits.max, np.minimum(wide, 2.0**63 - 1024).astype(np.int64))
        return wide.astype(np.int64).astype(dtype)
    return value.astype(dtype)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lesser number; NaN is ignored beside a number; of 0 and -0, which are equal, the first is taken."""
    return np.where((b < a) | np.isnan(a), b, a)


def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater number; NaN and equal numbers as in minimum()."""
    return np.where((b > a) | np.isnan(a), b, a)


class Operation(NamedTuple):
    """An operation on scalars of one type.

    `parameters` has one letter an operand: n number, r floating point, i integer, b bool. `c` and `glsl` are formats
    for floats; targets/dialects.py replaces some of them by type. `result` is a scalar type, or "same" as the
    operands'; `cost` is a weight against one addition.
    """

    name: str
    parameters: str
    numpy: Callable[..., np.ndarray]
    c: str
    glsl: str
    result: str = "same"
    cost: int = 1

    def types(self) -> tuple[str, ...]:
        """The scalar types that the operation takes."""
        return {"n": NUMBERS, "r": FLOATS, "i": INTEGERS, "b": ("bool",)}[self.parameters[0]]


def float_call(
    name: str, function: Callable[..., np.ndarray], operands: int = 1, glsl: str = "", c: str = "", cost: int = 8
) -> Operation:
    """An operation on floating point numbers that is written as a call."""
    text = f"{name}({', '.join(f'{{{k}}}' for k in range(operands))})"
    return Operation(name, "r" * operands, function, c or text, glsl or text, cost=cost)


def infix(name: str, parameters: str, function: Callable[..., np.ndarray], result: str = "same") -> Operation:
    """A binary operator, spelled alike in C and GLSL."""
    text = "({0} " + name + " {1})"
    return Operation(name, parameters, function, text, text, result)


# Integer /, %, min, max, << and >> take their C and GLSL from INTEGER_TEXTS in targets/dialects.py, with the mask of
# their width.
OPERATIONS = {
    operation.name: operation
    for operation in [
        infix("+", "nn", np.add),
        infix("-", "nn", np.subtract),
        infix("*", "nn", np.multiply),
        Operation("/", "nn", divide, "({0} / {1})", "({0} / {1})", cost=4),
        Operation("%", "nn", remainder, "fmod({0}, {1})", "({0} - {1} * trunc({0} / {1}))", cost=8),
        *(
            infix(name, "nn", function, "bool")
            for name, function in [
                ("<", np.less), (">", np.greater), ("<=", np.less_equal), (">=", np.greater_equal),
                ("==", np.equal), ("!=", np.not_equal),
            ]
        ),
        infix("&&", "bb", np.logical_and, "bool"),
        infix("||", "bb", np.logical_or, "bool"),
        infix("&", "ii", np.bitwise_and),
        infix("|", "ii", np.bitwise_or),
        infix("^", "ii", np.bitwise_xor),
        Operation("<<", "ii", shift_left, "({0} << ({1} & 31))", "({0} << ({1} & 31))"),
        Operation(">>", "ii", shift_right, "({0} >> ({1} & 31))", "({0} >> ({1} & 31))"),
        Operation("neg", "n", np.negative, "(-{0})", "(-{0})"),
        Operation("!", "b", np.logical_not, "(!{0})", "(!{0})", "bool"),
        Operation("~", "i", np.bitwise_not, "(~{0})", "(~{0})"),
        *(float_call(f.__name__, f) for f in (np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh)),
        float_call("asin", np.arcsin), float_call("acos", np.arccos), float_call("atan", np.arctan),
        *(float_call(f.__name__, f) for f in (np.exp, np.exp2, np.log, np.log2)),
        float_call("log10", np.log10, glsl="(log2({0}) * 0.30102999566)"),
        float_call("sqrt", np.sqrt, cost=4),
        float_call("floor", np.floor, cost=1), float_call("ceil", np.ceil, cost=1),
        float_call("trunc", np.trunc, cost=1),
        float_call("round", np.rint, glsl="roundEven({0})", c="rint({0})", cost=1),
        float_call("pow", np.power, 2, cost=16),
        float_call("atan2", np.arctan2, 2, glsl="atan({0}, {1})", cost=16),
        Operation("abs", "n", np.abs, "fabs({0})", "abs({0})"),
        Operation("sign", "n", np.sign, "(({0} > 0) - ({0} < 0))", "sign({0})", cost=2),
        Operation("min", "nn", minimum, "fmin({0}, {1})", "({1} < {0} || isnan({0}) ? {1} : {0})"),
        Operation("max", "nn", maximum, "fmax({0}, {1})", "({1} > {0} || isnan({0}) ? {1} : {0})"),
        Operation("step", "rr", step, "({1} < {0} ? 0 : 1)", "step({0}, {1})"),
        Operation("isnan", "r", np.isnan, "({0} != {0})", "isnan({0})", "bool"),
    ]
}  # fmt: skip


# The values of reductions over empty domains; other reductions over them are errors.
NEUTRAL_ELEMENTS = {"+": 0, "*": 1, "&&": True, "||": False}
REDUCER_NAMES = {
    "sum": "+", "prod": "*", "min": "min", "max": "max", "all": "&&", "any": "||",
    "argmin": "argmin", "argmax": "argmax",
}  # fmt: skip


def neutral_element(name: str, type_: str) -> Number:
    """The number that changes no result of the operator `name`, a reducer but argmin and argmax."""
    if name not in ("min", "max"):
        return NEUTRAL_ELEMENTS[name]
    if type_ in FLOATS:
        return math.inf if name == "min" else -math.inf
    limits = np.iinfo(DTYPES[type_])
    return int(limits.max if name == "min" else limits.min)


def wrap_int32(number: Number, type_: str) -> Number:
    """The number as its type stores it: an int of 2^31 and more becomes negative."""
    return int(number) - 2**32 if type_ == "int" and number >= 2**31 else number


def kernel_argument(number: Number, type_: str) -> np.generic:
    """A number of the host as a kernel argument, in its promoted type (half: float, byte: int).

    A half is first rounded to 16 bits.
    """
    if type_ == "bool":
        return np.int32(bool(number))
    with np.errstate(over="ignore"):
        stored = np.float16(np.float32(number)) if type_ == "half" else wrap_int32(number, type_)
        argument: np.generic = DTYPES[promoted_type(type_)](stored)
    return argument


def evaluate_numbers(name: str, type_: str, numbers: list[Number], types: list[str]) -> Number:
    """evaluate() for Python numbers of scalar types; returns a Python number."""
    operands = [DTYPES[t](wrap_int32(number, t)) for number, t in zip(numbers, types, strict=True)]
    with np.errstate(all="ignore"):
        number: Number = np.asarray(evaluate(name, type_, operands)).item()
    return number


def evaluate(name: str, type_: str, operands: Sequence[Operand]) -> np.ndarray:
    """An operation on NumPy operands of one scalar type; `type_` is the result type of `convert`."""
    if name == "select":
        return np.where(operands[0], operands[1], operands[2])
    if name == "convert":
        return convert(operands[0], type_)
    if name in ("&", "|", "^", "==", "!=") and np.asarray(operands[0]).dtype == np.bool_:
        table = {"&": np.logical_and, "|": np.logical_or, "^": np.logical_xor, "==": np.equal, "!=": np.not_equal}
        return table[name](operands[0], operands[1])
    return OPERATIONS[name].numpy(*operands)
