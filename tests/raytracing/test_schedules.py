"""The choice of a schedule, on devices that are none."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from renderer.raytracing import schedules
from renderer.raytracing.materials import material_rows
from renderer.raytracing.settings import Fog, Material, Settings

UNITS = 132
SIMPLE, LAYERS, METALS, TRANSMISSION = (
    UNITS * schedules.WAVEFRONT_RAYS[key] for key in ("simple", "layers", "metals", "transmission")
)
GLASS = Material("glass", "principled", transmission=1.0)
FOG = Fog(density=0.1)


@pytest.mark.parametrize(
    ("settings", "instances", "rays", "chosen"),
    [
        ({}, False, SIMPLE - 1, "megakernel"),
        ({}, False, SIMPLE, "wavefront"),
        ({}, True, LAYERS, "wavefront"),
        ({"materials": (Material("steel", "conductor"),)}, True, METALS - 1, "megakernel"),
        ({"materials": (Material("steel", "conductor"),)}, True, METALS, "wavefront"),
        ({"materials": (Material("steel", "principled"),)}, False, LAYERS, "wavefront"),
        ({"materials": (GLASS,)}, False, TRANSMISSION, "wavefront"),
        ({"materials": (GLASS,)}, True, TRANSMISSION - 1, "megakernel"),
        ({"fog": FOG}, False, TRANSMISSION, "wavefront"),
        ({}, True, 1 << 24, "megakernel"),  # whose rays between two stages would take a quarter of the memory
    ],
)
def test_cuda_begins_simple_scenes_small_and_huge_tiles_by_the_megakernel(settings, instances, rays, chosen):
    settings = Settings(**settings)
    properties = SimpleNamespace(memory_bytes=8 << 30, compute_units=UNITS)
    device, opencl = (SimpleNamespace(properties=properties, has_graphs=graphs) for graphs in (True, False))
    rest = SimpleNamespace(has_instances=instances), rays, material_rows(settings)
    for has_ballot in (True, False):
        properties.has_ballot = has_ballot
        found = schedules.with_schedule(device, settings, *rest).schedule
        assert found == (chosen if has_ballot else "megakernel")
        found = schedules.with_schedule(opencl, settings, *rest).schedule
        assert found == "megakernel"
        for way in ("wavefront", "regenerate", "megakernel"):
            assert schedules.with_schedule(device, settings.with_schedule(way), *rest).schedule == way
        assert schedules.with_schedule(device, replace(settings, stencil="off"), *rest).schedule == "wavefront"


@pytest.mark.parametrize(
    ("graphs", "rays", "first", "rivals"),
    [
        (True, SIMPLE, "wavefront", ["megakernel"]),
        (True, SIMPLE, "megakernel", ["wavefront"]),
        (True, 4_000 * UNITS - 1, "megakernel", ["wavefront", "regenerate"]),
        (False, SIMPLE, "megakernel", ["wavefront", "regenerate"]),
    ],
)
def test_auto_tries_rivals_where_they_compile_beside_the_drawing(graphs, rays, first, rivals):
    properties = SimpleNamespace(memory_bytes=8 << 30, compute_units=UNITS, has_ballot=True)
    device, slow = (
        SimpleNamespace(properties=properties, compiles_beside_work=beside, has_graphs=graphs)
        for beside in (True, False)
    )
    assert schedules.rival_schedules(device, Settings(), first, rays) == rivals
    assert schedules.rival_schedules(slow, Settings(), first, rays) == []
    assert schedules.rival_schedules(device, Settings(schedule=first), first, rays) == []
