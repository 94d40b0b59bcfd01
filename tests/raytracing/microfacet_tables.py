"""Tables of the albedo of single scattering on GGX surfaces, sampled: what assets/microfacet.npz holds.

`python -m tests.raytracing.microfacet_tables` writes the file; test_materials.py compares it with fresh samples. GGX:
B. Walter et al. 2007. Visible normals: E. Heitz 2018, J. Dupuy and A. Benyoub 2023. Compensation: E. Turquin 2019.
"""

import numpy as np

from renderer.raytracing.microfacet import (
    ASSET,
    GGX_COSINES,
    GGX_ROUGHNESSES,
    GLASS_COSINES,
    GLASS_IORS,
    GLASS_MAX_IOR,
    GLASS_ROUGHNESSES,
    MIN_ALPHA,
)


def grid(count: int) -> np.ndarray:
    """The coordinates (count,) of a table's entries in 0..1, both ends included."""
    return np.linspace(0, 1, count)


def alpha_of(roughness: np.ndarray) -> np.ndarray:
    """GGX alpha of a perceptual roughness: its square, at least MIN_ALPHA."""
    return np.maximum(np.square(roughness), MIN_ALPHA)


def visible_normals(cosine: np.ndarray, alpha: np.ndarray, samples: int) -> np.ndarray:
    """(..., samples^2, 3) micro-normals visible at `cosine` to the normal, sampled on a regular grid of (u1, u2)."""
    u = (np.arange(samples) + 0.5) / samples
    first, second = (axis.ravel() for axis in np.meshgrid(u, u, indexing="ij"))
    cosine, alpha = np.asarray(cosine)[..., None], np.asarray(alpha)[..., None]
    x, z = np.sqrt(np.maximum(0, 1 - cosine**2)) * alpha, cosine
    size = np.hypot(x, z)
    x, z = x / size, z / size
    height = (1 - second) * (1 + z) - z
    radius = np.sqrt(np.clip(1 - height**2, 0, 1))
    h = np.stack([radius * np.cos(2 * np.pi * first) + x, radius * np.sin(2 * np.pi * first), height + z], -1)
    h *= np.stack([alpha, alpha, np.ones_like(alpha)], -1)
    return h / np.linalg.norm(h, axis=-1, keepdims=True)


def _lambda(cosine: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Smith's Lambda function of GGX."""
    tangent2 = (1 - cosine**2) / np.maximum(cosine**2, 1e-12)
    return (np.sqrt(1 + alpha**2 * np.maximum(tangent2, 0)) - 1) / 2


def _smith_g2_over_g1(cosine_v: np.ndarray, cosine_l: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """G2 / G1 of a view and a light direction by their cosines: the weight of a sample of visible normals."""
    lambda_v = _lambda(cosine_v, alpha)
    return (1 + lambda_v) / (1 + lambda_v + _lambda(np.abs(cosine_l), alpha))


def ggx_split_sum(cosine: np.ndarray, roughness: np.ndarray, samples: int = 128) -> tuple[np.ndarray, np.ndarray]:
    """(scale, bias) of B. Karis's split sum: a reflector of Schlick's F0 has the albedo F0 * scale + bias."""
    cosine, alpha = np.maximum(cosine, 1e-3), alpha_of(roughness)
    h = visible_normals(cosine, alpha, samples)
    view = np.stack([np.sqrt(1 - cosine**2), np.zeros_like(cosine), cosine], -1)[..., None, :]
    v_dot_h = (view * h).sum(-1)
    cosine_l = 2 * v_dot_h * h[..., 2] - cosine[..., None]
    weight = np.where(
        cosine_l > 0, _smith_g2_over_g1(cosine[..., None], np.maximum(cosine_l, 1e-9), alpha[..., None]), 0
    )
    schlick = np.clip(1 - v_dot_h, 0, 1) ** 5
    return (weight * (1 - schlick)).mean(-1), (weight * schlick).mean(-1)


def dielectric_albedo(cosine: np.ndarray, roughness: np.ndarray, eta: np.ndarray, samples: int = 96) -> np.ndarray:
    """Albedo of reflection and transmission together of a rough dielectric; `eta` is the index behind over before."""
    cosine, alpha = np.maximum(cosine, 1e-3), alpha_of(roughness)
    h = visible_normals(cosine, alpha, samples)
    view = np.stack([np.sqrt(1 - cosine**2), np.zeros_like(cosine), cosine], -1)[..., None, :]
    v_dot_h = np.clip((view * h).sum(-1), 0, 1)
    eta = np.asarray(eta)[..., None]
    cosine2_t = 1 - (1 - v_dot_h**2) / eta**2
    cosine_t = np.sqrt(np.maximum(cosine2_t, 0))
    r_perp = (v_dot_h - eta * cosine_t) / (v_dot_h + eta * cosine_t)
    r_parl = (eta * v_dot_h - cosine_t) / (eta * v_dot_h + cosine_t)
    fresnel = np.where(cosine2_t <= 0, 1.0, (r_perp**2 + r_parl**2) / 2)
    reflected = 2 * v_dot_h * h[..., 2] - cosine[..., None]
    refracted = -cosine[..., None] / eta + (v_dot_h / eta - cosine_t) * h[..., 2]
    both = np.where(reflected > 0, fresnel * _smith_g2_over_g1(cosine[..., None], reflected, alpha[..., None]), 0)
    both += np.where(
        refracted < 0, (1 - fresnel) * _smith_g2_over_g1(cosine[..., None], refracted, alpha[..., None]), 0
    )
    return both.mean(-1)


def glass_iors() -> np.ndarray:
    """The relative indices (GLASS_IORS,) of the glass table, evenly spaced in their logarithm."""
    return GLASS_MAX_IOR ** np.linspace(-1, 1, GLASS_IORS)


def tables() -> dict[str, np.ndarray]:
    """The tables in float32.

    `reflector` (GGX_COSINES, GGX_ROUGHNESSES, 2) holds scale and bias of ggx_split_sum, `dielectric` (GLASS_IORS,
    GLASS_COSINES, GLASS_ROUGHNESSES) the albedo of dielectric_albedo.
    """
    ggx = [axis.ravel() for axis in np.meshgrid(grid(GGX_COSINES), grid(GGX_ROUGHNESSES), indexing="ij")]
    glass = [axis.ravel() for axis in np.meshgrid(grid(GLASS_COSINES), grid(GLASS_ROUGHNESSES), indexing="ij")]
    count = GLASS_COSINES * GLASS_ROUGHNESSES
    albedos = np.stack([dielectric_albedo(glass[0], glass[1], np.full(count, eta)) for eta in glass_iors()])
    return {
        "reflector": np.stack(ggx_split_sum(ggx[0], ggx[1]), -1).reshape(GGX_COSINES, GGX_ROUGHNESSES, 2).astype("f4"),
        "dielectric": albedos.reshape(GLASS_IORS, GLASS_COSINES, GLASS_ROUGHNESSES).astype("f4"),
    }


if __name__ == "__main__":
    np.savez_compressed(ASSET, allow_pickle=False, **tables())
