"""Device time of the phases of a factorization's steps, by timestamps in the devices' queues."""

from renderer.gpu.device import Timestamp
from renderer.numerics.band_lu.device_columns import DeviceColumns, PhaseMark
from renderer.numerics.band_lu.host_factors import PHASES

MAX_TIMED_STEPS = 64  # a step has a dozen timestamps, of some microseconds of the host each


class PhaseTimer:
    """Timestamps at the beginnings of the phases of a step in every device's queues, read when all is done.

    At most MAX_TIMED_STEPS steps, equally spaced, are timed; with is_enabled False none.
    """

    def __init__(self, steps: int, is_enabled: bool = True):
        self._steps, self._every, self._is_enabled = steps, -(-steps // MAX_TIMED_STEPS), is_enabled
        self._timestamps: dict[int, list[tuple[tuple[int, str], str, Timestamp]]] = {}
        self._host: dict[int, dict[str, float]] = {}
        self._now: list | None = None

    def start_step(self, i: int) -> None:
        """Begins step i, to which the next timestamps belong."""
        is_timed = self._is_enabled and i % self._every == 0
        self._now = self._timestamps.setdefault(i, []) if is_timed else None

    def timestamp(self, phase: str, columns: DeviceColumns, queue: str = "") -> None:
        """Marks the beginning of a phase in a queue; "end" is no phase and ends the one before."""
        if self._now is not None:
            self._now.append(((columns.index, queue), phase, columns.device.timestamp()))

    def in_panel_queue(self) -> PhaseMark:
        """timestamp() for the priority queue of the panels."""
        return lambda phase, columns: self.timestamp(phase, columns, "panels")

    def add_host_seconds(self, i: int, phase: str, seconds: float) -> None:
        """Adds seconds that the host spent on a phase of step i."""
        self._host.setdefault(i, dict.fromkeys(PHASES, 0.0))[phase] += seconds

    def step_seconds(self) -> list[dict]:
        """For each timed step its number and the seconds of its phases, added over the devices and the host."""
        return [
            {"step": i} | {phase: seconds + self._host.get(i, {}).get(phase, 0.0) for phase, seconds in phases.items()}
            for i, phases in self._device_seconds().items()
        ]

    def totals(self) -> dict[str, float]:
        """Seconds of each phase over all steps: the host's, and the devices' extrapolated from the timed steps."""
        timed = self._device_seconds().values()
        return {
            phase: sum(phases[phase] for phases in timed) * self._steps / max(len(timed), 1)
            + sum(phases[phase] for phases in self._host.values())
            for phase in PHASES
        }

    def _device_seconds(self) -> dict[int, dict[str, float]]:
        """Seconds of the phases of the timed steps, added over the devices."""
        out = {}
        for i, entries in self._timestamps.items():
            seconds = out[i] = dict.fromkeys(PHASES, 0.0)
            for queue in {entry[0] for entry in entries}:
                own = [(phase, timestamp) for where, phase, timestamp in entries if where == queue]
                for (phase, timestamp), (_, following) in zip(own, own[1:], strict=False):
                    if phase in seconds:
                        seconds[phase] += following.seconds_since(timestamp)
        return out
