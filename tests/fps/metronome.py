"""A case of known time, whatever else the machine does: what the harness says of it is the harness's own."""

import time

from renderer.bench.cases import Case
from renderer.gpu.kernel_source import Counters

BEAT = 0.002


def cases(gpu):
    return [metronome_case()]


class Metronome:
    """A device whose clock is this thread's processor time, so that other work on the machine does not touch it."""

    name, driver, has_reliable_timer = "metronome", "", True

    def __init__(self):
        self.counters = Counters()

    def finish(self) -> None:
        pass

    def time_seconds(self, work) -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began


def metronome_case() -> Case:
    """Two milliseconds of processor time, whatever else goes on: what the harness says of it is the harness's own."""
    device = Metronome()

    def run():
        device.counters.launches += 1
        until = time.thread_time() + BEAT
        while time.thread_time() < until:
            pass

    return Case("beat", "beats/s", 1.0, run, lambda: b"beat", device)
