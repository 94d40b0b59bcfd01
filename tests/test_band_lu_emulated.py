"""Band LU's CUDA side on emulated GPUs, whose streams run late and in any order that events allow."""

import numpy as np
import pytest
from band_matrices import factor_residual, lapack_factors, random_band

from renderer.compute.band_lu import BandedLU, share

emulated = pytest.importorskip("emulated")
SIZE, BAND = 120, (20, 17)


@pytest.fixture(scope="module")
def machine():
    try:
        return emulated.cuda_machine(devices=3, seed=int(np.random.SeedSequence().entropy % 2**32))
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no emulation: {error}")


def devices_of(machine, count):
    return [machine.CudaDevice(index) for index in range(count)]


@pytest.mark.parametrize("clusters", [True, False], ids=["cluster", "leaves"])
def test_factors_are_the_same_in_any_order_of_streams(machine, rng, monkeypatch, clusters):
    """Panels by one launch, and by a graph that is recorded while the urgent queue is entered."""
    monkeypatch.setattr(share, "takes_clusters", lambda device: clusters)
    ab, first = random_band(rng, SIZE, *BAND), None
    for count in (1, 3):
        for residence in ("whole", "streamed"):
            lu = BandedLU(ab, *BAND, devices_of(machine, count), 16, residence=residence, products="own")
            home = lu._factors.copy_home()
            first = first or home
            assert np.array_equal(home.flat, first.flat), (count, residence)
    assert factor_residual(first, ab, *BAND) < 1
    assert np.array_equal(first.pivots(), lapack_factors(ab, *BAND)[1])


def test_gpus_of_two_kinds_share_a_matrix(machine, device, rng):
    """A panel goes from one driver to another through the host, from and to the urgent queue."""
    ab = random_band(rng, SIZE, *BAND)
    for devices in ([*devices_of(machine, 1), device], [device, *devices_of(machine, 2)]):
        lu = BandedLU(ab, *BAND, devices, 16, panels="device", products="own")
        assert factor_residual(lu._factors.copy_home(), ab, *BAND) < 1
        assert np.array_equal(lu.pivots, lapack_factors(ab, *BAND)[1])
