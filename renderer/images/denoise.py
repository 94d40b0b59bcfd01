"""Denoising by Intel's Open Image Denoise, guided by albedo and normal: a neural filter on the host (A. Afra 2019).

It comes with the optional package pyoidn, whose only user this is.
"""

import numpy as np

from renderer.errors import UnavailableError


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


def _package():
    try:
        import pyoidn  # 25 MB of networks that most installations do without
    except (ImportError, OSError) as error:
        raise UnavailableError(f"denoising needs the package pyoidn: pip install pyoidn ({error})") from error
    return pyoidn
