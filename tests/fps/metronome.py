"""A case of known processor time: every deviation that is measured is an error of the harness."""

import time

from renderer.bench.cases import Case
from renderer.gpu.properties import Counters

BEAT = 0.002  # seconds


def cases(gpu) -> list[Case]:
    """The metronome; it needs no device."""
    return [metronome_case()]


class Metronome:
    """A device whose clock is this thread's processor time, which other work on the machine does not change."""

    name, driver, has_reliable_timer = "metronome", "", True

    def __init__(self):
        self.counters = Counters()

    def finish(self) -> None:
        """Nothing is left to wait for."""

    def time_seconds(self, work) -> float:
        """The processor time of work() in seconds."""
        began = time.thread_time()
        work()
        return time.thread_time() - began


def metronome_case() -> Case:
    """BEAT seconds of this thread's processor time; other work on the machine does not change it."""
    device = Metronome()

    def run():
        device.counters.launches += 1
        until = time.thread_time() + BEAT
        while time.thread_time() < until:
            pass

    return Case("beat", "beats/s", 1.0, run, lambda: b"beat", device)
