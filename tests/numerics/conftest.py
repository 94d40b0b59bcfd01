"""Emulated CUDA machines for the tests of numerics."""

import pytest

from tests.seeds import seed_of


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
