"""The CUDA code of band LU on emulated GPUs, whose streams run late and in any order that events allow."""

import numpy as np
import pytest

from renderer.errors import UnavailableError
from renderer.numerics.band_lu import BandedLU
from renderer.numerics.band_lu.accuracy.residuals import DeviceResiduals, accurate_residual
from renderer.numerics.band_lu.devices import device_columns, substitution
from tests.numerics.band_matrices import dense, factor_residual, lapack_factors, random_band, scheduled

SIZE, BAND = 120, (20, 17)


def devices_of(emulated_machine, count):
    return [emulated_machine.CudaDevice(index) for index in range(count)]


@pytest.mark.parametrize("clusters", [pytest.param(True, marks=pytest.mark.slow), False], ids=["cluster", "leaves"])
def test_factors_are_the_same_in_any_order_of_streams(emulated_machine, rng, monkeypatch, clusters):
    """Panels by one launch, and by a graph that is recorded while the urgent queue is entered."""
    monkeypatch.setattr(device_columns, "has_clusters", lambda device: clusters)
    ab, first = random_band(rng, SIZE, *BAND), None
    for count in (1, 3):
        for residency in ("resident", "streamed"):
            lu = BandedLU(ab, *BAND, devices_of(emulated_machine, count), 16, **scheduled(residency, "own"))
            downloaded = lu._factors.download()
            first = first or downloaded
            assert np.array_equal(downloaded.flat, first.flat), (count, residency)
    assert factor_residual(first, ab, *BAND) < 1
    assert np.array_equal(first.pivots(), lapack_factors(ab, *BAND)[1])


@pytest.mark.parametrize("block", [16, pytest.param(32, marks=pytest.mark.slow)])
def test_solutions_are_the_same_on_any_number_of_devices(emulated_machine, rng, block):
    """Blocks of 32 on one device are solved by one launch for all steps, on several by a launch for each.

    Three right-hand sides are solved in groups of four: the emulated machine allows no read beyond the last.
    """
    ab, b, first = random_band(rng, SIZE, *BAND), rng.standard_normal((SIZE, 3)), {}
    for count in (1, 3):
        lu = BandedLU(ab, *BAND, devices_of(emulated_machine, count), block, **scheduled(gemm="own"))
        assert lu._factors._get_substitution().fits_one_group == (block == 32)
        for trans in "NT":
            x = lu.solve(b, trans)
            assert np.array_equal(x, first.setdefault(trans, x)), (count, trans)
            a = dense(ab, *BAND)
            assert np.abs((a if trans == "N" else a.T) @ x - b).max() < 1e-9 * np.abs(x).max()


SHAPES = [  # of the panel kernel: rows of a thread, columns at a time
    pytest.param(*shape, marks=() if shape == (1, 16) else pytest.mark.slow)
    for shape in [(1, 16), (2, 16), (1, 8), (2, 4)]
]


@pytest.mark.parametrize("rows,width", SHAPES)
@pytest.mark.parametrize("dtype", [pytest.param("f4", marks=pytest.mark.slow), "f8"])
def test_a_cluster_factors_panels_as_leaves_do(emulated_machine, rng, monkeypatch, dtype, rows, width):
    """Panels factored by clusters of 8, 16 and 1 groups; in float64 the look-ahead kernels update the next columns."""
    n, band, made = 260, (100, 75), []
    ab = random_band(rng, n, *band, dtype)
    shape = dict(GROUP=64, ROWS=rows, INNER_BLOCK=width, BATCH=4)

    def shape_of(rows, s, cluster, itemsize):
        if cluster == 1:
            return dict(shape, CLUSTER=1, GROUP=192 // rows_of_thread, HELD_PITCH=200 if rows_of_thread == 1 else 0)
        return dict(shape, CLUSTER=cluster, HELD_PITCH=0)

    rows_of_thread = rows
    monkeypatch.setattr(device_columns, "panel_shape", shape_of)
    wide = [(16, 2)] if (dtype, rows, width) != ("f8", 1, 16) else []  # in the longer sweeps
    for clusters, count in ((8, 1), (1, 1), (0, 1), *wide):
        monkeypatch.setattr(device_columns, "has_clusters", lambda device, clusters=clusters: clusters > 0)
        monkeypatch.setattr(device_columns, "WIDE_ROWS", 0 if clusters == 16 else n)
        monkeypatch.setattr(device_columns, "NARROW_ROWS", n if clusters == 1 else 0)
        lu = BandedLU(ab, *band, devices_of(emulated_machine, count), 64, **scheduled(gemm="own"))
        assert bool(lu._factors.per_device[0]._factor_panel) == (clusters > 0)
        assert not clusters or lu._factors.per_device[0]._cluster == clusters
        made.append(lu._factors.download())
    assert factor_residual(made[0], ab, *band) < 30
    assert all(np.array_equal(made[0].flat, factors.flat) for factors in (made[1], *made[3:]))
    assert np.array_equal(made[0].panel_pivots, made[2].panel_pivots) or dtype == "f4"
    if dtype == "f8":
        assert np.allclose(made[0].flat, made[2].flat, rtol=0, atol=1e-11 * np.abs(made[2].flat).max())


def test_gpus_of_two_kinds_share_a_matrix(emulated_machine, device, rng):
    """A panel goes from one driver to another through the host, from and to the urgent queue."""
    ab = random_band(rng, SIZE, *BAND)
    for devices in ([*devices_of(emulated_machine, 1), device], [device, *devices_of(emulated_machine, 2)]):
        lu = BandedLU(ab, *BAND, devices, 16, **scheduled(gemm="own"))
        assert factor_residual(lu._factors.download(), ab, *BAND) < 1
        assert np.array_equal(lu.pivots, lapack_factors(ab, *BAND)[1])


ALL_CLUSTERS = (1, 4), (1, 2), (3, 4)


@pytest.mark.parametrize(
    "dtype,shape,choices,columns",
    [
        ("f8", (130, 40, 35), ((1, 2), (3, 2)), (1,)),
        pytest.param("f8", (200, 40, 35), ALL_CLUSTERS, (3, 1), marks=pytest.mark.slow),
        pytest.param("f4", (330, 70, 10), ALL_CLUSTERS, (3, 1), marks=pytest.mark.slow),
    ],
)
def test_clusters_solve_in_one_launch(emulated_machine, rng, monkeypatch, dtype, shape, choices, columns):
    """Clusters of several groups and passes on one device and on three: the same bits, and a small residual."""
    monkeypatch.setattr(substitution, "ONE_GROUP_MAX_ROWS", {"f4": 32, "f8": 32})
    n, *band = shape
    ab, first, transposed = random_band(rng, n, *band, dtype), {}, {}
    a, b = dense(ab, *band).astype("f8"), rng.standard_normal((n, 3)).astype(dtype)
    largest = columns[0]
    for count, clusters in choices:
        monkeypatch.setattr(substitution, "WIDE_CLUSTER", clusters)
        lu = BandedLU(ab, *band, devices_of(emulated_machine, count), 32, **scheduled(gemm="own"))
        for rhs in (b[:, :k] for k in columns):
            x = lu.solve(rhs)
            assert lu._factors._substitution._is_swept
            assert np.array_equal(x, first.setdefault(rhs.shape[1], x)), (count, clusters)
            z = lu.solve(rhs, "T")
            if clusters == choices[0][1]:
                assert np.array_equal(z, transposed.setdefault(rhs.shape[1], z)), (count, clusters)
            error = np.abs(a.T @ z - rhs).max()
            assert error < 3e4 * np.finfo(dtype).eps * np.abs(z).max(), (count, clusters)
        assert np.array_equal(first[largest][:, :1], first[1])
        assert lu.residual(first[largest], b[:, :largest]) < np.finfo(dtype).eps
    lu.refactor(ab * np.dtype(dtype).type(2))
    assert np.array_equal(lu.solve(b[:, :largest]), first[largest] / 2)


def test_large_inverses_are_not_used(emulated_machine, rng, monkeypatch):
    """Substitution where a triangle's inverse would lose digits: 1 on the diagonal, -0.95 below it."""
    monkeypatch.setattr(substitution, "ONE_GROUP_MAX_ROWS", {"f4": 32, "f8": 32})
    n = 64
    a = (np.eye(n) - 0.95 * np.tril(np.ones((n, n)), -1)) @ (np.triu(rng.uniform(0, 1e-3, (n, n)), 1) + np.eye(n))
    ab = np.zeros((2 * n - 1, n))
    for j in range(n):
        ab[n - 1 - j : 2 * n - 1 - j, j] = a[:, j]
    lu = BandedLU(ab, n - 1, n - 1, devices_of(emulated_machine, 1), 32, **scheduled(gemm="own"))
    b = a @ np.ones(n)
    x = lu.solve(b)
    assert lu._factors._substitution.can_sweep and not lu._factors._substitution._is_swept
    assert lu.residual(x, b) < np.finfo("f8").eps
    lu.refactor(ab + 10 * (np.arange(2 * n - 1) == n - 1)[:, None])
    x = lu.solve(b)
    assert lu._factors._substitution._is_swept
    monkeypatch.setattr(emulated_machine.CudaDevice, "buffer", refuse_blocks(emulated_machine.CudaDevice.buffer))
    full = BandedLU(lu.matrix, n - 1, n - 1, devices_of(emulated_machine, 1), 32, **scheduled(gemm="own"))
    assert np.allclose(full.solve(b), x, rtol=1e-13) and not full._factors._substitution._is_swept


def refuse_blocks(buffer):
    """Device.buffer() of a device that has no room for inverses, (slots, s, s)."""

    def refusing(device, shape, dtype="f4"):
        if np.ndim(shape) and len(shape) == 3 and shape[1] == shape[2]:
            raise UnavailableError("no room")
        return buffer(device, shape, dtype)

    return refusing


def test_a_device_keeps_the_matrix_for_residuals(emulated_gpu, rng):
    ab = random_band(rng, SIZE, *BAND)
    lu = BandedLU(ab, *BAND, [emulated_gpu], 16, keeps_band=True)
    assert np.array_equal(lu.band_on(emulated_gpu).read(), ab)
    assert BandedLU(ab * 1e-300, *BAND, [emulated_gpu], 16, keeps_band=True).band_on(emulated_gpu) is None  # scaled
    x, b = rng.standard_normal((2, SIZE, 1))
    found = DeviceResiduals(emulated_gpu, ab, *BAND, lu.band_on(emulated_gpu))(x, b)
    assert np.array_equal(found.values, accurate_residual(ab, *BAND, x, b).values)
