"""Compiles a formula of z and c, such as "z^3 + c*z", to kernel code that computes its value and derivative.

The code calls the functions of shaders/fractals/dual.h on complex numbers with their derivative by c.
"""

import ast

from renderer.formats.formula import parse_formula
from renderer.plain import format_value

MAX_LENGTH, MAX_OPERATIONS, MAX_POWER = 500, 100, 64
OPERATORS: dict[type, str] = {
    ast.Add: "dual_add", ast.Sub: "dual_subtract", ast.Mult: "dual_multiply", ast.Div: "dual_divide",
    ast.Pow: "dual_power",
}  # fmt: skip
FUNCTIONS = dict.fromkeys(("exp", "log", "sin", "cos", "sinh", "cosh", "sqrt", "conj"), 1)  # name -> count of arguments


def compile_formula(text: str, names: str) -> str:
    """The formula as an expression of C; each letter of `names` is a variable. Raises ValueError with a reason."""
    tree = parse_formula(text, (*names, "i"), FUNCTIONS, OPERATORS, MAX_LENGTH)
    count = sum(isinstance(node, ast.expr) for node in ast.walk(tree))  # an operation adds itself and an operand
    if count > 2 * MAX_OPERATIONS:
        raise ValueError(f"it has {count} names, numbers and operations; allowed are {2 * MAX_OPERATIONS}")
    return _emit(tree)


def check_formula(text: str, key: str, names: str) -> None:
    """Raises ValueError, with a sentence that begins with `key`, if the text is no formula of `names`."""
    try:
        compile_formula(text, names)
    except ValueError as error:
        allowed = f"{', '.join(names)}, i, numbers, + - * / ^ with a number, and {', '.join(FUNCTIONS)}"
        raise ValueError(f"{key} is {format_value(text)}: {error}; it must be a formula of {allowed}") from error


def degree(node: ast.expr) -> float | None:
    """The degree in z of a polynomial; None for other formulas, and where powers of z might cancel."""
    match node:
        case ast.Name(id=name):
            return float(name == "z")
        case ast.Constant():
            return 0.0
        case ast.UnaryOp(operand=operand):
            return degree(operand)
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=int(exponent))):
            inner = degree(left)
            return None if inner is None else inner * exponent
        case ast.BinOp(left=left, op=operator, right=right):
            a, b = degree(left), degree(right)
            # not a polynomial: a division by z, or a power of z whose exponent is no whole number or negative
            if a is None or b is None or isinstance(operator, ast.Div) and b or isinstance(operator, ast.Pow) and a:
                return None
            if not isinstance(operator, ast.Add | ast.Sub):
                return a + b
            return None if a == b > 0 else max(a, b)  # terms of one degree may cancel
    return None


def polynomial_degree(text: str) -> int | None:
    """The degree in z, from 2, of a formula that is a polynomial; None for others."""
    found = degree(parse_formula(text, ("z", "c", "i"), FUNCTIONS, OPERATORS, MAX_LENGTH))
    return int(found) if found is not None and found >= 2 else None


def _emit(node: ast.expr) -> str:
    """The C expression of a node, on complex numbers with derivatives (dual.h)."""
    match node:
        case ast.Name(id="i"):
            return "dual_constant(0.0, 1.0)"
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _emit(operand)
        case ast.UnaryOp(operand=operand):
            return f"dual_subtract(dual_constant(0.0, 0.0), {_emit(operand)})"
        case ast.BinOp(left=left, op=ast.Pow(), right=exponent):
            return _power(_emit(left), exponent)
        case ast.BinOp(left=left, op=operator, right=right):
            return f"{OPERATORS[type(operator)]}({_emit(left)}, {_emit(right)})"
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return f"dual_{name}({_emit(argument)})"
        case _:
            return f"dual_constant({float(ast.literal_eval(node))!r}, 0.0)"


def _power(base: str, exponent: ast.expr) -> str:
    text = ast.unparse(exponent)
    try:
        number = float(ast.literal_eval(exponent))
    except ValueError as error:
        raise ValueError(f"the exponent {text} is not a number") from error
    if abs(number) > MAX_POWER:
        raise ValueError(f"the exponent {text} is beyond {MAX_POWER}")
    return f"dual_power({base}, {int(number)})" if number == int(number) else f"dual_real_power({base}, {number!r})"
