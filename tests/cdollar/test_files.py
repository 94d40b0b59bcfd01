"""`run` writes pictures and tables and reads them; the cell magic of notebooks."""

import numpy as np
import pytest

from renderer.cdollar.runtime import notebook
from renderer.cdollar.runtime.run_program import run_program
from renderer.errors import UserError
from renderer.formats.images import read_image, read_pixels, write_exr, write_png
from renderer.formats.tables import read_table, table_text


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(text, output, *inputs):
        (tmp_path / "p.cb").write_text(text)
        assert run_program(tmp_path / "p.cb", inputs, target="numpy", output=output) == 0
        return tmp_path / output

    return run


@pytest.mark.parametrize(
    "text, expected",
    [
        ("float main(int x, int y, int width = 3, int height = 2) => x / 2.0;", [0, 188, 255]),
        ("float3 main(int x, int y, int width = 3, int height = 2) => float3(x / 2.0, 0, 1);", [0, 188, 255]),
        ("int[,] main() { var c(i : 0..2, j : 0..3) = 127 * j; return c; }", [0, 127, 254]),
        ("bool[,] main() { var c(i : 0..2, j : 0..3) = j > 0; return c; }", [0, 255, 255]),
        ("float4[,] main() { var c(i : 0..2, j : 0..3) = float4(j / 2.0, 0, 0, 0.5); return c; }", [0, 188, 255]),
    ],
)
def test_results_are_written_as_pictures(run, text, expected):
    pixels = read_pixels(run(text, "x.png"))
    assert pixels.shape == (2, 3, 4) and pixels[0, :, 0].tolist() == pixels[1, :, 0].tolist() == expected
    assert set(pixels[..., 3].ravel().tolist()) == {128 if "float4" in text else 255}


def test_exr_keeps_floats(run):
    path = run("float3[,] main() { var c(i : 0..2, j : 0..3) = float3(j * 100.5, i, -1); return c; }", "x.exr")
    assert read_image(path)[1].tolist() == [[0, 1, -1, 1], [100.5, 1, -1, 1], [201, 1, -1, 1]]


@pytest.mark.parametrize(
    "text, output, words",
    [
        ("float main() => 1;", "x.png", "the result is one number of float: a picture is a two-dimensional"),
        ("int[,] main() { var c(i : 0..2, j : 0..3) = 300 * j; return c; }", "x.png", "holds 0..255, found 0..600"),
        ("float main() => 1;", "x.jpg", "-o x.jpg: unknown suffix .jpg; allowed are .npy, .npz, .png, .exr, .csv"),
        ("float main() => 1;", "x", r"-o x: unknown suffix \(none\)"),
        ("float main() => 1;", "no/x.npy", "the folder no does not exist"),
        ("int[,,] main() { var c(i : 0..2, j : 0..3, k : 0..2) = j; return c; }", "x.csv", "one or two dimensions"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(run, tmp_path, text, output, words):
    with pytest.raises(UserError, match=words) as caught:
        run(text, output)
    assert "\n" not in str(caught.value) and not (tmp_path / output).exists()


def test_pictures_are_read_as_numbers_and_vectors(run, rng):
    pixels = rng.integers(0, 256, (4, 5, 3)).astype("u1")
    write_png(run("int main() => 0;", "a.npy").parent / "a.png", pixels)
    bytes_ = np.load(run("int3[,] main(int3[,] a) => a;", "b.npy", "a=a.png"))
    assert np.array_equal(bytes_, pixels)
    bytes_ = np.load(run("byte3[,] main(byte3[,] a) => a;", "b.npy", "a=a.png"))
    assert bytes_.dtype == np.uint8 and np.array_equal(bytes_, pixels)
    halved = read_pixels(
        run("byte[,] main(byte[,] a) { var b(i, j) = (byte) (a(i, j) / 2); return b; }", "b.png", "a=a.png")
    )
    assert np.array_equal(halved[..., 0], pixels.sum(axis=2, dtype="i4") // 3 // 2)
    mean = np.load(run("int[,] main(int[,] a) => a;", "b.npy", "a=a.png"))
    assert np.array_equal(mean, pixels.sum(axis=2, dtype="i4") // 3)
    linear = np.load(run("float3[,] main(float3[,] a) => a;", "b.npy", "a=a.png"))
    halves = np.load(run("half3[,] main(half3[,] a) => a;", "b.npy", "a=a.png"))
    assert halves.dtype == np.float16 and np.array_equal(halves, linear.astype("f2"))
    assert np.allclose(linear, np.where(pixels <= 10, pixels / 255 / 12.92, ((pixels / 255 + 0.055) / 1.055) ** 2.4))
    again = read_pixels(run("float3[,] main(float3[,] a) => a;", "b.png", "a=a.png"))
    assert np.array_equal(again[..., :3], pixels)
    write_exr(run("int main() => 0;", "a.npy").parent / "a.exr", {"RGB": linear})
    gray = np.load(run("float[,] main(float[,] a) => a;", "b.npy", "a=a.exr"))
    assert np.allclose(gray, linear @ [0.2126, 0.7152, 0.0722], atol=1e-6)


def test_tables_go_in_and_out(run, tmp_path, rng):
    a = rng.standard_normal((6, 3)).astype("f4")
    np.save(tmp_path / "a.npy", a)
    path = run("float[,] main(float[,] a) => a;", "a.csv", "a=a.npy")
    assert np.array_equal(np.loadtxt(path, delimiter=",").astype("f4"), a)
    assert np.array_equal(np.load(run("float[,] main(float[,] a) => a;", "b.npy", "a=a.csv")), a)
    (tmp_path / "n.csv").write_text("n, x\n1,2.5\n-3,1e3\n\n")
    text = "final class P { float x; int n; }\nP[] main(P[] p) { var q(i) = P(2 * p(i).x, p(i).n); return q; }"
    assert run(text, "q.csv", "p=n.csv").read_text() == "x,n\n5e+00,1\n2e+03,-3\n"
    assert read_table(tmp_path / "n.csv")[0] == ("n", "x")
    (tmp_path / "k.csv").write_text("4\n5\n6\n")
    assert np.load(run("int[] main(int[] k) => k;", "k.npy", "k=k.csv")).tolist() == [4, 5, 6]


@pytest.mark.parametrize(
    "content, words",
    [
        ("1,2\n3\n", "t.csv:2: has 1 cells, but the first line has 2"),
        ("1,2\n3,x\n", 't.csv:2: "x" is not a number'),
        ("", "holds no numbers"),
        ("a,b\n", "holds names, but no numbers"),
        ("1.5,2\n", "C\\$|int|float64"),
        ("99999999999,2\n", "outside of"),
    ],
)
def test_damaged_tables_are_one_sentence(run, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(UserError, match=words) as caught:
        run("int[,] main(int[,] t) => t;", "o.npy", "t=t.csv")
    assert "\n" not in str(caught.value)


def test_numbers_as_text_keep_their_bits(rng):
    for dtype in ("f4", "f8"):
        numbers = np.frombuffer(rng.bytes(8000), dtype)
        numbers = numbers[np.isfinite(numbers)]
        assert np.array_equal(np.array(table_text(numbers).split(), dtype), numbers)


class Shell:
    """The part of IPython's shell that the magic uses."""

    def __init__(self, **names):
        self.user_ns, self.magics = names, {}

    def register_magic_function(self, function, kind, name):
        self.magics[kind, name] = function


def test_the_cell_magic_shows_a_picture_or_a_value(capsys):
    import renderer

    shell = Shell(a=np.arange(3, dtype="f4"), n=2)
    renderer.cdollar.load_ipython_extension(shell)
    cell = shell.magics["cell", "cdollar"]
    assert cell("a=a + 1 target='numpy'", "float main(float[] a) => sum(a);").item() == 6
    assert cell("k=max(n, 5) ", "int main(int k) => k;").item() == 5
    picture = cell("width=4 height=3", "float3 main(int x, int y, float time) => float3(x, y, time);")
    assert picture._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"
    assert cell("", "float main() => oops;") is None and "error CS" in capsys.readouterr().out
    assert cell("a", "float main() => 1;") is None and "NAME=EXPRESSION" in capsys.readouterr().out
    assert notebook.split_arguments("a=f(x=1, y=2) b = 3") == {"a": "f(x=1, y=2) b = 3"}
