"""The view of light picks: against the picture of the same samples, algebra, and sums over a sky."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.pictures.raytrace import Picture
from renderer.raytracing.kernels import launch_params
from renderer.raytracing.lights.environment import environment_cdf
from renderer.raytracing.lights.light_picks import (
    BLOCKED,
    CELLS,
    LIT,
    MAX_ROWS,
    MISSED,
    SAMPLES,
    UNUSED,
    Group,
    Picks,
    cell_name,
    environment_cells,
    group_picks,
    light_view,
    view_rows,
)
from renderer.raytracing.path_trace import project
from renderer.raytracing.settings import Material, PointLight, Quad, Settings, Sphere
from renderer.scene.cameras import Camera
from tests.raytracing.test_render import render

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])


def directions(rng, count):
    out = rng.normal(size=(count, 3))
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def picks(ids, outcome, points=None, brought=None):
    count = len(ids)
    points = np.tile([0.0, 1.0, 0.0, 5.0], (count, 1)) if points is None else points
    brought = np.zeros(count) if brought is None else np.asarray(brought)
    return Picks(np.asarray(ids, "i4"), np.full(count, 0.5), np.asarray(outcome), points, brought, np.zeros((count, 3)))


def test_cells_of_a_uniform_sky_have_the_probability_of_their_solid_angle(rng):
    cdf = environment_cdf(np.ones((64, 128, 3), "f4"))
    found = directions(rng, 40000)
    cells, probabilities = environment_cells(found, 0.1, cdf)
    columns, rows = CELLS
    theta = np.linspace(0, np.pi, rows + 1)
    wanted = np.repeat((np.cos(theta[:-1]) - np.cos(theta[1:])) / 2 / columns, columns)
    assert np.allclose(probabilities, wanted, atol=1e-3) and probabilities.sum() == pytest.approx(1)
    counts = np.bincount(cells, minlength=columns * rows)
    assert (np.abs(counts - 40000 * wanted) < 5 * np.sqrt(40000 * wanted) + 5).all()
    azimuth, elevation, unit = cell_name(int(cells[0]), 0.1).replace(",", "").split(" ")
    assert unit == "degrees"
    x, y, z = found[0]
    apart = (np.degrees(np.arctan2(x, -z)) - float(azimuth) + 180) % 360 - 180
    assert abs(apart) <= 180 / columns + 1 and abs(np.degrees(np.arcsin(y)) - float(elevation)) <= 90 / rows + 1


def test_numbers_of_each_light(rng):
    found = picks([~0, ~0, ~1, ~1, ~1, 0], [LIT, BLOCKED, LIT, UNUSED, LIT, MISSED], None, [2.0, 0, 1.0, 0, 1.0, 0])
    settings = Settings(view=Camera((0, 0, 5), (0, 0, 0)), point_lights=(PointLight(), PointLight()))
    lights = SimpleNamespace(fields={"sun_count": 0}, environment=None)
    groups = group_picks(found, lights, None, settings)
    rows = view_rows(found, groups)
    assert [row["light"] for row in rows] == ["point light 1", "point light 0"]
    assert [row["picks"] for row in rows] == [3, 2]
    assert rows[1]["of samples"] == pytest.approx(1 / 3) and rows[1]["blocked"] == 0.5
    assert rows[0]["of all light"] == rows[1]["of all light"] == 0.5 and rows[0]["brings"] == pytest.approx(1 / 3)


def test_rare_lights_are_one_row():
    ids = np.repeat(~np.arange(20), 20 - np.arange(20))
    found = picks(ids, np.full(len(ids), LIT))
    settings = Settings(view=Camera((0, 0, 5), (0, 0, 0)), point_lights=(PointLight(),) * 20)
    groups = group_picks(found, SimpleNamespace(fields={"sun_count": 0}, environment=None), None, settings)
    assert len(groups) == MAX_ROWS + 1 and groups[-1].name == "8 others"
    assert sum(int(group.chosen.sum()) for group in groups) == len(ids)
    assert groups[-1].chosen.sum() == sum(range(1, 9))


def test_points_are_drawn_where_the_camera_sees_them():
    settings = Settings(view=Camera((0.0, 0.0, 5.0), (0.0, 0.0, 0.0), fov_degrees=60.0))
    params = launch_params(settings, (80, 60), (0, 0, 80, 60))
    found = picks([~0], [BLOCKED], np.array([[0.6, 0.8, 0.0, 2.0]]))
    view = light_view(found, [Group("lamp", np.array([True]), 1.0)], params, "perspective", (40, 30), (80, 60))
    step = view.step(0)
    place = project(params, np.array([[1.2, 1.6, 0.0]]))[0][0] * (80, 60)
    red = np.argwhere((step.pixels[..., :3] == (240, 70, 60)).all(-1))
    assert np.abs(red.mean(0)[::-1] - np.floor(place)).max() < 0.5 and step.is_overlay
    assert step.pixels[0, 0, 3] == 0 and step.marks[0].text == "pixel 40, 30"
    assert light_view(found, [], params, "perspective", (1, 1), (80, 60)).step(0).meaning == "no light is picked there"


def scene():
    """A floor below a small lamp and two point lights, one of them behind a ball."""
    floor = Quad("gray", ((-4.0, 0.0, 4.0), (4.0, 0.0, 4.0), (4.0, 0.0, -4.0), (-4.0, 0.0, -4.0)))
    lamp = Material("lamp", emission=(6.0, 5.0, 4.0))
    spheres = (Sphere("lamp", (0.0, 3.0, 0.0), 0.3), Sphere("gray", (1.5, 1.0, 0.0), 0.5))
    points = (PointLight((3.0, 2.0, 0.0), (9.0, 9.0, 9.0)), PointLight((-2.0, 2.5, 1.0), (1.0, 4.0, 2.0)))
    view = Camera((0.0, 3.0, 6.0), (0.0, 0.0, 0.0), fov_degrees=30.0)
    materials = (Material("gray", color=(0.5, 0.5, 0.5)), lamp)
    return Settings(
        view=view, materials=materials, spheres=spheres, quads=(floor,), point_lights=points, max_depth=2,
        direct_lighting="nee", horizon=(0, 0, 0), zenith=(0, 0, 0), samples=SAMPLES,
    )  # fmt: skip


def test_picks_of_two_lamps_over_a_floor_by_algebra(device):
    """One lamp behind a ball: half of the samples pick each, and the other brings albedo / pi I cos / d^2."""
    given = scene()
    lamps = (PointLight((-3.0, 2.0, 0.0), (9.0, 9.0, 9.0)), PointLight((3.0, 2.0, 0.0), (9.0, 9.0, 9.0)))
    settings = replace(given, spheres=given.spheres[1:], point_lights=lamps)
    view = Picture(SimpleNamespace(device=device)).algorithm("light picks", settings, (101, 101), (0.5, 0.5))
    lit, blocked = sorted(view.rows, key=lambda row: row["blocked"])
    assert (lit["light"], blocked["light"]) == ("point light 0", "point light 1") and blocked["blocked"] == 1
    assert lit["blocked"] == 0 and lit["of all light"] == 1 and blocked["brings"] == 0
    assert lit["picks"] + blocked["picks"] == SAMPLES and lit["probability"] == pytest.approx(0.5, abs=0.01)
    square = 3.0**2 + 2.0**2
    assert lit["brings"] == pytest.approx(0.5 / np.pi * 9.0 * 2.0 / square**1.5, rel=0.05)


@pytest.mark.slow
def test_picks_bring_what_the_same_samples_draw(device):
    size, settings = (8, 6), scene()
    picture = Picture(SimpleNamespace(device=device))
    drawn = render(picture, settings, size, SAMPLES)[..., :3].astype("f8") @ LUMINANCE
    for x, y in ((4, 3), (2, 4), (6, 4)):
        view = picture.algorithm("light picks", settings, size, ((x + 0.5) / size[0], (y + 0.5) / size[1]))
        assert sum(row["brings"] for row in view.rows) == pytest.approx(drawn[y, x], rel=2e-3)
        assert sum(row["picks"] for row in view.rows) == SAMPLES
        for row in view.rows:
            deviation = np.sqrt(row["probability"] * (1 - row["probability"]) / SAMPLES)
            assert abs(row["of samples"] - row["probability"]) < 4 * deviation
        assert {row["light"] for row in view.rows} == {"sphere 0 (lamp)", "point light 0", "point light 1"}
        assert view.step(0).pixels.any()
    blocked = {row["light"]: row["blocked"] for row in view.rows}
    assert blocked["point light 1"] == 0
    assert picture.algorithm("light picks", replace(settings, direct_lighting="bsdf"), size).rows[0]["light"] == (
        "no light is picked there"
    )
