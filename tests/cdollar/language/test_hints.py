"""Hints for what programmers of other languages write; several errors at once; carets below wide characters."""

import time

import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.ir.operations import evaluate_numbers
from renderer.cdollar.runtime.evaluate import load_text, main_function
from renderer.cdollar.runtime.repl import Repl
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cli import main
from tests.cdollar.evaluate import error_of, value_of

HINTS = {
    "final class C { float a, b; }\nC main() => C(1, 2) * 2;": "`C operator *(C a, int b) { ... }`",
    "float main(float[,] a) => sum(a.T);": "`var t(j, i) = a(i, j);`",
    "float main(float[] a) => a.sum();": "a reduction is `sum(a)`",
    "int main(int[] a) => a.shape[0];": "`size(a, 0)`",
    "float main(float x) => x ** 2;": "`pow(x, 2)`",
    "float main(float x) => x ^ 2;": "`pow(x, 2)`",
    "flaot main(float x) => x;": "did you mean `float`?",
    "float main(float x) { flot y = x; return y; }": "did you mean `float`?",
    "float main(float x) { retrun x; }": "did you mean `return`?",
    "float main() { retrun 1; }": "did you mean `return`?",
    "float main() { whlie (true) { } return 1; }": "did you mean `while`?",
    "float main(float x) { value; return x; }": "return it, or name it with `var`",
    "float main() { for i in 3 { } return 1; }": "write `for (int i = 0; i < n; i++) ...`",
    "float main(bool c) => 1 if c else 2;": "`c ? a : b`",
    "float main(float x) => |x|;": "`abs(x)`",
    "string main() => 1;": "there are no strings",
    "float main(float x) { if (x = 1) return 2; return x; }": "`==` compares",
    "float main(float x) => x === 1 ? 1 : 2;": "`==` compares",
    "float[] main(float[] v) => v(1:3);": "a part of an array is `a[1:3]`, in brackets",
    "float main(float[] a) => max(a, axis=0);": "arguments have no names",
    "float main(float x) => x and 1;": "and is `&&`",
    "bool main(bool x) => not x;": "not is `!`",
    "def main(x): return x": "a function starts with the type",
    "float main(float x) => math.sin(x);": "`sin(x)`",
    "float main(float[] a) => len(a);": "`size(a)`",
    "float[] main(float[] a) => scan(+, a);": "the running sum is `scan(a)`",
    "float main(float a) => where(a > 0, a, 0);": "`c ? a : b`",
    "float[] main(int n) => zeros(n);": "`var z(i : 0..n) = 0.0;`",
    "float main(float[] a) => fold((x, y) => x + y, 0, a(i));": "declare a function, `float step(",
    "float2[] main(int[] k, float2[] v) => scatter_add(k, v, 5);": "once for each component",
    "float main(float[] a) => summ(a);": "did you mean `sum`?",
    "float main() => “x”;": "quotes are straight",
    "float main() => π;": "it is `pi`",
    "float main(float 变) => 1;": "names are made of",
    "float main(float x) => x × 2;": "write `*`",
    "float main(float[] a) { int half = 1; return a(half); }": "use another name: `int half_1`",
    "float main(float[] a, float byte) => byte;": "use another name: `float byte_1`",
    "float main(float[] a) { float s = 0; for (i in a) s += a(i); return s; }": "`sum(a(i))`",
    "float main(float[] g) { float s = 0; foreach (float x in g) s += x; return s; }": "`sum(g(i))`",
    "float[] main(float[] a) => a[a > 1];": "`compact(a, a > 1)` keeps these elements, `sum(a(i), i : k => ...)`",
    "float[] main(float[] a) => filter(a, a > 1);": "a mask is for `compact(a, a > 1)`",
    "float main(float[] aa) => aaa(3);": "did you mean `aa`?",
    "float main(float[] val) => val(vall);": "did you mean `val`?; `var c(vall)",
    "float[,] main(float[] m) => m[:, None];": "`var c(i, k) = a(i);`",
    "float main(int x, int y) => f(3.0 * x / width);\nfloat f(float x) => x;": "a parameter of a picture",
    "float main(float[] a) { print(a); return 1; }": "what `main` returns is printed",
    "float main(float[] a) => min(a(k), k : a(k) > 0);": "a condition is a function with a name: `k : j =>",
    "float main(float[] a) => sum(a(i), i : 0..3, i != 1);": "`i : k => k < n && k != 1`",
    "float main(float[] a) { var s = 0; for (int i = 0; i < 3; i++) s += a(i); return s; }": "variable of float loses",
    "byte[] main(int[] a) => a;": "for all elements: `(byte) ...`",
    "float main(float[] a) => sum(a, 0..3);": "`sum(a(i), i : 0..n)`",
    "float main(float[] a) => sum(histogram);": "call it: `histogram(keys, n)`",
    "float main(float[] a) => dot(a, a);": "of arrays it is `sum(a * b)`",
    "float[] main(float[] a) => [x * 2 for x in a];": "`var b(i) = 2 * a(i);`",
    "float[] main(float[] a) { var r(i in 0..3) = a(i); return r; }": "the range of a variable is `i : 0..n`",
    "float main(float[,] a) => sum(a[..., 0]);": "`a[:, 0]`",
    "final class R { int row[5]; } int main() => 1;": "only local arrays of functions have sizes",
    "float[] main(float[] a) => unique(a);": "`compact(s, i => i == 0",
    "float main() => nan;": "NaN is `0.0 / 0.0`",
    "float main() => norm(1);": "`sqrt(sum(a * a))`",
    "float[,] main(float[,] a) { mutable var m = a; (m[0, :], m[1, :]) = (a[1, :], a[0, :]); return m; }": (
        "name the parts, `var (x, y) = ...;`, then assign `m[0, :] = x;`"
    ),
    "float[,] main(float[,] a, int k) { mutable var m = a; m[k] = a[0, :]; return m; }": "assign `m[k, :] = ...`",
    "float[] main(float[,] a) => sum(a, 1);": "`var r(i) = sum(a(i, j), int j)`",
}


def test_a_type_error_in_a_generic_function_is_at_the_call():
    text = "final class C { float x; }\nT twice<T>(T x) => x + x;\nfloat main() => twice(C(1)).x;"
    with pytest.raises(ProgramError, match=r"test.cb:3:17: error CS0403: twice\(C\) .* in x \+ x at 2:20") as caught:
        load_text(SourceFile("test.cb", text), NumpyTarget)
    assert caught.value.hint.startswith("define it: `C operator +(C a, C b)")


@pytest.mark.parametrize(
    ("expression", "words", "hint"),
    [
        ("C(1) + 2", "`+` is not defined for C and int", None),
        ("2 * C(1)", "`*` is not defined for int and C", None),
        ("-C(1)", "`-` is not defined for C", None),
        ("!C(1)", "`!` is not defined for C", None),
        ("3 + true", "`+` is not defined for int and bool", "bool"),
        ("true < 3.0", "`<` is not defined for bool and float", "bool"),
        ("j + i", "`+` is not defined for int and uint", "cast one of them: `(int) x` or `(uint) x`"),
    ],
)
def test_an_operator_names_the_types_it_is_not_defined_for(expression, words, hint):
    error = error_of(f"class C {{ float x; }} float main() {{ uint i = 3; int j = 3; return {expression}; }}")
    assert error.code == "CS0403" and words in str(error) and (hint is None or hint in str(error))
    assert expression in str(error)


def test_messages_name_no_variable_that_nobody_wrote(rng):
    with pytest.raises(ProgramError, match=r"the second dimension is 0\.\.3 and 0\.\.4 in a \+ b") as caught:
        value_of("float[,] main(float[,] a, float[,] b) => a + b;", a=rng.random((2, 3)), b=rng.random((2, 4)))
    assert "`i`" not in str(caught.value)


@pytest.mark.parametrize("text", HINTS)
def test_hints_name_what_was_meant(text):
    with pytest.raises(ProgramError) as caught:
        load_text(SourceFile("test.cb", text), NumpyTarget)
    assert HINTS[text] in caught.value.hint, str(caught.value)


def test_a_list_that_is_not_closed_asks_for_either():
    with pytest.raises(ProgramError, match="expected `,` or `\\)` between arguments, found `;`"):
        value_of("float main(float[] v) => sum(v;")


def test_a_misspelled_main_is_marked():
    with pytest.raises(ProgramError) as caught:
        main_function(load_text(SourceFile("test.cb", "float mian(float x) => x;"), NumpyTarget))
    assert caught.value.span.text == "mian" and caught.value.hint == "name it `main`"


def errors_of(text):
    with pytest.raises(ProgramError) as caught:
        load_text(SourceFile("test.cb", text), NumpyTarget)
    return [line for line in str(caught.value).splitlines() if ": error " in line]


def test_several_errors_are_shown_in_order():
    text = "float f(float x) => x +;\nfloat g(float x) {\n    retrun x;\n}\nfloat main() => f(1);\n"
    assert [e.split(":")[1] for e in errors_of(text)] == ["1", "3"]
    text = "float f(float x) => y;\nfloat main(float x) => f(x) + g(x);\nfloat g(float x) => x.z + f(x);\n"
    assert [e.split(":")[1:3] for e in errors_of(text)] == [["1", "21"], ["3", "23"]]
    many = "".join(f"float f{k}(float x) => y{k};\n" for k in range(9))
    assert len(errors_of(many)) == 5
    with pytest.raises(ProgramError, match="and 4 more errors"):
        load_text(SourceFile("test.cb", many), NumpyTarget)


BODIES = [
    ("float x = oops; var y(i : 0..3) = x * i; float z = true; z += y(1); return q + x;", ["oops", "true", "q"]),
    ("var a(i : 0..3) = i * nothing; var b(i) = a(i) + 1; b[0] = 2; return sum(b) + a;", ["nothing"]),
    ("float s = 0; for (int i = 0; i < 3; i++) { s += u; s += i; } while (s) s++; return s.k;", ["u", "s", "k"]),
    ("if (1) return 2; if (n > 2) { float y = p; return y; } else { int k = 1.5; } return r;", ["1", "p", "1.5", "r"]),
    ("float t[3]; t[0] = no; t[9.5] = 1; break; return t[0] + x;", ["no", "9.5", "break", "x"]),
]


@pytest.mark.parametrize(("body", "wrong"), BODIES)
@pytest.mark.parametrize("parameters", ["float n", "float n, float[] v"])
def test_all_errors_of_a_body_are_found_and_none_that_follow(body, wrong, parameters):
    with pytest.raises(ProgramError) as caught:
        load_text(SourceFile("test.cb", f"float f({parameters}) {{ {body} }}\nfloat main() => 1;"), NumpyTarget)
    found = [e.span.text for e in (caught.value, *caught.value.others)]
    assert [text.strip(";") for text in found] == wrong, str(caught.value)


def test_errors_in_long_texts_are_short_and_found_in_linear_time():
    started = time.process_time()
    for text in ("float f(float x) { var" + "<a>" * 80_000, f"float main() => {'float3' * 9000};\n" * 6):
        with pytest.raises(ProgramError) as caught:
            load_text(SourceFile("test.cb", text), NumpyTarget)
        assert len(str(caught.value)) < 1000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("before, columns", [("/* 变量 */", 10), ("/* é */", 7), ("/* e\u0301 */", 7), ("/* ab */", 8)])
def test_carets_stand_below_what_they_mark(before, columns):
    with pytest.raises(ProgramError) as caught:
        value_of(f"{before} float main() => oops;")
    caret = str(caught.value).splitlines()[2]
    assert caret.index("^") == 4 + columns + len(" float main() => ") and caret.count("^") == 4


@pytest.mark.filterwarnings("error")
def test_numbers_too_large_for_their_type_are_infinite_without_a_warning():
    assert evaluate_numbers("+", "float", [1e60, 1.0], ["float", "float"]) == float("inf")


def test_the_help_of_the_prompt_and_of_the_commands_name_the_guide(capsys):
    Repl(NumpyTarget, print).handle(":help")
    for command in ("run", "cdollar"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
    assert capsys.readouterr().out.count("cdollar.md") == 3
