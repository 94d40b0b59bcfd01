"""The choice of a schedule, on devices that are none."""

from types import SimpleNamespace

import pytest

from renderer.raytracing import schedules
from renderer.raytracing.settings import Settings

MANY, LARGE = schedules.MIN_WAVEFRONT_PRIMS, 132 * schedules.MIN_WAVEFRONT_RAYS


@pytest.mark.parametrize(
    ("primitives", "instances", "rays", "chosen"),
    [
        (MANY - 1, False, LARGE, "megakernel"),
        (MANY, False, LARGE, "wavefront"),
        (1, True, LARGE, "wavefront"),
        (MANY, True, LARGE - 1, "megakernel"),
        (MANY, True, 1 << 24, "megakernel"),  # whose rays between two stages would take a quarter of the memory
    ],
)
def test_cuda_begins_simple_scenes_small_and_huge_tiles_by_the_megakernel(
    monkeypatch, primitives, instances, rays, chosen
):
    properties = SimpleNamespace(memory_bytes=8 << 30, compute_units=132)
    device, opencl = (SimpleNamespace(properties=properties, has_graphs=graphs) for graphs in (True, False))
    geometry = SimpleNamespace(primitive_count=primitives, has_instances=instances)
    for has_ballot in (True, False):
        monkeypatch.setattr(schedules, "has_ballot", lambda _, answer=has_ballot: answer)
        found = schedules.with_schedule(device, Settings(), geometry, rays).schedule
        assert found == (chosen if has_ballot else "megakernel")
        found = schedules.with_schedule(opencl, Settings(), geometry, rays).schedule
        assert found == ("regenerate" if has_ballot else "megakernel")
        for way in ("wavefront", "regenerate", "megakernel"):
            assert schedules.with_schedule(device, Settings(schedule=way), geometry, rays).schedule == way
        assert schedules.with_schedule(device, Settings(stencil="off"), geometry, rays).schedule == "wavefront"


@pytest.mark.parametrize(("first", "rival"), [("wavefront", "megakernel"), ("regenerate", "wavefront")])
def test_auto_tries_a_rival_where_it_compiles_beside_the_drawing(monkeypatch, first, rival):
    monkeypatch.setattr(schedules, "has_ballot", lambda _: True)
    properties = SimpleNamespace(memory_bytes=8 << 30)
    device, slow = (SimpleNamespace(properties=properties, compiles_beside_work=beside) for beside in (True, False))
    assert schedules.rival_schedule(device, Settings(), first, LARGE) == rival
    assert schedules.rival_schedule(slow, Settings(), first, LARGE) is None
    assert schedules.rival_schedule(device, Settings(schedule=first), first, LARGE) is None
