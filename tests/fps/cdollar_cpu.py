"""C$ on this machine's processors beside NumPy and, with --jax PYTHON (an interpreter that has it), JAX: one table.

    python -m tests.fps.cdollar_cpu [--jax PYTHON] [--only NAME]

JAX's column is numba's for nbody. Times are the least of many runs, of kernels alone: arrays lie where the kernels
read them. Every result is checked against NumPy first. The rounds of the three alternate, so that a busy machine
slows all of them; the processor time of all threads beside them (the least of the rounds' means) hardly depends on
it.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

SEED, ROUNDS, SECONDS = 5, 60, 0.25
SOFTMAX = """
float[,] main(float[,] a) {
    var top(i) = max(a(i, j));
    var e(i, j) = exp(a(i, j) - top(i));
    var s(i) = sum(e(i, j));
    var r(i, j) = e(i, j) / s(i);
    return r;
}
"""
# name -> (C$, shapes of the arrays a, b, NumPy's text, JAX's text where it differs)
PRODUCT = "float[,] main(float[,] a, float[,] b) { var c(i, j) = sum(a(i, k) * b(k, j)); return c; }"
CASES = {
    **{f"product {n}": (PRODUCT, ((n, n), (n, n)), "a @ b", "a @ b") for n in (256, 384, 512, 1024)},
    "convolution 5 x 5": (
        "float[,] main(float[,] a, float[,] b) { var c(i, j) = sum(a(i + p, j + q) * b(p, q)); return c; }",
        ((1024, 1024), (5, 5)),
        "sum(b[p, q] * a[p:1020 + p, q:1020 + q] for p in range(5) for q in range(5))",
        "sum(b[p, q] * a[p:1020 + p, q:1020 + q] for p in range(5) for q in range(5))",
    ),
    "Laplacian": (
        "float[,] main(float[,] a) { var r(i : 1..2047, j : 1..2047) = "
        "a(i - 1, j) + a(i + 1, j) + a(i, j - 1) + a(i, j + 1) - 4 * a(i, j); return r; }",
        ((2048, 2048),),
        "a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]",
        "a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] - 4 * a[1:-1, 1:-1]",
    ),
    "softmax wide": (
        SOFTMAX, ((64, 65536),),
        "(lambda e: e / e.sum(1, keepdims=True))(np.exp(a - a.max(1, keepdims=True)))",
        "(lambda e: e / e.sum(1, keepdims=True))(jnp.exp(a - a.max(1, keepdims=True)))",
    ),
    "softmax tall": (
        SOFTMAX, ((65536, 64),),
        "(lambda e: e / e.sum(1, keepdims=True))(np.exp(a - a.max(1, keepdims=True)))",
        "(lambda e: e / e.sum(1, keepdims=True))(jnp.exp(a - a.max(1, keepdims=True)))",
    ),
    "sum": ("float main(float[] a) => sum(a);", ((1 << 24,),), "a.sum()", "a.sum()"),
    "max": ("float main(float[] a) => max(a);", ((1 << 24,),), "a.max()", "a.max()"),
    "rows' sums": (
        "float[] main(float[,] a) { var r(i) = sum(a(i, j)); return r; }", ((4096, 4096),), "a.sum(1)", "a.sum(1)",
    ),
    "columns' sums": (
        "float[] main(float[,] a) { var r(j) = sum(a(i, j)); return r; }", ((4096, 4096),), "a.sum(0)", "a.sum(0)",
    ),
    "fused map": (
        "float[] main(float[] a, float[] b) => 0.5 * a + sqrt(abs(b)) - a * b;", ((1 << 22,), (1 << 22,)),
        "np.float32(.5) * a + np.sqrt(np.abs(b)) - a * b", ".5 * a + jnp.sqrt(jnp.abs(b)) - a * b",
    ),
    "exp": ("float[] main(float[] a) => exp(a);", ((1 << 22,),), "np.exp(a)", "jnp.exp(a)"),
    "sin": ("float[] main(float[] a) => sin(a);", ((1 << 22,),), "np.sin(a)", "jnp.sin(a)"),
    "tanh": ("float[] main(float[] a) => tanh(a);", ((1 << 22,),), "np.tanh(a)", "jnp.tanh(a)"),
    "log": ("float[] main(float[] a) => log(1 + a * a);", ((1 << 22,),), "np.log(1 + a * a)", "jnp.log(1 + a * a)"),
    "pow": (
        "float[] main(float[] a) => pow(abs(a), 1.7);", ((1 << 22,),),
        "np.abs(a) ** np.float32(1.7)", "jnp.abs(a) ** 1.7",
    ),
    "chain": (
        "float[] main(float[] a, float[] b) => sin(a) * exp(-b * b) + a / (1 + b * b);", ((1 << 21,), (1 << 21,)),
        "np.sin(a) * np.exp(-b * b) + a / (1 + b * b)", "jnp.sin(a) * jnp.exp(-b * b) + a / (1 + b * b)",
    ),
    "MLP gradient": (
        "float loss(float[,] a, float[,] b) { var h(i, j) = tanh(sum(b(i, k) * a(k, j))); var o(i) = sum(h(i, j)); "
        "return sum(o * o); } float[,] main(float[,] a, float[,] b) => grad(loss)(a, b);", ((64, 64), (4096, 64)),
        "(lambda h: b.T @ (2 * h.sum(1, keepdims=True) * (1 - h * h)))(np.tanh(b @ a))",
        "jax.grad(lambda a: (jnp.tanh(b @ a).sum(1) ** 2).sum())(a)",
    ),
    "nbody": (
        "float3 pull(float3 p, float3 q) { float3 d = q - p; float s = dot(d, d) + 0.01; return d / (s * sqrt(s)); } "
        "float[] main(float3[] a) { let r(i) = sum(pull(a(i), a(j)), int j); "
        "var t(i) = r(i).x + r(i).y + r(i).z; return t; }",
        ((2048, 3),),
        "(lambda d: (d.sum(-1) / ((d * d).sum(-1) + 0.01) ** 1.5).sum(1))(a[None] - a[:, None])", "numba nbody",
    ),
    "histogram": (
        "int[] main(int[] k) => histogram(k, 256);", ((1 << 22,),),
        "np.bincount(k, minlength=256)", "jnp.bincount(k, length=256)",
    ),
    "scan": ("float[] main(float[] a) => scan(a);", ((1 << 22,),), "np.cumsum(a)", "jnp.cumsum(a)"),
    "sort": ("float[] main(float[] a) => sort(a);", ((1 << 20,),), "np.sort(a)", "jnp.sort(a)"),
    "scatter_add": (
        "float[] main(int[] k, float[] a) => scatter_add(k, a, 256);", ((1 << 22,), (1 << 22,)),
        "np.bincount(k, a, minlength=256)", "jnp.zeros(256).at[k].add(a)",
    ),
}  # fmt: skip
EXACT = ("histogram", "sort")


def arrays_of(name: str) -> dict[str, np.ndarray]:
    """The arguments of a case by name."""
    text, shapes, *_ = CASES[name]
    rng = np.random.default_rng(SEED)
    names = ["k", "a"] if "int[] k" in text else ["a", "b"]
    made = {n: rng.standard_normal(shape, dtype="f4") for n, shape in zip(names, shapes, strict=False)}
    if "k" in made:
        made["k"] = rng.integers(0, 256, shapes[0]).astype("i4")
    return made


def least_ms(call) -> tuple[float, float]:
    """The least time of a few calls, and their mean processor time."""
    times, used = [], time.process_time()
    while len(times) < 5 or (len(times) < ROUNDS and sum(times) < SECONDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, (time.process_time() - used) / len(times) * 1e3


prange = range


def nbody(a):
    """The row nbody for numba, which compiles it."""
    total = np.zeros(len(a), np.float32)
    for i in prange(len(a)):
        x = y = z = np.float32(0)
        for j in range(len(a)):
            dx, dy, dz = a[j, 0] - a[i, 0], a[j, 1] - a[i, 1], a[j, 2] - a[i, 2]
            s = dx * dx + dy * dy + dz * dz + np.float32(0.01)
            f = np.float32(1) / (s * np.sqrt(s))
            x, y, z = x + f * dx, y + f * dy, z + f * dz
        total[i] = x + y + z
    return total


def jax_worker() -> None:
    """Answers each line, a case's name, with its least time: run by the interpreter that has JAX."""
    import jax
    import jax.numpy as jnp

    functions: dict = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in functions:
            given = arrays_of(name)
            text = f"lambda {', '.join(given)}: {CASES[name][3]}"
            if name == "nbody":
                from numba import njit, prange

                globals()["prange"] = prange
                compiled = njit(parallel=True, fastmath=True)(nbody)
                compiled(given["a"])
                functions[name] = lambda f=compiled, a=given["a"]: f(a)
                print(json.dumps(least_ms(functions[name])), flush=True)
                continue
            function = jax.jit(eval(text, {"jax": jax, "jnp": jnp}))
            arrays = [jnp.asarray(v) for v in given.values()]
            function(*arrays).block_until_ready()
            functions[name] = lambda f=function, arrays=arrays: f(*arrays).block_until_ready()
        print(json.dumps(least_ms(functions[name])), flush=True)


def cdollar_call(name: str):
    """A function that launches the kernels of a case and waits for them; checks the result against NumPy."""
    from renderer.cdollar.targets.device_target import DeviceTarget
    from renderer.gpu import open_device
    from tests.fps.cdollar import program

    device, arrays = open_device("cpu"), arrays_of(name)
    text, _, numpy_text, _ = CASES[name]
    representation, launch = program(text, lambda dag: DeviceTarget(dag, device, "opencl"), **arrays)
    expected = eval(numpy_text, {"np": np, **arrays})
    result = representation.buffers[0].read().ravel()[: np.size(expected)].reshape(np.shape(expected))
    if name in EXACT:
        assert np.array_equal(result, expected), name
    else:
        wanted = np.float64(expected)
        assert np.allclose(result, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max()), name

    def call() -> None:
        launch()
        device.finish()

    return call


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has JAX")
    parser.add_argument("--only", metavar="NAME", help="cases whose names contain this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        jax_worker()
        return
    worker = None
    if options.jax:
        worker = subprocess.Popen(
            [options.jax, "-m", "tests.fps.cdollar_cpu", "--worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    print(f"{'ms':20} {'C$':>8} {'NumPy':>8} {'JAX':>8}   C$ in NumPy's, JAX's   processor time of each")
    for name in CASES:
        if options.only and options.only not in name:
            continue
        ours, given = cdollar_call(name), arrays_of(name)
        numpy_call = eval(f"lambda: {CASES[name][2]}", {"np": np, **given})
        ours(), numpy_call()
        times = {"ours": [], "numpy": [], "jax": []}
        for _ in range(4):
            times["ours"].append(least_ms(ours))
            times["numpy"].append(least_ms(numpy_call))
            if worker is not None:
                print(name, file=worker.stdin, flush=True)
                times["jax"].append(json.loads(worker.stdout.readline()))
        (mine, numpys, jaxs), used = least_of(times, [(float("nan"), float("nan"))])
        print(f"{name:20} {mine:8.3f} {numpys:8.3f} {jaxs:8.3f}   {mine / numpys:6.2f} {mine / jaxs:6.2f}", end="")
        print("".join(f" {each:12.3f}" if k == 0 else f" {each:8.3f}" for k, each in enumerate(used)), flush=True)


def least_of(times: dict, none: list) -> tuple[list[float], list[float]]:
    """The least time and the least processor time of each column."""
    columns = [zip(*(rounds or none), strict=True) for rounds in times.values()]
    walls, used = zip(*([min(each) for each in column] for column in columns), strict=True)
    return list(walls), list(used)


if __name__ == "__main__":
    main()
