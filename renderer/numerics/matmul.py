"""Matrix products by kernel variants from naive to near-vendor speed.

After the thesis "Making parallel programs fast on CUDA", chapter 3 (the lesson `cuda` has its figures), and CUTLASS.

    bind_matmul(device, a, b, out)()                        out = a b by the best variant for the device and the sizes
    bind_matmul(device, a, b, out, variant="coalesced")()   by one variant

The variants are a lesson: the fourteen of the thesis, then register tiles, vector loads, double buffering, warp tiles,
a multistage pipeline and tensor cores for float64. Each adds one idea (h200_numbers.jsonl: 5.3 to 43.7 TFLOP/s at
4,096 x 4,096). `rayfold bench run products` states their costs and times them beside cuBLAS or NumPy.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from renderer.errors import UnavailableError, UserError
from renderer.gpu import Buffer, Device
from renderer.paths import SHADERS
from renderer.plain import Json
from renderer.records import dataclass
from renderer.system.files import read_toml

Constants = dict[str, int | str]  # of a kernel, by name
TILE = 16  # edge of the tile of a group in the kernels of the thesis
PANEL_K = 256  # rows of b that packed_panels packs at a time
TENSOR_CORES = "numerics/matmul_tensor_cores.cu"
SWIZZLE_ROWS = 8  # block rows whose groups are launched together, so that they share tiles in the L2 cache


@dataclass(frozen=True)
class MatmulVariant:
    """A kernel variant: `entry` of `file` compiled with `constants`; `group` threads compute `block_tile` of out.

    A 0 in `block_tile` depends on the sizes of the product. `local_bytes` is the dynamic shared memory of a group,
    beside its statically declared local arrays.
    """

    name: str
    description: str
    entry: str
    group: int
    block_tile: tuple[int, int]
    constants: dict[str, int]
    file: str = "numerics/matmul.cu"
    local_bytes: int = 0

    def runs_on(self, device: Device) -> bool:
        """True if the device supports the variant: packed_panels needs a CPU, tensor cores a GPU with clusters."""
        if self.entry == "packed_panels":
            return device.properties.scalar_threads
        fits = self.local_bytes <= device.properties.local_bytes
        return self.file != TENSOR_CORES or (device.properties.max_cluster_size > 1 and fits)

    def supports(self, dtype: DTypeLike) -> bool:
        """True if the variant multiplies numbers of the dtype: the tensor-core kernel is for float64 only."""
        return self.file != TENSOR_CORES or np.dtype(dtype) == np.float64


def _shared_tiled(
    name: str, description: str, tile: int, thread_tile: int = 1, unrolled: int = 0, prefetch: int = 0
) -> MatmulVariant:
    """A variant of the thesis with tiles in local memory: `thread_tile` elements of a row per thread."""
    constants = {"TILE": tile, "THREAD_TILE": thread_tile, "UNROLLED": unrolled, "PREFETCH": prefetch}
    return MatmulVariant(name, description, "shared_tiled", tile * tile, (tile, tile * thread_tile), constants)


def _register_tiled(
    name: str,
    block_tile: tuple[int, int],
    k: int,
    thread_tile: tuple[int, int],
    description: str = "",
    warp: tuple[int, int] = (0, 0),
    stages: int = 0,
    vector: int = 1,
    buffers: int = 2,
    sliced_k: int = 1,
    vector_length: int = 4,
    min_groups_per_sm: int = 1,
) -> MatmulVariant:
    """A variant with register tiles (CUTLASS): `block_tile` per group, `k` deep, `thread_tile` per thread.

    `warp` is the shape of a warp in threads (rows, columns); (0, 0) leaves threads in rows. `vector` 1 loads 16 bytes,
    `vector_length` numbers, at once. `sliced_k` sets of threads share the depth of a tile. `stages` > 0 is the number
    of tiles in the ring that asynchronous copies fill.
    """
    group = block_tile[0] // thread_tile[0] * (block_tile[1] // thread_tile[1]) * sliced_k
    constants = {
        "BLOCK_M": block_tile[0], "BLOCK_N": block_tile[1], "BLOCK_K": k, "THREAD_TILE_M": thread_tile[0],
        "THREAD_TILE_N": thread_tile[1], "VECTOR": vector, "WARP_ROWS": warp[0], "WARP_COLUMNS": warp[1],
        "SLICED_K": sliced_k, "SWIZZLE_ROWS": SWIZZLE_ROWS, "MIN_GROUPS_PER_SM": min_groups_per_sm,
    }  # fmt: skip
    step = vector_length if vector else 1
    # Every thread loads the same number of vectors of a tile, along either direction of an operand.
    assert all(n * k % (group * step) == 0 and group % n == 0 for n in block_tile), (name, block_tile, k, group)
    if stages:
        assert group % k == 0, (name, k, group)
        return MatmulVariant(name, description, "multistage", group, block_tile, constants | {"STAGES": stages})
    constants |= {"BUFFERS": buffers, "A_PAD": step}
    return MatmulVariant(name, description, "register_tiled", group, block_tile, constants)


def _tensor_cores(
    name: str,
    block_tile: tuple[int, int],
    k: int,
    warp_tile: tuple[int, int],
    stages: int,
    mma_depth: int = 4,
    min_groups_per_sm: int = 1,
    fragment_sets: int = 2,
    description: str = "",
) -> MatmulVariant:
    """A variant with tensor cores: `block_tile` per group, `k` deep, `warp_tile` per warp, `stages` tiles in a ring.

    `mma_depth` is the depth of one instruction, 4 or 8. With two `fragment_sets` a warp reads the fragments of the next
    instructions while the current ones multiply.
    """
    group = block_tile[0] // warp_tile[0] * (block_tile[1] // warp_tile[1]) * 32
    assert k // mma_depth % fragment_sets == 0, (name, k, mma_depth)  # the sets alternate
    assert group % block_tile[1] == 0 or block_tile[1] % group == 0, (name, block_tile, group)
    constants = {
        "BLOCK_M": block_tile[0], "BLOCK_N": block_tile[1], "BLOCK_K": k, "WARP_M": warp_tile[0],
        "WARP_N": warp_tile[1], "STAGES": stages, "MMA_K": mma_depth, "SWIZZLE_ROWS": SWIZZLE_ROWS,
        "MIN_GROUPS_PER_SM": min_groups_per_sm, "FRAGMENT_SETS": fragment_sets,
    }  # fmt: skip
    local_bytes = stages * (block_tile[0] * (k + 4) + k * (block_tile[1] + 4)) * 8
    entry = "multiply_tensor_cores"
    return MatmulVariant(name, description, entry, group, block_tile, constants, TENSOR_CORES, local_bytes)


PACKED_PANELS = MatmulVariant(
    "packed_panels", "a packed panel and wide vectors for each work-item of a CPU", "packed_panels", 1, (0, 0),
    {"PANEL_K": PANEL_K},
)  # fmt: skip


def variants(tile: int = TILE) -> dict[str, MatmulVariant]:
    """The variants of the lesson by name, from slow to fast; `tile` is the edge of the thread blocks of the thesis."""
    size, lesson = {"TILE": tile}, TABLES["lesson"]
    listed = [
        MatmulVariant("row", "one row per thread, uncoalesced", "row_per_thread", tile * tile, (tile * tile, 0), size),
        MatmulVariant("coalesced", "one element per thread", "element_per_thread", tile * tile, (tile, tile), size),
        *(_variant(row | {"tile": tile} if row["kind"] == "shared" else row) for row in lesson),
        PACKED_PANELS,
    ]
    return {variant.name: variant for variant in listed}


def _variant(row: Json) -> MatmulVariant:
    """The variant of a row of matmul_variants.toml."""
    values = {key: tuple(v) if isinstance(v, list) else v for key, v in row.items() if key not in ("kind", "waves")}
    return MAKERS[row["kind"]](**values)


MAKERS: dict[str, Callable[..., MatmulVariant]] = {
    "shared": _shared_tiled, "register": _register_tiled, "tensor": _tensor_cores,
}  # fmt: skip
TABLES = read_toml(SHADERS / "numerics" / "matmul_variants.toml")
# For each precision and hardware: the least number of blocks per multiprocessor, and the variant.
CHOICES = {kind: [(row["waves"], _variant(row)) for row in rows] for kind, rows in TABLES["choices"].items()}
LARGEST = {"f4 async": _variant(TABLES["largest"])}  # chosen only if the last wave is nearly full
MIN_WAVE_USE = 0.82  # least _wave_use() for which LARGEST is chosen


def choose_variant(device: Device, rows: int, columns: int, dtype: DTypeLike) -> MatmulVariant:
    """The variant for a product of this size, chosen without a measurement.

    Larger blocks need fewer reads; but a device with more multiprocessors than blocks idles, so small products take
    small blocks.
    """
    if device.properties.scalar_threads:
        return PACKED_PANELS
    kind = np.dtype(dtype).str[1:]
    if kind == "f4" and device.properties.has_async_copy:
        kind = "f4 async"
    if kind == "f8" and CHOICES["f8 tensor cores"][-1][1].runs_on(device):  # the smallest blocks, if any, run
        kind = "f8 tensor cores"
    units = device.properties.compute_units
    if (largest := LARGEST.get(kind)) and _wave_use(largest, rows, columns, units) >= MIN_WAVE_USE:
        return largest
    for waves, variant in CHOICES[kind]:
        height, width = variant.block_tile
        enough = -(-rows // height) * -(-columns // width) >= waves * units
        if enough and variant.runs_on(device):
            return variant
    raise AssertionError("the last block size takes every product")


def _wave_use(variant: MatmulVariant, rows: int, columns: int, units: int) -> float:
    """The fraction of computed elements that belong to the product; a wave is one block for each of `units`."""
    height, width = variant.block_tile
    waves = -(-(-(-rows // height) * -(-columns // width)) // units)
    return rows * columns / (max(waves, 1) * units * height * width)


def bind_matmul(
    device: Device, a: Buffer, b: Buffer, out: Buffer, variant: str | MatmulVariant = "auto"
) -> Callable[[], None]:
    """The launch that computes out (m, n) = a (m, k) b (k, n) in float32 or float64.

    `variant` is "auto", a name of variants() or a MatmulVariant. UserError for shapes and types that do not fit.
    """
    _check(a, b, out)
    (rows, inner), columns = a.shape, out.shape[1]
    if variant == "auto":
        variant = choose_variant(device, rows, columns, out.dtype)
    elif isinstance(variant, str):
        known = variants()
        if variant not in known:
            raise UserError(f"variant is {variant!r}; allowed are auto, {', '.join(known)}")
        variant = known[variant]
    if not (variant.runs_on(device) and variant.supports(out.dtype)):
        raise UserError(f"variant is {variant.name!r}, which does not multiply {out.dtype} on {device.name}")
    if rows == 0 or columns == 0:
        return lambda: None
    constants = variant_constants(variant, rows, columns, inner, out.dtype)
    threads = thread_count(variant, device, rows, columns, vector_length(out.dtype))
    kernel = device.kernel(variant.file, variant.entry, group_size=variant.group, **constants)
    if variant.local_bytes and not kernel.reserve_local(variant.local_bytes):
        raise UnavailableError(f"{device.name} refuses {variant.local_bytes} bytes of local memory for {variant.name}")
    return kernel.bind_launch(threads, a, b, out, *(np.uint32(n) for n in (rows, columns, inner)))


def thread_count(variant: MatmulVariant, device: Device, rows: int, columns: int, vector_length: int) -> int:
    """The threads of a variant for a product of this size."""
    if variant.entry == "packed_panels":
        return _panel_items(device, rows, columns, vector_length)
    if variant.entry == "row_per_thread":
        return rows
    return -(-rows // variant.block_tile[0]) * -(-columns // variant.block_tile[1]) * variant.group


def vector_length(dtype: DTypeLike) -> int:
    """The numbers, float32 or float64, of a vector of 16 bytes."""
    return 16 // np.dtype(dtype).itemsize


def variant_constants(variant: MatmulVariant, rows: int, columns: int, inner: int, dtype: DTypeLike) -> Constants:
    """The constants with which the kernel of a variant is compiled for a product of this size."""
    length = vector_length(dtype)
    words = ("float", "float4") if length == 4 else ("double", "double2")
    constants: Constants = {"REAL": words[0], "REAL_VECTOR": words[1], "VECTOR_LENGTH": length}
    constants |= {"TILE": TILE, **variant.constants}
    if "BLOCK_K" in variant.constants:
        constants |= _tile_constants(variant, rows, columns, inner, length)
    return constants


def _check(a: Buffer, b: Buffer, out: Buffer) -> None:
    """Raises UserError for shapes and types that do not fit."""
    shapes = a.shape, b.shape, out.shape
    if any(len(shape) != 2 for shape in shapes):
        raise UserError(f"a matrix product takes 2-D arrays; found the shapes {', '.join(map(str, shapes))}")
    if a.shape[1] != b.shape[0] or out.shape != (a.shape[0], b.shape[1]):
        found = f"{a.shape} by {b.shape} into {out.shape}"
        raise UserError(f"a product of {found}: the shapes do not fit; (m, k) by (k, n) into (m, n) is wanted")
    dtypes = [m.dtype for m in (a, b, out)]
    if len(set(dtypes)) != 1 or dtypes[0] not in (np.float32, np.float64):
        found = ", ".join(map(str, dtypes))
        raise UserError(f"a product of {found}: all three must be float32 or all three float64")


def _tile_constants(variant: MatmulVariant, rows: int, columns: int, inner: int, vector_length: int) -> dict[str, int]:
    """The constants that depend on sizes and dtype: UNGUARDED without bounds checks, VECTOR for aligned rows."""
    height, width, k = (variant.constants[key] for key in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    unguarded = inner > 0 and rows % height == 0 and columns % width == 0 and inner % k == 0
    aligned = inner % vector_length == 0 and columns % vector_length == 0
    constants = {"UNGUARDED": int(unguarded), "VECTOR": int(variant.constants.get("VECTOR", 1) and aligned)}
    if variant.entry == "multistage":  # transposing stores are padded by 16 bytes, into different banks
        constants |= {"A_PAD": vector_length}
        constants |= {"STAGES": max(2, variant.constants["STAGES"] * vector_length // 4)}  # 48 KiB must hold them
    return constants


def _panel_items(device: Device, rows: int, columns: int, vector_length: int) -> int:
    """Work-items of packed_panels: about eight per core, each with at least 48 rows, nearly equal numbers of rows."""
    across = -(-columns // (8 * vector_length))
    wanted = -(-8 * device.properties.compute_units // across)
    return across * max(1, min(wanted, rows // 48))
