"""Matrix products: the ladder of the thesis (paper 5, chapter 3) and the rungs since, one signature, one idea apart.

multiply(device, a, b, out)                            out = a b by the best rung for this device and these sizes
multiply(device, a, b, out, rung="coalesced")          by that rung
multiply(device, Matrix(...), ..., store="subtract")   out -= a b on windows of larger matrices
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from renderer.errors import UserError
from renderer.gpu import Device

STORES = {"set": 0, "add": 1, "subtract": 2}


@dataclass(frozen=True)
class Matrix:
    """A (rows, columns) window of a buffer: element (i, j) stands at start + i * stride + j.

    `transposed` exchanges i and j in that: a LAPACK matrix (column by column) is a transposed one. start and stride
    count elements.
    """

    buffer: object
    rows: int
    columns: int
    stride: int
    start: int = 0
    transposed: bool = False

    @property
    def T(self) -> "Matrix":
        return replace(self, rows=self.columns, columns=self.rows, transposed=not self.transposed)


def matrix_of(buffer) -> Matrix:
    """The whole of a 2-D buffer."""
    if isinstance(buffer, Matrix):
        return buffer
    if len(buffer.shape) != 2:
        raise UserError(f"a matrix product takes 2-D arrays; found the shape {buffer.shape}")
    return Matrix(buffer, *buffer.shape, stride=buffer.shape[1])


@dataclass(frozen=True)
class Rung:
    """One way to multiply: `constants` of `entry` in numerics/matmul.cu; a group of `group` threads makes `block` of
    out."""

    name: str
    idea: str
    entry: str
    group: int
    block: tuple[int, int]
    constants: dict

    def fits(self, device: Device) -> bool:
        """Whether this rung is meant for the device: panels are for CPUs, the other rungs run everywhere."""
        return self.entry != "panels" or device.properties.scalar_threads


def _tiles(name: str, idea: str, tile: int = 16, each: int = 1, unrolled: int = 0, prefetch: int = 0) -> Rung:
    constants = {"TILE": tile, "EACH": each, "UNROLLED": unrolled, "PREFETCH": prefetch}
    return Rung(name, idea, "tiles", tile * tile, (tile, tile * each), constants)


def _blocks(
    name, idea, block, inner, each, vector=1, buffers=2, warp=(0, 0), slices=1, band=8, run=4, resident=1, squares=1
) -> Rung:
    """A register-blocked rung: `block` (rows, columns) of a group, `each` of a thread, `warp` threads down, across."""
    group = block[0] // each[0] * (block[1] // each[1]) * slices
    constants = {
        "BLOCK_ROWS": block[0], "BLOCK_COLUMNS": block[1], "BLOCK_INNER": inner, "EACH_ROWS": each[0],
        "EACH_COLUMNS": each[1], "VECTOR": vector, "BUFFERS": buffers, "WARP_ROWS": warp[0], "WARP_COLUMNS": warp[1],
        "SLICES": slices, "BAND": band, "A_PAD": run if vector else 1, "B_PAD": 0,
        "RESIDENT": resident, "SQUARES": squares,
    }  # fmt: skip
    step = run if vector else 1
    assert all(n * inner % (group * step) == 0 and group % n == 0 for n in block), (name, block, inner, group)
    return Rung(name, idea, "blocks", group, block, constants)


def _staged(name, idea, block, inner, each, stages, warp, band=8, run=4, resident=1) -> Rung:
    """A register-blocked rung fed by asynchronous copies through `stages` tiles; the rest as in _blocks."""
    group = block[0] // each[0] * (block[1] // each[1])
    constants = {
        "BLOCK_ROWS": block[0], "BLOCK_COLUMNS": block[1], "BLOCK_INNER": inner, "EACH_ROWS": each[0],
        "EACH_COLUMNS": each[1], "VECTOR": 1, "STAGES": stages, "WARP_ROWS": warp[0], "WARP_COLUMNS": warp[1],
        "BAND": band, "SLICES": 1, "RESIDENT": resident, "SQUARES": 1,
    }  # fmt: skip
    # Each round of copies takes whole runs, by single numbers or by words of `run`, whichever way an operand lies.
    assert all(group % n == 0 and n * inner % (group * run) == 0 for n in block), (name, block, inner, group)
    assert group % inner == 0, (name, inner, group)
    return Rung(name, idea, "staged", group, block, constants)


PANELS = Rung("panels", "a packed panel and wide vectors for each work item of a CPU", "panels", 1, (0, 0), {})


def ladder(tile: int = 16) -> dict[str, Rung]:
    """The rungs in rising order, by name; `tile` is the edge of the thesis' blocks of threads."""
    plain = {"TILE": tile}
    rungs = [
        Rung("row", "one row a thread, uncoalesced", "row_per_thread", tile * tile, (tile * tile, 0), plain),
        Rung("coalesced", "one element a thread", "element_per_thread", tile * tile, (tile, tile), plain),
        _tiles("tiles", "square tiles in local memory", tile),
        _tiles("prefetch", "tiles, the next ones loaded beside the arithmetic", tile, prefetch=1),
        _tiles("unrolled", "tiles, the inner loop unrolled", tile, unrolled=1),
        _tiles("unrolled_prefetch", "tiles, unrolled, prefetched", tile, unrolled=1, prefetch=1),
        _tiles("each2", "tiles, unrolled, 1 x 2 elements a thread", tile, each=2, unrolled=1),
        _tiles("each4", "tiles, unrolled, 1 x 4 elements a thread", tile, each=4, unrolled=1),
        _blocks("registers", "8 x 8 elements a thread in registers", (128, 128), 8, (8, 8), vector=0, buffers=1),
        _blocks("float4", "16-byte loads and stores", (128, 128), 8, (8, 8), buffers=1),
        _blocks("double_buffer", "two tiles in turn, one barrier a tile", (128, 128), 8, (8, 8)),
        _blocks("warp_tiles", "a warp reads neighbouring words", (128, 128), 8, (8, 8), warp=(4, 8)),
        _staged("staged", "asynchronous copies, four tiles deep", (128, 128), 8, (8, 16), 4, warp=(8, 4), resident=2),
        PANELS,
    ]
    return {rung.name: rung for rung in rungs}


def candidates(dtype) -> list[Rung]:
    """What autotuning tries on devices of many lanes: large blocks of out, then small ones of shared depth."""
    if np.dtype(dtype) == np.float64:
        return [
            _blocks("128x64", "", (128, 64), 8, (8, 4), warp=(8, 4), run=2),
            _blocks("64x64", "", (64, 64), 16, (4, 4), warp=(4, 8), run=2),
            _blocks("64x32", "", (64, 32), 16, (4, 4), warp=(8, 4), run=2),
            _blocks("32x32 by 4", "", (32, 32), 32, (4, 4), warp=(4, 8), slices=4, run=2),
            _blocks("16x32 by 4", "", (16, 32), 32, (4, 4), warp=(4, 8), slices=4, run=2),
        ]
    return [
        _staged("64x128 staged", "", (64, 128), 16, (8, 8), 3, warp=(4, 8), resident=4),
        _staged("64x64 staged", "", (64, 64), 16, (8, 4), 3, warp=(4, 8), resident=4),
        _blocks("128x128 by 16 deep", "", (128, 128), 16, (8, 8), warp=(4, 8), resident=2),
        _blocks("64x64", "", (64, 64), 16, (8, 4), warp=(4, 8)),
        _blocks("64x64 by 2", "", (64, 64), 16, (8, 8), warp=(4, 8), slices=2),
        _blocks("32x64 by 4", "", (32, 64), 32, (4, 8), warp=(8, 4), slices=4),
        _blocks("32x32 by 4", "", (32, 32), 32, (4, 4), warp=(4, 8), slices=4),
        _blocks("16x32 by 8", "", (16, 32), 64, (4, 4), warp=(4, 8), slices=8),
    ]


def best(device: Device, rows: int, columns: int, dtype) -> Rung:
    """The rung for a product of this size, chosen without a measurement.

    Larger blocks need fewer reads; but a device with more units than blocks idles, so small products take small ones.
    """
    if device.properties.scalar_threads:
        return PANELS
    # The blocks that a unit must have on average for a block size to pay: measured on an H200, 128 to 8192.
    waves = {"128x64": 1.5, "64x64": 0.9, "32x32 by 4": 0.0}
    if np.dtype(dtype) != np.float64:
        waves = {"128x128 by 16 deep": 1.5, "64x64": 0.9, "32x64 by 4": 0.9, "32x32 by 4": 0.0}
        if device.properties.has_async_copy:
            waves = {"64x128 staged": 0.9, "64x64 staged": 0.9, "32x64 by 4": 0.9, "32x32 by 4": 0.0}
    by_name = {rung.name: rung for rung in candidates(dtype)}
    for name, least in waves.items():
        height, width = by_name[name].block
        if -(-rows // height) * -(-columns // width) >= least * device.properties.compute_units:
            return by_name[name]
    raise AssertionError("the last block size takes every product")


def multiply(device: Device, a, b, out, rung="best", transpose_a=False, transpose_b=False, store="set") -> None:
    """out (m, n) = a (m, k) b (k, n), or += or -= by `store` "add" or "subtract"; Buffers or Matrix windows, f4 or f8.

    `rung` is "best", "autotuned", a name of ladder() or a Rung. A transposed operand is given as it lies in memory.
    """
    product(device, a, b, out, rung, transpose_a, transpose_b, store)()


def product(device: Device, a, b, out, rung="best", transpose_a=False, transpose_b=False, store="set"):
    """The launch that multiply makes, to be called as often as wanted."""
    a, b, out = matrix_of(a), matrix_of(b), matrix_of(out)
    a, b = a.T if transpose_a else a, b.T if transpose_b else b
    if out.transposed:  # out' = b' a'
        a, b, out = b.T, a.T, out.T
    _check(a, b, out, store)
    if rung == "autotuned":
        rung = autotuned(device, a, b, out)
    elif isinstance(rung, str):
        rung = best(device, out.rows, out.columns, out.buffer.dtype) if rung == "best" else _named(rung)
    return _launch(device, a, b, out, rung, store)


def _named(name: str) -> Rung:
    rungs = ladder()
    if name not in rungs:
        raise UserError(f"rung is {name!r}; allowed are best, autotuned, {', '.join(rungs)}")
    return rungs[name]


def _check(a: Matrix, b: Matrix, out: Matrix, store: str) -> None:
    if store not in STORES:
        raise UserError(f"store is {store!r}; allowed are {', '.join(STORES)}")
    if a.columns != b.rows or out.rows != a.rows or out.columns != b.columns:
        found = f"({a.rows}, {a.columns}) by ({b.rows}, {b.columns}) into ({out.rows}, {out.columns})"
        raise UserError(f"a product of {found}: the shapes do not fit; (m, k) by (k, n) into (m, n) is wanted")
    dtypes = {m.buffer.dtype for m in (a, b, out)}
    if len(dtypes) != 1 or next(iter(dtypes)) not in (np.float32, np.float64):
        told = ", ".join(str(m.buffer.dtype) for m in (a, b, out))
        raise UserError(f"a product of {told}: all three must be float32 or all three float64")
    for matrix in (a, b, out):
        stored = (matrix.columns, matrix.rows) if matrix.transposed else (matrix.rows, matrix.columns)
        last = matrix.start + (stored[0] - 1) * matrix.stride + stored[1]
        size = int(np.prod(matrix.buffer.shape, dtype=np.int64))
        assert min(stored) == 0 or (matrix.start >= 0 and stored[1] <= matrix.stride and last <= size), (matrix, size)


def _launch(device: Device, a: Matrix, b: Matrix, out: Matrix, rung: Rung, store: str):
    """The bound launch of a rung; out is not transposed."""
    rows, columns, inner = out.rows, out.columns, a.columns
    if rows == 0 or columns == 0:
        return lambda: None
    dtype = out.buffer.dtype
    constants = {
        "REAL": "float" if dtype == np.float32 else "double",
        "REALV": "float4" if dtype == np.float32 else "double2",
    }
    run = 4 if dtype == np.float32 else 2
    constants |= {"RUN": run, "A_COLUMNS": int(a.transposed), "B_COLUMNS": int(b.transposed), "STORE": STORES[store]}
    constants |= {"TILE": 16, **rung.constants}
    if rung.entry == "panels":
        threads = _panel_items(device, rows, columns, run)
        constants |= {"PANEL_INNER": 256}
    elif rung.entry == "row_per_thread":
        threads = rows
    else:
        threads = -(-rows // rung.block[0]) * -(-columns // rung.block[1]) * rung.group
    if rung.entry in ("blocks", "staged"):
        constants |= _block_constants(rung, a, b, out, run)
    kernel = device.kernel("numerics/matmul.cu", rung.entry, group_size=rung.group, **constants)
    sizes = [np.uint32(n) for n in (rows, columns, inner)]
    places = [np.uint64(n) for m in ("start", "stride") for n in (getattr(a, m), getattr(b, m), getattr(out, m))]
    return kernel.bind_launch(threads, a.buffer, b.buffer, out.buffer, *sizes, *places)


def _block_constants(rung: Rung, a: Matrix, b: Matrix, out: Matrix, run: int) -> dict:
    """Whether bounds must be checked and whether every run of a matrix begins at a multiple of 16 bytes."""
    height, width, deep = (rung.constants[key] for key in ("BLOCK_ROWS", "BLOCK_COLUMNS", "BLOCK_INNER"))
    whole = a.columns > 0 and out.rows % height == 0 and out.columns % width == 0 and a.columns % deep == 0
    aligned = all(m.start % run == 0 and m.stride % run == 0 for m in (a, b, out))
    more = {"WHOLE": int(whole), "VECTOR": int(rung.constants["VECTOR"] and aligned)}
    if rung.entry == "staged":  # numbers stored across their run lie a 16-byte word apart, in different banks
        more |= {"A_PAD": 0 if a.transposed else run, "B_PAD": run if b.transposed else 0}
        more |= {"STAGES": max(2, rung.constants["STAGES"] * run // 4)}  # 48 KiB must hold them
    return more


def _panel_items(device: Device, rows: int, columns: int, run: int) -> int:
    """Work items of the CPU kernel: about eight a core, each of at least 48 rows, all of nearly the same number."""
    across = -(-columns // (8 * run))
    wanted = -(-8 * device.properties.compute_units // across)
    return across * max(1, min(wanted, rows // 48))


def _repeat(launch, times: int) -> None:
    for _ in range(times):
        launch()


_tuned: dict = {}


def autotuned(device: Device, a: Matrix, b: Matrix, out: Matrix) -> Rung:
    """The fastest of candidates() for these shapes on this device, measured once a process on memory of its own."""
    if device.properties.scalar_threads:
        return PANELS
    key = (device.name, a.transposed, b.transposed, out.rows, out.columns, a.columns, out.buffer.dtype)
    if key not in _tuned:
        scratch = device.buffer((out.rows, out.columns), out.buffer.dtype)
        timed = []
        for rung in candidates(out.buffer.dtype):
            launch = _launch(device, a, b, matrix_of(scratch), rung, "set")
            launch()
            timed.append((min(device.time_seconds(partial(_repeat, launch, 20)) for _ in range(3)), rung))
        _tuned[key] = min(timed, key=lambda pair: pair[0])[1]
    return _tuned[key]
