"""Tables of the directional albedo of single scattering by GGX surfaces and by sheen, as kernel source.

shaders/raytracing/microfacet.h divides by these albedos to compensate multiple scattering (E. Turquin 2019). kernels.py
puts table_source() before the materials. `python -m tests.raytracing.witnesses.microfacet_tables` computes the tables
and writes assets/microfacet.npz; tests compare the file with fresh samples. Arrays, whose last index is the fastest:

    ggx_table    (GGX_COSINES, GGX_ROUGHNESSES, 2): scale and bias of the split sum
    glass_table  (2, GLASS_IORS, GLASS_COSINES, GLASS_ROUGHNESSES): albedo for indices above 1, then reciprocals
    sheen_table  (SHEEN_COSINES, SHEEN_ROUGHNESSES): albedo

Roughness i of n is i / (n - 1). Cosine i of n is i / (n - 1) in ggx_table, (i / (n - 1))^2 in the others. Index i of n
is GLASS_MAX_IOR^((i / (n - 1))^2), but 1.0001 for i = 0.
"""

from functools import cache
from itertools import pairwise

import numpy as np

from renderer.paths import ASSETS

ASSET = ASSETS / "microfacet.npz"
GGX_COSINES = GGX_ROUGHNESSES = 24  # entries of the reflection table along each axis
SHEEN_COSINES = SHEEN_ROUGHNESSES = 24  # entries of the sheen table along each axis
GLASS_IORS, GLASS_COSINES, GLASS_ROUGHNESSES = 12, 32, 16  # entries of each half of the glass table, along each axis
GLASS_MAX_IOR = 2.5  # largest relative index of the glass table's first half; the second half has the reciprocals
MIN_ALPHA = 1e-3  # least alpha, the square of the roughness: of 0, the kernels' D(h) would be 0 / 0 at its peak
# Units of the network that approximates the split sum of anisotropic GGX (lobes/anisotropic_ggx.h): inputs, two hidden
# layers, and the outputs scale + bias and bias.
ANISOTROPIC_LAYERS = 5, 16, 12, 2


@cache
def table_source() -> str:
    """Returns the tables as kernel source, with macros of their sizes.

    Tables of optional lobes are in an #if, because glass_table and sheen_table take compilers 0.3 s.
    """
    with np.load(ASSET, allow_pickle=False) as stored:
        names = {"ggx_table": "reflector", "glass_table": "dielectric", "sheen_table": "sheen"}  # in the file
        values = {name: stored[key].ravel() for name, key in names.items()}
        layers = _layers(stored["anisotropic"])
    sizes = {
        "GGX_COSINES": GGX_COSINES, "GGX_ROUGHNESSES": GGX_ROUGHNESSES, "GLASS_IORS": GLASS_IORS,
        "GLASS_COSINES": GLASS_COSINES, "GLASS_ROUGHNESSES": GLASS_ROUGHNESSES, "SHEEN_COSINES": SHEEN_COSINES,
        "SHEEN_ROUGHNESSES": SHEEN_ROUGHNESSES, "FIT_INPUTS": ANISOTROPIC_LAYERS[0],
        "FIT_HIDDEN_1": ANISOTROPIC_LAYERS[1], "FIT_HIDDEN_2": ANISOTROPIC_LAYERS[2],
    }  # fmt: skip
    floats = dict(GLASS_MAX_IOR=f"{GLASS_MAX_IOR}f", MIN_ALPHA=f"{MIN_ALPHA}f")
    defines = "".join(f"#define {name} {value}\n" for name, value in (sizes | floats).items())
    arrays = {name: _array(name, table) for name, table in values.items()}
    anisotropic = "".join(_array(f"anisotropic_fit_{index + 1}", layer) for index, layer in enumerate(layers))
    optional = {"GLASS_TABLE": arrays["glass_table"], "SHEEN": arrays["sheen_table"], "ANISOTROPY": anisotropic}
    blocks = "".join(f"#if {condition}\n{text}#endif\n" for condition, text in optional.items())
    return defines + arrays["ggx_table"] + blocks


def _layers(weights: np.ndarray) -> list[np.ndarray]:
    """Splits the numbers of the network by layer: a layer's weights (inputs, outputs), then its biases (outputs,)."""
    sizes = [(n + 1) * m for n, m in pairwise(ANISOTROPIC_LAYERS)]
    return np.split(weights, np.cumsum(sizes)[:-1])


def _array(name: str, values: np.ndarray) -> str:
    numbers = values.tolist()
    rows = (tuple(numbers[i : i + 16]) for i in range(0, len(numbers), 16))
    literals = ",\n".join(", ".join(["%.6ff"] * len(row)) % row for row in rows)  # a third of f-strings' time
    return f"CONSTANT_ARRAY float {name}[{len(values)}] = {{{literals}}};\n"
