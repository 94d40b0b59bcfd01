"""The choice of the schedule "auto" by measurement, on samples that a picture draws anyway.

All schedules draw the same bits, so a picture may change its schedule between two samples. A picture begins with the
schedule that was fastest for an earlier picture of the same structure, size and device, or else with the guess of
schedules.with_schedule(). If much of the picture is left to draw, a Trial lets each rival compile beside the drawing,
times a few samples of all by the device's clock, and goes on with the fastest. pictures/raytrace.py draws by it.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from renderer.errors import KernelError, UnavailableError
from renderer.gpu.cache import cache_folder, read_entry, write_entry
from renderer.gpu.device import Device, Timer
from renderer.raytracing.ray_buffers import RayBuffers
from renderer.raytracing.schedules import Schedule

WARM_SAMPLES = 4  # untimed samples of each schedule: launched one by one, then recorded as a graph
TIMED_SAMPLES = 4  # timed samples of each schedule; the least time counts
MAX_REMEMBERED = 4096  # choices in the file
# Least remaining drawing time of a trial: compiling a rival takes seconds, a short picture cannot repay it.
LEAST_SECONDS = 1.0
Choices = dict[str, str]  # the fastest schedules, by trial_key()


def trial_key(device: Device, constants: Mapping[str, object], primitive_count: int, ray_count: int, depth: int) -> str:
    """Returns what pictures for which the same schedule is fastest have in common, as a hash.

    These are the device, the compile-time constants of the scene, the depth, and the orders of magnitude, by powers of
    two, of the numbers of primitives and rays.
    """
    # a megakernel has 1 word per warp, wavefront stages have more
    of_schedule = ("SCHEDULE", "WORDS_PER_WARP")
    structure = sorted((k, v) for k, v in constants.items() if isinstance(v, int) and k not in of_schedule)
    numbers = primitive_count.bit_length(), ray_count.bit_length(), depth
    return hashlib.sha256(repr((device.name, device.driver, structure, numbers)).encode()).hexdigest()[:32]


@cache
def remembered() -> Choices:
    """The choices of earlier processes, from the cache folder, and of this one."""
    content = read_entry(cache_folder() / "schedules.json")
    try:
        choices = json.loads(content or b"{}")
    except ValueError:
        choices = {}
    return {str(k): str(v) for k, v in choices.items()} if isinstance(choices, dict) else {}


def remember(key: str, schedule: str) -> None:
    """Keeps a choice for later pictures, also of other processes."""
    choices = remembered()
    choices[key] = schedule
    while len(choices) > MAX_REMEMBERED:
        choices.pop(next(iter(choices)))  # the oldest
    write_entry(cache_folder() / "schedules.json", json.dumps(choices).encode())


class Candidate:
    """A schedule in a trial, with its buffers and the timers of its samples."""

    def __init__(self, name: str, schedule: Schedule, rays: RayBuffers):
        self.name, self.schedule, self.rays = name, schedule, rays
        self.samples, self.timers = 0, list[Timer]()

    @property
    def is_timed(self) -> bool:
        """True if the device has drawn all samples that the trial times."""
        return len(self.timers) == TIMED_SAMPLES and all(timer.is_done for timer in self.timers)

    def seconds(self) -> float:
        """The least device time of a timed sample; waits for the samples."""
        return min(timer.seconds() for timer in self.timers)


class Trial:
    """Draws samples by several schedules in turn, the present one first, until it knows the fastest.

    `start_rival` begins to compile a rival by its name and returns a function: True once it is compiled;
    `open_rival` returns it, with buffers that share the film. Whoever draws asks is_over() before each sample and then
    goes on with `best`.
    """

    def __init__(
        self,
        key: str,
        device: Device,
        first: Candidate,
        rivals: Sequence[str],
        start_rival: Callable[[str], Callable[[], bool]],
        open_rival: Callable[[str], Candidate],
    ) -> None:
        self.key, self.best = key, first
        self._device, self._current, self._rivals = device, first, list(rivals)
        self._start_rival, self._open_rival = start_rival, open_rival
        self._is_compiled: Callable[[], bool] | None = None  # of the next rival, while it compiles

    def is_over(self, samples_left: int) -> bool:
        """Advances the trial before a sample is drawn; True once `best` is known, or not worth finding out."""
        if not self._current.is_timed:
            return False
        if self._is_compiled is None:  # the present candidate is timed, and no rival compiles yet
            self.best = min(self.best, self._current, key=Candidate.seconds)
            if not self._rivals:
                remember(self.key, self.best.name)
            if not self._rivals or self.best.seconds() * samples_left < LEAST_SECONDS:
                return True
            self._is_compiled = self._start_rival(self._rivals[0])
        if self._is_compiled():
            self._is_compiled = None
            try:
                self._current = self._open_rival(self._rivals.pop(0))
            except (KernelError, UnavailableError):  # no memory for it, or the driver refuses it
                return True
        return False

    def draw(self, draw_sample: Callable[[Schedule], None]) -> None:
        """Draws a sample by the schedule on trial, timed if it is warm; by the best one while a rival compiles."""
        candidate = self.best if self._is_compiled else self._current
        candidate.samples += 1
        if candidate.samples <= WARM_SAMPLES or len(candidate.timers) == TIMED_SAMPLES:
            draw_sample(candidate.schedule)
            return
        timer = self._device.start_timer()
        draw_sample(candidate.schedule)
        timer.stop()
        candidate.timers.append(timer)
