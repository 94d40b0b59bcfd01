"""Measurements of lessons on the thesis's kernels: matrix products by variant and size, a roofline, the Laplacian.

Each class is a kind of [steps.measure] (see the package); base.py has the interface. All report GFLOP/s or GB/s.
"""

from functools import partial
from typing import Literal

import numpy as np

from renderer.gpu import Buffer
from renderer.lessons.measurements.base import Bench, Finding, Measurement, Runs, check_whole_numbers, curves
from renderer.lessons.programs import bind_program
from renderer.numerics.laplacian import bind_laplacian
from renderer.numerics.matmul import MatmulVariant, bind_matmul, choose_variant, variants
from renderer.paths import SCENES
from renderer.records import dataclass
from renderer.scene.schema import setting

Tile = Literal[4, 8, 16]
MAX_SIDE = 4096  # rows and columns of the matrices


@dataclass(frozen=True)
class ProductLadder(Measurement):
    """GFLOP/s of each variant of the product of two square float32 matrices, by the edge of its blocks of threads.

    On processors the matrices have half the size, and the finding says so.
    """

    size: int = setting(512, 16, MAX_SIDE)
    tiles: tuple[Tile, ...] = (4, 8, 16)
    variants: tuple[str, ...] = tuple("row coalesced tiles unrolled prefetch unrolled_prefetch each2 each4".split())

    def __post_init__(self) -> None:
        unknown = [name for name in self.variants if name not in variants()]
        if unknown or not self.variants:
            raise ValueError(f"variants: no variant {unknown[:1]}; allowed are {', '.join(variants())}")
        if not 1 <= len(set(self.tiles)) == len(self.tiles):
            raise ValueError("tiles must be different ones of 4, 8, 16")

    def find(self, bench: Bench) -> Finding:
        """Times one product of each variant and block edge that the device can run."""
        device, (a, b, out) = bench.gpu.device, square_matrices(bench, self.size)
        n, runs = out.shape[0], Runs()
        for name in self.variants:
            for tile in self.tiles:
                variant = variants(tile)[name]
                if variant.runs_on(device):
                    runs[f"{tile} x {tile}", name] = bind_matmul(device, a, b, out, variant), device.finish
        series = curves(bench.rates(runs, lambda _: 2 * n**3 / 1e9), self.variants)
        notes = (f"matrices of {n} x {n}",)
        return Finding(self.variants, series, "variant", "GFLOP/s", "bars", log_y=True, notes=notes)


def square_matrices(bench: Bench, size: int) -> tuple[Buffer, Buffer, Buffer]:
    """Two random float32 matrices and one for their product, at most `size` squared, on the bench's device.

    Processors, for which the kernels are slow, get half the size: an eighth of the work.
    """
    device, rng = bench.gpu.device, np.random.default_rng(1)
    n = max(16, bench.size((size, size))[0] // (2 if device.properties.scalar_threads else 1))
    a, b = (device.buffer((n, n)).write(rng.random((n, n), "f4")) for _ in range(2))
    return a, b, device.buffer((n, n))


LADDER = ("coalesced", "tiles", "each4", "registers", "warp_tiles")


@dataclass(frozen=True)
class Roofline(Measurement):
    """The variants of LADDER under the device's roof: GFLOP/s by operations per byte read from global memory.

    The roof is the lower of a copy's bandwidth times the intensity and the rate of the best kernel (S. Williams,
    A. Waterman, D. Patterson, CACM 2009). A kernel may lie above the slope if caches serve some of its reads.
    """

    size: int = setting(1024, 64, MAX_SIDE)

    def find(self, bench: Bench) -> Finding:
        """Times a copy, the best variant's product, and the product of each variant of LADDER."""
        device, (a, b, out) = bench.gpu.device, square_matrices(bench, self.size)
        n = out.shape[0]
        kernels = {"best": choose_variant(device, n, n, "f4")} | {name: variants()[name] for name in LADDER}
        runs: Runs = {"copy": (partial(out.copy_from, a), device.finish)}
        runs |= {name: (bind_matmul(device, a, b, out, each), device.finish) for name, each in kernels.items()}
        rates = bench.rates(runs, lambda name: (8 * n**2 if name == "copy" else 2 * n**3) / 1e9)
        x = tuple(intensity(variants()[name]) for name in LADDER)
        slope, flat = rates["copy"] or np.inf, rates["best"] or np.inf
        roof = tuple(min(slope * operations, flat) if min(slope, flat) < np.inf else None for operations in x)
        notes = (f"in this order: {', '.join(LADDER)}", f"matrices of {n} x {n}, the roof's slope is {slope:.3g} GB/s")
        series = {"roof": roof, "kernels": tuple(rates[name] for name in LADDER)}
        return Finding(x, series, "operations a byte", "GFLOP/s", log_x=True, log_y=True, notes=notes)


def intensity(variant: MatmulVariant) -> float:
    """Returns a variant's operations for each byte that it reads from global memory, from its block's tile."""
    if variant.entry == "element_per_thread":
        return 0.25  # two numbers of four bytes for a multiplication and an addition
    rows, columns = variant.block_tile
    return 2 * rows * columns / (4 * (rows + columns))


@dataclass(frozen=True)
class ProductSizes(Measurement):
    """GFLOP/s of float32 products by size: the C$ listing, the best variant of the kernel, and NumPy's BLAS."""

    sizes: tuple[int, ...] = (128, 256, 512, 1024)

    def __post_init__(self) -> None:
        check_whole_numbers("sizes", self.sizes, 8, MAX_SIDE)

    def find(self, bench: Bench) -> Finding:
        """Times products of random matrices."""
        device, rng = bench.gpu.device, np.random.default_rng(1)
        runs: Runs = {}
        sizes = tuple(dict.fromkeys(bench.size((n, n))[0] for n in self.sizes))
        for n in sizes:
            a, b = (rng.random((n, n), "f4") for _ in range(2))
            runs["C$ listing 3", n] = bind_program(SCENES / "product.cb", device, a=a, b=b), device.finish
            left, right = (device.buffer((n, n)).write(m) for m in (a, b))
            chosen = choose_variant(device, n, n, "f4")
            runs["best variant", n] = bind_matmul(device, left, right, device.buffer((n, n)), chosen), device.finish
            runs["NumPy on the host", n] = partial(np.matmul, a, b), int  # int() waits for nothing
        series = curves(bench.rates(runs, lambda key: 2 * key[1] ** 3 / 1e9), sizes)
        return Finding(sizes, series, "size n", "GFLOP/s", log_x=True, log_y=True)


@dataclass(frozen=True)
class LaplacianRate(Measurement):
    """GB/s that the Laplacian reads and writes, by the memory that holds the neighborhood; a copy for comparison.

    On GPUs the image has four times the side, so that it does not fit their caches.
    """

    side: int = setting(1024, 64, 2048)
    neighbors: Literal[4, 8] = 8

    def find(self, bench: Bench) -> Finding:
        """Times each method on a float32 image of one channel, and a copy of the image."""
        device = bench.gpu.device
        side = bench.size((self.side, self.side))[0] * (1 if device.properties.scalar_threads else 4)
        image = device.buffer((side, side)).write(np.random.default_rng(1).random((side, side), "f4"))
        out = device.buffer((side, side))
        methods: tuple[str, ...] = ("naive", "shared_tiles", "register_rows")
        methods += ("cpu_rows",) if device.properties.scalar_threads else ()
        runs: Runs = {}
        for method in methods:
            runs[method] = bind_laplacian(device, image, out, self.neighbors, "clamp", method), device.finish
        runs["copy"] = partial(out.copy_from, image), device.finish
        series = {"here": tuple(bench.rates(runs, lambda _: 8 * side**2 / 1e9).values())}
        notes = (f"an image of {side} x {side}",)
        return Finding(tuple(runs), series, "where pixels are kept", "GB/s", "bars", notes=notes)
