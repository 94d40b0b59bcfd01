"""Band LU on several devices and with streamed block columns: the same bits; and the kernels that only GPUs choose."""

from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import InputError, UnavailableError
from renderer.gpu import DeviceProperties, open_device
from renderer.gpu.cuda import nvrtc
from renderer.gpu.kernel_source import preprocess
from renderer.numerics.band_lu import BandedLU, memory
from renderer.numerics.band_lu.block_columns import BlockLayout
from renderer.numerics.band_lu.devices import device_columns
from renderer.numerics.band_lu.devices.block_cyclic import BlockCyclicFactors
from tests.numerics.band_matrices import EPS, dense, factor_residual, random_band, scheduled


@pytest.fixture(scope="session")
def four(device):
    """Four queues that know nothing of one another, in the place of four devices."""
    return [device, *(open_device(device.name.split("(")[-1].rstrip(")")) for _ in range(3))]


class Compiler:
    """In the place of a GPU with clusters: compiles for it what it is asked for, and runs nothing."""

    properties = DeviceProperties(132, 32, 1 << 37, 1 << 37, True, 8)

    def __init__(self):
        self.entries = []

    def kernel(self, file, entry, group_size=256, **constants):
        nvrtc.compile_cubin(preprocess(file, GROUP_SIZE=group_size, **constants), "sm_90", file)
        self.entries.append(entry)
        yes = lambda asked: True  # noqa: E731
        return SimpleNamespace(group_size=group_size, supports_cluster_size=yes, reserve_local=yes)

    def buffer(self, shape, dtype="f4"):
        return SimpleNamespace(nbytes=int(np.prod(shape)) * np.dtype(dtype).itemsize, fill=lambda byte: None)

    staging_buffer = readback_buffer = priority_queue = vendor_blas = lambda self, *ignored: None


QUICK_BLOCKS = (256,)


@pytest.mark.parametrize(
    "block", [b if b in QUICK_BLOCKS else pytest.param(b, marks=pytest.mark.slow) for b in range(16, 513, 16)]
)
def test_every_block_size_compiles_for_gpus_with_clusters(block):
    if nvrtc.why_missing():
        pytest.skip("NVRTC is not installed")
    for k in (100, 1024, 4096) if block > 64 else (100, 1024):
        device = Compiler()
        device_columns.DeviceColumns(device, 0, 1, BlockLayout(65536, k, k, block), "f8", True, False)
        assert ("factor_panel" in device.entries) != ("factor_subpanel" in device.entries)
        if block == 128:
            assert "factor_panel" in device.entries


def test_panel_shapes_have_room_for_every_row():
    for rows in (32, 1152, 4224, 8320, 70000):
        for s in (32, 64, 128, 256, 512):
            shape = device_columns.panel_shape(rows, s, 8, 8)
            if shape is None:
                assert rows > 8 * 1024 * 4 or s == 512
                continue
            assert (
                shape["GROUP"] <= 1024 and s % shape["INNER_BLOCK"] == 0 and shape["INNER_BLOCK"] % shape["BATCH"] == 0
            )
            assert shape["GROUP"] * shape["ROWS"] * 8 >= rows


@pytest.mark.parametrize("n,kl,ku", [(200, 40, 33), pytest.param(333, 20, 60, marks=pytest.mark.slow)])
def test_same_factors_on_one_two_and_four_devices(four, rng, n, kl, ku):
    ab = random_band(rng, n, kl, ku)
    first = None
    for count in (1, 2, 4):
        for place in ("resident", "streamed"):
            lu = BandedLU(ab, kl, ku, four[:count], 16, **scheduled(place, "own"))
            downloaded = lu._factors.download()
            first = first or downloaded
            assert np.array_equal(downloaded.flat, first.flat), (count, place)
            assert np.array_equal(downloaded.panel_pivots, first.panel_pivots)
    assert factor_residual(first, ab, kl, ku) < 30


SOLVED = [(200, 40, 33), (64, 63, 63), (40, 9, 0)]


@pytest.mark.parametrize("shape", [SOLVED[0], *(pytest.param(shape, marks=pytest.mark.slow) for shape in SOLVED[1:])])
def test_same_solutions_on_one_two_and_four_devices(four, rng, shape):
    """Every device solves with its own block columns: nothing is downloaded but the solution."""
    n, kl, ku = shape
    ab, b = random_band(rng, n, kl, ku), rng.standard_normal((n, 2))
    a, first = dense(ab, kl, ku), {}
    for count in (1, 2, 4):
        lu = BandedLU(ab, kl, ku, four[:count], 16, **scheduled(gemm="own"))
        lu._factors.download = None
        for trans, matrix in (("N", a), ("T", a.T)):
            x = lu.solve(b, trans)
            assert np.array_equal(x, first.setdefault(trans, x)), (count, trans)
            assert np.array_equal(x[:, 1], lu.solve(b[:, 1], trans))
            assert np.abs(matrix @ x - b).max() < 200 * EPS["f8"] * np.abs(a).sum(axis=1).max() * np.abs(x).max()


def test_sub_devices_share_the_work(device, rng):
    cl = pytest.importorskip("pyopencl")
    from renderer.gpu.opencl.device import OpenclDevice

    if not isinstance(device, OpenclDevice) or device._handle.max_compute_units < 2:
        pytest.skip("no OpenCL device of two units or more here")
    try:
        half = device._handle.max_compute_units // 2
        parts = device._handle.create_sub_devices([cl.device_partition_property.EQUALLY, half])
    except cl.Error as error:
        pytest.skip(f"{device.name} has no sub-devices: {error}")
    ab = random_band(rng, 200, 40, 33)
    devices = [OpenclDevice(0, 0, handle=part) for part in parts[:2]]
    shared, alone = (BandedLU(ab, 40, 33, d, 32, **scheduled()) for d in (devices, [device]))
    assert np.array_equal(shared._factors.download().flat, alone._factors.download().flat)


def test_only_u_plus_one_block_columns_are_resident(device):
    lu = BandedLU(random_band(np.random.default_rng(0), 600, 20, 25), 20, 25, [device], 16, **scheduled("streamed"))
    layout, share = lu.layout, lu._factors.per_device[0]
    assert (layout.u, share.slots, layout.p) == (3, 4, 38)
    assert share.matrix.nbytes == 4 * layout.stride * 8


def test_first_of_several_singular_columns_is_reported(four):
    ab = random_band(np.random.default_rng(5), 100, 6, 4)
    ab[:, [20, 35, 90]] = 0
    for count in (1, 2, 4):
        assert BandedLU(ab, 6, 4, four[:count], 16, **scheduled()).info == 21


def test_memory_is_reported_before_it_starts(monkeypatch):
    ab = np.ones((41, 1000))
    monkeypatch.setattr(memory, "available_memory", lambda: 100_000)
    with pytest.raises(UnavailableError, match="take .* MiB of memory"):
        BandedLU(ab, 20, 20)
    layout = BlockLayout(10**8, 4000, 4000, 512)
    with pytest.raises(UnavailableError, match="block columns of 512 take"):
        memory.is_resident(
            layout, "f8", [SimpleNamespace(properties=DeviceProperties(1, 1, 1 << 26, 1 << 26, True))], 0
        )


def test_numbers_that_are_not_finite_are_named(device, rng):
    for value in (np.nan, np.inf, -np.inf):
        ab = random_band(rng, 60, 3, 4)
        lu = BandedLU(ab, 3, 4, [device], 16, **scheduled())
        assert lu.pivot_growth == pytest.approx(np.abs(lu.upper()).max() / np.abs(dense(ab, 3, 4)).max())
        ab[5, 41] = value
        with pytest.raises(InputError, match=rf"ab\[5, 41\] \(row 42, column 41 of A\) is {value}"):
            lu.refactor(ab)
        ab[5, 41], ab[0, 3], ab[7, 59] = 1, value, value  # corners that are no part of the matrix
        assert lu.refactor(ab).residual(lu.solve(np.ones(60)), np.ones(60)) < EPS["f8"]
    with pytest.raises(InputError, match="1e.300, which is not a float32"):
        BandedLU(np.full((1, 20), 1e300), 0, 0, [device], 16, precision="f4", **scheduled())


def test_dealt_factors_say_where_they_were_made(device):
    lu = BandedLU(np.ones((1, 5)), 0, 0, [device], **scheduled())
    assert isinstance(lu._factors, BlockCyclicFactors) and device.name in lu.device_name
    on_host = BandedLU(np.ones((1, 5)), 0, 0, [device]).device_name == "host"
    assert on_host == device.properties.scalar_threads


def test_factors_of_a_triangular_matrix_are_the_matrix(device, rng):
    """Panels as high as a block: rows below them belong to the next column. L is the unit matrix, to the last bit."""
    ab = rng.uniform(-0.1, 0.1, (17, 48)).astype("f4")
    ab[16] = 1
    lu = BandedLU(ab, 0, 16, [device], 16, **scheduled())
    factors = lu._factors
    assert isinstance(factors, BlockCyclicFactors)
    layout, flat = lu.layout, factors.per_device[0].matrix.read()
    stored = {(i, j): flat[layout.offset(i, j)] for j in range(48) for i in range(j // 16 * 16 - 16, j // 16 * 16 + 16)}
    full = dense(ab, 0, 16)
    assert all(value == full[i, j] for (i, j), value in stored.items() if i >= 0)
