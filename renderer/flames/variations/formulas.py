"""Compiles formulas of .flame files to programs of a stack machine, formula_value() in variations/formulas.h.

figures.py calls program() for the plot variations. A formula is an expression of numbers, variables, parameters,
OPERATORS and FUNCTIONS; everything else is an error, because .flame files may be hostile. A program is a list of codes:
0 and a number pushes it, 1 to 3 push a variable, the others are operations.
"""

import ast
import math
import warnings

from renderer.errors import InputError
from renderer.plain import format_value

MAX_LENGTH, MAX_PROGRAM, STACK = 2000, 500, 12
OPERATORS = {ast.Add: 4, ast.Sub: 5, ast.Mult: 6, ast.Div: 7, ast.Mod: 10}
FUNCTIONS = {
    "pow": (8, 2), "atan2": (9, 2), "fmod": (10, 2), "sin": (12, 1), "cos": (13, 1), "tan": (14, 1), "sqrt": (15, 1),
    "sqr": (16, 1), "exp": (17, 1), "log": (18, 1), "fabs": (19, 1), "abs": (19, 1), "floor": (20, 1),
    "tanh": (21, 1), "sinh": (22, 1), "cosh": (23, 1), "asin": (24, 1), "acos": (25, 1), "atan": (26, 1),
    "signum": (27, 1),
}  # fmt: skip


def program(text: str, variables: tuple[str, ...], numbers: dict[str, float]) -> list[float]:
    """The length of a formula's program, then the program.

    `variables`: the formula's names of x, y and z. `numbers`: values of its other names.

    Raises InputError if the text is no formula.
    """
    source = text.strip() or "0"
    try:
        if len(source) > MAX_LENGTH:
            raise ValueError
        out: list[float] = []
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)  # of "1and 2": it would be printed on the terminal
            tree = ast.parse(source.replace("\n", " "), mode="eval")
        depth = _emit(tree.body, variables, numbers, out, 0)
        if depth > STACK or len(out) > MAX_PROGRAM:
            raise ValueError
    except (ValueError, OverflowError, SyntaxError, RecursionError, MemoryError) as error:
        allowed = ", ".join((*variables, *sorted(FUNCTIONS)))
        raise InputError(f"the formula {format_value(source)} is not one of numbers, + - * / and {allowed}") from error
    return [len(out), *out]


def _emit(node: ast.expr, variables: tuple[str, ...], numbers: dict[str, float], out: list[float], below: int) -> int:
    """Append a node's codes to `out`; returns the greatest stack depth. The stack holds `below` numbers before."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and isinstance(node.value, int | float):
        return _push(float(node.value), out, below)
    if isinstance(node, ast.Name) and node.id in variables:
        out.append(1.0 + variables.index(node.id))
        return below + 1
    if isinstance(node, ast.Name) and node.id in numbers:
        return _push(numbers[node.id], out, below)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        depth = _emit(node.operand, variables, numbers, out, below)
        out += [11.0] if isinstance(node.op, ast.USub) else []
        return depth
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        code, operands = OPERATORS[type(node.op)], [node.left, node.right]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        code, count = FUNCTIONS.get(node.func.id, (0, -1))
        operands = node.args
        if len(operands) != count:
            raise ValueError
    else:
        raise ValueError
    depth = max(_emit(operand, variables, numbers, out, below + k) for k, operand in enumerate(operands))
    out.append(float(code))
    return depth


def _push(value: float, out: list[float], below: int) -> int:
    """Append the code that pushes a number; returns the stack depth."""
    if not math.isfinite(value):
        raise ValueError
    out += [0.0, value]
    return below + 1
