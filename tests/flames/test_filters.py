"""flam3's filters."""

import numpy as np

from renderer.flames import filters
from renderer.flames.genome import Flame


def test_filters_sum_to_one():
    for shape in filters.FILTERS:
        for supersample in (1, 2, 3):
            for radius in (0.0, 0.3, 0.5, 1.2):
                taps = filters.spatial_filter(Flame(filter_shape=shape, supersample=supersample, filter_radius=radius))
                assert taps.shape[0] == taps.shape[1] and (taps.shape[0] - supersample) % 2 == 0
                assert np.isclose(taps.sum(), 1, atol=1e-5)
