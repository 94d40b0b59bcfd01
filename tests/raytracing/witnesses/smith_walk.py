"""Albedos of rough metal and glass by random walks on the microsurface: what the compensation of BSDFs approximates.

A ray scatters between GGX facets of random heights until it leaves (E. Heitz, J. Hanika, E. d'Eon and C. Dachsbacher
2016, with heights of the uniform distribution). A facet of metal reflects by Schlick's Fresnel term; one of glass
reflects or refracts by Fresnel's equations, and the walk goes on on that side.
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


def smith_lambda(z, alpha):
    """Smith's Lambda of GGX for rays (n, 3) of this z component (n,), which may be below the horizon."""
    z = np.clip(z, -0.9999, 0.9999)
    z = np.where(np.abs(z) < 1e-4, 1e-4, z)
    return 0.5 * (-1 + np.sign(z) * np.sqrt(1 + alpha**2 * (1 - z * z) / (z * z)))


def next_heights(ray, height, alpha, rng):
    """Heights (n,), as quantiles, at which rays (n, 3) from `height` meet the microsurface, and which leave it (n,)."""
    smith = smith_lambda(ray[:, 2], alpha)
    leaving = np.where(ray[:, 2] > 0, height ** np.maximum(smith, 0), 0)
    u = rng.random(len(ray))
    leaves = u > 1 - leaving
    with np.errstate(all="ignore"):
        return np.clip(height / (1 - u) ** (1 / smith), 1e-12, 1), leaves


def metal_albedo(f0, roughness, cosine, count, rng):
    """The albedo (k,) of a metal of F0 (k,) seen at a cosine, by `count` walks, and its standard error (k,)."""
    f0, alpha = np.asarray(f0, "f8"), roughness**2
    ray = np.tile([-np.sqrt(1 - cosine**2), 0.0, -cosine], (count, 1))
    height, weight, left = np.ones(count), np.ones((count, len(f0))), []
    while len(ray):
        height, leaves = next_heights(ray, height, alpha, rng)
        leaves |= weight.max(1) < 1e-4
        left.append(weight[leaves])
        ray, height, weight = (part[~leaves] for part in (ray, height, weight))
        normal = visible_normals(-ray, alpha, rng)
        toward = np.clip(-(ray * normal).sum(1), 0, 1)
        weight = weight * (f0 + (1 - f0) * ((1 - toward) ** 5)[:, None])
        ray = ray + 2 * toward[:, None] * normal
    values = np.concatenate(left)
    return values.mean(0), values.std(0) / count**0.5


def fresnel(cosine, eta):
    """Fresnel's reflectance (n,) at cosines (n,) towards a medium of relative index eta (n,); 1 beyond the limit."""
    inside = 1 - (1 - cosine**2) / eta**2
    other = np.sqrt(np.maximum(inside, 0))
    parallel, across = (eta * cosine - other) / (eta * cosine + other), (cosine - eta * other) / (cosine + eta * other)
    return np.where(inside > 0, (parallel**2 + across**2) / 2, 1.0)


def glass_reflectance(ior, roughness, cosine, count, rng):
    """The fraction of light that rough glass of index `ior` reflects, seen from the thin side at a cosine, by walks.

    Rays below the surface walk in a frame mirrored at the horizon, where their height is 1 minus the quantile.
    """
    alpha = roughness**2
    ray = np.tile([-np.sqrt(1 - cosine**2), 0.0, -cosine], (count, 1))
    height, outside, reflected = np.ones(count), np.ones(count, bool), 0
    while len(ray):
        height, leaves = next_heights(ray, height, alpha, rng)  # in the frame of the ray's side
        reflected += int(outside[leaves].sum())
        ray, height, outside = (part[~leaves] for part in (ray, height, outside))
        normal = visible_normals(-ray, alpha, rng)
        toward = np.clip(-(ray * normal).sum(1), 0, 1)
        eta = np.where(outside, ior, 1 / ior)
        crosses = rng.random(len(ray)) >= fresnel(toward, eta)
        bent = np.sqrt(np.maximum(1 - (1 - toward**2) / eta**2, 0))
        through = ray / eta[:, None] + (toward / eta - bent)[:, None] * normal
        ray = np.where(crosses[:, None], through * [1.0, 1.0, -1.0], ray + 2 * toward[:, None] * normal)
        height, outside = np.where(crosses, 1 - height, height), outside ^ crosses
    return reflected / count
