"""`rayfold run` as users call it: exit codes, files, JSON, --explain, the prompt; pictures of programs."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from renderer.cdollar.runtime.repl import Repl
from renderer.cdollar.targets.numpy.target import NumpyTarget
from renderer.cli import main
from renderer.errors import InputError
from renderer.formats.images import read_image
from renderer.paths import ROOT
from renderer.pictures import load, open_picture
from renderer.scene.schema import set_from_text

PRODUCT = str(ROOT / "scenes" / "product.cb")


@pytest.fixture
def matrices(tmp_path, rng):
    a, b = rng.standard_normal((4, 3)).astype("f4"), rng.standard_normal((3, 5)).astype("f4")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    return a, b, ["--in", f"a={tmp_path / 'a.npy'}", "--in", f"b={tmp_path / 'b.npy'}"]


@pytest.mark.parametrize("target", ["numpy", "opencl", "glsl"])
def test_run_writes_the_result(matrices, tmp_path, capsys, device, gl, target):
    a, b, given = matrices
    out = tmp_path / "c.npy"
    assert main(["run", PRODUCT, *given, "--target", target, "-o", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["target"] == target and report["shape"] == [4, 5] and report["output"] == str(out)
    assert np.allclose(np.load(out), a @ b, atol=1e-5)


def test_run_prints_the_result_and_json_holds_it(matrices, capsys):
    a, b, given = matrices
    assert main(["run", PRODUCT, *given, "--target", "numpy", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert np.allclose(report["value"], a @ b, atol=1e-5) and report["dtype"] == "float32"
    assert main(["run", PRODUCT, *given, "--target", "numpy"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_explain_shows_the_graph_the_kernels_and_their_text(matrices, capsys, device):
    assert main(["run", PRODUCT, *matrices[2], "--target", "opencl", "--explain"]) == 0
    out = capsys.readouterr().out
    for word in (
        "reduce `+` over l : 0..3",
        "KERNEL compute(",
        "l is 0..3 from a(j, l)",
        "kernels: 1 launches, 1 compiled",
    ):
        assert word in out, word


def test_explain_names_the_target_and_counts_what_loops_repeat(tmp_path, capsys):
    loop = "for (int t = 0; t < 3; t++) { var v(i) = u(i); u = v; }"
    text = f"float[] main() {{ var u(i : 0..4) = 1.0 * i; {loop} return u; }}"
    assert main(["run", write(tmp_path, text), "--explain", "--target", "numpy"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("target: numpy, ") and "kernels: none, NumPy evaluates the graph" in out
    assert sum(" is 0..4 from u(i) at" in line for line in out.splitlines()) == 1 and " times)" in out


def write(tmp_path, text, name="p.cb"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--set", "n=5"], 2, "--in a: is missing"),
        (["--in", "a=nowhere.npy", "--set", "n=5"], 5, "nowhere.npy: No such file or directory"),
        (["--in", "z=a.npy"], 2, "main has no such parameter; it has a, n"),
        (["--in", "a"], 2, "must be name=value"),
        (["--set", "n=five", "--in", "a={file}"], 2, "`five` is not a valid int"),
        (["--set", "n=3000000000", "--in", "a={file}"], 2, "int is -2147483648..2147483647"),
        (["--set", "a=3"], 2, "use --in a=FILE.npy"),
        (
            ["--set", "n=5", "--set", "x=1e39", "--in", "a={file}"],
            2,
            "--set x=1e39: float has no number as large as 1e39",
        ),
        (["--in", "a={file}", "--set", "n=5", "-o", "/nowhere/c.npy"], 2, "the folder /nowhere does not exist"),
    ],
)
def test_usage_errors_are_one_sentence(tmp_path, capsys, arguments, code, words):
    np.save(tmp_path / "a.npy", np.ones(3, "f4"))
    program = write(tmp_path, "float main(float[] a, int n, float x = 1.0) => n * x * sum(a);")
    filled = [text.replace("{file}", str(tmp_path / "a.npy")) for text in arguments]
    assert main(["run", program, *filled, "--target", "numpy"]) == code
    assert words in capsys.readouterr().err


def test_program_errors_have_a_location_and_exit_code_5(tmp_path, capsys):
    program = write(tmp_path, "float main(float x) {\n    return y;\n}\n")
    assert main(["run", program]) == 5
    err = capsys.readouterr().err
    assert err.startswith(f"{program}:2:12: error CS0202: the name `y` is not declared\n        return y;\n")
    for text, what in ((b"\xff\xfe\x00", "not UTF-8"), (b" " * (1 << 20) + b"x" * 9, "larger than the 1 MiB")):
        (tmp_path / "bytes.cb").write_bytes(text)
        assert main(["run", str(tmp_path / "bytes.cb")]) == 5 and what in capsys.readouterr().err
    assert main(["run", str(tmp_path / "missing.cb")]) == 5
    assert main(["run", str(tmp_path)]) == 5


@pytest.mark.parametrize("target", ["numpy", "opencl"])
def test_malformed_files_are_refused(tmp_path, capsys, target):
    program = write(tmp_path, "float main(float[] a) => sum(a);")
    np.save(tmp_path / "objects.npy", np.array([{}, []], object), allow_pickle=True)
    np.save(tmp_path / "whole.npy", np.ones(1000, "f4"))
    cut = (tmp_path / "whole.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(cut[:900])
    (tmp_path / "bomb.npy").write_bytes(cut[:128].replace(b"(1000,)", b"(10**9)") + b"x" * 64)
    (tmp_path / "huge.npy").write_bytes(
        cut[:10] + b"{'descr': '<f4', 'fortran_order': False, 'shape': (9000000000000,)}" + b" " * 50 + b"\n"
    )
    (tmp_path / "none.npy").write_bytes(b"")
    (tmp_path / "text.npy").write_text("1, 2, 3")
    np.save(tmp_path / "complex.npy", np.ones(3, "c8"))
    np.save(tmp_path / "rank.npy", np.ones((3, 3), "f4"))
    np.save(tmp_path / "wide.npy", np.array([1e300]))
    for name in ("objects", "cut", "bomb", "huge", "none", "text", "complex", "rank", "wide"):
        assert main(["run", program, "--in", f"a={tmp_path / name}.npy", "--target", target]) == 5, name
        err = capsys.readouterr().err
        assert f"{name}.npy" in err and "Traceback" not in err


def test_element_types_convert_or_raise_an_error(tmp_path, capsys):
    program = write(tmp_path, "float main(float[] a) => sum(a);")
    for dtype in ("i1", "u1", "i2", ">i4", "f2", "f8", ">f4", "u4"):
        np.save(tmp_path / "a.npy", np.arange(5).astype(dtype))
        assert main(["run", program, "--in", f"a={tmp_path / 'a.npy'}", "--target", "numpy"]) == 0
        report = capsys.readouterr()
        assert float(report.out) == 10 and ("float64" in report.err) == (dtype == "f8")
    halves = write(tmp_path, "float main(half[] a) => sum(a);", "halves.cb")
    for number, code, words in ((0.1, 0, "rounded to float16 for half[]"), (1e5, 5, "too large for half")):
        np.save(tmp_path / "a.npy", np.full(3, number, "f4"))
        assert main(["run", halves, "--in", f"a={tmp_path / 'a.npy'}", "--target", "numpy"]) == code
        assert words in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("1\n300\n")
    whole = write(tmp_path, "int main(byte[] a) => sum(a);", "whole.cb")
    assert main(["run", whole, "--in", f"a={tmp_path / 'a.csv'}", "--target", "numpy"]) == 5
    assert "outside of 0..255, C$'s byte" in capsys.readouterr().err
    whole = write(tmp_path, "int main(int[] a) => sum(a);", "whole.cb")
    for value, code in ((7, 0), (2**40, 5)):
        np.save(tmp_path / "a.npy", np.array([value]))
        assert main(["run", whole, "--in", f"a={tmp_path / 'a.npy'}", "--target", "numpy"]) == code


def test_a_failed_run_keeps_the_old_output(tmp_path, capsys):
    out = tmp_path / "c.npy"
    out.write_bytes(b"old")
    program = write(tmp_path, "float[] main() { var f(i : 0..3) = 1.0; return f(9); }")
    assert main(["run", program, "-o", str(out), "--force"]) == 5
    assert out.read_bytes() == b"old" and sorted(p.name for p in tmp_path.iterdir()) == ["c.npy", "p.cb"]


def test_results_keep_types_and_origins(tmp_path, capsys):
    program = write(
        tmp_path, "final class P { int n; float2 v; } P[] main() { var p(i : 2..4) = P(i, float2(i, -i)); return p; }"
    )
    assert main(["run", program, "--json", "--target", "numpy"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["value"] == [{"n": 2, "v": [2, -2]}, {"n": 3, "v": [3, -3]}] and report["origin"] == [2]


def test_repl_shows_type_domain_and_value():
    lines = []
    repl = Repl(NumpyTarget, lines.append)
    for text in (
        "var c(i : 0..4) = i * i;",
        "c",
        "sum(c)",
        "float f(float x) => x / 2;",
        "f(c)",
        ":t c + sin",
        "1 +",
        "nope",
        "c",
    ):
        assert repl.handle(text)
    shown = "\n".join(lines)
    for word in (
        "int(int)  domain 0..4",
        "[0 1 4 9]",
        "14",
        "float(int)  domain 0..4",
        "domain 0..4 x infinite",
        "CS0105",
        "CS0202",
    ):
        assert word in shown, word
    assert lines[-1] == "[0 1 4 9]" and not repl.handle(":q")


def test_run_without_a_program_starts_the_repl(monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "stdin", io.StringIO("var x = 3;\nx * 2.5\nfloat f(float t) {\n  return t + 1;\n}\nf(x)\n")
    )
    monkeypatch.setattr(
        "builtins.input", lambda prompt="": sys.stdin.readline().rstrip("\n") if not at_end() else end()
    )

    def at_end():
        here = sys.stdin.tell()
        more = bool(sys.stdin.readline())
        sys.stdin.seek(here)
        return not more

    def end():
        raise EOFError

    assert main(["run", "--target", "numpy"]) == 0
    assert capsys.readouterr().out.split() == ["float", "7.5", "float", "f(float)", "float", "4.0"]


def test_run_in_a_new_process(tmp_path):
    """Not a bench: a run in a new process ends, without a traceback, and prints the right message."""
    program = write(tmp_path, "float main() => 6 * 7;")
    environment = {**os.environ, "RAYFOLD_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "main.py", "run", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0 and done.stdout == "42.0\n" and done.stderr == ""


def test_a_program_is_a_picture(gpu, tmp_path):
    program = write(
        tmp_path,
        "float3 main(int x, int y, int width, int height, float time, float2 mouse, float gain = 2)\n"
        "    => float3(gain * x / width, (float) y / height, time + mouse.x);\n",
    )
    scene = load(Path(program))
    assert scene.settings.gain == 2.0
    picture = open_picture(scene, gpu)
    settings = set_from_text(scene.settings, "gain", "0.5")
    frame = picture.draw(settings, (6, 4), 0.25).read()
    x, y = np.meshgrid(np.arange(6), np.arange(4))
    expected = np.stack([0.5 * x / 6, y / 4, np.full_like(x, 0.25, float), np.ones_like(x, float)], -1)
    assert np.allclose(frame, expected, atol=1e-6)
    assert picture.depends_on_time(settings) and picture.sample_count(settings, (6, 4)) == 1
    tile = picture.draw(settings, (6, 4), 0.25, (2, 1, 3, 2)).read()
    assert np.array_equal(tile, frame[1:3, 2:5])


def test_a_program_is_drawn_with_the_settings_of_another_version(gpu, tmp_path):
    """Parameters of equal name and type keep their values; the others have their defaults, as after an undo."""
    before = load(Path(write(tmp_path, "float main(int x, int y, float a = 1.0, float b = 2.0) => a + b;")))
    settings = set_from_text(before.settings, "a", "5.0")
    write(tmp_path, "float main(int x, int y, float a = 1.0, int b = 3, float c = 0.25) => a + b + c;")
    assert open_picture(before, gpu).draw(settings, (4, 4), 0.0).read()[0, 0, 0] == 8.25


def test_programs_that_are_not_pictures_are_refused(tmp_path):
    with pytest.raises(InputError, match="to be a picture"):
        load(Path(write(tmp_path, "float main(float a) => a;")))


def test_export_draws_a_program(tmp_path, capsys):
    out = tmp_path / "m.png"
    command = [
        "export",
        str(ROOT / "scenes" / "mandelbrot.cb"),
        "-o",
        str(out),
        "--size",
        "32x24",
        "--set",
        "iterations=30",
    ]
    assert main(command) == 0
    again = tmp_path / "again.png"
    assert main(["export", str(out), "-o", str(again)]) == 0
    assert np.array_equal(read_image(out)[..., :3], read_image(again)[..., :3])


def test_the_prompt_takes_statements_without_a_semicolon():
    shown = []
    repl = Repl(NumpyTarget, shown.append)
    for line in (
        "var a = [1.0, 2.0]",
        "sum(a)",
        "int f(int x) => x + 1",
        "f(2)",
        "int n = 2",
        "n += 1",
        "n",
        "x",
        "n = 1 2",
    ):
        repl.handle(line)
    assert shown[:5] == ["float", "3.0", "int f(int)", "int", "3"] and shown[6] == "3"
    assert "CS0202" in shown[7] and "expected `;`" in shown[8]
