"""The table of C$'s elementary operations on scalars: types, NumPy function, text in C and GLSL, cost, derivatives.

The checker takes types from it, the NumPy target functions, the emitters texts, the fusing pass costs, and gradients
derivatives.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from renderer.cdollar.ir.types import DTYPES, FLOATS, INTEGERS, NUMBERS, Number, promoted_type
from renderer.paths import SHADERS
from renderer.plain import Json
from renderer.records import dataclass
from renderer.system.files import read_toml

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


@dataclass(frozen=True)
class Operation:
    """An operation on scalars of one type: a table of shaders/cdollar/operations.toml, which describes the fields.

    `parameters` has a letter for each operand: n number, r floating point, i integer, b bool. `c` and `glsl` are texts
    with {0} and {1} for the operands, `wrapping` is the text in C for signed integers that may overflow;
    targets/dialects.py replaces some of the texts. `result` is a scalar type, or "same" as the operands'. A key of
    `typed` is one type or several, with spaces between. `derivatives` is empty if the operation has none.
    """

    name: str
    parameters: str
    numpy: Callable[..., np.ndarray]
    c: str
    glsl: str
    typed: dict[str, str]
    wrapping: str = ""
    result: str = "same"
    cost: int = 1
    derivatives: tuple[str, ...] = ()

    def types(self) -> tuple[str, ...]:
        """The scalar types that the operation takes."""
        return {"n": NUMBERS, "r": FLOATS, "i": INTEGERS, "b": ("bool",)}[self.parameters[0]]

    def typed_text(self, type_: str) -> str | None:
        """The text for a type in both languages, if it has one of its kind."""
        return next((text for types, text in self.typed.items() if type_ in types.split()), None)


def _operation(name: str, table: Json) -> Operation:
    """The operation of a table; `numpy` names a function of this module or of NumPy, by default `name`."""
    ours = {f.__name__: f for f in (divide, remainder, shift_left, shift_right, step, minimum, maximum)}
    function = table.get("numpy", name)
    defaults = {"name": name, "glsl": table["c"], "typed": {}}
    return Operation(**defaults | table | {"numpy": ours.get(function) or getattr(np, function)})


OPERATIONS = {
    name: _operation(name, table) for name, table in read_toml(SHADERS / "cdollar" / "operations.toml").items()
}


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
    with np.errstate(all="ignore"):
        operands = [DTYPES[t](wrap_int32(number, t)) for number, t in zip(numbers, types, strict=True)]
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
