"""The formatter and the prompt, and hostile texts for the language server (see test_language_server.py)."""

import json
import sys

import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.lexer import tokenize
from renderer.cdollar.runtime.repl import Repl, is_open, run_repl
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.tools.formatter import format_text
from renderer.cdollar.tools.language_server import Analysis
from renderer.cli import main
from renderer.paths import SCENES
from renderer.system.install import pip_install

PROGRAMS = sorted(SCENES.glob("*.cb"))


def words(text):
    return [(token.kind, token.text) for token in tokenize(SourceFile("p", text))]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_bundled_programs_are_formatted(path):
    assert format_text(path.read_text()) == path.read_text()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_formatting_keeps_every_token_and_comment_and_is_idempotent(path, rng):
    lines = []
    for line in path.read_text().splitlines():
        code, slashes, comment = line.partition("//")
        spaced = code.replace(" ", " " * int(rng.integers(1, 4))).replace(";", " ;").replace(",", " , ")
        lines.append("\t" * int(rng.integers(0, 3)) + spaced + slashes + comment + " " * int(rng.integers(0, 3)))
    text = "\n".join(lines) + "\n" * int(rng.integers(0, 4))
    once = format_text(text)
    assert words(once) == words(path.read_text()) and format_text(once) == once
    assert once.count("//") == path.read_text().count("//")
    assert "\t" not in once and " ;" not in once and not any(line != line.rstrip() for line in once.splitlines())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("float main(){return a( i,j )+b [ 2 ]*-c;}", "float main() { return a(i, j) + b[2] * -c; }"),
        ("var s(i)=+ (a(i,k)*b(k));", "var s(i) = + (a(i, k) * b(k));"),
        ("var t=a[1 : ]+a[i,: : -1]+(c?x:y);", "var t = a[1:] + a[i, ::-1] + (c ? x : y);"),
        ("float[ , ] f(float[,] a,int n=3)=>a;", "float[,] f(float[,] a, int n = 3) => a;"),
        ("for(int i=0;i<n;i++)x+=1;", "for (int i = 0; i < n; i++) x += 1;"),
        ("var c(i:0 .. n)=!b&&i<3;", "var c(i : 0..n) = !b && i < 3;"),
        ("x = 1. .. 2;", "x = 1. ..2;"),
        ("return- -x;", "return - -x;"),
        ("float y = - 2.0*- x;", "float y = -2.0 * -x;"),
        ("T twice<T>(T x)=>x+x;", "T twice<T>(T x) => x + x;"),
        ("T f < T,U > (T x)=>t<n&&n>2||a>-1;", "T f<T, U>(T x) => t < n && n > 2 || a > -1;"),
        ("x = v(0) >1 && sum(v) <1 && a[1]<b[2] && a[0] >c;", "x = v(0) > 1 && sum(v) < 1 && a[1] < b[2] && a[0] > c;"),
        ("(int[]q,int r)  f(int[]a)=>(a,1);", "(int[] q, int r) f(int[] a) => (a, 1);"),
        ("var(x,y)=f(a);", "var (x, y) = f(a);"),
        ("x=[ 1,2 ];//c", "x = [1, 2];  //c"),
        ("x = y\n+ z;", "x = y\n    + z;"),
        ("f(\na,\nb\n);", "f(\n    a,\n    b\n);"),
        ("/* a\n   b */ int x=1;", "/* a\n   b */ int x = 1;"),
        ("int x;\n\n\n\nint y;\n\n", "int x;\n\nint y;"),
        ("", ""),
    ],
)
def test_spaces_and_indentation(text, wanted):
    once = format_text(text)
    assert once == (wanted + "\n" if wanted else "") and format_text(once) == once


def test_the_command_formats_in_place_and_checks(tmp_path, capsys):
    good, bad = tmp_path / "good.cb", tmp_path / "bad.cb"
    good.write_text("float main() => 1;\n")
    bad.write_text("float main()=>1;")
    assert main(["cdollar", "format", "--check", str(good), str(bad)]) == 1 and bad.read_text()[-1] == ";"
    assert "bad.cb: would change" in capsys.readouterr().err
    assert main(["cdollar", "format", "--json", str(good), str(bad)]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": [str(bad)], "unchanged": [str(good)]}
    assert bad.read_text() == good.read_text()
    assert main(["cdollar", "format", "--check", str(bad)]) == 0
    (tmp_path / "no.cb").write_text("float main() => #;")
    assert main(["cdollar", "format", str(tmp_path / "no.cb")]) == 5
    assert "no.cb:1:17: error CS0103" in capsys.readouterr().err
    assert main(["cdollar", "format", str(tmp_path / "nowhere.cb")]) == 5


def test_lines_keep_their_ends(tmp_path):
    text, wanted = b"float main( )=>1;\r\n/* a \r\n b */\r\n", b"float main() => 1;\r\n/* a\r\n b */\r\n"
    (path := tmp_path / "a.cb").write_bytes(text)
    assert main(["cdollar", "format", str(path)]) == 0 and path.read_bytes() == wanted
    assert main(["cdollar", "format", "--check", str(path)]) == 0
    path.write_bytes(text.replace(b"\r", b""))
    assert main(["cdollar", "format", str(path)]) == 0 and path.read_bytes() == wanted.replace(b"\r", b"")


def test_comparisons_are_not_type_parameters():
    text = "float main(float[] v) => v(0) >1 ? sum(v) <1 ? 1 : 2 : v(0)>(1) ? 3 : 4;\nT f<T, U>(T[] x, U y) => x(0);\n"
    wanted = text.replace(" >1", " > 1").replace(" <1", " < 1").replace(")>(", ") > (")
    assert format_text(text) == format_text(wanted) == wanted


def test_hostile_texts_are_analyzed_and_formatted_or_refused(rng):
    texts = [
        "(" * 5000,
        "float main() => " + "-" * 3000 + "1;",
        "/*",
        '"',
        "\0",
        "class A { A a; }",
        "{" * 300,
        "var " * 999,
    ]
    letters = list("ab(){}[]<>=+-*/:;,.?!0123 \n\t\"'/é") + ["var ", "float ", "return "]
    texts += ["".join(rng.choice(letters, 60)) for _ in range(60)]
    for text in texts:
        analysis = Analysis(text)
        analysis.completions(len(text))
        analysis.called(len(text) // 2)
        analysis.rename_refusal(analysis.index.spans(len(text) // 2), "other")
        try:
            once = format_text(text)
        except ProgramError:
            continue
        assert format_text(once) == once


def test_without_pygls_the_server_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "lsprotocol.types", None)
    assert main(["cdollar", "serve"]) == 4
    assert f"the language server needs pygls: {pip_install('lsp')}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "is_more"),
    [
        ("var x = (1 +", True), ("f(1,", True), ("[1, 2", True), ("float f() {", True), ("/* a", True), ("1 +", True),
        ("var x =", True), ("var x = 1;", False), ("f(1)", False), ("", False), (")", False), ('"(', False),
        ("// (", False), ("int f(int n)", True), ("while (true)", True), ("class P", True), ("a > f(x)", False),
    ],
)  # fmt: skip
def test_the_prompt_continues_what_is_open(text, is_more):
    assert is_open(text) == is_more


def test_the_prompt_completes():
    repl = Repl(NumpyTarget, lambda text: None)
    repl.handle("var height = 3;")
    repl.handle("float area(float r) => 3 * r * r;")
    assert repl.completions("2 * hei", 4) == ["height"] and repl.completions("are", 0) == ["area"]
    assert repl.completions("a.wr", 2) == ["wrap"] and repl.completions(":n", 1) == [":names"]
    assert "sqrt" in repl.completions("sq", 0) and repl.completions("zzz", 0) == []


def test_the_prompt_lists_variables_that_have_no_value():
    shown: list[str] = []
    repl = Repl(NumpyTarget, shown.append)
    repl.handle("float x;")
    repl.handle(":names")
    repl.handle("x = 2;")
    repl.handle(":names")
    assert [line for line in shown if line.startswith("x:")] == ["x: float, without a value", "x: float"]
    repl.handle("final class P { float w; float twice() => 2 * w; }")
    repl.handle("P(21).twice()")
    assert shown[-1].startswith("42"), shown[-1]


def test_a_link_to_a_program_is_kept_and_one_to_another_file_refused(tmp_path, capsys):
    """A text that a link named as a program was rewritten."""
    (tmp_path / "a.cb").write_text("float main()=>1.0;\n")
    (tmp_path / "notes.txt").write_text("my  notes\n")
    for link, target in (("b.cb", "a.cb"), ("c.cb", "notes.txt")):
        (tmp_path / link).symlink_to(target)
    assert main(["cdollar", "format", str(tmp_path / "b.cb")]) == 0
    assert (tmp_path / "b.cb").is_symlink() and (tmp_path / "a.cb").read_text() == "float main() => 1.0;\n"
    assert main(["cdollar", "format", str(tmp_path / "c.cb")]) == 5
    assert (tmp_path / "notes.txt").read_text() == "my  notes\n" and "which is no .cb file" in capsys.readouterr().err


def test_an_error_quotes_no_file_of_another_kind(tmp_path):
    """The prompt showed the first bytes of any file."""
    (tmp_path / "secret").write_text("SECRET of mine")
    with pytest.raises(ProgramError, match="not a .npy file: it does not begin with") as refused:
        Repl(NumpyTarget).execute(f'file("{tmp_path}/secret")')
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int half = 1", "`half` is a type and names no variable"),
        ("float g(float x) { return x }", "expected `;` after `return`"),
        ("var (x, y) = ", "expected an expression, found the end of the input"),
    ],
)
def test_the_prompt_shows_the_error_of_what_was_meant(text, message):
    shown: list[str] = []
    Repl(NumpyTarget, shown.append).handle(text)
    assert message in shown[0]


def test_an_interrupt_at_the_prompt_ends_what_runs_and_keeps_what_is_declared(monkeypatch, capsys):
    execute = Repl.execute

    def interrupted(repl, text):
        if "endless" in text:
            raise KeyboardInterrupt
        execute(repl, text)

    lines = iter(["var a = [1.0, 2.0]", "endless()", "int f(int n)", "{", "return n + 1;", "}", "f(size(a))", ":q"])
    monkeypatch.setattr("builtins.input", lambda prompt: next(lines))
    monkeypatch.setattr(Repl, "execute", interrupted)
    assert run_repl(NumpyTarget) == 0
    shown = capsys.readouterr().out
    assert "interrupted; what was declared before is kept" in shown and shown.split()[-1] == "3"


def test_the_prompt_tells_how_domains_were_inferred_and_refuses_unknown_commands():
    shown: list[str] = []
    repl = Repl(NumpyTarget, shown.append)
    for text in ("var a = [1.0, 2.0]", ":d var d(i) = a(i + 1) - a(i);", ":type a"):
        repl.handle(text)
    assert shown[0].startswith("i is 0..1 from a(i) at") and shown[1].startswith("there is no command :type")


def test_a_text_that_does_not_parse_is_not_formatted(tmp_path, capsys):
    wrong, deep = tmp_path / "wrong.cb", tmp_path / "deep.cb"
    wrong.write_text("float main( => 1")
    deep.write_text(f"float main()=>{'(' * 110}1{')' * 110};")
    assert main(["cdollar", "format", str(wrong)]) == 5 and wrong.read_text() == "float main( => 1"
    assert "wrong.cb:1:13: error CS0" in capsys.readouterr().err
    assert main(["cdollar", "format", str(deep)]) == 0
