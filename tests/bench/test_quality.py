"""The counter of fireflies, on pictures whose fireflies are known."""

import numpy as np

from tests.fps.quality import FIREFLY, fireflies


def test_fireflies_are_single_bright_pixels_that_the_reference_has_not(rng):
    reference = np.full((24, 32, 3), 90, "u1")
    reference[5, 5] = 255  # a glint, which is also in the picture
    reference[12:, 16:] = 230  # an edge
    noise = rng.integers(-20, 21, (24, 32, 1))
    shown = np.clip(reference + noise, 0, 255).astype("u1")
    assert fireflies(shown, reference) == 0
    places = [(0, 0), (9, 20), (23, 3), (2, 1)]
    for y, x in places:
        shown[y, x] = 90 + 20 + FIREFLY + 40
    assert fireflies(shown, reference) == len(places)
    shown[15:20] = 255  # a band of error is no firefly: FLIP counts it
    assert fireflies(shown, reference) == len(places)
