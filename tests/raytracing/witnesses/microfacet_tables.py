"""Tables of the albedo of single scattering on GGX surfaces, sampled: what assets/microfacet.npz holds.

`python -m tests.raytracing.witnesses.microfacet_tables` writes the file; test_materials.py compares it. GGX:
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
    SHEEN_COSINES,
    SHEEN_ROUGHNESSES,
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


SHEEN_FIT = np.array([[25.3245, 3.32435, 0.16801, -1.27393, -4.85967], [21.5473, 3.82987, 0.19823, -1.97760, -4.32054]])


def _sheen_lambda(cosine: np.ndarray, alpha: float) -> np.ndarray:
    """Lambda of the sheen's shadowing, fitted by A. Estevez and C. Kulla 2017."""
    weight = (1 - alpha) ** 2
    a, b, c, d, e = weight * SHEEN_FIT[0] + (1 - weight) * SHEEN_FIT[1]

    def exponent(x: np.ndarray) -> np.ndarray:
        return a / (1 + b * x**c) + d * x + e

    half = exponent(np.array(0.5))
    return np.exp(
        np.where(cosine < 0.5, exponent(np.minimum(cosine, 0.5)), 2 * half - exponent(1 - np.maximum(cosine, 0.5)))
    )


def sheen_value(view: np.ndarray, light: np.ndarray, roughness: float) -> np.ndarray:
    """White sheen times the cosine (n,) of light directions (n, 3) for a view direction (3,)."""
    alpha = max(roughness, 0.07) ** 2
    half = view + light
    half = half / np.linalg.norm(half, axis=-1, keepdims=True)
    sine = np.sqrt(np.clip(1 - half[..., 2] ** 2, 0, 1))
    density = (2 + 1 / alpha) * sine ** (1 / alpha) / (2 * np.pi)
    shadow = 1 + _sheen_lambda(view[..., 2], alpha) + _sheen_lambda(light[..., 2], alpha)
    return density / (4 * view[..., 2] * shadow)


def sheen_albedo(cosine: float, roughness: float, samples: int = 512) -> float:
    """Albedo of white sheen, by the midpoint rule over the hemisphere."""
    cosine = max(cosine, 1e-4)
    view = np.array([np.sqrt(1 - cosine**2), 0, cosine])
    u = (np.arange(samples) + 0.5) / samples
    theta, step = np.pi / 2 * (1 - u**2), np.pi * u / samples  # finer near the horizon
    phi = np.pi * (np.arange(samples // 2) + 0.5) / (samples // 2)
    theta2, phi2 = np.meshgrid(theta, phi, indexing="ij")
    light = np.stack([np.sin(theta2) * np.cos(phi2), np.sin(theta2) * np.sin(phi2), np.cos(theta2)], -1)
    values = sheen_value(view, light, roughness) * np.sin(theta2)
    return float((values.mean(1) * step).sum() * 2 * np.pi)


def sheen_table() -> np.ndarray:
    """The albedo (SHEEN_COSINES, SHEEN_ROUGHNESSES) of sheen_albedo; the cosines are squares of even steps."""
    cosines, roughnesses = grid(SHEEN_COSINES) ** 2, grid(SHEEN_ROUGHNESSES)
    return np.array([[sheen_albedo(c, r, 256) for r in roughnesses] for c in cosines], "f4")


def glass_iors() -> np.ndarray:
    """The relative indices (2, GLASS_IORS) of the glass table: those above 1, then their reciprocals.

    Their logarithms are squares of even steps. The first is next to 1, as the Fresnel terms are singular there.
    """
    above = np.maximum(GLASS_MAX_IOR ** (grid(GLASS_IORS) ** 2), 1.0001)
    return np.stack([above, 1 / above])


def tables() -> dict[str, np.ndarray]:
    """The tables in float32.

    `reflector` (GGX_COSINES, GGX_ROUGHNESSES, 2) holds scale and bias of ggx_split_sum, `dielectric` (2, GLASS_IORS,
    GLASS_COSINES, GLASS_ROUGHNESSES) the albedo of dielectric_albedo, whose cosines are squares of even steps, and
    `sheen` the albedo of sheen_table.
    """
    ggx = [axis.ravel() for axis in np.meshgrid(grid(GGX_COSINES), grid(GGX_ROUGHNESSES), indexing="ij")]
    glass = [axis.ravel() for axis in np.meshgrid(grid(GLASS_COSINES) ** 2, grid(GLASS_ROUGHNESSES), indexing="ij")]
    count = GLASS_COSINES * GLASS_ROUGHNESSES
    albedos = np.stack([dielectric_albedo(glass[0], glass[1], np.full(count, eta)) for eta in glass_iors().ravel()])
    return {
        "reflector": np.stack(ggx_split_sum(ggx[0], ggx[1]), -1).reshape(GGX_COSINES, GGX_ROUGHNESSES, 2).astype("f4"),
        "sheen": sheen_table(),
        "dielectric": albedos.reshape(2, GLASS_IORS, GLASS_COSINES, GLASS_ROUGHNESSES).astype("f4"),
    }


if __name__ == "__main__":
    with np.load(ASSET, allow_pickle=False) as stored:
        rest = {name: stored[name] for name in stored.files}  # of anisotropic_fit.py
    np.savez_compressed(ASSET, allow_pickle=False, **rest | tables())
