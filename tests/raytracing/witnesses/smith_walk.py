"""The albedo of a rough metal by random walks on its microsurface: what the BSDFs' compensation approximates.

A ray scatters between GGX facets of random heights until it leaves (E. Heitz, J. Hanika, E. d'Eon and C. Dachsbacher
2016, with heights of the uniform distribution); each facet reflects by Schlick's Fresnel term.
"""

import numpy as np


def visible_normals(view, alpha, rng):
    """GGX normals (n, 3) visible from directions (n, 3) of the whole sphere (E. Heitz 2018)."""
    stretched = view * (alpha, alpha, 1.0)
    stretched /= np.linalg.norm(stretched, axis=1, keepdims=True)
    across2 = stretched[:, 0] ** 2 + stretched[:, 1] ** 2
    turned = np.stack([-stretched[:, 1], stretched[:, 0], np.zeros(len(view))], 1)
    first = np.where(across2[:, None] > 1e-12, turned / np.sqrt(np.maximum(across2, 1e-12))[:, None], (1.0, 0.0, 0.0))
    second = np.cross(stretched, first)
    radius, angle = np.sqrt(rng.random(len(view))), 2 * np.pi * rng.random(len(view))
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    lean = 0.5 * (1 + stretched[:, 2])
    y = (1 - lean) * np.sqrt(np.maximum(1 - x * x, 0)) + lean * y
    z = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    normal = x[:, None] * first + y[:, None] * second + z[:, None] * stretched
    normal = np.stack([alpha * normal[:, 0], alpha * normal[:, 1], np.maximum(normal[:, 2], 1e-9)], 1)
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def metal_albedo(f0, roughness, cosine, count, rng):
    """The albedo (k,) of a metal of F0 (k,) seen at a cosine, by `count` walks."""
    f0, alpha = np.asarray(f0, "f8"), roughness**2
    ray = np.tile([-np.sqrt(1 - cosine**2), 0.0, -cosine], (count, 1))
    height, weight, total = np.ones(count), np.ones((count, len(f0))), np.zeros(len(f0))  # heights by their quantile
    while len(ray):
        z = np.clip(ray[:, 2], -0.9999, 0.9999)
        z = np.where(np.abs(z) < 1e-4, 1e-4, z)
        smith = 0.5 * (-1 + np.sign(z) * np.sqrt(1 + alpha**2 * (1 - z * z) / (z * z)))
        leaving = np.where(z > 0, height ** np.maximum(smith, 0), 0)
        u = rng.random(len(ray))
        leaves = (u > 1 - leaving) | (weight.max(1) < 1e-4)
        total += weight[leaves].sum(0)
        ray, height, weight, smith, u = (part[~leaves] for part in (ray, height, weight, smith, u))
        height = np.clip(height / (1 - u) ** (1 / smith), 1e-12, 1)
        normal = visible_normals(-ray, alpha, rng)
        toward = np.clip(-(ray * normal).sum(1), 0, 1)
        weight = weight * (f0 + (1 - f0) * ((1 - toward) ** 5)[:, None])
        ray = ray + 2 * toward[:, None] * normal
    return total / count
