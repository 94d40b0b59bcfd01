"""The view "light picks": the lights that next-event estimation samples at one pixel, drawn and as numbers.

A pick is the light that one sample of the pixel selects at its first surface. The kernel
shaders/raytracing/lights/light_picks.cu repeats the picture's random numbers, so the picks are the picture's. Each
light has a row: how often and with which probability it is picked, and the radiance that it contributes. Points over
the picture mark the sampled positions on the lights.
"""

from typing import Any, NamedTuple

import numpy as np

from renderer.bvh.primitives import material_of, radius_of
from renderer.formats.images import LUMINANCE
from renderer.gpu.device import Buffer
from renderer.images.algorithm_view import AlgorithmView, Mark, StepPicture
from renderer.images.lines import line_pixels
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import kernel_source
from renderer.raytracing.lights.environment import EnvironmentCdf
from renderer.raytracing.lights.light_buffer import INSTANCED_LIGHT, LIGHT_TREE_ID, LightSampler
from renderer.raytracing.path_trace import project
from renderer.raytracing.settings import Settings
from renderer.raytracing.traversal_cost import clip_to_camera

VIEW = "light picks"
SAMPLES = 1024  # samples of the pixel that are traced
# Outcomes, in the order of light_picks.cu: no surface; no light that faces the surface; a light of whose light the
# surface reflects nothing; an occluded light; a light that arrives.
MISSED, FAILED, UNUSED, BLOCKED, LIT = range(5)
COLORS = {LIT: (255, 230, 80), BLOCKED: (240, 70, 60), UNUSED: (150, 150, 150)}
CELLS = (16, 8)  # columns and rows of the environment's cells; a cell is shown as one light
MAX_ROWS = 12  # lights with a row each; the others share one row
DIM = 90  # opacity, of 255, of the points on lights that the view's step does not select
DISC = [(dx, dy) for dx in range(-2, 3) for dy in range(-2, 3) if dx * dx + dy * dy < 6]  # pixels of a point

Pixel = tuple[int, int]  # x, y
Size = tuple[int, int]  # width, height


class Picks(NamedTuple):
    """The lights that n samples of a pixel picked; row i belongs to sample i."""

    ids: np.ndarray  # (n,) light ids of shaders/raytracing/lights/light_rows.h
    probability: np.ndarray  # (n,) of selecting that light
    outcome: np.ndarray  # (n,) MISSED to LIT
    points: np.ndarray  # (n, 4) unit direction and distance to the light; the largest float32 if infinite
    contribution: np.ndarray  # (n,) luminance that the sample adds; 0 for a blocked light
    origins: np.ndarray  # (n, 3) the surface points


NO_PICKS = Picks(np.zeros(0, "i4"), *(np.zeros(shape) for shape in (0, 0, (0, 4), 0, (0, 3))))


class Group(NamedTuple):
    """The picks of one light, or of one cell of the environment."""

    name: str
    chosen: np.ndarray  # (n,) bool: mask of its picks
    probability: float  # the probability of picking this light


def trace_picks(
    geometry: Geometry,
    materials: Buffer,
    lights: LightSampler,
    params: np.ndarray,
    pixel: Pixel,
    constants: dict[str, object],
) -> Picks:
    """Traces SAMPLES samples of a pixel (x, y) to their first surfaces and returns the lights that they pick there."""
    device = geometry.device
    out = device.buffer((SAMPLES, 4, 4))
    kernel = device.kernel(kernel_source("light_picks"), "light_picks", group_size=64, **constants | {"LIGHT_PICKS": 1})
    kernel(SAMPLES, params, *pixel, SAMPLES, out, *geometry.kernel_args, materials, lights.buffer)
    rows = out.read()  # four rows a sample, described in light_picks.cu; the first one: id, probability, pdf, outcome
    numbers = rows[:, 0]
    ids = np.ascontiguousarray(numbers[:, 0]).view("i4")
    contribution = rows[:, 2, :3].astype("f8") @ LUMINANCE
    return Picks(ids, numbers[:, 1], numbers[:, 3].astype("i4"), rows[:, 1], contribution, rows[:, 3, :3])


def environment_cells(directions: np.ndarray, rotation: float, cdf: EnvironmentCdf) -> tuple[np.ndarray, np.ndarray]:
    """Returns the cell (n,) of each direction (n, 3), and the probability of each cell; cells count row by row.

    `rotation` is the environment's rotation in turns.
    """
    probabilities = cdf.cell_probabilities
    height, width = probabilities.shape
    x, y, z = directions.T.astype("f8")
    u = (np.arctan2(x, -z) / (2 * np.pi) + 0.5 + rotation) % 1
    v = np.arccos(np.clip(y, -1, 1)) / np.pi
    column, row = (np.minimum((fraction * n).astype("i8"), n - 1) for fraction, n in ((u, width), (v, height)))
    columns, rows = CELLS
    cell = row * rows // height * columns + column * columns // width
    cell_row, cell_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    cells = cell_row[:, None] * columns + cell_column
    return cell, np.bincount(cells.ravel(), probabilities.ravel(), minlength=columns * rows)


def group_picks(picks: Picks, lights: LightSampler, geometry: Geometry, settings: Settings) -> list[Group]:
    """Groups the picks by light, and by cell of the environment; the most frequent group is first."""
    is_pick = (picks.outcome > MISSED) & (picks.ids != LIGHT_TREE_ID)
    groups: list[Group] = []
    for light_id in np.unique(picks.ids[is_pick]).tolist():
        chosen = is_pick & (picks.ids == light_id)
        name, probability = light_name(light_id, lights, geometry, settings), float(picks.probability[chosen].mean())
        if name != "environment" or lights.environment is None:
            groups.append(Group(name, chosen, probability))
            continue
        rotation = float(lights.fields["environment_rotation"])
        cells, probabilities = environment_cells(picks.points[:, :3], rotation, lights.environment)
        for cell in np.unique(cells[chosen]).tolist():
            cell_probability = probability * float(probabilities[cell])
            groups.append(Group(f"environment {cell_name(cell, rotation)}", chosen & (cells == cell), cell_probability))
    groups.sort(key=lambda group: -int(group.chosen.sum()))
    rest = groups[MAX_ROWS:]
    if len(rest) > 1:
        others = np.logical_or.reduce([group.chosen for group in rest])
        groups = [*groups[:MAX_ROWS], Group(f"{len(rest)} others", others, sum(group.probability for group in rest))]
    return groups


def light_name(light_id: int, lights: LightSampler, geometry: Geometry, settings: Settings) -> str:
    """Returns the name of a light for the view's rows: "sun 0", "sphere 3 (lamp)", ..."""
    if light_id >= INSTANCED_LIGHT:
        return f"instanced triangle {light_id - INSTANCED_LIGHT}"
    if light_id >= 0:
        row = geometry.primitives.rows[light_id]
        material, number = int(material_of(row)), int(row["v0"].view("i4")[3])
        kind = "sphere" if radius_of(row) > 0 else "triangle"
        materials = settings.materials  # materials of models, which have no names, follow these
        name = materials[material].name if material < len(materials) else f"material {material}"
        return f"{kind} {number} ({name})"
    index, suns = ~light_id, int(lights.fields["sun_count"])
    if index < suns:
        return f"sun {index}"
    points = len(settings.point_lights)
    return f"point light {index - suns}" if index < suns + points else "environment"


def cell_name(cell: int, rotation: float) -> str:
    """Formats azimuth (0 is -z, 90 is +x) and elevation of the center of a cell of the environment, in degrees."""
    row, column = divmod(cell, CELLS[0])
    azimuth = 360 * ((column + 0.5) / CELLS[0] - 0.5 - rotation) % 360
    return f"{azimuth:.0f}, {90 - 180 * (row + 0.5) / CELLS[1]:+.0f} degrees"


def view_rows(picks: Picks, groups: list[Group]) -> tuple[dict[str, Any], ...]:
    """Returns a row for each group: picks, their fraction of the samples, probability, and contribution."""
    count, total = len(picks.ids), picks.contribution.sum()
    rows = []
    for name, chosen, probability in groups:
        number, contribution = int(chosen.sum()), float(picks.contribution[chosen].sum())
        rows.append({
            "light": name, "picks": number, "of samples": number / count, "probability": probability,
            "blocked": float((picks.outcome[chosen] == BLOCKED).mean()), "brings": contribution / count,
            "of all light": contribution / float(total) if total else 0.0,
        })  # fmt: skip
    return tuple(rows)


def light_view(
    picks: Picks, groups: list[Group], params: np.ndarray, projection: str, pixel: Pixel, size: Size
) -> AlgorithmView:
    """Returns the view: picks as points over the picture, and a line to each light; step k highlights group k."""
    x, y = ((n + 0.5) / length for n, length in zip(pixel, size, strict=True))
    pixel_mark = Mark(x, y, (1.0, 1.0, 1.0, 0.9), 3.0, f"pixel {pixel[0]}, {pixel[1]}")
    if not groups:
        is_empty = len(picks.ids) > 0 and bool((picks.outcome == MISSED).all())
        why = "nothing is there" if is_empty else "no light is picked there"
        # StepPicture: pixels, values, meaning, legend, marks
        return AlgorithmView("light", ({"light": why},), lambda _: StepPicture(None, None, why, None, (pixel_mark,)))
    rows = view_rows(picks, groups)
    can_draw = projection in ("perspective", "orthographic")
    points = _ProjectedPoints(picks, params, projection == "orthographic", size) if can_draw else None

    def step(index: int) -> StepPicture:
        """The picture of group number `index`, whose points are bright."""
        if points is None:
            text = f"picks are not drawn in {projection} pictures; Alt+click chooses the pixel"
            return StepPicture(None, None, f"{rows[index]['light']}; {text}", None, (pixel_mark,))
        pixels = np.zeros((size[1], size[0], 4), "u1")
        marks = [pixel_mark]
        for k, group in sorted(enumerate(groups), key=lambda item: item[0] == index):  # group `index` on top
            points.draw(pixels, group.chosen, picks.outcome, 255 if k == index else DIM)
            center = points.center(group.chosen)
            if center and (k == index or k < 4):  # the four most frequent groups are always marked
                marks.append(Mark(*center, (1.0, 1.0, 1.0, 0.6), 2.0, f"{k}: {rows[k]['of samples']:.1%}"))
        legend = "yellow: the light arrives; red: blocked; gray: not reflected. Alt+click chooses the pixel"
        meaning = f"{rows[index]['light']}, {rows[index]['picks']} of {len(picks.ids)} samples. {legend}"
        return StepPicture(pixels, None, meaning, None, tuple(marks), True)

    return AlgorithmView("light", rows, step)


class _ProjectedPoints:
    """The sampled points on the lights as the camera sees them."""

    def __init__(self, picks: Picks, params: np.ndarray, orthographic: bool, size: Size):
        self._size, self._params, self._orthographic = size, params, orthographic
        used = picks.outcome > FAILED
        # Lights that are farther from the surface than `far` are drawn at that distance.
        far = 3 * float(np.linalg.norm(picks.origins[used].astype("f8") - params["eye"][:3], axis=1).max(initial=1.0))
        length = np.minimum(picks.points[:, 3:].astype("f8"), far)
        self._points = picks.origins + picks.points[:, :3] * length
        self._origin = picks.origins[picks.outcome > MISSED].mean(0)
        self._projected, in_front = project(params, self._points, orthographic)
        self._is_visible = used & in_front & ((self._projected >= 0) & (self._projected < 1)).all(1)

    def center(self, chosen: np.ndarray) -> tuple[float, float] | None:
        """The mean of the visible chosen points, in fractions of the picture; None if none is visible."""
        visible = chosen & self._is_visible
        x, y = self._projected[visible].mean(0).tolist() if visible.any() else (0.0, 0.0)
        return (x, y) if visible.any() else None

    def draw(self, pixels: np.ndarray, chosen: np.ndarray, outcome: np.ndarray, opacity: int) -> None:
        """Draws the chosen points, and a line from the surface to their mean."""
        (width, height), mean = self._size, self._points[chosen].mean(0)
        line, kept = clip_to_camera(np.stack([self._origin, mean])[None].astype("f8"), self._params)
        if kept.any():
            # Both ends are in front of the camera; line_pixels() also returns the number of each pixel's line.
            ends, _ = project(self._params, line.reshape(-1, 3), self._orthographic)
            x, y, _ = line_pixels(ends.reshape(-1, 2, 2) * self._size, width, height)
            pixels[y, x] = (*COLORS[LIT], opacity // 2)
        for kind, color in COLORS.items():
            points = (self._projected[chosen & self._is_visible & (outcome == kind)] * self._size).astype("i8")
            for dx, dy in DISC:
                x, y = (points + (dx, dy)).T
                inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
                pixels[y[inside], x[inside]] = (*color, opacity)
