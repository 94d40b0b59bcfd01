"""Rough metals as Mitsuba 3 draws them, kept as numbers, since it is not installed where the tests run.

    pip install mitsuba && python tests/raytracing/golden/make_mitsuba_conductor.py
    tests/raytracing/golden/mitsuba_conductor.npz

Its `principled` surface is ours without what is scattered more than once: GGX, Schlick's term, alpha the square of
the roughness. Of a plate under a lamp and a point light, the means of tiles of 8 x 8 pixels over batches of samples.
"""

import sys

import numpy as np

from renderer.raytracing.settings import Material, PointLight, Quad, Settings
from renderer.scene.cameras import Camera

ROUGHNESSES = (0.2, 0.35, 0.5)
COLOR = (0.9, 0.6, 0.3)
SIZE = (24, 16)
BATCHES, SAMPLES = 16, 1024


def plate(roughness: float) -> Settings:
    """A metal plate, seen from far away and aslant, that reflects light once."""
    lamp = ((-1.5, 4.0, -3.5), (1.0, 4.0, -3.5), (1.0, 4.5, -1.5), (-1.5, 4.5, -1.5))
    return Settings(
        view=Camera((0.0, 40.0, 45.0), fov_degrees=4.0), max_depth=2, rr_depth=16,
        materials=(Material("metal", "conductor", COLOR, roughness=roughness),
                   Material("lamp", "emitter", emission=(8.0, 6.0, 5.0))),
        quads=(Quad("metal", ((-9.0, 0.0, 9.0), (9.0, 0.0, 9.0), (9.0, 0.0, -9.0), (-9.0, 0.0, -9.0))),
               Quad("lamp", lamp)),
        point_lights=(PointLight((1.5, 5.0, -4.0), (20.0, 25.0, 30.0)),),
    )  # fmt: skip


def tiles(pixels: np.ndarray) -> np.ndarray:
    """Means (2, 3, 3) of tiles of 8 x 8 pixels."""
    return pixels.reshape(2, 8, 3, 8, 3).mean((1, 3))


def batches_of_mitsuba(roughness: float) -> np.ndarray:
    import mitsuba as mi

    mi.set_variant("scalar_rgb")
    settings = plate(roughness)
    camera, (metal, lamp), point = settings.view, settings.quads, settings.point_lights[0]

    def rgb(color):
        return {"type": "rgb", "value": list(map(float, color))}

    def quad(shape):
        """Mitsuba's rectangle is -1 to 1 in x and y, and faces +z."""
        a, b, c, d = np.array(shape.corners)
        sides = (b - a) / 2, (d - a) / 2
        normal = np.cross(*sides) / np.linalg.norm(np.cross(*sides))
        matrix = np.eye(4)
        matrix[:3] = np.stack([*sides, normal, (a + c) / 2], 1)
        return {"type": "rectangle", "to_world": mi.ScalarTransform4f(matrix.tolist())}

    surface = {"type": "principled", "base_color": rgb(COLOR), "metallic": 1.0, "roughness": roughness}
    look = mi.ScalarTransform4f().look_at(list(camera.position), list(camera.target), [0, 1, 0])
    scene = mi.load_dict({
        "type": "scene", "integrator": {"type": "path", "max_depth": 2},
        "sensor": {
            "type": "perspective", "fov": camera.fov_degrees, "fov_axis": "y", "to_world": look,
            "sampler": {"type": "independent"},
            "film": {"type": "hdrfilm", "width": SIZE[0], "height": SIZE[1], "rfilter": {"type": "box"},
                     "pixel_format": "rgb"},
        },
        "metal": quad(metal) | {"bsdf": {"type": "twosided", "bsdf": surface}},
        "lamp": quad(lamp) | {"emitter": {"type": "area", "radiance": rgb(settings.materials[1].emission)}},
        "point": {"type": "point", "position": list(point.position), "intensity": rgb(point.intensity)},
    })  # fmt: skip
    return np.array([tiles(np.array(mi.render(scene, spp=SAMPLES, seed=n), "f8")) for n in range(BATCHES)])


if __name__ == "__main__":
    found = np.array([batches_of_mitsuba(roughness) for roughness in ROUGHNESSES])
    np.savez_compressed(sys.argv[1], means=found.mean(1).astype("f4"),
                        errors=(found.std(1, ddof=1) / np.sqrt(BATCHES)).astype("f4"))  # fmt: skip
