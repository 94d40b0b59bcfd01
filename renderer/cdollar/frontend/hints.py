"""Hints of error messages for a wrong word or sign, often from another language; the lexer and parser look them up."""

from collections.abc import Iterable
from difflib import get_close_matches

MAX_COMPARED_CHARS = 40  # longest name that is compared: the time is quadratic in its length
# Words of other languages, where a token is not expected, or as the name of a type, a function or a module.
HINTS_BY_WORDS = {
    "and": "and is `&&`",
    "or": "or is `||`",
    "not": "not is `!`",
    "elif": "write `else if`",
    "then": "write `if (c) ... else ...`",
    "def function": "a function starts with the type it returns: `float f(float x) => x;`",
    "lambda": "an anonymous function is `x => x * x`",
    "None void": "every function returns a value",
    "null": "there is no null",
    "string": 'there are no strings, but for the name of a file: file("a.npy")',
    "char": "the integers are byte, int, uint and long",
    "auto": "write `var`",
    "struct": "write `final class P { float x; }`",
    "math np Math": "functions stand alone: `sin(x)`",
    "len": "the size is `size(a)`",
    "shape": "the size is `size(a, 0)`",
    "range": "a range is `0..n`",
    "mean average": "the mean is `sum(a) / size(a)`",
    "cumsum": "prefix sums are `scan(a)`",
    "bincount": "counts are `histogram(keys, n)`",
    "reduce": "write `fold(step, start, a(i))`",
    "fabs": "it is `abs(x)`",
    "power": "a power is `pow(x, 2)`",
    "map": "write `var c(i) = f(a(i))`",
}
WORDS = {word: hint for words, hint in HINTS_BY_WORDS.items() for word in words.split()}
# Members that arrays have elsewhere.
MEMBERS = {
    **dict.fromkeys(("T", "transpose"), "the transpose is `var t(j, i) = a(i, j);`"),
    "copy": "values never change, so nothing needs a copy",
    **dict.fromkeys(("size", "length", "Length", "len"), WORDS["len"]), "shape": WORDS["shape"],
    "dot": "the product is `+ (a(i, k) * b(k, j))`", "astype": "a cast is `(int) x`",
}  # fmt: skip
MEMBERS |= {
    name: f"a reduction is `{name}(a)`" for name in ("sum", "prod", "min", "max", "argmin", "argmax", "any", "all")
}
SIGNS = {
    "=": "`==` compares, `=` is for variables",
    "**": "a power is `pow(x, 2)`", "->": "write `=>`", "|>": "write `f(x)`",
}  # fmt: skip
QUOTES = "“”„‟‘’"
OTHER_SIGNS = {
    "×": "write `*`", "·": "write `*`", "÷": "write `/`", "−": "the minus sign is `-`", "–": "the minus sign is `-`",
    "≤": "write `<=`", "≥": "write `>=`", "≠": "write `!=`",
    "π": "it is `pi`", "²": "write `x * x`", "√": "write `sqrt(x)`",
    "'": 'a file\'s name stands in double quotes: file("a.npy")',
    "#": "a comment starts with `//`", "@": "the product is `+ (a(i, k) * b(k, j))`",
}  # fmt: skip


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The known name that is most like a wrong one, as a hint; "" if none is."""
    close = get_close_matches(name, sorted(known), 1) if len(name) <= MAX_COMPARED_CHARS else []
    return f"did you mean `{close[0]}`?" if close else ""


def hint_for_unexpected(expected: str, text: str) -> str:
    """The hint for a token where another was expected."""
    if text == "if" and expected == ";":
        return "a choice between two values is `c ? a : b`"
    if text == "|" and expected == "an expression":
        return "the absolute value is `abs(x)`"
    if text == "=" and expected in (",", "]"):
        return "arguments have no names; one dimension is reduced by `var m(j) = max(a(i, j), int i)`"
    if text == ":" and expected == ",":
        return "a part of an array is `a[1:3]`, in brackets"
    if text == ":" and expected in ("]", ")"):
        return "a range is `0..n`"
    if text == "=" and expected not in (")", "an expression"):
        return ""
    return WORDS.get(text) or SIGNS.get(text, "")


def hint_for_character(character: str) -> str:
    """The hint for a character that C$ does not know."""
    if character in QUOTES:
        return 'quotes are straight: "'
    if character in OTHER_SIGNS:
        return OTHER_SIGNS[character]
    return "names are made of A-Z, a-z, 0-9 and _" if character.isalpha() else ""
