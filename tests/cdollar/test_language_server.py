"""The language server as an editor uses it: every request through the protocol, on the pipes of a child process."""

import itertools
import json
import os
import shutil
import subprocess
import sys

import pytest

from renderer.cdollar.frontend.lexer import tokenize
from renderer.cdollar.runtime.evaluate import PRELUDE
from renderer.cdollar.tools.language_server import Analysis, character_offset, utf16_position
from renderer.paths import ROOT, SCENES
from renderer.system.process import module_child

pytest.importorskip("lsprotocol", reason="pygls is not installed here")

PROGRAM = """/* é𝄞 */ final class Point { float x, y; float norm() => sqrt(x * x + y * y); }
type row = float[];
float scale = 2.0;
T twice<T>(T v) => v + v;
float area(Point p) { float r = p.norm() * scale; for (int k = 0; k < 3; k++) { float t = r; r += t; } return r; }
float area(float w) => w * w;
T unused<T>(T x) { T other = x; return other; }
domain shifted(domain d, int by) => (low(d) + by)..(high(d) + by);
float shadow(float s) { if (s > 0) { float q = s; return q; } else { float q = 2 * s; return q + 1; } return s; }
float[] main(row a, int n) {
    int j : 0..n;
    var b(i : 0..n) = a(i) * twice(scale);
    /* 𝄞𝄞 */ let c(i : 2..7) = b(i) + sum(a(j)) + sum(a(k) * a(k));
    var f = x => x * 2.0;
    return c + area(Point(1, 2)) + f(low(b, 0)) + luminance(float3(1, 2, 3)) + shadow(area(3.0));
}
"""
NOT_DECLARED = "only what this program declares can be renamed: variables, functions, types, members of classes"


class Editor:
    """A client of the server: sends requests, and returns their results or errors."""

    def __init__(self, folder):
        command, environment = module_child("renderer")
        self.child = subprocess.Popen(
            [*command, "cdollar", "serve"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.numbers, self.texts = itertools.count(1), {}

    def send(self, **body):
        text = json.dumps({"jsonrpc": "2.0", **body}).encode()
        self.child.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
        self.child.stdin.flush()

    def receive(self, wanted):
        """The next message with an id, or of a method."""
        while True:
            length = 0
            while (line := self.child.stdout.readline().strip()) != b"":
                length = int(line.split(b":")[1]) if line.lower().startswith(b"content-length") else length
            body = json.loads(self.child.stdout.read(length))
            if wanted in (body.get("id"), body.get("method")):
                return body

    def request(self, method, **parameters):
        number = next(self.numbers)
        self.send(id=number, method=method, params=parameters)
        body = self.receive(number)
        return body["error"] if "error" in body else body["result"]

    def write(self, text, uri="file:///p.cb"):
        """Opens or changes a file; returns its diagnostics."""
        if uri in self.texts:
            change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]}
            self.send(method="textDocument/didChange", params=change)
        else:
            document = {"uri": uri, "languageId": "cdollar", "version": 1, "text": text}
            self.send(method="textDocument/didOpen", params={"textDocument": document})
        self.texts[uri] = text
        return self.receive("textDocument/publishDiagnostics")["params"]["diagnostics"]

    def ask(self, request, before, at="", **more):
        """A request at the position behind the only occurrence of `before`, which `at` follows."""
        text = self.texts["file:///p.cb"]
        assert text.count(before + at) == 1, f"{before + at!r} stands {text.count(before + at)} times in the text"
        line, character = utf16_position(text, text.index(before + at) + len(before))
        position = {"line": line, "character": character}
        return self.request(f"textDocument/{request}", textDocument={"uri": "file:///p.cb"}, position=position, **more)

    def spans(self, ranges):
        """Offsets of protocol ranges, and their texts."""
        text = self.texts["file:///p.cb"]
        ends = [[character_offset(text, *r[end].values()) for end in ("start", "end")] for r in ranges]
        return [(start, text[start:end]) for start, end in ends]

    def places(self, request, before, at="", **more):
        """The offsets that a request for locations in the file finds."""
        return [start for start, _ in self.spans(found["range"] for found in self.ask(request, before, at, **more))]

    def references(self, before, at="", declaration=True):
        return self.places("references", before, at, context={"includeDeclaration": declaration})

    def hover(self, before, at=""):
        found = self.ask("hover", before, at)
        return found and found["contents"]["value"].removeprefix("```cb\n").removesuffix("\n```")

    def labels(self, before, at=""):
        return {item["label"]: item.get("detail", "") for item in self.ask("completion", before, at)["items"]}

    def rename(self, before, at, name):
        """The text after a rename, or the sentence that refuses it."""
        found = self.ask("rename", before, at, newName=name)
        if "message" in found:
            return found["message"]
        text = self.texts["file:///p.cb"]
        for start, old in sorted(self.spans(e["range"] for e in found["changes"]["file:///p.cb"]), reverse=True):
            text = text[:start] + name + text[start + len(old) :]
        return text


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    editor = Editor(tmp_path_factory.mktemp("editor"))
    try:
        editor.able = editor.request("initialize", processId=None, rootUri=None, capabilities={})["capabilities"]
        editor.send(method="initialized", params={})
        yield editor
        editor.request("shutdown")
        editor.send(method="exit")
        assert editor.child.wait(20) == 0
    finally:
        editor.child.kill()
        editor.child.wait()
        editor.child.stdin.close()
        editor.child.stdout.close()


@pytest.fixture
def editor(server):
    assert server.write(PROGRAM) == []
    return server


def at(text):
    assert PROGRAM.count(text) == 1
    return PROGRAM.index(text)


def test_the_server_says_what_it_can_do(server):
    names = "hover documentFormatting completion definition references rename documentSymbol signatureHelp"
    assert all(server.able[f"{name}Provider"] for name in names.split())


def test_errors_are_shown_at_their_places(server):
    found = server.write('float f() => x;\nfloat g() => "é𝄞" + y;\n')
    assert [error["range"]["start"] for error in found][:1] == [{"line": 0, "character": 13}] and len(found) == 2
    assert found[1]["range"]["start"]["line"] == 1 and server.write("float f() => 1;") == []


@pytest.mark.parametrize(
    ("before", "name", "text"),
    [
        ("", "Point { float", "final class Point { float x, y; float..."),
        ("sqrt(", "x * x +", "x: float"),
        ("p.", "norm() * ", "float norm()"),
        ("", "sqrt(", "sqrt(x) of numbers"),
        ("main(", "row a", "type row = float[];"),
        ("main(row ", "a, int", "a: row"),
        ("* ", "scale; for", "scale: float"),
        ("a(i) * ", "twice", "T twice<T>(T v)"),
        ("=> ", "v + v", "v: T"),
        ("for (int ", "k =", "k: int"),
        ("T ", "other =", "other: T"),
        ("shifted(domain ", "d, int", "d: domain"),
        ("(low(", "d) +", "d: domain"),
        ("return ", "c + ", "c: float[]  domain 2..7"),
        ("= ", "b(i) + ", "b: float(int)  domain ?"),
        ("b(", "i) + ", "i: int  in 2..7"),
        ("var f = ", "x =>", "x: int"),
        ("", "luminance(", "float luminance(float3 color)"),
        ("+ ", "area(Point(", "float area(Point p)\nfloat area(float w)"),
    ],
)
def test_hover_shows_the_type_of_every_name(editor, before, name, text):
    assert editor.hover(before, name) == text


def test_hover_of_no_name(editor):
    assert editor.hover("c + area(Point(1, 2)) + f(low(b, 0)", ")") is None


@pytest.mark.parametrize(
    ("before", "name", "wanted"),
    [
        ("sqrt(", "x * x +", ["x, y; float"]),
        ("p.", "norm() * ", ["norm() =>"]),
        ("area(", "Point(1", ["Point { float"]),
        ("main(", "row a", ["row = float"]),
        ("* ", "scale; for", ["scale = 2.0"]),
        ("=> ", "v + v", ["v) => v + v"]),
        ("twice<T>(", "T v", ["T>(T v"]),
        ("return ", "other;", ["other = x"]),
        ("sum(", "a(j)", ["a, int n"]),
        ("a(", "j)", ["j : 0..n;\n    var"]),
        ("sum(a(", "k)", ["k) * a(k)"]),
        ("* a(", "k)", ["k) * a(k)"]),
        ("; return ", "q; }", ["q = s;"]),
        ("; return ", "q + 1", ["q = 2"]),
        ("x => ", "x * 2.0", ["x => x"]),
        ("", "f(low", ["f = x"]),
        ("+ ", "area(Point(", ["area(Point p", "area(float w"]),
        ("", "sqrt(", []),
    ],
)
def test_definition(editor, before, name, wanted):
    assert editor.places("definition", before, name) == [at(text) for text in wanted]


def test_the_definition_of_a_bundled_function_is_in_the_prelude(editor):
    (found,) = editor.ask("definition", "", "luminance(")
    assert found["uri"] == PRELUDE.as_uri()
    assert PRELUDE.read_text().splitlines()[found["range"]["start"]["line"]].startswith("float luminance(")


def test_references(editor):
    uses = [at("scale; for"), at("scale);")]
    assert editor.references("float ", "scale =") == [at("scale = 2.0"), *uses]
    assert editor.references("float ", "scale =", declaration=False) == uses
    assert editor.references("; return ", "q; }") == [at("q = s;"), at("q; }")]
    assert editor.references("sum(a(", "k)") == [at("k) * a(k)"), at("k));")]
    assert editor.references("", "sqrt(") == [at("sqrt(")]
    assert editor.references("float ", "x, y") == [at("x, y; float"), at("x * x +"), at("x + y * y")]


def test_symbols(editor):
    found = editor.request("textDocument/documentSymbol", textDocument={"uri": "file:///p.cb"})
    assert [symbol["name"] for symbol in found] == (
        ["Point", "row", "scale", "twice", "area", "area", "unused", "shifted", "shadow", "main"]
    )
    assert [child["name"] for child in found[0]["children"]] == ["x", "y", "norm"]
    names = editor.spans(symbol["selectionRange"] for symbol in found)
    wholes = editor.spans(symbol["range"] for symbol in found)
    assert [text for _, text in names] == [symbol["name"] for symbol in found]
    assert wholes[4][1].startswith("float area(Point p)") and wholes[4][1].endswith("return r; }")
    assert wholes[-1][1].endswith("}")


@pytest.mark.parametrize(
    ("before", "name", "new", "changes"),
    [
        ("", "scale =", "factor", [("scale", 3)]),
        ("", "Point { float", "Pair", [("Point", 3)]),
        ("p.", "norm() * ", "length", [("norm", 2)]),
        ("float ", "x, y", "abscissa", [("x", 3)]),
        ("T ", "twice<", "doubled", [("twice", 2)]),
        ("", "T v", "Element", [("T", 3)]),
        ("row ", "a, int", "values", [("a", 5)]),
        ("int ", "j :", "m", [("j", 2)]),
        ("+ ", "area(Point(", "surface", [("area", 4)]),
        ("return ", "q + 1", "z", [("q", 2)]),
        ("let ", "c(i", "result", [("c", 2)]),
    ],
)
def test_rename_changes_every_use_and_no_meaning(editor, before, name, new, changes):
    text = editor.rename(before, name, new)
    ((old, count),) = changes
    assert text.count(new) == PROGRAM.count(new) + count and len(text) == len(PROGRAM) + count * (len(new) - len(old))
    assert editor.write(text) == []


@pytest.mark.parametrize(
    ("before", "name", "new", "message"),
    [
        ("", "luminance(", "gray", NOT_DECLARED),
        ("", "sqrt(", "root", NOT_DECLARED),
        ("var ", "b(i", "c", "`b` cannot become `c`: `c` is declared twice in this block"),
        ("let ", "c(i", "b", "`c` cannot become `b`: `b` is declared twice in this block"),
        ("for (int ", "k =", "r", "`k` cannot become `r`: t is float, but int is needed"),
        ("float ", "r = p", "k", "`r` cannot become `k`: t is float, but int is needed"),
        ("", "scale =", "n", "`scale` cannot become `n`: `n` has a meaning already"),
        ("", "scale =", "2x", "`2x` cannot be a name: names are letters, digits and _, and no words of the language"),
        (
            "",
            "scale =",
            "while",
            "`while` cannot be a name: names are letters, digits and _, and no words of the language",
        ),
    ],
)
def test_a_rename_that_would_collide_is_refused(editor, before, name, new, message):
    assert editor.rename(before, name, new) == message


def test_a_rename_is_refused_where_the_class_is_not_known(server):
    server.write("final class P { float x; }\nfloat g<T>(T p) => p.x;\nfloat f(P p) => p.x;\n")
    assert server.rename("float ", "x;", "z") == "it is not known whether p.x at 2:20 is this field"


def test_members_stand_behind_the_dot(server):
    text = PROGRAM.replace("return r; }", "return p. }")
    server.write(text)
    assert server.labels("return p.") == {"x": "x: float", "y": "y: float", "norm": "float norm()"}
    server.write(PROGRAM.replace("return c +", "return b.wr +"))
    assert list(server.labels("return b.wr")) == ["wrap"]
    server.write("(float[] lu, int[] p) f(float[] a) => (a, argsort(a));\nfloat[] main(float[] a) => f(a).")
    assert list(server.labels("=> f(a).")) == ["lu", "p"]
    server.write("float g(float3 v) => dot(v, v.")
    assert list(server.labels("v, v.")) == ["x", "y", "z"]


def test_completion_knows_what_is_visible(editor):
    labels = editor.labels("return ", "c +")
    assert labels["b"] == "b: float(int)  domain ?" and labels["twice"] == "T twice<T>(T v)"
    assert {"a", "n", "sqrt", "float3", "while", "Point", "luminance"} <= labels.keys()
    assert not {"r", "q", "p", "Point.x"} & labels.keys()


def test_signatures_have_types(editor):
    def labels(before, name):
        found = editor.ask("signatureHelp", before, name)
        return found and [signature["label"] for signature in found["signatures"]]

    assert labels("+ area(", "Point(") == ["float area(Point p)", "float area(float w)"]
    assert labels("luminance(", "float3") == ["float luminance(float3 color)"]
    assert labels("p.norm(", ") *") == ["float norm()"]
    assert labels("return ", "c +") is None


def test_names_answer_while_the_program_has_an_error_elsewhere(editor):
    broken = PROGRAM.replace("var f = x => x * 2.0;", "var f = 𝄞 (")
    assert editor.write(broken)
    assert editor.hover("= ", "b(i) + ") == "b: float(int)  domain ?"
    assert editor.places("definition", "+ shadow(", "area(") == [
        broken.index("area(Point p"),
        broken.index("area(float w"),
    ]
    assert editor.hover("return ", "c + ") == "c: float[]  domain 2..7"
    assert {"a", "b", "c"} <= editor.labels("return ", "c + ").keys()
    assert editor.rename("", "scale =", "factor").startswith("the text does not parse, mend it first: ")
    wrong = PROGRAM.replace("float area(float w) => w * w;", "float area(float w) => w * unknown_name;")
    assert len(editor.write(wrong)) == 1
    assert editor.hover("return ", "c + ") == "c: float[]  domain 2..7"
    assert editor.rename("", "scale =", "factor").count("factor") == 3


def test_positions_are_utf16_units(server):
    text = "float f(float x) => /* é𝄞 */ x * 2;  float g() => f(1) /* 𝄞𝄞 */ + f(2);\n"
    server.write(text)
    (found,) = server.ask("definition", "*/ ", "x *")
    assert found["range"]["start"] == {"line": 0, "character": 14}
    (_, first, second) = server.ask("references", "float ", "f(", context={"includeDeclaration": True})
    assert (first["range"]["start"]["character"], second["range"]["start"]["character"]) == tuple(
        sum(2 if ord(c) > 0xFFFF else 1 for c in text[: text.index(use)]) for use in ("f(1", "f(2")
    )


def test_formatting_through_the_protocol(server):
    server.write("float main()=>1;")
    options = {"tabSize": 4, "insertSpaces": True}
    (edit,) = server.request("textDocument/formatting", textDocument={"uri": "file:///p.cb"}, options=options)
    assert edit["newText"] == "float main() => 1;\n"


def test_the_extension_for_editors_names_its_files():
    """VS Code reads the paths from package.json."""
    folder = ROOT / "assets" / "editors"
    package = json.loads((folder / "package.json").read_text())
    language, grammar = package["contributes"]["languages"][0], package["contributes"]["grammars"][0]
    assert language["extensions"] == [".cb"] and language["id"] == grammar["language"] == "cdollar"
    assert json.loads((folder / grammar["path"]).read_text())["scopeName"] == grammar["scopeName"]
    assert json.loads((folder / language["configuration"]).read_text())["comments"]["lineComment"] == "//"
    assert '["cdollar", "serve"]' in (folder / package["main"]).read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="Neovim is not installed here")
def test_neovim_with_the_file_of_the_guide(tmp_path):
    """Neovim shows the error of a program, by the file of the guide and a command `rayfold`."""
    plugins, command = tmp_path / "nvim" / "plugin", tmp_path / "rayfold"
    plugins.mkdir(parents=True)
    shutil.copy(ROOT / "assets" / "editors" / "cdollar.lua", plugins)
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m renderer "$@"\n')
    command.chmod(0o755)
    (tmp_path / "p.cb").write_text("float main() => unknown_name;\n")
    script = "lua vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 50)"
    show = "lua io.stdout:write(vim.diagnostic.get(0)[1].message)"
    folders = {name: str(tmp_path) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    environment = {**os.environ, **folders, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    editor = ["nvim", "--headless", "p.cb", "-c", script, "-c", show, "-c", "qa!"]
    shown = subprocess.run(editor, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    if "attempt to call field 'start'" in shown.stderr:
        pytest.skip("this Neovim is older than 0.8")
    assert "the name `unknown_name` is not declared" in shown.stdout + shown.stderr


@pytest.mark.parametrize("text", ["", "a\nb", "é𝄞x\n𝄞\n\n", "\r\n", "\ud800"])
def test_positions_go_there_and_back(text):
    for offset in range(len(text) + 1):
        assert character_offset(text, *utf16_position(text, offset)) == offset
    assert character_offset(text, 99, 99) == len(text)


@pytest.mark.parametrize("path", sorted(SCENES.glob("*.cb")), ids=lambda path: path.stem)
def test_every_name_of_a_bundled_program_has_a_symbol_and_a_text(path):
    """Words of the text, found without the parser, against the index."""
    analysis = Analysis(path.read_text(), path.name, path.parent)
    assert not [error for error in analysis.errors if error.kind == "error"]
    for token in tokenize(analysis.source):
        if token.is_name and token.text not in ("Associative", "Commutative", "operator"):
            found = analysis.index.find(token.span.start + 1)
            assert found is not None and found[1] == token.span, token.span.provenance


@pytest.mark.parametrize("path", sorted(SCENES.glob("*.cb")), ids=lambda path: path.stem)
def test_every_name_of_a_bundled_program_can_be_renamed(path):
    """A use that the index misses would be an unknown name of the renamed program."""
    analysis = Analysis(path.read_text(), path.name, path.parent)
    names = {analysis.index.at[s]: s for s in analysis.index.declared if s.source is analysis.source}
    for symbol, span in names.items():
        refusal = (
            analysis.rename_refusal(analysis.index.spans(span.start), "fresh_name") if symbol.name != "main" else ""
        )
        assert refusal == "" or "is built in, with other fields" in refusal
