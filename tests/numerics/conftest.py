"""Emulated CUDA machines for the tests of numerics."""

import re

import pytest

from tests.seeds import seed_of

RIGHT_POCL = 3  # the last major version of PoCL that ran the band LU's kernels for GPUs right


@pytest.fixture(autouse=True)
def _band_lu_runs_here(request):
    """Skips the band LU's kernels on a processor whose PoCL is newer: blocks of 16 columns came out wrong there.

    The program never launches them on a processor, whose LAPACK is 6 to 20 times as fast.
    """
    if "test_band_lu" in request.module.__name__ and "device" in request.fixturenames:
        device = request.getfixturevalue("device")
        version = re.search(r"PoCL (\d+)", device.driver)
        if device.properties.scalar_threads and version and int(version[1]) > RIGHT_POCL:
            pytest.skip(f"{device.driver} is newer than the one that ran these kernels for GPUs right")


@pytest.fixture(scope="package")
def emulated_machine():
    """Three emulated GPUs; skips without a C++ compiler or guarded memory (on hosts other than Linux)."""
    emulated = pytest.importorskip("tests.emulated")
    try:
        return emulated.cuda_machine(devices=3, seed=seed_of("numbers on emulated GPUs"))
    except (OSError, RuntimeError) as error:
        pytest.skip(f"no emulation: {error}")


@pytest.fixture(scope="package")
def emulated_gpu(emulated_machine):
    return emulated_machine.CudaDevice(0)
