"""Which lights next-event estimation picks at one pixel, how often, and what they bring: numbers, and points and lines.

The picks are those of the picture's own samples: shaders/raytracing/light_picks.cu.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from renderer.gpu.device import Buffer, Device
from renderer.images.algorithm_view import AlgorithmView, Mark, StepPicture
from renderer.images.lines import line_pixels
from renderer.raytracing.environment import EnvironmentCdf
from renderer.raytracing.geometry import Geometry
from renderer.raytracing.kernels import light_picks_source
from renderer.raytracing.lights import INSTANCED_LIGHT, LIGHT_TREE_ID, LUMINANCE, LightSampler
from renderer.raytracing.path_trace import project
from renderer.raytracing.settings import Settings
from renderer.raytracing.traversal_cost import before_camera

VIEW = "light picks"
SAMPLES = 1024  # of the pixel
MISSED, FAILED, UNUSED, BLOCKED, LIT = range(5)  # outcomes, in the order of light_picks.cu
COLORS = {LIT: (255, 230, 80), BLOCKED: (240, 70, 60), UNUSED: (150, 150, 150)}
CELLS = (16, 8)  # of the environment that are counted apart, columns and rows
MAX_ROWS = 12  # of lights; the others are one row
DIM = 90  # opacity of the lights that are not chosen, of 255
DISC = [(dx, dy) for dx in range(-2, 3) for dy in range(-2, 3) if dx * dx + dy * dy < 6]


class Picks(NamedTuple):
    """What n samples of a pixel picked."""

    ids: np.ndarray  # (n,) light ids of shaders/raytracing/lights.h
    choice: np.ndarray  # (n,) the probability with which the light was chosen
    outcome: np.ndarray  # (n,) MISSED to LIT
    points: np.ndarray  # (n, 4) direction and distance, float32's largest for infinite lights
    brought: np.ndarray  # (n,) luminance of the contribution; 0 where it is blocked
    origins: np.ndarray  # (n, 3) the surface points


NO_PICKS = Picks(np.zeros(0, "i4"), *(np.zeros(shape) for shape in (0, 0, (0, 4), 0, (0, 3))))


class Group(NamedTuple):
    """The picks of one light, or of one cell of the environment."""

    name: str
    chosen: np.ndarray  # (n,) bool
    probability: float  # of such a pick


def trace_picks(
    device: Device,
    geometry: Geometry,
    materials: Buffer,
    lights: LightSampler,
    params: Any,
    pixel: tuple[int, int],
    constants: dict[str, object],
) -> Picks:
    """The light samples at the first surfaces of SAMPLES samples of a pixel."""
    out = device.buffer((SAMPLES, 4, 4))
    kernel = device.kernel(light_picks_source(), "light_picks", group_size=64, **constants, LIGHT_PICKS=1)
    kernel(SAMPLES, params, *pixel, SAMPLES, out, *geometry.kernel_args, materials, lights.buffer)
    rows = out.read()
    numbers = rows[:, 0]
    ids = np.ascontiguousarray(numbers[:, 0]).view("i4")
    brought = rows[:, 2, :3].astype("f8") @ LUMINANCE
    return Picks(ids, numbers[:, 1], numbers[:, 3].astype("i4"), rows[:, 1], brought, rows[:, 3, :3])


def environment_cells(directions: np.ndarray, rotation: float, cdf: EnvironmentCdf) -> tuple[np.ndarray, np.ndarray]:
    """The cell (n,) of CELLS, by rows, of directions (n, 3), and the probabilities of the cells."""
    height, width = len(cdf.marginal) - 1, cdf.conditional.shape[1] - 1
    x, y, z = directions.T.astype("f8")
    u = (np.arctan2(x, -z) / (2 * np.pi) + 0.5 + rotation) % 1
    v = np.arccos(np.clip(y, -1, 1)) / np.pi
    column, row = (np.minimum((at * n).astype("i8"), n - 1) for at, n in ((u, width), (v, height)))
    columns, rows = CELLS
    cell = row * rows // height * columns + column * columns // width
    total = np.diff(cdf.marginal.astype("f8"))[:, None] * np.diff(cdf.conditional.astype("f8"), axis=1) / 2.0**64
    of_row, of_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    return cell, np.bincount((of_row[:, None] * columns + of_column).ravel(), total.ravel(), minlength=columns * rows)


def group_picks(picks: Picks, lights: LightSampler, geometry: Geometry, settings: Settings) -> list[Group]:
    """The picks by light, those of the environment by cell, the most frequent first."""
    is_pick = (picks.outcome > MISSED) & (picks.ids != LIGHT_TREE_ID)
    groups: list[Group] = []
    for light_id in np.unique(picks.ids[is_pick]).tolist():
        chosen = is_pick & (picks.ids == light_id)
        name, probability = light_name(light_id, lights, geometry, settings), float(picks.choice[chosen].mean())
        if name != "environment" or lights.environment is None:
            groups.append(Group(name, chosen, probability))
            continue
        rotation = float(lights.fields["environment_rotation"])
        cells, probabilities = environment_cells(picks.points[:, :3], rotation, lights.environment)
        for cell in np.unique(cells[chosen]).tolist():
            of_cell = probability * float(probabilities[cell])
            groups.append(Group(f"environment {cell_name(cell, rotation)}", chosen & (cells == cell), of_cell))
    groups.sort(key=lambda group: -int(group.chosen.sum()))
    rest = groups[MAX_ROWS:]
    if len(rest) > 1:
        others = np.logical_or.reduce([group.chosen for group in rest])
        groups = [*groups[:MAX_ROWS], Group(f"{len(rest)} others", others, sum(group.probability for group in rest))]
    return groups


def light_name(light_id: int, lights: LightSampler, geometry: Geometry, settings: Settings) -> str:
    """A light of the table in words."""
    if light_id >= INSTANCED_LIGHT:
        return f"instanced triangle {light_id - INSTANCED_LIGHT}"
    if light_id >= 0:
        row = geometry.primitives.rows[light_id]
        material, number = int(row["edge1"].view("i4")[3]), int(row["v0"].view("i4")[3])
        kind = "sphere" if row["edge2"][3] > 0 else "triangle"
        own = settings.materials
        return f"{kind} {number} ({own[material].name if material < len(own) else f'material {material}'})"
    index, suns = ~light_id, int(lights.fields["sun_count"])
    if index < suns:
        return f"sun {index}"
    points = len(settings.point_lights)
    return f"point light {index - suns}" if index < suns + points else "environment"


def cell_name(cell: int, rotation: float) -> str:
    """Where a cell of the environment is: its center's azimuth, 0 for -z and 90 for +x, and its elevation."""
    row, column = divmod(cell, CELLS[0])
    azimuth = 360 * ((column + 0.5) / CELLS[0] - 0.5 - rotation) % 360
    return f"{azimuth:.0f}, {90 - 180 * (row + 0.5) / CELLS[1]:+.0f} degrees"


def rows_of(picks: Picks, groups: list[Group]) -> tuple[dict[str, Any], ...]:
    """The numbers of each light: picks, their fraction of the samples, its probability, and what it brings."""
    count, total = len(picks.ids), picks.brought.sum()
    rows = []
    for name, chosen, probability in groups:
        number, brought = int(chosen.sum()), float(picks.brought[chosen].sum())
        rows.append({
            "light": name, "picks": number, "of samples": number / count, "probability": probability,
            "blocked": float((picks.outcome[chosen] == BLOCKED).mean()), "brings": brought / count,
            "of all light": brought / float(total) if total else 0.0,
        })  # fmt: skip
    return tuple(rows)


def light_view(
    picks: Picks,
    groups: list[Group],
    params: np.ndarray,
    projection: str,
    pixel: tuple[int, int],
    size: tuple[int, int],
) -> AlgorithmView:
    """The picks as points over the picture, and a line to each light; step k shows those of light k brightly."""
    at = Mark(
        (pixel[0] + 0.5) / size[0], (pixel[1] + 0.5) / size[1], (1.0, 1.0, 1.0, 0.9), 3.0, "pixel {}, {}".format(*pixel)
    )
    if not groups:
        is_empty = len(picks.ids) > 0 and bool((picks.outcome == MISSED).all())
        why = "nothing is there" if is_empty else "no light is picked there"
        return AlgorithmView("light", ({"light": why},), lambda _: StepPicture(None, None, why, None, (at,)))
    rows = rows_of(picks, groups)
    legend = "yellow: the light arrives; red: blocked; gray: not reflected. Alt+click chooses the pixel"
    if projection not in ("perspective", "orthographic"):
        text = f"picks are not drawn in {projection} pictures; Alt+click chooses the pixel"
        return AlgorithmView(
            "light", rows, lambda k: StepPicture(None, None, f"{rows[k]['light']}; {text}", None, (at,))
        )
    seen = _Seen(picks, params, projection == "orthographic", size)
    step = _steps(seen, picks, groups, rows, at, legend)
    return AlgorithmView("light", rows, step)


def _steps(
    seen: "_Seen", picks: Picks, groups: list[Group], rows: tuple[dict[str, Any], ...], at: Mark, legend: str
) -> Callable[[int], StepPicture]:
    def step(index: int) -> StepPicture:
        pixels = np.zeros((seen.size[1], seen.size[0], 4), "u1")
        marks = [at]
        for k, group in sorted(enumerate(groups), key=lambda item: item[0] == index):
            seen.draw(pixels, group.chosen, picks.outcome, 255 if k == index else DIM)
            place, is_seen = seen.center(group.chosen)
            if is_seen and (k == index or k < 4):
                marks.append(Mark(*place, (1.0, 1.0, 1.0, 0.6), 2.0, f"{k}: {rows[k]['of samples']:.1%}"))
        meaning = f"{rows[index]['light']}, {rows[index]['picks']} of {len(picks.ids)} samples. {legend}"
        return StepPicture(pixels, None, meaning, None, tuple(marks), True)

    return step


class _Seen:
    """Where the camera sees the points on the lights."""

    def __init__(self, picks: Picks, params: np.ndarray, orthographic: bool, size: tuple[int, int]):
        self.size, self._params, self._orthographic = size, params, orthographic
        used = picks.outcome > FAILED
        far = 3 * float(np.linalg.norm(picks.origins[used].astype("f8") - params["eye"][:3], axis=1).max(initial=1.0))
        length = np.minimum(picks.points[:, 3:].astype("f8"), far)
        self.points = picks.origins + picks.points[:, :3] * length
        self._origin = picks.origins[picks.outcome > MISSED].mean(0)
        at, before = project(params, self.points, orthographic)
        self._at, self._is_seen = at, used & before & ((at >= 0) & (at < 1)).all(1)

    def center(self, chosen: np.ndarray) -> tuple[tuple[float, float], bool]:
        """The mean place of chosen points in fractions of the picture, and whether one of them is seen."""
        seen = chosen & self._is_seen
        x, y = self._at[seen].mean(0).tolist() if seen.any() else (0.0, 0.0)
        return (x, y), bool(seen.any())

    def draw(self, pixels: np.ndarray, chosen: np.ndarray, outcome: np.ndarray, opacity: int) -> None:
        """Draws the chosen points, and a line to their middle from the surface."""
        mean = self.points[chosen].mean(0)
        line, kept = before_camera(np.stack([self._origin, mean])[None].astype("f8"), self._params)
        if kept.any():
            at, _ = project(self._params, line.reshape(-1, 3), self._orthographic)
            x, y, _ = line_pixels(at.reshape(-1, 2, 2) * self.size, *self.size)
            pixels[y, x] = (*COLORS[LIT], opacity // 2)
        for kind, color in COLORS.items():
            points = (self._at[chosen & self._is_seen & (outcome == kind)] * self.size).astype("i8")
            for dx, dy in DISC:
                x, y = (points + (dx, dy)).T
                inside = (x >= 0) & (y >= 0) & (x < self.size[0]) & (y < self.size[1])
                pixels[y[inside], x[inside]] = (*color, opacity)
