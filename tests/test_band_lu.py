"""Band LU against LAPACK, dense algebra, known spectra and itself on several devices."""

import io
import json
import re
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import lapack, solve_banded

from main import main
from renderer import BadInput, MachineCannot, UserError
from renderer.compute.band_lu import BandedBatch, BandedLU, SingularMatrix, blocks, memory, share
from renderer.compute.band_lu.blocks import FlushSubnormals, Layout, pack
from renderer.compute.band_lu.dealt import DealtFactors
from renderer.compute.band_lu.host import HostFactors
from renderer.compute.band_lu.solver import inverse_norm1
from renderer.compute.band_lu.substitution import Substitution
from renderer.gpu import Processor, cuda, find_devices, open_device
from renderer.gpu.source import assemble

SIZES = [
    (1, 0, 0),
    (2, 1, 0),
    (37, 3, 0),
    (40, 0, 5),
    (64, 70, 80),
    (150, 5, 9),
    (200, 40, 33),
    (97, 20, 1),
    (130, 2, 50),
]
EPS = {"f4": np.finfo("f4").eps, "f8": np.finfo("f8").eps}


@pytest.fixture(scope="session")
def four(device):
    """Four queues that know nothing of one another, in the place of four devices."""
    return [device, *(open_device(device.name.split("(")[-1].rstrip(")")) for _ in range(3))]


def random_band(rng, n, kl, ku, dtype="f8"):
    return rng.standard_normal((kl + ku + 1, n)).astype(dtype)


def dense(ab, kl, ku):
    n = ab.shape[1]
    a = np.zeros((n, n), ab.dtype)
    for j in range(n):
        for i in range(max(0, j - ku), min(n, j + kl + 1)):
            a[i, j] = ab[ku + i - j, j]
    return a


def lapack_factors(ab, kl, ku):
    gbtrf = lapack.dgbtrf if ab.dtype == np.float64 else lapack.sgbtrf
    return gbtrf(np.vstack([np.zeros((kl, ab.shape[1]), ab.dtype), ab]), kl, ku)


def clamped(ab, kl, ku):
    n = ab.shape[1]
    low, high = min(kl, n - 1), min(ku, n - 1)
    return ab[ku - high : ku + low + 1], low, high


def plu_of(home):
    """The product P L U of factored block columns, dense."""
    layout, s = home.layout, home.layout.s
    order = layout.p * s
    product = np.zeros((order, order))
    for c in range(order):
        for r in range(max(0, (c // s - layout.u) * s), c + 1):
            product[r, c] = home.flat[layout.offset(r, c)]
    for i in reversed(range(layout.p)):
        rows = layout.rows(i)
        window = product[i * s : i * s + rows]
        panel = np.array(
            [[home.flat[layout.offset(i * s + r, i * s + c)] for c in range(s)] for r in range(rows)], float
        )
        top = window[:s].copy()
        window[s:] += panel[s:] @ top
        window[:s] = (np.tril(panel[:s], -1) + np.eye(s)) @ top
        for k in reversed(range(s)):
            other = home.panel_pivots[i * s + k] - 1
            window[[k, other]] = window[[other, k]]
    return product[: layout.n, : layout.n]


def factor_residual(home, ab, kl, ku):
    """LAPACK's gbt01: |P L U - A|_1 / (n |A|_1 eps)."""
    a = dense(ab, kl, ku).astype(float)
    scale = len(a) * np.abs(a).sum(axis=0).max() * EPS[home.dtype.str[1:]]
    return np.abs(plu_of(home) - a).sum(axis=0).max() / scale if scale else 0.0


def host_factors(ab, kl, ku, block=16):
    factors = HostFactors(Layout(ab.shape[1], kl, ku, block), ab.dtype)
    factors.factor(ab, True)
    return factors


def convection(side, peclet_x, peclet_y, upwind=False, lines=None):
    """Five-point convection-diffusion on side x lines unknowns: (ab, kl, ku)."""
    n = side * (lines or side)
    ab = np.zeros((2 * side + 1, n))
    inner = np.arange(n) % side
    if upwind:
        west, east = -1 - max(peclet_x, 0), -1 + min(peclet_x, 0)
        south, north = -1 - max(peclet_y, 0), -1 + min(peclet_y, 0)
        centre = 4 + abs(peclet_x) + abs(peclet_y)
    else:
        west, east, south, north = -1 - peclet_x / 2, -1 + peclet_x / 2, -1 - peclet_y / 2, -1 + peclet_y / 2
        centre = 4.0
    ab[side] = centre
    ab[side + 1] = np.where(inner < side - 1, west, 0)  # row j + 1, column j
    ab[side - 1] = np.where(inner > 0, east, 0)
    ab[2 * side], ab[0] = south, north
    return ab, side, side


# ------------------------------------------------------------------------------------------------------------ the host
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n,kl,ku", SIZES)
def test_host_factors_equal_lapack(n, kl, ku, dtype):
    ab, kl, ku = clamped(random_band(np.random.default_rng(n), n, kl, ku, dtype), kl, ku)
    factors = host_factors(ab, kl, ku)
    lu, pivots, info = lapack_factors(ab, kl, ku)
    assert info == factors.info == 0
    if dtype == "f8":  # float32 rounds candidates into ties
        assert np.array_equal(factors.pivots(), pivots)
        assert np.allclose(factors.upper(), upper_of(lu, kl, ku), rtol=0, atol=1e-10 * np.abs(lu).max())
    assert factor_residual(factors, ab, kl, ku) < 30


def upper_of(lu, kl, ku):
    upper = lu[: kl + ku + 1].copy()
    for j in range(min(kl + ku, upper.shape[1])):
        upper[: kl + ku - j, j] = 0
    return upper


@pytest.mark.parametrize("block", [16, 48, 128])
def test_any_band_solves_and_transposes(rng, block):
    for _ in range(12):
        n = int(rng.integers(1, 300))
        kl, ku = (int(k) for k in rng.integers(0, min(n + 5, 90), 2))
        ab = random_band(rng, n, kl, ku)
        ab[ku] += 2 + np.sqrt(kl + ku)  # without it a triangle of 240 rows was singular in double precision
        lu, b = BandedLU(ab, kl, ku, block=block), rng.standard_normal((n, 3))
        a = dense(ab, kl, ku)
        x = lu.solve(b)
        assert lu.residual(x, b) <= 50 * 0.5 * EPS["f8"]
        assert np.allclose(a @ x, b, atol=1e-9 * np.abs(a).max() * max(np.abs(x).max(), 1))
        z = lu.solve(b[:, 0], trans="T")
        assert np.allclose(a.T @ z, b[:, 0], atol=1e-9 * np.abs(a).max() * max(np.abs(z).max(), 1))


def test_unused_corners_are_not_read(rng):
    ab, kl, ku = random_band(rng, 90, 7, 12), 7, 12
    clean = BandedLU(ab, kl, ku, block=16).upper()
    for j in range(ku):
        ab[: ku - j, j] = np.nan
    for j in range(90 - kl, 90):
        ab[ku + 90 - j :, j] = np.inf
    assert np.array_equal(BandedLU(ab, kl, ku, block=16).upper(), clean)


def test_thin_bands_take_the_unblocked_routine(rng):
    ab = random_band(rng, 5000, 2, 1)
    thin, wide = BandedLU(ab, 2, 1), BandedLU(ab, 2, 1, block=16)
    b = rng.standard_normal(5000)
    assert np.array_equal(thin.pivots, wide.pivots)
    assert np.allclose(thin.upper(), wide.upper(), atol=1e-9)
    assert thin.residual(thin.solve(b), b) < 30 * EPS["f8"]
    assert np.allclose(thin.solve(b), solve_banded((2, 1), ab, b), rtol=1e-6, atol=1e-6 * np.abs(thin.solve(b)).max())


# --------------------------------------------------------------------------------------------------------- the devices
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    "n,kl,ku,block",
    [
        (150, 5, 9, 16),
        (200, 40, 33, 32),
        (64, 70, 80, 16),
        (40, 0, 5, 16),
        (260, 50, 30, 48),
        pytest.param(300, 9, 90, 112, marks=pytest.mark.slow),
    ],
)
def test_device_factors_equal_lapack(device, n, kl, ku, block, dtype):
    ab, kl, ku = clamped(random_band(np.random.default_rng(n + 1), n, kl, ku, dtype), kl, ku)
    pivots, b = lapack_factors(ab, kl, ku)[1], np.random.default_rng(2).standard_normal((n, 3)).astype(dtype)
    for panels in ("host", "device"):
        lu = BandedLU(ab, kl, ku, [device], block, panels=panels)
        assert np.array_equal(lu.pivots, pivots) or dtype == "f4"  # which rounds candidates into ties
        home = lu._factors.copy_home()
        assert factor_residual(home, ab, kl, ku) < 30
        assert np.array_equal(lu._factors.diagonal(), home.diagonal())
        assert lu._factors.largest() == home.largest() == np.abs(home.upper()).max()
        x = lu.solve(b)
        assert lu.residual(x, b) <= 50 * 0.5 * EPS[dtype]
        assert np.allclose(
            x, home.solve(b, False), rtol=0, atol=2e4 * EPS[dtype] * np.abs(x).max() / max(lu.rcond(), 1e-3)
        )


@pytest.mark.parametrize("dtype", [pytest.param("f4", marks=pytest.mark.slow), "f8"])  # PoCL takes 10 s for a text
def test_a_cluster_factors_panels_as_leaves_do(device, rng, monkeypatch, dtype):
    """The panel kernel of GPUs with clusters; where a device has none, by a cluster of one group."""
    for n, kl, ku, block in ((200, 40, 33, 32),):
        ab = random_band(rng, n, kl, ku, dtype)
        made = []
        for clusters in (True, False):
            monkeypatch.setattr(share, "takes_clusters", lambda device, clusters=clusters: clusters)
            lu = BandedLU(ab, kl, ku, [device], block, panels="device", products="own")
            assert bool(lu._factors.shares[0]._factor_panel) == clusters
            made.append(lu._factors.copy_home())
        assert factor_residual(made[0], ab, kl, ku) < 30
        assert np.array_equal(made[0].panel_pivots, made[1].panel_pivots) or dtype == "f4"
        if dtype == "f8":
            assert np.allclose(made[0].flat, made[1].flat, rtol=0, atol=1e-11 * np.abs(made[1].flat).max())


class Compiler:
    """In the place of a GPU with clusters: compiles for it what it is asked for, and runs nothing."""

    processor = Processor(132, 32, 1 << 37, 1 << 37, True, True, 8)

    def __init__(self):
        self.entries = []

    def kernel(self, file, entry, group=256, **constants):
        cuda.cubin(assemble(file, GROUP_SIZE=group, **constants), "sm_90", file)
        self.entries.append(entry)
        return SimpleNamespace(group=group)

    def buffer(self, shape, dtype="f4"):
        return SimpleNamespace(nbytes=int(np.prod(shape)) * np.dtype(dtype).itemsize)

    stage = tray = queue = vendor_product = lambda self, *ignored: None


QUICK_BLOCKS = (128, 256)


@pytest.mark.parametrize(
    "block", [b if b in QUICK_BLOCKS else pytest.param(b, marks=pytest.mark.slow) for b in range(16, 513, 16)]
)
def test_every_block_size_compiles_for_gpus_with_clusters(block):
    if cuda.nvrtc is None:
        pytest.skip("NVRTC is not installed")
    for k in (100, 1024, 4096) if block > 64 else (100, 1024):
        device = Compiler()
        share.Share(device, 0, 1, Layout(65536, k, k, block), "f8", True, False)
        assert ("factor_panel" in device.entries) != ("factor_leaf" in device.entries)
        if block == 128:
            assert "factor_panel" in device.entries


def test_panel_shapes_have_room_for_every_row():
    for rows in (32, 1152, 4224, 8320, 70000):
        for s in (32, 64, 128, 256, 512):
            shape = share.panel_shape(rows, s, 8, 8)
            if shape is None:
                assert rows > 8 * 1024 * 4 or s == 512
                continue
            assert shape["GROUP"] <= 1024 and s % shape["WIDTH"] == 0 and shape["WIDTH"] % shape["BATCH"] == 0
            assert shape["GROUP"] // shape["HELP"] * shape["ROWS"] * 8 >= rows


@pytest.mark.parametrize("panels", ["host", "device"])
@pytest.mark.parametrize("n,kl,ku", [(200, 40, 33), (333, 20, 60)])
def test_same_factors_on_one_two_and_four_devices(four, rng, n, kl, ku, panels):
    ab = random_band(rng, n, kl, ku)
    first = None
    for count in (1, 2, 4):
        for place in ("whole", "streamed"):
            lu = BandedLU(ab, kl, ku, four[:count], 16, panels=panels, residence=place, products="own")
            home = lu._factors.copy_home()
            first = first or home
            assert np.array_equal(home.flat, first.flat), (count, place)
            assert np.array_equal(home.panel_pivots, first.panel_pivots)
    assert factor_residual(first, ab, kl, ku) < 30


def test_sub_devices_share_the_work(device, rng):
    cl = pytest.importorskip("pyopencl")
    from renderer.gpu.opencl import OpenclDevice

    if not isinstance(device, OpenclDevice) or device._handle.max_compute_units < 2:
        pytest.skip("no OpenCL device of two units or more here")
    try:
        half = device._handle.max_compute_units // 2
        parts = device._handle.create_sub_devices([cl.device_partition_property.EQUALLY, half])
    except cl.Error as error:
        pytest.skip(f"{device.name} has no sub-devices: {error}")
    ab = random_band(rng, 200, 40, 33)
    devices = [OpenclDevice(0, 0, handle=part) for part in parts[:2]]
    shared, alone = BandedLU(ab, 40, 33, devices, 32), BandedLU(ab, 40, 33, [device], 32)
    assert np.array_equal(shared._factors.copy_home().flat, alone._factors.copy_home().flat)


def test_only_u_plus_one_block_columns_are_resident(device):
    lu = BandedLU(random_band(np.random.default_rng(0), 600, 20, 25), 20, 25, [device], 16, residence="streamed")
    layout, share = lu.layout, lu._factors.shares[0]
    assert (layout.u, share.slots, layout.p) == (3, 4, 38)
    assert share.matrix.nbytes == 4 * layout.stride * 8


def test_refactor_reuses_the_buffers(device, rng):
    lu = BandedLU(random_band(rng, 150, 9, 5), 9, 5, [device], 16)
    memory_before, ab = lu._factors.shares[0].matrix, random_band(rng, 150, 9, 5)
    assert lu.refactor(ab) is lu and lu._factors.shares[0].matrix is memory_before
    assert np.array_equal(lu.pivots, lapack_factors(ab, 9, 5)[1])
    assert factor_residual(lu._factors.copy_home(), ab, 9, 5) < 30
    with pytest.raises(BadInput, match="150"):
        lu.refactor(random_band(rng, 151, 9, 5))


def test_solving_in_place_on_the_device(device, rng):
    ab, b = random_band(rng, 150, 9, 5), rng.standard_normal((150, 5))
    for lu in (BandedLU(ab, 9, 5, block=32), BandedLU(ab, 9, 5, [device], 16), BandedLU(ab, 9, 5, [device] * 2, 16)):
        sides = np.zeros((5, lu.order))
        sides[:, :150] = b.T
        buffer = device.buffer(sides.shape, "f8").write(sides)
        lu.solve_in_place(buffer)
        assert np.array_equal(buffer.read()[:, :150].T, lu.solve(b))


@pytest.mark.parametrize("dtype", ["f4", pytest.param("f8", marks=pytest.mark.slow)])
def test_narrow_bands_are_solved_by_two_launches(device, rng, monkeypatch, dtype):
    """The kernels that GPUs take, here on every device: one group walks through all steps."""
    monkeypatch.setattr(Substitution, "narrow", property(lambda self: True))
    for n, kl, ku, sides in ((150, 9, 5, 3), (300, 30, 1, 3)):  # of one window: a text takes PoCL seconds
        ab = random_band(rng, n, kl, ku, dtype)
        ab[ku] += 3
        b = rng.standard_normal((n, sides)).astype(dtype)
        lu = BandedLU(ab, kl, ku, [device], 32, panels="device")
        x = lu.solve(b)
        assert lu.residual(x, b) <= 50 * 0.5 * EPS[dtype]
        assert np.allclose(x, lu._factors.copy_home().solve(b, False), rtol=0, atol=1e3 * EPS[dtype] * np.abs(x).max())


def test_timeline_tells_every_part(device, rng):
    ab = random_band(rng, 300, 20, 20)
    for lu in (BandedLU(ab, 20, 20, block=16), BandedLU(ab, 20, 20, [device], 16, panels="device")):
        totals = {
            part: sum(step[part] for step in lu.timeline) for part in ("panel", "swap", "solve", "update", "copy")
        }
        assert all(seconds > 0 for seconds in totals.values()), totals
        assert len(lu.timeline) == lu.layout.p


# ---------------------------------------------------------------------------------------------------- known quantities
def test_known_spectrum_gives_the_determinant():
    side, beta, gamma = 12, 0.3, -0.7
    ab, kl, ku = convection(side, 2 * beta, 2 * gamma)
    waves = np.cos(np.pi * np.arange(1, side + 1) / (side + 1))
    spectrum = (4 - 2 * np.sqrt(1 - beta**2) * waves)[:, None] - (2 * np.sqrt(1 - gamma**2) * waves)[None]
    sign, log = BandedLU(ab, kl, ku, block=16).slogdet()
    assert sign == 1 and np.isclose(log, np.log(spectrum).sum(), rtol=1e-13)
    shifted = ab.copy()
    shifted[ku] -= spectrum[3, 5]  # an eigenvalue of zero
    assert BandedLU(shifted, kl, ku, block=16).rcond() < 1e-14
    sign, log = BandedLU(shifted - 1e-3 * (np.arange(2 * side + 1) == side)[:, None], kl, ku).slogdet()
    moved = spectrum - spectrum[3, 5] - 1e-3
    assert sign == np.sign(moved).prod() and np.isclose(log, np.log(np.abs(moved)).sum(), rtol=1e-10)


@pytest.mark.parametrize("column", [0, 7, 16, 63, 99])
def test_singular_at_a_known_column(device, column):
    ab, kl, ku = random_band(np.random.default_rng(column), 100, 6, 4), 6, 4
    ab[:, column] = 0
    info = lapack_factors(ab, kl, ku)[2]
    assert info == column + 1
    choices = [dict(), dict(block=16), *(dict(devices=[device], block=16, panels=p) for p in ("host", "device"))]
    for choice in choices:
        lu = BandedLU(ab, kl, ku, **choice)
        assert lu.info == info and lu.slogdet() == (0.0, float("-inf")) and lu.rcond() == 0
        with pytest.raises(SingularMatrix, match=f"column {column} ") as error:
            lu.solve(np.ones(100))
        assert error.value.column == column and error.value.exit_code == 1


def test_first_of_several_singular_columns_is_told(four):
    ab = random_band(np.random.default_rng(5), 100, 6, 4)
    ab[:, [20, 35, 90]] = 0
    for count in (1, 2, 4):
        for panels in ("host", "device"):
            assert BandedLU(ab, 6, 4, four[:count], 16, panels=panels).info == 21


@pytest.mark.parametrize("peclet,swapped", [(0.5, False), (10, None), (100, True)])
def test_convection_diffusion_is_backward_stable(device, peclet, swapped):
    ab, kl, ku = convection(20, peclet, 0.6 * peclet)
    b = np.random.default_rng(1).standard_normal(400)
    for devices in ([], [device]):
        lu = BandedLU(ab, kl, ku, devices, 16)
        x = lu.solve(b)
        assert np.abs(b - blocks.product(ab, kl, ku, x[:, None])[:, 0]).max() <= 1e-13 * max(
            np.abs(x).max() * peclet, 1
        )
        assert lu.residual(x, b) < EPS["f8"] and lu.growth < 8
        assert np.array_equal(lu.pivots, lapack_factors(ab, kl, ku)[1])
        if swapped is not None:
            assert (lu.pivots != np.arange(400)).any() == swapped


def test_graded_and_scaled_matrices(device, rng):
    ab = random_band(rng, 120, 8, 8)
    graded = ab * 10.0 ** np.linspace(-60, 60, 120)
    rows = np.clip(np.arange(120)[None, :] + np.arange(-8, 9)[:, None], 0, 119)
    scaled = ab * 10.0 ** rng.integers(-8, 9, 120)[rows]
    for matrix in (graded, scaled):
        for devices in ([], [device]):
            lu = BandedLU(matrix, 8, 8, devices, 16)
            assert np.array_equal(lu.pivots, lapack_factors(matrix, 8, 8)[1])
            b = blocks.product(matrix, 8, 8, np.ones((120, 1)))
            x = lu.solve(b)
            assert lu.residual(x, b) < EPS["f8"]
            home = lu._factors.copy_home() if devices else lu._factors
            assert factor_residual(home, matrix, 8, 8) < 30


def test_growth_of_the_worst_matrix():
    n = 24  # Wilkinson's: partial pivoting doubles the last column at each step
    a = np.eye(n) - np.tril(np.ones((n, n)), -1)
    a[:, -1] = 1
    ab = np.zeros((2 * n - 1, n))
    for j in range(n):
        for i in range(n):
            ab[n - 1 + i - j, j] = a[i, j]
    assert BandedLU(ab, n - 1, n - 1, block=16).growth == 2.0 ** (n - 1)


def test_tiny_pivots_divide_instead_of_overflowing(device):
    ab = np.full((3, 40), 1e-310)
    ab[1] = 3e-310
    lu = BandedLU(ab, 1, 1, [device], 16, panels="device")
    want = lapack_factors(ab * 2.0**300, 1, 1)[0]  # LAPACK itself overflows on such pivots
    assert np.allclose(lu.upper() * 2.0**300, upper_of(want, 1, 1), rtol=1e-3, atol=0)


def test_subnormals_are_flushed_and_the_thread_is_left_as_it_was():
    ab, kl, ku = convection(192, 100, 60, upwind=True, lines=6)
    plain = lapack_factors(ab, kl, ku)[0]
    subnormal = (np.abs(plain) < np.finfo("f8").tiny) & (plain != 0)
    assert subnormal.any(), "the matrix has no subnormal factors: it does not test what it should"
    factors = host_factors(ab, kl, ku, 64)
    assert not ((np.abs(factors.flat) < np.finfo("f8").tiny) & (factors.flat != 0)).any()
    b = np.ones((ab.shape[1], 1))
    x = factors.solve(b, False)
    assert np.abs(b - blocks.product(ab, kl, ku, x)).max() < 1e-12
    small = np.array([1e-310])
    assert (small * 0.5)[0] > 0
    with FlushSubnormals() as guard:
        flushed = (small * 0.5)[0]
    assert (small * 0.5)[0] > 0 and (flushed == 0 or guard._before is None)


def test_rcond_estimates_the_condition(device, rng):
    for n, kl, ku in ((1, 0, 0), (60, 4, 9), (80, 20, 3)):
        ab = random_band(rng, n, kl, ku)
        a = dense(ab, kl, ku)
        true = 1 / (np.abs(a).sum(axis=0).max() * np.abs(np.linalg.inv(a)).sum(axis=0).max())
        for devices in ([], [device]):
            estimate = BandedLU(ab, kl, ku, devices, 16).rcond()
            assert 0.999 * true <= estimate <= 10 * true
    inverse = rng.standard_normal((30, 30))
    told = inverse_norm1(30, lambda v: inverse @ v, lambda v: inverse.T @ v, "f8")
    assert 0.3 * np.abs(inverse).sum(axis=0).max() <= told <= 1.000001 * np.abs(inverse).sum(axis=0).max()


def test_float32_factors_reach_float64_by_refinement(device, rng):
    ab = random_band(rng, 200, 12, 7)
    ab[7] += 6
    b = rng.standard_normal((200, 2))
    for devices in ([], [device]):
        mixed, plain = BandedLU(ab, 12, 7, devices, 16, precision="f4"), BandedLU(ab.astype("f4"), 12, 7, devices, 16)
        x, coarse = mixed.solve(b), plain.solve(b.astype("f4"))
        exact = np.linalg.solve(dense(ab, 12, 7), b)
        assert x.dtype == np.float64 and np.abs(x - exact).max() < 1e-12 * np.abs(exact).max()
        assert np.abs(coarse - exact).max() > 1e-9 * np.abs(exact).max()
        z = mixed.solve(b, trans="T")
        assert np.allclose(dense(ab, 12, 7).T @ z, b, atol=1e-11)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n,kl,ku", [(1, 0, 0), (30, 1, 1), (45, 3, 2), (20, 0, 4), (12, 15, 15)])
def test_batches_solve_every_system(device, rng, n, kl, ku, dtype):
    count = 70
    ab = np.stack([random_band(rng, n, kl, ku, dtype) for _ in range(count)])
    ab[:, ku] += 3
    b = rng.standard_normal((count, n, 2)).astype(dtype)
    cut = clamped(ab[0], kl, ku)
    batch = BandedBatch(device, count, n, kl, ku, dtype)
    x = batch.write(np.stack([clamped(one, kl, ku)[0] for one in ab])).solve(b)
    for k in range(count):
        a = dense(ab[k], kl, ku).astype(float)
        scale = np.abs(a).sum(axis=0).max() * np.abs(x[k]).sum(axis=0).max() * n * EPS[dtype]
        assert np.abs(b[k] - a @ x[k]).sum(axis=0).max() <= 50 * scale
    pivots = batch.pivots.read().T
    want = np.stack([lapack_factors(clamped(one, kl, ku)[0], *cut[1:])[1] for one in ab])
    assert (pivots == want).mean() > 0.99


def test_batch_names_the_singular_system(device, rng):
    ab = rng.standard_normal((5, 3, 20))
    ab[3, :, 11] = 0
    batch = BandedBatch(device, 5, 20, 1, 1, "f8").write(ab)
    assert batch.info().tolist() == [0, 0, 0, 12, 0]
    with pytest.raises(SingularMatrix, match="system 3.*column 11"):
        batch.solve(np.ones((5, 20, 1)))


def test_pack_places_every_element(rng):
    for n, kl, ku, s in ((50, 7, 3, 16), (10, 9, 9, 16), (33, 0, 20, 16), (70, 69, 2, 32)):
        ab, layout = random_band(rng, n, kl, ku), Layout(n, kl, ku, s)
        flat = np.full(layout.size, np.nan)
        pack(ab, layout, flat)
        a = dense(ab, kl, ku)
        for i in range(n):
            for j in range(max(0, i - kl), min(n, i + ku + 1)):
                assert flat[layout.offset(i, j)] == a[i, j]
        assert np.count_nonzero(flat) == np.count_nonzero(a) + layout.p * s - n


# ------------------------------------------------------------------------------------------------------- the command
def files(tmp_path, ab, kl, ku, b):
    np.savez(tmp_path / "band.npz", ab=ab, kl=kl, ku=ku)
    np.save(tmp_path / "rhs.npy", b)
    return [str(tmp_path / name) for name in ("band.npz", "rhs.npy")] + ["-o", str(tmp_path / "x.npy")]


@pytest.mark.parametrize("options", [[], ["--device", "cpu"], ["--device", "cpu", "--device", "cpu", "--block", "16"]])
def test_solve_command(tmp_path, capsys, rng, options):
    if options and not any(found.processor == "cpu" for found in find_devices()[0]):
        pytest.skip("no CPU OpenCL driver here")
    ab, b = random_band(rng, 300, 33, 20), rng.standard_normal((300, 2))
    assert main(["solve", *files(tmp_path, ab, 33, 20, b), "--json", *options]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    x = np.load(tmp_path / "x.npy")
    assert np.allclose(dense(ab, 33, 20) @ x, b, atol=1e-8)
    assert told["residual"] < 1e-15 and told["growth"] >= 1 and 0 < told["rcond"] <= 1
    assert {"panel", "swap", "solve", "update", "copy", "factor"} <= told["seconds"].keys()


def test_solve_command_takes_any_layout_of_arrays(tmp_path, rng):
    ab = np.asfortranarray(random_band(rng, 90, 3, 2).astype("f4"))
    b = np.asfortranarray(rng.integers(-5, 5, (90, 4)))
    assert main(["solve", *files(tmp_path, ab, 3, 2, b)]) == 0
    x = np.load(tmp_path / "x.npy")
    assert x.dtype == np.float32 and np.allclose(dense(ab, 3, 2) @ x, b, atol=1e-2 * max(1, np.abs(x).max()))


def test_singular_matrix_exits_with_one_and_keeps_the_old_file(tmp_path, capsys, rng):
    ab = random_band(rng, 50, 2, 2)
    ab[:, 17] = 0
    where = files(tmp_path, ab, 2, 2, np.ones(50))
    (tmp_path / "x.npy").write_bytes(b"old")
    assert main(["solve", *where, "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out.splitlines()[-1])["singular_column"] == 17 and "column 17" in err
    assert (tmp_path / "x.npy").read_bytes() == b"old"


def spoil(name):
    ab, b = np.ones((4, 9)), np.ones(9)
    ab[1] = 5
    table = dict(ab=ab, kl=2, ku=1)
    if name == "nan":
        ab[2, 3] = np.nan
    elif name == "shape":
        table["ab"] = ab[:3]
    elif name == "negative":
        table["kl"] = -1
    elif name == "fraction":
        table["kl"] = 1.5
    elif name == "missing":
        del table["ku"]
    elif name == "complex":
        table["ab"] = ab.astype("c16")
    elif name == "text":
        table["ab"] = np.array([["a"] * 9] * 4)
    elif name == "objects":
        table["ab"] = ab.astype(object)
    elif name == "empty":
        table["ab"] = ab[:, :0]
    elif name == "rows":
        b = np.ones(8)
    elif name == "nan side":
        b[4] = np.nan
    return table, b


WORDS = {
    "nan": r"ab\[2, 3\].*nan", "shape": r"\(3, 9\)", "negative": "kl is -1", "fraction": "kl is 1.5",
    "missing": "no 'ku'",
    "complex": "complex", "text": "real numbers", "objects": "object", "empty": "n at least 1", "rows": r"\(8,\)",
    "nan side": r"element \[4\] is nan",
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_bad_files_are_told(tmp_path, capsys, name):
    table, b = spoil(name)
    np.savez(tmp_path / "band.npz", **table)
    np.save(tmp_path / "rhs.npy", b)
    places = [str(tmp_path / file) for file in ("band.npz", "rhs.npy")]
    assert main(["solve", *places, "-o", str(tmp_path / "x.npy")]) == 5
    err = capsys.readouterr().err
    assert re.search(WORDS[name], err) and err.count("\n") == 1 and str(tmp_path) in err
    assert not (tmp_path / "x.npy").exists()


def test_files_that_are_no_band_files(tmp_path, capsys):
    np.save(tmp_path / "rhs.npy", np.ones(3))
    out = ["-o", str(tmp_path / "x.npy")]
    (tmp_path / "text.npz").write_text("hello")
    good = files(tmp_path, np.ones((1, 3)), 0, 0, np.ones(3))
    cut = (tmp_path / "band.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(cut[: len(cut) // 2])
    for name in ("text.npz", "cut.npz", "absent.npz", "."):
        assert main(["solve", str(tmp_path / name), good[1], *out]) == 5, name
    (tmp_path / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00\x10\x00{'descr': open}  ")
    for name in ("bad.npy", "absent.npy", "text.npz"):
        assert main(["solve", good[0], str(tmp_path / name), *out]) == 5, name
    capsys.readouterr()


def test_wrong_options_are_usage_errors(tmp_path, capsys):
    good = files(tmp_path, np.ones((1, 3)), 0, 0, np.ones(3))
    assert main(["solve", *good, "--block", "17"]) == 2
    assert "multiples of 16" in capsys.readouterr().err
    assert main(["solve", *good[:2], "-o", str(tmp_path / "x.txt")]) == 2
    assert main(["solve", *good[:2], "-o", str(tmp_path / "no" / "x.npy")]) == 2
    with pytest.raises(UserError, match="trans"):
        BandedLU(np.ones((1, 3)), 0, 0).solve(np.ones(3), trans="C")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, capsys):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, dict(descr="<f8", fortran_order=False, shape=(3, 1 << 45)))
    with zipfile.ZipFile(tmp_path / "band.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ab.npy", header.getvalue() + bytes(1 << 20))
        for name in ("kl", "ku"):
            one = io.BytesIO()
            np.save(one, 1)
            archive.writestr(f"{name}.npy", one.getvalue())
    np.save(tmp_path / "rhs.npy", np.ones(3))
    assert main(["solve", str(tmp_path / "band.npz"), str(tmp_path / "rhs.npy"), "-o", str(tmp_path / "x.npy")]) == 4
    assert "takes" in capsys.readouterr().err


def test_memory_is_told_before_it_starts(monkeypatch, tmp_path, capsys):
    ab = np.ones((41, 1000))
    monkeypatch.setattr(memory, "available", lambda: 100_000)
    with pytest.raises(MachineCannot, match="take .* MiB of memory"):
        BandedLU(ab, 20, 20)
    layout = Layout(10**8, 4000, 4000, 512)
    with pytest.raises(MachineCannot, match="block columns of 512 take"):
        memory.residence(
            layout, "f8", [SimpleNamespace(processor=Processor(1, 1, 1 << 26, 1 << 26, True, True))], "auto", 0
        )
    assert main(["solve", *files(tmp_path, ab, 20, 20, np.ones(1000))]) == 4
    capsys.readouterr()


def test_numbers_that_are_not_finite_are_named_wherever_the_panels_are_made(device, rng):
    for value in (np.nan, np.inf, -np.inf):
        for panels in ("host", "device"):
            ab = random_band(rng, 60, 3, 4)
            lu = BandedLU(ab, 3, 4, [device], 16, panels=panels)
            assert lu.growth == pytest.approx(np.abs(lu.upper()).max() / np.abs(dense(ab, 3, 4)).max())
            ab[5, 41] = value
            with pytest.raises(BadInput, match=rf"ab\[5, 41\] \(row 42, column 41 of A\) is {value}"):
                lu.refactor(ab)
            ab[5, 41], ab[0, 3], ab[7, 59] = 1, value, value  # corners that are no part of the matrix
            assert lu.refactor(ab).residual(lu.solve(np.ones(60)), np.ones(60)) < EPS["f8"]
    with pytest.raises(BadInput, match="1e.300, which is no float32"):
        BandedLU(np.full((1, 20), 1e300), 0, 0, [device], 16, precision="f4", panels="device")


def test_dealt_factors_say_where_they_were_made(device):
    lu = BandedLU(np.ones((1, 5)), 0, 0, [device])
    assert isinstance(lu._factors, DealtFactors) and device.name in lu.where
