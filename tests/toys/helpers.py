"""Shared by the tests of toys: opening a text as a file, and its colors."""

import numpy as np

from renderer.formats.images import encode_srgb

SIZE = (24, 16)


def shown(picture, settings, time=0.0, size=SIZE, tile=None) -> np.ndarray:
    """The colors as the shader wrote them, row 0 at the bottom as in its coordinates."""
    frame = picture.draw(settings, size, time, tile).read()
    assert (frame[..., 3] == 1).all()
    return encode_srgb(frame[::-1, :, :3].astype("f8"))


def points(size=SIZE) -> tuple[np.ndarray, np.ndarray]:
    """fragCoord of every pixel: x of a row, y of a column."""
    return np.arange(size[0])[None, :] + 0.5, np.arange(size[1])[:, None] + 0.5


def color(*channels) -> np.ndarray:
    return np.clip(np.stack(np.broadcast_arrays(*channels), -1), 0, 1)


def close(found, wanted, tolerance=2e-5):
    np.testing.assert_allclose(found, wanted, atol=tolerance)
