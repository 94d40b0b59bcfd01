"""Fit of the split sum of anisotropic GGX: `anisotropic` of assets/microfacet.npz.

`python -m tests.raytracing.witnesses.anisotropic_fit` makes it in some minutes; test_materials.py compares it.
A table would have four dimensions; a network of two hidden layers of 16 and 12 units has 326 numbers. Its weights are
found by the method of Levenberg and Marquardt.
"""

import numpy as np

from renderer.raytracing.microfacet import ANISOTROPIC_LAYERS, ASSET, MIN_ALPHA

LAYERS = list(zip(ANISOTROPIC_LAYERS[:-1], ANISOTROPIC_LAYERS[1:], strict=True))
COUNT, STEPS, SEED = 13_000, 180, 3
GRAZING = 0.1  # below this cosine a surface fills little of a picture: errors there weigh half


def split_sum(view: np.ndarray, alpha: np.ndarray, samples: int = 64) -> np.ndarray:
    """(scale, bias) (n, 2) for view directions (n, 3) and alphas (n, 2), on a grid of samples^2 visible normals."""
    return np.concatenate(
        [_split_sum(*part, samples) for part in zip(*(_chunks(x) for x in (view, alpha)), strict=True)]
    )


def _chunks(array: np.ndarray) -> list[np.ndarray]:
    return [array[i : i + 50] for i in range(0, len(array), 50)]


def _split_sum(view: np.ndarray, alpha: np.ndarray, samples: int) -> np.ndarray:
    u = (np.arange(samples) + 0.5) / samples
    first, second = (axis.ravel() for axis in np.meshgrid(u, u))
    scale = np.concatenate([alpha, np.ones((len(view), 1))], 1)
    stretched = view * scale
    stretched /= np.linalg.norm(stretched, axis=1, keepdims=True)
    height = (1 - second) * (1 + stretched[:, 2:]) - stretched[:, 2:]
    radius = np.sqrt(np.clip(1 - height**2, 0, 1))
    cap = np.stack([radius * np.cos(2 * np.pi * first), radius * np.sin(2 * np.pi * first), height], -1)
    normal = (cap + stretched[:, None]) * scale[:, None]
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    v_dot_h = (view[:, None] * normal).sum(-1)
    light = 2 * v_dot_h[..., None] * normal - view[:, None]
    below = 1 + smith_lambda(view, alpha)[:, None]
    weight = np.where(light[..., 2] > 0, below / (below + smith_lambda(light, alpha[:, None])), 0)
    schlick = np.clip(1 - v_dot_h, 0, 1) ** 5
    return np.stack([(weight * (1 - schlick)).mean(1), (weight * schlick).mean(1)], 1)


def smith_lambda(direction: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Smith's Lambda function (...) of directions (..., 3) and alphas (..., 2)."""
    tangent2 = ((alpha * direction[..., :2]) ** 2).sum(-1) / np.maximum(direction[..., 2] ** 2, 1e-12)
    return (np.sqrt(1 + tangent2) - 1) / 2


def random_surfaces(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """View directions (count, 3) and alphas (count, 2) of all roughnesses and strengths."""
    roughness, strength, cosine, phi = rng.random(count), rng.random(count) ** 0.7, rng.random(count), rng.random(count)
    across = np.maximum(roughness**2, MIN_ALPHA)
    cosine = np.maximum(cosine**1.3, 0.01)
    sine = np.sqrt(1 - cosine**2)
    view = np.stack([sine * np.cos(phi * np.pi / 2), sine * np.sin(phi * np.pi / 2), cosine], 1)
    return view, np.stack([(1 - across) * strength**2 + across, across], 1)


def features(view: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """Inputs (n, 5) of the network, -1 to 1: masking, cosine, the roots of both alphas, the square of the view's x."""
    masking = 1 / (1 + smith_lambda(view, alpha))
    return 2 * np.stack([masking, view[:, 2], *np.sqrt(alpha.T), view[:, 0] ** 2], 1) - 1


def layers_of(weights: np.ndarray) -> list[np.ndarray]:
    """The matrices (inputs + 1, outputs) of the layers; the last row of each holds the constants."""
    sizes = [(n + 1) * m for n, m in LAYERS]
    parts = np.split(weights, np.cumsum(sizes)[:-1])
    return [part.reshape(n + 1, m) for part, (n, m) in zip(parts, LAYERS, strict=True)]


def evaluate(weights: np.ndarray, inputs: np.ndarray) -> list[np.ndarray]:
    """The values of the layers; all but the last have the activation x / (1 + |x|)."""
    values = [inputs]
    for index, layer in enumerate(layers_of(weights)):
        x = values[-1] @ layer[:-1] + layer[-1]
        values.append(x / (1 + np.abs(x)) if index < len(LAYERS) - 1 else x)
    return values


def fitted(weights: np.ndarray, view: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """(scale + bias, bias) (n, 2) as the network has them."""
    return evaluate(weights, features(view, alpha))[-1]


def _jacobian(weights: np.ndarray, values: list[np.ndarray], importance: np.ndarray) -> np.ndarray:
    """Derivatives (n, 2, weights) of the weighted outputs, by going backwards through the layers."""
    out = []
    for output in range(2):
        slope = np.zeros_like(importance)
        slope[:, output] = importance[:, output]
        blocks: list[np.ndarray] = []
        for index, layer in reversed(list(enumerate(layers_of(weights)))):
            padded = np.concatenate([values[index], np.ones((len(slope), 1))], 1)
            blocks.insert(0, (padded[:, :, None] * slope[:, None]).reshape(len(slope), -1).astype("f4"))
            slope = slope @ layer[:-1].T * (1 - np.abs(values[index])) ** 2  # the activation's derivative by its value
        out.append(np.concatenate(blocks, 1))
    return np.stack(out, 1)


def fit() -> np.ndarray:
    """The weights (326,) in float32."""
    rng = np.random.default_rng(SEED)
    view, alpha = random_surfaces(COUNT, rng)
    scale, bias = split_sum(view, alpha).T
    wanted = np.stack([scale + bias, bias], 1)
    trust = np.where(view[:, 2] > GRAZING, 1, 0.5)
    importance = np.stack([trust / np.maximum(wanted[:, 0], 0.2), 0.5 * trust], 1)
    inputs = features(view, alpha)
    weights = np.concatenate([rng.normal(size=(n + 1) * m) * 1.2 / np.sqrt(n) for n, m in LAYERS])
    damping = 0.1

    def error(weights: np.ndarray) -> np.ndarray:
        return (evaluate(weights, inputs)[-1] - wanted) * importance

    loss = np.square(error(weights)).sum()
    for _ in range(STEPS):
        slopes = _jacobian(weights, evaluate(weights, inputs), importance).reshape(-1, len(weights))
        gradient, curvature = slopes.T @ error(weights).ravel(), (slopes.T @ slopes).astype("f8")
        while damping < 1e8:
            moved = weights - np.linalg.solve(curvature + damping * np.eye(len(weights)), gradient)
            new_loss = np.square(error(moved)).sum()
            if new_loss < loss:
                weights, loss, damping = moved, new_loss, max(damping / 3, 1e-7)
                break
            damping *= 4
    return weights.astype("f4")


if __name__ == "__main__":
    with np.load(ASSET, allow_pickle=False) as stored:
        rest = {name: stored[name] for name in stored.files}
    np.savez_compressed(ASSET, allow_pickle=False, **rest | {"anisotropic": fit()})
