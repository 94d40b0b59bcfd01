"""Rough metals against Mitsuba 3, by its recorded means (tests/raytracing/golden/make_mitsuba_conductor.py)."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from renderer.pictures.raytrace import Picture
from tests.raytracing.golden.make_mitsuba_conductor import BATCHES, COLOR, ROUGHNESSES, SIZE, plate, tiles
from tests.raytracing.witnesses import microfacet_tables

SAMPLES = 128
KNOWN = 6e-3  # Mitsuba shadows the two directions apart, we together: up to 0.5 per cent of these plates' light


def compensation(settings) -> np.ndarray:
    """(2, 3, 3): what multiple scattering adds to each tile."""
    camera = settings.view
    right, up, forward = camera.axes()
    reach = np.tan(np.radians(camera.fov_degrees) / 2)
    x, y = np.meshgrid((np.arange(SIZE[0]) + 0.5) / SIZE[0] * 2 - 1, 1 - (np.arange(SIZE[1]) + 0.5) / SIZE[1] * 2)
    ways = forward + (x * reach * SIZE[0] / SIZE[1])[..., None] * right + (y * reach)[..., None] * up
    cosine = -tiles((ways / np.linalg.norm(ways, axis=2, keepdims=True))[..., [1, 1, 1]])[..., 0]
    kept = sum(microfacet_tables.ggx_split_sum(cosine, np.full(cosine.shape, settings.materials[0].roughness)))
    return 1 + np.array(COLOR) * ((1 - kept) / kept)[..., None]


@pytest.mark.slow
def test_rough_metals_agree_with_mitsuba(device, rng):
    """Welch's test of every tile's mean over batches of seeds; a false alarm of all is one in a million."""
    with np.load(Path(__file__).parent / "golden" / "mitsuba_conductor.npz", allow_pickle=False) as stored:
        means, errors = stored["means"].astype("f8"), stored["errors"].astype("f8")
    picture = Picture(SimpleNamespace(device=device))
    for number, roughness in enumerate(ROUGHNESSES):
        settings = plate(roughness)
        batches = []
        for seed in rng.integers(1 << 30, size=BATCHES):
            for _ in range(SAMPLES):
                frame = picture.draw(replace(settings, seed=int(seed)), SIZE, 0.0)
            batches.append(tiles(frame.read()[..., :3].astype("f8")))
        more = compensation(settings)
        assert 1 <= more.min() and more.max() < 1.2
        wanted, error = means[number] * more, errors[number] * more
        error = np.sqrt(error**2 + np.var(batches, 0, ddof=1) / BATCHES + (KNOWN / 3 * wanted) ** 2)
        t = (np.mean(batches, 0) - wanted) / error
        assert np.abs(t).max() < stats.t.isf(1e-6 / 2 / means.size, BATCHES - 1), (roughness, t)
        assert np.abs(np.mean(batches) / wanted.mean() - 1) < KNOWN, roughness
