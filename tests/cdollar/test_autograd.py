"""Derivatives of arrays: vjp() against finite differences, and C$ functions inside PyTorch and JAX where they are."""

import pickle
import sys

import numpy as np
import pytest

from renderer import cdollar
from renderer.errors import UnavailableError, UserError

SHIFTED = """
float[,] main(float[,] x, float k = 2) {
    var r(i : 1..size(x, 0) - 1, j : 0..size(x, 1)) = sin(k * x(i - 1, j)) * x(i + 1, j);
    return r;
}
"""
LINE = "double[] f(double[] x, double[] w, int[] n, double k) { var y(i) = k * x(i) * x(i) * w(i) + n(i); return y; }"


def arrays(seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, 5), rng.uniform(-1, 1, 5), np.arange(5, dtype="i4"), 1.5


def test_vjp_is_the_derivative_of_the_sum_with_a_vector_also_where_indices_start_at_1():
    f = cdollar.function(SHIFTED, target="numpy")
    rng = np.random.default_rng(2)
    x, v, h = rng.uniform(-1, 1, (5, 3)).astype("f4"), rng.uniform(-1, 1, (3, 3)).astype("f4"), 1e-2
    made = cdollar.vjp(f, "x", "k")(v, x, 1.5)
    wanted = np.zeros((5, 3))
    for at in np.ndindex(5, 3):
        d = np.zeros((5, 3), "f4")
        d[at] = h
        wanted[at] = ((f(x + d, 1.5).numpy().astype(float) - f(x - d, 1.5).numpy()) * v).sum() / (2 * h)
    assert np.abs(made.x.numpy() - wanted).max() < 1e-3
    by_k = ((f(x, 1.5 + h).numpy().astype(float) - f(x, 1.5 - h).numpy()) * v).sum() / (2 * h)
    assert abs(made.k.item() - by_k) < 1e-3
    assert np.array_equal(cdollar.vjp(f)(v, x).numpy(), cdollar.vjp(f)(v, x, 2).numpy()), "a default stays one"


def test_vjp_of_a_number_and_its_pickle():
    f = cdollar.function("float f(float[] a) => sum(a * a);", target="numpy", name="f")
    a = np.arange(4, dtype="f4")
    made = cdollar.vjp(f, "a")
    assert made(3.0, a).numpy().tolist() == [0, 6, 12, 18]
    assert np.array_equal(pickle.loads(pickle.dumps(made))(3.0, a).numpy(), made(3.0, a).numpy())


@pytest.mark.parametrize("make", [cdollar.grad, cdollar.value_and_grad, cdollar.vjp])
def test_a_gradient_of_a_gradient_is_refused(make):
    f = cdollar.function("float f(float[] a) => sum(a * a * a);", target="numpy", name="f")
    with pytest.raises(UserError, match="second derivatives"):
        make(f.grad)


@pytest.mark.parametrize(
    "text",
    ["int f(float[] a) => 1;", "(float[] b, int n) f(float[] a) => (a, 1);", "int[] f(float[] a) => argsort(a);"],
)
def test_functions_without_vjp_say_so(text):
    f = cdollar.function(text, target="numpy", name="f")
    with pytest.raises(UserError, match="no gradient"):
        cdollar.vjp(f)


def test_a_wrong_function_is_an_error_of_the_user():
    pair = cdollar.function("(float[] b, int n) f(float[] a) => (a, 1);", target="numpy", name="f")
    for make, library in ((cdollar.torch_function, "torch"), (cdollar.jax_function, "jax")):
        pytest.importorskip(library)
        for wrong in (pair, 3):
            with pytest.raises(UserError, match=r"C\$ function"):
                make(wrong)


def test_autograd_of_pytorch():
    torch = pytest.importorskip("torch")
    f = cdollar.torch_function(cdollar.function(LINE, target="numpy"))
    x, w, n, k = (
        torch.from_numpy(a) if isinstance(a, np.ndarray) else torch.tensor(a, dtype=torch.double) for a in arrays()
    )
    for tensor in (x, w, k):
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(lambda x, w, k: f(x, w, n, k), (x, w, k))
    assert torch.autograd.gradcheck(lambda x: torch.exp(f(torch.sin(x), w.detach(), n, k=1.5)), (x,))
    assert not f(x.detach(), w.detach(), n, 1.5).requires_grad
    y = f(x, w, n, k)
    with torch.no_grad():
        x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with pytest.raises(UserError, match="takes 4 arguments|no such parameter|missing"):
        f(x)


def test_transformations_of_jax():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x, w, n, k = arrays()
    f = cdollar.jax_function(cdollar.function(LINE, target="numpy"))

    def peer(x, w, n, k):
        return k * x * x * w + n

    assert np.allclose(jax.jit(f)(x, w, n, k), peer(x, w, n, k))
    for by in (0, 1, 3):
        made, wanted = (
            jax.jit(jax.grad(lambda *a, g=g: jax.numpy.sum(jax.numpy.sin(g(*a))), by))(x, w, n, k) for g in (f, peer)
        )
        assert np.allclose(made, wanted) and made.dtype == wanted.dtype
    assert np.allclose(jax.vmap(lambda row: f(row, w, n, 1.5))(np.stack([x, w])), [peer(x, w, n, k), peer(w, w, n, k)])
    single = cdollar.jax_function(cdollar.function(SHIFTED, target="numpy"))
    made = jax.jit(jax.grad(lambda x: jax.numpy.sum(single(x))))(np.ones((4, 3), "f4"))
    assert made.shape == (4, 3) and made.dtype == np.float32


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_library_that_is_missing_is_named_with_the_command_that_adds_it(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    f = cdollar.function(LINE, target="numpy")
    with pytest.raises(UnavailableError, match=rf"{library}_function needs .*install.* {library}"):
        getattr(cdollar, f"{library}_function")(f)
