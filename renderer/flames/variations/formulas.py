"""Compiles formulas of .flame files to programs of a stack machine, formula_value() in variations/formulas.h.

figures.py calls program() for the plot variations. A formula is an expression of numbers, variables, parameters,
OPERATORS and FUNCTIONS. A program is a list of codes:
0 and a number pushes it, 1 to 3 push a variable, the others are operations.
"""

import ast

from renderer.errors import InputError
from renderer.formats.formula import parse_formula
from renderer.plain import format_value

MAX_LENGTH, MAX_PROGRAM, STACK = 2000, 500, 12
OPERATORS: dict[type, int] = {ast.Add: 4, ast.Sub: 5, ast.Mult: 6, ast.Div: 7, ast.Mod: 10}
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
    arguments = {name: count for name, (_, count) in FUNCTIONS.items()}
    out: list[float] = []
    try:
        tree = parse_formula(source, (*variables, *numbers), arguments, OPERATORS, MAX_LENGTH)
        depth = _emit(tree, variables, numbers, out, 0)
        if depth > STACK or len(out) > MAX_PROGRAM:
            raise ValueError(f"it needs {len(out)} steps and a stack of {depth}; allowed are {MAX_PROGRAM} and {STACK}")
    except (ValueError, RecursionError) as error:
        allowed = ", ".join((*variables, *sorted(FUNCTIONS)))
        sentence = f"the formula {format_value(source)} is not one of numbers, + - * / and {allowed}"
        raise InputError(f"{sentence}: {error}") from error
    return [len(out), *out]


def _emit(node: ast.expr, variables: tuple[str, ...], numbers: dict[str, float], out: list[float], below: int) -> int:
    """Append a node's codes to `out`; returns the greatest stack depth. The stack holds `below` numbers before."""
    match node:
        case ast.Name(id=name) if name in variables:
            out.append(1.0 + variables.index(name))
            return below + 1
        case ast.Name(id=name):
            out += [0.0, numbers[name]]
            return below + 1
        case ast.UnaryOp(op=op, operand=operand):
            depth = _emit(operand, variables, numbers, out, below)
            out += [11.0] if isinstance(op, ast.USub) else []
            return depth
        case ast.BinOp(left=left, op=operator, right=right):
            code, operands = OPERATORS[type(operator)], [left, right]
        case ast.Call(func=ast.Name(id=name), args=operands):
            code = FUNCTIONS[name][0]
        case _:  # a number
            out += [0.0, float(ast.literal_eval(node))]
            return below + 1
    depth = max(_emit(operand, variables, numbers, out, below + k) for k, operand in enumerate(operands))
    out.append(float(code))
    return depth
