"""The formatter, the language server and the prompt: what editors and terminals show of C$ programs."""

import importlib.util
import json
import subprocess
import sys

import pytest

from renderer.cdollar.frontend.diagnostics import ProgramError, SourceFile
from renderer.cdollar.frontend.lexer import tokenize
from renderer.cdollar.runtime.repl import Repl, is_open
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cdollar.tools.formatter import format_text
from renderer.cdollar.tools.language_server import Server, analyze, character_offset, utf16_position
from renderer.cli import main
from renderer.paths import SCENES
from renderer.system.install import pip_install
from renderer.system.process import module_child

PROGRAMS = sorted(SCENES.glob("*.cb"))
PROGRAM = """float[] twice(float[] a, int n) {
    var b(i : 0..n) = 2 * a(i);
    let c(i : 2..7) = b(i) + sqrt(i);
    return c;
}
"""


needs_pygls = pytest.mark.skipif(importlib.util.find_spec("lsprotocol") is None, reason="pygls is not installed here")


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
        ("for(int i=0;i<n;i++)x+=1;", "for (int i = 0; i<n; i++) x += 1;"),
        ("var c(i:0 .. n)=!b&&i<3;", "var c(i : 0..n) = !b && i<3;"),
        ("x = 1. .. 2;", "x = 1. ..2;"),
        ("return- -x;", "return - -x;"),
        ("float y = - 2.0*- x;", "float y = -2.0 * -x;"),
        ("T twice<T>(T x)=>x+x;", "T twice<T>(T x) => x + x;"),
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


def test_hover_knows_types_and_domains():
    found = analyze(PROGRAM)
    assert not found.errors
    for word, wanted in (
        ("c;", "c: float[], domain 2..7"),
        ("b(i :", "b: float(int), domain ?"),
        ("a(i)", "a: float[]"),
        ("n)", "n: int"),
        ("sqrt", "sqrt(x) of numbers"),
        ("twice", "float[] twice(float[], int)"),
    ):
        assert found.hover(PROGRAM.index(word))[0] == wanted, word
    assert found.hover(PROGRAM.index("{")) is None and found.hover(10**6) is None


def test_completion_knows_what_stands_before():
    place = PROGRAM.index("return c") + len("return ")
    names = {c.name: c for c in analyze(PROGRAM).completions(place)}
    assert {"a", "b", "n", "twice", "sqrt", "float3", "while"} <= names.keys()
    assert names["b"].detail == "float(int), domain ?" and names["b"].kind == "variable"
    assert [c.name for c in analyze("float main(float[] g) => g.wr").completions(29)] == ["wrap"]


@needs_pygls
def test_every_error_of_a_program_is_a_diagnostic_at_its_place():
    text = 'float f() => x;\nfloat g() => "é𝄞" + y;\n'
    server = Server()
    found = server.diagnostics("file:///p.cb", text)
    assert len(found) == 2
    assert (found[0].range.start.line, found[0].range.start.character) == (0, 13)
    assert found[1].range.start.line == 1
    assert not server.diagnostics("file:///p.cb", "float f() => 1;")


@pytest.mark.parametrize("text", ["", "a\nb", "é𝄞x\n𝄞\n\n", "\r\n", "\ud800"])
def test_positions_go_there_and_back(text):
    for offset in range(len(text) + 1):
        assert character_offset(text, *utf16_position(text, offset)) == offset
    assert character_offset(text, 99, 99) == len(text)


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
        analysis = analyze(text)
        analysis.completions(len(text))
        analysis.hover(len(text) // 2)
        try:
            once = format_text(text)
        except ProgramError:
            continue
        assert format_text(once) == once


@needs_pygls
def test_names_stay_while_a_program_does_not_parse():
    server = Server()
    server.analysis("file:///p.cb", PROGRAM)
    labels = [c.label for c in server.completions("file:///p.cb", PROGRAM.replace("return c;", "return "), 3, 11)]
    assert "b" in labels and "n" in labels
    (edit,) = server.formatting("float main()=>1;")
    assert edit.new_text == "float main() => 1;\n" and server.formatting(edit.new_text) == []


def message(**body):
    text = json.dumps({"jsonrpc": "2.0", **body}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


@needs_pygls
@pytest.mark.slow
def test_the_server_speaks_with_an_editor(tmp_path):
    command, environment = module_child("renderer")
    child = subprocess.Popen(
        [*command, "cdollar", "serve"], cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )

    def answer(number):
        while True:
            length = 0
            while (line := child.stdout.readline().strip()) != b"":
                length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
            body = json.loads(child.stdout.read(length))
            if body.get("id") == number or body.get("method") == number:
                return body.get("result", body.get("params"))

    def send(**body):
        child.stdin.write(message(**body))
        child.stdin.flush()

    uri = "file:///p.cb"
    try:
        send(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
        able = answer(1)["capabilities"]
        assert able["hoverProvider"] and able["documentFormattingProvider"] and able["completionProvider"]
        send(method="initialized", params={})
        document = {"uri": uri, "languageId": "cdollar", "version": 1, "text": PROGRAM.replace("sqrt", "sqrl")}
        send(method="textDocument/didOpen", params={"textDocument": document})
        (error,) = answer("textDocument/publishDiagnostics")["diagnostics"]
        assert "sqrl" in error["message"] and error["range"]["start"]["line"] == 2
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": PROGRAM}]}
        send(method="textDocument/didChange", params=change)
        assert answer("textDocument/publishDiagnostics")["diagnostics"] == []
        where = {"textDocument": {"uri": uri}, "position": {"line": 3, "character": 11}}
        send(id=2, method="textDocument/hover", params=where)
        assert "domain 2..7" in answer(2)["contents"]["value"]
        send(id=3, method="shutdown")
        answer(3)
        send(method="exit")
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def test_without_pygls_the_server_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "lsprotocol.types", None)
    assert main(["cdollar", "serve"]) == 4
    assert f"the language server needs pygls: {pip_install('lsp')}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "is_more"),
    [
        ("var x = (1 +", True), ("f(1,", True), ("[1, 2", True), ("float f() {", True), ("/* a", True), ("1 +", True),
        ("var x =", True), ("var x = 1;", False), ("f(1)", False), ("", False), (")", False), ('"(', False),
        ("// (", False),
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
        ("var (x, y) = ", "expected an expression, found the end of the file"),
    ],
)
def test_the_prompt_shows_the_error_of_what_was_meant(text, message):
    shown: list[str] = []
    Repl(NumpyTarget, shown.append).handle(text)
    assert message in shown[0]
