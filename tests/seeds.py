"""Seeds of the tests: fixed ones, so that `make test` is the same every time.

RAYFOLD_FRESH_SEEDS=1 (`make test-all`) draws fresh ones, which failures print; RAYFOLD_TEST_SEED=N repeats one.
"""

import os
import zlib

import numpy as np

FRESH = os.environ.get("RAYFOLD_FRESH_SEEDS") == "1"


def seed_of(name: str) -> int:
    """The 32-bit seed of the test or purpose `name`."""
    given = os.environ.get("RAYFOLD_TEST_SEED")
    if given is not None:
        return int(given)
    return np.random.SeedSequence().entropy % 2**32 if FRESH else zlib.crc32(name.encode())
