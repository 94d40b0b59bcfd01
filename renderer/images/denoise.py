"""Denoises pictures on the host with Intel's Open Image Denoise, a neural filter (A. Afra 2019).

Albedo and normal guide the filter, each without its own noise; flames have neither, so the logarithm of their density
does. The filter comes with the optional package pyoidn, which only this module imports.
"""

from importlib.util import find_spec
from types import ModuleType

import numpy as np

from renderer.errors import UnavailableError
from renderer.formats.images import decode_srgb, linear_to_srgb
from renderer.system.install import pip_install


def install_line() -> str:
    """The command that brings pyoidn: 25 MB of networks that most installations do without."""
    return pip_install("denoise")


def is_installed() -> bool:
    """True if the package pyoidn is installed; it is not imported."""
    return find_spec("pyoidn") is not None


def check_installed() -> None:
    """Raises UnavailableError if pyoidn cannot be imported."""
    _package()


def denoise(linear: np.ndarray, **guides: np.ndarray) -> np.ndarray:
    """Removes noise from (height, width, 4) float32 linear values, guided by `albedo` and `normal` (height, width, 3).

    Without guides it goes by color alone. Alpha is kept. UnavailableError if pyoidn is missing or fails.
    """
    assert all(guide.shape[:2] == linear.shape[:2] for guide in guides.values()), linear.shape
    color = np.ascontiguousarray(linear[..., :3], "f4")
    # Guides are noisy too where the picture is blurred by focus or motion, or cut by leaves. The filter keeps every
    # edge of a guide, noise included, so the guides are filtered first.
    clean_guides = {name: _prefiltered(name, guide) for name, guide in guides.items()}
    clean = _denoised(color, **clean_guides, hdr=True, clean_aux=bool(guides))
    return np.concatenate([clean, linear[..., 3:]], 2)


def denoise_flame(linear: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Removes noise from (height, width, 4) float32 linear values of a flame; density (height, width) counts hits.

    The filter gets displayed sRGB values, 0 to 1, because a flame's tone curve has been applied already. Alpha is kept.
    UnavailableError if pyoidn is missing or fails.
    """
    light = np.log1p(density)
    guide = np.repeat((light / max(float(light.max()), 1e-9))[..., None], 3, 2)
    shown = linear_to_srgb(linear[..., :3], "u2").astype("f4") / 65535
    clean = _denoised(shown, albedo=np.ascontiguousarray(guide, "f4"), hdr=False)
    decoded = decode_srgb(np.clip(clean, 0, 1))
    return np.concatenate([decoded.astype("f4"), linear[..., 3:]], 2)


def _prefiltered(name: str, guide: np.ndarray) -> np.ndarray:
    """Removes noise from a guide (height, width, 3), "albedo" or "normal", by the network that is made for it alone."""
    guide = np.ascontiguousarray(guide[..., :3], "f4")
    package, clean = _package(), np.empty_like(guide)
    with package.Device() as device:
        device.commit()
        network = package.Filter(device)  # its own context manager would hide exceptions
        network.set_image(name, guide, package.OIDN_FORMAT_FLOAT3)
        network.set_image("output", clean, package.OIDN_FORMAT_FLOAT3)
        network.commit()
        network.execute()
        network.release()
        if error := device.get_error():
            raise UnavailableError(f"the picture cannot be denoised: {error}")
    return clean


def _denoised(color: np.ndarray, **options: np.ndarray | bool) -> np.ndarray:
    """Filters a color (height, width, 3) by pyoidn.denoise() with its options."""
    package = _package()
    try:
        return np.asarray(package.denoise(color, **options))
    except (RuntimeError, OSError, ValueError) as error:
        raise UnavailableError(f"the picture cannot be denoised: {error}") from error


def _package() -> ModuleType:
    try:
        import pyoidn
    except (ImportError, OSError) as error:
        raise UnavailableError(f"denoising needs the package pyoidn: {install_line()} ({error})") from error
    package: ModuleType = pyoidn
    return package
