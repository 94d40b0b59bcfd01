"""Examples of Futhark and Halide, written anew in C$: each against NumPy, and its lines beside those of the original.

The originals are read for what they compute alone. LINES counts theirs without blank lines and comments: of Futhark
examples/*.fut of its website (e3ba231), misc/life/conway.fut with genlife.fut of futhark-benchmarks (b9462ef), and
segmented.fut (c96450f); of Halide apps/*/*_generator.cpp (abbf7ff), whose schedules are half of them.
"""

import numpy as np
import pytest

from renderer.cdollar.targets.open_target import target_factory
from renderer.errors import UnavailableError
from tests.cdollar.evaluate import value_of

DOT = "float main(float[] a, float[] b) => sum(a * b);"
PRODUCT = "float[,] main(float[,] m, float[,] n) { var c(i, j) = + (m(i, l) * n(l, j)); return c; }"
MANDELBROT = """
int escape(float x, float y) {
    float2 z = float2(0, 0);
    int n = 0;
    while (n < 20 && dot(z, z) < 4) {
        z = float2(z.x * z.x - z.y * z.y + x, 2 * z.x * z.y + y);
        n++;
    }
    return n;
}
int[,] main() { var picture(j : 0..8, i : 0..12) = escape(i * 0.25 - 2, j * 0.25 - 1); return picture; }
"""
LIFE = """
int[,] step(int[,] w) {
    var near(i : domain(w)[0], j : domain(w)[1]) = sum(w.wrap(i + p - 1, j + q - 1), p : 0..3, q : 0..3);
    var next(i, j) = near(i, j) == 3 || near(i, j) == 4 && w(i, j) == 1 ? 1 : 0;
    return next;
}
int[,] main(int[,] world) { for (int t = 0; t < 4; t++) world = step(world); return world; }
"""
RADIX_SORT = """
int[] main(int[] keys) {
    for (int bit = 0; bit < 12; bit++) keys = partition(keys, i => (keys(i) >> bit & 1) == 0);
    return keys;
}
"""
SEGMENTED_SUM = """
[Associative] float add(float x, float y) => x + y;
float[] main(float[] a, bool[] heads) => segmented_scan(add, a, heads);
"""
HISTOGRAM = "float[] main(int[] keys, float[] a) => scatter_add(keys, a, 9);"
BLUR = """
float[,] main(float[,] m) {
    var across(i : domain(m)[0], j) = (m(i, j) + m(i, j + 1) + m(i, j + 2)) / 3;
    var blurred(i, j) = (across(i, j) + across(i + 1, j) + across(i + 2, j)) / 3;
    return blurred;
}
"""
UNSHARP = """
float[,,] main(float[,,] picture, float sigma = 1.5) {
    var kernel(int k) = exp(-0.5 * k * k / (sigma * sigma)) / (sqrt(tau) * sigma);
    let gray(i, j) = 0.299 * picture(i, j, 0) + 0.587 * picture(i, j, 1) + 0.114 * picture(i, j, 2);
    let across(i : domain(gray)[0], j : domain(gray)[1]) = sum(kernel(k) * gray.clamp(i, j + k), k : -3..4);
    let down(i : domain(gray)[0], j : domain(gray)[1]) = sum(kernel(k) * across.clamp(i + k, j), k : -3..4);
    var sharp(i, j, c) = (2 * gray(i, j) - down(i, j)) / gray(i, j) * picture(i, j, c);
    return sharp;
}
"""
HARRIS = """
float[,] main(float[,,] picture) {
    let gray(i, j) = 0.299 * picture(i, j, 0) + 0.587 * picture(i, j, 1) + 0.114 * picture(i, j, 2);
    var w = [1.0, 2.0, 1.0];
    let dx(i, j) = sum(w(k) * (gray(i + k, j + 2) - gray(i + k, j)), k : w) / 12;
    let dy(i, j) = sum(w(k) * (gray(i + 2, j + k) - gray(i, j + k)), k : w) / 12;
    let xx(i, j) = sum(dx(i + p, j + q) * dx(i + p, j + q), p : 0..3, q : 0..3);
    let yy(i, j) = sum(dy(i + p, j + q) * dy(i + p, j + q), p : 0..3, q : 0..3);
    let xy(i, j) = sum(dx(i + p, j + q) * dy(i + p, j + q), p : 0..3, q : 0..3);
    return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy);
}
"""
RNG = np.random.default_rng(3)
PICTURE = (0.1 + RNG.random((14, 15, 3))).astype("f4")
GRAY = PICTURE @ np.array([0.299, 0.587, 0.114])


def mandelbrot():
    y, x = np.meshgrid(np.arange(8) * 0.25 - 1, np.arange(12) * 0.25 - 2, indexing="ij")
    z, n = np.zeros(x.shape, complex), np.zeros(x.shape, int)
    for _ in range(20):
        inside = np.abs(z) < 2
        z, n = np.where(inside, z * z + x + 1j * y, z), n + inside
    return n


def life(world):
    for _ in range(4):
        near = sum(np.roll(world, (p, q), (0, 1)) for p in (-1, 0, 1) for q in (-1, 0, 1))
        world = ((near == 3) | (near == 4) & (world == 1)).astype("i4")
    return world


def segmented_sums(a, heads):
    sums = np.cumsum(a)
    first = np.maximum.accumulate(np.where(heads, np.arange(len(a)), 0))
    return sums - np.where(first > 0, sums[first - 1], 0)


def windows(a, size=3):
    """The sums over squares of elements."""
    return np.lib.stride_tricks.sliding_window_view(a, (size, size)).sum((2, 3))


def unsharp():
    kernel = np.exp(-0.5 * (np.arange(-3, 4) / 1.5) ** 2) / (np.sqrt(2 * np.pi) * 1.5)
    blurred = GRAY
    for axis in (1, 0):
        padded = np.pad(blurred, [(3, 3) if k == axis else (0, 0) for k in range(2)], "edge")
        blurred = np.apply_along_axis(np.convolve, axis, padded, kernel, "valid")
    return ((2 * GRAY - blurred) / GRAY)[..., None] * PICTURE


def harris():
    w = np.array([1, 2, 1])[:, None]
    dx = (sum(w[k] * GRAY[k : k + 12] for k in range(3)))[:, 2:] - (sum(w[k] * GRAY[k : k + 12] for k in range(3)))[
        :, :-2
    ]
    across = sum(w[k] * GRAY[:, k : k + 13] for k in range(3))
    dy = across[2:] - across[:-2]
    xx, yy, xy = (windows(product) / 144 for product in (dx * dx, dy * dy, dx * dy))
    return xx * yy - xy * xy - 0.04 * (xx + yy) ** 2


A, B = RNG.standard_normal((2, 30)).astype("f4")
M, N = RNG.standard_normal((2, 6, 6)).astype("f4")
KEYS = RNG.integers(0, 4096, 30).astype("i4")
WORLD = RNG.integers(0, 2, (9, 8)).astype("i4")
# By name: the program, its arguments, its value by NumPy.
EXAMPLES = {
    "dot product": (DOT, {"a": A, "b": B}, A.astype("f8") @ B),
    "matrix product": (PRODUCT, {"m": M, "n": N}, M.astype("f8") @ N),
    "mandelbrot": (MANDELBROT, {}, mandelbrot()),
    "life": (LIFE, {"world": WORLD}, life(WORLD)),
    "radix sort": (RADIX_SORT, {"keys": KEYS}, np.sort(KEYS)),
    "segmented sum": (SEGMENTED_SUM, {"a": A, "heads": KEYS % 4 == 0}, segmented_sums(A.astype("f8"), KEYS % 4 == 0)),
    "histogram": (HISTOGRAM, {"keys": KEYS % 9, "a": A}, np.bincount(KEYS % 9, A, 9)),
    "blur": (BLUR, {"m": M}, windows(M.astype("f8")) / 9),
    "unsharp": (UNSHARP, {"picture": PICTURE}, unsharp()),
    "harris": (HARRIS, {"picture": PICTURE}, harris()),
}
LINES = {
    "dot product": 12, "matrix product": 15, "mandelbrot": 16, "life": 106, "radix sort": 12, "segmented sum": 66,
    "histogram": 2, "blur": 88, "unsharp": 86, "harris": 105,
}  # fmt: skip
OURS = {
    "dot product": 1, "matrix product": 1, "mandelbrot": 10, "life": 6, "radix sort": 4, "segmented sum": 2,
    "histogram": 1, "blur": 5, "unsharp": 8, "harris": 10,
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("target", ["numpy", *(pytest.param(t, marks=pytest.mark.slow) for t in ("opencl", "glsl"))])
def test_examples_of_futhark_and_halide(target, name):
    text, arguments, wanted = EXAMPLES[name]
    try:
        found = value_of(text, target_factory(target, None, False), **arguments)
    except UnavailableError as error:
        pytest.skip(str(error))
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_lines_side_by_side():
    """No program is longer than the original; all together have a tenth of the lines."""
    lines = {name: sum(bool(line.strip()) for line in text.splitlines()) for name, (text, _, _) in EXAMPLES.items()}
    assert lines == OURS and all(lines[name] <= LINES[name] for name in LINES)
    assert 10 * sum(lines.values()) <= sum(LINES.values())
