"""Every whole number and list of the schema at its maximum, and products of them: drawn within a budget, or refused."""

import json
import subprocess
import sys

import pytest

from renderer.scene.schema import field_types
from tests.fuzz import maxima, targets
from tests.fuzz.run import ROOT

DEAR = ("flame", "flame3d", "ink", "layout", "raytrace")  # 3 to 25 CPU-s each


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param([kind for kind in targets.DRAWN if kind not in DEAR], id="cheap"),
        *(pytest.param([kind], marks=pytest.mark.slow, id=kind) for kind in DEAR),
    ],
)
def test_the_most_that_scenes_can_ask_for_is_drawn_within_the_budget_or_refused(kinds):
    words = [sys.executable, "-m", "tests.fuzz.maxima", *kinds]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=1000)
    found, decoder, at = {}, json.JSONDecoder(), 0
    while at < len(answer.stdout):
        row, end = decoder.raw_decode(answer.stdout, at)
        found, at = found | row, end + 1
    assert set(found) == set(kinds), answer.stderr
    assert not {kind: row["findings"] for kind, row in found.items() if row["findings"]}
    assert answer.returncode == 0 and all(row["scenes"] > 0 for row in found.values())


def test_every_number_and_list_of_a_class_is_found():
    """The witness is the text of the ray tracer's declarations."""
    from renderer.pictures import picture_class

    Settings = picture_class("raytrace").settings_type
    numbers = {".".join(keys) for keys, _ in maxima.leaves(Settings, "int")}
    assert numbers >= {"max_depth", "samples", "seed", "volumes.*.cells", "procedural.*.level", "scattered.*.columns"}
    lists = {".".join(keys) for keys, _ in maxima.leaves(Settings, "list")}
    assert lists >= {name for name, kind in field_types(Settings).items() if str(kind).endswith(", ...]")}
