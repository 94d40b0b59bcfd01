"""Tables of the albedo of single scattering on GGX surfaces, by which compensation divides, and of sheen.

`python -m tests.raytracing.microfacet_tables` writes assets/microfacet.npz, and tests compare it with fresh samples.
Compensation: E. Turquin 2019; the BSDFs are in shaders/raytracing/microfacet.h.
"""

from functools import cache

import numpy as np

from renderer.paths import ASSETS

ASSET = ASSETS / "microfacet.npz"
GGX_COSINES = GGX_ROUGHNESSES = 24  # entries of the reflection table along each axis
SHEEN_COSINES = SHEEN_ROUGHNESSES = 24  # entries of the sheen table along each axis; its cosines are squares
GLASS_IORS, GLASS_COSINES, GLASS_ROUGHNESSES = 12, 32, 16  # entries of each half of the glass table, along each axis
GLASS_MAX_IOR = 2.5  # largest relative index of the glass table's first half; the second half has the reciprocals
MIN_ALPHA = 1e-3


@cache
def table_source() -> str:
    """The tables as kernel source: ggx_table and glass_table, and macros of their sizes."""
    with np.load(ASSET, allow_pickle=False) as stored:
        names = {"ggx_table": "reflector", "glass_table": "dielectric", "sheen_table": "sheen"}
        values = {name: stored[key].ravel() for name, key in names.items()}
    sizes = {
        "GGX_COSINES": GGX_COSINES, "GGX_ROUGHNESSES": GGX_ROUGHNESSES, "GLASS_IORS": GLASS_IORS,
        "GLASS_COSINES": GLASS_COSINES, "GLASS_ROUGHNESSES": GLASS_ROUGHNESSES, "SHEEN_COSINES": SHEEN_COSINES,
        "SHEEN_ROUGHNESSES": SHEEN_ROUGHNESSES,
    }  # fmt: skip
    floats = dict(GLASS_MAX_IOR=f"{GLASS_MAX_IOR}f", MIN_ALPHA=f"{MIN_ALPHA}f")
    defines = "".join(f"#define {name} {value}\n" for name, value in (sizes | floats).items())
    return defines + "".join(
        f"CONSTANT_ARRAY float {name}[{len(v)}] = {{{_literals(v)}}};\n" for name, v in values.items()
    )


def _literals(values: np.ndarray) -> str:
    return ",\n".join(", ".join(f"{x:.6f}f" for x in row) for row in values.reshape(-1, 16))
