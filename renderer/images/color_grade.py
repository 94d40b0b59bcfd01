"""Color grading for tone_mapping.py: white balance and contrast of radiance, and a look-up table of displayed colors.

grade_rows() packs all three into one table of float4 rows, which kernels and GLSL passes read
(shaders/images/color_grade.h describes the rows). Automatic exposure meters the radiance before grading.
"""

from functools import lru_cache

import numpy as np

from renderer.formats.cube import read_cube
from renderer.scene.scene import ToneMapping
from renderer.system.files import file_stamp

NEUTRAL_TEMPERATURE = 6500.0
TINT_SCALE = 3000  # tint 1 moves the light's white by 1/3000 in CIE 1960 (u, v), as in Adobe's DNG specification
SRGB_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
# Cone responses in which white points are adapted (Lam 1985, "Bradford").
XYZ_TO_CONES = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
HEADER_ROWS = 6


def is_graded(tone: ToneMapping) -> bool:
    """True if the grading changes a picture."""
    neutral = (NEUTRAL_TEMPERATURE, 0.0, 1.0, "")
    return (tone.temperature, tone.tint, tone.contrast, tone.lut) != neutral


def grade_rows(tone: ToneMapping) -> np.ndarray:
    """Returns the (n, 4) float32 table of a tone's grading; InputError for a damaged look-up table."""
    key = (tone.temperature, tone.tint, tone.contrast, tone.lut)
    return _grade_rows(*key, file_stamp(tone.lut))


@lru_cache(maxsize=8)
def _grade_rows(
    temperature: float, tint: float, contrast: float, lut: str, version: tuple[int, int] | None
) -> np.ndarray:
    """grade_rows() by the numbers that it depends on; `version` changes with the file."""
    table = read_cube(lut) if lut else None
    rows = np.zeros((HEADER_ROWS + (len(table.colors) if table else 0), 4), "f4")
    rows[:3, :3] = white_balance(temperature, tint)
    rows[0, 3] = contrast  # in the unused fourth number of the matrix's first row
    if table:
        rows[3, :2] = table.dimensions, table.size
        rows[4, :3] = 1 / np.subtract(table.high, table.low)
        rows[5, :3] = table.low
        rows[HEADER_ROWS:, :3] = table.colors
    return rows


def planckian_white(temperature: float) -> np.ndarray:
    """Returns CIE 1960 (u, v) of a black body, 1000 to 15000 K (M. Krystek, "An algorithm to calculate CCT", 1985)."""
    t = temperature
    u = (0.860117757 + 1.54118254e-4 * t + 1.28641212e-7 * t * t) / (1 + 8.42420235e-4 * t + 7.08145163e-7 * t * t)
    v = (0.317398726 + 4.22806245e-5 * t + 4.20481691e-8 * t * t) / (1 - 2.89741816e-5 * t + 1.61456053e-7 * t * t)
    return np.array([u, v])


def white_xyz(temperature: float, tint: float = 0.0) -> np.ndarray:
    """Returns XYZ with Y = 1 of a light at `temperature` on the Planckian locus, moved across the locus by `tint`."""
    ahead, behind = planckian_white(temperature * 1.001), planckian_white(temperature / 1.001)
    tangent = (behind - ahead) / np.linalg.norm(behind - ahead)  # towards red, where u grows
    u, v = planckian_white(temperature) + np.array([-tangent[1], tangent[0]]) * tint / TINT_SCALE
    x, y = 3 * u / (2 * u - 8 * v + 4), 2 * v / (2 * u - 8 * v + 4)
    return np.array([x / y, 1.0, (1 - x - y) / y])


def white_balance(temperature: float, tint: float) -> np.ndarray:
    """Returns the chromatic adaptation matrix (3, 3) in linear sRGB from the light's white to the white of 6500 K."""
    source = XYZ_TO_CONES @ white_xyz(temperature, tint)
    target = XYZ_TO_CONES @ white_xyz(NEUTRAL_TEMPERATURE)
    to_cones = XYZ_TO_CONES @ SRGB_TO_XYZ
    adaptation: np.ndarray = np.linalg.inv(to_cones) @ np.diag(target / source) @ to_cones
    return adaptation
