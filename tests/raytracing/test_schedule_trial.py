"""The choice of a schedule by measurement: by devices that are none, and in pictures on the emulated CUDA device."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from renderer.errors import KernelError
from renderer.pictures.raytrace import Picture
from renderer.raytracing import schedule_trial
from renderer.raytracing.schedule_trial import (
    TIMED_SAMPLES,
    WARM_SAMPLES,
    Candidate,
    Trial,
    remember,
    remembered,
    trial_key,
)
from tests import emulated
from tests.raytracing.test_render import mixed_scene

SAMPLES = 2 * (WARM_SAMPLES + TIMED_SAMPLES)


class Clock:
    """A device whose samples take the seconds that their schedule says."""

    name, driver = "clock", "1"

    def __init__(self):
        self.now = 0.0

    def start_timer(self):
        begin = self.now
        timer = SimpleNamespace(is_done=False, end=0.0)
        timer.stop = lambda: setattr(timer, "end", self.now) or setattr(timer, "is_done", True)
        timer.seconds = lambda: timer.end - begin
        return timer


@pytest.fixture
def choices(tmp_path, monkeypatch):
    """An empty memory of choices."""
    monkeypatch.setattr(schedule_trial, "cache_folder", lambda: tmp_path)
    remembered.cache_clear()
    yield
    remembered.cache_clear()


def drawn_by(seconds, *rival_seconds, samples=200, compiled_after=3, opens=True):
    """The schedules of the samples of a picture, and the schedule that it ends with."""
    clock, drawn = Clock(), []
    names = ["rival", "third"][: len(rival_seconds)]

    def open_rival(name):
        if not opens:
            raise KernelError("refused")
        return Candidate(name, (name, rival_seconds[names.index(name)]), None)

    def start_rival(name):
        asked = iter(range(samples))
        return lambda: next(asked) >= compiled_after

    trial = Trial("key", clock, Candidate("first", ("first", seconds), None), names, start_rival, open_rival)
    for sample in range(samples):
        if trial.is_over(samples - sample):
            return drawn, trial.best.name

        def draw(schedule):
            drawn.append(schedule[0])
            clock.now += schedule[1]

        trial.draw(draw)
    return drawn, trial.best.name


@pytest.mark.parametrize(("seconds", "rival_seconds", "best"), [(0.02, 0.01, "rival"), (0.01, 0.02, "first")])
def test_the_faster_schedule_goes_on_and_is_remembered(choices, seconds, rival_seconds, best):
    drawn, chosen = drawn_by(seconds, rival_seconds, compiled_after=3)
    each = WARM_SAMPLES + TIMED_SAMPLES
    assert drawn == ["first"] * (each + 3) + ["rival"] * each and chosen == best
    remembered.cache_clear()  # as another process sees it
    assert remembered() == {"key": best}


@pytest.mark.parametrize(("seconds", "best"), [((0.02, 0.01, 0.03), "rival"), ((0.03, 0.02, 0.01), "third")])
def test_the_best_so_far_draws_while_a_third_schedule_compiles(choices, seconds, best):
    drawn, chosen = drawn_by(*seconds)
    each = WARM_SAMPLES + TIMED_SAMPLES
    assert drawn == ["first"] * (each + 3) + ["rival"] * (each + 3) + ["third"] * each and chosen == best
    remembered.cache_clear()
    assert remembered() == {"key": best}


def test_a_short_picture_and_a_rival_that_does_not_compile_end_the_trial(choices):
    drawn, chosen = drawn_by(0.001, 0.0001)
    assert drawn == ["first"] * (WARM_SAMPLES + TIMED_SAMPLES) and chosen == "first"
    assert drawn_by(0.02, 0.01, opens=False)[1] == "first" and not remembered()


def test_a_damaged_memory_is_an_empty_one(choices, tmp_path):
    (tmp_path / "schedules.json").write_bytes(b"\x00" * 100)
    assert remembered() == {}


def test_keys_tell_structures_and_magnitudes_apart():
    constants, clock = {"STENCIL": 2, "SCHEDULE": 0, "Material": np.dtype("f4")}, Clock()
    key = trial_key(clock, constants, 1000, 1 << 20, 6)
    assert key == trial_key(clock, constants | {"SCHEDULE": 2}, 1001, (1 << 20) + 1, 6)
    others = [(constants | {"STENCIL": 1}, 1000, 1 << 20, 6), (constants, 5000, 1 << 20, 6), (constants, 1000, 9, 6)]
    assert len({key, *(trial_key(clock, *other) for other in others)}) == 4


def wait_for_rival(picture) -> None:
    """Waits while the rival of a trial compiles, which takes more samples than this picture has."""
    until = time.monotonic() + 300
    while (trial := picture._trial) and trial._is_compiled and not trial._is_compiled() and time.monotonic() < until:
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("winner", ["wavefront", "megakernel"])
def test_a_picture_changes_its_schedule_and_no_bit(choices, monkeypatch, winner):
    monkeypatch.setattr(schedule_trial, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(Candidate, "seconds", lambda self: float(self.name != winner))
    gpu, size = SimpleNamespace(device=emulated.cuda_machine(devices=1, seed=3).CudaDevice(0)), (24, 16)
    frames, schedules = [], []
    for settings in (mixed_scene(samples=64, schedule="auto"), mixed_scene(samples=64, schedule="regenerate")):
        picture = Picture(gpu)
        for _ in range(SAMPLES + 200):
            frame = picture.draw(settings, size, 0.0)
            wait_for_rival(picture)
        frames.append(frame.read())
        schedules.append(picture.report()["schedule"])
    assert schedules == [winner, "regenerate"] and np.array_equal(*frames)
    picture = Picture(gpu)
    picture.draw(mixed_scene(samples=64, schedule="auto"), size, 0.0)
    assert picture.report()["schedule"] == winner  # remembered from the first sample on


def test_the_newest_choices_are_remembered_also_by_other_processes(choices, monkeypatch):
    monkeypatch.setattr(schedule_trial, "MAX_REMEMBERED", 3)
    for k in range(5):
        remember(f"key {k}", "wavefront")
    for _ in range(2):
        assert [*remembered()] == ["key 2", "key 3", "key 4"]
        remembered.cache_clear()
