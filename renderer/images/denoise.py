"""Denoising by Intel's Open Image Denoise: a neural filter on the host (A. Afra 2019), guided by albedo and normal.

Flames have neither; their guide is the logarithm of the density.

It comes with the optional package pyoidn, whose only user this is.
"""

from importlib.util import find_spec

import numpy as np

from renderer.errors import UnavailableError
from renderer.formats.images import linear_to_srgb

INSTALL = "pip install pyoidn"  # 25 MB of networks that most installations do without


def is_installed() -> bool:
    """Whether the filter's package is there; it is not imported."""
    return find_spec("pyoidn") is not None


def check_installed() -> None:
    """UnavailableError where the filter is not installed."""
    _package()


def denoise(linear: np.ndarray, albedo: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """(height, width, 4) float32 linear values without noise; albedo and normal (height, width, 3) are its guides."""
    package = _package()
    assert linear.shape[:2] == albedo.shape[:2] == normal.shape[:2], (linear.shape, albedo.shape, normal.shape)
    guides = [np.ascontiguousarray(guide[..., :3], "f4") for guide in (albedo, normal)]
    color = np.ascontiguousarray(linear[..., :3], "f4")
    try:
        clean = package.denoise(color, albedo=guides[0], normal=guides[1], hdr=True)
    except (RuntimeError, OSError, ValueError) as error:
        raise UnavailableError(f"the picture cannot be denoised: {error}") from error
    return np.concatenate([clean, linear[..., 3:]], 2)


def denoise_flame(linear: np.ndarray, density: np.ndarray) -> np.ndarray:
    """(height, width, 4) float32 linear values of a flame without noise; density (height, width) counts its hits.

    The filter sees what is displayed, sRGB 0 to 1, since a flame's tone curve has been applied.
    """
    package = _package()
    light = np.log1p(density)
    guide = np.repeat((light / max(float(light.max()), 1e-9))[..., None], 3, 2)
    shown = linear_to_srgb(linear[..., :3], "u2").astype("f4") / 65535
    try:
        clean = package.denoise(shown, albedo=np.ascontiguousarray(guide, "f4"), hdr=False)
    except (RuntimeError, OSError, ValueError) as error:
        raise UnavailableError(f"the picture cannot be denoised: {error}") from error
    clean = np.clip(clean, 0, 1)
    decoded = np.where(clean <= 0.04045, clean / 12.92, ((clean + 0.055) / 1.055) ** 2.4)
    return np.concatenate([decoded.astype("f4"), linear[..., 3:]], 2)


def _package():
    try:
        import pyoidn
    except (ImportError, OSError) as error:
        raise UnavailableError(f"denoising needs the package pyoidn: {INSTALL} ({error})") from error
    return pyoidn
