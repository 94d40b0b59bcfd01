"""Compiles a formula of z and c, such as "z^3 + c*z", to kernel code that computes its value and derivative.

The code calls the functions of shaders/fractals/dual.h on complex numbers with their derivative by c. Everything but
numbers, names, operators and FUNCTIONS is an error, because scene files may be hostile.
"""

import ast
import math
import warnings

from renderer.plain import format_value

MAX_LENGTH, MAX_OPERATIONS, MAX_POWER = 500, 100, 64
OPERATORS = {ast.Add: "dual_add", ast.Sub: "dual_subtract", ast.Mult: "dual_multiply", ast.Div: "dual_divide"}
FUNCTIONS = ("exp", "log", "sin", "cos", "sinh", "cosh", "sqrt", "conj")


def compile_formula(text: str, names: str) -> str:
    """The formula as an expression of C; each letter of `names` is a variable. Raises ValueError if it is none."""
    if len(text) > MAX_LENGTH:
        raise ValueError
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            tree = ast.parse(text.strip().replace("^", "**").replace("\n", " "), mode="eval")
        if sum(isinstance(node, ast.expr) for node in ast.walk(tree)) > 2 * MAX_OPERATIONS:
            raise ValueError
        return _emit(tree.body, names)
    except (SyntaxError, OverflowError, RecursionError, MemoryError) as error:
        raise ValueError from error


def check_formula(text: str, key: str, names: str) -> None:
    """Raises ValueError, with a sentence that begins with `key`, if the text is no formula of `names`."""
    try:
        compile_formula(text, names)
    except ValueError as error:
        allowed = f"{', '.join(names)}, i, numbers, + - * / ^ with a number, and {', '.join(FUNCTIONS)}"
        raise ValueError(f"{key} is {format_value(text)}; it must be a formula of {allowed}") from error


def _emit(node: ast.expr, names: str) -> str:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _number(node.value)  # type: ignore[arg-type]  # checked above
    if isinstance(node, ast.Name) and node.id == "i":
        return "dual_constant(0.0, 1.0)"
    if isinstance(node, ast.Name) and node.id in tuple(names):
        return node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        operand = _emit(node.operand, names)
        return operand if isinstance(node.op, ast.UAdd) else f"dual_subtract(dual_constant(0.0, 0.0), {operand})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return _power(_emit(node.left, names), node.right)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return f"{OPERATORS[type(node.op)]}({_emit(node.left, names)}, {_emit(node.right, names)})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        if len(node.args) == 1 and not node.keywords:
            return f"dual_{node.func.id}({_emit(node.args[0], names)})"
    raise ValueError


def _power(base: str, exponent: ast.expr) -> str:
    number = ast.literal_eval(exponent)  # ValueError unless it is one value
    if isinstance(number, bool) or not isinstance(number, (int, float)) or abs(number) > MAX_POWER:
        raise ValueError
    if number != int(number):
        return f"dual_real_power({base}, {float(number)!r})"
    return f"dual_power({base}, {int(number)})"


def _number(value: float) -> str:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError
    return f"dual_constant({number!r}, 0.0)"
