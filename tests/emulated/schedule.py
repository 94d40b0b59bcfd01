"""Work of all streams of emulated devices, run late, in an order that is drawn: streams and events alone bind it."""

import threading
from collections.abc import Callable

import numpy as np

MOST = 4096  # operations that wait at a time
TEMPERS = ("eager", "any", "late")  # run at once; some, at any time; only what a caller waits for


class Operation:
    """Work that runs once after other operations."""

    def __init__(self, run: Callable[[], None] | None, after: list["Operation"], stream: "Stream"):
        self.run, self.stream, self.done = run, stream, False
        self.after = [one for one in after if not one.done]
        self.left, self.followers = len(self.after), []
        for one in self.after:
            one.followers.append(self)


class Stream:
    """Operations in order; `captured` collects them for a graph instead."""

    def __init__(self, schedule: "Schedule", device: int):
        self.schedule, self.device = schedule, device
        self.last: Operation | None = None
        self.captured: list | None = None
        self.rank = 0.0  # streams of low rank are preferred, for a while

    def add(self, run: Callable[[], None] | None, after: tuple[Operation, ...] = ()) -> Operation | None:
        if self.captured is not None:
            assert not after, "an event in a graph"
            self.captured.append(run)
            return None
        with self.schedule.lock:  # host threads may share a stream
            before = [self.last] if self.last else []
            self.last = self.schedule.add(Operation(run, [*before, *after], self))
            return self.last


class Turn:
    """A schedule's lock. What the garbage collector wants in the middle of it, while operations run, comes behind."""

    def __init__(self):
        self._lock, self._depth, self._later = threading.RLock(), 0, []

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *error) -> None:
        while self._depth == 1 and self._later:
            self._later.pop()()
        self._depth -= 1
        self._lock.release()

    def behind(self, action: Callable[[], None]) -> None:
        with self:
            self._later.append(action)


class Schedule:
    """All operations that have not run. `failures` holds the words of operations that failed, until someone asks."""

    def __init__(self, seed: int):
        self.lock = Turn()
        self.rng = np.random.default_rng(seed)
        self.streams: list[Stream] = []
        self.failures: list[str] = []
        self._ready: list[Operation] = []
        self._waiting = self._until_change = 0

    def stream(self, device: int) -> Stream:
        with self.lock:
            self.streams.append(Stream(self, device))
            return self.streams[-1]

    def add(self, operation: Operation) -> Operation:
        with self.lock:
            self._change()
            self._waiting += 1
            if not operation.left:
                self._ready.append(operation)
            if self._temper == "eager" or self._waiting > MOST:
                self.drain()
            elif self._temper == "any":
                for _ in range(int(self.rng.integers(4))):
                    self._run_one(self._ready)
        return operation

    def _change(self) -> None:
        """Now and then another manner of choosing: one alone would miss what the others find."""
        if self._until_change == 0:
            self._until_change = int(self.rng.integers(1, 200))
            self._temper = TEMPERS[self.rng.choice(3, p=(0.15, 0.45, 0.4))]
            self._loyal = self.rng.random() < 0.6
            for stream in self.streams:
                stream.rank = self.rng.random()
        self._until_change -= 1

    def until(self, operation: Operation | None) -> None:
        """Runs what the operation waits for, and it."""
        with self.lock:
            while operation and not operation.done:
                needed = self._ready
                if self._temper != "any":
                    ancestors = _ancestors(operation)
                    needed = [one for one in self._ready if one in ancestors]
                self._run_one(needed)

    def drain(self, device: int | None = None) -> None:
        """Runs everything, or all of a device."""
        with self.lock:
            for stream in self.streams:
                if device is None or stream.device == device:
                    self.until(stream.last)

    def _run_one(self, among: list[Operation]) -> None:
        if not among:
            return
        if self._loyal:
            operation = min(among, key=lambda one: one.stream.rank)
        else:
            operation = among[self.rng.integers(len(among))]
        self._ready.remove(operation)
        try:
            if operation.run:
                operation.run()
        except KernelFault as error:
            self.failures.append(str(error))
        finally:
            operation.done, operation.run, operation.after = True, None, []
            self._waiting -= 1
            for follower in operation.followers:
                follower.left -= 1
                if not follower.left:
                    self._ready.append(follower)
            operation.followers = []


class KernelFault(Exception):
    """What went wrong in a kernel or a copy."""


def _ancestors(operation: Operation) -> set[Operation]:
    found, open_ = set(), [operation]
    while open_:
        one = open_.pop()
        if one not in found and not one.done:
            found.add(one)
            open_ += one.after
    return found
