"""Photometric files (IES LM-63) of point lights: the luminous intensity by direction, as rows of the light buffer.

light_buffer.py stores profile_rows() on the device, where lights/light_profile.h interpolates them.
"""

from pathlib import Path

import numpy as np

from renderer.errors import InputError
from renderer.formats.ies import IesProfile, read_ies
from renderer.formats.linked import cached_by_file
from renderer.raytracing.settings import PointLight


@cached_by_file(64)
def load_profile(path: Path) -> IesProfile:
    """Reads the photometric profile of an .ies file, or takes it from the cache; raises InputError."""
    if path.suffix.lower() != ".ies":
        raise InputError(f"{path}: no photometric file; allowed is .ies")
    return read_ies(path)


def profile_axes(light: PointLight) -> np.ndarray:
    """Returns a profile's unit axes (3, 3): vertical angle 0, then vertical angle 90 at horizontal angles 0 and 90.

    For a light that points down, the horizontal angles 0 and 90 are at +x and -z, counter-clockwise seen from above.
    Other lights are rotated from there by the least angle; a light that points up is rotated about x.
    """
    down = np.array(light.direction, "f8") / np.linalg.norm(light.direction)
    angle = np.radians(light.rotation_degrees)
    first = np.array([[np.cos(angle), 0, -np.sin(angle)], [-np.sin(angle), 0, -np.cos(angle)]])
    axis, cosine = np.cross([0.0, -1.0, 0.0], down), -down[1]
    if cosine < -0.9999999:
        return np.array([down, *(first * [1, -1, -1])])
    # Rodrigues's rotation by the angle between the directions: v + axis x v + axis x (axis x v) / (1 + cosine)
    turned = [v + np.cross(axis, v) + np.cross(axis, np.cross(axis, v)) / (1 + cosine) for v in first]
    return np.array([down, *turned])


def profile_rows(lights: list[PointLight], first: int) -> list[np.ndarray]:
    """Returns arrays of rows (k, 4), stored from row `first` on: three rows a light, then each file's data.

    A light's rows are its axes, and in w the first row of its file's data and the numbers of vertical and of horizontal
    angles. A file's data are these angles, then the candela.
    """
    records = np.zeros((len(lights), 3, 4), "f4")
    data: list[np.ndarray] = []
    first_rows: dict[str, int] = {}  # index of the first row of each file's data
    row = first + 3 * len(lights)
    for record, light in zip(records, lights, strict=True):
        profile = load_profile(light.file)
        if light.file not in first_rows:
            first_rows[light.file] = row
            values = np.concatenate([profile.vertical, profile.horizontal, profile.candela.ravel()])
            data.append(np.pad(values, (0, -len(values) % 4)).reshape(-1, 4))
            row += len(data[-1])
        record[:, :3] = profile_axes(light)
        record.view("i4")[:, 3] = first_rows[light.file], len(profile.vertical), len(profile.horizontal)
    return [records.reshape(-1, 4), *data]
