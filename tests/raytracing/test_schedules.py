"""The choice of a schedule, on devices that are none."""

from types import SimpleNamespace

import pytest

from renderer.raytracing import schedules
from renderer.raytracing.settings import Settings

MANY = schedules.MIN_WAVEFRONT_PRIMS


@pytest.mark.parametrize(
    ("primitives", "instances", "rays", "chosen"),
    [
        (MANY - 1, False, 1 << 20, "regenerate"),
        (MANY, False, 1 << 20, "wavefront"),
        (1, True, 1 << 20, "wavefront"),
        (MANY, True, 1 << 24, "regenerate"),  # whose rays between two stages would take a quarter of the memory
    ],
)
def test_gpus_draw_simple_scenes_and_huge_tiles_by_regeneration(monkeypatch, primitives, instances, rays, chosen):
    device = SimpleNamespace(properties=SimpleNamespace(memory_bytes=8 << 30))
    geometry = SimpleNamespace(primitive_count=primitives, has_instances=instances)
    for has_ballot in (True, False):
        monkeypatch.setattr(schedules, "has_ballot", lambda _, answer=has_ballot: answer)
        found = schedules.with_schedule(device, Settings(), geometry, rays).schedule
        assert found == (chosen if has_ballot else "megakernel")
        for way in ("wavefront", "regenerate", "megakernel"):
            assert schedules.with_schedule(device, Settings(schedule=way), geometry, rays).schedule == way
        assert schedules.with_schedule(device, Settings(stencil="off"), geometry, rays).schedule == "wavefront"
