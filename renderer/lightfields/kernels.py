"""Compiles the kernels of shaders/lightfields/lightfield.cu for one light field, and chooses their launch shapes.

renderer/pictures/lightfield.py looks kernels up by name in a LightFieldKernels.
"""

from collections.abc import Callable

from renderer.gpu import Device
from renderer.lightfields.aperture import VIEW_SHIFT
from renderer.lightfields.device_views import GROUP_SIZE, GUARD_ROWS, row_pitch
from renderer.lightfields.light_field import LightField

SOURCE = "lightfields/lightfield.cu"
WARP_COLUMNS = 128  # columns of pixels that a warp of refocus_gpu computes
ROWS_PER_THREAD = 4  # rows of pixels that a thread of refocus_gpu computes
# Rows a thread -> the widest view in columns, of refocus_gpu with bulk copies; fewer rows give more groups.
STAGED_ROWS = {8: 8 * WARP_COLUMNS, 4: 16 * WARP_COLUMNS, 2: 16 * WARP_COLUMNS}
STAGED_VIEWS = 3  # views whose rows a group holds in local memory: 2,270 frames a second, 2,140 with 2 (H200)
GPU_GROUP_SIZES = (128, 512)  # large groups reuse rows from the cache; small groups occupy all units at a small view
CPU_TILE_WIDTH, CPU_TILE_HEIGHT = 128, 8  # pixels of one thread of refocus_cpu
# The kernel of each way to combine ("flatten") the shifted views, and its last arguments.
FLATTEN_KERNELS: dict[str, tuple[str | float, ...]] = {
    "mean": ("refocus_reference",),
    "median": ("median",),
    "max": ("min_max", 1.0),
    "min": ("min_max", -1.0),
    "half_variances": ("half_variances",),
}


class LightFieldKernels:
    """Kernels for views of one size, compiled at first use.

    The arguments of flattening kernels ("mean", "median", "max", "min", "half_variances") are (views, shifts, count,
    linear, target, first_stored_row, stored_rows, begin_row, end_row), followed by the halves of the views for
    "half_variances". The arguments of other kernels are the number of threads and the arguments in lightfield.cu.
    """

    def __init__(self, device: Device, field: LightField) -> None:
        """Compiles nothing yet; the size and channels of the views of `field` become compile-time constants."""
        self._device = device
        self._width, self._height = field.size
        self._channels = field.pixels.shape[3]
        self._constants = dict(
            WIDTH=self._width, HEIGHT=self._height, CHANNELS=self._channels, PITCH=row_pitch(field),
            GUARD_BYTES=GUARD_ROWS * row_pitch(field), VIEW_SHIFT=VIEW_SHIFT,
        )  # fmt: skip
        self._compiled: dict[str, Callable[..., None]] = {}

    def __getitem__(self, name: str) -> Callable[..., None]:
        """Returns the kernel of this name, compiled."""
        if name not in self._compiled:
            self._compiled[name] = self._flatten_kernel(name) if name in FLATTEN_KERNELS else self._kernel(name)
        return self._compiled[name]

    def _kernel(self, entry: str) -> Callable[..., None]:
        return self._device.kernel(SOURCE, entry, group_size=GROUP_SIZE, **self._constants)

    def _flatten_kernel(self, name: str) -> Callable[..., None]:
        if name == "mean" and self._channels == 3:
            return self._refocus_kernel()
        entry, *extra = FLATTEN_KERNELS[name]
        kernel = self._kernel(str(entry))
        # One thread a pixel. arguments[7] and [8] are begin_row and end_row; half_variances has one more argument.
        return lambda *arguments: kernel((arguments[8] - arguments[7]) * self._width, *arguments, *extra)

    def _refocus_kernel(self) -> Callable[..., None]:
        """Returns the kernel for the mean of views of 3 channels: refocus_cpu or refocus_gpu.

        The number of threads follows from the last two arguments, begin_row and end_row.
        """
        device, width = self._device, self._width
        if device.properties.scalar_threads:
            tile = dict(CPU_TILE_WIDTH=CPU_TILE_WIDTH, CPU_TILE_HEIGHT=CPU_TILE_HEIGHT)
            kernel = device.kernel(SOURCE, "refocus_cpu", group_size=1, **tile, **self._constants)
            across = -(-width // CPU_TILE_WIDTH)
            return lambda *a: kernel(across * -(-(a[-1] - a[-2]) // CPU_TILE_HEIGHT), *a)
        properties = device.properties
        rows = staged_rows(width, self._height, properties.compute_units) if properties.has_bulk_copy else 0
        if rows:
            group, pitch = 32 * -(-width // WARP_COLUMNS), self._constants["PITCH"]
            # Of 65,536 registers, these groups leave a thread 32 for each of its rows.
            shape = dict(
                ROWS_PER_THREAD=rows, STAGED_VIEWS=STAGED_VIEWS, MIN_GROUPS_PER_SM=max(2048 // rows // group, 1)
            )
            kernel = device.kernel(SOURCE, "refocus_gpu", group_size=group, **self._constants, **shape)
            if kernel.reserve_local(staged_bytes(pitch, rows)):
                return lambda *a: kernel(-(-(a[-1] - a[-2]) // rows) * group, *a)
        group = gpu_group_size(width, self._height, properties.compute_units)
        # The groups of a multiprocessor have 512 threads, which leaves each 128 registers.
        shape = dict(ROWS_PER_THREAD=ROWS_PER_THREAD, MIN_GROUPS_PER_SM=max(GPU_GROUP_SIZES) // group)
        kernel = device.kernel(SOURCE, "refocus_gpu", group_size=group, **self._constants, **shape)
        return lambda *a: kernel(gpu_tile_count(width, a[-1] - a[-2], group) * group, *a)


def staged_rows(width: int, height: int, units: int) -> int:
    """Returns the rows of a thread for views whose rows are copied in bulk; 0 if a group is not as wide as the views.

    They are the most rows that give at least 0.9 groups a compute unit, or the fewest.
    """
    fitting = [rows for rows, columns in STAGED_ROWS.items() if width <= columns]
    return next((rows for rows in fitting if -(-height // rows) >= 0.9 * units), min(fitting, default=0))


def staged_bytes(pitch: int, rows: int) -> int:
    """Returns a group's bytes of local memory: a table of 256 floats for each of 32 lanes, and STAGED_VIEWS views.

    Of a view these are `rows` + 1 rows, 32 bytes more, and an mbarrier of 8 bytes.
    """
    return 256 * 32 * 4 + STAGED_VIEWS * ((rows + 1) * pitch + 32 + 8)


def gpu_tile_count(width: int, rows: int, group: int) -> int:
    """Returns the groups of refocus_gpu that cover width x rows pixels; `group` is in threads.

    A warp covers WARP_COLUMNS columns of ROWS_PER_THREAD rows.
    """
    return -(-width // WARP_COLUMNS) * -(-rows // (group // 32 * ROWS_PER_THREAD))


def gpu_group_size(width: int, height: int, units: int) -> int:
    """Returns the threads of a group: the largest size that gives at least 0.9 groups a compute unit."""
    enough = [group for group in GPU_GROUP_SIZES if gpu_tile_count(width, height, group) >= 0.9 * units]
    return max(enough, default=min(GPU_GROUP_SIZES))
