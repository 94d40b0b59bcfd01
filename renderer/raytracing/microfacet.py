"""How much light single scattering on a GGX surface keeps: the tables that multi-scatter compensation divides by.

`python -m renderer.microfacet` writes assets/microfacet.npz; tests compare it with fresh samples. GGX by B. Walter
et al. 2007, visible normals by E. Heitz 2018 and J. Dupuy and A. Benyoub 2023, compensation by E. Turquin 2019.
"""

from functools import cache

import numpy as np

from renderer.paths import ASSETS

ASSET = ASSETS / "microfacet.npz"
COSINES = ROUGHNESSES = 24  # entries of the reflector's table along each axis
INDICES, STEPS, COARSE = 16, 32, 16  # of the dielectric's: relative indices, cosines, roughnesses
LARGEST_INDEX = 2.5  # of the dielectric's table, and its inverse the smallest
LEAST_ALPHA = 1e-3


def axis(count: int) -> np.ndarray:
    """The places of a table's entries in 0..1, the ends included."""
    return np.linspace(0, 1, count)


def alpha_of(roughness):
    """GGX's width of a perceptual roughness."""
    return np.maximum(np.square(roughness), LEAST_ALPHA)


def visible_normals(cosine, alpha, samples: int) -> np.ndarray:
    """(..., samples^2, 3) micro-normals that a viewer at `cosine` from the normal sees, on an even grid."""
    u = (np.arange(samples) + 0.5) / samples
    first, second = (grid.ravel() for grid in np.meshgrid(u, u, indexing="ij"))
    cosine, alpha = np.asarray(cosine)[..., None], np.asarray(alpha)[..., None]
    x, z = np.sqrt(np.maximum(0, 1 - cosine**2)) * alpha, cosine
    size = np.hypot(x, z)
    x, z = x / size, z / size
    height = (1 - second) * (1 + z) - z
    radius = np.sqrt(np.clip(1 - height**2, 0, 1))
    h = np.stack([radius * np.cos(2 * np.pi * first) + x, radius * np.sin(2 * np.pi * first), height + z], -1)
    h *= np.stack([alpha, alpha, np.ones_like(alpha)], -1)
    return h / np.linalg.norm(h, axis=-1, keepdims=True)


def _lambda(cosine, alpha):
    """Smith's auxiliary function of GGX."""
    tangent2 = (1 - cosine**2) / np.maximum(cosine**2, 1e-12)
    return (np.sqrt(1 + alpha**2 * np.maximum(tangent2, 0)) - 1) / 2


def _shadowing(cosine, out, alpha):
    """G2 / G1: the share of what the viewer sees that leaves unshadowed in direction `out` (its cosine)."""
    seen = _lambda(cosine, alpha)
    return (1 + seen) / (1 + seen + _lambda(np.abs(out), alpha))


def reflector(cosine, roughness, samples: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """(scale, bias): a reflector of Schlick's F0 keeps F0 * scale + bias after single scattering."""
    cosine, alpha = np.maximum(cosine, 1e-3), alpha_of(roughness)
    h = visible_normals(cosine, alpha, samples)
    view = np.stack([np.sqrt(1 - cosine**2), np.zeros_like(cosine), cosine], -1)[..., None, :]
    towards = (view * h).sum(-1)
    out = 2 * towards * h[..., 2] - cosine[..., None]
    kept = np.where(out > 0, _shadowing(cosine[..., None], np.maximum(out, 1e-9), alpha[..., None]), 0)
    schlick = np.clip(1 - towards, 0, 1) ** 5
    return (kept * (1 - schlick)).mean(-1), (kept * schlick).mean(-1)


def dielectric(cosine, roughness, ratio, samples: int = 96) -> np.ndarray:
    """What a rough dielectric of relative index `ratio` (behind over before) reflects and lets through together."""
    cosine, alpha = np.maximum(cosine, 1e-3), alpha_of(roughness)
    h = visible_normals(cosine, alpha, samples)
    view = np.stack([np.sqrt(1 - cosine**2), np.zeros_like(cosine), cosine], -1)[..., None, :]
    towards = np.clip((view * h).sum(-1), 0, 1)
    ratio = np.asarray(ratio)[..., None]
    inside2 = 1 - (1 - towards**2) / ratio**2
    inside = np.sqrt(np.maximum(inside2, 0))
    across = (towards - ratio * inside) / (towards + ratio * inside)
    with_plane = (ratio * towards - inside) / (ratio * towards + inside)
    fresnel = np.where(inside2 <= 0, 1.0, (across**2 + with_plane**2) / 2)
    reflected = 2 * towards * h[..., 2] - cosine[..., None]
    refracted = -cosine[..., None] / ratio + (towards / ratio - inside) * h[..., 2]
    both = np.where(reflected > 0, fresnel * _shadowing(cosine[..., None], reflected, alpha[..., None]), 0)
    both += np.where(refracted < 0, (1 - fresnel) * _shadowing(cosine[..., None], refracted, alpha[..., None]), 0)
    return both.mean(-1)


def indices() -> np.ndarray:
    """The relative indices of the dielectric's table, logarithmically even."""
    return LARGEST_INDEX ** np.linspace(-1, 1, INDICES)


def tables() -> dict[str, np.ndarray]:
    """reflector (COSINES, ROUGHNESSES, 2) scale and bias; dielectric (INDICES, STEPS, COARSE); float32."""
    fine = [grid.ravel() for grid in np.meshgrid(axis(COSINES), axis(ROUGHNESSES), indexing="ij")]
    coarse = [grid.ravel() for grid in np.meshgrid(axis(STEPS), axis(COARSE), indexing="ij")]
    both = np.stack([dielectric(*coarse, np.full(STEPS * COARSE, ratio)) for ratio in indices()])
    return {
        "reflector": np.stack(reflector(*fine), -1).reshape(COSINES, ROUGHNESSES, 2).astype("f4"),
        "dielectric": both.reshape(INDICES, STEPS, COARSE).astype("f4"),
    }


@cache
def header() -> str:
    """The tables as text for kernels: REFLECTOR_TABLE and DIELECTRIC_TABLE, with their sizes."""
    with np.load(ASSET, allow_pickle=False) as stored:
        parts = {name: stored[name].ravel() for name in ("reflector", "dielectric")}
    sizes = dict(COSINES=COSINES, ROUGHNESSES=ROUGHNESSES, INDICES=INDICES, STEPS=STEPS, COARSE=COARSE)
    floats = dict(LARGEST_INDEX=f"{LARGEST_INDEX}f", LEAST_ALPHA=f"{LEAST_ALPHA}f")
    defines = "".join(f"#define {name} {value}\n" for name, value in (sizes | floats).items())
    text = [f"TABLE float {name}_table[{len(v)}] = {{{_numbers(v)}}};\n" for name, v in parts.items()]
    return defines + "".join(text)


def _numbers(values: np.ndarray) -> str:
    return ",\n".join(", ".join(f"{x:.6f}f" for x in row) for row in values.reshape(-1, 16))


if __name__ == "__main__":
    np.savez_compressed(ASSET, **tables())
