"""Formulas in text, from files and settings that may be hostile: parsed as Python's expressions, then checked.

flames/variations/formulas.py and fractals/formula.py compile the trees. Errors name the word and its place.
"""

import ast
import math
import warnings
from collections.abc import Collection, Mapping

from renderer.plain import quoted


def parse_formula(
    text: str, names: Collection[str], functions: Mapping[str, int], operators: Collection[type], most: int
) -> ast.expr:
    """The tree of a formula of numbers, `names`, `functions` (name -> count of arguments), signs and `operators`.

    `^` is a power, as is `**`. `most`: limit of the text's characters. Raises ValueError with a reason.
    """
    # to ^ first, so that a ** does not become ****
    source = text.strip().replace("**", "^").replace("^", "**").replace("\n", " ")
    if len(text) > most:
        raise ValueError(f"it has {len(text)} characters, and at most {most} are allowed")
    try:
        with warnings.catch_warnings():
            # A text such as "1and 2" raises a warning, which would be printed on the terminal.
            warnings.simplefilter("error", SyntaxWarning)
            tree = ast.parse(source, mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"it is no expression {_place(source, (error.offset or 1) - 1, len(source))}") from error
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise ValueError("it is nested too deeply, or not text") from error
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and node not in called and (wrong := _mistake(node, names, functions, operators)):
            raise ValueError(f"{wrong} {_place(source, node.col_offset, node.end_col_offset or 0)}")
    return tree


def _mistake(node: ast.expr, names: Collection[str], functions: Mapping[str, int], operators: Collection[type]) -> str:
    """The reason why a node is not allowed, or ""."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in functions:
            return "no such function"
        fits = len(node.args) == functions[name] and not node.keywords
        return "" if fits else f"{name} takes {functions[name]} argument{'s' * (functions[name] > 1)}"
    if isinstance(node, ast.Name):
        return "" if node.id in names else "unknown name"
    if isinstance(node, ast.Constant):
        return "" if type(node.value) in (int, float) and _is_finite(node.value) else "no finite number"
    signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub)
    return "" if signed or isinstance(node, ast.BinOp) and type(node.op) in operators else "not allowed"


def _is_finite(value: object) -> bool:
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]  # the caller knows that it is a number
    except OverflowError:
        return False


def _place(source: str, start: int, end: int) -> str:
    """The positions of the bytes `start` to `end` in the formula as its author wrote it, with ^ for powers."""
    parts = source.encode()[:start], source.encode()[start:end]
    before, word = (part.decode(errors="ignore").replace("**", "^") for part in parts)
    return f"at character {len(before) + 1}: {quoted(word) if word else 'its end'}"
