"""Light passes: layers of .exr files whose sum is the picture, by lobe and by light group.

With the setting `light_passes`, kernels add every contribution of a path not only to the film but also to a record of
its ray (shaders/raytracing/film/light_passes.h); all schedules do, and give the same bits. The layers by lobe are
`emission`, which is light that nothing has scattered, lamps and background seen by the camera; and for diffuse,
specular, transmission and, in scenes with fog or volumes, volume the light that a lobe of this kind scattered last
before the camera, `direct` from a lamp, or `indirect` after further bounces. The layers by lamp, if the settings have
light_groups, are `light_NAME` and `light_others`; they add up to the picture, too.
"""

import numpy as np

from renderer.gpu.device import Buffer
from renderer.raytracing.ray_buffers import BLOCK, block_counts, padded_rays
from renderer.raytracing.settings import OTHER_LIGHTS, Settings

# A ray's record: floats about its path, then floats of each pass; the same in light_passes.h.
LOBE_FLOATS, FLOATS_PER_PASS = 8, 6


def lobe_passes(settings: Settings) -> list[str]:
    """Returns the names of the passes by lobe, in the kernels' order; [] without light passes."""
    lobes = ["diffuse", "specular", "transmission", *(["volume"] if settings.has_volumes else [])]
    names = ["emission", *(f"{lobe}_{kind}" for lobe in lobes for kind in ("direct", "indirect"))]
    return names if settings.light_passes else []


def group_passes(settings: Settings) -> list[str]:
    """Returns the names of the passes by light group, in the kernels' order; [] without light groups or passes."""
    names = [OTHER_LIGHTS, *(group.name for group in settings.light_groups)] if settings.light_groups else []
    return [f"light_{name}" for name in names] if settings.light_passes else []


def pass_floats(settings: Settings) -> int:
    """Returns the number of floats of a ray's record."""
    return LOBE_FLOATS + FLOATS_PER_PASS * len(lobe_passes(settings) + group_passes(settings))


def pass_bytes(settings: Settings, size: tuple[int, int]) -> int:
    """Returns the bytes of the records of a picture or tile of `size` (width, height); 0 without light passes."""
    return 4 * padded_rays(size) * pass_floats(settings) if settings.light_passes else 0


def read_passes(records: Buffer, settings: Settings, counts: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the mean (height, width, 3) float32 of each pass; `counts` (height, width) are the pixels' samples.

    Records are stored block by block, see BLOCK. A pass has six floats of a record: RGB of a sum, then of the sum's
    rounding errors.
    """
    height, width = counts.shape
    (columns, rows), (across, down) = block_counts((width, height)), BLOCK
    blocks = records.read()[: rows * columns * across * down].reshape(rows, columns, down, across, -1)
    layers = {}
    for k, name in enumerate(lobe_passes(settings) + group_passes(settings)):
        first = LOBE_FLOATS + FLOATS_PER_PASS * k
        sums = blocks[..., first : first + 3].astype("f8") + blocks[..., first + 3 : first + 6]
        pixels = sums.transpose(0, 2, 1, 3, 4).reshape(rows * down, columns * across, 3)[:height, :width]
        layers[name] = (pixels / counts[..., None]).astype("f4")
    return layers
