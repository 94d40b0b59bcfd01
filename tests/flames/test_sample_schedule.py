"""Steps of the batches of a picture, the estimate of their time, and the weights of spatial filters."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.export.render import print_eta
from renderer.flames import filters
from renderer.flames.genome import Flame
from renderer.flames.sample_schedule import SampleSchedule


@pytest.mark.parametrize(("quality", "size"), [(1, (16, 16)), (50, (64, 48)), (2000, (512, 512))])
def test_steps_after_batches_are_their_sum(quality, size):
    schedule = SampleSchedule(quality, size, 1)
    steps = 0
    for batch in range(schedule.batches + 5):
        assert schedule.steps_after(batch) == steps
        steps += schedule.batch_steps(batch)
    assert schedule.steps_after(schedule.batches) == schedule.steps_per_chain


def test_no_time_is_foretold_without_progress(capsys):
    job = SimpleNamespace(tiles=lambda: [0], deadline=time.monotonic() + 1e9, is_command=True)
    print_eta(job, 2.0, 1.0, 1.0)
    assert capsys.readouterr().err == ""
    print_eta(job, 2.0, 0.1, 0.101)
    assert "about 33 minutes" in capsys.readouterr().err


def test_filters_sum_to_one():
    for shape in filters.FILTERS:
        for supersample in (1, 2, 3):
            for radius in (0.0, 0.3, 0.5, 1.2):
                taps = filters.spatial_filter(Flame(filter_shape=shape, supersample=supersample, filter_radius=radius))
                assert taps.shape[0] == taps.shape[1] and (taps.shape[0] - supersample) % 2 == 0
                assert np.isclose(taps.sum(), 1, atol=1e-5)
