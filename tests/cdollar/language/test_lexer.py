"""Names, keywords and numbers in the lexer, against Python's tokenizer and its rule for names."""

import io
import random
import re
import tokenize as python

import numpy as np
import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.lexer import KEYWORDS, Token, tokenize
from renderer.cdollar.frontend.parser import parse
from tests.cdollar.evaluate import error_of, value_of

# The words that C$ takes from C#, C and ML; assets/guides/cdollar.md shows each of them.
RESERVED = {
    "var", "let", "in", "mutable", "const", "new", "if", "else", "for", "while", "do", "break", "continue", "return",
    "true", "false", "final", "class", "type", "operator",
}  # fmt: skip
# Operators and brackets that Python's tokenizer splits as C$'s does.
SHARED_SIGNS = ["+", "-", "*", "/", "%", "(", ")", "[", "]", "{", "}", ",", ":", ";", "<=", ">=", "==", "<<", ">>", "="]


def tokens(text: str) -> list[Token]:
    found = tokenize(SourceFile("p", text))
    assert found[-1].kind == "eof"
    return found[:-1]


def python_tokens(line: str) -> list[tuple[str, int, int, bool]]:
    """Text, first and last column of each token of one line of Python, and whether it is a name."""
    kinds = (python.NAME, python.NUMBER, python.OP)
    every = python.generate_tokens(io.StringIO(line).readline)
    return [(t.string, t.start[1], t.end[1], t.type == python.NAME) for t in every if t.type in kinds]


def random_word(rng: random.Random, alphabet: str = "abzAZ_019") -> str:
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 8)))


def test_a_word_is_one_name_if_it_is_an_ascii_name_of_python():
    rng = random.Random(0)
    words = {random_word(rng) for _ in range(2000)} | {
        "x",
        "_",
        "__",
        "_0",
        "Z9",
        "a_b",
        "int3",
        "float33",
        "e5",
        "x0F",
    }
    names = [word for word in words if word.isidentifier()]
    assert len(names) > 500 and len(names) < len(words)
    for word in words:
        found = tokens(word)
        assert "".join(t.text for t in found) == word
        is_one_name = len(found) == 1 and found[0].is_identifier
        assert is_one_name == word.isidentifier(), word
        if is_one_name:
            assert (found[0].kind, found[0].span.start, found[0].span.end) == ("identifier", 0, len(word))


@pytest.mark.parametrize("word", ["é", "aé", "naïve", "x²", "日本", "a‿b"])
def test_names_are_ascii(word):
    with pytest.raises(ProgramError, match="CS0103"):
        tokens(word)


def test_lines_split_as_pythons_do():
    rng = random.Random(1)
    for _ in range(500):
        pieces = []
        for _ in range(rng.randint(1, 12)):
            word = random_word(rng, "ab_Z09")
            number = str(rng.randint(1, 999999))
            pieces.append(rng.choice([word if word.isidentifier() else "a" + word, number, rng.choice(SHARED_SIGNS)]))
        line = "".join(piece + rng.choice(["", " ", "  "]) for piece in pieces)
        try:
            expected = python_tokens(line)
        except (python.TokenError, SyntaxError, IndentationError):
            continue  # an open bracket, or `1a`
        joined = any(
            a[2] == b[1] and re.match(r"\d", a[0]) and b[0].isidentifier()
            for a, b in zip(expected, expected[1:], strict=False)
        )
        if joined or re.search(r"[-+*/%&|^]=|->|\+\+|--|\*\*|//|/\*|:=|<>|=>|&&|<<=|>>=|!", line):
            continue  # signs that only one of the languages has
        assert [(t.text, t.span.start, t.span.end, t.is_name) for t in tokens(line)] == expected, line


def test_keywords_are_those_of_the_language():
    assert KEYWORDS == RESERVED


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_keyword_names_nothing_but_longer_words_do(word):
    (token,) = tokens(word)
    assert token.is_identifier and not token.is_name
    with pytest.raises(ProgramError, match="CS01"):
        value_of(f"int main() {{ int {word} = 1; return {word}; }}")
    for name in (f"{word}1", f"_{word}", f"{word}_", f"x{word}", word.upper(), word.capitalize()):
        (token,) = tokens(name)
        assert token.is_name, name
        assert value_of(f"int main() {{ int {name} = 7; return {name} + 1; }}") == 8


@pytest.mark.parametrize("name", ["x1", "x_1", "_x", "_1", "X", "a1b2", "e5", "d", "f1", "u8", "L", "x0xF", "i__j"])
def test_digits_and_underscores_belong_to_the_name(name):
    other = name + "0"
    assert value_of(f"int main() {{ int {name} = 3; int {other} = 40; return {name} + {other}; }}") == 43


def test_names_differ_by_case():
    assert (
        value_of("int main() { int value = 1; int Value = 20; int VALUE = 300; return value + Value + VALUE; }") == 321
    )


@pytest.mark.parametrize(
    "text", ["0", "7", "42", "1_000", "1_0_0", "0x1F", "0XfF", "1.5", "2.", ".5", "1e3", "1E-3", "1_0.25", "6.02e23"]
)
def test_numbers_are_one_token_of_the_value_that_python_reads(text):
    (token,) = tokens(text)
    is_integer = re.fullmatch(r"0[xX]\w+|[\d_]+", text)
    assert token.kind == ("hex" if text[:2] in ("0x", "0X") else "integer" if is_integer else "real")
    expected = int(text, 0) if is_integer and text.strip("0") else float(text)
    assert value_of(f"double main() {{ return {text}{'' if is_integer else 'd'}; }}") == expected


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("1..5", ["integer", "punctuator", "integer"]), ("1.5..2", ["real", "punctuator", "integer"]),
        ("a.b", ["identifier", "punctuator", "identifier"]), ("a.5", ["identifier", "real"]),
        ("2f", ["real"]), ("2fx", ["integer", "identifier"]), ("2u", ["integer"]), ("2L", ["integer"]),
        ("2x", ["integer", "identifier"]), ("x2", ["identifier"]), ("_2", ["identifier"]), ("2_", ["integer"]),
    ],
)  # fmt: skip
def test_digits_at_the_start_are_numbers(text, kinds):
    assert [token.kind for token in tokens(text)] == kinds


def test_a_float_literal_is_finite():
    """The limit is halfway from the greatest float to 2^128, and rounds to infinity itself."""
    halfway = float(2**128 - 2**103)
    below = float(np.nextafter(halfway, 0))
    assert value_of(f"float main() => {below!r}f;") == np.finfo("f4").max
    assert error_of(f"float main() => {halfway!r}f;").code == "CS0114"


def test_each_of_several_declarations_has_its_own_words():
    """The first begins at the type, so that an error of the second does not point at the first."""
    (function,) = parse(SourceFile("p", "int main() { int c = 1, d = 2; return c; }"))
    assert [statement.span.text for statement in function.body[:2]] == ["int c = 1", "d = 2"]
